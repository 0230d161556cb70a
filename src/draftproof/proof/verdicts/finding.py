"""What a check says: one finding for each world or size it examined."""

from __future__ import annotations

import enum
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["Cell", "Finding", "Grade", "Outcome"]


class Outcome(enum.StrEnum):
    """What a check concludes; the worst one of a subject decides its verdict."""

    PASSED = "passed"
    NOTE = "note"
    """Worth saying, no reason to reject."""
    NOT_DRIVABLE = "not_drivable"
    """This instrument does not fit this subject; another one has to judge it."""
    INCONCLUSIVE = "inconclusive"
    """The check ran out of time or calls before it reached its power."""
    BROKEN = "broken"
    """The subject breaks its contract: a crash, a hang, a wrong shape, a token out of range."""
    LOSSY = "lossy"
    """The law is wrong, or rows, seeds or padding influence it."""


class Grade(enum.StrEnum):
    """How strong the evidence is, strongest first."""

    EXACT = "exact"
    SAMPLED = "sampled"
    BEHAVIOUR = "behaviour"


@dataclass(frozen=True)
class Cell:
    """One text whose probability is wrong.

    Attributes:
        tokens: the text.
        expected: its probability under the target.
        observed: its probability (exact evidence) or frequency (sampled) under the subject.
    """

    tokens: tuple[int, ...]
    expected: float
    observed: float


@dataclass(frozen=True)
class Finding:
    """One thing a check found.

    Attributes:
        check: the check's name in the registry.
        outcome: what it concludes.
        grade: how strong the evidence is.
        world: name of the world it looked at; empty where none is involved.
        num_draft: g, the drafts of the examined row.
        max_draft: K, the padded length.
        message: one sentence: what was seen, in numbers.
        total_variation: distance of the subject's law from the target's, where it was measured.
        error: bound on the error of that number (0 if exact); for sampled evidence the upper
            bound of the total variation.
        cells: the worst texts, largest difference first.
        size: sequences or replayed paths behind it.
        emitted: expected tokens of a call with ``num_draft`` drafts, where it was computed: an
            efficiency, never a proof.
        residuals: signed differences of the whole joint law, in lexicographic order of the texts:
            what a fault is recognised by.
        case: the smallest failing case as keyword arguments of a call, for the reproducer.
    """

    check: str
    outcome: Outcome
    grade: Grade
    message: str
    world: str = ""
    num_draft: int = 0
    max_draft: int = 0
    total_variation: float | None = None
    error: float | None = None
    cells: tuple[Cell, ...] = ()
    size: int = 0
    emitted: float | None = None
    residuals: tuple[float, ...] = ()
    case: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """JSON types all through."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Finding:
        """Read back what `to_dict` wrote."""
        return cls(
            **{
                **data,
                "outcome": Outcome(data["outcome"]),
                "grade": Grade(data["grade"]),
                "cells": tuple(
                    Cell(tuple(c["tokens"]), c["expected"], c["observed"]) for c in data["cells"]
                ),
                "residuals": tuple(data["residuals"]),
            }
        )
