"""The rules for chains of drafts: what each asks of its caller, and who can run it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

__all__ = ["PLAIN_RULES", "RULES", "Rule"]

_REFERENCE = {"reference": "draftproof.reference.batch"}
_CHAIN = {
    "native": "draftproof.kernels.chain_native",
    "numpy": "draftproof.kernels.chain_numpy",
    **_REFERENCE,
}


@dataclass(frozen=True)
class Rule:
    """One lossless rule for a chain of drafts.

    Attributes:
        needs: what it reads of the draft law: ``"rows"``, or ``"none"``.
        noise: ``"round"`` if its uniforms belong to a round, ``"position"`` if to a place in the
            text, ``"keys"`` if it makes noise for every token of a place out of ``seeds``.
        keeps_state: whether each round has to be given the ``state`` of the one before.
        kernels: the module with ``verify_chain`` for each backend that has one, fastest first.
    """

    needs: Literal["rows", "none"]
    noise: Literal["round", "position", "keys"] = "round"
    keeps_state: bool = False
    kernels: Mapping[str, str] = field(default_factory=dict, repr=False)


RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "token": Rule("rows", kernels=_CHAIN),
        "exact-match": Rule("none", "position", kernels=_CHAIN),
        "block": Rule(
            "rows",
            kernels={**_CHAIN, "numpy": "draftproof.kernels.block_numpy"},
        ),
        "gumbel": Rule(
            "none",
            "keys",
            kernels={**_CHAIN, "numpy": "draftproof.kernels.gumbel_numpy"},
        ),
        "greedy-block": Rule(
            "rows",
            keeps_state=True,
            kernels={**_CHAIN, "numpy": "draftproof.kernels.greedy_block_numpy"},
        ),
    }
)
"""By the name that ``verify(rule=...)`` takes."""

PLAIN_RULES = tuple(
    name for name, rule in RULES.items() if rule.noise != "keys" and not rule.keeps_state
)
"""Those that any source of randomness and no state will do for."""
