"""The compiled kernels; see ``kernels/csrc/binding.cpp``. Arrays are trusted, never copied."""

from typing_extensions import Buffer

def verify_chain(
    draft_token_ids: Buffer,
    drafter_token_ids: Buffer,
    draft_probs: Buffer | None,
    sparse_ids: Buffer | None,
    column_of: Buffer | None,
    target_probs: Buffer,
    num_draft: Buffer,
    cu_num_draft: Buffer | None,
    greedy: Buffer | None,
    accept: Buffer,
    final: Buffer,
    max_draft: int,
    drafter_vocabulary: int,
    exact_match: bool,
    validate: int,
    target_tolerance: float,
    draft_tolerance: float,
    num_threads: int,
    token_ids: Buffer,
    num_emitted: Buffer,
    status: Buffer,
    /,
) -> None: ...
def fill_uniforms(
    seeds: Buffer, positions: Buffer, stream: int, index: Buffer, out: Buffer, /
) -> None: ...
def fill_token_uniforms(seeds: Buffer, positions: Buffer, stream: int, out: Buffer, /) -> None: ...
def philox4x32(counter: list[int], key: list[int], /) -> list[int]: ...
def instruction_set() -> str: ...
