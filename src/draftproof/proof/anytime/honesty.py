"""Is the declared q the law that drafts were drawn from? From drafts and declared rows alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.errors import complaint
from draftproof.proof.anytime.account import Account, Tokens
from draftproof.proof.anytime.cells import Cells, Transforms
from draftproof.proof.anytime.suspects import Neighbours, Suspects
from draftproof.proof.anytime.tilts import WITNESSES, Tilts

__all__ = ["Honesty", "judge_drafts"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Honesty:
    """What drafts say of the rows that were declared for them.

    Attributes:
        drafts: how many were looked at.
        decided_after: drafts until the declared rows were proved wrong; None if they were not.
        log_e: the logarithm of the e-value at the end.
        false_alarm: by Ville, the probability that honest drafts ever take it to where it was.
        suspect: what the drafts look like, in a few words; empty if they look honest.
    """

    drafts: int
    decided_after: int | None
    log_e: float
    false_alarm: float
    suspect: str

    @property
    def is_honest(self) -> bool:
        """Whether nothing was found."""
        return self.decided_after is None


def judge_drafts(
    draft_token_ids: Any,
    draft_probs: Any,
    *,
    rows: Any = None,
    calls: Any = None,
    false_alarm: float = 1e-6,
    seed: int = 0,
) -> Honesty:
    """Judge whether drafts were drawn from the rows that were declared for them.

    An e-process: it bets that filters, temperatures, coarse numbers or other requests' rows made
    the drafts, that a usual witness is off, that tokens of one row have another frequency.

    **All drafts must be there, the rejected ones too.** What was logged after a filter that looks
    at q, at p or at the outcome is biased though every draft was honest: logs of accepted drafts,
    drafts dropped for their low q, rounds that ended at a draft's confidence.

    Args:
        draft_token_ids: [N] drafts, in the order in which they were drawn.
        draft_probs: [N, V] the declared rows; or [S, V], with ``rows``.
        rows: [N] which row each draft belongs to, where few rows come again and again: the
            frequencies within each row are looked at, too.
        calls: [N] the batch that each draft was drawn in: names another request's row. The rows
            of one call must have been there before any of its drafts was drawn, so two drafts of
            one request are never of one call.
        false_alarm: probability that honest drafts are ever called dishonest.
        seed: of the noise that breaks ties.

    Raises:
        ValueError: shapes that do not fit, ids out of range, or rows that are no laws.

    >>> rng = np.random.default_rng(0)
    >>> q = rng.dirichlet(np.ones(8), size=2_000)
    >>> honest = [rng.choice(8, p=row) for row in q]
    >>> judge_drafts(honest, q).is_honest, judge_drafts(q.argmax(axis=1), q).suspect
    (True, 'the likeliest token alone')
    """
    ids = np.asarray(draft_token_ids)
    table: Array = np.asarray(draft_probs, dtype=np.float64)
    states = np.arange(len(ids)) if rows is None else np.asarray(rows)
    _check(ids, table, states, rows is None)
    table = table / table.sum(axis=1, keepdims=True)
    keys = np.full(len(ids), -1) if rows is None else states
    account = Account(
        Suspects(),
        Neighbours(table, states, None if calls is None else np.asarray(calls)),
        Cells(),
        Tilts(WITNESSES),
        Transforms(np.random.default_rng(seed)),
        level=1 / false_alarm,
    )
    if rows is None:  # rows that never come again: a table for each chunk keeps memory small
        for start in range(0, len(ids), _CHUNK):
            part = slice(start, start + _CHUNK)
            size = len(ids[part])
            account.observe(Tokens(table[part], np.arange(size), ids[part], keys=keys[part]))
    else:
        account.observe(Tokens(table, states, ids, keys=keys))
    return Honesty(
        account.tokens,
        account.decided_after,
        account.log_e,
        account.false_alarm,
        account.leader if account.decided_after is not None else "",
    )


_CHUNK = 256


def _check(ids: Array, table: Array, states: Array, own: bool) -> None:
    N = len(ids)
    if ids.ndim != 1 or table.ndim != 2 or states.shape != ids.shape or (own and len(table) != N):
        found = f"shapes {ids.shape}, {table.shape} and {states.shape}"
        wanted = "[N], [N, V], or [N], [S, V] and rows [N]"
        raise ValueError(
            complaint("draft_token_ids, draft_probs", "", found=found, wanted=wanted,
                      fix="flatten a batch [B, K], without its padding")
        )  # fmt: skip
    S, V = table.shape
    for name, values, limit in (("draft_token_ids", ids, V), ("rows", states, S)):
        wrong = np.flatnonzero((values < 0) | (values >= limit))
        if len(wrong):
            raise ValueError(
                complaint(name, f"draft {wrong[0]}", found=values[wrong[0]],
                          wanted=f"an integer in 0..{limit - 1}",
                          fix="leave padding out")
            )  # fmt: skip
    sums = table.sum(axis=1)
    wrong = np.flatnonzero(~((table >= 0).all(axis=1) & (np.abs(sums - 1) < 0.02)))
    if len(wrong):
        raise ValueError(
            complaint("draft_probs", f"row {wrong[0]}", found=f"a sum of {sums[wrong[0]]:g}",
                      wanted="numbers >= 0 of sum 1", fix="pass probabilities, not logits")
        )  # fmt: skip
