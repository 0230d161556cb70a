"""Calls on logits: ours, with a case's parameters."""

from __future__ import annotations

import numpy as np

from bench.inputs import Inputs
from draftproof import (
    DraftLogits,
    TreeResult,
    VerifyResult,
    verify_logits,
    verify_tree_logits,
)

__all__ = ["verify_logits_of", "verify_tree_logits_of"]


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
        params=inputs.case.params,
        num_threads=num_threads,
        backend=backend,
    )


def verify_tree_logits_of(
    inputs: Inputs, rng: np.random.Generator, num_threads: int, backend: str = "auto"
) -> TreeResult:
    """Verify a case's trees, whose drafters sampled by its parameters too."""
    assert inputs.tree is not None, "the caller knows"
    return verify_tree_logits(
        inputs.tree,
        inputs.target_probs,
        rng,
        draft_logits=inputs.draft_probs,
        params=inputs.case.params,
        rule=inputs.case.rule,
        num_threads=num_threads,
        backend=backend,
    )
