"""The verifiers beside the subject of the joint test: a right one, and two it must reject."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from draftproof.proof.mutants import Verify, get

__all__ = ["CONTROLS", "correct"]

correct: Verify = get("token").build()

CONTROLS: Mapping[str, Verify] = MappingProxyType(
    {name: get(name).build() for name in ("resample p on a rejection", "one uniform for all")}
)
"""On the joint test's chains their exact total variation is 0.1848 and 0.0736."""
