"""How far a subject's own arithmetic moves its law: a grade beside the one of its rule."""

from __future__ import annotations

from collections.abc import Sequence

from draftproof.proof.exact.cuts import ASSUMPTION
from draftproof.proof.verdicts.finding import Finding, Outcome
from draftproof.proof.worlds.wide import WIDE_WORLDS

__all__ = ["caveat", "numerical_grade"]


def numerical_grade(findings: Sequence[Finding]) -> str | None:
    """Say it in one sentence, by the precision of the rows; None where nothing was measured.

    The worst wide world speaks for each precision.
    """
    graded = [finding for finding in findings if finding.check == "cuts" and finding.case]
    if not graded:
        return None
    by_dtype = {
        dtype: max((finding for finding in graded if finding.case["dtype"] == dtype), key=_distance)
        for dtype in dict.fromkeys(finding.case["dtype"] for finding in graded)
    }
    parts = [_amount(dtype, finding) for dtype, finding in by_dtype.items()]
    return f"its arithmetic moves the law of one draw by a total variation {', '.join(parts)}"


def caveat(findings: Sequence[Finding]) -> str | None:
    """Say what the grade takes for granted, or why there is none; None if it was not tried."""
    found = [finding for finding in findings if finding.check == "cuts"]
    if any(finding.case for finding in found):
        return f"Its numerical grade takes it that {ASSUMPTION}."
    refused = (f for f in found if f.outcome is Outcome.NOT_DRIVABLE)
    refusal = next(refused, None)
    if refusal is None:
        return None
    return f"Its arithmetic at a large vocabulary was not graded: {refusal.message}"


def _distance(finding: Finding) -> tuple[bool, float]:
    wrong = finding.outcome is not Outcome.PASSED
    return wrong, (finding.total_variation if wrong else finding.error) or 0.0


def _amount(dtype: str, finding: Finding) -> str:
    wrong, distance = _distance(finding)
    size = f"of about {distance:.1e}" if wrong else f"below {distance:.0e}"
    return f"{size} on {dtype} rows (V = {WIDE_WORLDS[finding.world].vocabulary:,})"
