"""Exact evidence by replay: chosen uniforms for black boxes that the oracle cannot follow."""

from __future__ import annotations

import math
from collections.abc import Iterator

from draftproof.proof.checks.oracle import law_finding
from draftproof.proof.exact.bisection import (
    ASSUMPTION,
    Steps,
    bisected_law,
    impossible_measure,
)
from draftproof.proof.exact.exact_law import BOUNDARY, Enumeration
from draftproof.proof.exact.generator import NotDrivable
from draftproof.proof.exact.replay import Replay
from draftproof.proof.exact.sobol import sobol_law
from draftproof.proof.subjects.subject import Subject
from draftproof.proof.trial.plan import Plan
from draftproof.proof.verdicts.finding import Finding, Grade, Outcome
from draftproof.proof.worlds.catalogue import WORLDS
from draftproof.proof.worlds.world import World

__all__ = ["check_bisection"]

LONGEST = 2
"""Drafts of a replayed row: the cells of more are too many."""
SOBOL = 10
"""Binary logarithm of the points that estimate a law for each chain of drafts."""


def check_bisection(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """Find the subject's own thresholds, to the last of 53 bits, and from them its law.

    Where thresholds move with other uniforms Sobol points estimate the law, and drafts as long are
    not replayed again. An estimate never rejects: that is left to sampling, whose errors are known.
    """
    longest = LONGEST
    for name in plan.worlds:
        world, known = WORLDS[name], Steps()
        for g, K in plan.sizes:
            if g > longest:
                continue
            for finding in _bisected(subject, world, g, K, known):
                if finding.outcome is Outcome.NOT_DRIVABLE:
                    longest = g - 1
                yield finding


def _bisected(subject: Subject, world: World, g: int, K: int, known: Steps) -> Iterator[Finding]:
    check, target = "bisection", world.target_law(g + 1)
    replay = Replay(subject, world, g, K)
    try:
        found = bisected_law(replay, known)
    except NotDrivable as refusal:
        estimate = sobol_law(replay, SOBOL)
        distance = float(estimate.law.total_variation(target))
        message = f"{refusal} On Sobol points its law is {distance:.2g} from the target's, "
        message += f"within about {float(estimate.law.error):.2g}"
        yield Finding(check, Outcome.NOT_DRIVABLE, Grade.EXACT, message, world.name, g, K, distance)
        return
    what = f"the law of a text by its own thresholds, taking it that {ASSUMPTION},"
    yield law_finding(check, world.name, (g, K), what, found, target)
    yield from _impossible(found, world, g, K)


def _impossible(found: Enumeration, world: World, g: int, K: int) -> Iterator[Finding]:
    """Uniforms that produce what cannot be: enough of them reject, a few are the grid's edge."""
    measure = impossible_measure(found, world)
    if not measure:
        return
    message = f"uniforms of measure {float(measure):.3g} (2^{math.log2(measure):.0f}) give an "
    message += "impossible text or none at all"
    outcome = Outcome.LOSSY
    if measure < BOUNDARY:
        outcome, message = Outcome.NOTE, f"boundary: {message}; below 2^-40 that is no bias"
    yield Finding("bisection", outcome, Grade.EXACT, message, world.name, g, K, float(measure))
