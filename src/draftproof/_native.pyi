"""The compiled kernels; see ``kernels/csrc/binding.cpp``. Arrays are trusted, never copied."""

from collections.abc import Callable
from typing import Any

import numpy.typing as npt

from draftproof.trees.result import TreeResult
from draftproof.types import VerifyResult

Array = npt.NDArray[Any]
LogitSide = tuple[tuple[Array, ...] | None, tuple[Array, Array, Array] | None, Array | None]
"""(temperature, top_p, min_p, typical_p, top_k, filters, ties); (edit_from, edit_ids, edit_logits);
masks."""
ContextSide = tuple[tuple[Array, ...], tuple[Array, ...] | None, tuple[Any, Any, Any]]
"""(temperature, ..), as above; (repetition, presence, frequency, window, min_tokens, prompt_sizes,
bias_comes_last, repetition_sees_prompt, additive_sees_prompt, text_from, texts, bias_from,
bias_ids, biases, ends_from, ends); the batch's mask, and by request those that allow and ban."""

def set_surroundings(
    result_type: type,
    generator_type: type,
    mass_tolerance: Callable[[Any, int], float],
    available_threads: Callable[[], int],
    rules: tuple[str, ...],
    levels: tuple[str, ...],
    /,
) -> None: ...
def verify_plain(
    draft_token_ids: Any,
    draft_probs: Any,
    target_probs: Any,
    num_draft: Any,
    rng: Any,
    uniforms: Any,
    seeds: Any,
    positions: Any,
    rule: Any,
    greedy: Any,
    draft_to_target: Any,
    state: Any,
    validate: Any,
    on_bad_row: Any,
    backend: Any,
    num_threads: Any,
    return_trace: Any,
    /,
) -> VerifyResult | tuple[Array, Array] | None: ...
def verify_chain(
    draft_token_ids: Array,
    drafter_token_ids: Array,
    draft_probs: Array | None,
    sparse_ids: Array | None,
    column_of: Array | None,
    target_probs: Array,
    num_draft: Array,
    cu_num_draft: Array | None,
    greedy: Array | None,
    accept: Array,
    final: Array,
    max_draft: int,
    drafter_vocabulary: int,
    rule: int,
    validate: int,
    target_tolerance: float,
    draft_tolerance: float,
    most_threads: int | None,
    available_threads: Callable[[], int],
    token_ids: Array,
    num_emitted: Array,
    status: Array,
    remaining: Array | None,
    factor: Array | None,
    remaining_after: Array | None,
    factor_after: Array | None,
    /,
) -> None: ...
def verify_logits(
    draft_token_ids: Array,
    drafter_token_ids: Array,
    draft_laws: Array | None,
    sparse_ids: Array | None,
    column_of: Array | None,
    target_logits: Array,
    target: LogitSide,
    draft: LogitSide | None,
    num_draft: Array,
    cu_num_draft: Array | None,
    greedy: Array | None,
    accept: Array,
    final: Array,
    max_draft: int,
    drafter_vocabulary: int,
    rule: int,
    validate: int,
    draft_tolerance: float,
    most_threads: int | None,
    available_threads: Callable[[], int],
    token_ids: Array,
    num_emitted: Array,
    status: Array,
    /,
) -> None: ...
def list_logprobs(
    target_logits: Array,
    target: LogitSide,
    num_draft: Array,
    cu_num_draft: Array | None,
    greedy: Array | None,
    max_draft: int,
    token_ids: Array,
    num_emitted: Array,
    raw: bool,
    most_threads: int | None,
    available_threads: Callable[[], int],
    token_logprobs: Array,
    token_ranks: Array,
    top_token_ids: Array,
    top_logprobs: Array,
    is_written: Array,
    /,
) -> None: ...
def set_tree_surroundings(
    result_type: type,
    generator_type: type,
    mass_tolerance: Callable[[Any, int], float],
    available_threads: Callable[[], int],
    rules: tuple[str, ...],
    levels: tuple[str, ...],
    tree_type: type,
    draws: tuple[tuple[str, ...], ...],
    distinct_draws: tuple[str, ...],
    /,
) -> None: ...
def verify_logits_plain(
    draft_token_ids: Any,
    draft_logits: Any,
    target_logits: Any,
    num_draft: Any,
    rng: Any,
    params: Any,
    rule: Any,
    validate: Any,
    on_bad_row: Any,
    backend: Any,
    num_threads: Any,
    plain_side: Callable[..., Any],
    /,
) -> VerifyResult | tuple[Array, Array] | None: ...
def verify_tree_plain(
    tree: Any,
    target_probs: Any,
    rng: Any,
    uniforms: Any,
    seeds: Any,
    positions: Any,
    rule: Any,
    greedy: Any,
    validate: Any,
    on_bad_row: Any,
    backend: Any,
    num_threads: Any,
    /,
) -> TreeResult | tuple[Array, Array] | None: ...
def forest_depth(num_nodes: Array, parents: Array, /) -> int: ...
def verify_forest(
    num_nodes: Array,
    token_ids: Array,
    parents: Array,
    draw_order: Array | None,
    draft_probs: Array | None,
    sparse_ids: Array | None,
    target_probs: Array,
    greedy: Array | None,
    accept: Array,
    final: Array,
    rule: int,
    validate: int,
    siblings_differ: bool,
    target_tolerance: float,
    draft_tolerance: float,
    most_threads: int | None,
    available_threads: Callable[[], int],
    path: Array,
    emitted: Array,
    num_emitted: Array,
    status: Array,
    /,
) -> None: ...
def verify_logit_forest(
    num_nodes: Array,
    token_ids: Array,
    parents: Array,
    draw_order: Array | None,
    draft_laws: Array | None,
    sparse_ids: Array | None,
    target_logits: Array,
    target: ContextSide,
    draft: ContextSide | None,
    greedy: Array | None,
    accept: Array,
    final: Array,
    rule: int,
    validate: int,
    siblings_differ: bool,
    target_tolerance: float,
    draft_tolerance: float,
    most_threads: int | None,
    available_threads: Callable[[], int],
    path: Array,
    emitted: Array,
    num_emitted: Array,
    status: Array,
    /,
) -> None: ...
def fill_uniforms(
    seeds: Array, positions: Array, stream: int, index: Array, out: Array, /
) -> None: ...
def fill_token_uniforms(seeds: Array, positions: Array, stream: int, out: Array, /) -> None: ...
def philox4x32(counter: list[int], key: list[int], /) -> list[int]: ...
def instruction_set() -> str: ...
