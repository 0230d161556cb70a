"""What each rule reads of a row, in order: the numbers that ``validate="touched"`` judges.

============  ====================================================================================
Rule          Reads
============  ====================================================================================
token         uniform, p and q at each draft up to the first rejection; the last token's uniform;
              the row of p, and after a rejection of q, that it is drawn from
block         uniform, p and q at every draft; the last token's uniform; then, if all drafts are
              kept, the bonus row of p; else the rows of p and q from the last draft's position
              down to that of the last token, but none behind a draft with p = 0
greedy-block  the same, and before those rows the rows of p and q at each position that the state
              discounts, from the first one up, but none behind a draft with p = 0
exact-match   the uniform and the row of p at each position up to the first mismatch
gumbel        the row of p at each position up to the first mismatch
============  ====================================================================================
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from draftproof.batch import Batch
from draftproof.reference.block import weights
from draftproof.reference.emission import drafts_of, q_rows_of, state_of
from draftproof.reference.greedy_block import along
from draftproof.reference.rows import target_rows

__all__ = ["Part", "Read", "reads"]


class Part(enum.Enum):
    """What a rule reads at a position."""

    UNIFORM = enum.auto()
    ENTRIES = enum.auto()
    TARGET_LAW = enum.auto()
    DRAFT_LAW = enum.auto()
    FINAL_UNIFORM = enum.auto()


class Read(NamedTuple):
    """One thing that a rule reads; ``ENTRIES`` are p and q at the drafted token."""

    part: Part
    position: int


def reads(batch: Batch, rule: str, row: int, num_accepted: int) -> Iterator[Read]:
    """Yield what a rule reads of a sampled row to keep so many drafts."""
    g, tau = int(batch.num_draft[row]), num_accepted
    if rule in ("exact-match", "gumbel"):
        for i in range(tau + 1):
            if rule == "exact-match":
                yield Read(Part.UNIFORM if i < g else Part.FINAL_UNIFORM, i)
            yield Read(Part.TARGET_LAW, i)
        return
    for i in range(min(tau + 1, g) if rule == "token" else g):
        yield Read(Part.UNIFORM, i)
        yield Read(Part.ENTRIES, i)
    yield Read(Part.FINAL_UNIFORM, tau)
    for i in _law_positions(batch, rule, row, tau):
        yield Read(Part.TARGET_LAW, i)
        if i < g:
            yield Read(Part.DRAFT_LAW, i)


def _law_positions(batch: Batch, rule: str, row: int, tau: int) -> Iterator[int]:
    g = int(batch.num_draft[row])
    if rule == "token":
        yield tau
        return
    along_drafts = drafts_of(batch, row), q_rows_of(batch, row), target_rows(batch, row)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        if rule == "block":
            ratios = weights(*along_drafts)
        else:
            _, ratios, states = along(*along_drafts, state_of(batch, row))
            yield from (i for i in range(g) if states[i] and ratios[i] != 0)
    if tau == g:
        yield g
    else:
        yield from (i for i in reversed(range(tau, g)) if ratios[i] > 0)
