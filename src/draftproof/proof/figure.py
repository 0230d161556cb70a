"""One expected value beside what was measured."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

__all__ = ["Figure", "Number"]

Number = int | float | Fraction
Relation = Literal["=", "<", ">="]


@dataclass(frozen=True)
class Figure:
    """One expected value beside what was measured.

    Attributes:
        name: what was measured.
        expected: what it must be: a Fraction where that is exact.
        measured: what it is.
        source: where the expected value comes from.
        relation: how ``measured`` must stand to ``expected``; "=" means within ``tolerance``.
        tolerance: half the width of what is accepted; 0 where both are exact.
        why: where the tolerance comes from.
    """

    name: str
    expected: Number
    measured: Number
    source: str
    relation: Relation = "="
    tolerance: float = 0.0
    why: str = ""

    @property
    def met(self) -> bool:
        """Whether the measured value is what was expected."""
        if self.relation == "<":
            return float(self.measured) < float(self.expected)
        if self.relation == ">=":
            return float(self.measured) >= float(self.expected)
        difference: Any = self.measured - self.expected
        return float(abs(difference)) <= self.tolerance

    def to_dict(self) -> dict[str, Any]:
        """Return JSON types all through; exact fractions as text, such as ``"21/16"``."""
        return {
            "name": self.name,
            "expected": _plain(self.expected),
            "measured": _plain(self.measured),
            "relation": self.relation,
            "tolerance": self.tolerance,
            "why": self.why,
            "source": self.source,
            "met": self.met,
        }


def _plain(value: Number) -> str | int | float:
    return str(value) if isinstance(value, Fraction) else value
