"""Decoders: laws of whole texts, exact where a round can be driven, else sampled and any-time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from draftproof.proof.anytime.watch import Watch, tokens_for
from draftproof.proof.checks.honesty import check_honesty
from draftproof.proof.checks.oracle import law_finding
from draftproof.proof.checks.sampled import ROWS, Trial, coarse, deadline_of
from draftproof.proof.decoders.models import Models
from draftproof.proof.decoders.recital import prompt_for, recital, write_texts
from draftproof.proof.decoders.round_law import round_law
from draftproof.proof.decoders.sources import prompts_of
from draftproof.proof.exact.generator import NotDrivable
from draftproof.proof.sampled.budget import DECODER_SHARES, share
from draftproof.proof.sampled.pairs import PairSampler, halves, neighbours
from draftproof.proof.sampled.sampling import Sampler, streams
from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.subjects.decoder import Decoder
from draftproof.proof.subjects.subject import Subject
from draftproof.proof.trial.examination import Check
from draftproof.proof.trial.plan import Plan, visible_by_decoders
from draftproof.proof.verdicts.finding import Finding, Grade, Outcome
from draftproof.proof.worlds.catalogue import WORLDS

__all__ = ["GENERATE", "OWN_MODELS", "ROUND", "check_ends"]

EOS = 3
"""The token of L4 that ends texts, where texts end."""
ROUNDS: Mapping[str, tuple[tuple[int, ...], ...]] = MappingProxyType(
    {"L4": ((1, 1),), "toy": ((1, 1, 1), (2, 1), (3, 1))}
)
"""Drafts of the rounds of one text: what a round leaves behind shows in the next."""
TEXTS = 48
"""Whose equality under two seeds cannot be chance."""


def check_rounds_exactly(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """The exact joint law of one round, in each world and length of the plan."""
    for name in plan.worlds:
        for k in sorted({g for g, _ in plan.sizes}):
            yield _exact("oracle", subject, name, (k,), plan)


def check_several_rounds_exactly(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """The exact joint law of several rounds of one text, by one decoder and one generator."""
    for name, each in ROUNDS.items():
        for rounds in each:
            yield _exact("oracle-calls", subject, name, rounds, plan)


def _exact(check: str, subject: Subject, name: str, rounds: tuple[int, ...], plan: Plan) -> Finding:
    world, longest = WORLDS[name], max(rounds)
    try:
        found = round_law(subject, world, rounds, 4 * plan.max_paths)
    except NotDrivable as refusal:
        message = str(refusal)
        return Finding(check, Outcome.NOT_DRIVABLE, Grade.EXACT, message, name, longest, longest)
    what = f"the exact law of a round of {longest}"
    if len(rounds) > 1:
        what = f"the exact law of rounds of {' and '.join(map(str, rounds))}"
    target = world.target_law(sum(rounds) + len(rounds))
    return law_finding(check, name, (longest, longest), what, found, target)


def check_different_seeds(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """Other seeds give other texts, and equal ones equal texts."""
    first, other, again = (_texts(subject, plan, s) for s in (plan.seed, plan.seed + 1, plan.seed))
    if first == other:
        message = f"equal texts for the seeds {plan.seed} and {plan.seed + 1}: {TEXTS} of them"
        yield Finding("different-seeds", Outcome.LOSSY, Grade.BEHAVIOUR, message)
    elif first != again:
        message = "own entropy: equal seeds give different texts, so no run can be repeated"
        yield Finding("different-seeds", Outcome.NOTE, Grade.BEHAVIOUR, message)
    else:
        message = "other seeds, other texts; equal seeds, equal texts"
        yield Finding("different-seeds", Outcome.PASSED, Grade.BEHAVIOUR, message)


def _texts(subject: Subject, plan: Plan, seed: int) -> list[tuple[int, ...]]:
    """Texts of a decoder that is made anew."""
    if subject.has_own_models:
        prompts = prompts_of(plan)
        decoder = Decoder(subject, None, None, plan.eos)
        prompts = [prompts[b % len(prompts)] for b in range(TEXTS)]
    else:
        decoder = Decoder(subject, Models(WORLDS["L4"]))
        prompts = [prompt_for(0, b) for b in range(TEXTS)]
    if decoder.contract is Contract.GENERATE:
        return decoder.generate(prompts, 8, seed)
    rng = np.random.default_rng(seed)
    return write_texts(decoder, prompts, 8, 2, np.random.default_rng(0), rng)


def check_ends(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """Nothing is written behind the token that ends a text, though it was drafted and accepted."""
    decoder = Decoder(subject, Models(WORLDS["L4"], EOS))
    length_rng, rng = streams(plan.seed, "ends")
    for size in (1, 3, 60):
        prompts = [prompt_for(b % EOS, b) for b in range(size)]
        write_texts(decoder, prompts, 12, 3, length_rng, rng)
    if decoder.overran and decoder.stopped:
        message = (
            f"{decoder.overran} texts go on behind their last token, which world.eos says, and "
            f"{decoder.stopped} stop there"
        )
        yield Finding("ends", Outcome.LOSSY, Grade.BEHAVIOUR, message, "L4", size=64)
    elif decoder.overran:
        message = "it writes on behind world.eos: what ends a text was not examined"
        yield Finding("ends", Outcome.NOTE, Grade.BEHAVIOUR, message)
    else:
        message = f"{decoder.stopped} texts end where world.eos says"
        yield Finding("ends", Outcome.PASSED, Grade.BEHAVIOUR, message, size=64)


def check_anytime(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """Bets against it, token by token, on longer texts and at a vocabulary of 5,000."""
    watch = Watch(subject, plan, share(plan.false_alarm, "anytime", DECODER_SHARES))
    complete = watch.run(tokens_for(plan), deadline_of(plan))
    yield from watch.findings(complete)


def check_joint(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """The joint law of three tokens over several rounds, in each world of the plan."""
    settings: list[tuple[str, int | None]] = [(name, None) for name in plan.worlds]
    if subject.contract is Contract.GENERATE and _ends(subject, plan):
        settings.append(("L4", EOS))
    size = share(plan.false_alarm, "joint", DECODER_SHARES) / len(settings)
    deadline, visible = deadline_of(plan), visible_by_decoders(plan)
    for place, (name, eos) in enumerate(settings):
        experiment = replace(recital(subject, WORLDS[name], eos=eos), together=32)
        sampler = Sampler(subject, experiment, plan.seed, f"joint {name} {eos}")
        seen = visible if place == 0 else coarse(plan, 4)
        yield from Trial("joint", plan, seen, size, deadline).run(sampler)


def _ends(subject: Subject, plan: Plan) -> bool:
    return all(finding.outcome is Outcome.PASSED for finding in check_ends(subject, plan))


def check_rows(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """Rows of one batch are independent of each other."""
    pairings = {"of neighbouring rows": neighbours, "of rows half a batch apart": halves}
    size = share(plan.false_alarm, "rows", DECODER_SHARES)
    experiment = recital(subject, WORLDS["L4"], length=2)
    sampler = PairSampler(subject, experiment, pairings, ROWS, plan.seed, "rows")
    yield from Trial("rows", plan, coarse(plan, 4), size, deadline_of(plan)).run(sampler)


ROUND: Mapping[str, Check] = MappingProxyType(
    {
        "oracle": check_rounds_exactly,
        "oracle-calls": check_several_rounds_exactly,
        "honesty": check_honesty,
        "different-seeds": check_different_seeds,
        "anytime": check_anytime,
        "joint": check_joint,
    }
)
"""What a decoder's rounds are held to, by name, in order."""
GENERATE: Mapping[str, Check] = MappingProxyType(
    {
        "ends": check_ends,
        "different-seeds": check_different_seeds,
        "anytime": check_anytime,
        "joint": check_joint,
        "rows": check_rows,
    }
)
"""What a decoder of whole texts is held to; of one with models of its own see `OWN_MODELS`."""
OWN_MODELS = ("different-seeds", "anytime")
"""All that can be asked of a decoder that no world was given."""
