"""Tilted likelihoods: bets on a witness of each row, for changing contexts and large vocabularies.

A witness h says of each token of a row whether a usual fault makes it likelier. With z its
standardised form under p, a law that is p (1 + k z) is tilted towards it (k > 0) or away from it,
and the likelihood ratio 1 + k z has expectation 1 under p. The rules of speculative sampling go
wrong along q/p: most of what any of them can do shows in one of the witnesses, at any V.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.proof.anytime.account import Tokens

__all__ = ["DRAFT_WITNESSES", "STRENGTHS", "WITNESSES", "Tilts", "tilted_ratio"]

Array = npt.NDArray[Any]
Witness = Callable[[Array, Array], Array]
"""(p [S, V], q [S, V]) -> h [S, V], finite."""

STRENGTHS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
"""The k, up and down: about the square root of the chi-square distance that they are best at."""
LIMIT = 0.9
"""No token takes more than this part of the wealth."""
FARTHEST = 30.0
"""Logarithms of probabilities and ratios are cut here."""


def tilted_ratio(k: Any, h: Any, mean: Any) -> Any:
    """Return the factor 1 + k (h - mean) of a token of witness h, where h has that mean under p.

    >>> from fractions import Fraction
    >>> law, h = [Fraction(1, 4), Fraction(3, 4)], [2, -1]
    >>> mean = sum(p * x for p, x in zip(law, h))
    >>> sum(p * tilted_ratio(Fraction(1, 5), x, mean) for p, x in zip(law, h))
    Fraction(1, 1)
    """
    return 1 + k * (h - mean)


def _log(x: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.asarray(np.clip(np.log(x), -FARTHEST, FARTHEST))


def _ratio(a: Array, b: Array) -> Array:
    """min(1, a / b), and 1 where b is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(b > 0, np.minimum(1.0, a / b), 1.0))


def _is_largest(x: Array) -> Array:
    return np.asarray(np.arange(x.shape[1]) == x.argmax(axis=1)[:, None])


WITNESSES: Mapping[str, Witness] = MappingProxyType(
    {
        "the likeliest token": lambda p, q: _is_largest(p),
        "the surprisal": lambda p, q: -_log(p),
        "the probability": lambda p, q: p,
        "token 0": lambda p, q: np.broadcast_to(np.arange(p.shape[1]) == 0, p.shape),
        "the last token id": lambda p, q: np.broadcast_to(
            np.arange(p.shape[1]) == p.shape[1] - 1, p.shape
        ),
    }
)
"""Of p alone."""
DRAFT_WITNESSES: Mapping[str, Witness] = MappingProxyType(
    {
        "tokens with q > p": lambda p, q: q > p,
        "min(1, q/p)": lambda p, q: _ratio(q, p),
        "min(1, p/q)": lambda p, q: _ratio(p, q),
        "log q/p": lambda p, q: np.clip(_log(q) - _log(p), -FARTHEST, FARTHEST),
        "the drafter's likeliest token": lambda p, q: _is_largest(q),
    }
)
"""Of p and q."""


class Tilts:
    """Every witness at every strength, up and down.

    Args:
        witnesses: by name.
    """

    def __init__(self, witnesses: Mapping[str, Witness] = WITNESSES) -> None:
        self._witnesses = witnesses
        self._strengths = np.array([sign * k for k in STRENGTHS for sign in (1, -1)])
        self._cached: tuple[Array, list[tuple[Array, tuple[Array, Array]]]] | None = None
        self.labels = [
            f"{name}, {'too often' if k > 0 else 'too rarely'}"
            for name in witnesses
            for k in self._strengths
        ]

    def bet(self, tokens: Tokens) -> Array:
        """See `draftproof.proof.anytime.account.Experts`."""
        if self._cached is None or self._cached[0] is not tokens.p:
            q = tokens.p if tokens.q is None else tokens.q
            tables = [_standardise(h(tokens.p, q), tokens.p) for h in self._witnesses.values()]
            self._cached = tokens.p, [(z, _strongest(z, tokens.p)) for z in tables]
        logs = []
        for z, (most_up, most_down) in self._cached[1]:
            up, down = most_up[tokens.states][:, None], most_down[tokens.states][:, None]
            k = np.clip(self._strengths, -down, up)
            kz = k * z[tokens.states, tokens.ids][:, None]
            logs.append(np.log1p(np.maximum(kz, -LIMIT)))  # less: only where p = 0
        return np.hstack(logs)


def _standardise(h: Array, p: Array) -> Array:
    """Return z [S, V] of mean 0 and variance 1 under each row; 0 where a row has no variance."""
    h = h.astype(np.float64)
    h = h - (p * h).sum(axis=1, keepdims=True) / p.sum(axis=1, keepdims=True)
    deviation = np.sqrt((p * h * h).sum(axis=1, keepdims=True))
    return np.asarray(np.divide(h, deviation, out=np.zeros_like(h), where=deviation > 1e-12))


def _strongest(z: Array, p: Array) -> tuple[Array, Array]:
    """The largest k up and down, [S] each, by which no possible token takes more than `LIMIT`."""
    lowest = np.where(p > 0, z, 0).min(axis=1)
    highest = np.where(p > 0, z, 0).max(axis=1)
    with np.errstate(divide="ignore"):
        return LIMIT / np.maximum(-lowest, 0), LIMIT / np.maximum(highest, 0)
