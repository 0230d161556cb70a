"""What decided each row, read off a finished call: the same on every backend by construction."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from draftproof.arrays import widen
from draftproof.batch import Batch
from draftproof.reference.chain import residual
from draftproof.reference.rows import draft_row, drafted_entry
from draftproof.types import IntArray, Trace

__all__ = ["make_trace"]


def make_trace(
    batch: Batch,
    rule: str,
    accept: npt.NDArray[np.float64],
    final: npt.NDArray[np.float64],
    num_emitted: IntArray,
) -> Trace:
    """Collect the numbers behind each row's decision; a row that was not decided has none.

    Args:
        accept, final: the uniforms of the call, accept in the batch's layout.
        num_emitted: [B], its outcome.

    One pass over the two rows behind each recovered token.
    """
    size, longest = batch.size, batch.max_draft
    ratios = np.full((size, longest), np.nan)
    accept_uniforms = np.full((size, longest), np.nan)
    final_uniforms = np.full(size, np.nan)
    residual_mass = np.full(size, np.nan)
    expected_acceptance = np.full(size, np.nan)
    greedy = np.zeros(size, dtype=np.bool_) if batch.greedy is None else batch.greedy
    for row in np.flatnonzero((num_emitted > 0) & ~greedy).tolist():
        g, tau = int(batch.num_draft[row]), int(num_emitted[row]) - 1
        final_uniforms[row] = final[row]
        for i in range(g):
            accept_uniforms[row, i] = accept[batch.draft_index(row, i)]
        if rule == "exact-match":
            continue
        for i in range(min(tau + 1, g)):
            token = batch.draft_token_ids[batch.draft_index(row, i)]
            p = float(widen(batch.target_probs[batch.target_index(row, i)][token]))
            q = drafted_entry(batch, row, i)
            ratios[row, i] = p / q if q > 0 else np.inf if p > 0 else np.nan
        if tau < g:
            p_row = widen(batch.target_probs[batch.target_index(row, tau)])
            q_row = draft_row(batch, row, tau)
            residual_mass[row] = residual(p_row, q_row).sum()
            expected_acceptance[row] = np.minimum(p_row, q_row).sum()
    num_accepted = np.maximum(num_emitted - 1, 0)
    return Trace(
        accept_mask=np.arange(longest) < num_accepted[:, None],
        ratios=ratios,
        accept_uniforms=accept_uniforms,
        final_uniforms=final_uniforms,
        residual_mass=residual_mass,
        expected_acceptance=expected_acceptance,
        is_bonus=(num_emitted > 0) & (num_accepted == batch.num_draft),
    )
