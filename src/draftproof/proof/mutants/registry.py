"""What a mutant is, and how a class becomes one."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal, TypeVar

from draftproof.proof.mutants.skeleton import Verify

__all__ = ["GALLERY", "Kind", "Mutant", "Seen", "equivalent", "mutant"]

Kind = Literal["lossy", "broken", "float", "rounds", "equivalent"]
Seen = Literal[
    "row", "padding", "rows", "batch", "size", "empty", "rounds", "seeds", "inputs", "support",
    "shape", "vocabulary",
]  # fmt: skip
SampledLaw = Callable[[Sequence[Fraction]], Sequence[Fraction]]
_Class = TypeVar("_Class", bound=Callable[[], Verify])


@dataclass(frozen=True)
class Mutant:
    """A verifier of known worth.

    Attributes:
        name: what tables call it.
        does: what it does, in one line.
        build: makes a fresh one, for a mutant may keep state between its calls.
        public: the public fault that it stands for, a project and a number; empty if none.
        kind: "lossy": its law is wrong. "broken": it breaks its contract. "float": wrong by no
            more than the rounding of a narrow number, seen in impossible tokens or by a numerical
            grade. "rounds": each call is right by itself. "equivalent": lossless, must live.
        drivable: whether scripted uniforms decide all that it does.
        seen: the narrowest experiment that shows the fault: the law of one "row" without padding;
            a row with "padding" (K > g); two "rows" of one call; a "batch" of more; a "size" of
            the vocabulary beyond the worlds'; an "empty" draft (K = 0); two "rounds" or more by
            one object; two "seeds"; the "inputs" after a call; "support", laws with zeros and
            uniforms near 0 and 1; the "shape" of what it returns; a "vocabulary" of thousands.
        world: the world on which `total_variation` is taken: one that can see the fault.
        sampled_law: what a drafter of this mutant really samples from, by the declared row; None
            if it is the declared row itself.
        note: what a verdict may remark about an equivalent.
    """

    name: str
    does: str
    build: Callable[[], Verify]
    public: str = ""
    kind: Kind = "lossy"
    drivable: bool = True
    seen: Seen = "row"
    world: str = "L4"
    sampled_law: SampledLaw | None = None
    note: str = ""

    @property
    def subject_class(self) -> Literal["driven", "rng", "decoder"]:
        """What a judge must have to see it: its uniforms, its generator, or its drafter too."""
        if self.sampled_law is not None:
            return "decoder"
        return "driven" if self.drivable else "rng"

    @property
    def family(self) -> str:
        """The file it stands in: what kind of choice it gets wrong."""
        return self.build.__module__.rpartition(".")[2]

    @property
    def identifier(self) -> str:
        """Its name as an identifier."""
        return re.sub(r"\W+", "_", self.name).strip("_").lower()

    @property
    def spec(self) -> str:
        """How the command line and other processes load it as a subject."""
        return f"mutant:{self.identifier}"

    @cached_property
    def total_variation(self) -> Fraction | None:
        """Exact distance of its joint law of three tokens from the target's, for two drafts.

        Of its first token, for one draft or none, where only a large vocabulary shows it.
        None where no single row shows the fault, where there is no law (a broken contract), and
        where the interval oracle cannot follow the uniforms.
        """
        if self.seen == "vocabulary":
            from draftproof.proof.mutants.wide import wide_distance

            return wide_distance(self)
        from draftproof.proof.exact.exact_law import oracle_law
        from draftproof.proof.exact.generator import NotDrivable
        from draftproof.proof.subjects.subject import load
        from draftproof.proof.worlds.catalogue import WORLDS

        if self.kind in ("broken", "rounds") or self.seen in _BEYOND_A_ROW:
            return None
        world = WORLDS[self.world]
        try:
            law = oracle_law(load(self.spec), world, 2, 3 if self.seen == "padding" else 2).law
        except NotDrivable:
            return None
        distance = law.total_variation(world.target_law(3))
        return distance if distance > law.error else Fraction(0)


_BEYOND_A_ROW = ("rows", "batch", "size", "empty", "seeds")

GALLERY: dict[str, Mutant] = {}
"""All that was registered, by name, in the order of the files."""


def mutant(
    name: str,
    *,
    public: str = "",
    kind: Kind = "lossy",
    drivable: bool = True,
    seen: Seen = "row",
    world: str = "L4",
    sampled_law: SampledLaw | None = None,
    note: str = "",
) -> Callable[[_Class], _Class]:
    """Register the class below; the first line of its docstring says what it does."""

    def register(build: _Class) -> _Class:
        if name in GALLERY:
            raise ValueError(f"mutant: found {name!r} twice; names are unique.")
        does = (build.__doc__ or "").partition("\n")[0].rstrip(".")
        GALLERY[name] = Mutant(
            name, does, build, public, kind, drivable, seen, world, sampled_law, note
        )
        return build

    return register


def equivalent(
    name: str,
    *,
    public: str = "",
    drivable: bool = True,
    sampled_law: SampledLaw | None = None,
    note: str = "",
) -> Callable[[_Class], _Class]:
    """Register a verifier that looks wrong, or is unusual, and must live."""
    return mutant(
        name,
        public=public,
        kind="equivalent",
        drivable=drivable,
        sampled_law=sampled_law,
        note=note,
    )
