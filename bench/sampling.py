"""Calls on logits: ours, with a case's parameters."""

from __future__ import annotations

from functools import cache

import numpy as np

from bench.inputs import Inputs
from draftproof import DraftLogits, SamplingParams, VerifyResult, verify_logits

__all__ = ["verify_logits_of"]


def verify_logits_of(
    inputs: Inputs, rng: np.random.Generator, num_threads: int, backend: str = "auto"
) -> VerifyResult:
    """Verify a case's drafts, with its parameters for all requests."""
    return verify_logits(
        inputs.draft_token_ids,
        DraftLogits(inputs.draft_probs),
        inputs.target_probs,
        None,
        rng,
        params=_params(inputs.case.sampling),
        num_threads=num_threads,
        backend=backend,
    )


@cache
def _params(sampling: tuple[str, float] | None) -> SamplingParams:
    """As a user has them: made once."""
    if sampling is None:
        return SamplingParams()
    name, value = sampling
    return SamplingParams(top_k=int(value)) if name == "top_k" else SamplingParams(top_p=value)
