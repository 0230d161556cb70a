"""The catalogue of worlds: each makes some fault visible that the others may hide."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType

from draftproof.proof.worlds.world import World

__all__ = ["WORLDS", "random_dyadic", "random_rational"]


def _random_rows(rng: random.Random, V: int, denominator: int) -> list[list[int]]:
    """V rows of V positive integers that sum to the denominator, every composition as likely."""
    rows = []
    for _ in range(V):
        cuts = [0, *sorted(rng.sample(range(1, denominator), V - 1)), denominator]
        rows.append([b - a for a, b in itertools.pairwise(cuts)])
    return rows


def random_dyadic(seed: int, vocabulary: int = 4, bits: int = 6) -> World:
    """Return a random world whose entries are multiples of 2^-bits: float64 sums are exact."""
    rng = random.Random(seed)
    target, draft = (_random_rows(rng, vocabulary, 1 << bits) for _ in range(2))
    return World.chain(
        target, draft, name=f"dyadic-{seed}", why="random; sums in float64 are exact"
    )


def random_rational(seed: int, vocabulary: int = 4) -> World:
    """Return a random world over the denominator 105 = 3 * 5 * 7: no entry is a binary fraction."""
    rng = random.Random(seed)
    target, draft = (_random_rows(rng, vocabulary, 105) for _ in range(2))
    return World.chain(
        target, draft, name=f"rational-{seed}", why="random; no entry is a binary fraction"
    )


_TINY = Fraction(1, 1 << 20)
_HALVES = (Fraction(1, 2) + _TINY, Fraction(1, 4), Fraction(1, 4) - _TINY)
_EQUAL = [(4, 4, 4, 4), (8, 4, 2, 2), (1, 1, 6, 8), (0, 8, 8, 0)]

_ALL = (
    World.chain(
        [(6, 4, 4, 2), (6, 6, 2, 2), (2, 6, 4, 4), (2, 8, 2, 4)],
        [(8, 3, 1, 4), (8, 6, 1, 1), (4, 5, 3, 4), (4, 2, 8, 2)],
        name="L4",
        why="every known wrong rule shifts its law; token's thresholds are multiples of 1/8",
    ),
    World.chain(
        [(35, 28, 21, 21), (15, 45, 15, 30), (21, 35, 35, 14), (30, 30, 10, 35)],
        [(15, 30, 45, 15), (35, 21, 28, 21), (42, 21, 21, 21), (10, 35, 30, 30)],
        name="L357",
        why="thirds, fifths and sevenths: a coarse grid of uniforms cannot hit its thresholds",
    ),
    World.chain(
        [(1, 2), (1, 2)],
        [(2, 1), (2, 1)],
        name="toy",
        why="the smallest world where block beats token: 11/9 against 10/9 accepted of 2",
    ),
    World.chain(
        [(8, 8, 0, 0), (0, 4, 12, 0), (4, 0, 4, 8), (0, 6, 0, 10)],
        [(0, 8, 8, 0), (4, 4, 4, 4), (8, 8, 0, 0), (4, 4, 0, 8)],
        name="zeros",
        why="p = 0 where q > 0, the reverse, and rows that share little: impossible tokens show",
    ),
    World.chain(
        _EQUAL,
        _EQUAL,
        name="equal",
        why="p = q: every draft is accepted, and the residual has no mass",
    ),
    World.chain(
        [_HALVES, _HALVES[::-1], (_HALVES[1], _HALVES[0], _HALVES[2])],
        [(2, 1, 1), (1, 1, 2), (1, 2, 1)],
        name="near-equal",
        why="p and q differ by 2^-20: a residual of almost no mass",
    ),
    World.chain(
        [(0, 1, 0, 0), (0, 0, 1, 0), (4, 4, 4, 4), (1, 0, 0, 0)],
        [(1, 1, 1, 1), (0, 0, 1, 0), (0, 0, 0, 1), (2, 1, 1, 0)],
        name="one-hot",
        why="rows that are certain of one token, on either side",
    ),
    World.chain(
        [(4, 4, 4, 4), (8, 0, 8, 0), (2, 6, 2, 6), (4, 4, 4, 4)],
        [(4, 4, 4, 4), (4, 4, 4, 4), (6, 2, 6, 2), (8, 8, 0, 0)],
        name="ties",
        why="equal entries: an argmax in place of a draw shows",
    ),
    World.chain(
        [(6, 6, 4, 0, 0), (2, 6, 8, 0, 0), (8, 4, 4, 0, 0), (1, 1, 2, 0, 0), (1, 1, 2, 0, 0)],
        [(8, 4, 4, 0, 0), (8, 6, 2, 0, 0), (2, 4, 10, 0, 0), (1, 1, 2, 0, 0), (1, 1, 2, 0, 0)],
        name="padded",
        why="ids at the end of the vocabulary that neither side can write",
    ),
    random_dyadic(1),
    random_rational(1),
)

WORLDS: Mapping[str, World] = MappingProxyType({world.name: world for world in _ALL})
"""By name, the most telling first."""
