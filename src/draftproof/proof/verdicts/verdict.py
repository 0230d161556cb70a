"""What the judge concludes about one subject, and its JSON: the source of card, page and JUnit."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from draftproof.proof.verdicts.finding import Finding, Outcome

__all__ = [
    "SCHEMA",
    "TIMES",
    "Conclusion",
    "Control",
    "NearestFault",
    "Power",
    "Reproducer",
    "ScorecardRow",
    "Verdict",
]

SCHEMA = "draftproof/verdict/1"
"""Version of the JSON; it changes whenever a reader of the old one could be misled."""

TIMES = ("seconds", "row_seconds")
"""What a clock measured. With one seed all other fields of two verdicts are equal."""

_WORST_CELLS = 3


class Conclusion(enum.StrEnum):
    """The four ways in which a verdict can end."""

    NOT_REJECTED = "not rejected"
    REJECTED = "rejected"
    BROKEN = "broken"
    INCONCLUSIVE = "inconclusive"

    @property
    def exit_code(self) -> int:
        """What the command returns: 0, 1, 3 or 4; 2 is wrong usage, without a verdict."""
        return {"not rejected": 0, "rejected": 1, "broken": 3, "inconclusive": 4}[self.value]


@dataclass(frozen=True)
class Control:
    """A verifier that is wrong on purpose, judged at the budget of the subject.

    Attributes:
        name: its name in `draftproof.proof.mutants`.
        killed_by: the checks that caught it; none if it survived.
        total_variation: how wrong it is on L4 at g = 2, where that is known.
    """

    name: str
    killed_by: tuple[str, ...] = ()
    total_variation: float | None = None


@dataclass(frozen=True)
class Power:
    """What these checks would have seen.

    Attributes:
        controls_killed: wrong verifiers that died at the subject's budget.
        controls_total: wrong verifiers that were tried.
        smallest_visible_total_variation: a subject whose law is off by more, in the hardest
            world, would have been rejected with the profile's power.
        hardest_world: the world where a fault is hardest to see.
        survivors: names of the controls that did not die.
        controls: one row for each control.
    """

    controls_killed: int = 0
    controls_total: int = 0
    smallest_visible_total_variation: float | None = None
    hardest_world: str = ""
    survivors: tuple[str, ...] = ()
    controls: tuple[Control, ...] = ()


@dataclass(frozen=True)
class ScorecardRow:
    """One line of a reviewer's score beside the verdict.

    Attributes:
        name: what is graded, for instance "residual".
        result: "passed", "failed" or "not applicable".
        message: one sentence with the numbers.
    """

    name: str
    result: str
    message: str = ""


@dataclass(frozen=True)
class NearestFault:
    """The known wrong verifier whose residuals look most like the subject's.

    Attributes:
        name: its name in `draftproof.proof.mutants`.
        does: one line: what it does wrong.
        public: the public bug it stands for; empty if none is known.
        correlation: of the signed residuals, at most 1.
    """

    name: str
    does: str
    public: str = ""
    correlation: float = 0.0


@dataclass(frozen=True)
class Reproducer:
    """How to see the smallest failing case again.

    Attributes:
        command: a shell command that repeats the verdict.
        script: some ten lines of Python that show the case without the judge.
    """

    command: str
    script: str = ""


@dataclass(frozen=True)
class Verdict:
    """What the judge concludes about one subject.

    Attributes:
        subject: what was judged, as the user named it.
        contract: the call shape it was judged in.
        profile: "quick", "standard" or "paper".
        seed: two runs with one seed give one verdict, but for the `TIMES`.
        outcome: the conclusion; lossy outranks broken.
        reason: one sentence.
        backends: the backends of our own verifier that were judged.
        version: of draftproof.
        findings: all that the checks found, in the order of the checks.
        total_variation_bound: the subject's law is no further from the target's, in the worlds
            examined; None where there is no such number.
        power: what would have been seen.
        false_alarm_budget: share of the false alarms that each sampled check may spend; the
            shares add up to the probability that a lossless subject is rejected at all.
        scorecard: the reviewer's rows; empty for contracts without one.
        nearest_fault: of a rejected subject.
        reproducer: of a rejected or broken subject.
        not_covered: sentences: what was not examined.
        efficiency: expected accepted drafts by world: a figure, never a proof.
        numerical_grade: how far the subject's own arithmetic moves the law of one draw from a wide
            row, in one sentence, beside the grade of its rule; None where it was not measured.
        seconds: how long it took.
        row_seconds: time for a row with four drafts of 32 tokens, by the size of its batch.
        captured_output: the end of what the subject printed in its child process, in printable
            letters.
    """

    subject: str
    contract: str
    profile: str
    seed: int
    outcome: Conclusion
    reason: str
    backends: tuple[str, ...] = ()
    version: str = ""
    findings: tuple[Finding, ...] = ()
    total_variation_bound: float | None = None
    power: Power = Power()
    false_alarm_budget: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    scorecard: tuple[ScorecardRow, ...] = ()
    nearest_fault: NearestFault | None = None
    reproducer: Reproducer | None = None
    not_covered: tuple[str, ...] = ()
    efficiency: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    numerical_grade: str | None = None
    seconds: float = 0.0
    row_seconds: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    captured_output: str = ""

    @property
    def exit_code(self) -> int:
        """0 not rejected, 1 rejected, 3 contract broken, 4 inconclusive."""
        return self.outcome.exit_code

    @property
    def decisive(self) -> tuple[Finding, ...]:
        """The findings that speak against the subject: the lossy ones, else the broken ones."""
        for outcome in (Outcome.LOSSY, Outcome.BROKEN):
            found = tuple(finding for finding in self.findings if finding.outcome is outcome)
            if found:
                return found
        return ()

    def summary(self) -> str:
        """Say in a few plain lines what was concluded and why."""
        lines = [f"VERDICT: {self.outcome} ({self.subject}: {self.reason})"]
        for finding in self.decisive[:1]:
            place = f" in world {finding.world}" if finding.world else ""
            size = f", g = {finding.num_draft}, K = {finding.max_draft}" if finding.world else ""
            lines.append(f"check {finding.check}{place}{size}: {finding.message}")
            lines += [
                f"  {cell.tokens}: {cell.observed:.6f}, the target has {cell.expected:.6f}"
                for cell in finding.cells[:_WORST_CELLS]
            ]
        if self.nearest_fault is not None:
            public = f" ({self.nearest_fault.public})" if self.nearest_fault.public else ""
            lines.append(f"nearest known fault: {self.nearest_fault.name}{public}")
        if self.reproducer is not None:
            lines.append(f"reproduce: {self.reproducer.command}")
        return "\n".join(lines)

    def assert_not_rejected(self) -> None:
        """Raise AssertionError, with the summary, unless the subject was not rejected."""
        if self.outcome is not Conclusion.NOT_REJECTED:
            raise AssertionError(self.summary())

    def to_dict(self) -> dict[str, Any]:
        """Return JSON types all through; NaN and infinities, which JSON lacks, become None."""
        return {"schema": SCHEMA, **_plain(self), "exit_code": self.exit_code}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Verdict:
        """Read back what `to_dict` wrote.

        Raises:
            ValueError: another schema, or none.
        """
        if data.get("schema") != SCHEMA:
            raise ValueError(
                f"verdict: found schema {data.get('schema')!r}; wanted {SCHEMA!r}. "
                "Fix: read it with the version of draftproof that wrote it."
            )
        values = {each.name: data[each.name] for each in fields(cls)}
        power, fault, script = data["power"], data["nearest_fault"], data["reproducer"]
        controls = (Control(**{**c, "killed_by": tuple(c["killed_by"])}) for c in power["controls"])
        values |= {
            "outcome": Conclusion(data["outcome"]),
            "backends": tuple(data["backends"]),
            "findings": tuple(map(Finding.from_dict, data["findings"])),
            "power": Power(
                **{**power, "survivors": tuple(power["survivors"]), "controls": tuple(controls)}
            ),
            "scorecard": tuple(ScorecardRow(**row) for row in data["scorecard"]),
            "nearest_fault": fault and NearestFault(**fault),
            "reproducer": script and Reproducer(**script),
            "not_covered": tuple(data["not_covered"]),
        }
        return cls(**values)


def _plain(value: Any) -> Any:
    """Turn dataclasses, enums, arrays, fractions and tuples into what JSON has."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Fraction):
        return float(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if hasattr(value, "__dataclass_fields__"):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    return _plain(value.tolist())
