"""Verification of one row's chain of drafts: token-level speculative sampling, exact match, greedy.

Read it beside Leviathan, Kalman and Matias (ICML 2023, arXiv 2211.17192), algorithm 1, and Chen et
al. (2023, arXiv 2302.01318), algorithm 2. P[i] is the target law at draft position i, Q[i] the law
the draft x[i] was sampled from, g the number of drafts; P has g + 1 rows. Rows past the last one
that a rule needs are not read.

Inputs are trusted: the public functions validate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from draftproof.reference.draw import best_token, inverse_cdf, mass

__all__ = ["Emission", "accepts", "exact_match", "greedy", "recover", "residual", "token"]

Row = npt.NDArray[Any]


class Emission(NamedTuple):
    """What one row emits: its first ``num_accepted`` drafts, then ``last_token``.

    ``last_token`` is None if the row cannot be decided. ``zero_residual`` says that a rejection
    met a residual without mass, so that the last token came from p.
    """

    num_accepted: int
    last_token: int | None
    zero_residual: bool = False


def accepts(p: Any, q: Any, u: Any) -> bool:
    """Accept with probability min(1, p/q): p > 0 and (p >= q or u * q < p).

    No division, and no rounding where p = q. A draft with p = 0 is never accepted, not even at
    u = 0.
    """
    return bool(p > 0 and (p >= q or u * q < p))


def residual(p: Row, q: Row) -> Row:
    """max(0, p - q): the law of the token after a rejection, unnormalised."""
    difference = p - q
    return np.where(difference > 0, difference, 0)


def recover(num_accepted: int, weights: Row, p: Row, u: Any) -> Emission:
    """Draw the token after a rejection from the residual's weights, or from p if they are all 0."""
    if mass(weights) > 0:
        return Emission(num_accepted, inverse_cdf(weights, u))
    return Emission(num_accepted, inverse_cdf(p, u), zero_residual=True)


def token(
    drafts: Sequence[int],
    q_rows: Sequence[Row],
    p_rows: Sequence[Row],
    accept: Sequence[Any],
    final: Any,
) -> Emission:
    """Token-level speculative sampling.

    For i = 0..g-1: stop at the first draft not accepted, and draw from the residual there.
    If all are accepted, draw the bonus from P[g].

    Args:
        drafts: g token ids.
        q_rows: g rows [V]; a deterministic drafter's row is the point mass on its token.
        p_rows: g + 1 rows [V].
        accept: g uniforms, one for each draft; consumed up to the first rejection.
        final: the uniform of the last token.
    """
    for i, x in enumerate(drafts):
        if not accepts(p_rows[i][x], q_rows[i][x], accept[i]):
            return recover(i, residual(p_rows[i], q_rows[i]), p_rows[i], final)
    return Emission(len(drafts), inverse_cdf(p_rows[len(drafts)], final))


def exact_match(
    drafts: Sequence[int], p_rows: Sequence[Row], accept: Sequence[Any], final: Any
) -> Emission:
    """Sample the target and keep the drafts while they match: lossless for any drafter.

    For i = 0..g-1 draw y ~ P[i]; stop at the first y that differs from the draft, and emit that y.
    If all match, draw the bonus from P[g].

    Args:
        drafts: g token ids.
        p_rows: g + 1 rows [V].
        accept: g uniforms, the draws of y; consumed up to the first mismatch.
        final: the uniform of the bonus.
    """
    for i, x in enumerate(drafts):
        y = inverse_cdf(p_rows[i], accept[i])
        if y != x:
            return Emission(i, y)
    return Emission(len(drafts), inverse_cdf(p_rows[len(drafts)], final))


def greedy(drafts: Sequence[int], p_rows: Sequence[Row]) -> Emission:
    """Temperature 0: keep the drafts while they equal the argmax, then emit the argmax.

    Equal to plain greedy decoding on the same rows, bit for bit; ties go to the lowest id.
    """
    for i, x in enumerate(drafts):
        best = best_token(p_rows[i])
        if best != x:
            return Emission(i, best)
    return Emission(len(drafts), best_token(p_rows[len(drafts)]))
