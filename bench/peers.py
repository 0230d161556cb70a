"""Other people's code on the same logits: with PyTorch, on one thread, by its own random numbers.

============  ======================================================================================
torch         softmax of all rows, then a verifier as one writes it: gather, compare, multinomial
torch-sort    ``torch.sort`` of the rows, descending: where others begin to filter
transformers  ``_speculative_sampling``, one request
flashspec     ``rejection_step``, behind a log-softmax of both sides
vllm          ``rejection_sample``, behind a softmax of the draft's rows; the bonus tokens are given
vllm-sampler  the same softmax, then ``RejectionSampler.forward``, which draws its bonus tokens
============  ======================================================================================

Each has its arrays as tensors before the clock starts; none is asked for filters or penalties.
vLLM runs the C++ kernels that its CPU worker registers where there is no Triton. Its metadata, too,
is made before the clock starts: temperature 1 for all, no seeds, no log-probabilities wanted.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from bench.inputs import CALLS, Inputs, Ints
from draftproof.integrations.public import vllm

__all__ = ["PEERS", "Peer", "is_installed"]

PEERS = {
    "torch": ("torch",),
    "torch-sort": ("torch",),
    "transformers": ("torch", "transformers"),
    "flashspec": ("torch", "flashspec"),
    "vllm": ("torch", "vllm"),
    "vllm-sampler": ("torch", "vllm"),
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
    from vllm.v1.sample.rejection_sampler import rejection_sample

    vllm.prepare()
    B, K = ids.shape
    packed, settings = vllm.pack_drafts(ids.numpy(), np.full(B, K)), vllm.sampling_metadata(B)
    bonus = torch.multinomial(torch.softmax(p_logits[:, K], dim=-1), 1).int()
    target = p_logits[:, :K].reshape(B * K, -1)
    draft = q_logits.reshape(B * K, -1)
    return lambda: rejection_sample(
        packed.draft_token_ids, packed.num_draft_tokens, K, packed.cu_num_draft_tokens,
        torch.softmax(draft, dim=-1), target, bonus, settings,
    )  # fmt: skip


def _vllm_sampler(ids: Any, q_logits: Any, p_logits: Any) -> Callable[[], Any]:
    import torch

    vllm.prepare()
    B, K = ids.shape
    packed, settings = vllm.pack_drafts(ids.numpy(), np.full(B, K)), vllm.sampling_metadata(B)
    sampler, target = vllm.rejection_sampler(), p_logits.reshape(B * (K + 1), -1)
    draft = q_logits.reshape(B * K, -1)
    return lambda: sampler(packed, torch.softmax(draft, dim=-1), target, settings)


_CALLS = {
    "torch": _torch,
    "torch-sort": _torch_sort,
    "transformers": _transformers,
    "flashspec": _flashspec,
    "vllm": _vllm,
    "vllm-sampler": _vllm_sampler,
}
