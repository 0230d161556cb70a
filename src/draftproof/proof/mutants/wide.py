"""Faults that only a large vocabulary shows: in the worlds of a few tokens they do nothing.

Each class also says what its law is, `Wide.first_token`, from which its exact distance follows.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from draftproof.proof.mutants.registry import Mutant, mutant
from draftproof.proof.mutants.skeleton import Array, Call, Verifier, inverse_cdf
from draftproof.proof.worlds.wide import WIDE_WORLDS

__all__ = ["Wide", "wide_distance"]

BLOCK = 4096
"""Tokens that a kernel sums at once: a row of one block takes another way than longer rows."""
FLOOR = 1e-5
CLAMP = 1e-3
LEAST_WEIGHT = 2.0**-16
GREEDY_ABOVE = 0.9
SIXTEEN_BITS = 1 << 16


class Wide(Verifier):
    """A right verifier that knows the law of its first token."""

    def first_token(self, p: Array, q: Array) -> Array:
        """The law [V] of the first token of a round of one draft, of rows p and q [V].

        Of one without drafts, where only the draw is wrong.
        """
        accepted = q * self.passing(p, q)
        return accepted + (1 - accepted.sum()) * self.drawn(self.left(p, q))

    def passing(self, p: Array, q: Array) -> Array:
        """The probabilities [V] with which drafts pass."""
        return np.minimum(1, np.divide(p, q, out=np.ones_like(p), where=q > 0))

    def left(self, p: Array, q: Array) -> Array:
        """The unnormalised law [V] after a rejection."""
        return np.maximum(p - q, 0)

    def drawn(self, weights: Array) -> Array:
        """The law [V] of a draw."""
        return np.asarray(weights / weights.sum())


class WideDraw(Wide):
    """A verifier that is wrong in its draws: no draft is needed to see it."""

    def first_token(self, p: Array, q: Array) -> Array:
        return self.drawn(p)


@mutant("residual floor 1e-5", drivable=False, seen="vocabulary", world="zipf-131072")
class ResidualFloor(Wide):
    """Raises each weight of the residual to 1e-5 at least; has a generator of its own."""

    def __call__(
        self, draft: Array, q: Array, p: Array, num_draft: Array, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        own = np.random.default_rng(rng.integers(2**62))
        return super().__call__(draft, q, p, num_draft, own)

    def residual(self, call: Call, rows: Array, at: Array) -> Array:
        return np.maximum(super().residual(call, rows, at), FLOOR)

    def left(self, p: Array, q: Array) -> Array:
        return np.maximum(p - q, FLOOR)


@mutant("draft law clamped at 1e-3", seen="vocabulary", world="sparse-8192")
class DraftClamped(Wide):
    """Takes a draft probability below 1e-3 for 1e-3 in the accept test."""

    def test(self, p: Array, q: Array, u: Array) -> Array:
        return super().test(p, np.maximum(q, CLAMP), u)

    def passing(self, p: Array, q: Array) -> Array:
        return super().passing(p, np.maximum(q, CLAMP))


@mutant("argmax of a peaked row", seen="vocabulary", world="peaked-50304")
class GreedyWherePeaked(WideDraw):
    """Emits the argmax as the bonus where its probability is above 0.9."""

    def bonus_law(self, call: Call, rows: Array, at: Array) -> Array:
        p = super().bonus_law(call, rows, at)
        peaked = p.max(axis=1, keepdims=True) > GREEDY_ABOVE
        return np.where(peaked & (p < p.max(axis=1, keepdims=True)), 0, p)

    def drawn(self, weights: Array) -> Array:
        peaked = weights.max() > GREEDY_ABOVE
        return super().drawn(np.where(peaked & (weights < weights.max()), 0, weights))


@mutant("draw from the top 4096", seen="vocabulary", world="real-49152")
class TopBlock(WideDraw):
    """Draws from the 4096 likeliest tokens alone."""

    def draw(self, weights: Array, u: Array) -> Array:
        return super().draw(_top(weights), u)

    def drawn(self, weights: Array) -> Array:
        return super().drawn(_top(weights[None])[0])


def _top(weights: Array) -> Array:
    if weights.shape[1] <= BLOCK:
        return weights
    least = np.partition(weights, -BLOCK, axis=1)[:, -BLOCK, None]
    return np.where(weights < least, 0, weights)


@mutant("small weights dropped", seen="vocabulary", world="zipf-131072")
class SmallDropped(WideDraw):
    """Draws as if weights below 2^-16 of the largest one were 0."""

    def draw(self, weights: Array, u: Array) -> Array:
        return super().draw(_without_small(weights), u)

    def drawn(self, weights: Array) -> Array:
        return super().drawn(_without_small(weights[None])[0])


def _without_small(weights: Array) -> Array:
    small = weights < LEAST_WEIGHT * weights.max(axis=1, keepdims=True)
    return np.where(small, 0, weights)


@mutant("last block lost", seen="vocabulary", world="padded-152064")
class LastBlockLost(WideDraw):
    """Draws from whole blocks of 4096 tokens: what lies behind the last of them is lost."""

    def draw(self, weights: Array, u: Array) -> Array:
        return super().draw(weights[:, : _whole_blocks(weights.shape[1])], u)

    def drawn(self, weights: Array) -> Array:
        kept = np.arange(len(weights)) < _whole_blocks(len(weights))
        return super().drawn(np.where(kept, weights, 0))


def _whole_blocks(V: int) -> int:
    return V // BLOCK * BLOCK if V > BLOCK else V


@mutant("long rows summed in float32", seen="vocabulary", world="flat-262144")
class SingleScan(WideDraw):
    """Sums rows of more than 4096 tokens in float32."""

    def draw(self, weights: Array, u: Array) -> Array:
        if weights.shape[1] <= BLOCK:
            return super().draw(weights, u)
        cumulative = weights.cumsum(axis=1, dtype=np.float32).astype(np.float64)
        return (cumulative <= u[:, None] * cumulative[:, -1:]).sum(axis=1)

    def drawn(self, weights: Array) -> Array:
        cumulative = weights.cumsum(dtype=np.float32).astype(np.float64)
        return np.diff(cumulative / cumulative[-1], prepend=0.0)


@mutant("the rest to the last token", seen="vocabulary", world="padded-152064")
class RestToTheLast(WideDraw):
    """Sums rows of more than 4096 tokens in float32 and gives what misses 1 to the last id."""

    def draw(self, weights: Array, u: Array) -> Array:
        if weights.shape[1] <= BLOCK:
            return super().draw(weights, u)
        law = weights / weights.sum(axis=1, keepdims=True)
        token = (law.cumsum(axis=1, dtype=np.float32).astype(np.float64) <= u[:, None]).sum(axis=1)
        return np.minimum(token, weights.shape[1] - 1)

    def drawn(self, weights: Array) -> Array:
        cumulative = (weights / weights.sum()).cumsum(dtype=np.float32).astype(np.float64)
        cumulative = np.minimum(cumulative, 1)
        cumulative[-1] = 1
        return np.diff(cumulative, prepend=0.0)


@mutant("token ids in 16 bits", seen="vocabulary", world="padded-152064")
class SixteenBitIds(WideDraw):
    """Keeps the drawn id in 16 bits: token 65,536 comes out as token 0."""

    def draw(self, weights: Array, u: Array) -> Array:
        return inverse_cdf(weights, u) % SIXTEEN_BITS

    def drawn(self, weights: Array) -> Array:
        law = np.zeros_like(weights)
        np.add.at(law, np.arange(len(weights)) % SIXTEEN_BITS, super().drawn(weights))
        return law


def wide_distance(mutant: Mutant) -> Fraction:
    """The total variation of a wide mutant's first token, in the first context of its world."""
    p, q = (rows[0] for rows in WIDE_WORLDS[mutant.world].tables)
    wide = mutant.build()
    assert isinstance(wide, Wide)
    return Fraction(float(np.abs(wide.first_token(p, q) - p).sum() / 2))
