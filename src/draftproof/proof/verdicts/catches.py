"""Which check is the first to catch a wrong verifier, by how much of its randomness it can reach?

The answers for the whole gallery are stored beside it, since finding them takes minutes. After a
change of the gallery or of a check find them again::

    python -m draftproof.proof.verdicts.catches
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from draftproof.proof.mutants import MUTANTS, Mutant
from draftproof.proof.mutants.access import ACCESSES, with_access
from draftproof.proof.trial.plan import make_plan
from draftproof.proof.verdicts.fingerprint import found_exactly

__all__ = ["caught_by", "first_catch", "first_catches", "write_catches"]

STORED = Path(__file__).parents[1] / "mutants" / "catches.json"

Catches = Mapping[str, str | None]
"""The first check that catches it at the profile quick, by access; None if it survives."""


def caught_by(name: str) -> tuple[str, ...]:
    """Return which checks catch a wrong verifier.

    These are the oracle's, all of them, and of the others each that is the first in some access.
    """
    first = first_catches().get(name, {}).values()
    return tuple(dict.fromkeys([*found_exactly(name), *filter(None, first)]))


@cache
def first_catches() -> Mapping[str, Catches]:
    """Return what is stored, by the mutants' names."""
    stored: dict[str, Catches] = json.loads(STORED.read_text(encoding="utf-8"))
    return stored


def first_catch(mutant: Mutant, access: str) -> str | None:
    """Judge a mutant of which so much can be reached, until a check catches it."""
    from draftproof.proof.trial.matrix import killers, killers_here

    plan = make_plan("quick", 0)
    if access == "driven":
        return next(iter(killers(mutant.name, plan)), None)
    return next(iter(killers_here(with_access(mutant, access), plan)), None)


def accesses(mutant: Mutant) -> tuple[str, ...]:
    """Return how it can be judged: what breaks at once, or never ends, by itself only."""
    return ACCESSES if mutant.kind != "broken" or mutant.drivable else ACCESSES[:1]


def write_catches() -> None:
    """Judge the whole gallery in every access, and store which check is the first to catch it."""
    lines = []
    for mutant in MUTANTS.values():
        catches = {access: first_catch(mutant, access) for access in accesses(mutant)}
        lines.append(f"{json.dumps(mutant.name)}: {json.dumps(catches)}")
    STORED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    write_catches()
