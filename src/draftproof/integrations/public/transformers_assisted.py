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
    """Wrap ``generate(assistant_model=...)`` at temperature 1, without filters and end of text."""
    import torch
    from transformers import GenerationConfig

    target, assistant = _markov(world.target_row), _markov(world.draft_row)
    start = target.config.vocab_size - 1
    settings = {"do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0}

    def decode(prompts: Sequence[Sequence[int]], num_tokens: int, seed: int) -> list[list[int]]:
        torch.manual_seed(seed)
        texts: list[list[int]] = []
        for prompt in prompts:
            ids = torch.tensor([[start, *prompt]])
            config = GenerationConfig(**settings, max_new_tokens=num_tokens, pad_token_id=start)
            made = target.generate(ids, generation_config=config, assistant_model=assistant)
            texts.append(made[0, ids.shape[1] :].tolist())
        return texts

    return decode


def _markov(row: Callable[[Sequence[int]], Any]) -> Any:
    """Return a causal model that knows a chain; its last id stands for the empty text."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    first = np.asarray(row(()), dtype=np.float64)
    V = len(first)
    laws = np.zeros((V + 1, V + 1))
    laws[V, :V] = first
    laws[:V, :V] = [np.asarray(row((token,)), dtype=np.float64) for token in range(V)]
    with np.errstate(divide="ignore"):
        scores = np.maximum(np.log(laws), NOTHING)
    config = LlamaConfig(
        vocab_size=V + 1, hidden_size=2 * (V + 1), intermediate_size=4, num_hidden_layers=1,
        num_attention_heads=1, num_key_value_heads=1, head_dim=2 * (V + 1), rms_norm_eps=0.0,
        max_position_embeddings=256, tie_word_embeddings=False,
        bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    model = LlamaForCausalLM(config).eval()
    with torch.no_grad():
        model.model.embed_tokens.weight.copy_(torch.eye(V + 1, config.hidden_size))
        model.model.layers[0].self_attn.o_proj.weight.zero_()
        model.model.layers[0].mlp.down_proj.weight.zero_()
        scale = config.hidden_size**-0.5  # the norm makes of a unit vector one of this length less
        model.lm_head.weight.zero_()
        model.lm_head.weight[:, : V + 1].copy_(torch.from_numpy(scores.T * scale))
    return model
