"""One shard: its share of a verdict's texts and bets, by a seed of its own."""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable
from dataclasses import replace

from draftproof.proof.anytime.watch import Watch, tokens_for
from draftproof.proof.checks.sampled import experiment_of
from draftproof.proof.decoders.recital import recital
from draftproof.proof.decoders.sources import require_source
from draftproof.proof.sampled.budget import DECODER_SHARES, share
from draftproof.proof.sampled.sampling import Experiment, Sampler
from draftproof.proof.sampled.statistics import required_sequences
from draftproof.proof.shards.tally import Count, Identity, Lane, Tally
from draftproof.proof.subjects.emission import ContractBroken
from draftproof.proof.subjects.raised import phrase
from draftproof.proof.subjects.subject import Subject, load
from draftproof.proof.trial.plan import Plan, visible_by_decoders
from draftproof.proof.worlds.catalogue import WORLDS

__all__ = [
    "LEFT_OUT",
    "bets_size",
    "experiments_of",
    "identify",
    "joint_size",
    "run_shard",
]

LEFT_OUT = ("joint", "anytime")
"""The checks that are cut into shards; the first shard runs all others."""
WORLDS_SAMPLED = 2
PIECES = 16
"""Looks at the progress of a shard's texts."""

OnProgress = Callable[[int, int, str], object]


def identify(
    spec: str | None, contract: str | None, plan: Plan, shards: int, texts: int | None = None
) -> Identity:
    """Say which verdict is to be cut into shards.

    Args:
        spec: the subject's specification; None for draftproof's own verifier on its best backend.
        contract: its call shape; guessed if left out.
        plan: of the whole verdict.
        shards: into how many parts.
        texts: of all shards together, in each world; what the plan's power needs if left out.

    Raises:
        ValueError: no such subject, no such number, or a contract whose law is not sampled.
    """
    from draftproof.proof.judge import installed_version

    if spec is None:
        from draftproof import available_backends

        spec = f"own:{available_backends()[0]}"
    subject = load(spec, contract)
    require_source(subject, plan)
    if shards < 1:
        raise ValueError(f"shards: found {shards}; wanted 1 or more.")
    if not (subject.contract.is_sampler or subject.contract.is_decoder):
        raise ValueError(
            f"shard: found the contract {subject.contract.value!r}; wanted one that is sampled."
        )
    return Identity(
        spec,
        subject.contract.value,
        plan.profile,
        plan.seed,
        shards,
        _texts(subject, plan) if texts is None else texts,
        installed_version(),
        plan.timeout,
        plan.law,
        plan.plain,
        plan.prompts,
        plan.eos,
    )


def joint_size(subject: Subject, plan: Plan) -> float:
    """The false-alarm rate of one world's table."""
    if subject.contract.is_decoder:
        return share(plan.false_alarm, "joint", DECODER_SHARES) / WORLDS_SAMPLED
    return share(plan.false_alarm, "joint") / 2 / WORLDS_SAMPLED


def bets_size(subject: Subject, plan: Plan) -> float:
    """The false-alarm rate of all bets: of a chain's verifier the other half of ``joint``."""
    if subject.contract.is_decoder:
        return share(plan.false_alarm, "anytime", DECODER_SHARES)
    return share(plan.false_alarm, "joint") / 2


def experiments_of(subject: Subject, plan: Plan) -> list[Experiment]:
    """How the texts of each world are made; none for a decoder with models of its own."""
    if subject.has_own_models:
        return []
    worlds = [WORLDS[name] for name in plan.worlds[:WORLDS_SAMPLED]]
    if subject.contract.is_decoder:
        return [replace(recital(subject, world), together=32) for world in worlds]
    return [experiment_of(subject, world) for world in worlds]


def _texts(subject: Subject, plan: Plan) -> int:
    visible = visible_by_decoders(plan) if subject.contract.is_decoder else plan.visible
    size = joint_size(subject, plan)
    laws = [experiment.laws[0] for experiment in experiments_of(subject, plan)]
    return max((required_sequences(visible, plan.power, size, law) for law in laws), default=0)


def run_shard(identity: Identity, shard: int, on_progress: OnProgress | None = None) -> Tally:
    """Run one shard in this process.

    Args:
        identity: of the verdict.
        shard: 1 to ``identity.shards``; the first one also runs the checks that are not cut.
        on_progress: told (done, total, what) of its parts.
    """
    plan = identity.plan
    if not 1 <= shard <= identity.shards:
        raise ValueError(f"shard: found {shard}; wanted 1..{identity.shards}.")
    started = time.monotonic()
    subject = load(identity.subject, identity.contract)
    label = f"shard {shard} of {identity.shards}"
    own = replace(plan, seed=zlib.crc32(f"{plan.seed} {label}".encode()))
    experiments = experiments_of(subject, plan)
    progress = _Progress(on_progress, PIECES * len(experiments) + 1 + (shard == 1))
    counts: list[Count] = []
    lanes: list[Lane] = []
    broken = ""
    try:
        for experiment in experiments:
            world = experiment.worlds[0].name
            sampler = Sampler(subject, experiment, own.seed, f"{label} {world}")
            texts = math.ceil(identity.texts / identity.shards)
            for piece in range(1, PIECES + 1):
                sampler.extend(math.ceil(texts * piece / PIECES))
                progress.step(f"{label}: {world}")
            counts.append(Count(world, tuple(sampler.counts[0].tolist())))
        watch = Watch(subject, own, plan.false_alarm)
        watch.run(tokens_for(plan) / identity.shards)
        for lane in watch.lanes:
            log_e = lane.account.log_e
            known = log_e if math.isfinite(log_e) else None
            lanes.append(Lane(lane.name, lane.account.tokens, known, lane.account.leader))
        progress.step(f"{label}: bets")
    except ContractBroken as failure:
        broken = failure.reason
    except Exception as error:
        broken = f"raised {phrase(error)}"
    rest = None
    if shard == 1:
        rest = _rest(identity, plan)
        progress.step(f"{label}: all other checks")
    return Tally(
        identity, shard, tuple(counts), tuple(lanes), rest, broken, time.monotonic() - started
    )


def _rest(identity: Identity, plan: Plan) -> dict[str, object]:
    from draftproof.proof.judge import check

    return check(
        identity.subject,
        contract=identity.contract,
        profile=plan.profile,
        seed=plan.seed,
        timeout=plan.timeout,
        law=plan.law or None,
        plain=plan.plain or None,
        prompts=plan.prompts,
        eos=plan.eos,
        leave_out=LEFT_OUT,
    ).to_dict()


class _Progress:
    def __init__(self, listener: OnProgress | None, total: int) -> None:
        self._listener, self._done, self._total = listener, 0, total

    def step(self, what: str) -> None:
        self._done += 1
        if self._listener is not None:
            self._listener(self._done, self._total, what)
