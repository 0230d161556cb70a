"""Does a verifier keep the target's law? Pearson's test on the joint law of three tokens.

Target and drafter are Markov chains, so every law depends on the text so far and the exact joint
law is a product of rationals. Whole sequences are compared, made over several rounds: marginals,
acceptance rates, single rounds and identical rows each hide known faults.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.errors import complaint

__all__ = ["DRAFT", "LENGTH", "SEED", "TARGET", "Chain", "JointTest", "Subject", "joint_test"]

Chain = Sequence[Sequence[Fraction]]
"""Row s is the law of the token after token s; texts start in state 0."""
Array = npt.NDArray[Any]
Subject = Callable[[Array, Array, Array, Array, np.random.Generator], tuple[Array, Array]]
"""(draft_token_ids [B, K], draft_probs [B, K, V], target_probs [B, K+1, V], num_draft [B], rng)
-> (token_ids [B, K+1], num_emitted [B]), the first five arguments of `draftproof.verify`."""


def _chain(denominator: int, rows: Sequence[Sequence[int]]) -> Chain:
    return tuple(tuple(Fraction(n, denominator) for n in row) for row in rows)


# 21 = 3 * 7: no entry is a binary fraction, so a coarse grid of uniforms cannot hit them all.
TARGET = _chain(21, [(3, 6, 6, 6), (5, 11, 3, 2), (3, 4, 3, 11), (4, 9, 6, 2)])
"""The least likely text of three tokens has probability 24/9261: 777 expected in 300,000."""
DRAFT = _chain(21, [(3, 5, 11, 2), (6, 10, 4, 1), (7, 1, 2, 11), (1, 9, 9, 2)])
SEED = 221117192
"""Fixed before any result was seen: the arXiv number of the paper that states the rule."""
LENGTH = 3
"""Tokens of a text, and drafts of its first round."""

FALSE_ALARM = 1e-3
POWER = 0.99
SMALLEST_EXPECTED_COUNT = 5


@dataclass(frozen=True, eq=False)
class JointTest:
    """The outcome of one `joint_test`.

    Attributes:
        statistic: Pearson's chi-square over the possible texts; infinite if an impossible text
            was seen.
        degrees_of_freedom: possible texts minus one.
        threshold: the upper 0.1 % point of that chi-square law: a lossless subject stays below it
            for 999 seeds in 1,000.
        p_value: the probability that a lossless subject reaches ``statistic``.
        total_variation: between the observed and the exact law; noise alone makes it positive.
        detectable_total_variation: a subject whose law is off by more is rejected with
            probability at least 0.99; a smaller bias is not excluded.
        counts: int64 [V, V, V], how often each text was made.
    """

    statistic: float
    degrees_of_freedom: int
    threshold: float
    p_value: float
    total_variation: float
    detectable_total_variation: float
    counts: npt.NDArray[np.int64]

    @property
    def passed(self) -> bool:
        """Whether losslessness is not rejected."""
        return self.statistic < self.threshold


def joint_test(
    subject: Subject,
    *,
    sequences: int = 300_000,
    seed: int = SEED,
    target: Chain = TARGET,
    draft: Chain = DRAFT,
) -> JointTest:
    """Make many texts of three tokens by draft and verify, and compare their law with the target's.

    ::

        every text starts with three drafts, verified in one call for all texts
        while texts are unfinished:
            draft one token less than a text still needs, so that its bonus token counts too
            (none for its last token: the subject then samples the target)
        chi-square of the counts of all V^3 texts, cut to three tokens, against the exact law

    Every call has K = 3. What the contract says is never read (past a row's ``num_draft``) is
    poisoned: token -1 and rows of NaN.

    Args:
        subject: the verifier, see `Subject`; called once a round with fresh arrays.
        sequences: how many texts. The least likely one must be expected at least 5 times.
        seed: of the two independent generators of the drafts and of the subject, so that subjects
            that consume uniforms alike meet the same drafts.
        target: the target's chain, V rows of V rationals.
        draft: the drafter's chain, of the same shape.

    Raises:
        ValueError: too few sequences, or a subject that emits no token, too many tokens, or
            tokens outside the vocabulary.

    The statistic is asymptotically chi-square. The power is that of the noncentral chi-square law
    with noncentrality n * sum (p' - p)^2 / p >= 4 n TV^2, for a subject of law p'.

    >>> from draftproof.proof.controls import correct
    >>> result = joint_test(correct)
    >>> result.passed, round(result.threshold, 1), round(result.detectable_total_variation, 4)
    (True, 103.4, 0.0085)
    """
    law = joint_law(target)
    needed = int(np.ceil(SMALLEST_EXPECTED_COUNT / law[law > 0].min()))
    if sequences < needed:
        raise ValueError(
            complaint(
                "sequences",
                "",
                found=sequences,
                wanted=f"at least {needed}, so that the least likely text is expected "
                f"{SMALLEST_EXPECTED_COUNT} times",
                fix="ask for more: 300,000 take a second",
            )
        )
    counts = _count_texts(subject, sequences, seed, target, draft)
    return _compare(counts, law)


def joint_law(chain: Chain) -> npt.NDArray[np.float64]:
    """The exact law [V, V, V] of a chain's first three tokens, each product rounded once."""
    rows = np.array(chain, dtype=object)
    law = rows[0]
    for _ in range(LENGTH - 1):
        law = law[..., None] * rows
    return np.asarray(law, dtype=np.float64)


def _count_texts(
    subject: Subject, sequences: int, seed: int, target: Chain, draft: Chain
) -> npt.NDArray[np.int64]:
    V = len(target)
    p, q = _poisoned(target), _poisoned(draft)
    draft_rng, subject_rng = np.random.default_rng(seed).spawn(2)
    texts = np.zeros((sequences, 2 * LENGTH), dtype=np.int64)
    made = np.zeros(sequences, dtype=np.int64)
    while (unfinished := np.flatnonzero(made < LENGTH)).size:
        done = made[unfinished]
        state = np.where(done > 0, texts[unfinished, done - 1], 0)
        num_draft = np.where(done > 0, LENGTH - 1 - done, LENGTH)
        walk = _walk(q, state, draft_rng)
        before = np.where(np.arange(LENGTH + 1) <= num_draft[:, None], walk, -1)
        drafted = np.arange(LENGTH) < num_draft[:, None]
        token_ids, num_emitted = subject(
            np.where(drafted, walk[:, 1:], -1),
            q.take(np.where(drafted, walk[:, :-1], -1), axis=0),
            p.take(before, axis=0),
            num_draft,
            subject_rng,
        )
        token_ids, num_emitted = np.asarray(token_ids), np.asarray(num_emitted)
        _check_emission(token_ids, num_emitted, num_draft, V)
        # Whole rows, padding too: what lies past a row's tokens is overwritten or cut.
        texts[unfinished[:, None], done[:, None] + np.arange(LENGTH + 1)] = token_ids
        made[unfinished] = done + num_emitted
    cells = np.ravel_multi_index(tuple(texts[:, :LENGTH].T), (V,) * LENGTH)
    return np.bincount(cells, minlength=V**LENGTH).reshape((V,) * LENGTH)


def _poisoned(chain: Chain) -> npt.NDArray[np.float64]:
    """Return the chain's rows [V+1, V], and row -1 of NaN for positions that must not be read."""
    rows = np.array(chain, dtype=np.float64)
    return np.vstack([rows, np.full_like(rows[:1], np.nan)])


def _walk(
    q: npt.NDArray[np.float64], state: Array, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Return [B, LENGTH+1]: the states, then LENGTH tokens of the drafter's chain after them."""
    edges = q[:, :-1].cumsum(axis=1)
    walk = np.empty((len(state), LENGTH + 1), dtype=np.int64)
    walk[:, 0] = state
    for i, u in enumerate(rng.random((LENGTH, len(state)))):
        walk[:, i + 1] = np.count_nonzero(edges.take(walk[:, i], axis=0) <= u[:, None], axis=1)
    return walk


def _check_emission(token_ids: Array, num_emitted: Array, num_draft: Array, V: int) -> None:
    """Refuse what is no emission at all, which is not the same as a wrong law."""
    B = len(num_draft)
    if token_ids.shape != (B, LENGTH + 1) or num_emitted.shape != (B,):
        raise ValueError(
            complaint(
                "subject",
                "its result",
                found=f"shapes {token_ids.shape} and {num_emitted.shape}",
                wanted=f"({B}, {LENGTH + 1}) and ({B},)",
                fix="return (token_ids [B, K+1], num_emitted [B])",
            )
        )
    bad_count = (num_emitted < 1) | (num_emitted > num_draft + 1)
    emitted = np.arange(LENGTH + 1) < num_emitted[:, None]
    bad_token = (emitted & ((token_ids < 0) | (token_ids >= V))).any(axis=1)
    if (bad_count | bad_token).any():
        row = int(np.argmax(bad_count | bad_token))
        raise ValueError(
            complaint(
                "subject",
                f"row {row} of a call",
                found=f"{num_emitted[row]} tokens emitted, row {token_ids[row].tolist()}",
                wanted=f"1..{num_draft[row] + 1} tokens in 0..{V - 1}, for {num_draft[row]} drafts",
                fix="emit the accepted drafts and one token after them",
            )
        )


def _compare(counts: npt.NDArray[np.int64], law: npt.NDArray[np.float64]) -> JointTest:
    try:
        from scipy import special
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "The joint test needs SciPy. Fix: pip install 'draftproof[proof]'."
        ) from error

    n = counts.sum()
    possible = law > 0
    expected = n * law[possible]
    statistic = float(((counts[possible] - expected) ** 2 / expected).sum())
    if counts[~possible].any():
        statistic = np.inf
    df = int(possible.sum()) - 1
    threshold = float(special.chdtri(df, FALSE_ALARM))
    noncentrality = special.chndtrinc(threshold, df, 1 - POWER)
    return JointTest(
        statistic=statistic,
        degrees_of_freedom=df,
        threshold=threshold,
        p_value=float(special.chdtrc(df, statistic)),
        total_variation=float(np.abs(counts / n - law).sum() / 2),
        detectable_total_variation=float(np.sqrt(noncentrality / n) / 2),
        counts=counts,
    )
