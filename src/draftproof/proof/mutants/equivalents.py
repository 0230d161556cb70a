# ruff: noqa: D102
"""Verifiers that are lossless though they look wrong, or only look unusual: they must live."""

from __future__ import annotations

import numpy as np

from draftproof.proof.mutants.registry import equivalent
from draftproof.proof.mutants.skeleton import Array, Call, Verifier, inverse_cdf

equivalent("token")(Verifier)


@equivalent("no bonus", note="a token less when all drafts are accepted")
class NoBonus(Verifier):
    """Emits no bonus token; a row without drafts still draws its token from p."""

    def emit(self, call: Call, tau: Array, last: Array) -> tuple[Array, Array]:
        tokens, n = super().emit(call, tau, last)
        full = np.flatnonzero((tau == call.num_draft) & (tau > 0))
        tokens[full, tau[full]] = -1
        n[full] -= 1
        return tokens, n


@equivalent("stops before looking", note="uses the first draft only")
class FirstDraftOnly(Verifier):
    """Decides to verify one draft at most before it looks at any."""

    def __call__(
        self, draft: Array, q: Array, p: Array, num_draft: Array, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        return super().__call__(draft, q, p, np.minimum(num_draft, 1), rng)


@equivalent("pad rejected with an empty q")
class PadRejected(Verifier):
    """Takes the place behind the drafts for a rejected draft with q = 0: the residual is p."""

    def bonus_law(self, call: Call, rows: Array, at: Array) -> Array:
        p = super().bonus_law(call, rows, at)
        return np.maximum(p - np.zeros_like(p), 0)


@equivalent("token, p >= q first")
class LikelierFirst(Verifier):
    """Accepts where p >= q without a look at the uniform."""

    def test(self, p: Array, q: Array, u: Array) -> Array:
        accepts = p >= q
        accepts[~accepts] = super().test(p[~accepts], q[~accepts], u[~accepts])
        return accepts


@equivalent("token, complementary uniforms")
class Complementary(Verifier):
    """Uses 1 - u in place of u for the accept tests."""

    def test(self, p: Array, q: Array, u: Array) -> Array:
        return (p > 0) & ((1 - u) * q <= p)


@equivalent("token, in logarithms")
class Logarithms(Verifier):
    """Accepts iff log u < log p - log q."""

    def test(self, p: Array, q: Array, u: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(u) < np.log(p) - np.log(q)


@equivalent("token, accepts at u q = p", note="boundary: u = 0 accepts an impossible draft")
class UpToThreshold(Verifier):
    """Accepts iff u * q <= p, with uniforms of 53 bits: wrong with probability 2^-53."""

    def test(self, p: Array, q: Array, u: Array) -> Array:
        return u * q <= p


@equivalent("token, plain sampler", note="boundary: u = 0 draws a first token of no mass")
class PlainSampler(Verifier):
    """Draws the first token with C(v) >= u * C, as searchsorted does by default."""

    def draw(self, weights: Array, u: Array) -> Array:
        cumulative = weights.cumsum(axis=1)
        return (cumulative < u[:, None] * cumulative[:, -1:]).sum(axis=1)


@equivalent("token, last uniform first")
class FinalFirst(Verifier):
    """Draws the uniforms of the last tokens before those of the accept tests."""

    def accept_uniforms(self, call: Call) -> Array:
        final = call.rng.random(call.B)
        return np.concatenate([call.rng.random((call.B, call.K)), final[:, None]], axis=1)

    def accept(self, call: Call, u: Array) -> Array:
        return super().accept(call, u[:, :-1])

    def final_uniform(self, call: Call, u: Array, tau: Array) -> Array:
        return u[:, -1]


@equivalent("token, one block of uniforms")
class OneBlock(FinalFirst):
    """Draws all uniforms at once, [B, K+1]."""

    def accept_uniforms(self, call: Call) -> Array:
        return call.rng.random((call.B, call.K + 1))


@equivalent("token, uniforms by position")
class ByPosition(Verifier):
    """Draws the uniforms of one position for all rows, position after position."""

    def accept_uniforms(self, call: Call) -> Array:
        columns = [call.rng.random(call.B) for _ in range(call.K)]
        return np.stack(columns, axis=1) if columns else np.empty((call.B, 0))


@equivalent("token, a loop over rows", note="one row at a time")
class LoopOverRows(Verifier):
    """Verifies row after row in Python, and draws no uniform that it does not need."""

    def __call__(
        self, draft: Array, q: Array, p: Array, num_draft: Array, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        B, K = draft.shape
        tokens, n = np.full((B, K + 1), -1, dtype=np.int64), np.zeros(B, dtype=np.int64)
        for b, g in enumerate(num_draft):
            i = 0
            while i < g and rng.random() * q[b, i, draft[b, i]] < p[b, i, draft[b, i]]:
                tokens[b, i] = draft[b, i]
                i += 1
            law = np.maximum(p[b, i] - q[b, i], 0) if i < g else p[b, i]
            law = law if law.sum() > 0 else p[b, i]
            tokens[b, i] = inverse_cdf(law[None], np.array([rng.random()]))[0]
            n[b] = i + 1
        return tokens, n


@equivalent("token, own entropy", drivable=False, note="equal seeds give different tokens")
class OwnEntropy(Verifier):
    """Draws from a generator of its own, seeded by the system."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng()

    def accept_uniforms(self, call: Call) -> Array:
        return self.rng.random((call.B, call.K))

    def final_uniform(self, call: Call, u: Array, tau: Array) -> Array:
        return self.rng.random(call.B)


@equivalent("token, exponential race", drivable=False)
class ExponentialRace(Verifier):
    """Draws the last token by a race of exponential noises divided by the weights."""

    def final_uniform(self, call: Call, u: Array, tau: Array) -> Array:
        return call.rng.exponential(size=(call.B, call.p.shape[2]))

    def draw(self, weights: Array, u: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(weights > 0, u / weights, np.inf).argmin(axis=1)


@equivalent("token, Gumbel noise", drivable=False)
class GumbelNoise(ExponentialRace):
    """Draws the last token as the argmax of log-weights and Gumbel noise."""

    def final_uniform(self, call: Call, u: Array, tau: Array) -> Array:
        return call.rng.gumbel(size=(call.B, call.p.shape[2]))

    def draw(self, weights: Array, u: Array) -> Array:
        with np.errstate(divide="ignore"):
            return (np.log(weights) + u).argmax(axis=1)


@equivalent("token, prints as it works")
class Prints(Verifier):
    """Prints a line in each call."""

    def __call__(
        self, draft: Array, q: Array, p: Array, num_draft: Array, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        print('{"verifying": ' + str(len(draft)) + "}")
        return super().__call__(draft, q, p, num_draft, rng)
