"""What a verification has to read: the one or two rows behind each last token."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bench.cases import Case
from bench.inputs import CALLS, Inputs, Ints, make_rng

__all__ = ["bytes_read", "num_emitted_of_cycle", "row_addresses"]


def num_emitted_of_cycle(inputs: Inputs) -> list[Ints]:
    """Apply the rule ``u * q(x) < p(x)`` to each call's uniforms: [B] emitted tokens a call."""
    rng = make_rng(inputs.case)
    at = inputs.draft_token_ids[..., None]
    p = np.take_along_axis(inputs.target_probs[:, :-1], at, axis=2)[..., 0]
    q = np.take_along_axis(inputs.draft_probs, at, axis=2)[..., 0]
    result = []
    for _ in range(CALLS):
        accepts = rng.random(p.shape) * q < p
        rng.random((len(p), 1))
        result.append(1 + np.cumprod(accepts, axis=1, dtype=np.int64).sum(axis=1))
    return result


def row_addresses(
    inputs: Inputs, num_emitted: Ints
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Return the addresses of each batch row's last row of p, and of q (0 where none is read)."""
    p, q = inputs.target_probs, inputs.draft_probs
    rows, tau = np.arange(len(num_emitted)), num_emitted - 1
    p_at = p.ctypes.data + rows * p.strides[0] + tau * p.strides[1]
    q_at = q.ctypes.data + rows * q.strides[0] + tau * q.strides[1]
    return p_at.astype(np.uint64), np.where(tau < inputs.case.K, q_at, 0).astype(np.uint64)


def bytes_read(case: Case, num_emitted: list[Ints]) -> int:
    """Return the mean bytes of those rows in a call."""
    rejected = sum(int((emitted <= case.K).sum()) for emitted in num_emitted)
    rows = case.B + rejected / len(num_emitted)
    return round(rows * case.V * np.dtype(case.dtype).itemsize)
