# ruff: noqa: D102
"""Wrong laws after the last draft, and wrong counts of accepted drafts."""

from __future__ import annotations

import numpy as np

from draftproof.proof.mutants.registry import mutant
from draftproof.proof.mutants.skeleton import Array, Call, Verifier, likeliest


class BonusFromLastDraft(Verifier):
    """Takes the bonus from a law of the last draft's row; a row without drafts is right."""

    def bonus_law(self, call: Call, rows: Array, at: Array) -> Array:
        weights = super().bonus_law(call, rows, at)
        drafted = np.flatnonzero(at > 0)
        weights[drafted] = self.wrong_bonus(call, rows[drafted], at[drafted] - 1)
        return weights

    def wrong_bonus(self, call: Call, rows: Array, last: Array) -> Array:
        """Return the bonus law [n, V]; ``last`` is the row of the last draft."""
        return call.p[rows, last]


@mutant("bonus from the last draft's row", public="EAGLE #47")
class BonusFromLastRow(BonusFromLastDraft):
    """Draws the bonus from p of the last draft's row."""


@mutant("bonus from the residual")
class BonusFromResidual(BonusFromLastDraft):
    """Draws the bonus from (p - q)+ of the last draft's row."""

    def wrong_bonus(self, call: Call, rows: Array, last: Array) -> Array:
        return self.recovery_law(call, rows, last)


@mutant("bonus from q")
class BonusFromDraftLaw(BonusFromLastDraft):
    """Draws the bonus from the draft law of the last draft's row."""

    def wrong_bonus(self, call: Call, rows: Array, last: Array) -> Array:
        return call.q[rows, last]


@mutant("bonus from the raw law", public="EAGLE up to 2025-04, transformers up to 4.34")
class BonusFromRawLaw(Verifier):
    """Draws the bonus as though no temperature of 1/2 were set: from the square root of p."""

    def bonus_law(self, call: Call, rows: Array, at: Array) -> Array:
        return np.sqrt(super().bonus_law(call, rows, at))


@mutant("bonus is the argmax")
class BonusIsArgmax(Verifier):
    """Emits the likeliest token of p as the bonus."""

    def bonus_law(self, call: Call, rows: Array, at: Array) -> Array:
        weights = super().bonus_law(call, rows, at)
        return likeliest(weights)


@mutant("greedy without drafts", public="sglang #31214", seen="empty")
class GreedyWithoutDrafts(Verifier):
    """Emits the likeliest token of p where K = 0: a step without drafts takes another path."""

    def bonus_law(self, call: Call, rows: Array, at: Array) -> Array:
        weights = super().bonus_law(call, rows, at)
        return weights if call.K else likeliest(weights)


@mutant("counts past the first rejection", public="vllm #2658")
class CountsPastRejection(Verifier):
    """Counts all drafts that passed their test, also those after a rejection."""

    def count(self, call: Call, accepts: Array) -> Array:
        return accepts.sum(axis=1)


@mutant("keeps up to the last accepted draft")
class KeepsUpToLastAccepted(Verifier):
    """Keeps the drafts up to the last that passed its test, rejected ones among them."""

    def count(self, call: Call, accepts: Array) -> Array:
        return (accepts * np.arange(1, call.K + 1)).max(axis=1, initial=0)


@mutant("drops the last accepted draft")
class DropsLastAccepted(Verifier):
    """Counts one draft too few and draws from the residual in its place."""

    def count(self, call: Call, accepts: Array) -> Array:
        return np.maximum(super().count(call, accepts) - 1, 0)


@mutant("emits the rejected draft")
class EmitsRejected(Verifier):
    """Counts one draft too many: the rejected one stays in the text."""

    def count(self, call: Call, accepts: Array) -> Array:
        return np.minimum(super().count(call, accepts) + 1, call.num_draft)
