"""Verification of trees from logits in C++: the door to ``csrc/logit_tree.hpp``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof import _native
from draftproof.kernels.logits_short import columns
from draftproof.kernels.noise_native import uniform
from draftproof.kernels.threads import available_threads
from draftproof.kernels.tree_native import DISTINCT, RULES, empty_results
from draftproof.logits.rows import LogitRows
from draftproof.trees.batch import TreeBatch
from draftproof.trees.rules import TreeRule
from draftproof.types import IntArray, SparseProbs
from draftproof.validation import VALIDATE, mass_tolerance

__all__ = ["uniform", "verify_forest"]


def verify_forest(
    batch: TreeBatch,
    rule: TreeRule,
    accept: npt.NDArray[np.float64],
    final: npt.NDArray[np.float64],
    *,
    validate: str,
    num_threads: int | None = None,
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Verify a batch; arguments and results are `draftproof.reference.forest.verify_forest`'s.

    Makes the laws at the nodes of each row's path alone (traversal: at every node), and allocates
    the result and, per thread, a law in float64 for each side; traversal one for each node.
    """
    tree = batch.tree
    target: Any = batch.nodes.target_probs
    laws: Any = tree.draft_probs if rule.needs_draft_probs else None
    from_logits, sparse_ids, stored = isinstance(laws, LogitRows), None, laws
    draft_tolerance = mass_tolerance(np.dtype(np.float64), batch.nodes.vocabulary)
    if from_logits:
        stored = laws.logits
    elif isinstance(laws, SparseProbs):
        sparse_ids, stored = np.ascontiguousarray(laws.ids), laws.probs
    if laws is not None and not from_logits:
        draft_tolerance = mass_tolerance(stored.dtype, stored.shape[2])
    results = empty_results(tree)
    _native.verify_logit_forest(
        tree.num_nodes,
        tree.token_ids,
        tree.parents,
        tree.draw_order,
        stored,
        sparse_ids,
        target.logits,
        _side(target),
        _side(laws) if from_logits else None,
        batch.nodes.greedy,
        np.ascontiguousarray(accept, np.float64),
        np.ascontiguousarray(final, np.float64),
        RULES.index(rule.name),
        VALIDATE.index(validate),
        tree.draws in DISTINCT,
        mass_tolerance(target.dtype, batch.nodes.vocabulary),
        draft_tolerance,
        num_threads,
        available_threads,
        *results,
    )
    return results


def _side(rows: LogitRows) -> _native.ContextSide:
    """What becomes of one side's logits."""
    params, requests = rows.params, rows.params.requests
    own: tuple[Any, Any] = None, None
    if params.any_masks:
        own = (
            [request.allowed_tokens for request in requests],
            [request.banned_tokens for request in requests],
        )
    edits = _edits(rows) if params.any_edits else None
    return tuple(map(np.ascontiguousarray, columns(params))), edits, (rows.token_mask, *own)


def _edits(rows: LogitRows) -> tuple[npt.NDArray[Any], ...]:
    """By request: what changes single logits, and the text that penalties look back at."""
    requests, texts = rows.params.requests, rows.texts
    numbers = [
        (request.repetition_penalty, request.presence_penalty, request.frequency_penalty)
        for request in requests
    ]
    counts = [
        (-1 if request.penalty_window is None else request.penalty_window, request.min_tokens)
        for request in requests
    ]
    recipes = [request.recipe for request in requests]
    biases = [sorted((request.logit_bias or {}).items()) for request in requests]
    joined = [np.concatenate(text) for text in zip(texts.prompts, texts.outputs, strict=True)]
    text_from, text = _in_a_row(joined)
    bias_from, bias_ids = _in_a_row([[token for token, _ in bias] for bias in biases])
    ends_from, ends = _in_a_row([request.eos_token_ids for request in requests])
    return (
        *np.array(numbers, dtype=np.float64).reshape(-1, 3).T.copy(),
        *np.array(counts, dtype=np.int64).reshape(-1, 2).T.copy(),
        np.array([len(prompt) for prompt in texts.prompts], dtype=np.int64),
        np.array([recipe.edits[-1] == "bias" for recipe in recipes], dtype=np.bool_),
        np.array([recipe.repetition_counts_prompt for recipe in recipes], dtype=np.bool_),
        np.array([recipe.additive_counts_prompt for recipe in recipes], dtype=np.bool_),
        text_from,
        text,
        bias_from,
        bias_ids,
        np.array([number for bias in biases for _, number in bias], dtype=np.float64),
        ends_from,
        ends,
    )


def _in_a_row(lists: Sequence[Sequence[int] | IntArray]) -> tuple[IntArray, IntArray]:
    """Where each list begins [n+1], and all of them one behind the other."""
    begins = np.zeros(len(lists) + 1, dtype=np.int64)
    np.cumsum([len(one) for one in lists], out=begins[1:])
    parts = [np.asarray(one, dtype=np.int64) for one in lists]
    return begins, np.concatenate([np.zeros(0, dtype=np.int64), *parts])
