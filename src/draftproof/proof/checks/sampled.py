"""Sampled evidence: the laws of many texts, and of pairs of texts, against exact ones.

Each check makes texts under conditions of its own and compares each table of counts with the law
that a lossless subject must give, at the size that `proof.sampled.budget` allots. Conditions
that no law shows by itself are pairs: a noise that two rows, calls or seeds share leaves every
single law right.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from draftproof.proof.sampled.budget import LOOKS, share
from draftproof.proof.sampled.pairs import Pairing, PairSampler, consecutive, halves, neighbours
from draftproof.proof.sampled.sampling import Experiment, Padding, Sampler, always, ragged
from draftproof.proof.sampled.statistics import (
    Comparison,
    compare,
    dispersion,
    required_sequences,
    visible_total_variation,
)
from draftproof.proof.sampled.table import Table
from draftproof.proof.subjects.subject import Contract, Subject
from draftproof.proof.trial.plan import Plan
from draftproof.proof.verdicts.finding import Finding, Grade, Outcome
from draftproof.proof.worlds.catalogue import WORLDS
from draftproof.proof.worlds.world import World

__all__ = [
    "check_few_rows",
    "check_joint",
    "check_ragged",
    "check_rounds",
    "check_rows",
    "check_seeds",
]

PATIENCE = 0.8
"""Part of a check's time after which it stops and says how much it saw."""
COARSE = 4
"""Beside the main worlds gross faults show: this many times the total variation is to be seen."""
LEAST_TEXTS = 1_000
"""Even where a law of few cells needs fewer."""
FEW_TEXTS = 200
"""The same where each takes calls of its own."""
WORST_CELLS = 5
ROWS = 128
"""Of a batch whose rows are paired."""


def check_joint(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """The joint law of three tokens over the plan's rounds, in each of its worlds."""
    size = share(plan.false_alarm, "joint") / len(plan.worlds)
    deadline = deadline_of(plan)
    for place, name in enumerate(plan.worlds):
        visible = plan.visible * (1 if place < plan.main_worlds else COARSE)
        experiment = experiment_of(subject, name)
        if plan.rounds is not None:  # drafts so few that the token behind them all counts
            experiment = replace(experiment, rounds=plan.rounds, longest=experiment.length - 1)
        sampler = Sampler(subject, experiment, plan.seed, f"joint {name}")
        yield from Trial("joint", plan, visible, size, deadline).run(sampler)


def check_ragged(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """Rows of any length and of three laws in one batch, with each kind of padding behind them."""
    size = share(plan.false_alarm, "ragged") / len(Padding)
    deadline = deadline_of(plan)
    other_start = replace(WORLDS["L4"], name="L4 from 2", start=2)
    rows = replace(experiment_of(subject, "L4", "L357", other_start), extra=2, lengths=ragged)
    alone = subject.contract is Contract.SINGLE  # whose rows come without their padding
    paddings = (Padding.POISON,) if alone else tuple(Padding)
    for padding in paddings:
        visible = coarse(plan, 4)
        how = f" in ragged rows, padded with {padding.value}"
        experiment = replace(rows, padding=padding)
        sampler = Sampler(subject, experiment, plan.seed, f"ragged {padding.name}")
        least = LEAST_TEXTS // len(paddings)
        yield from Trial("ragged", plan, visible, size, deadline, how, least).run(sampler)


def check_few_rows(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """A row alone, then two rows of two laws: in a large batch the first and the last hide.

    A subject of single rows has nothing of the kind.
    """
    if subject.contract is Contract.SINGLE:
        return
    size = share(plan.false_alarm, "few-rows") / 2
    deadline = deadline_of(plan)
    for worlds, how in ((("L4",), ", each alone in its batch"), (("L4", "L357"), " by twos")):
        rows = experiment_of(subject, *worlds)
        experiment = replace(rows, length=2, longest=2, lengths=ragged, together=1)
        sampler = Sampler(subject, experiment, plan.seed, f"few-rows {len(worlds)}")
        trial = Trial("few-rows", plan, coarse(plan, 8), size, deadline, how, FEW_TEXTS)
        yield from trial.run(sampler)


def check_rounds(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """Rows that keep their place from round to round, so that noise of an old round shows."""
    rows = experiment_of(subject, "L4")
    experiment = replace(rows, longest=1, lengths=always, in_place=True)
    sampler = Sampler(subject, experiment, plan.seed, "rounds")
    size, how = share(plan.false_alarm, "rounds"), " by rounds of one draft, each row in its place"
    yield from Trial("rounds", plan, coarse(plan, 4), size, deadline_of(plan), how).run(sampler)


def check_rows(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """Rows of one batch are independent of each other."""
    pairings = {"of neighbouring rows": neighbours, "of rows half a batch apart": halves}
    yield from _check_pairs("rows", subject, plan, pairings)


def check_seeds(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """Calls with generators of different seeds are independent."""
    pairings = {"of one row under two seeds": consecutive}
    yield from _check_pairs("seeds", subject, plan, pairings, reseed=True)


def _check_pairs(
    check: str,
    subject: Subject,
    plan: Plan,
    pairings: Mapping[str, Pairing],
    *,
    reseed: bool = False,
) -> Iterator[Finding]:
    rows, batched = experiment_of(subject, "L4"), subject.contract is not Contract.SINGLE
    experiment = replace(rows, length=2, longest=2, lengths=always, in_place=batched)
    sampler = PairSampler(subject, experiment, pairings, ROWS, plan.seed, check, reseed)
    size = share(plan.false_alarm, check) / 2
    findings = list(Trial(check, plan, coarse(plan, 4), size, deadline_of(plan)).run(sampler))
    yield from findings
    if all(finding.outcome is not Outcome.INCONCLUSIVE for finding in findings):
        yield _dispersion(check, sampler, size)


def _dispersion(check: str, sampler: PairSampler, size: float) -> Finding:
    """Does the number of rows that begin with a token vary from batch to batch as it must?"""
    experiment = sampler.experiment
    world, by_call = experiment.worlds[0], sampler.by_call
    first_law = [float(x) for x in world.target[world.start]]
    tests = [
        (*dispersion(by_call[:, token], sampler.rows, p), token)
        for token, p in enumerate(first_law)
        if 0 < p < 1
    ]
    index, bound, token = min(tests, key=lambda test: test[1])
    bound = min(1.0, bound * len(tests))
    wrong = bound <= size
    amount = f"{'too little' if index < 1 else 'too much'}: " if wrong else ""
    return Finding(
        check,
        Outcome.LOSSY if wrong else Outcome.PASSED,
        Grade.SAMPLED,
        f"dispersion over {len(by_call):,} batches of {sampler.rows} rows: {amount}"
        f"the variance of token {token}'s count is {index:.2f} times the binomial one"
        f" (false alarm at most {bound:.2g}, allowed {size:.2g})",
        world=world.name,
        num_draft=experiment.longest,
        max_draft=experiment.max_draft,
        size=len(by_call) * sampler.rows,
    )


class Growing(Protocol):
    """What makes texts, or pairs of texts."""

    experiment: Experiment

    @property
    def tables(self) -> list[Table]:
        """The counts so far."""

    def extend(self, each: int, deadline: float, /) -> bool:
        """Go on until each table counts so many; False if the time was not enough."""


@dataclass(frozen=True)
class Trial:
    """Looks at growing tables until one is wrong or the power is reached.

    Attributes:
        check: the check's name.
        plan: the verdict's.
        visible: the total variation to be seen, in each table.
        size: false-alarm probability, for all tables and looks together.
        deadline: of `time.monotonic`, when to stop.
        how: how the texts are made, for the message.
        least: texts to make at least.
    """

    check: str
    plan: Plan
    visible: float
    size: float
    deadline: float
    how: str = ""
    least: int = LEAST_TEXTS

    def run(self, growing: Growing) -> Iterator[Finding]:
        """Yield one finding for each table."""
        tables = growing.tables
        size, (_, last) = self.size / len(tables), LOOKS[-1]
        needed = max(
            required_sequences(self.visible, self.plan.power, size * float(last), table.law)
            for table in tables
        )
        texts = max(needed, self.least)
        for fraction, part in LOOKS:
            wanted = math.ceil(fraction * texts)
            complete = growing.extend(wanted, self.deadline)
            findings = [
                self._judge(growing, table, size * float(part), texts, complete)
                for table in growing.tables
            ]
            if not complete or any(finding.outcome is Outcome.LOSSY for finding in findings):
                break
        yield from findings

    def _judge(
        self, growing: Growing, table: Table, size: float, texts: int, complete: bool
    ) -> Finding:
        comparison = compare(table.counts, table.law)
        outcome = Outcome.PASSED if complete else Outcome.INCONCLUSIVE
        if comparison.false_alarm <= size:
            outcome = Outcome.LOSSY
        message = self._message(table, comparison, size, outcome)
        if outcome is Outcome.INCONCLUSIVE:
            message += (
                f"; there was no time for the wanted {self.visible:g}, which takes "
                f"{texts / max(1, table.size):,.1f} times as many: {self.plan.longer}"
            )
        if isinstance(growing, Sampler) and growing.emitted.any() and outcome is Outcome.PASSED:
            message += f"; {growing.emitted_per_call:.3f} tokens a call"
        return Finding(
            self.check,
            outcome,
            Grade.SAMPLED,
            message,
            world=table.world,
            num_draft=growing.experiment.longest,
            max_draft=growing.experiment.max_draft,
            total_variation=comparison.total_variation,
            error=comparison.total_variation_upper,
            cells=table.worst(WORST_CELLS),
            size=comparison.size,
            residuals=tuple(table.residuals.tolist()),
            case={"visible": self._visible(table, size)} if not complete else {},
        )

    def _visible(self, table: Table, size: float) -> float:
        """The total variation that so many texts show."""
        return visible_total_variation(max(1, table.size), self.plan.power, size, table.law)

    def _message(self, table: Table, comparison: Comparison, size: float, outcome: Outcome) -> str:
        made = f"joint law of {comparison.size:,} {table.what}{self.how}: "
        if math.isinf(comparison.statistic):
            return made + "one that the target cannot write was seen"
        made += (
            f"chi-square {comparison.statistic:,.1f} on {comparison.degrees_of_freedom} degrees of "
            f"freedom (p = {comparison.p_value:.2g})"
        )
        if outcome is Outcome.LOSSY:
            return f"{made}; false alarm at most {comparison.false_alarm:.2g}, allowed {size:.2g}"
        made += f"; a total variation above {self._visible(table, size):.3f} would have been seen "
        return f"{made}with probability {self.plan.power:g}"


def experiment_of(subject: Subject, *worlds: str | World) -> Experiment:
    """The usual experiment in these worlds, with the drafts that belong to the subject."""
    found = tuple(WORLDS[world] if isinstance(world, str) else world for world in worlds)
    return Experiment(found, sampled_law=subject.sampled_law)


def coarse(plan: Plan, factor: float) -> float:
    """The total variation to be seen where faults are gross, or show in the main worlds too."""
    return max(factor * plan.visible, 0.01 * factor)


def deadline_of(plan: Plan) -> float:
    return time.monotonic() + PATIENCE * plan.timeout
