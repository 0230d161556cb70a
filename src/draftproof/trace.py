"""What decided each row, read off a finished call: the same on every backend by construction."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from draftproof.arrays import widen
from draftproof.batch import Batch
from draftproof.reference.block import weights
from draftproof.reference.chain import residual
from draftproof.reference.emission import drafts_of, q_rows_of, state_of
from draftproof.reference.greedy_block import along
from draftproof.reference.rows import draft_row, drafted_entry, target_rows
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

    One pass over the two rows behind each recovered token; for ``block`` and ``greedy-block`` over
    all rows up to them.
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
        if rule == "gumbel":
            continue
        final_uniforms[row] = final[row]
        for i in range(g):
            accept_uniforms[row, i] = accept[batch.draft_index(row, i)]
        if rule == "exact-match":
            continue
        for i in range(min(tau + 1, g) if rule == "token" else g):
            token = batch.draft_token_ids[batch.draft_index(row, i)]
            p = float(widen(batch.target_probs[batch.target_index(row, i)][token]))
            q = drafted_entry(batch, row, i)
            ratios[row, i] = p / q if q > 0 else np.inf if p > 0 else np.nan
        if tau < g:
            p_row = widen(batch.target_probs[batch.target_index(row, tau)])
            q_row = draft_row(batch, row, tau)
            ratio, left = _weighed(batch, rule, row, tau, p_row)
            residual_mass[row] = residual(ratio * left, q_row).sum()
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


def _weighed(
    batch: Batch, rule: str, row: int, tau: int, p_row: npt.NDArray[np.float64]
) -> tuple[float, npt.NDArray[np.float64]]:
    """Return the ratio and the target's law that the residual after tau drafts is made of."""
    if rule == "token":
        return 1, p_row
    drafts, q_rows, p_rows = drafts_of(batch, row), q_rows_of(batch, row), target_rows(batch, row)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        if rule == "block":
            return weights(drafts[:tau], q_rows, p_rows)[tau], p_row
        rows, ratios, _ = along(drafts[: tau + 1], q_rows, p_rows, state_of(batch, row))
        return ratios[tau], rows[tau]
