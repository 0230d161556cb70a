"""The probabilities that a rule keeps at least 1, 2, ... drafts of a chain: their sum is E[tau].

Given the drafts, with r_i = P_i(x_i) / Q_i(x_i), at least i of them are kept with probability

=============  ===========================================================
token          min(1, r_1) ... min(1, r_i)
block          w_i = min(1, w_(i-1) r_i), w_0 = 1
greedy-block   min(1, r_1 ... r_i), in a text's first round
exact-match    P_1(x_1) ... P_i(x_i)
gumbel         the product of the probabilities that P_j's race is won by x_j, given that Q_j's is
=============  ===========================================================

Each line but the last two is at least the one above it, draft by draft. How many drafts follow
makes no difference. After its first round greedy block has another target, and keeps less.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.arrays import widen
from draftproof.batch import Batch, padded_batch
from draftproof.efficiency.one_draft import Array, by_token
from draftproof.errors import complaint
from draftproof.reference.rows import draft_row
from draftproof.types import SparseProbs

__all__ = ["CHAIN_RULES", "survival_along", "survival_in"]

CHAIN_RULES = ("token", "block", "greedy-block", "exact-match", "gumbel")
MOST_PATHS = 10_000_000
"""Chains of drafts that block and greedy block are enumerated over."""


def survival_along(
    draft_token_ids: npt.ArrayLike,
    draft_probs: npt.ArrayLike | SparseProbs | None,
    target_probs: npt.ArrayLike,
    num_draft: npt.ArrayLike | None = None,
    *,
    rule: str = "token",
) -> npt.NDArray[np.float64]:
    """Return the probability that each draft is kept, given the drafts, without any verification.

    Averaged over recorded rounds it estimates the same as counting kept drafts, with less noise,
    and for rules that were never run.

    Args:
        draft_token_ids, draft_probs, target_probs, num_draft: as for `draftproof.verify`; only the
            numbers at the drafts are read, and for ``gumbel`` their rows.
        rule: one of the table above.

    Returns:
        float64 [B, K]: that at least i + 1 drafts are kept; NaN at and past ``num_draft[b]``.

    >>> q, p = [[[0.5, 0.5]] * 2], [[[0.25, 0.75], [1.0, 0.0], [0.5, 0.5]]]
    >>> [survival_along([[0, 0]], q, p, rule=rule).tolist() for rule in ("token", "block")]
    [[[0.5, 0.5]], [[0.5, 1.0]]]
    """
    _check_rule(rule)
    batch = padded_batch(draft_token_ids, draft_probs, target_probs, num_draft)
    p, q, wins = np.full((3, batch.size, batch.max_draft), np.nan)
    for row, length in enumerate(batch.num_draft.tolist()):
        for i in range(length):
            p[row, i], q[row, i], wins[row, i] = _drafted(batch, rule, row, i)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if rule in ("exact-match", "gumbel"):
            return np.asarray(np.cumprod(p if rule == "exact-match" else wins / q, axis=1))
        ratios: npt.NDArray[np.float64] = np.where(p > 0, p / q, np.where(np.isnan(p), np.nan, 0))
        if rule == "token":
            return np.asarray(np.cumprod(np.minimum(ratios, 1), axis=1))
        if rule == "greedy-block":  # logarithms, since the joint ratio may exceed every float
            return np.asarray(np.exp(np.minimum(np.cumsum(np.log(ratios), axis=1), 0)))
    w = np.ones(batch.size)
    for i in range(batch.max_draft):
        ratios[:, i] = w = np.minimum(w * ratios[:, i], 1)
    return ratios


def _drafted(batch: Batch, rule: str, row: int, position: int) -> tuple[float, float, float]:
    """P, Q, and the probability that both of Gumbel's races are won, at the drafted token."""
    token = batch.draft_token_ids[batch.draft_index(row, position)]
    stored = batch.target_probs[batch.target_index(row, position)]
    q_row = draft_row(batch, row, position)
    if rule != "gumbel":
        return float(widen(stored[token])), float(q_row[token]), np.nan
    p_row = widen(stored)
    return p_row[token], q_row[token], by_token("gumbel", p_row, q_row)[token]


def survival_in(
    target: Array, draft: Array, num_draft: int, *, rule: str = "token", start: int = 0
) -> list[Any]:
    """Return Pr(tau >= 1), ..., Pr(tau >= g) where target and drafter are Markov chains.

    Args:
        target: [V, V], row s the law after token s; float64 or Fractions.
        draft: [V, V], the drafter's.
        num_draft: g.
        rule: one of the table above. ``block`` and ``greedy-block`` are enumerated over all V^g
            chains of drafts, up to `MOST_PATHS` of them; the others take g products of matrices.
        start: the state that the text starts in.

    >>> toy = np.array([[1, 2], [1, 2]]) / 3, np.array([[2, 1], [2, 1]]) / 3
    >>> [float(round(9 * sum(survival_in(*toy, 2, rule=rule)), 6)) for rule in CHAIN_RULES[:3]]
    [10.0, 11.0, 12.0]
    """
    _check_rule(rule)
    if rule in ("block", "greedy-block"):
        return _enumerated(target, draft, num_draft, rule, start)
    kept = by_token(rule, target, draft)
    reached = kept[start]
    survival = []
    for _ in range(num_draft):
        survival.append(reached.sum())
        reached = reached @ kept
    return survival


def _enumerated(target: Array, draft: Array, num_draft: int, rule: str, start: int) -> list[Any]:
    """Carry Q(x^i), and that times block's w_i or P(x^i), along every chain of drafts."""
    V = len(target)
    if V**num_draft > MOST_PATHS:
        raise ValueError(
            complaint(
                "num_draft",
                "",
                found=f"{num_draft} drafts over {V} tokens",
                wanted=f"at most {MOST_PATHS:,} chains of drafts",
                fix="average survival_along over recorded rounds",
            )
        )
    drafted, weighed = (np.ones(1, dtype=target.dtype) for _ in range(2))
    states = np.array([start])
    survival = []
    for _ in range(num_draft):
        drafted = (drafted[:, None] * draft[states]).ravel()
        weighed = (weighed[:, None] * target[states]).ravel()
        kept = np.minimum(drafted, weighed)
        survival.append(kept.sum())
        if rule == "block":
            weighed = kept
        possible = np.flatnonzero(drafted)
        drafted, weighed, states = drafted[possible], weighed[possible], possible % V
    return survival


def _check_rule(rule: str) -> None:
    if rule not in CHAIN_RULES:
        wanted = f"one of {', '.join(map(repr, CHAIN_RULES))}"
        fix = "see draftproof.efficiency.siblings for rules with several drafts at a node"
        raise ValueError(complaint("rule", "", found=repr(rule), wanted=wanted, fix=fix))
