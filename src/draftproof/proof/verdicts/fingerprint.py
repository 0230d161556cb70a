"""Which known fault does a wrong law resemble? Signed residuals, compared with the gallery's.

The gallery's residuals are stored beside it, since working them out takes a minute. After a change
of the gallery or of a world write them again::

    python -m draftproof.proof.verdicts.fingerprint
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from draftproof.proof.mutants import MUTANTS, Mutant
from draftproof.proof.subjects.subject import load
from draftproof.proof.trial.plan import make_plan
from draftproof.proof.verdicts.finding import Finding, Outcome
from draftproof.proof.verdicts.verdict import NearestFault

__all__ = ["fingerprint", "found_exactly", "nearest_fault", "write_fingerprints"]

STORED = Path(__file__).parents[1] / "mutants" / "fingerprints.json"
DIGITS = 9
LEAST_CORRELATION = 0.5
"""Below this nothing is named: the fault is a new one."""
SAMPLED_AS = {"joint": (2, 2)}
"""A sampled joint law of three tokens resembles the exact one of a round of two drafts."""

Prints = dict[str, list[float]]
"""Residuals by key: check, world, g, K."""


def nearest_fault(findings: Sequence[Finding]) -> NearestFault | None:
    """Return the wrong verifier whose residuals correlate best with a subject's.

    The correlation is the mean over all findings with a wrong law that the stored residuals know,
    each an inner product of unit vectors; a fault that is right where the subject is wrong gets 0
    there.
    """
    seen = {
        key: _unit(finding.residuals)
        for finding in findings
        if finding.outcome is Outcome.LOSSY and any(finding.residuals)
        for key in [_key(finding)]
        if any(key in prints for prints in _stored().values())
    }
    if not seen:
        return None
    scores = {
        name: float(np.mean([_match(vector, prints.get(key)) for key, vector in seen.items()]))
        for name, prints in _stored().items()
        if name in MUTANTS
    }
    name = max(scores, key=lambda each: scores[each])
    if scores[name] < LEAST_CORRELATION:
        return None
    mutant = MUTANTS[name]
    return NearestFault(name, mutant.does, mutant.public, min(1.0, scores[name]))


def found_exactly(name: str) -> tuple[str, ...]:
    """Return the oracle's checks that find its law wrong; none if no law shows it."""
    return tuple(dict.fromkeys(key.partition(" ")[0] for key in _stored().get(name, {})))


def fingerprint(mutant: Mutant) -> Prints:
    """Work out the residuals of a wrong verifier wherever the oracle finds its law wrong."""
    from draftproof.proof.checks.oracle import (
        check_oracle,
        check_oracle_calls,
        check_oracle_pairs,
    )
    from draftproof.proof.trial.examination import examine

    subject, plan = load(mutant.spec), make_plan("quick", 0)
    return {
        _key(finding): [round(residual, DIGITS) for residual in finding.residuals]
        for check in (check_oracle, check_oracle_pairs, check_oracle_calls)
        for finding in examine(check.__name__, check, subject, plan)
        if finding.outcome is Outcome.LOSSY
    }


def write_fingerprints() -> None:
    """Work out the whole gallery's residuals and store them."""
    wrong = [m for m in MUTANTS.values() if m.kind != "broken" and m.drivable]
    prints = {mutant.name: fingerprint(mutant) for mutant in wrong}
    lines = [f"{json.dumps(name)}: {json.dumps(each)}" for name, each in prints.items() if each]
    STORED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


@cache
def _stored() -> dict[str, Prints]:
    stored: dict[str, Prints] = json.loads(STORED.read_text(encoding="utf-8"))
    return stored


def _key(finding: Finding) -> str:
    check, g, K = finding.check, finding.num_draft, finding.max_draft
    if check in SAMPLED_AS:
        check, (g, K) = "oracle", SAMPLED_AS[check]
    return f"{check} {finding.world} {g} {K}"


def _unit(residuals: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    vector = np.asarray(residuals, dtype=np.float64)
    return vector / np.linalg.norm(vector)


def _match(
    residuals: np.ndarray[tuple[int], np.dtype[np.float64]], stored: Sequence[float] | None
) -> float:
    if stored is None or len(stored) != len(residuals) or not any(stored):
        return 0.0
    return float(residuals @ _unit(stored))


if __name__ == "__main__":
    write_fingerprints()
