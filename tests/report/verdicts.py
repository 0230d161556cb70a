"""Verdicts made by hand, one for each conclusion."""

from __future__ import annotations

from draftproof.proof.verdicts.finding import Cell, Finding, Grade, Outcome
from draftproof.proof.verdicts.verdict import (
    Conclusion,
    Control,
    NearestFault,
    Power,
    Reproducer,
    ScorecardRow,
    Verdict,
)

SCRIPT = """\
import numpy as np
from mine import verify

draft = np.array([[1, 2]])
q = np.array([[[0.5, 0.1875, 0.0625, 0.25], [0.5, 0.375, 0.0625, 0.0625]]])
print(verify(draft, q, q, np.array([2]), np.random.default_rng(0)))
"""

EXACT = Finding(
    "exact law", Outcome.PASSED, Grade.EXACT, "equal to the target's law, exactly",
    world="L4", num_draft=2, max_draft=3, total_variation=0.0, error=0.0, size=412,
)  # fmt: skip
SAMPLED = Finding(
    "joint law", Outcome.PASSED, Grade.SAMPLED, "chi-square 58.1 < 103.4", world="L357",
    num_draft=2, max_draft=2, total_variation=0.0021, error=0.004, size=300_000,
)  # fmt: skip
NOTE = Finding("seeds", Outcome.NOTE, Grade.BEHAVIOUR, "it draws entropy of its own", size=4)
LOSSY = Finding(
    "exact law", Outcome.LOSSY, Grade.EXACT, "total variation 0.1445 <b>from</b> the target",
    world="L4", num_draft=2, max_draft=3, total_variation=0.1445, error=0.0, size=412,
    cells=(Cell((0, 1, 2), 0.0234375, 0.0078125), Cell((3, 0, 0), 0.0078125, 0.0234375)),
    residuals=(0.015625, -0.015625),
)  # fmt: skip
BROKEN = Finding("shape", Outcome.BROKEN, Grade.BEHAVIOUR, "token 17 of a vocabulary of 4\x00")
NOT_DRIVABLE = Finding("exact law", Outcome.NOT_DRIVABLE, Grade.EXACT, "it calls rng.choice")

POWER = Power(
    controls_killed=2, controls_total=2, smallest_visible_total_variation=0.0101,
    hardest_world="L357",
    controls=(
        Control("residual |p - q|", ("exact law", "joint law"), 0.1445),
        Control("lenience 1.1", ("exact law",), 0.0584),
    ),
)  # fmt: skip
SCORECARD = (
    ScorecardRow("accept rule", "passed", "64 of 64 thresholds right"),
    ScorecardRow("residual", "failed", "off by 0.0156 at token 2"),
    ScorecardRow("bonus token", "not applicable"),
)
LEFT_OUT = ("larger V, other dtypes, longer drafts", "calls from many threads")


def verdict(outcome=Conclusion.NOT_REJECTED, **changes):
    """A verdict of ours in every field, changed in some."""
    fields = {
        "subject": "draftproof.verify", "contract": "ragged", "profile": "quick", "seed": 7,
        "outcome": outcome, "reason": "the law is exact in 2 worlds", "version": "0.1.0",
        "backends": ("native", "reference"), "findings": (EXACT, SAMPLED, NOTE),
        "total_variation_bound": 0.0041, "power": POWER,
        "false_alarm_budget": {"joint law": 7e-7, "rows": 3e-7}, "scorecard": SCORECARD,
        "not_covered": LEFT_OUT, "efficiency": {"L4": 21 / 16},
        "numerical_grade": "sums in float64", "seconds": 3.21, "captured_output": "hello\n",
        "row_seconds": {"1": 1.25e-5, "4096": 2.5e-7},
    }  # fmt: skip
    return Verdict(**{**fields, **changes})


def rejected(**changes):
    facts = {
        "subject": "mine.py:verify", "reason": "exact law: total variation 0.1445 on L4",
        "findings": (LOSSY, BROKEN, SAMPLED), "total_variation_bound": None,
        "nearest_fault": NearestFault(
            "residual |p - q|", "draws from |p - q| after a rejection", "naive #19", 0.98
        ),
        "reproducer": Reproducer("draftproof check mine.py:verify --seed 7", SCRIPT),
    }  # fmt: skip
    return verdict(Conclusion.REJECTED, **{**facts, **changes})


def broken(**changes):
    facts = {
        "reason": "a token out of range", "findings": (BROKEN, NOT_DRIVABLE), "scorecard": (),
        "total_variation_bound": None,
    }  # fmt: skip
    return verdict(Conclusion.BROKEN, **{**facts, **changes})


def inconclusive(**changes):
    facts = {
        "reason": "lenience 1.1 was not caught", "total_variation_bound": None,
        "power": Power(1, 2, 0.2, "L357", ("lenience 1.1",), (Control("lenience 1.1"),)),
    }  # fmt: skip
    return verdict(Conclusion.INCONCLUSIVE, **{**facts, **changes})


ALL = {each().outcome.value: each().to_dict() for each in (verdict, rejected, broken, inconclusive)}
