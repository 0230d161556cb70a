"""Bets on known faults: is a draft drawn from another law than its row, and from which?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.proof.anytime.account import Tokens

__all__ = ["SUSPECTS", "Neighbours", "Suspects"]

Array = npt.NDArray[Any]
Suspect = Callable[[Array], Array]
"""Rows [S, V] that were declared -> the rows that drafts would then come from."""

DOUBT = 1 / 16
"""Part of each bet that stays on the declared row: no draft takes more than all but this part."""


def _normalised(weights: Array) -> Array:
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _top(k: int) -> Suspect:
    def law(q: Array) -> Array:
        ranks = np.argsort(np.argsort(-q, axis=1, kind="stable"), axis=1)
        return _normalised(np.where(ranks < k, q, 0))

    return law


def _nucleus(mass: float) -> Suspect:
    def law(q: Array) -> Array:
        order = np.argsort(-q, axis=1, kind="stable")
        ranked = np.take_along_axis(q, order, axis=1)
        kept = np.empty(q.shape, dtype=np.bool_)
        np.put_along_axis(kept, order, ranked.cumsum(axis=1) - ranked < mass, axis=1)
        return _normalised(np.where(kept, q, 0))

    return law


def _floor(share: float) -> Suspect:
    return lambda q: _normalised(np.where(q >= share * q.max(axis=1, keepdims=True), q, 0))


def _temperature(T: float) -> Suspect:
    return lambda q: _normalised((q / q.max(axis=1, keepdims=True)) ** (1 / T))


def bf16(x: Array) -> Array:
    """Round to 8 significant bits, half to even."""
    bits = np.ascontiguousarray(x, dtype=np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
    return np.asarray(rounded.view(np.float32), dtype=np.float64)


def _bf16_logarithms(q: Array) -> Array:
    with np.errstate(divide="ignore"):
        logs = bf16(np.maximum(np.log(q / q.max(axis=1, keepdims=True)), -1e30))
    return _normalised(np.where(q > 0, np.exp(logs), 0))


SUSPECTS: Mapping[str, Suspect] = MappingProxyType(
    {
        "the likeliest token alone": _top(1),
        **{f"the {k} likeliest tokens": _top(k) for k in (2, 3, 5, 10, 20, 40, 50, 100)},
        **{f"the nucleus of {mass:g}": _nucleus(mass) for mass in (0.5, 0.8, 0.9, 0.95, 0.99)},
        **{f"tokens above {s:g} of the likeliest": _floor(s) for s in (0.02, 0.05, 0.1)},
        **{
            f"a temperature of {T:g} of the row's": _temperature(T)
            for T in (0.25, 0.5, 0.6, 0.7, 0.8, 0.9, 1.1, 1.25, 1.5, 2.0)
        },
        "the row rounded to bf16": lambda q: _normalised(bf16(q)),
        "the row's logarithms rounded to bf16": _bf16_logarithms,
        "the row rounded to float16": lambda q: _normalised(
            q.astype(np.float16).astype(np.float64)
        ),
        "ids one below": lambda q: np.roll(q, -1, axis=1),
        "ids one above": lambda q: np.roll(q, 1, axis=1),
    }
)
"""What drafts are drawn from where the declared row is not it, by name."""


class Suspects:
    """One expert for each suspect law q': its factor is (1 - `DOUBT`) q'/q + `DOUBT`."""

    def __init__(self) -> None:
        self.labels = list(SUSPECTS)
        self._cached: tuple[Array, Array] | None = None

    def bet(self, tokens: Tokens) -> Array:
        """See `draftproof.proof.anytime.account.Experts`."""
        if self._cached is None or self._cached[0] is not tokens.p:
            laws = np.stack([suspect(tokens.p) for suspect in SUSPECTS.values()], axis=2)
            self._cached = tokens.p, laws
        return _bet(self._cached[1][tokens.states, tokens.ids], tokens)


class Neighbours:
    """Rows of other requests: of the same call, on average, and of the draft before.

    Args:
        calls: [N] the calls that the drafts were drawn in, all the account will ever see. Rows of
            one call must have been there before any of its drafts was drawn.
    """

    def __init__(self, rows: Array, states: Array, calls: Array | None) -> None:
        self.labels = ["another row of its call", "the row of the draft before"]
        self._rows, self._states, self._calls, self._done = rows, states, calls, 0

    def bet(self, tokens: Tokens) -> Array:
        """See `draftproof.proof.anytime.account.Experts`."""
        places = self._done + np.arange(len(tokens))
        self._done += len(tokens)
        own = tokens.p[tokens.states, tokens.ids]
        laws = np.column_stack([own, own])
        before = self._states[np.maximum(places - 1, 0)]
        laws[:, 1] = self._rows[before, tokens.ids]
        if self._calls is not None:
            for i, (place, token) in enumerate(zip(places, tokens.ids, strict=True)):
                mates = np.flatnonzero(self._calls == self._calls[place])
                if len(mates) > 1:
                    all_rows = self._rows[self._states[mates], token].sum()
                    laws[i, 0] = (all_rows - own[i]) / (len(mates) - 1)
        return _bet(laws, tokens)


def _bet(laws: Array, tokens: Tokens) -> Array:
    own = tokens.p[tokens.states, tokens.ids][:, None]
    with np.errstate(divide="ignore", invalid="ignore"):  # q = 0 is settled by the account
        return np.asarray(np.log((1 - DOUBT) * laws / own + DOUBT))
