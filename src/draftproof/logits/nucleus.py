"""The law of a wide row with top-p, without sorting the whole of it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from draftproof.logits.order import Filters
from draftproof.logits.params import SamplingParams
from draftproof.reference import processing

__all__ = ["quick_law"]

Row = npt.NDArray[np.float64]
Set = npt.NDArray[np.bool_]

WIDE = 4096
"""Tokens from which a histogram is cheaper than a sort."""
BINS = 4096


def quick_law(z: Row, params: SamplingParams) -> Row:
    """Return what `draftproof.reference.processing.law` does, for edited logits [V].

    A histogram of the logits, weighted by mass, tells which tokens top-p needs for certain; only
    those of the bin at its edge are sorted. Equal to the definition, but where a filter's edge lies
    within rounding.
    """
    sorts_all = params.top_p < 1 and not params.top_k and params.typical_p == 1
    if len(z) < WIDE or not sorts_all:
        return processing.law(z, params)
    filters = params.recipe.filters
    T = 1.0 if filters == Filters.TEMPERATURE_LAST else params.temperature
    kept = z > -np.inf
    w = processing.weights(z, kept, T)
    if filters == Filters.MIN_P_FIRST and params.min_p:
        kept = processing.min_p(w, params.min_p)
        w = np.where(kept, w, 0)
    kept = _top_p(z, kept, w, params)
    if filters != Filters.MIN_P_FIRST and params.min_p:
        kept = processing.min_p(np.where(kept, w, 0), params.min_p)
    w = processing.weights(z, kept, params.temperature)
    return np.asarray(w / w.sum())


def _top_p(z: Row, kept: Set, w: Row, params: SamplingParams) -> Set:
    """`draftproof.reference.processing.top_p`: tokens of one bin are sorted, the rest are clear."""
    top, bottom = z[kept].max(), z[w > 0].min()
    with np.errstate(over="ignore", divide="ignore"):
        scale = (BINS - 1) / (top - bottom)
    if not 0 < scale < np.inf:  # all alike, or a range that is denormal or beyond float64's
        return processing.top_p(z, kept, w, params.top_p, params.tie_policy.at_mass)
    bins = ((top - np.clip(z, bottom, top)) * scale).astype(np.int64)
    mass = np.bincount(bins, weights=w, minlength=BINS)
    above = mass.cumsum()
    needed = params.top_p * above[-1]
    edge = min(int(np.searchsorted(above, needed)), BINS - 1)
    here = np.logical_and(kept, bins == edge)
    before = above[edge - 1] if edge else 0.0
    part = (needed - before) / mass[edge]
    few = processing.top_p(z, here, w, part, params.tie_policy.at_mass)
    likelier: Set = np.logical_and(kept, bins < edge)
    return likelier | few
