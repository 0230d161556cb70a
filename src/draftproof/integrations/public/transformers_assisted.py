"""transformers: assisted decoding as a whole, with its default settings but for the sampling.

Target and assistant are Llama models of one layer whose attention and feed-forward write nothing,
so that their logits are a world's rows, while their key-value caches are real.

Its own draws: PyTorch's global generator, seeded for each call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = ["make_decoder"]

NOTHING = -1e4
"""The logit of a token without mass: its probability is exactly 0 in float32."""


def make_decoder(world: Any) -> Callable[[Sequence[Sequence[int]], int, int], list[list[int]]]:
    """Wrap ``generate(assistant_model=...)`` at temperature 1, without filters."""
    import torch
    from transformers import GenerationConfig

    target, assistant = _markov(world.target_row), _markov(world.draft_row)
    start = target.config.vocab_size - 1
    settings = {
        "do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0,
        "eos_token_id": world.eos, "pad_token_id": start,
    }  # fmt: skip

    def decode(prompts: Sequence[Sequence[int]], num_tokens: int, seed: int) -> list[list[int]]:
        torch.manual_seed(seed)
        texts: list[list[int]] = []
        for prompt in prompts:
            ids = torch.tensor([[start, *prompt]])
            config = GenerationConfig(**settings, max_new_tokens=num_tokens)
            made = target.generate(ids, generation_config=config, assistant_model=assistant)
            texts.append(made[0, ids.shape[1] :].tolist())
        return texts

    return decode


def _markov(row: Callable[[Sequence[int]], Any]) -> Any:
    """Return a causal model that knows a chain; its last id stands for the empty text.

    The embedding of an id is a unit vector, one for each law that the chain has.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    V = len(row(()))
    laws = np.array([*(row((token,)) for token in range(V)), row(())], dtype=np.float64)
    rows, kind = np.unique(laws, axis=0, return_inverse=True)
    config = LlamaConfig(
        vocab_size=V + 1, hidden_size=len(rows), intermediate_size=2, num_hidden_layers=1,
        num_attention_heads=1, num_key_value_heads=1, head_dim=2, rms_norm_eps=0.0,
        tie_word_embeddings=False, bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    model = LlamaForCausalLM(config).eval()
    with np.errstate(divide="ignore"):
        scores = np.maximum(np.log(rows.T), NOTHING)
    scale = config.hidden_size**-0.5  # the norm makes a unit vector longer by the root of its size
    with torch.no_grad():
        model.model.embed_tokens.weight.copy_(torch.eye(len(rows))[kind.ravel()])
        model.model.layers[0].self_attn.o_proj.weight.zero_()
        model.model.layers[0].mlp.down_proj.weight.zero_()
        model.lm_head.weight.fill_(NOTHING * scale)
        model.lm_head.weight[:V].copy_(torch.from_numpy(scores * scale))
    return model
