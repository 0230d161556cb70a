"""Exact evidence by the interval oracle: all the ways in which comparisons can turn out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce

from draftproof.proof.exact.exact_law import (
    Enumeration,
    oracle_calls_law,
    oracle_law,
    oracle_pair_law,
)
from draftproof.proof.exact.generator import NotDrivable
from draftproof.proof.subjects.subject import Subject
from draftproof.proof.trial.plan import Plan
from draftproof.proof.verdicts.finding import Cell, Finding, Grade, Outcome
from draftproof.proof.worlds.catalogue import WORLDS
from draftproof.proof.worlds.law import Law

__all__ = ["check_oracle", "check_oracle_calls", "check_oracle_pairs", "law_finding"]

WORST_CELLS = 5


def check_oracle(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """The exact joint law of one row, alone in its batch, in each world and size of the plan."""
    for name in plan.worlds:
        world = WORLDS[name]
        for g, K in plan.sizes:
            run = partial(oracle_law, subject, world, g, K, plan.max_paths)
            target = world.target_law(g + 1)
            yield _compare("oracle", name, (g, K), "a text", run, target)


def check_oracle_pairs(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """Two rows of different worlds in one call: the product of their laws, exactly."""
    names = ("L4", "L357")
    worlds = (WORLDS[names[0]], WORLDS[names[1]])
    for lengths, K in (((1, 1), 1), ((0, 1), 2)):
        run = partial(oracle_pair_law, subject, worlds, lengths, K, 4 * plan.max_paths)
        targets = [world.target_law(g + 1) for world, g in zip(worlds, lengths, strict=True)]
        what = f"two rows of {lengths[0]} and {lengths[1]} drafts"
        product = reduce(Law.product, targets)
        yield _compare("oracle-pairs", " and ".join(names), (max(lengths), K), what, run, product)


def check_oracle_calls(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """Several calls with one generator: the law of all, exactly.

    Noise kept between calls shows in two rounds of one draft, or, if it returns later, in three
    without drafts; noise keyed by the place in the text shows where a rejected round has looked
    ahead, in a round of two drafts and one of one.
    """
    for name, rounds in (("L4", (1, 1)), ("toy", (2, 1)), ("L4", (0, 0, 0))):
        world, length = WORLDS[name], sum(rounds) + len(rounds)
        run = partial(oracle_calls_law, subject, world, rounds, max(rounds), 4 * plan.max_paths)
        what = f"rounds of {' and '.join(map(str, rounds))} drafts"
        size = (rounds[0], max(rounds))
        yield _compare("oracle-calls", name, size, what, run, world.target_law(length))


def _compare(
    check: str,
    world: str,
    size: tuple[int, int],
    what: str,
    run: Callable[[], Enumeration],
    target: Law,
) -> Finding:
    g, K = size
    try:
        found = run()
    except NotDrivable as refusal:
        return Finding(check, Outcome.NOT_DRIVABLE, Grade.EXACT, str(refusal), world, g, K)
    message = f"the exact law of {what}"
    return law_finding(check, world, size, message, found, target)


def law_finding(
    check: str,
    world: str,
    size: tuple[int, int],
    what: str,
    found: Enumeration,
    target: Law,
    whose: str = "the target's",
) -> Finding:
    """Compare an exact law with the target's: == where the arithmetic allows it, else its error."""
    distance, error = float(found.law.total_variation(target)), float(found.law.error)
    wrong = distance > error
    exactly = f"equals {whose}" if not distance else f"is {distance:.3g} from {whose}"
    allowed = f", rounding explains {error:.2g}" if distance else ""
    texts = sorted(set(found.law) | set(target))
    residuals = [float(found.law.get(text, 0)) - float(target.get(text, 0)) for text in texts]
    return Finding(
        check,
        Outcome.LOSSY if wrong else Outcome.PASSED,
        Grade.EXACT,
        f"{what} {exactly}{allowed} ({found.paths:,} calls)",
        world=world,
        num_draft=size[0],
        max_draft=size[1],
        total_variation=distance,
        error=error,
        cells=_worst(texts, residuals, target) if wrong else (),
        size=found.paths,
        emitted=float(found.emitted),
        residuals=tuple(residuals),
    )


def _worst(
    texts: Sequence[tuple[int, ...]], residuals: Sequence[float], target: Law
) -> tuple[Cell, ...]:
    ranked = sorted(range(len(texts)), key=lambda i: -abs(residuals[i]))[:WORST_CELLS]
    return tuple(
        Cell(texts[i], expected := float(target.get(texts[i], 0)), expected + residuals[i])
        for i in ranked
    )
