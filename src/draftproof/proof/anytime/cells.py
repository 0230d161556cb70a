"""Dirichlet mixtures over cells: they learn a law from its tokens, whatever is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.proof.anytime.account import Tokens

__all__ = ["CONCENTRATIONS", "Cells", "Transforms", "predictive_ratio"]

Array = npt.NDArray[Any]

CONCENTRATIONS = tuple(4.0**k for k in range(1, 10))
"""Of the Dirichlet priors around each law: a few tokens' worth of trust in it, up to very much."""
BINS = 16
"""Of the randomised probability integral transform."""


def predictive_ratio(
    count: int, total: int, probability: Fraction, concentration: Fraction
) -> Fraction:
    """Return the factor (c + A p) / ((n + A) p) of a token of probability p, seen c times in n.

    The numerator sums to n + A over all tokens: the factor's expectation under p is 1.

    >>> law = [Fraction(1, 4), Fraction(3, 4)]
    >>> sum(p * predictive_ratio(c, 5, p, Fraction(8)) for p, c in zip(law, [4, 1]))
    Fraction(1, 1)
    """
    return (count + concentration * probability) / ((total + concentration) * probability)


class Cells:
    """One Dirichlet mixture for each concentration A, over the tokens of each context.

    ::

        factor = (c + A p) / ((n + A) p)     c times this token in n tokens of its context before

    Args:
        concentrations: the A.
        what: of what the cells are, for the labels.
    """

    def __init__(
        self, concentrations: Sequence[float] = CONCENTRATIONS, what: str = "the tokens' frequency"
    ) -> None:
        self._concentrations: Array = np.asarray(concentrations, dtype=np.float64)
        self._counts: Array = np.empty((0, 0), dtype=np.int32)
        self._totals: Array = np.empty(0, dtype=np.int64)
        self.labels = [what] * len(self._concentrations)

    def bet(self, tokens: Tokens) -> Array:
        """See `draftproof.proof.anytime.account.Experts`."""
        keys = tokens.states if tokens.keys is None else tokens.keys
        logs = np.zeros((len(tokens), len(self._concentrations)))
        known = np.flatnonzero(keys >= 0)
        if not len(known):
            return logs
        keys, ids, V = keys[known], tokens.ids[known], tokens.p.shape[1]
        self._make_room(int(keys.max()) + 1, V)
        seen = self._counts[keys, ids] + _earlier(keys * V + ids)
        total = self._totals[keys] + _earlier(keys)
        np.add.at(self._counts, (keys, ids), 1)
        np.add.at(self._totals, keys, 1)
        p, A = tokens.p[tokens.states[known], ids][:, None], self._concentrations
        with np.errstate(divide="ignore", invalid="ignore"):  # p = 0 is settled by the account
            logs[known] = np.log((seen[:, None] + A * p) / ((total[:, None] + A) * p))
        return logs

    def _make_room(self, keys: int, V: int) -> None:
        missing = keys - len(self._totals)
        if missing > 0:
            more = np.zeros((max(missing, len(self._totals)), V), dtype=np.int32)
            self._counts = np.vstack([self._counts.reshape(-1, V), more])
            self._totals = np.append(self._totals, np.zeros(len(more), dtype=np.int64))


class Transforms:
    """Cells of the randomised probability integral transform: they follow changing contexts.

    Order a row's tokens in any way that does not look at the one that was drawn. The mass before
    the drawn token plus a uniform part of its own is uniform on [0, 1), whatever the row. Its
    `BINS` equal bins have a Dirichlet mixture: by token id and, where draft laws are known, by q/p.

    Args:
        rng: of the uniform parts.
    """

    def __init__(self, rng: np.random.Generator, with_draft: bool = False) -> None:
        self._rng = rng
        orders = ["the place in the vocabulary", "the ratio q/p"][: 1 + with_draft]
        self._cells = [Cells(what=order) for order in orders]
        self._tables: tuple[Array, list[Array]] | None = None
        self.labels = [label for cells in self._cells for label in cells.labels]

    def bet(self, tokens: Tokens) -> Array:
        """See `draftproof.proof.anytime.account.Experts`."""
        if self._tables is None or self._tables[0] is not tokens.p:
            orders = [np.broadcast_to(np.arange(tokens.p.shape[1]), tokens.p.shape)]
            if len(self._cells) > 1:
                assert tokens.q is not None
                with np.errstate(divide="ignore", invalid="ignore"):
                    orders.append(np.argsort(tokens.q / tokens.p, axis=1, kind="stable"))
            self._tables = tokens.p, [_mass_before(tokens.p, order) for order in orders]
        states, ids, law = tokens.states, tokens.ids, np.full((1, BINS), 1 / BINS)
        part = self._rng.random(len(tokens)) * tokens.p[states, ids]
        logs = []
        for cells, before in zip(self._cells, self._tables[1], strict=True):
            bins = ((before[states, ids] + part) * BINS).astype(np.int64).clip(0, BINS - 1)
            logs.append(cells.bet(Tokens(law, np.zeros_like(bins), bins)))
        return np.hstack(logs)


def _mass_before(p: Array, order: Array) -> Array:
    """The mass [S, V] of the tokens that stand before each one in an order."""
    mass = np.take_along_axis(p, order, axis=1)
    total = mass.cumsum(axis=1)
    before = np.empty_like(p)
    np.put_along_axis(before, order, (total - mass) / total[:, -1:], axis=1)
    return before


def _earlier(keys: Array) -> Array:
    """How often each key stands before its place."""
    order = np.argsort(keys, kind="stable")
    ranked = keys[order]
    starts = np.flatnonzero(np.append(True, ranked[1:] != ranked[:-1]))
    lengths = np.diff(np.append(starts, len(keys)))
    earlier = np.empty(len(keys), dtype=np.int64)
    earlier[order] = np.arange(len(keys)) - np.repeat(starts, lengths)
    return earlier
