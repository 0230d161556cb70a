# ruff: noqa: D102
"""Uniforms that are shared, used twice, fixed, or too coarse."""

from __future__ import annotations

import numpy as np

from draftproof.proof.mutants.registry import mutant
from draftproof.proof.mutants.skeleton import Array, Call, Verifier

__all__ = ["SharedUniform"]


@mutant("one uniform for all")
class SharedUniform(Verifier):
    """Tests all drafts of a row with one uniform."""

    def accept_uniforms(self, call: Call) -> Array:
        return np.broadcast_to(call.rng.random((call.B, 1)), (call.B, call.K))


@mutant("coin of the last test reused", public="sglang #7231")
class ReusedCoin(Verifier):
    """Draws the last token with the uniform of the last accept test that was looked at."""

    def final_uniform(self, call: Call, u: Array, tau: Array) -> Array:
        uniforms = super().final_uniform(call, u, tau)
        drafted = np.flatnonzero(call.num_draft > 0)
        looked_at = np.minimum(tau, call.num_draft - 1)
        uniforms[drafted] = u[drafted, looked_at[drafted]]
        return uniforms


@mutant("last accept uniform reused")
class ReusedLastUniform(Verifier):
    """Draws the last token with the uniform in the last column of the accept tests."""

    def final_uniform(self, call: Call, u: Array, tau: Array) -> Array:
        return u[:, -1] if call.K else super().final_uniform(call, u, tau)


@mutant("coin is a token's noise", public="vllm-ascend #16920", drivable=False)
class CoinIsTokenNoise(Verifier):
    """Draws the last token by an exponential race in which token 0 runs on the accept uniform."""

    def final_uniform(self, call: Call, u: Array, tau: Array) -> Array:
        noise = call.rng.exponential(size=(call.B, call.p.shape[2]))
        drafted = np.flatnonzero(call.num_draft > 0)
        looked_at = np.minimum(tau, call.num_draft - 1)
        with np.errstate(divide="ignore"):
            noise[drafted, 0] = -np.log(u[drafted, looked_at[drafted]])
        return noise

    def draw(self, weights: Array, u: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(weights > 0, u / weights, np.inf).argmin(axis=1)


def uniform_behind_draft(call: Call, v: Array) -> Array:
    """Return the uniforms [B, K] with which an inverse-CDF drafter drew the drafts.

    Given draft x such a uniform is uniform between C(x-1) and C(x): a fresh v says where.
    """
    valid = call.valid
    rows, positions = np.nonzero(valid)
    tokens = call.draft[valid]
    below = np.zeros((len(rows), 1 + call.q.shape[2]))
    below[:, 1:] = call.q[rows, positions].cumsum(axis=1)
    behind = v.copy()
    behind[valid] = below[np.arange(len(rows)), tokens] + v[valid] * call.drafted()[1][valid]
    return behind


@mutant("draft's uniform reused to accept", public="vllm #54282")
class DraftUniformAccepts(Verifier):
    """Tests each draft with the uniform that it was drawn with."""

    def accept_uniforms(self, call: Call) -> Array:
        return uniform_behind_draft(call, super().accept_uniforms(call))


@mutant("draft's uniform reused to recover", public="vllm #54282")
class DraftUniformRecovers(Verifier):
    """Recovers from a rejection with the uniform that the draft was drawn with."""

    def final_uniform(self, call: Call, u: Array, tau: Array) -> Array:
        uniforms = super().final_uniform(call, u, tau)
        behind = uniform_behind_draft(call, call.rng.random((call.B, call.K)))
        rejected = np.flatnonzero(tau < call.num_draft)
        uniforms[rejected] = behind[rejected, tau[rejected]]
        return uniforms

    def draw(self, weights: Array, u: Array) -> Array:
        # The drafter's running sum may exceed 1 by its rounding.
        return np.minimum(super().draw(weights, u), weights.shape[1] - 1)


@mutant("fixed seed in each call", public="vllm #6038")
class SeededEachCall(Verifier):
    """Starts a generator of its own with seed 0 in each call."""

    def accept_uniforms(self, call: Call) -> Array:
        self.rng = np.random.default_rng(0)
        return self.rng.random((call.B, call.K))

    def final_uniform(self, call: Call, u: Array, tau: Array) -> Array:
        return self.rng.random(call.B)


@mutant("fixed seed at the start", public="vllm #13196", drivable=False, seen="seeds")
class SeededOnce(SeededEachCall):
    """Draws from a generator of its own that was seeded with 0 when the program started."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def accept_uniforms(self, call: Call) -> Array:
        return self.rng.random((call.B, call.K))


@mutant("same noise for all rows", seen="rows")
class NoiseSharedByRows(Verifier):
    """Uses the uniforms of the first row for all rows, in the tests and for the last token."""

    def accept_uniforms(self, call: Call) -> Array:
        return np.broadcast_to(super().accept_uniforms(call)[:1], (call.B, call.K))

    def final_uniform(self, call: Call, u: Array, tau: Array) -> Array:
        return np.broadcast_to(super().final_uniform(call, u, tau)[:1], call.B)


@mutant("same last uniform for all rows", seen="rows")
class LastUniformSharedByRows(Verifier):
    """Uses one uniform for the last tokens of all rows."""

    def final_uniform(self, call: Call, u: Array, tau: Array) -> Array:
        return np.broadcast_to(super().final_uniform(call, u, tau)[:1], call.B)


@mutant("rows in pairs share noise", seen="rows")
class NoiseSharedByPairs(Verifier):
    """Gives rows 2i and 2i + 1 the same accept uniforms."""

    def accept_uniforms(self, call: Call) -> Array:
        return super().accept_uniforms(call)[np.arange(call.B) // 2 * 2]


@mutant("rows 64 apart share noise", seen="batch")
class NoiseSharedByHalves(Verifier):
    """Gives the second 64 rows of each 128 the uniforms of the first 64."""

    def accept_uniforms(self, call: Call) -> Array:
        return super().accept_uniforms(call)[self.rows(call)]

    def final_uniform(self, call: Call, u: Array, tau: Array) -> Array:
        return super().final_uniform(call, u, tau)[self.rows(call)]

    def rows(self, call: Call) -> Array:
        """Whose uniforms each row gets, [B]."""
        rows = np.arange(call.B)
        return rows - rows // 64 % 2 * 64


@mutant("last row's coin left at 0", public="vllm #9441")
class LastCoinUnset(Verifier):
    """Never fills the last place of its buffer: the last token of the last row is drawn with 0."""

    def final_uniform(self, call: Call, u: Array, tau: Array) -> Array:
        uniforms = super().final_uniform(call, u, tau)
        uniforms[-1:] = 0
        return uniforms


@mutant("last noise anew for each generator", public="vllm #6038", seen="seeds")
class LastNoiseAnew(Verifier):
    """Draws last tokens from a generator of its own that each of the caller's starts anew."""

    def __init__(self) -> None:
        self.theirs: np.random.Generator | None = None

    def final_uniform(self, call: Call, u: Array, tau: Array) -> Array:
        if call.rng is not self.theirs:
            self.theirs, self.own = call.rng, np.random.default_rng(0)
        return self.own.random(call.B)


@mutant("noise kept between calls", kind="rounds", seen="rounds")
class NoiseKept(Verifier):
    """Draws its accept uniforms once for each shape and generator, and uses them in every call."""

    def __init__(self) -> None:
        self.rng: np.random.Generator | None = None
        self.kept: dict[tuple[int, int], Array] = {}

    def accept_uniforms(self, call: Call) -> Array:
        if call.rng is not self.rng:
            self.rng, self.kept = call.rng, {}
        if (call.B, call.K) not in self.kept:
            self.kept[call.B, call.K] = super().accept_uniforms(call)
        return self.kept[call.B, call.K]


@mutant("two buffers of noise", kind="rounds", seen="rounds")
class NoiseBuffered(Verifier):
    """Fills two buffers of noise for each shape, and then takes them in turn for ever."""

    def __init__(self) -> None:
        self.rng: np.random.Generator | None = None
        self.buffers: dict[tuple[int, ...], list[Array]] = {}

    def accept_uniforms(self, call: Call) -> Array:
        if call.rng is not self.rng:
            self.rng, self.buffers = call.rng, {}
        return self.next(call.B, call.K, fresh=super().accept_uniforms(call))

    def final_uniform(self, call: Call, u: Array, tau: Array) -> Array:
        return self.next(call.B, fresh=super().final_uniform(call, u, tau))

    def next(self, *shape: int, fresh: Array) -> Array:
        """The older of two buffers, or fresh noise as long as there are not two."""
        buffers = self.buffers.setdefault(shape, [])
        buffers.append(fresh if len(buffers) < 2 else buffers.pop(0))
        return buffers[-1]


class Coarse(Verifier):
    """Tests with a uniform of few bits, by ``<`` or by ``<=``.

    A uniform k / 2^bits lies below t iff a full one lies below t rounded up to the grid, and at or
    below t iff a full one lies below the next point of the grid.
    """

    bits = 53
    or_equal = False

    def test(self, p: Array, q: Array, u: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            k = p / q * 2.0**self.bits
        k = np.floor(k) + 1 if self.or_equal else np.ceil(k)
        return u < k / 2.0**self.bits


@mutant("bf16 uniforms below the ratio", public="gpt-fast", world="L357")
class Bfloat16Below(Coarse):
    """Accepts iff u < p / q, for u on a grid of 1/256: p / q = 2^-10 passes 1 time in 256."""

    bits = 8


@mutant("bf16 uniforms up to the ratio", public="gpt-fast")
class Bfloat16UpTo(Coarse):
    """Accepts iff u <= p / q, for u on a grid of 1/256: an impossible token 1 time in 256."""

    bits, or_equal = 8, True


@mutant(
    "float32 uniforms up to the ratio",
    public="sglang #35771, vllm #13933",
    kind="float",
    seen="support",
)
class Float32UpTo(Coarse):
    """Accepts iff u <= p / q, for u of 24 bits: an impossible token 1 time in 2^24."""

    bits, or_equal = 24, True


@mutant("uniforms rounded to float32", kind="float", seen="support")
class Float32Rounded(Verifier):
    """Rounds its uniforms to float32, which makes 1 time in 2^25 a 1, past all tokens."""

    def accept_uniforms(self, call: Call) -> Array:
        return super().accept_uniforms(call).astype(np.float32)

    def final_uniform(self, call: Call, u: Array, tau: Array) -> Array:
        return super().final_uniform(call, u, tau).astype(np.float32)

    def draw(self, weights: Array, u: Array) -> Array:
        return np.minimum(super().draw(weights, u), weights.shape[1] - 1)
