"""The reference over a batch, row by row: the signature of a kernel, the speed of a definition."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from draftproof.batch import Batch
from draftproof.noise import uniform
from draftproof.reference.emission import emission, state_behind, state_of
from draftproof.state import GreedyBlockState
from draftproof.types import IntArray, RowStatus
from draftproof.validation import first_fault

__all__ = ["uniform", "verify_chain"]


def verify_chain(
    batch: Batch,
    rule: str,
    accept: npt.NDArray[np.float64],
    final: npt.NDArray[np.float64],
    *,
    validate: str,
    num_threads: int | None = None,
) -> tuple[IntArray, IntArray, IntArray] | tuple[IntArray, IntArray, IntArray, GreedyBlockState]:
    """Verify each row with its rule's reference.

    Args:
        batch: the rows, whose numbers are judged here.
        rule: one of `draftproof.rules.RULES`.
        accept, final: uniforms, accept in the batch's layout; for ``gumbel`` seeds and positions,
            [B], of which it makes its own.
        validate: see `draftproof.validation`.
        num_threads: for kernels that have threads.

    Returns:
        token_ids [B, K+1], num_emitted [B] and status [B], as in `VerifyResult`, and fourth what
        ``greedy-block`` hands to the next round; a row that was not decided keeps its state.
    """
    token_ids = np.full((batch.size, batch.max_draft + 1), -1, dtype=np.int64)
    num_emitted = np.zeros(batch.size, dtype=np.int64)
    status = np.zeros(batch.size, dtype=np.int64)
    states = [state_of(batch, row) for row in range(batch.size)]
    for row in range(batch.size):
        fault = first_fault(batch, rule, accept, final, row, validate)
        if fault is not None:
            status[row] = fault.status
            continue
        emitted = emission(batch, rule, accept, final, row)
        tau, last_token, zero_residual = emitted
        for i in range(tau):
            token_ids[row, i] = batch.draft_token_ids[batch.draft_index(row, i)]
        assert last_token is not None, "a row without fault can be decided"
        token_ids[row, tau] = last_token
        num_emitted[row] = tau + 1
        status[row] = RowStatus.ZERO_RESIDUAL if zero_residual else RowStatus.OK
        if rule == "greedy-block":
            states[row] = state_behind(batch, row, emitted)
    if rule == "greedy-block":
        return token_ids, num_emitted, status, GreedyBlockState.of_rows(states)
    return token_ids, num_emitted, status
