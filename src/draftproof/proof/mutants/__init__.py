"""Verifiers of known worth: wrong ones that a judge must reject, and right ones that must live.

A judge that never says no proves nothing. Each wrong verifier here is a known fault in a few lines
on top of one right one, `skeleton.Verifier`. Each is a subject by its name::

    draftproof check "mutant:accept always"

>>> from draftproof.proof.mutants import get
>>> mutant = get("accept always")
>>> mutant.does
'Accepts every draft'
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from draftproof.proof.mutants.registry import GALLERY, Mutant
from draftproof.proof.mutants.skeleton import Verify
from draftproof.proof.mutants.speculator import DECODERS, DecoderMutant

__all__ = [
    "DECODERS",
    "EQUIVALENTS",
    "MUTANTS",
    "DecoderMutant",
    "Mutant",
    "Verify",
    "get",
    "table",
]

_FAMILIES = (
    "rule", "residual", "bonus", "randomness", "ragged", "law", "block", "shape",
    "matching", "wide", "equivalents", "rounds", "texts",
)  # fmt: skip

for _family in _FAMILIES:
    importlib.import_module(f"{__name__}.{_family}")

MUTANTS: Mapping[str, Mutant] = MappingProxyType(
    {name: mutant for name, mutant in GALLERY.items() if mutant.kind != "equivalent"}
)
"""The wrong ones, by name: each must be rejected."""
EQUIVALENTS: Mapping[str, Mutant] = MappingProxyType(
    {name: mutant for name, mutant in GALLERY.items() if mutant.kind == "equivalent"}
)
"""The right ones, by name: each must live."""

_ALL: Mapping[str, Mutant] = MappingProxyType({**GALLERY, **DECODERS})
_BY_IDENTIFIER = {mutant.identifier: mutant for mutant in _ALL.values()}


def get(name: str) -> Mutant:
    """Return a mutant or an equivalent by its name or identifier.

    Raises:
        KeyError: there is none; the message lists the closest.
    """
    mutant = _ALL.get(name) or _BY_IDENTIFIER.get(name)
    if mutant is None:
        from difflib import get_close_matches

        closest = get_close_matches(name, _ALL, n=3, cutoff=0)
        raise KeyError(f"mutant: found {name!r}; the closest names are {', '.join(closest)}.")
    return mutant


def table() -> list[dict[str, Any]]:
    """What `draftproof mutants` shows, in JSON types; computing the distances takes seconds."""
    from draftproof.proof.verdicts.catches import caught_by, first_catches

    return [
        {
            "name": mutant.name,
            "does": mutant.does,
            "public": mutant.public,
            "kind": mutant.kind,
            "family": mutant.family,
            "subject_class": mutant.subject_class,
            "drivable": mutant.drivable,
            "seen": mutant.seen,
            "caught_by": (
                mutant.caught_by
                if isinstance(mutant, DecoderMutant)
                else ", ".join(caught_by(mutant.name))
            ),
            "first_caught_by": dict(first_catches().get(mutant.name, {})),
            "world": mutant.world,
            "total_variation": (
                None if mutant.total_variation is None else float(mutant.total_variation)
            ),
            "note": mutant.note,
            "spec": mutant.spec,
        }
        for mutant in _ALL.values()
    ]
