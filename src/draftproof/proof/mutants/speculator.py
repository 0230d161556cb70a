"""One right decoder in plain steps: a mutant is a subclass that replaces one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from draftproof.proof.mutants.registry import Kind, Mutant
from draftproof.proof.subjects.contracts import Contract

__all__ = ["DECODERS", "Array", "DecoderMutant", "Speculator", "Writer", "decoder", "draw"]

Array = Any
Tokens = list[int]


@dataclass(frozen=True)
class DecoderMutant(Mutant):
    """A decoder of known worth; see `draftproof.proof.mutants.registry.Mutant`.

    Attributes:
        contract: ``round`` or ``generate``.
        rounds: drafts of the rounds whose exact law `total_variation` speaks of.
        caught_by: the first check that catches it; empty for a right one.
    """

    contract: Contract = Contract.ROUND
    rounds: tuple[int, ...] = (2,)
    caught_by: str = ""

    @property
    def subject_class(self) -> Any:
        """A decoder, whatever can be driven."""
        return "decoder"

    @property
    def family(self) -> str:
        """The file it stands in."""
        return str(self.build().__module__).rpartition(".")[2]

    @cached_property
    def total_variation(self) -> Fraction | None:
        """Exact distance of the joint law of its rounds; None for whole texts."""
        from draftproof.proof.decoders.round_law import round_law
        from draftproof.proof.exact.generator import NotDrivable
        from draftproof.proof.subjects.subject import load
        from draftproof.proof.worlds.catalogue import WORLDS

        world = WORLDS[self.world]
        if self.contract is not Contract.ROUND:
            return None
        try:
            law = round_law(load(self.spec), world, self.rounds).law
        except NotDrivable:
            return None
        distance = law.total_variation(world.target_law(law.length))
        return distance if distance > law.error else Fraction(0)


DECODERS: dict[str, DecoderMutant] = {}
"""All decoders of known worth, by name."""


def decoder(
    name: str,
    *,
    contract: Contract = Contract.ROUND,
    public: str = "",
    kind: Kind = "lossy",
    drivable: bool = True,
    rounds: tuple[int, ...] = (2,),
    world: str = "L4",
    note: str = "",
    caught_by: str = "",
) -> Callable[[Any], Any]:
    """Register the class below, which a world makes a decoder; its docstring says what it does."""

    def register(make: Any) -> Any:
        if name in DECODERS:
            raise ValueError(f"decoder: found {name!r} twice; names are unique.")
        does = (make.__doc__ or "").partition("\n")[0].rstrip(".")
        caught = caught_by or ("oracle" if len(rounds) == 1 else "oracle-calls")
        DECODERS[name] = DecoderMutant(
            name, does, lambda: make, public, kind, drivable, "rounds", world, None, note,
            contract, rounds, "" if kind == "equivalent" else caught,
        )  # fmt: skip
        return make

    return register


def draw(row: Array, u: Any) -> int:
    """One token by its inverse CDF."""
    cumulative = row.cumsum()
    return int((cumulative[:-1] <= u * cumulative[-1]).sum())


class Speculator:
    """Drafts, verifies by the token rule, and tells its drafts and their rows.

    Args:
        world: its models.
    """

    def __init__(self, world: Any) -> None:
        self.world = world

    def __call__(self, context: Sequence[int], k: int, rng: Any) -> Any:
        """One round behind a text."""
        text = list(context)
        drafts, rows = self.draft(text, k, rng)
        targets = [self.target(text, drafts[:i]) for i in range(len(drafts) + 1)]
        accepted = self.accept(drafts, rows, targets, rng)
        return self.emit(text, drafts, rows, targets, accepted, rng), drafts, rows

    def draft(self, text: Tokens, k: int, rng: Any) -> tuple[Tokens, list[Array]]:
        """Draft up to k tokens, and declare the rows that they were drawn from."""
        drafts: Tokens = []
        rows: list[Array] = []
        for _ in range(k):
            row = self.world.draft_row(text + drafts)
            drafts.append(self.sample(row, rng))
            rows.append(row)
        return drafts, rows

    def sample(self, row: Array, rng: Any) -> int:
        """One draft from its row."""
        return draw(row, rng.random())

    def target(self, text: Tokens, drafts: Tokens) -> Array:
        """The target's row behind the text and some drafts."""
        return self.world.target_row(text + drafts)

    def accept(self, drafts: Tokens, rows: list[Array], targets: list[Array], rng: Any) -> int:
        """How many drafts are kept: those before the first whose test fails."""
        for i, x in enumerate(drafts):
            if not self.coin(i, rng) * rows[i][x] < targets[i][x]:
                return i
        return len(drafts)

    def coin(self, i: int, rng: Any) -> Any:
        """The uniform of one test."""
        return rng.random()

    def emit(
        self,
        text: Tokens,
        drafts: Tokens,
        rows: list[Array],
        targets: list[Array],
        accepted: int,
        rng: Any,
    ) -> Tokens:
        """The kept drafts, and a token from the residual or, behind all drafts, from the target."""
        row = targets[accepted]
        if accepted < len(drafts):
            rest = np.maximum(row - rows[accepted], 0)
            row = rest if rest.any() else row
        return [*drafts[:accepted], draw(row, rng.random())]


class Writer:
    """Writes texts in a batch, all unfinished rows by one round each, until all are finished."""

    drafts = 3
    speculator: type[Speculator] = Speculator

    def __init__(self, world: Any) -> None:
        self.world = world
        self.rounds = self.speculator(world)

    def __call__(self, prompts: Sequence[Sequence[int]], num_tokens: int, seed: int) -> Any:
        """One text behind each prompt."""
        rng = self.generator(seed)
        texts: list[Tokens] = [[] for _ in prompts]
        while active := [b for b, text in enumerate(texts) if not self.is_done(text, num_tokens)]:
            self.step(prompts, texts, active, rng)
        return [self.finish(text, num_tokens) for text in texts]

    def generator(self, seed: int) -> np.random.Generator:
        """Where its noise comes from."""
        return np.random.default_rng(seed)

    def is_done(self, text: Tokens, num_tokens: int) -> bool:
        """Whether a text is long enough, or has ended."""
        return len(text) >= num_tokens or self.world.eos in text

    def step(
        self,
        prompts: Sequence[Sequence[int]],
        texts: list[Tokens],
        active: list[int],
        rng: np.random.Generator,
    ) -> None:
        """One round for each unfinished text."""
        for b in active:
            texts[b] += self.rounds([*prompts[b], *texts[b]], self.drafts, rng)[0]

    def finish(self, text: Tokens, num_tokens: int) -> Tokens:
        """Cut what was written too much."""
        text = text[:num_tokens]
        return text[: text.index(self.world.eos) + 1] if self.world.eos in text else text
