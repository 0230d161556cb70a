"""Does a verifier keep the target's law? Pearson's test on the joint law of three tokens.

Target and drafter are Markov chains, so every law depends on the text so far and the exact joint
law is a product of rationals. Whole sequences are compared, made over several rounds: marginals,
acceptance rates, single rounds and identical rows each hide known faults.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from draftproof.errors import complaint
from draftproof.proof.sampled.sampling import Experiment, Verify, as_verify
from draftproof.proof.sampled.statistics import SMALLEST_EXPECTED_COUNT, compare, scipy_special
from draftproof.proof.worlds.world import World

__all__ = ["DRAFT", "LENGTH", "SEED", "TARGET", "Chain", "JointTest", "Subject", "joint_test"]

Chain = Sequence[Sequence[Fraction]]
"""Row s is the law of the token after token s; texts start in state 0."""
Subject = Verify


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
CHUNK = 1 << 16
"""Rows of a call: what they need stays small, and in the cache."""


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

        every text starts with three drafts, verified in one call for up to 65,536 texts
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

    >>> from draftproof.proof.mutants import get
    >>> result = joint_test(get("token").build())
    >>> result.passed, round(result.threshold, 1), round(result.detectable_total_variation, 4)
    (True, 103.4, 0.0085)
    """
    world = World(tuple(map(tuple, target)), tuple(map(tuple, draft)))
    experiment = Experiment((world,), LENGTH, LENGTH)
    law = experiment.laws[0]
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
    draft_rng, subject_rng = np.random.default_rng(seed).spawn(2)
    verify = as_verify(subject)
    counts = np.zeros(len(law), dtype=np.int64)
    for done in range(0, sequences, CHUNK):
        cells = experiment.make(verify, min(CHUNK, sequences - done), draft_rng, subject_rng)
        counts += np.bincount(cells, minlength=len(law))
    return _compare(counts, law)


def _compare(counts: npt.NDArray[np.int64], law: npt.NDArray[np.float64]) -> JointTest:
    special = scipy_special()
    comparison = compare(counts, law)
    df, n, V = comparison.degrees_of_freedom, comparison.size, round(len(law) ** (1 / LENGTH))
    threshold = float(special.chdtri(df, FALSE_ALARM))
    noncentrality = special.chndtrinc(threshold, df, 1 - POWER)
    return JointTest(
        statistic=comparison.statistic,
        degrees_of_freedom=df,
        threshold=threshold,
        p_value=comparison.p_value,
        total_variation=comparison.total_variation,
        detectable_total_variation=float(np.sqrt(noncentrality / n) / 2),
        counts=counts.reshape((V,) * LENGTH),
    )
