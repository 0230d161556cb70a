# ruff: noqa: D102
"""Rows of unequal length: what lies past a row's drafts is read, counted, or another row's."""

from __future__ import annotations

import numpy as np

from draftproof.proof.mutants.registry import mutant
from draftproof.proof.mutants.skeleton import Array, Call, Verifier


class ReadsPadding(Verifier):
    """Reads what it must not, and is quiet about NaN there."""

    def __call__(
        self, draft: Array, q: Array, p: Array, num_draft: Array, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        with np.errstate(invalid="ignore"):
            return super().__call__(draft, q, p, num_draft, rng)


@mutant("bonus from row K", seen="padding")
class BonusFromPadding(ReadsPadding):
    """Draws the bonus of every row from the last row of the batch's layout, not from the row's."""

    def bonus_law(self, call: Call, rows: Array, at: Array) -> Array:
        return call.p[rows, call.K]


@mutant("pad recovered with a stale row", seen="padding")
class PadRecoveredWithStaleRow(Verifier):
    """Takes the first pad for a rejected draft: the bonus loses q of the last draft's row."""

    def bonus_law(self, call: Call, rows: Array, at: Array) -> Array:
        weights = super().bonus_law(call, rows, at)
        padded = np.flatnonzero((at > 0) & (at < call.K))
        q = call.q[rows[padded], at[padded] - 1]
        residual = np.maximum(weights[padded] - q, 0)
        has_mass = residual.sum(axis=1, keepdims=True) > 0
        weights[padded] = np.where(has_mass, residual, weights[padded])
        return weights


class PadsTested(ReadsPadding):
    """Tests pads too, and emits those that pass; the last token then comes from the last row."""

    def accept(self, call: Call, u: Array) -> Array:
        return super().accept(call, u) | (~call.valid & self.pads_pass(call, u))

    def pads_pass(self, call: Call, u: Array) -> Array:
        """Which pads are accepted, [B, K]; what drafts do there does not matter."""
        return np.zeros(u.shape, dtype=np.bool_)

    def emit(self, call: Call, tau: Array, last: Array) -> tuple[Array, Array]:
        tokens, n = super().emit(call, tau, last)
        tokens[:, :-1][(tokens[:, :-1] < 0) & (np.arange(call.K) < tau[:, None])] = 0
        return tokens, n


@mutant("pads accepted", public="flashinfer #879, #3551", kind="broken", seen="padding")
class PadsAccepted(PadsTested):
    """Accepts a pad, since 0 <= 0: more tokens come out than drafts and a bonus."""

    def pads_pass(self, call: Call, u: Array) -> Array:
        return np.ones(u.shape, dtype=np.bool_)


@mutant("pads judged by a stale row", kind="broken", seen="padding")
class PadsJudgedByStaleRow(PadsTested):
    """Tests pads as token 0 against the row of the last draft, and emits those that pass."""

    def pads_pass(self, call: Call, u: Array) -> Array:
        passes = np.zeros(u.shape, dtype=np.bool_)
        pads = ~call.valid & (call.num_draft > 0)[:, None]
        rows = np.nonzero(pads)[0]
        last = call.num_draft[rows] - 1
        passes[pads] = self.test(call.p[rows, last, 0], call.q[rows, last, 0], u[pads])
        return passes


@mutant("num_draft ignored", seen="padding")
class LengthsIgnored(ReadsPadding):
    """Takes every row for K drafts long, whatever lies in the padding."""

    def __call__(
        self, draft: Array, q: Array, p: Array, num_draft: Array, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        return super().__call__(draft, q, p, np.full_like(num_draft, draft.shape[1]), rng)


@mutant("length told by pads of -1", kind="broken", seen="padding")
class LengthByPads(Verifier):
    """Takes a row to end before its first draft of -1, whatever ``num_draft`` says."""

    def __call__(
        self, draft: Array, q: Array, p: Array, num_draft: Array, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        length = np.logical_and.accumulate(draft >= 0, axis=1).sum(axis=1)
        return super().__call__(draft, q, p, length, rng)


@mutant("padded length counted", public="vllm #50518", kind="broken", seen="padding")
class PaddedLengthCounted(Verifier):
    """Reports K + 1 tokens for a row whose drafts were all accepted, however few it had."""

    def emit(self, call: Call, tau: Array, last: Array) -> tuple[Array, Array]:
        tokens, n = super().emit(call, tau, last)
        return tokens, np.where(tau == call.num_draft, call.K + 1, n)


@mutant("no bonus for short rows", kind="broken", seen="padding")
class NoBonusForShortRows(Verifier):
    """Gives a bonus to rows of K drafts only: a short row without drafts emits nothing."""

    def emit(self, call: Call, tau: Array, last: Array) -> tuple[Array, Array]:
        tokens, n = super().emit(call, tau, last)
        short = np.flatnonzero((tau == call.num_draft) & (tau < call.K))
        tokens[short, tau[short]] = -1
        n[short] -= 1
        return tokens, n


@mutant("q of the neighbouring row", public="1Cat-vLLM #656", seen="rows")
class DraftLawOfNeighbour(ReadsPadding):
    """Verifies each row with the draft law of the row before it."""

    def __call__(
        self, draft: Array, q: Array, p: Array, num_draft: Array, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        return super().__call__(draft, np.roll(q, 1, axis=0), p, num_draft, rng)


@mutant("q of another row in a larger batch", public="1Cat-vLLM #656", seen="batch")
class DraftLawOfOthers(ReadsPadding):
    """Verifies each row with the draft law of the row before it, if there are more than two."""

    def __call__(
        self, draft: Array, q: Array, p: Array, num_draft: Array, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        others = np.roll(q, int(len(draft) > 2), axis=0)
        return super().__call__(draft, others, p, num_draft, rng)


@mutant("best row's length for all", public="lucidrains #3", seen="rows")
class BestLengthForAll(Verifier):
    """Lets each row keep as many of its drafts as the luckiest row: rejected ones stay."""

    def emit(self, call: Call, tau: Array, last: Array) -> tuple[Array, Array]:
        return super().emit(call, np.minimum(tau.max(initial=0), call.num_draft), last)
