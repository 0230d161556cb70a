"""An account that bets against the null: the average wealth of experts, and Ville's bound on it.

Each expert starts with 1 and multiplies it, token by token, by a factor whose expectation is 1 if
the subject is right, whatever happened before. So is the average of all of them a martingale of
expectation 1, and by Ville's inequality a right subject ever takes it to 1/a with probability at
most a. It may therefore be looked at after every token, for as long as one likes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["LEVEL", "Account", "Experts", "Tokens", "log_sum_exp"]

Array = npt.NDArray[Any]

LEVEL = 1e6
"""The wealth at which a subject counts as wrong: a false alarm in a million, over all time."""
CHUNK = 1_024
"""Tokens whose wealth is worked out at once."""


@dataclass(frozen=True, eq=False)
class Tokens:
    """Tokens beside the laws that they should have come from.

    Attributes:
        p: [S, V], the target's laws: token i should have come from ``p[states[i]]``.
        states: [N] rows of p.
        ids: [N] tokens.
        q: [S, V], the draft laws beside p; None where they are not known.
        keys: [N] names of contexts, 0, 1, 2, ..., whose tokens are counted together, or -1 for
            contexts that are not worth it; None for the rows themselves. They may be any function
            of the context: what is learned is bet on, not believed.
    """

    p: Array
    states: Array
    ids: Array
    q: Array | None = None
    keys: Array | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def chunks(self) -> Iterator[Tokens]:
        """Cut into pieces of at most `CHUNK` tokens."""
        for start in range(0, len(self), CHUNK):
            part = slice(start, start + CHUNK)
            keys = None if self.keys is None else self.keys[part]
            yield Tokens(self.p, self.states[part], self.ids[part], self.q, keys)


class Experts(Protocol):
    """Some that bet alike."""

    @property
    def labels(self) -> Sequence[str]:
        """A name for each expert, in words that a verdict can use."""

    def bet(self, tokens: Tokens) -> Array:
        """Return [N, experts], the logarithms of the factors; and learn from the tokens."""


class Account:
    """The average wealth of families of experts; every family has the same share at the start.

    Attributes:
        tokens: how many were seen.
        log_e: the logarithm of the e-value: of the wealth after the last token.
        log_peak: of the largest wealth so far.
        decided_after: tokens until the wealth first reached ``level``; None as long as it has not.
    """

    def __init__(self, *families: Experts, level: float = LEVEL) -> None:
        self._families = families
        self._log_wealth = np.concatenate(
            [np.full(len(f.labels), -np.log(len(families) * len(f.labels))) for f in families]
        )
        self._log_level = float(np.log(level))
        self.labels = [label for family in families for label in family.labels]
        self.tokens = 0
        self.log_e = self.log_peak = 0.0
        self.decided_after: int | None = None

    @property
    def leader(self) -> str:
        """The label of the richest expert: what the subject gets wrong, if it does."""
        return self.labels[int(np.argmax(self._log_wealth))]

    @property
    def false_alarm(self) -> float:
        """By Ville, the probability that a right subject ever makes the wealth so large."""
        return float(np.exp(-max(0.0, self.log_peak)))

    def observe(self, tokens: Tokens) -> bool:
        """Bet on tokens, in order; return whether the level has been reached by now.

        A token that its law cannot give settles the matter: the wealth is infinite from then on.
        """
        for chunk in tokens.chunks():
            steps = np.hstack([family.bet(chunk) for family in self._families])
            steps[chunk.p[chunk.states, chunk.ids] <= 0] = np.inf
            self._settle(steps)
        return self.decided_after is not None

    def _settle(self, steps: Array) -> None:
        path = self._log_wealth + steps.cumsum(axis=0)
        self._log_wealth = path[-1]
        log_e = log_sum_exp(path)
        reached = np.flatnonzero(log_e >= self._log_level)
        if self.decided_after is None and len(reached):
            self.decided_after = self.tokens + int(reached[0]) + 1
        self.log_peak = max(self.log_peak, float(log_e.max()))
        self.log_e = float(log_e[-1])
        self.tokens += len(steps)


def log_sum_exp(logs: Array) -> Array:
    """Return the logarithm of the sum of exponentials, over the last axis; infinite if one is."""
    largest = logs.max(axis=-1, keepdims=True)
    shift = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(over="ignore"):
        return np.asarray(np.log(np.exp(logs - shift).sum(axis=-1)) + shift[..., 0])
