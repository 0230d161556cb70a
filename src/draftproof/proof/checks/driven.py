"""Exact evidence by replay: chosen uniforms for black boxes that the oracle cannot follow."""

from __future__ import annotations

import math
from collections.abc import Iterator

from draftproof.proof.checks.oracle import law_finding
from draftproof.proof.exact.bisection import ASSUMPTION, bisected_law, impossible_measure
from draftproof.proof.exact.exact_law import BOUNDARY, RULES, Enumeration
from draftproof.proof.exact.generator import NotDrivable
from draftproof.proof.exact.lattice import disagreements, sobol_law
from draftproof.proof.exact.replay import Replay
from draftproof.proof.subjects.subject import Subject
from draftproof.proof.trial.plan import Plan
from draftproof.proof.verdicts.finding import Finding, Grade, Outcome
from draftproof.proof.worlds.catalogue import WORLDS
from draftproof.proof.worlds.world import World

__all__ = ["check_agreement", "check_bisection"]

LONGEST = 2
"""Drafts of a replayed row: the cells of more are too many."""
LONGEST_ALONE = 1
"""Drafts of a row that cannot be replayed beside others."""
AGREEMENT_SIZES = ((1, 1), (1, 2), (2, 2))


def check_bisection(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """Find the subject's own thresholds, to the last of 53 bits, and from them its law.

    Where thresholds move with other uniforms, as block verification's do, Sobol points estimate
    the law. An estimate never rejects: that is left to sampling, whose errors are known.
    """
    for name in plan.worlds:
        world = WORLDS[name]
        for g, K in plan.sizes:
            if g <= LONGEST:
                yield from _bisected(subject, world, g, K)


def check_agreement(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """Does it emit the reference's tokens on both sides of every threshold of the token rule?

    A subject need not: another rule is lossless too, and a threshold itself may belong to either
    side. One that does is the token rule to the last bit, as far as these worlds can show.
    """
    for name in plan.worlds:
        for g, K in AGREEMENT_SIZES:
            replay = Replay(subject, WORLDS[name], g, K)
            wrong = list(disagreements(replay, RULES["token"]))
            message = "emits the reference's tokens at 0, at the largest uniform and at both "
            message += "neighbours of every threshold of the token rule"
            if wrong:
                first = wrong[0]
                message = (
                    f"differs from the token rule's reference at {len(wrong):,} edges of its "
                    f"cells; drafts {first.drafts} at uniforms {first.uniforms}: "
                    f"{first.emitted}, the reference {first.expected}"
                )
            outcome = Outcome.NOTE if wrong else Outcome.PASSED
            yield Finding("agreement", outcome, Grade.EXACT, message, name, g, K)


def _bisected(subject: Subject, world: World, g: int, K: int) -> Iterator[Finding]:
    check, target = "bisection", world.target_law(g + 1)
    replay = Replay(subject, world, g, K)
    if replay.one_by_one and g > LONGEST_ALONE:
        message = f"Rows are called one by one, which is too slow for {g} drafts."
        yield Finding(check, Outcome.NOT_DRIVABLE, Grade.EXACT, message, world.name, g, K)
        return
    try:
        found = bisected_law(replay)
    except NotDrivable as refusal:
        estimate = sobol_law(replay)
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
