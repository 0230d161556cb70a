"""One right verifier in vectorised NumPy: a mutant is a subclass that replaces one of its steps.

So a mutant fails for the fault in its name and for nothing else. The steps accept arrays of
objects for uniforms: they multiply, add and compare them, and never turn them into numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["Array", "Call", "Verifier", "Verify", "inverse_cdf", "likeliest"]

Array = Any
"""A NumPy array, of numbers or of the objects that stand for uniforms."""
Verify = Callable[[Array, Array, Array, Array, np.random.Generator], tuple[Array, Array]]
"""(draft [B, K], q [B, K, V], p [B, K+1, V], num_draft [B], rng) -> (tokens [B, K+1], n [B])."""


@dataclass(frozen=True)
class Call:
    """The arguments of one call. What lies past a row's ``num_draft`` is never read."""

    draft: Array
    q: Array
    p: Array
    num_draft: Array
    rng: np.random.Generator
    B: int = field(init=False)
    K: int = field(init=False)

    def __post_init__(self) -> None:
        for name, size in zip("BK", self.draft.shape, strict=True):
            object.__setattr__(self, name, size)

    @property
    def valid(self) -> Array:
        """Which of the [B, K] positions hold a draft."""
        return np.arange(self.K) < self.num_draft[:, None]

    def drafted(self) -> tuple[Array, Array]:
        """P and q of each draft, [B, K], 0 where there is none."""
        valid = self.valid
        rows, positions = np.nonzero(valid)
        tokens = self.draft[valid]
        p, q = np.zeros(valid.shape), np.zeros(valid.shape)
        p[valid] = self.p[rows, positions, tokens]
        q[valid] = self.q[rows, positions, tokens]
        return p, q


def inverse_cdf(weights: Array, u: Array) -> Array:
    """One token for each row of weights [n, V] and uniform [n]: the first with C(v) > u * C."""
    cumulative = weights.cumsum(axis=1)
    return (cumulative <= u[:, None] * cumulative[:, -1:]).sum(axis=1)


class Verifier:
    """Token-level speculative sampling.

    ::

        accept the drafts up to the first with u * q >= p
        draw the last token from (p - q)+ of the rejected row, or from p after the last draft

    It consumes ``rng.random((B, K))``, then ``rng.random((B, 1))``.
    """

    def __call__(
        self, draft: Array, q: Array, p: Array, num_draft: Array, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """Verify a batch; see `Verify`."""
        call = Call(draft, q, p, num_draft, rng)
        u = self.accept_uniforms(call)
        tau = self.count(call, self.accept(call, u))
        weights = self.last_law(call, tau)
        last = self.draw(weights, self.final_uniform(call, u, tau))
        return self.emit(call, tau, last)

    def accept_uniforms(self, call: Call) -> Array:
        """[B, K], one for each draft."""
        return call.rng.random((call.B, call.K))

    def final_uniform(self, call: Call, u: Array, tau: Array) -> Array:
        """[B], for the last tokens."""
        return call.rng.random((call.B, 1))[:, 0]

    def accept(self, call: Call, u: Array) -> Array:
        """Which of the [B, K] drafts pass their test."""
        valid = call.valid
        p, q = self.tested(call)
        accepts = np.zeros(valid.shape, dtype=np.bool_)
        accepts[valid] = self.test(p[valid], q[valid], u[valid])
        return accepts

    def tested(self, call: Call) -> tuple[Array, Array]:
        """P and q [B, K] that the accept tests look at."""
        return call.drafted()

    def test(self, p: Array, q: Array, u: Array) -> Array:
        """Accept with probability min(1, p / q)."""
        return (p > 0) & (u * q < p)

    def count(self, call: Call, accepts: Array) -> Array:
        """Tau [B]: the drafts before the first that failed."""
        return np.logical_and.accumulate(accepts, axis=1).sum(axis=1)

    def last_law(self, call: Call, tau: Array) -> Array:
        """The unnormalised laws [B, V] of the last tokens."""
        weights = np.empty((call.B, call.p.shape[2]))
        for rejected, law in ((False, self.bonus_law), (True, self.recovery_law)):
            rows = np.flatnonzero((tau < call.num_draft) == rejected)
            weights[rows] = law(call, rows, tau[rows])
        return weights

    def bonus_law(self, call: Call, rows: Array, at: Array) -> Array:
        """After the last draft: p of the row behind it."""
        return call.p[rows, at]

    def recovery_law(self, call: Call, rows: Array, at: Array) -> Array:
        """After a rejection: the residual there, or p where rounding left it no mass."""
        p = call.p[rows, at]
        weights = self.residual(call, rows, at)
        return np.where(weights.sum(axis=1, keepdims=True) == 0, p, weights)

    def residual(self, call: Call, rows: Array, at: Array) -> Array:
        """What accepted drafts have left of p: (p - q)+."""
        return np.maximum(call.p[rows, at] - call.q[rows, at], 0)

    def draw(self, weights: Array, u: Array) -> Array:
        """One token [n] for each law [n, V] and uniform [n]."""
        return inverse_cdf(weights, u)

    def emit(self, call: Call, tau: Array, last: Array) -> tuple[Array, Array]:
        """Lay out the accepted drafts, the last token, and padding of -1."""
        tokens = np.full((call.B, call.K + 1), -1, dtype=np.int64)
        tokens[:, :-1] = np.where(np.arange(call.K) < tau[:, None], call.draft, -1)
        tokens[np.arange(call.B), tau] = last
        return tokens, tau + 1


def likeliest(weights: Array) -> Array:
    """Return laws [n, V] that are sure of the likeliest token of each of these."""
    laws = np.zeros(weights.shape)
    laws[np.arange(len(weights)), weights.argmax(axis=1)] = 1
    return laws
