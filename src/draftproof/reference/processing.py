"""From logits to the law that a request is sampled from, in float64, one step per function.

z are the logits of one context [V], T the temperature. A token with z = -inf is banned: no step
brings it back, and it belongs to no law.

    edit    z <- z + bias;  z <- z / r or z * r;  z <- z - presence - count * frequency
    ban     z <- -inf  for ends before min_tokens, and off the masks
    law     w = exp((z - max z) / T) on the kept tokens, else 0;  P = w / sum w
    filter  top-k, top-p, min-p and typical shrink the set of kept tokens

The order of the edits, and of temperature and filters, is the request's `Recipe`.

Inputs are trusted: the public functions validate. Sources: top-k: Fan, Lewis and Dauphin (arXiv
1805.04833). top-p: Holtzman et al. (arXiv 1904.09751). typical: Meister et al. (arXiv 2202.00666).
min-p: Nguyen et al. (arXiv 2407.01082). Repetition penalty: Keskar et al. (arXiv 1909.05858).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.logits.order import Filters
from draftproof.logits.params import SamplingParams

__all__ = ["add_bias", "edit", "greedy_law", "law", "penalise", "repeat", "weights"]

Row = npt.NDArray[np.float64]
Set = npt.NDArray[np.bool_]


def add_bias(z: Row, logit_bias: Mapping[int, float]) -> Row:
    """Z + bias."""
    z = z.copy()
    for token, bias in logit_bias.items():
        z[token] += bias
    return z


def repeat(z: Row, tokens: Sequence[int], penalty: float) -> Row:
    """Z / penalty where z > 0, else z * penalty, once for each token that has occurred."""
    z = z.copy()
    for token in set(tokens):
        z[token] = z[token] / penalty if z[token] > 0 else z[token] * penalty
    return z


def penalise(z: Row, tokens: Sequence[int], presence: float, frequency: float) -> Row:
    """Z - presence - frequency * count, for each token that has occurred."""
    z = z.copy()
    for token in set(tokens):
        z[token] -= presence + frequency * tokens.count(token)
    return z


def edit(
    logits: npt.NDArray[Any],
    params: SamplingParams,
    prompt: Sequence[int],
    output: Sequence[int],
    allowed: Set | None = None,
) -> Row:
    """Return the edited logits: bias, penalties, and -inf for what may not come.

    Args:
        logits: [V].
        prompt: the request's prompt.
        output: what follows it, up to this context: emitted tokens, then drafts.
        allowed: [V], the tokens that all masks allow.
    """
    recipe, z = params.recipe, logits.astype(np.float64)
    text = [*prompt, *output]
    beyond = 0 if params.penalty_window is None else max(0, len(text) - params.penalty_window)
    start = len(prompt)
    seen = text[max(beyond, 0 if recipe.repetition_counts_prompt else start) :]
    counted = text[max(beyond, 0 if recipe.additive_counts_prompt else start) :]
    for step in recipe.edits:
        if step == "bias":
            z = add_bias(z, params.logit_bias or {})
        elif step == "repetition" and params.repetition_penalty != 1:
            z = repeat(z, seen, params.repetition_penalty)
        elif step == "additive" and (params.presence_penalty or params.frequency_penalty):
            z = penalise(z, counted, params.presence_penalty, params.frequency_penalty)
    if len(output) < params.min_tokens:
        z[list(params.eos_token_ids)] = -np.inf
    if allowed is not None:
        z[~allowed] = -np.inf
    return z


def weights(z: Row, kept: Set, temperature: float) -> Row:
    """exp((z - max z) / T) on the kept tokens, else 0: a law, unnormalised."""
    with np.errstate(over="ignore"):  # of tokens that a filter has dropped, and at a tiny T
        return np.where(kept, np.exp((z - z[kept].max()) / temperature), 0)


def top_k(z: Row, kept: Set, k: int, keep_ties: bool) -> Set:
    """The k tokens of largest z; with a tie at the k-th the lowest ids, or all."""
    if kept.sum() <= k:
        return kept
    edge: float = np.partition(z[kept], -k)[-k]
    if keep_ties:
        return np.logical_and(kept, z >= edge)
    chosen = np.logical_and(kept, z > edge)
    chosen[np.flatnonzero(kept & (z == edge))[: k - chosen.sum()]] = True
    return chosen


def top_p(z: Row, kept: Set, w: Row, p: float, keep_ties: bool) -> Set:
    """The likeliest tokens, each kept iff the mass before it is less than p."""
    return _nearest(-z, kept, w, p, keep_ties)


def min_p(w: Row, p: float) -> Set:
    """The tokens at least p times as likely as the likeliest."""
    edge: float = p * w.max()
    return np.logical_and(w > 0, w >= edge)


def typical(kept: Set, w: Row, p: float, keep_ties: bool) -> Set:
    """The tokens whose surprise -log P is nearest to the entropy, until they have mass p."""
    law = w / w.sum()
    with np.errstate(divide="ignore"):
        surprise = -np.log(law)
    entropy = np.sum(law[law > 0] * surprise[law > 0])
    return _nearest(np.abs(surprise - entropy), kept & (law > 0), w, p, keep_ties)


def _nearest(distance: Row, kept: Set, w: Row, p: float, keep_ties: bool) -> Set:
    """The kept tokens in order of distance, then id, each iff the mass before it is less than p."""
    tokens = np.flatnonzero(kept)
    tokens = tokens[np.argsort(distance[tokens], kind="stable")]
    mass = np.cumsum(w[tokens])
    before = np.concatenate([[0.0], mass[:-1]])
    needed = before < p * mass[-1]
    chosen = np.zeros_like(kept)
    chosen[tokens[needed]] = True
    if keep_ties:
        chosen |= kept & (distance == distance[tokens[needed][-1]])
    return chosen


def law(z: Row, params: SamplingParams) -> Row:
    """Return the law of edited logits [V] at a temperature > 0.

    Exact up to float64 rounding; a token within rounding of a filter's edge may fall on either
    side. At least one token has z > -inf, and none is NaN or +inf.
    """
    kept, filters = z > -np.inf, params.recipe.filters
    T = 1.0 if filters == Filters.TEMPERATURE_LAST else params.temperature
    for step in _STEPS[filters]:
        kept = step(z, kept, T, params)
    w = weights(z, kept, params.temperature)
    return np.asarray(w / w.sum())


def _top_k(z: Row, kept: Set, T: float, params: SamplingParams) -> Set:
    return top_k(z, kept, params.top_k, params.tie_policy.at_top_k) if params.top_k else kept


def _top_p(z: Row, kept: Set, T: float, params: SamplingParams) -> Set:
    if params.top_p == 1:
        return kept
    return top_p(z, kept, weights(z, kept, T), params.top_p, params.tie_policy.at_mass)


def _both(z: Row, kept: Set, T: float, params: SamplingParams) -> Set:
    return np.logical_and(_top_k(z, kept, T, params), _top_p(z, kept, T, params))


def _min_p(z: Row, kept: Set, T: float, params: SamplingParams) -> Set:
    return min_p(weights(z, kept, T), params.min_p) if params.min_p else kept


def _typical(z: Row, kept: Set, T: float, params: SamplingParams) -> Set:
    if params.typical_p == 1:
        return kept
    return typical(kept, weights(z, kept, T), params.typical_p, params.tie_policy.at_mass)


_STEPS = {
    Filters.SEQUENTIAL: (_top_k, _top_p, _min_p, _typical),
    Filters.MIN_P_FIRST: (_min_p, _top_k, _top_p),
    Filters.JOINT: (_both, _min_p),
    Filters.TEMPERATURE_LAST: (_top_k, _typical, _top_p, _min_p),
}


def greedy_law(z: Row) -> Row:
    """The point mass on the lowest id of the largest z; NaN never wins."""
    point = np.zeros(len(z))
    point[int(np.argmax(np.where(np.isnan(z), -np.inf, z)))] = 1
    return point
