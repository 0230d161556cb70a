"""Block verification of one row's chain of drafts: the best rule for a single chain.

Read it beside Sun et al. (ICLR 2025, arXiv 2403.10444), algorithm 2. Names are those of
`draftproof.reference.chain`, counted as in the paper: i drafts have been kept after step i, so w_i
belongs to the drafts x_1..x_i, and the next token's laws are P[i] and Q[i].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from draftproof.reference.chain import Emission, Row, recover, residual
from draftproof.reference.draw import inverse_cdf, mass

__all__ = ["block", "keeps", "weight_after", "weights"]


def weight_after(w: Any, p: Any, q: Any) -> Any:
    """w_i = min(1, w_{i-1} p/q): the probability that at least i drafts are kept.

    A draft with p = 0 is never kept, not even if q = 0 too.
    """
    scaled = w * p
    if scaled == 0:
        return scaled
    return scaled / q if scaled < q else 1


def weights(drafts: Sequence[int], q_rows: Sequence[Row], p_rows: Sequence[Row]) -> list[Any]:
    """Return w_0 = 1, w_1, ..., w_g."""
    w: list[Any] = [1]
    for i, x in enumerate(drafts):
        w.append(weight_after(w[i], p_rows[i][x], q_rows[i][x]))
    return w


def keeps(w: Any, z: Any, u: Any) -> bool:
    """Keep i < g drafts with probability h_i = Z_i / (Z_i + 1 - w_i), where 0/0 is 1.

    No division, and no rounding where w_i = 1. Behind a draft with p = 0 nothing is kept, whatever
    the laws there say.

    Args:
        w: w_i.
        z: Z_i, the mass of the residual after i drafts.
        u: the uniform of draft i.
    """
    return bool(w >= 1 or (w > 0 and u * (z + (1 - w)) < z))


def block(
    drafts: Sequence[int],
    q_rows: Sequence[Row],
    p_rows: Sequence[Row],
    accept: Sequence[Any],
    final: Any,
) -> Emission:
    """Keep the longest block of drafts whose joint ratio passes its test.

    ::

        w_0 = 1, w_i = min(1, w_{i-1} P[i-1](x_i) / Q[i-1](x_i))
        h_i = Z_i / (Z_i + 1 - w_i) for 0 < i < g, with Z_i the mass of (w_i P[i] - Q[i])+
        h_g = w_g
        tau = the largest i with u_i < h_i, or 0: a failure does not stop the scan
        last token ~ (w_tau P[tau] - Q[tau])+ if tau < g, else P[g]

    Given the drafts, tau >= i has probability w_i, so E[tau] is the sum of the E[w_i].

    Args:
        drafts: g token ids.
        q_rows: g rows [V]; a deterministic drafter's row is the point mass on its token.
        p_rows: g + 1 rows [V].
        accept: g uniforms, one for each draft; consumed from the last down to the one kept.
        final: the uniform of the last token.
    """
    g, w = len(drafts), weights(drafts, q_rows, p_rows)
    if g == 0 or accept[g - 1] < w[g]:
        return Emission(g, inverse_cdf(p_rows[g], final))
    tau = g - 1
    left = residual(w[tau] * p_rows[tau], q_rows[tau])
    while tau > 0 and not keeps(w[tau], mass(left), accept[tau - 1]):
        tau -= 1
        left = residual(w[tau] * p_rows[tau], q_rows[tau])
    return recover(tau, left, p_rows[tau], final)
