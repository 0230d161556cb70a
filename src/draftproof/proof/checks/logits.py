"""The law of a verifier from logits: exact where it can be driven, else by replay; and sampled."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import groupby, islice

from draftproof.proof.checks.oracle import law_finding
from draftproof.proof.checks.sampled import PATIENCE, Trial
from draftproof.proof.exact.bisection import ASSUMPTION, bisected_law
from draftproof.proof.exact.exact_law import Enumeration
from draftproof.proof.exact.generator import NotDrivable
from draftproof.proof.exact.logits_oracle import oracle_logits_law
from draftproof.proof.exact.replay import Replay
from draftproof.proof.logits.call import engine_of, takes_prompts
from draftproof.proof.logits.lanes import bound
from draftproof.proof.logits.texts import LogitsTexts
from draftproof.proof.sampled.budget import LOGITS_SHARES, share
from draftproof.proof.sampled.sampling import Padding
from draftproof.proof.subjects.subject import Subject
from draftproof.proof.trial.plan import Plan
from draftproof.proof.verdicts.finding import Finding, Grade, Outcome
from draftproof.proof.worlds.law import Law
from draftproof.proof.worlds.logits_world import (
    FOCUSED,
    LONGEST,
    PROMPTED,
    RANDOM_WORLDS,
    LogitsWorld,
    logits_world,
)

__all__ = [
    "check_logits_bisection",
    "check_logits_calls",
    "check_logits_engine",
    "check_logits_joint",
    "check_logits_oracle",
    "check_logits_padding",
    "check_logits_pairs",
    "judged",
    "named",
    "worlds_for",
]

QUICK_RANDOM = 2
"""Random worlds of a quick trial, beside the focused ones."""
QUICK_PAIRS = 2
QUICK_REPLAYED = 6
VISIBLE = 0.1
"""Of the sampled check at least: every row of a call has parameters and a history of its own."""
SHARP = {"quick": 0.05, "standard": 0.03, "paper": 0.02}
"""By profile: what it shows where nothing else has told the law and the subject is fast enough."""
PADDED = ("temperatures", "penalties", "grammar")
"""Worlds in which nothing behind a draft may be read."""
FLOAT32 = 2.0**29
"""How much coarser float32 rounds than float64: engines make their laws in it."""
FEW = 2
"""Worlds that are sampled at least, for each one of the plan."""
TALLIED = 4
"""The vocabulary of the worlds that are sampled: they share their batches."""
K = LONGEST - 1
"""Drafts of the longest draft."""


def worlds_for(subject: Subject, plan: Plan) -> tuple[LogitsWorld, ...]:
    """Return the worlds of a trial, their requests as the subject's engine can have them."""
    randoms = [f"random {number}" for number in range(RANDOM_WORLDS)]
    if plan.profile == "quick":
        randoms = randoms[:QUICK_RANDOM]
    prompted = PROMPTED if takes_prompts(subject) else ()
    return named(subject, [*FOCUSED, *randoms, *prompted])


def named(subject: Subject, names: Iterable[str]) -> tuple[LogitsWorld, ...]:
    """Return worlds by name, their requests as the subject's engine can have them."""
    order, lacks = engine_of(subject)
    return tuple(logits_world(name, order, lacks) for name in names)


def check_logits_engine(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """What the subject says of itself: its order of operations, and what it does not have."""
    order, lacks = engine_of(subject)
    if lacks:
        message = f"judged without {', '.join(sorted(lacks))}, which it says that it lacks"
        yield Finding("logits-engine", Outcome.NOTE, Grade.BEHAVIOUR, message)
    yield Finding("logits-engine", Outcome.PASSED, Grade.BEHAVIOUR, f"the order is {order}'s")


def check_logits_oracle(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """The exact joint law of one request, alone in its batch, in each world and size."""
    for world in worlds_for(subject, plan):
        for g, columns in plan.sizes:
            if g <= K:
                yield _exact("logits-oracle", subject, (world,), ((g,),), columns, plan)


def check_logits_pairs(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """Two requests of different parameters in one call: the product of their laws, exactly."""
    quick = plan.profile == "quick"
    for worlds in islice(_pairs(worlds_for(subject, plan)), QUICK_PAIRS if quick else None):
        for lengths in ((1, 1), (K, 0)):
            yield _exact("logits-pairs", subject, worlds, (lengths,), max(lengths), plan)


def check_logits_calls(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """Two calls with one generator: noise or counts that are kept show in the law of both."""
    quick = plan.profile == "quick"
    for world in worlds_for(subject, plan)[: 2 * QUICK_PAIRS if quick else len(FOCUSED)]:
        yield _exact("logits-calls", subject, (world,), ((1,), (0,)), 1, plan)


def check_logits_padding(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """The exact law of a request with each kind of padding behind its drafts, or none."""
    for world in named(subject, PADDED):
        for padding in (Padding.ZERO, Padding.STALE):
            for g in (0, 1):
                found = _exact("logits-padding", subject, (world,), ((g,),), K, plan, padding)
                yield found
                if found.outcome is Outcome.NOT_DRIVABLE:
                    return


def check_logits_bisection(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """The law of one request by the subject's own thresholds, where they can be found by replay.

    The request stands among requests of the next world. Where the oracle has told the law, and
    `after_proof` has left one world, none is replayed; nor are more than there is time for.
    """
    began = before = time.monotonic()
    if len(plan.worlds) == 1:
        return
    worlds = worlds_for(subject, plan)
    replayed = worlds[:QUICK_REPLAYED] if plan.profile == "quick" else worlds
    what = f"the law of a text by its own thresholds, taking it that {ASSUMPTION},"
    for world in replayed:
        now = time.monotonic()
        if now - began + 2 * (now - before) > PATIENCE * plan.timeout:
            left = f"the thresholds in {world.name} and the worlds behind it"
            message = f"no time for {left}: {plan.longer}"
            yield Finding("logits-bisection", Outcome.NOTE, Grade.EXACT, message)
            return
        before = now
        alike = [other for other in worlds if other.vocabulary == world.vocabulary]
        beside = alike[(alike.index(world) + 1) % len(alike)]
        found = partial(_bisected, subject, world, beside)
        yield judged("logits-bisection", world.name, (1, K), what, found, world.target_law(2))


def check_logits_joint(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """The joint law of many texts with a real generator, ragged drafts in mixed batches.

    Where neither the oracle nor replay has told the law it goes on from `VISIBLE` in a few worlds
    to all of them, and to `SHARP`, as long as there is time: a slow subject shows less, and what it
    has shown is said.
    """
    deadline = time.monotonic() + PATIENCE * plan.timeout
    worlds = [world for world in worlds_for(subject, plan) if world.vocabulary == TALLIED]
    few = LogitsTexts(subject, worlds[: FEW * len(plan.worlds)], plan.seed, "logits-joint")
    steps = [(few, VISIBLE)]
    if plan.visible < VISIBLE:
        every = LogitsTexts(subject, worlds, plan.seed, "logits-joint, every world")
        steps += [(every, VISIBLE), (every, SHARP[plan.profile])]
    size = share(plan.false_alarm, "logits-joint", LOGITS_SHARES) / len(steps)
    told: list[Finding] = []
    for texts, visible in steps:
        how = " in batches of mixed requests"
        trial = Trial("logits-joint", plan, visible, size, deadline, how)
        findings = list(trial.run(texts))
        outcomes = {finding.outcome for finding in findings}
        if told and Outcome.INCONCLUSIVE in outcomes and Outcome.LOSSY not in outcomes:
            break
        told = [replace(f, case={"visible": visible, **f.case}) for f in findings]
        if outcomes != {Outcome.PASSED}:
            break
    yield from told


def _pairs(worlds: Sequence[LogitsWorld]) -> Iterator[tuple[LogitsWorld, LogitsWorld]]:
    """Every two worlds of one vocabulary, as they follow each other."""
    for _, group in groupby(worlds, key=lambda world: world.vocabulary):
        alike = list(group)
        yield from zip(alike[::2], alike[1::2], strict=False)


def _exact(
    check: str,
    subject: Subject,
    worlds: Sequence[LogitsWorld],
    rounds: Sequence[tuple[int, ...]],
    columns: int,
    plan: Plan,
    padding: Padding = Padding.POISON,
) -> Finding:
    """Compare the exact law of a batch's texts with the product of the requests' laws."""
    name = " and ".join(world.name for world in worlds)
    run = partial(oracle_logits_law, subject, worlds, rounds, columns, 4 * plan.max_paths, padding)
    lengths = [sum(row) + len(rounds) for row in zip(*rounds, strict=True)]
    targets = (world.target_law(n) for world, n in zip(worlds, lengths, strict=True))
    what = f"the exact law of {'a text' if len(worlds) == 1 else 'two texts'}"
    if len(rounds) > 1:
        what += f" by {len(rounds)} calls"
    if padding is not Padding.POISON:
        what += f" padded with {padding.value}"
    size = max(rounds[0]), columns
    return judged(check, name, size, what, run, reduce(Law.product, targets))


def judged(
    check: str,
    name: str,
    size: tuple[int, int],
    what: str,
    run: Callable[[], Enumeration],
    target: Law,
) -> Finding:
    """Find the law and compare it.

    What rounding to float32 explains is a note, no bias; it makes no impossible text possible.
    """
    try:
        found = run()
    except NotDrivable as refusal:
        return Finding(check, Outcome.NOT_DRIVABLE, Grade.EXACT, str(refusal), name, *size)
    finding = law_finding(check, name, size, what, found, target)
    single = FLOAT32 * float(found.law.error)
    small = (finding.total_variation or 0) <= single and all(text in target for text in found.law)
    if finding.outcome is Outcome.LOSSY and small:
        message = f"{finding.message}; rounding to float32 explains {single:.2g}"
        return replace(finding, outcome=Outcome.NOTE, message=message, cells=())
    return finding


def _bisected(subject: Subject, world: LogitsWorld, beside: LogitsWorld) -> Enumeration:
    return bisected_law(Replay(bound(subject, world, beside), world, 1, K))
