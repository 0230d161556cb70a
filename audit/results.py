"""The committed table: one line for each public implementation."""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.machine import Machine

__all__ = ["RESULTS", "Result", "read_results", "result_of", "with_results", "write_results"]

RESULTS = Path(__file__).parent / "results.csv"


@dataclass(frozen=True)
class Result(Machine):
    """One line. What there is not is None, and empty in the file.

    Attributes:
        name: of the adapter.
        package, version: what was installed.
        torch: the version of PyTorch beside it.
        environment: "own", of its package alone, or "given", one that was there with others in it.
        calls: what of it was called.
        claims_lossless: whether its documentation says so.
        contract, profile, seed: how it was judged.
        verdict, reason: what the judge concluded.
        total_variation: of a rejected one: the largest that was measured of joint laws; that of
            other samples if no joint law is wrong.
        check, world: where that was.
        bound: the law is no further from the target's than this, in the worlds that were examined.
        visible: a total variation above this would have been seen with the profile's power.
        nearest_fault, correlation: of a rejected one: what it resembles.
        reproduce: the command.
        seconds: how long it took.
    """

    name: str
    package: str
    version: str
    torch: str
    environment: str
    calls: str
    claims_lossless: bool
    contract: str
    profile: str
    seed: int
    verdict: str
    reason: str
    total_variation: float | None
    check: str
    world: str
    bound: float | None
    visible: float | None
    nearest_fault: str
    correlation: float | None
    reproduce: str
    seconds: float


def result_of(
    adapter: Any,
    verdict: Mapping[str, Any],
    versions: Mapping[str, str],
    environment: str,
    machine: Machine,
) -> Result:
    """Sum up one verdict, as JSON has it.

    Args:
        adapter: of `draftproof.integrations.public.table`.
        verdict: the JSON of ``draftproof check``.
        versions: by package, of the environment it ran in.
        environment: "own" or "given".
        machine: where.
    """
    lossy = [f for f in verdict["findings"] if f["outcome"] == "lossy"]
    worst: Mapping[str, Any] = max(lossy, key=_weight, default={})
    fault = verdict["nearest_fault"] or {}
    options = f"--profile {verdict['profile']} --seed {verdict['seed']}"
    return Result(
        **vars(machine),
        name=adapter.name,
        package=adapter.package,
        version=versions[adapter.package],
        torch=versions.get("torch", ""),
        environment=environment,
        calls=adapter.calls,
        claims_lossless=adapter.claims_lossless,
        contract=verdict["contract"],
        profile=verdict["profile"],
        seed=verdict["seed"],
        verdict=verdict["outcome"],
        reason=verdict["reason"],
        total_variation=worst.get("total_variation"),
        check=worst.get("check", ""),
        world=worst.get("world", ""),
        bound=verdict["total_variation_bound"],
        visible=verdict["power"]["smallest_visible_total_variation"],
        nearest_fault=fault.get("name", ""),
        correlation=fault.get("correlation"),
        reproduce=f"draftproof check {adapter.name} {options}",
        seconds=round(verdict["seconds"], 1),
    )


def _weight(finding: Mapping[str, Any]) -> tuple[bool, bool, float]:
    """Exact laws before joint ones before others, then the largest total variation."""
    distance = finding["total_variation"] or 0.0
    return finding["grade"] == "exact", finding["check"] == "joint", distance


def with_results(old: Iterable[Result], new: Iterable[Result]) -> list[Result]:
    """Put new lines in the place of old ones of the same name."""
    lines = {result.name: result for result in old}
    lines |= {result.name: result for result in new}
    return list(lines.values())


def read_results(path: Path = RESULTS) -> list[Result]:
    """Read the table; without a file it is empty."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [_typed(row) for row in csv.DictReader(file)]


def write_results(results: Iterable[Result], path: Path = RESULTS) -> None:
    """Write the table."""
    with path.open("w", encoding="utf-8", newline="") as file:
        columns = [field.name for field in dataclasses.fields(Result)]
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(dataclasses.asdict(result) for result in results)


def _typed(row: Mapping[str, str]) -> Result:
    values: dict[str, Any] = dict(row)
    for name in ("total_variation", "bound", "visible", "correlation"):
        values[name] = float(row[name]) if row[name] else None
    values["seed"], values["seconds"] = int(row["seed"]), float(row["seconds"])
    values["claims_lossless"] = row["claims_lossless"] == "True"
    return Result(**values)
