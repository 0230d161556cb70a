# ruff: noqa: D102
"""Block verification (arXiv 2403.10444), right, and what goes wrong with it."""

from __future__ import annotations

import numpy as np

from draftproof.proof.mutants.randomness import SharedUniform
from draftproof.proof.mutants.registry import equivalent, mutant
from draftproof.proof.mutants.skeleton import Array, Call, Verifier

__all__ = ["Block"]


@equivalent("block", public="arXiv 2403.10444")
class Block(Verifier):
    """Keeps the longest block of drafts whose joint ratio passes; a failure does not stop it."""

    def accept(self, call: Call, u: Array) -> Array:
        valid = call.valid
        thresholds = self.thresholds(call)
        accepts = np.zeros(valid.shape, dtype=np.bool_)
        accepts[valid] = u[valid] < thresholds[valid]
        return accepts

    def count(self, call: Call, accepts: Array) -> Array:
        return (accepts * np.arange(1, call.K + 1)).max(axis=1, initial=0)

    def ratios(self, call: Call) -> Array:
        """W [B, K+1]: w_0 = 1, w_i = min(1, w_(i-1) p / q)."""
        p, q = call.drafted()
        r = np.divide(p, q, out=np.zeros_like(p), where=q > 0)
        w = np.ones((call.B, call.K + 1))
        for i in range(call.K):
            w[:, i + 1] = self.cap(w[:, i] * r[:, i])
        return w

    def cap(self, w: Array) -> Array:
        """Min(1, w), in each step of the recursion."""
        return np.minimum(w, 1)

    def thresholds(self, call: Call) -> Array:
        """H [B, K]: Z / (Z + 1 - w) with Z = sum (w p - q)+ behind the draft; w at the last."""
        w = self.ratios(call)
        h = w[:, 1:].copy()
        rows, at = np.nonzero(np.arange(1, call.K + 1) < call.num_draft[:, None])
        w = w[rows, at + 1]
        Z = np.maximum(w[:, None] * call.p[rows, at + 1] - call.q[rows, at + 1], 0).sum(axis=1)
        rest = Z + 1 - w
        h[rows, at] = np.divide(Z, rest, out=np.ones_like(Z), where=rest > 0)
        return h

    def residual(self, call: Call, rows: Array, at: Array) -> Array:
        w = self.ratios(call)[rows, at]
        return np.maximum(w[:, None] * call.p[rows, at] - call.q[rows, at], 0)


@mutant("block, uncapped ratio", public="greedy block of arXiv 2403.10444 without its state")
class BlockUncapped(Block):
    """Never caps the joint ratio: greedy block, which forgets to change the target behind it."""

    def cap(self, w: Array) -> Array:
        return w


@mutant("block, capped at the end")
class BlockCappedAtEnd(Block):
    """Caps the joint ratio where it is used, not in each step of the recursion."""

    def cap(self, w: Array) -> Array:
        return w

    def ratios(self, call: Call) -> Array:
        return np.minimum(super().ratios(call), 1)


@mutant("block, residual without w", public="vllm-ascend #7807")
class BlockPlainResidual(Block):
    """Recovers from (p - q)+, the token rule's residual, in place of (w p - q)+."""

    def residual(self, call: Call, rows: Array, at: Array) -> Array:
        return Verifier.residual(self, call, rows, at)


@mutant("block, stops at a failure")
class BlockStopsAtFailure(Block):
    """Stops at the first draft that fails, as the token rule does."""

    def count(self, call: Call, accepts: Array) -> Array:
        return Verifier.count(self, call, accepts)


@mutant("block, one uniform for all")
class BlockSharedUniform(SharedUniform, Block):
    """Tests all drafts of a row with one uniform."""


@mutant("block, h = w")
class BlockThresholdIsRatio(Block):
    """Tests each draft by u < w, which is right for the last draft only."""

    def thresholds(self, call: Call) -> Array:
        return self.ratios(call)[:, 1:]


@mutant("block, noise by absolute position", kind="rounds", seen="rounds")
class BlockNoiseByPosition(Block):
    """Gives each place in the text one accept uniform: the next round meets those it looked at."""

    def __init__(self) -> None:
        self.rng: np.random.Generator | None = None
        self.before = self.passed = np.empty((0, 0))

    def accept_uniforms(self, call: Call) -> Array:
        u = super().accept_uniforms(call)
        if call.rng is self.rng and u.shape == self.before.shape:
            at = np.arange(call.K) + self.passed[:, None]
            known = self.before[np.arange(call.B)[:, None], np.minimum(at, call.K - 1)]
            u = np.where(at < call.K, known, u)
        self.rng, self.before = call.rng, u
        return u

    def emit(self, call: Call, tau: Array, last: Array) -> tuple[Array, Array]:
        self.passed = tau + 1
        return super().emit(call, tau, last)


@equivalent("block, backward scan")
class BlockBackward(Block):
    """Looks at the longest block first and stops at the first that passes."""

    def count(self, call: Call, accepts: Array) -> Array:
        tau = np.zeros(call.B, dtype=np.int64)
        for i in reversed(range(call.K)):
            tau[(tau == 0) & accepts[:, i]] = i + 1
        return tau
