"""speculative-decoding: a whole decoder, batches included; its networks are tables.

The tables read a text from the key-value cache that they are handed, so that a cache which is cut
or aligned wrongly shows. Its own `Decoder` is not judged. Its loop knows of no token that ends a
text: every text is as long as was asked for.

Its own draws: ``Tensor.uniform_`` and ``torch.multinomial``, seeded for each call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from draftproof.integrations.public.tensors import TableModel

__all__ = ["make_decoder"]

GAMMA = 3
"""Drafts of a round."""


def make_decoder(world: Any) -> Callable[[Sequence[Sequence[int]], int, int], list[list[int]]]:
    """Wrap ``speculative_decoding`` at temperature 1, without its top-k filter."""
    import torch
    from speculative_decoding.speculative_decoding import speculative_decoding

    nets = _Net(TableModel(world.target_row)), _Net(TableModel(world.draft_row))

    def decode(prompts: Sequence[Sequence[int]], num_tokens: int, seed: int) -> list[list[int]]:
        torch.manual_seed(seed)
        texts: list[list[int]] = [[]] * len(prompts)
        for n in sorted(set(map(len, prompts))):
            rows = [b for b, prompt in enumerate(prompts) if len(prompt) == n]
            ids = torch.tensor([[0, *prompts[b]] for b in rows])
            made, _ = speculative_decoding(
                *nets, ids, n + 1 + num_tokens, gamma=GAMMA, temperature=1.0, filter_thres=0.0
            )
            for b, text in zip(rows, made.tolist(), strict=True):
                texts[b] = text
        return texts

    return decode


class _Net:
    """A table whose key-value cache holds the ids themselves, [B, n, 1]."""

    def __init__(self, table: TableModel) -> None:
        self._table = table

    def __call__(
        self, ids: Any, seq_start_pos: Any = None, cache: Any = None, return_cache: bool = True
    ) -> tuple[Any, tuple[Any, None]]:
        import torch

        seen, known = ids, 0
        if cache is not None:
            kept = cache[0][..., 0]
            known = kept.shape[1]
            seen = torch.cat([kept, ids[:, known:]], dim=1)
        starts = [0] * len(ids) if seq_start_pos is None else seq_start_pos.tolist()
        rows = [
            self._table.after(tuple(text[start + 1 : end + 1]))
            for text, start in zip(seen.tolist(), starts, strict=True)
            for end in range(known, len(text))
        ]
        return torch.stack(rows).view(len(ids), -1, len(rows[0])), (seen[..., None], None)
