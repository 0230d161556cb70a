"""The references on one row of a batch, whose length and ids are known to be in range."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.batch import Batch
from draftproof.noise import token_uniforms
from draftproof.reference import chain
from draftproof.reference.block import block
from draftproof.reference.chain import Emission
from draftproof.reference.greedy_block import State, greedy_block, state_after
from draftproof.reference.gumbel import gumbel
from draftproof.reference.rows import draft_row, target_rows

__all__ = ["drafts_of", "emission", "q_rows_of", "state_behind", "state_of"]


def emission(
    batch: Batch, rule: str, accept: npt.NDArray[Any], final: npt.NDArray[Any], row: int
) -> Emission:
    """Run a rule on one row.

    Args:
        accept, final: the uniforms of the call; for ``gumbel`` its seeds and positions, [B].
    """
    drafts, p_rows = drafts_of(batch, row), target_rows(batch, row)
    if batch.greedy is not None and batch.greedy[row]:
        return chain.greedy(drafts, p_rows)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        if rule == "gumbel":
            places = final[row] + np.arange(len(p_rows))
            noise = token_uniforms(np.full_like(places, accept[row], np.uint64), places,
                                   batch.vocabulary)  # fmt: skip
            return gumbel(drafts, p_rows, list(noise))
        coins = [accept[batch.draft_index(row, i)] for i in range(len(drafts))]
        if rule == "exact-match":
            return chain.exact_match(drafts, p_rows, coins, final[row])
        q_rows = q_rows_of(batch, row)
        if rule == "greedy-block":
            return greedy_block(drafts, q_rows, p_rows, coins, final[row], state_of(batch, row))
        rejection = {"token": chain.token, "block": block}[rule]
        return rejection(drafts, q_rows, p_rows, coins, final[row])


def state_behind(batch: Batch, row: int, emitted: Emission) -> State:
    """Return what a row's next round has to be given; a greedy row keeps no state."""
    if batch.greedy is not None and batch.greedy[row]:
        return ()
    laws = q_rows_of(batch, row), target_rows(batch, row)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        return state_after(drafts_of(batch, row), *laws, state_of(batch, row), emitted)


def drafts_of(batch: Batch, row: int) -> list[int]:
    """Return the row's drafted tokens, in the target's ids."""
    g = int(batch.num_draft[row])
    return [int(batch.draft_token_ids[batch.draft_index(row, i)]) for i in range(g)]


def q_rows_of(batch: Batch, row: int) -> list[npt.NDArray[np.float64]]:
    """Return the law of each of the row's drafts, [V]."""
    return [draft_row(batch, row, i) for i in range(int(batch.num_draft[row]))]


def state_of(batch: Batch, row: int) -> State:
    """Return what the row's earlier rounds have left."""
    return () if batch.state is None else batch.state.row(row)
