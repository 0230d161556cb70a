"""Worlds of large vocabularies: their rows are arrays, made when they are first looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["WIDE_WORLDS", "WideWorld", "cumulative", "noisy_world"]

Floats = npt.NDArray[np.float64]
Weights = npt.NDArray[Any]
RECORDED = Path(__file__).parent / "real" / "rows.npz"
FIXED_POINT = float(1 << 60)


@dataclass(frozen=True)
class WideWorld:
    """A target and a drafter of a few contexts: the last token, modulo their number, says which.

    Attributes:
        name: what reports call it.
        vocabulary: V.
        contexts: S.
        why: one line on what it shows.
        build: makes the weights, target and draft, each [S, V], that rows are proportional to.
        start: the token that a decoder's prompts end with.
    """

    name: str
    vocabulary: int
    contexts: int
    why: str
    build: Callable[[], tuple[Weights, Weights]]
    start: int = 0

    @cached_property
    def tables(self) -> tuple[Floats, Floats]:
        """The laws (p, q), each [S, V] and read-only: the weights normalised in float64."""
        p, q = (weights.astype(np.float64) for weights in self.build())
        for law in (p, q):
            law /= law.sum(axis=1, keepdims=True)
            law.setflags(write=False)
        return p, q

    @cached_property
    def edges(self) -> tuple[Floats, Floats]:
        """The cumulative laws of p and q; see `cumulative`."""
        p, q = self.tables
        return cumulative(p), cumulative(q)

    def context_after(self, tokens: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Which context governs the token after these ones."""
        return tokens % self.contexts

    def row(self, context: Sequence[int]) -> int:
        """Which context governs the token after a text."""
        return int(context[-1] if len(context) else self.start) % self.contexts


def cumulative(law: Weights) -> Floats:
    """Return C [..., V] with C(v) = law(0) + .. + law(v), over their sum.

    The sums run in 64-bit integers, which do not round: an entry is off by V 2^-61 + 2^-53 at most,
    on any machine.
    """
    units = np.rint(law.astype(np.float64) * FIXED_POINT).astype(np.uint64)
    total = units.cumsum(axis=-1)
    return np.asarray(total / total[..., -1:].astype(np.float64))


def _flat(V: int, seed: int) -> tuple[Weights, Weights]:
    """Entries within a factor of 3 of each other, in both laws independently."""
    p, q = np.random.default_rng(seed).uniform(0.5, 1.5, (2, 2, V))
    return p, q


def _zipf(V: int, seed: int) -> tuple[Weights, Weights]:
    """Zipf's law in a random order; the drafter's is steeper and mistakes ranks by half."""
    rng = np.random.default_rng(seed)
    ranks = 1.0 + rng.permuted(np.tile(np.arange(V), (2, 1)), axis=1)
    return 1 / ranks, (ranks * rng.lognormal(0, 0.5, ranks.shape)) ** -1.2


def _peaked(V: int, written: int, seed: int) -> tuple[Weights, Weights]:
    """One token of probability 15/16 above a Zipf law, and ids at the end that nobody writes."""
    p, q = np.zeros((2, 2, V))
    p[:, :written], q[:, :written] = _zipf(written, seed)
    for law, share in ((p, 15), (q, 3)):
        head = written // 3
        law[:, head] = 0
        law[:, head] = share * law.sum(axis=1)
    return p, q


def _sparse(V: int, seed: int) -> tuple[Weights, Weights]:
    """Two Zipf laws and two flat ones, without a quarter of their tokens, each without its own."""
    laws = (np.concatenate(pair) for pair in zip(_zipf(V, seed), _flat(V, seed + 1), strict=True))
    zeros = np.random.default_rng(seed + 2).random((2, 4, V)) < 0.25
    p, q = (
        np.where(zero, 0, law / law.sum(axis=1, keepdims=True))
        for zero, law in zip(zeros, laws, strict=True)
    )
    return p, q


def _padded(V: int, written: int, seed: int) -> tuple[Weights, Weights]:
    """Flat laws, and ids at the end of the vocabulary that nobody writes."""
    p, q = _flat(V, seed)
    p[:, written:] = q[:, written:] = 0
    return p, q


def _noisy(V: int) -> tuple[Weights, Weights]:
    """Peaked laws, and drafts that differ by noise in the logits; a tenth of p is zero."""
    rng = np.random.default_rng([0, V])
    logits = 2 * rng.normal(size=(8, V))
    p = np.where(rng.random(logits.shape) < 0.1, 0.0, np.exp(logits))
    return p, np.exp(logits + 1.5 * rng.normal(size=logits.shape))


def noisy_world(V: int) -> WideWorld:
    """Return a world in which decoders write long texts."""
    why = "peaked, with noise in the drafter's logits; a tenth of all tokens impossible"
    return WideWorld(f"V = {V:,}", V, 8, why, lambda: _noisy(V))


def _recorded() -> tuple[Weights, Weights]:
    with np.load(RECORDED) as rows:
        return rows["target"], rows["draft"]


_ALL = (
    WideWorld(
        "sparse-8192", 8_192, 4,
        "Zipf and flat laws, a quarter of each impossible: epsilons, floors and clamps",
        lambda: _sparse(8_192, 1),
    ),
    WideWorld(
        "flat-32768", 32_768, 2, "flat: each token must have its share",
        lambda: _flat(32_768, 3),
    ),
    WideWorld(
        "real-49152", 49_152, 16, "rows of SmolLM2-135M, drafts of a copy that skips layers",
        _recorded,
    ),
    WideWorld(
        "peaked-50304", 50_304, 2,
        "one token of probability 15/16 above a Zipf law; the last 47 ids are padding",
        lambda: _peaked(50_304, 50_257, 2),
    ),
    WideWorld(
        "zipf-131072", 131_072, 2, "Zipf: most tokens are rarer than a float32 sum can tell",
        lambda: _zipf(131_072, 4),
    ),
    WideWorld(
        "padded-152064", 152_064, 2, "flat, 151,936 ids in use: more than 16 bits can number",
        lambda: _padded(152_064, 151_936, 5),
    ),
    WideWorld(
        "flat-262144", 262_144, 2, "flat: where running sums and uniforms of 24 bits are coarsest",
        lambda: _flat(262_144, 6),
    ),
)  # fmt: skip

WIDE_WORLDS: Mapping[str, WideWorld] = MappingProxyType({world.name: world for world in _ALL})
"""By name, the narrowest first."""
