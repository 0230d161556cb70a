"""The cases of the practice problem: those that its text decides, and those that it leaves open.

All numbers that are compared are binary fractions, or far apart: no answer hangs on a rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from draftproof.practice import verify_speculative_tokens

__all__ = ["DECIDED", "OPEN", "Case"]


@dataclass(frozen=True)
class Case:
    """One call of the practice function.

    Attributes:
        name: what it asks.
        arguments: draft_tokens, draft_probs, target_probs, random_samples.
        wanted: the dict to return, or ValueError. For an open case our own answer.
        points: what it scores.
    """

    name: str
    arguments: tuple[list[Any], list[Any], list[Any], list[Any]]
    wanted: dict[str, Any] | type[ValueError]
    points: int = 0


def _gives(accepted: list[int], bonus: int | None) -> dict[str, Any]:
    return {
        "accepted_tokens": accepted,
        "bonus_token": bonus,
        "acceptance_count": len(accepted),
    }


_HALF = [0.5, 0.5]
_FLAT = [0.25, 0.25, 0.25, 0.25]
_PEAKED = [0.5, 0.25, 0.125, 0.125]
_LONG = 200

DECIDED = (
    # The three public examples.
    Case(
        "public example: both drafts accepted, then a bonus",
        (
            [2, 1],
            [[0.1, 0.2, 0.7], [0.2, 0.6, 0.2]],
            [[0.05, 0.15, 0.8], [0.1, 0.7, 0.2], [0.5, 0.3, 0.2]],
            [0.5, 0.4],
        ),
        _gives([2, 1], 0),
        10,
    ),
    Case(
        "public example: .9/.1 > 1 accepts, and there is no row for a bonus",
        ([0, 1], [[0.8, 0.2], [0.9, 0.1]], [[0.9, 0.1], [0.1, 0.9]], [0.5, 0.8]),
        _gives([0, 1], None),
        10,
    ),
    Case(
        "public example: one draft, two uniforms",
        ([0], [_HALF], [_HALF], [0.1, 0.2]),
        ValueError,
        10,
    ),
    # Rejections.
    Case(
        "the first draft rejected: the argmax of the residual, not of the target",
        (
            [0, 1],
            [[0.5, 0.375, 0.125], [0.25, 0.5, 0.25]],
            [[0.125, 0.5, 0.375], [0.25, 0.5, 0.25], [0.5, 0.25, 0.25]],
            [0.75, 0.1],
        ),
        _gives([], 2),
        10,
    ),
    Case(
        "a later draft rejected: what came before stays, and nothing after it counts",
        (
            [3, 0, 1],
            [_FLAT, _PEAKED, _FLAT],
            [_FLAT, [0.125, 0.25, 0.5, 0.125], _FLAT, _PEAKED],
            [0.9, 0.5, 0.0],
        ),
        _gives([3], 2),
        10,
    ),
    Case(
        "the last draft rejected, with a bonus row at hand: the residual decides",
        ([1], [[0.25, 0.75]], [[0.75, 0.25], [0.125, 0.875]], [0.5]),
        _gives([], 0),
        5,
    ),
    # The accept test itself.
    Case(
        "a uniform equal to the ratio accepts",
        ([0], [[0.5, 0.5]], [[0.25, 0.75], [0.25, 0.75]], [0.5]),
        _gives([0], 1),
        5,
    ),
    Case(
        "a uniform just above the ratio rejects",
        ([0], [[0.5, 0.5]], [[0.25, 0.75], [0.75, 0.25]], [0.5078125]),
        _gives([], 1),
        5,
    ),
    # Ties.
    Case(
        "a tie in the residual goes to the lower index",
        ([0], [[0.5, 0.25, 0.25]], [[0.0, 0.5, 0.5]], [0.5]),
        _gives([], 1),
        5,
    ),
    Case(
        "a tie in the bonus row goes to the lower index",
        ([3], [_FLAT], [_FLAT, [0.125, 0.375, 0.375, 0.125]], [0.5]),
        _gives([3], 1),
        5,
    ),
    # Lengths that do not match, in each argument.
    Case("too few tokens", ([0], [_HALF] * 2, [_HALF] * 3, [0.1, 0.1]), ValueError, 4),
    Case("too few draft rows", ([0, 1], [_HALF], [_HALF] * 3, [0.1, 0.1]), ValueError, 4),
    Case("too many draft rows", ([0], [_HALF] * 2, [_HALF] * 2, [0.1]), ValueError, 3),
    Case("too few target rows", ([0, 1], [_HALF] * 2, [_HALF], [0.1, 0.1]), ValueError, 3),
    Case("too few uniforms", ([0, 1], [_HALF] * 2, [_HALF] * 3, [0.1]), ValueError, 3),
    Case(
        "too few uniforms, though the first draft is rejected",
        ([0, 1], [[0.75, 0.25], _HALF], [[0.25, 0.75], _HALF, _HALF], [0.9]),
        ValueError,
        3,
    ),
    # Long drafts.
    Case(
        "a long draft, all of it accepted",
        (
            [i % 4 for i in range(_LONG)],
            [_FLAT] * _LONG,
            [*[_FLAT] * _LONG, [0.125, 0.125, 0.625, 0.125]],
            [i / _LONG for i in range(_LONG)],
        ),
        _gives([i % 4 for i in range(_LONG)], 2),
        2,
    ),
    Case(
        "a long draft, rejected near its end",
        (
            [i % 4 for i in range(_LONG)],
            [_FLAT] * _LONG,
            [*[_FLAT] * (_LONG - 3), [0.5, 0.125, 0.25, 0.125], *[_FLAT] * 3],
            [0.75] * _LONG,
        ),
        _gives([i % 4 for i in range(_LONG - 3)], 0),
        3,
    ),
)
"""What the task's text decides; a hundred points in all."""


def _ours(name: str, *arguments: list[Any]) -> Case:
    tokens, q, p, uniforms = arguments
    wanted: dict[str, Any] | type[ValueError]
    try:
        wanted = dict(verify_speculative_tokens(tokens, q, p, uniforms))
    except ValueError:
        wanted = ValueError
    return Case(name, (tokens, q, p, uniforms), wanted)


OPEN = (
    _ours("no drafts, and a row for the bonus", [], [], [[0.25, 0.75]], []),
    _ours("no drafts, and no rows", [], [], [], []),
    _ours("Q(x) = 0 < P(x)", [0], [[0.0, 1.0]], [[0.5, 0.5]], [0.5]),
    _ours("Q(x) = P(x) = 0", [0], [[0.0, 1.0]], [[0.0, 1.0]], [0.5]),
    _ours("a residual without mass", [0], [[0.5, 0.5]], [[0.125, 0.25]], [0.5]),
    _ours("a target row too many", [0], [_HALF], [_HALF] * 3, [0.5]),
    _ours("a token outside the vocabulary", [2], [_HALF], [_HALF], [0.5]),
    _ours("a negative token", [-1], [_HALF], [_HALF], [0.5]),
    _ours("rows of different lengths", [0], [_HALF], [_FLAT], [0.5]),
    _ours("a uniform above 1", [0], [_HALF], [_HALF], [1.5]),
    _ours("a NaN among the target's numbers", [0], [_HALF], [[float("nan"), 0.5]], [0.5]),
)
"""What it leaves open."""
