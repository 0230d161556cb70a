"""The committed result: what was run, where, and what was found."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

from bench.machine import Machine
from draftproof.proof.shards.tally import Identity
from draftproof.proof.verdicts.verdict import Verdict

__all__ = ["RESULT", "Found", "Result", "read_result", "result_of", "write_result"]

RESULT = Path(__file__).parent / "result.json"
SHARDED = ("joint", "anytime")


@dataclass(frozen=True)
class Found:
    """What one check found in one world, all shards together.

    Attributes:
        size: texts, or tokens of bets.
        total_variation, upper: of the counts, and of the law behind them at a confidence of .99;
            None where there is none.
    """

    check: str
    world: str
    outcome: str
    size: int
    total_variation: float | None
    upper: float | None
    message: str


@dataclass(frozen=True)
class Result(Machine):
    """A run.

    Attributes:
        version: of draftproof.
        subject, contract, profile, seed, shards: as of the tallies' identity.
        texts: that were wanted in each world.
        verdict, reason: of all checks, those that were not cut into shards included.
        found: by the checks that were.
        seconds: of all shards together.
    """

    version: str
    subject: str
    contract: str
    profile: str
    seed: int
    shards: int
    texts: int
    verdict: str
    reason: str
    found: tuple[Found, ...]
    seconds: float

    @property
    def made(self) -> int:
        """Texts of all worlds."""
        return sum(found.size for found in self.found if found.check == "joint")


def result_of(identity: Identity, verdict: Verdict, machine: Machine) -> Result:
    """Sum up a merged verdict."""
    found = tuple(
        Found(f.check, f.world, f.outcome.value, f.size, f.total_variation, f.error, f.message)
        for f in verdict.findings
        if f.check in SHARDED
    )
    return Result(
        **vars(machine),
        version=identity.version,
        subject=identity.subject,
        contract=identity.contract,
        profile=identity.profile,
        seed=identity.seed,
        shards=identity.shards,
        texts=identity.texts,
        verdict=verdict.outcome.value,
        reason=verdict.reason,
        found=found,
        seconds=round(verdict.seconds, 1),
    )


def write_result(result: Result, file: Path = RESULT) -> None:
    """Write it as JSON."""
    file.write_text(json.dumps(dataclasses.asdict(result), indent=2) + "\n", encoding="utf-8")


def read_result(file: Path = RESULT) -> Result:
    """Read it back."""
    data = json.loads(file.read_text(encoding="utf-8"))
    return Result(**{**data, "found": tuple(Found(**found) for found in data["found"])})
