"""Verifiers from logits of known worth: wrong ones that must die, right ones that must live.

Each is a subject of the contract ``logits`` by its name, as ``logits-mutant:NAME``; our own is
``own:logits``, or ``own:logits:BACKEND``.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from draftproof.proof.logits.skeleton import LogitsVerifier
from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.subjects.loading import SubjectNotFound
from draftproof.proof.subjects.subject import Subject
from draftproof.proof.worlds.law import Law
from draftproof.proof.worlds.logits_world import logits_world
from draftproof.types import DraftLogits

__all__ = [
    "LOGITS_GALLERY",
    "LogitsMutant",
    "load_logits_mutant",
    "load_own",
    "logits_gallery",
    "logits_table",
    "verifier",
]

Array = npt.NDArray[Any]
Kind = Literal["lossy", "rounds", "rows", "broken", "equivalent"]
Check = Literal[
    "logits-oracle", "logits-pairs", "logits-calls", "logits-padding", "logits-habits",
    "logits-bad-rows", "logits-seeds", "logits-bisection", "logits-joint", "",
]  # fmt: skip
Rounds = tuple[tuple[int, ...], ...]

_SHOWN: Mapping[str, tuple[str, int, Rounds]] = MappingProxyType(
    {
        "lossy": ("logits-oracle", 2, ((2,),)),
        "broken": ("logits-oracle", 2, ((2,),)),
        "rows": ("logits-pairs", 1, ((1, 1),)),
        "rounds": ("logits-calls", 1, ((1,), (0,))),
        "equivalent": ("", 2, ((2,),)),
    }
)
"""By kind: the first check that catches it, and K and the rounds whose law tells its distance."""


@dataclass(frozen=True)
class LogitsMutant:
    """A verifier from logits of known worth.

    Attributes:
        name: what tables call it.
        does: what it does, in one line.
        build: makes a fresh one.
        worlds: in `LOGITS_WORLDS`, where its distance is taken: one for each row of the batch.
        public: the public fault that it stands for; empty if none.
        kind: "lossy": its law is wrong. "rows": that of a row alone is right. "rounds": so is that
            of each call. "broken": what is wrong is not the law of texts, or no oracle can follow
            it. "equivalent": lossless, must live.
        note: what a verdict may remark about an equivalent.
        caught_by: the first check that catches it; by its kind, if left out.
    """

    name: str
    does: str
    build: Callable[[], LogitsVerifier]
    worlds: tuple[str, ...]
    public: str = ""
    kind: Kind = "lossy"
    note: str = ""
    caught_by: Check = ""

    def __post_init__(self) -> None:
        if not self.caught_by:
            object.__setattr__(self, "caught_by", _SHOWN[self.kind][0])

    @property
    def identifier(self) -> str:
        """Its name as an identifier."""
        return re.sub(r"\W+", "_", self.name).strip("_").lower()

    @property
    def drivable(self) -> bool:
        """Whether the interval oracle can follow it."""
        return self.caught_by not in ("logits-bisection", "logits-joint")

    @property
    def spec(self) -> str:
        """How the command line and other processes load it as a subject."""
        return f"logits-mutant:{self.identifier}"

    def to_row(self) -> dict[str, Any]:
        """Describe it as `draftproof.proof.mutants.table` does, in JSON types."""
        return {
            "name": self.name,
            "does": self.does,
            "public": self.public,
            "kind": "lossy" if self.kind == "rows" else self.kind,
            "family": "logits",
            "subject_class": "driven" if self.drivable else "rng",
            "drivable": self.drivable,
            "seen": {"rows": "pairs", "rounds": "rounds"}.get(self.kind, "row"),
            "caught_by": self.caught_by,
            "first_caught_by": {"driven" if self.drivable else "rng": self.caught_by or None},
            "world": " and ".join(self.worlds),
            "total_variation": float(self.total_variation),
            "note": self.note,
            "spec": self.spec,
        }

    @cached_property
    def total_variation(self) -> Fraction:
        """Exact distance of its law from the target's, in its worlds; 0 within rounding."""
        from draftproof.proof.exact.logits_oracle import oracle_logits_law

        if self.kind == "broken":
            return Fraction(0)
        _, K, rounds = _SHOWN[self.kind]
        worlds = [logits_world(name) for name in self.worlds]
        law = oracle_logits_law(load_logits_mutant(self.name), worlds, rounds, K).law
        lengths = [sum(row) + len(rounds) for row in zip(*rounds, strict=True)]
        targets = (world.target_law(n) for world, n in zip(worlds, lengths, strict=True))
        target: Law = reduce(Law.product, targets)
        distance = law.total_variation(target)
        return distance if distance > law.error else Fraction(0)


LOGITS_GALLERY: dict[str, LogitsMutant] = {}
"""All that was registered, by name; `logits_gallery` fills it."""


def logits_gallery() -> Mapping[str, LogitsMutant]:
    """Return the gallery, by name: the wrong ones first, then the right ones."""
    for family in ("faults", "batch_faults", "equivalents"):
        importlib.import_module(f"draftproof.proof.logits.{family}")
    return MappingProxyType(LOGITS_GALLERY)


def logits_table() -> list[dict[str, Any]]:
    """Return what `draftproof mutants` shows of them; computing the distances takes seconds."""
    return [mutant.to_row() for mutant in logits_gallery().values()]


def verifier(name: str, *worlds: str, **about: Any) -> Callable[[Any], Any]:
    """Register the class of verifiers below, and the worlds in which it is seen best."""

    def register(build: type[LogitsVerifier]) -> type[LogitsVerifier]:
        if name in LOGITS_GALLERY:
            raise ValueError(f"mutant: found {name!r} twice; names are unique.")
        does = (build.__doc__ or "").partition("\n")[0].rstrip(".")
        LOGITS_GALLERY[name] = LogitsMutant(name, does, build, worlds, **about)
        return build

    return register


def load_logits_mutant(name: str) -> Subject:
    """Make a subject of a verifier in the gallery, by its name or identifier."""
    for mutant in logits_gallery().values():
        if name in (mutant.name, mutant.identifier):
            return Subject(mutant.spec, Contract.LOGITS, mutant.build(), mutant.spec)
    raise SubjectNotFound(
        f"subject: found 'logits-mutant:{name}'; wanted logits-mutant: and one of "
        f"{', '.join(mutant.identifier for mutant in logits_gallery().values())}."
    )


class _Own:
    """`draftproof.verify_logits` on one backend, with its log-probabilities."""

    takes_seeds = True
    REPORTING = 8
    """Log-probabilities come with one call of so many: they cost more than the tokens."""

    def __init__(self, backend: str) -> None:
        self.backend, self.calls = backend, 0

    def __call__(
        self,
        draft: Array,
        draft_logits: Array,
        target_logits: Array,
        num_draft: Array,
        params: Sequence[Any],
        draft_params: Sequence[Any],
        history: Sequence[Any],
        rng: np.random.Generator,
        *,
        prompts: Sequence[Any],
    ) -> tuple[Array, ...]:
        """Return what the public call does, keyed by the place in the text where seeds are."""
        from draftproof.logits.verify import verify_logits

        self.calls += 1
        result = verify_logits(
            draft, DraftLogits(draft_logits), target_logits, num_draft, rng,
            params=params, draft_params=draft_params, history=history, prompts=prompts,
            positions=_lengths(history) if any(p.seed is not None for p in params) else None,
            backend=self.backend, logprobs=None if self.calls % self.REPORTING else 0,
        )  # fmt: skip
        if result.logprobs is None:
            return tuple(result)
        return result.token_ids, result.num_emitted, result.logprobs.token_logprobs


def _lengths(texts: Sequence[Any]) -> list[int]:
    return [len(text) for text in texts]


def load_own(backend: str) -> Subject:
    """Make a subject of our own call, on a backend or, if that is empty, on the fastest."""
    from draftproof.backends import available_backends

    known = available_backends()
    if backend not in ("", *known):
        raise SubjectNotFound(
            f"subject: found 'own:logits:{backend}'; wanted own:logits, or own:logits: and one of "
            f"{', '.join(known)}."
        )
    spec = f"own:logits:{backend}" if backend else "own:logits"
    call = _Own(backend or "auto")
    return Subject(f"draftproof.verify_logits, {call.backend}", Contract.LOGITS, call, spec)
