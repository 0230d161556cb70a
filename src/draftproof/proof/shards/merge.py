"""Many shards, one verdict: counts add up, e-values multiply, and none counts twice."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from draftproof.proof.sampled.statistics import compare, visible_total_variation
from draftproof.proof.sampled.table import Table
from draftproof.proof.shards.shard import bets_size, experiments_of, joint_size
from draftproof.proof.shards.tally import Tally, distinct
from draftproof.proof.subjects.subject import Subject, load
from draftproof.proof.trial.examination import broken
from draftproof.proof.trial.matrix import Matrix
from draftproof.proof.trial.plan import Plan
from draftproof.proof.verdicts.finding import Finding, Grade, Outcome
from draftproof.proof.verdicts.verdict import Conclusion, Verdict

__all__ = ["merge"]

WORST = 5


def merge(tallies: Sequence[Tally]) -> Verdict:
    """Conclude from shards; from too few of them nothing but a rejection.

    Args:
        tallies: of one verdict, in any order; a shard that was run twice counts once.

    Raises:
        ValueError: they are not of one verdict, or one shard has two different contents.
    """
    from draftproof.proof.judge import conclude

    shards = distinct(tallies)
    identity, plan = shards[0].identity, shards[0].identity.plan
    subject = load(identity.subject, identity.contract)
    missing = sorted(set(range(1, identity.shards + 1)) - {tally.shard for tally in shards})
    rest = next((tally.rest for tally in shards if tally.rest is not None), None)
    before = Verdict.from_dict(rest) if rest is not None else None
    findings = [
        *(before.findings if before is not None else ()),
        *_joint(subject, plan, shards, missing),
        *_bets(subject, plan, shards, missing),
        *(broken(f"shard {tally.shard}", tally.broken) for tally in shards if tally.broken),
    ]
    power = before.power if before is not None else None
    matrix = Matrix(power.controls if power is not None else ())
    seconds = sum(tally.seconds for tally in shards)
    scorecard = before.scorecard if before is not None else ()
    verdict = conclude(subject, findings, matrix, plan, seconds, scorecard)
    if missing and verdict.outcome is Conclusion.NOT_REJECTED:
        reason = f"{_numbers(missing)} of {identity.shards} missing"
        return replace(verdict, outcome=Conclusion.INCONCLUSIVE, reason=reason)
    return verdict


def _joint(
    subject: Subject, plan: Plan, shards: Sequence[Tally], missing: Sequence[int]
) -> Iterator[Finding]:
    size = joint_size(subject, plan)
    for experiment in experiments_of(subject, plan):
        world, law = experiment.worlds[0].name, experiment.laws[0]
        parts = [c.counts for tally in shards for c in tally.counts if c.world == world]
        counts = np.sum([np.zeros(len(law), np.int64), *map(np.array, parts)], axis=0)
        shape = (experiment.vocabulary,) * experiment.length
        table = Table(world, f"texts of {experiment.length} tokens", counts, law, shape)
        found = compare(counts, law)
        outcome = Outcome.INCONCLUSIVE if missing or len(parts) < len(shards) else Outcome.PASSED
        if found.false_alarm <= size:
            outcome = Outcome.LOSSY
        message = f"joint law of {found.size:,} {table.what}, of {len(parts)} shards: "
        if math.isinf(found.statistic):
            message += "one that the target cannot write was seen"
        else:
            visible = visible_total_variation(max(1, found.size), plan.power, size, law)
            message += (
                f"chi-square {found.statistic:,.1f} on {found.degrees_of_freedom} degrees of "
                f"freedom (p = {found.p_value:.2g}); false alarm at most {found.false_alarm:.2g}, "
                f"allowed {size:.2g}; a total variation above {visible:.2g} would have been seen "
                f"with probability {plan.power:g}"
            )
        if missing:
            message += f"; missing: {_numbers(missing)}"
        yield Finding(
            "joint", outcome, Grade.SAMPLED, message, world, experiment.longest,
            experiment.max_draft, found.total_variation, found.total_variation_upper,
            table.worst(WORST), found.size, residuals=tuple(table.residuals.tolist()),
        )  # fmt: skip


def _bets(
    subject: Subject, plan: Plan, shards: Sequence[Tally], missing: Sequence[int]
) -> Iterator[Finding]:
    """E-values of independent shards: their product has expectation 1 at most, too."""
    names = list(dict.fromkeys(lane.name for tally in shards for lane in tally.lanes))
    size = bets_size(subject, plan)
    for name in names:
        lanes = [lane for tally in shards for lane in tally.lanes if lane.name == name]
        log_e = sum(math.inf if lane.log_e is None else lane.log_e for lane in lanes)
        tokens = sum(lane.tokens for lane in lanes)
        richest = max(lanes, key=lambda lane: math.inf if lane.log_e is None else lane.log_e)
        wrong = log_e >= math.log(len(names) / size)
        outcome = Outcome.LOSSY if wrong else Outcome.PASSED
        if missing and not wrong:
            outcome = Outcome.INCONCLUSIVE
        message = f"the e-values of {len(lanes)} shards, {tokens:,} tokens, multiply to "
        message += "infinity" if math.isinf(log_e) else f"10^{log_e / math.log(10):.2f}"
        if wrong:
            message += f"; what pays most: {richest.leader}"
        yield Finding("anytime", outcome, Grade.SAMPLED, message, name, size=tokens)


def _numbers(shards: Sequence[int]) -> str:
    noun = "shard" if len(shards) == 1 else "shards"
    return f"{noun} {', '.join(map(str, shards))}"
