"""Other people's code on the same logits: with PyTorch, on one thread, by its own random numbers.

============  ======================================================================================
torch         softmax of all rows, then a verifier as one writes it: gather, compare, multinomial
torch-sort    ``torch.sort`` of the rows, descending: where others begin to filter
transformers  ``_speculative_sampling``, one request
flashspec     ``rejection_step``, behind a log-softmax of both sides
vllm          ``rejection_sample``, behind a softmax of the draft's rows; the bonus tokens are given
============  ======================================================================================

Each has its arrays as tensors before the clock starts; none is asked for filters or penalties.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from bench.inputs import CALLS, Inputs, Ints

__all__ = ["PEERS", "Peer", "is_installed"]

PEERS = {
    "torch": ("torch",),
    "torch-sort": ("torch",),
    "transformers": ("torch", "transformers"),
    "flashspec": ("torch", "flashspec"),
    "vllm": ("torch", "vllm"),
}
"""What each needs."""


def is_installed(name: str) -> bool:
    """Whether a peer can run here."""
    return all(find_spec(module) for module in PEERS[name])


class Peer:
    """A contender that draws by itself: it accepts drafts as often as we do, and not the same."""

    def __init__(self, name: str, inputs: Inputs) -> None:
        import torch

        torch.set_num_threads(1)
        torch.default_generator.manual_seed(0)
        self._call = _CALLS[name](
            torch.from_numpy(inputs.draft_token_ids),
            torch.from_numpy(inputs.draft_probs),
            torch.from_numpy(inputs.target_probs),
        )

    def cycle(self) -> list[Ints]:
        for _ in range(CALLS):
            self._call()
        return [np.zeros(0, dtype=np.int64)]

    def rewind(self) -> None:
        """Do nothing: each cycle draws anew."""


def _torch(ids: Any, q_logits: Any, p_logits: Any) -> Callable[[], Any]:
    import torch

    rows, K = torch.arange(len(ids)), ids.shape[1]

    def call() -> Any:
        q, p = torch.softmax(q_logits, dim=-1), torch.softmax(p_logits, dim=-1)
        at = ids[..., None]
        ratio = p[:, :K].gather(-1, at)[..., 0] / q.gather(-1, at)[..., 0]
        accepted = (torch.rand(ratio.shape) < ratio).long().cumprod(dim=1).sum(dim=1)
        law = p[rows, accepted]
        rejected = accepted < K
        law[rejected] = (law[rejected] - q[rows[rejected], accepted[rejected]]).clamp(min=0)
        return accepted, torch.multinomial(law, 1)

    return call


def _torch_sort(ids: Any, q_logits: Any, p_logits: Any) -> Callable[[], Any]:
    import torch

    return lambda: torch.sort(p_logits[:, 0], dim=-1, descending=True)


def _transformers(ids: Any, q_logits: Any, p_logits: Any) -> Callable[[], Any]:
    from transformers.generation.utils import _speculative_sampling

    return lambda: _speculative_sampling(ids, q_logits, ids.shape[1], p_logits)


def _flashspec(ids: Any, q_logits: Any, p_logits: Any) -> Callable[[], Any]:
    import torch
    from flashspec.sampling.rejection import rejection_step

    generator = torch.Generator().manual_seed(0)
    return lambda: rejection_step(
        ids,
        torch.log_softmax(q_logits, dim=-1),
        torch.log_softmax(p_logits, dim=-1),
        generator=generator,
    )


def _vllm(ids: Any, q_logits: Any, p_logits: Any) -> Callable[[], Any]:
    import torch
    from vllm.platforms import current_platform
    from vllm.v1.sample.logits_processor import LogitsProcessors
    from vllm.v1.sample.metadata import SamplingMetadata
    from vllm.v1.sample.rejection_sampler import rejection_sample

    current_platform.import_kernels()
    current_platform.register_triton_kernel_overrides()
    B, K = ids.shape
    none = torch.empty(0)
    settings = SamplingMetadata(
        temperature=torch.ones(B), all_greedy=False, all_random=True, top_p=None, top_k=None,
        generators={}, max_num_logprobs=None, no_penalties=True, prompt_token_ids=None,
        frequency_penalties=none, presence_penalties=none, repetition_penalties=none,
        output_token_ids=[[] for _ in range(B)], allowed_token_ids_mask=None,
        bad_words_token_ids={}, logitsprocs=LogitsProcessors(),
    )  # fmt: skip
    flat, lengths = ids.reshape(-1).int(), [K] * B
    ends = torch.arange(K, B * K + 1, K, dtype=torch.int32)
    bonus = torch.multinomial(torch.softmax(p_logits[:, K], dim=-1), 1).int()
    target = p_logits[:, :K].reshape(B * K, -1).clone()  # it may work in place
    draft = q_logits.reshape(B * K, -1)
    return lambda: rejection_sample(
        flat, lengths, K, ends, torch.softmax(draft, dim=-1), target, bonus, settings
    )


_CALLS = {
    "torch": _torch,
    "torch-sort": _torch_sort,
    "transformers": _transformers,
    "flashspec": _flashspec,
    "vllm": _vllm,
}
