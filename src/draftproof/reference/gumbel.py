"""Verification by common noise: target and drafter run the same race, and mostly agree.

Read it beside Daliri, Musco and Suresh (2024, arXiv 2408.07978). The noise of a position belongs to
the text, not to the round: `draftproof.noise.token_uniforms` keys it by the request's seed and the
absolute position.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from draftproof.reference.chain import Emission, Row
from draftproof.reference.draw import race_winner

__all__ = ["gumbel"]


def gumbel(
    drafts: Sequence[int], p_rows: Sequence[Row], noise: Sequence[npt.NDArray[Any]]
) -> Emission:
    """Run the target's race at each position, and keep the drafts while they win it.

    ::

        y_i = argmin_v E_i(v) / P[i](v) with E_i = -log1p(-noise[i]), for i = 0..g
        tau = the first i with y_i != x_i, or g; emit y_tau

    A drafter that takes argmin_v E_i(v) / Q[i](v) agrees with probability
    sum_j 1 / sum_i max(P(i)/P(j), Q(i)/Q(j)), between (1 - TV) / (1 + TV) and 1 - TV. The text is
    that of the target's own races, whoever drafts.

    Args:
        drafts: g token ids.
        p_rows: g + 1 rows [V].
        noise: g + 1 rows [V] of uniforms; consumed up to the first mismatch.
    """
    tau = 0
    y = race_winner(p_rows[0], noise[0])
    while tau < len(drafts) and y == drafts[tau]:
        tau += 1
        y = race_winner(p_rows[tau], noise[tau])
    return Emission(tau, y)
