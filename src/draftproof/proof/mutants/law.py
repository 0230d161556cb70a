# ruff: noqa: D102
"""Drafts that do not come from the law that the verifier believes in."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from draftproof.proof.mutants.registry import equivalent, mutant
from draftproof.proof.mutants.skeleton import Array, Call, Verifier

Row = Sequence[Fraction]


def normalised(weights: Row) -> Row:
    """Divide by the sum."""
    total = sum(weights, Fraction(0))
    return [w / total for w in weights]


def top_two(row: Row) -> Row:
    """Keep the two likeliest tokens, the lower ids among equals."""
    kept = sorted(range(len(row)), key=lambda token: -row[token])[:2]
    return normalised([w if token in kept else Fraction(0) for token, w in enumerate(row)])


def sharpened(row: Row) -> Row:
    """Apply a temperature of 1/2."""
    return normalised([w * w for w in row])


def argmax(row: Row) -> Row:
    """Make the likeliest token certain, the lowest id among equals."""
    best = max(range(len(row)), key=lambda token: row[token])
    return [Fraction(token == best) for token in range(len(row))]


def shifted(row: Row) -> Row:
    """Name each token by the id behind its own."""
    return [*row[-1:], *row[:-1]]


def in_bf16(row: Row) -> Row:
    """Round to 8 significant bits, and normalise."""
    return normalised([_eight_bits(w) for w in row])


def _eight_bits(w: Fraction) -> Fraction:
    scale = Fraction(1)
    while 0 < w < scale:
        scale /= 2
    return round(w / scale * 128) * scale / 128


@mutant("top-2 drafts, full q", public="transformers #47932", sampled_law=top_two)
class TopTwoDrafts(Verifier):
    """Is right, but the drafts were sampled from the two likeliest tokens of the declared q."""


@mutant("drafts at temperature 1/2, plain q", sampled_law=sharpened)
class SharpenedDrafts(Verifier):
    """Is right, but the drafts were sampled at a temperature of 1/2 that q does not show."""


@mutant("argmax drafts, soft q", public="sglang #10308, EAGLE #110", sampled_law=argmax)
class ArgmaxDrafts(Verifier):
    """Is right, but the drafts are the likeliest tokens of the declared q."""


@mutant("draft ids off by one", sampled_law=shifted)
class ShiftedDrafts(Verifier):
    """Is right, but a wrong id map gave each draft the id behind its own."""


@mutant("drafts from q in bf16", public="DeepSpec #31", sampled_law=in_bf16, world="L357")
class Bfloat16Drafts(Verifier):
    """Is right, but the drafts were sampled from q rounded to 8 significant bits."""


def top_two_rows(q: Array) -> Array:
    """`top_two` of [..., V]; rows of NaN stay so."""
    ranks = np.argsort(np.argsort(-q, axis=-1, kind="stable"), axis=-1)
    weights = np.where((ranks < 2) | np.isnan(q), q, 0)
    with np.errstate(invalid="ignore"):  # rows of padding are NaN
        return weights / weights.sum(axis=-1, keepdims=True)


@mutant("full drafts, q cut to its top 2")
class TruncatedDraftLaw(Verifier):
    """Verifies drafts that were sampled from q with the law of its two likeliest tokens."""

    def __call__(
        self, draft: Array, q: Array, p: Array, num_draft: Array, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        return super().__call__(draft, top_two_rows(q), p, num_draft, rng)


@equivalent("top-2 drafts, q cut to its top 2", sampled_law=top_two)
class TopTwoDeclared(TruncatedDraftLaw):
    """Verifies drafts from the two likeliest tokens of q with that very law."""


@mutant("drops unlikely drafts")
class DropsUnlikelyDrafts(Verifier):
    """Ends a row before the first draft with q <= 0.2, and draws from p there."""

    def __call__(
        self, draft: Array, q: Array, p: Array, num_draft: Array, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        call = Call(draft, q, p, num_draft, rng)
        likely = call.drafted()[1] > 0.2
        return super().__call__(draft, q, p, self.count(call, likely), rng)


@equivalent("sub-stochastic drop")
class SubStochasticDrop(Verifier):
    """Rejects drafts with q <= 0.2, and recovers from p - min(p, q 1[q > 0.2])."""

    def test(self, p: Array, q: Array, u: Array) -> Array:
        return super().test(p, q, u) & (q > 0.2)

    def residual(self, call: Call, rows: Array, at: Array) -> Array:
        p, q = call.p[rows, at], call.q[rows, at]
        return p - np.minimum(p, np.where(q > 0.2, q, 0))


@equivalent("one-hot rule on sampled drafts", public="vllm #40149", note="accepts fewer drafts")
class OneHot(Verifier):
    """Takes each draft for certain: accepts with probability p, recovers from p without it."""

    def tested(self, call: Call) -> tuple[Array, Array]:
        p, _ = call.drafted()
        return p, np.ones(p.shape)

    def residual(self, call: Call, rows: Array, at: Array) -> Array:
        weights = call.p[rows, at]
        weights[np.arange(len(rows)), call.draft[rows, at]] = 0
        return weights


@equivalent("argmax drafts, one-hot q", sampled_law=argmax)
class ArgmaxDeclared(OneHot):
    """Verifies the likeliest tokens of q as certain drafts."""
