"""What one shard has counted: JSON that says whose share of which verdict it is."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from draftproof.proof.trial.plan import Plan, make_plan

__all__ = ["SCHEMA", "Count", "Identity", "Lane", "Tally", "distinct"]

SCHEMA = "draftproof/tally/1"
"""Version of the JSON; it changes whenever a reader of the old one could be misled."""


@dataclass(frozen=True)
class Identity:
    """What tallies must have in common to be of one verdict.

    Attributes:
        subject: its specification.
        contract, profile, seed: as of `draftproof.proof.verdicts.verdict.Verdict`.
        shards: into how many parts the sampling is cut.
        texts: of all shards together, in each world.
        version: of draftproof.
        timeout: seconds until one check of the first shard counts as hanging; 0 for the profile's.
        law, plain, prompts, eos: what a decoder with models of its own is held against.
    """

    subject: str
    contract: str
    profile: str
    seed: int
    shards: int
    texts: int
    version: str
    timeout: float = 0.0
    law: str = ""
    plain: str = ""
    prompts: tuple[tuple[int, ...], ...] = ()
    eos: int | None = None

    @property
    def plan(self) -> Plan:
        """The plan of the whole verdict."""
        plan = make_plan(self.profile, self.seed, self.timeout or None)
        return replace(plan, law=self.law, plain=self.plain, prompts=self.prompts, eos=self.eos)


@dataclass(frozen=True)
class Count:
    """How often each text was made in one world, texts in lexicographic order."""

    world: str
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Lane:
    """One stream's bets: the logarithm of the wealth after its tokens; None if infinite."""

    name: str
    tokens: int
    log_e: float | None
    leader: str


@dataclass(frozen=True)
class Tally:
    """One shard's part.

    Attributes:
        identity: of which verdict.
        shard: which part, 1 to ``identity.shards``.
        counts: by world.
        lanes: by stream.
        rest: the first shard's verdict by all other checks, as JSON; None for the others.
        broken: what stopped the shard, if the subject broke its contract.
        seconds: how long it took; no part of its identity.
    """

    identity: Identity
    shard: int
    counts: tuple[Count, ...] = ()
    lanes: tuple[Lane, ...] = ()
    rest: Mapping[str, Any] | None = None
    broken: str = ""
    seconds: float = field(default=0.0, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """JSON types all through."""
        return {"schema": SCHEMA, **asdict(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Tally:
        """Read back what `to_dict` wrote.

        Raises:
            ValueError: another schema, or none.
        """
        if data.get("schema") != SCHEMA:
            raise ValueError(
                f"tally: found schema {data.get('schema')!r}; wanted {SCHEMA!r}. "
                "Fix: pass files that draftproof check --shard has written, of this version."
            )
        return cls(
            Identity(**{**data["identity"], "prompts": _tuples(data["identity"]["prompts"])}),
            data["shard"],
            tuple(Count(c["world"], tuple(c["counts"])) for c in data["counts"]),
            tuple(Lane(**lane) for lane in data["lanes"]),
            data["rest"],
            data["broken"],
            data["seconds"],
        )

    def write(self, path: Path) -> None:
        """Write the file whole or not at all: a killed shard leaves none."""
        text = json.dumps(self.to_dict(), allow_nan=False) + "\n"
        with tempfile.NamedTemporaryFile(
            "w", dir=path.parent, prefix=f".{path.name}.", delete=False, encoding="utf-8"
        ) as file:
            try:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
                Path(file.name).chmod(0o644)
                Path(file.name).replace(path)
            except BaseException:
                Path(file.name).unlink()
                raise

    @classmethod
    def read(cls, path: Path) -> Tally:
        """Read a file.

        Raises:
            ValueError: no tally; the message names the file.
        """
        try:
            return cls.from_dict(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path}: {error}") from error


def _tuples(prompts: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(prompt) for prompt in prompts)


def distinct(tallies: Sequence[Tally]) -> list[Tally]:
    """Return each shard once, in order: one that was repeated counts once.

    Raises:
        ValueError: of two verdicts, out of range, or one shard with two different contents.
    """
    if not tallies:
        raise ValueError("tallies: found none; wanted those of one verdict.")
    first, by_shard = tallies[0].identity, dict[int, Tally]()
    for tally in tallies:
        for name, wanted in asdict(first).items():
            found = getattr(tally.identity, name)
            if found != wanted:
                raise ValueError(
                    f"tallies: shard {tally.shard} has {name} = {found!r}, and shard "
                    f"{tallies[0].shard} has {wanted!r}; wanted parts of one verdict."
                )
        if not 1 <= tally.shard <= first.shards:
            raise ValueError(f"tallies: found shard {tally.shard}; wanted 1..{first.shards}.")
        if by_shard.setdefault(tally.shard, tally) != tally:
            raise ValueError(
                f"tallies: found shard {tally.shard} twice, with different counts. Fix: equal "
                "seeds give equal texts unless the subject draws elsewhere; leave one of them out."
            )
    return [by_shard[shard] for shard in sorted(by_shard)]
