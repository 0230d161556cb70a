"""Bias, penalties and banned ends as a sparse list: these tokens get these logits instead."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.arrays import widen
from draftproof.logits.params import SamplingParams
from draftproof.types import IntArray

__all__ = ["logit_edits"]


def logit_edits(
    stored: npt.NDArray[Any], params: SamplingParams, prompt: IntArray, output: IntArray
) -> tuple[IntArray, npt.NDArray[np.float64]]:
    """Return which tokens' logits change, in ascending order, and what they become.

    The numbers are those of `draftproof.reference.processing.edit`, bit for bit; the cost grows
    with the text and not with the vocabulary.

    Args:
        stored: [V] logits of any dtype.
        prompt, output: the text before this context, drafts included.
    """
    recipe = params.recipe
    seen = _counted(params, prompt, output, recipe.repetition_counts_prompt)
    counted = _counted(params, prompt, output, recipe.additive_counts_prompt)
    repeated = np.unique(seen if params.repetition_penalty != 1 else seen[:0])
    additive = params.presence_penalty or params.frequency_penalty
    taken, counts = np.unique(counted if additive else counted[:0], return_counts=True)
    bias = params.logit_bias or {}
    biased = np.fromiter(bias, np.int64, len(bias))
    banned = params.eos_token_ids if len(output) < params.min_tokens else ()
    ids = np.unique(np.concatenate([biased, repeated, taken, np.array(banned, dtype=np.int64)]))
    z = widen(stored[ids])
    for step in recipe.edits:
        if step == "bias":
            z[np.searchsorted(ids, biased)] += np.fromiter(bias.values(), np.float64, len(bias))
        elif step == "repetition":
            at = np.searchsorted(ids, repeated)
            penalty = params.repetition_penalty
            z[at] = np.where(z[at] > 0, z[at] / penalty, z[at] * penalty)
        else:
            penalties = params.presence_penalty + params.frequency_penalty * counts
            z[np.searchsorted(ids, taken)] -= penalties
    z[np.searchsorted(ids, np.array(banned, dtype=np.int64))] = -np.inf
    return ids, z


def _counted(
    params: SamplingParams, prompt: IntArray, output: IntArray, with_prompt: bool
) -> IntArray:
    """The tokens that a penalty looks at: within its window, and of the prompt where it counts."""
    window = params.penalty_window
    if window is not None:
        prompt, output = (
            prompt[max(0, len(prompt) - max(0, window - len(output))) :],
            output[max(0, len(output) - window) :],
        )
    return np.concatenate([prompt, output]) if with_prompt else output
