"""vLLM on a CPU: its rejection sampling, on ragged batches packed as its engine packs them.

Its kernels are those that its CPU worker registers: without a Triton back end for CPUs, C++ ones.

Its own draws: PyTorch's global generator, seeded for each call. Requests have no seeds of their
own, every temperature is 1, and there are no filters, penalties or masks.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from draftproof.integrations.public.tensors import Array, logits, seed_torch

__all__ = [
    "pack_drafts",
    "prepare",
    "rejection_sampler",
    "sampling_metadata",
    "verify",
    "verify_sampler",
]


def verify(
    draft: Array, q: Array, p: Array, num_draft: Array, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Call ``rejection_sample``, with bonus tokens that PyTorch draws."""
    import torch

    prepare()
    from vllm.v1.sample.rejection_sampler import rejection_sample

    seed_torch(rng)
    B, K = draft.shape
    rows = np.nonzero(np.arange(K) < num_draft[:, None])
    bonus = torch.multinomial(_float(p[np.arange(B), num_draft]), 1) if B else None
    if len(rows[0]) == 0:
        return _read(np.empty((B, 0)) if bonus is None else bonus.numpy(), draft)
    tokens = rejection_sample(
        torch.from_numpy(draft[rows].astype(np.int32)),
        num_draft.tolist(),
        int(num_draft.max()),
        torch.from_numpy(num_draft.cumsum().astype(np.int32)),
        _float(q[rows]),
        logits(p[rows]),
        bonus,
        sampling_metadata(B),
    )
    return _read(tokens.numpy(), draft)


def verify_sampler(
    draft: Array, q: Array, p: Array, num_draft: Array, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Call the forward of ``RejectionSampler``, which draws its bonus tokens by itself."""
    prepare()
    seed_torch(rng)
    if len(num_draft) == 0:
        return _read(np.empty((0, 0)), draft)
    drafted = np.arange(draft.shape[1]) < num_draft[:, None]
    read = np.arange(p.shape[1]) <= num_draft[:, None]
    output = rejection_sampler()(
        pack_drafts(draft, num_draft),
        _float(q[drafted]),
        logits(p[read]),
        sampling_metadata(len(num_draft)),
    )
    return _read(output.sampled_token_ids.numpy(), draft)


@cache
def prepare() -> None:
    """Do what a CPU worker does before it samples."""
    from vllm.platforms import current_platform

    current_platform.import_kernels()
    current_platform.register_triton_kernel_overrides()


@cache
def rejection_sampler() -> Any:
    """Return the module whose forward draws its bonus tokens by itself."""
    from vllm.v1.sample.rejection_sampler import RejectionSampler
    from vllm.v1.sample.sampler import Sampler

    return RejectionSampler(Sampler())


def pack_drafts(draft: Array, num_draft: Array) -> Any:
    """Return the metadata of drafts [B, K]; rows of logits lie packed, B's bonus rows with them."""
    import torch
    from vllm.v1.spec_decode.metadata import SpecDecodeMetadata

    drafted = np.arange(draft.shape[1]) < num_draft[:, None]
    read = np.arange(draft.shape[1] + 1) <= num_draft[:, None]
    places = np.cumsum(read.ravel()).reshape(read.shape) - 1
    made = np.cumsum(num_draft + 1)

    def ints(values: Array) -> Any:
        return torch.from_numpy(np.ascontiguousarray(values, dtype=np.int32))

    return SpecDecodeMetadata(
        draft_token_ids=ints(draft[drafted]),
        num_draft_tokens=num_draft.tolist(),
        cu_num_draft_tokens=ints(num_draft.cumsum()),
        cu_num_sampled_tokens=ints(made),
        target_logits_indices=ints(places[:, :-1][drafted]),
        bonus_logits_indices=ints(made - 1),
        logits_indices=ints(np.arange(made[-1])),
    )


def sampling_metadata(B: int) -> Any:
    """Return that of B requests at temperature 1 without seeds, filters, penalties and masks."""
    import torch
    from vllm.v1.sample.logits_processor import LogitsProcessors
    from vllm.v1.sample.metadata import SamplingMetadata

    none = torch.empty(0)
    return SamplingMetadata(
        temperature=torch.ones(B), all_greedy=False, all_random=True, top_p=None, top_k=None,
        generators={}, max_num_logprobs=None, no_penalties=True, prompt_token_ids=None,
        frequency_penalties=none, presence_penalties=none, repetition_penalties=none,
        output_token_ids=[[] for _ in range(B)], allowed_token_ids_mask=None,
        bad_words_token_ids={}, logitsprocs=LogitsProcessors(),
    )  # fmt: skip


def _float(laws: Array) -> Any:
    import torch

    return torch.from_numpy(laws.astype(np.float32))


def _read(tokens: Array, draft: Array) -> tuple[Array, Array]:
    """Widen [B, longest + 1], padded with -1, to our [B, K + 1]."""
    out = np.full((len(draft), draft.shape[1] + 1), -1, dtype=np.int64)
    out[:, : tokens.shape[1]] = tokens
    return out, (out >= 0).sum(axis=1)
