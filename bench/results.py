"""The results file: tidy, one line for each case and contender."""

from __future__ import annotations

import csv
import dataclasses
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.cases import Case
from bench.machine import Machine
from bench.peers import PEERS
from bench.race import Race
from bench.versions import versions_of

__all__ = ["Result", "memory_result", "race_results", "read_results", "write_results"]


@dataclass(frozen=True)
class Result(Machine):
    """One line. What was not measured is None, and empty in the file.

    Attributes:
        case: the case's name, and after it the shape.
        contender: whose numbers.
        median_us, min_us: microseconds a call, over the rounds.
        rounds: how many.
        bytes_read: the mean bytes of the rows that a call must read.
        gb_per_s: those bytes over the median time, in 10^9 bytes a second.
        over_floor, over_draftproof: median over the rounds of this time over the floor's, or over
            one thread of draftproof's, in the same round.
        peak_extra_bytes: how far calls raised the process' memory above the inputs'.
        software: the versions of what a peer needs.
    """

    case: str
    B: int
    K: int
    V: int
    dtype: str
    contender: str
    median_us: float | None = None
    min_us: float | None = None
    rounds: int | None = None
    bytes_read: int | None = None
    gb_per_s: float | None = None
    over_floor: float | None = None
    over_draftproof: float | None = None
    peak_extra_bytes: int | None = None
    software: str = ""


def race_results(race: Race, machine: Machine) -> list[Result]:
    """Sum up a race, a line for each contender."""
    lines = []
    for contender, times in race.times.items():
        median = statistics.median(times)
        lines.append(
            _line(
                race.case,
                machine,
                contender,
                median_us=_round(median),
                min_us=_round(min(times)),
                rounds=len(times),
                bytes_read=race.bytes_read,
                gb_per_s=_round(race.bytes_read / median / 1000),
                over_floor=_round(race.ratio(contender, "floor")),
                over_draftproof=_round(race.ratio(contender, "draftproof")),
                software=versions_of(PEERS.get(contender, ())),
            )
        )
    return lines


def memory_result(case: Case, machine: Machine, contender: str, peak_extra_bytes: int) -> Result:
    """Return the line of a memory measurement."""
    return _line(case, machine, contender, peak_extra_bytes=peak_extra_bytes)


def write_results(results: list[Result], path: Path) -> None:
    """Write the file anew."""
    with path.open("w", newline="", encoding="utf-8") as file:
        names = [field.name for field in dataclasses.fields(Result)]
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(dataclasses.asdict(result) for result in results)


def read_results(path: Path) -> list[Result]:
    """Read what `write_results` wrote."""
    types = {field.name: str(field.type) for field in dataclasses.fields(Result)}
    with path.open(newline="", encoding="utf-8") as file:
        return [
            Result(**{name: _parse(types[name], text) for name, text in line.items()})
            for line in csv.DictReader(file)
        ]


def _line(case: Case, machine: Machine, contender: str, **rest: Any) -> Result:
    return Result(
        **dataclasses.asdict(machine),
        case=case.name,
        B=case.B,
        K=case.K,
        V=case.V,
        dtype=case.dtype,
        contender=contender,
        **rest,
    )


def _parse(kind: str, text: str) -> Any:
    if not text and kind.endswith("None"):
        return None
    return {"str": str, "int": int, "float": float}[kind.removesuffix(" | None")](text)


def _round(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")
