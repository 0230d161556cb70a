"""The package's own first evidence: its verifier passes `joint_test`, wrong ones fail it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypedDict

import draftproof
from draftproof.proof.controls import CONTROLS
from draftproof.proof.joint_test import LENGTH, SEED, TARGET, Subject, joint_test

__all__ = ["Evidence", "Finding", "Outcome", "Trial", "first_evidence", "own_trials"]

Outcome = Literal["not rejected", "rejected", "inconclusive"]

REFERENCE_SEQUENCES = 10_000


@dataclass(frozen=True)
class Trial:
    """A subject to judge.

    Attributes:
        name: what a table calls it.
        subject: the verifier.
        is_control: whether it is wrong on purpose and must be rejected.
        max_sequences: the most texts that it can afford; None for any number.
    """

    name: str
    subject: Subject
    is_control: bool = False
    max_sequences: int | None = None


class Finding(TypedDict):
    """One trial's `JointTest` in JSON types, and what was wanted of it."""

    name: str
    is_control: bool
    outcome: Outcome
    wanted: Outcome
    sequences: int
    statistic: float
    degrees_of_freedom: int
    threshold: float
    p_value: float
    total_variation: float
    detectable_total_variation: float
    counts: list[Any]


class Evidence(TypedDict):
    """What `first_evidence` returns: JSON types all through."""

    schema: str
    verdict: Outcome
    reason: str
    scope: str
    seed: int
    findings: list[Finding]


def own_trials() -> list[Trial]:
    """Every installed backend of `draftproof.verify`, and the two controls.

    The reference backend verifies one row at a time, in Python: it gets at most 10,000 texts.
    """
    backends = [
        Trial(
            f"verify, {backend}",
            partial(draftproof.verify, backend=backend),
            max_sequences=REFERENCE_SEQUENCES if backend == "reference" else None,
        )
        for backend in draftproof.available_backends()
    ]
    controls = [Trial(name, subject, is_control=True) for name, subject in CONTROLS.items()]
    return backends + controls


def first_evidence(
    trials: Sequence[Trial] | None = None, *, sequences: int = 300_000, seed: int = SEED
) -> Evidence:
    """Run the joint test on verifiers and on controls, and conclude.

    The verdict is ``"rejected"`` if a subject is; else ``"inconclusive"`` if a control is not, or
    if there is none, for then the test has shown no power; else ``"not rejected"``, and ``scope``
    says what that leaves open.

    Args:
        trials: what to judge; `own_trials` if left out.
        sequences: texts for each trial that can afford them.
        seed: see `joint_test`. All trials meet the same drafts and uniforms, so right verifiers
            with equally many texts have the same counts.

    Raises:
        ValueError: too few sequences, or a subject that emits what is no emission.
    """
    findings = [
        _examine(trial, sequences, seed) for trial in (own_trials() if trials is None else trials)
    ]
    verdict, reason = _conclude(findings)
    return {
        "schema": "draftproof/first-evidence/1",
        "verdict": verdict,
        "reason": reason,
        "scope": _scope(findings),
        "seed": seed,
        "findings": findings,
    }


def _examine(trial: Trial, sequences: int, seed: int) -> Finding:
    affordable = min(sequences, trial.max_sequences or sequences)
    result = joint_test(trial.subject, sequences=affordable, seed=seed)
    return {
        "name": trial.name,
        "is_control": trial.is_control,
        "outcome": "not rejected" if result.passed else "rejected",
        "wanted": "rejected" if trial.is_control else "not rejected",
        "sequences": affordable,
        "statistic": result.statistic,
        "degrees_of_freedom": result.degrees_of_freedom,
        "threshold": result.threshold,
        "p_value": result.p_value,
        "total_variation": result.total_variation,
        "detectable_total_variation": result.detectable_total_variation,
        "counts": result.counts.tolist(),
    }


def _conclude(findings: Sequence[Finding]) -> tuple[Outcome, str]:
    subjects = [finding for finding in findings if not finding["is_control"]]
    controls = [finding for finding in findings if finding["is_control"]]
    for finding in subjects:
        if finding["outcome"] == "rejected":
            return "rejected", f"{finding['name']}: {_describe(finding, '>=')}"
    missed = [finding["name"] for finding in controls if finding["outcome"] != "rejected"]
    if missed:
        return "inconclusive", f"no power: not rejected either: {', '.join(missed)}"
    if not controls:
        return "inconclusive", "no power shown: there is no control"
    largest = max(subjects, key=lambda finding: (finding["sequences"], finding["statistic"]))
    caught = f"{len(controls)} of {len(controls)} controls rejected"
    return "not rejected", f"{_describe(largest, '<')}; {caught}"


def _describe(finding: Finding, relation: str) -> str:
    return (
        f"joint law of {LENGTH} tokens, {finding['sequences']:,} sequences, "
        f"chi-square {finding['statistic']:,.1f} {relation} {finding['threshold']:.1f}"
    )


def _scope(findings: Sequence[Finding]) -> str:
    """Say what was examined, and how small a fault would have been seen."""
    seen = {finding["sequences"]: finding["detectable_total_variation"] for finding in findings}
    limits = " and ".join(f"{seen[n]:.4f} at {n:,} sequences" for n in sorted(seen, reverse=True))
    return (
        f"Examined: one pair of Markov chains, V = {len(TARGET)}, K = {LENGTH}, float64. "
        f"A law off by a total variation of {limits} is rejected with probability .99; "
        "a smaller bias is not excluded."
    )
