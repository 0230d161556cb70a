"""A subject under watch: streams of its tokens, an account for each, and no end of its own."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from draftproof.proof.anytime.account import Account, Tokens
from draftproof.proof.anytime.cells import Cells, Transforms
from draftproof.proof.anytime.paired import Paired
from draftproof.proof.anytime.tilts import DRAFT_WITNESSES, WITNESSES, Tilts
from draftproof.proof.decoders.sources import law_of, plain_of, prompts_of
from draftproof.proof.decoders.stream import TEXT, by_law, from_experiment, from_world
from draftproof.proof.sampled.sampling import Experiment, streams
from draftproof.proof.subjects.decoder import Decoder
from draftproof.proof.subjects.subject import Subject
from draftproof.proof.trial.plan import Plan
from draftproof.proof.verdicts.finding import Finding, Grade, Outcome
from draftproof.proof.worlds.catalogue import WORLDS
from draftproof.proof.worlds.wide import noisy_world

__all__ = ["Watch", "tokens_for"]

LARGE = 5_000
"""Tokens of the vocabulary of the largest world."""
MOST = 1_000_000
PAIRS = 8
"""Pairs of texts between two looks at the clock."""


class Lane(Protocol):
    """One stream, and what is bet on it."""

    name: str

    @property
    def account(self) -> Account | Paired:
        """The wealth so far."""

    def advance(self) -> bool:
        """Read on; return whether the level has been reached."""


class Watch:
    """All streams of a subject, read by turns.

    Args:
        subject: of any contract that draws from the target's law.
        plan: names the seed, and for a decoder with models of its own what it is held against.
        size: probability that a right subject is ever rejected, for all streams together.

    Attributes:
        lanes: one for each stream.
    """

    def __init__(self, subject: Subject, plan: Plan, size: float) -> None:
        plain = plain_of(plan) if subject.has_own_models else None
        if plain is not None:
            self.lanes: Sequence[Lane] = [_PairLane(subject, plain, plan, 1 / size)]
            return
        found = dict(_streams(subject, plan))
        level = len(found) / size
        self.lanes = [
            _StreamLane(name, tokens, _account_for(plan, name, level))
            for name, tokens in found.items()
        ]

    @property
    def tokens(self) -> int:
        """How many were seen, in all streams."""
        return sum(lane.account.tokens for lane in self.lanes)

    @property
    def largest(self) -> str:
        """The largest e-value of a stream, in a few letters."""
        return _number(max(lane.account.log_e for lane in self.lanes))

    @property
    def is_decided(self) -> bool:
        """Whether the subject has been proved wrong."""
        return any(lane.account.decided_after is not None for lane in self.lanes)

    def advance(self, most: float = math.inf) -> bool:
        """Read on in each stream of fewer than ``most`` tokens; return whether any was read."""
        behind = [lane for lane in self.lanes if lane.account.tokens < most]
        for lane in behind:
            if lane.advance():
                break
        return bool(behind)

    def run(self, most: float = math.inf, deadline: float = math.inf) -> bool:
        """Read until it is decided, or each stream has so many tokens; False if time ran out."""
        while not self.is_decided and time.monotonic() < deadline:
            if not self.advance(most):
                return True
        return self.is_decided

    def findings(self, complete: bool = True) -> Iterator[Finding]:
        """Say of each stream what it has shown so far."""
        for lane in self.lanes:
            account = lane.account
            peak = f"the e-value reached {_number(account.log_peak)}"
            if account.decided_after is not None:
                outcome = Outcome.LOSSY
                message = (
                    f"proved wrong after {account.decided_after:,} tokens: {peak}; by Ville a "
                    f"right one ever does with probability at most {account.false_alarm:.1g}; "
                    f"what pays most: {account.leader}"
                )
            else:
                done = complete or self.is_decided
                outcome = Outcome.PASSED if done else Outcome.INCONCLUSIVE
                message = f"{account.tokens:,} tokens: {peak}, and is {_number(account.log_e)} now"
            yield Finding(
                "anytime",
                outcome,
                Grade.SAMPLED,
                message,
                world=lane.name,
                size=account.tokens,
            )


def tokens_for(plan: Plan) -> int:
    """How many tokens of each stream a verdict reads: they tell its total variation, roughly."""
    return int(min(MOST, max(1_000, 8 / plan.visible**2)))


def _account_for(plan: Plan, name: str, level: float) -> Account:
    """Every family of experts; the law of the drafts is known in worlds only."""
    rng, _ = streams(plan.seed, f"transforms {name}")
    known = not plan.law
    witnesses = {**WITNESSES, **(DRAFT_WITNESSES if known else {})}
    return Account(Cells(), Tilts(witnesses), Transforms(rng, known), level=level)


def _streams(subject: Subject, plan: Plan) -> Iterator[tuple[str, Iterator[Tokens]]]:
    if subject.has_own_models:
        law = law_of(plan)
        assert law is not None
        yield plan.law, by_law(subject, law, prompts_of(plan), plan.seed, plan.eos)
    elif subject.contract.is_decoder:
        yield "L4", from_world(subject, WORLDS["L4"], plan.seed)
        large = noisy_world(LARGE)
        yield large.name, from_world(subject, large, plan.seed)
    else:
        for name in ("L4", "L357"):
            experiment = Experiment((WORLDS[name],), sampled_law=subject.sampled_law)
            yield name, from_experiment(subject, experiment, plan.seed, name)


class _StreamLane:
    """Tokens beside their laws."""

    def __init__(self, name: str, stream: Iterator[Tokens], account: Account) -> None:
        self.name, self._stream, self.account = name, stream, account

    def advance(self) -> bool:
        return self.account.observe(next(self._stream))


class _PairLane:
    """Texts with speculation beside texts without; the seeds of the two have nothing in common."""

    def __init__(self, subject: Subject, plain: Subject, plan: Plan, level: float) -> None:
        self.name, self.account = plain.name, Paired(level)
        self._decoders = [Decoder(s, None, None, plan.eos) for s in (subject, plain)]
        self._prompts = prompts_of(plan)
        self._rngs = streams(plan.seed, "paired")

    def advance(self) -> bool:
        first, n = self.account.pairs, len(self._prompts)
        asked = [self._prompts[(first + b) % n] for b in range(PAIRS)]
        texts = [
            decoder.generate(asked, 2 * TEXT, int(rng.integers(1 << 31)))
            for decoder, rng in zip(self._decoders, self._rngs, strict=True)
        ]
        return any(self.account.observe(*each) for each in zip(asked, *texts, strict=True))


def _number(log: float) -> str:
    if log > 700:
        return "infinity" if np.isinf(log) else f"10^{log / math.log(10):.0f}"
    return f"{math.exp(log):.3g}"
