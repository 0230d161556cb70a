"""What a verifier from logits does where no two engines agree, or where there is no law."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.logits.order import Ties
from draftproof.logits.params import SamplingParams
from draftproof.proof.checks.logits import judged, named, worlds_for
from draftproof.proof.checks.sampled import PATIENCE, Trial
from draftproof.proof.exact.bisection import bisected_law
from draftproof.proof.exact.exact_law import Enumeration
from draftproof.proof.exact.generator import NotDrivable
from draftproof.proof.exact.logits_oracle import oracle_logits_law
from draftproof.proof.exact.replay import Replay
from draftproof.proof.logits.call import (
    Request,
    call_on_copies,
    call_subject,
    engine_of,
    takes_seeds,
)
from draftproof.proof.logits.lanes import bound
from draftproof.proof.logits.texts import LogitsTexts
from draftproof.proof.sampled.budget import LOGITS_SHARES, share
from draftproof.proof.subjects.emission import ContractBroken
from draftproof.proof.subjects.subject import Subject
from draftproof.proof.trial.plan import Plan
from draftproof.proof.verdicts.finding import Finding, Grade, Outcome
from draftproof.proof.worlds.law import Law, Text
from draftproof.proof.worlds.logits_world import HABITS, LogitsWorld, law_at, of_other_params

__all__ = [
    "check_logits_bad_rows",
    "check_logits_habits",
    "check_logits_lacks",
    "check_logits_seeds",
]

Floats = npt.NDArray[np.float64]
SEEDED = 24
"""Requests with seeds of their own."""
GROSS = 0.2
"""The total variation to be seen in their texts: a noise that is used again is far off."""
LARGE = 50.0
"""A logit beside which no other has mass."""
UNUSUAL: Mapping[str, Any] = {
    "temperature": 0.5, "top_k": 1, "top_p": 0.1, "min_p": 0.9, "typical_p": 0.1,
    "repetition_penalty": 50.0, "presence_penalty": 50.0, "frequency_penalty": 50.0,
    "penalty_window": 1, "logit_bias": {0: -math.inf}, "min_tokens": 9, "seed": 1,
    "allowed_tokens": np.array([True, False, False, False]),
    "banned_tokens": np.array([True, False, False, False]), "ties": "keep",
}  # fmt: skip
"""A value of each parameter that no call can take for none."""


def check_logits_habits(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """Ties at a filter's edge, and a window for penalties: asked for, and found one's own way.

    One token's law tells which way that is: the one asked for, or another engine's, which is noted.
    What is no engine's way is lossy. Where it is the one asked for, so has the law of a text to be.
    """
    for world in named(subject, HABITS):
        check = "logits-habits"
        try:
            found = _law_of_one(subject, world)
        except NotDrivable as refusal:
            message = str(refusal)
            yield Finding(check, Outcome.NOT_DRIVABLE, Grade.EXACT, message, world.name)
            continue
        asked, enough = world.target_law(1), max(2.0**-20, float(found.law.error))
        ways = ((way, float(found.law.total_variation(law))) for way, law in _ways(world))
        other = next((way for way, distance in ways if distance <= enough), None)
        if other is not None and float(found.law.total_variation(asked)) > enough:
            message = f"asked for {world.params!r}, it keeps to {other}"
            yield Finding(check, Outcome.NOTE, Grade.EXACT, message, world.name)
            continue
        what = "the exact law of one token"
        yield judged(check, world.name, (0, 1), what, partial(_same, found), asked)
        run = partial(oracle_logits_law, subject, (world,), ((2,),), 2, 4 * plan.max_paths)
        yield judged(check, world.name, (2, 2), "the exact law of a text", run, world.target_law(3))


def check_logits_lacks(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """A parameter that the subject says it lacks: given all the same, it should raise."""
    _, lacks = engine_of(subject)
    rng, check = np.random.default_rng(plan.seed), "logits-lacks"
    dropped = []
    for name in sorted(lacks & UNUSUAL.keys()):
        asked = {name: UNUSUAL[name], "eos_token_ids": (0,)}
        given = _batch([SamplingParams(**asked)])
        try:
            call_on_copies(subject, given, rng, [[]])
        except Exception:
            yield _finding(check, Outcome.PASSED, f"{name}, which it lacks, raises")
        else:
            dropped.append(name)
    if dropped:
        message = f"dropped in silence, though it says that it lacks them: {', '.join(dropped)}"
        yield _finding(check, Outcome.NOTE, message)


def check_logits_bad_rows(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """A row of which no law can be made, among rows whose text is certain.

    It is an error, or such a row emits nothing: a token for it is invented, which is noted. It is
    none of the vocabulary, or another row's text is another: that is a fault.
    """
    rng, check = np.random.default_rng(plan.seed), "logits-bad-rows"
    invented = []
    certain = [SamplingParams(), SamplingParams(temperature=0.0), SamplingParams(top_p=0.5)]
    for what, logits, params in _bad_rows():
        for side in ("target", "draft") if logits is not None else ("target",):
            given = _batch([*certain[:2], params, certain[2]])
            if logits is not None:
                given[2 if side == "target" else 1][2, 0] = logits
            try:
                out, n_out = call_on_copies(subject, given, rng, [[]] * 4)[:2]
            except ContractBroken:
                raise
            except Exception:
                continue
            out, n_out = np.asarray(out), np.asarray(n_out)
            for b in (0, 1, 3):
                emitted = out[b, : n_out[b]].tolist()
                if not emitted or emitted != [2, 1][: len(emitted)]:
                    message = f"beside a row with {what} of the {side}, a row certain of [2, 1] "
                    yield _finding(check, Outcome.LOSSY, f"{message}emits {emitted}")
                    return
            tokens = out[2, : max(0, int(n_out[2]))].tolist()
            if not all(0 <= token < given[2].shape[-1] for token in tokens):
                message = f"a row with {what} of the {side} emits {tokens}"
                yield _finding(check, Outcome.BROKEN, message)
                return
            if tokens:
                invented.append(f"{what} of the {side}")
    if invented:
        message = f"a token is invented where there is no law: {', '.join(invented)}"
        yield _finding(check, Outcome.NOTE, message)
    yield _finding(check, Outcome.PASSED, "rows without a law spoil no other row")


def check_logits_seeds(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """Requests with seeds of their own, of a subject that takes them.

    Their tokens are the same alone, in any place of a batch and whatever the generator; others of
    another seed, and of every round: texts of two rounds have the law of plain sampling.
    """
    if not takes_seeds(subject):
        return
    check, worlds = "logits-seeds", worlds_for(subject, plan)[:2]
    requests = [Request(worlds[b % 2], (b % 4,), (), b) for b in range(SEEDED)]
    K, rng = 2, np.random.default_rng(plan.seed)
    together = call_subject(subject, requests, K, rng)
    for batch, how in (
        (requests[::-1], "in another place"),
        (requests, "by another generator"),
        *(([request], "alone") for request in requests),
    ):
        for request, emitted in zip(batch, call_subject(subject, batch, K, rng), strict=True):
            wanted = together[requests.index(request)]
            if emitted != wanted:
                message = f"the request of seed {request.seed} emits {emitted} {how}, else {wanted}"
                yield _finding(check, Outcome.BROKEN, message)
                return
    others = [request._replace(seed=request.seed + SEEDED) for request in requests]  # type: ignore[operator]
    agree = math.prod(_collision(request) for request in requests)
    size = share(plan.false_alarm, check, LOGITS_SHARES) / 2
    assert agree < size
    if call_subject(subject, others, K, rng) == together:
        message = f"equal tokens for other seeds in {SEEDED} rows; by chance: {agree:.1g}"
        yield _finding(check, Outcome.LOSSY, message)
        return
    message = "equal seeds, equal tokens, in any batch; other seeds, others"
    yield _finding(check, Outcome.PASSED, message)
    deadline = time.monotonic() + PATIENCE * plan.timeout
    texts = LogitsTexts(subject, worlds, plan.seed, check, seeded=True)
    how = " by seeds of their own"
    yield from Trial(check, plan, GROSS, size, deadline, how).run(texts)


def _law_of_one(subject: Subject, world: LogitsWorld) -> Enumeration:
    """The exact law of one token without drafts, by the oracle, else by thresholds."""
    try:
        return oracle_logits_law(subject, (world,), ((0,),), 1)
    except NotDrivable:
        return bisected_law(Replay(bound(subject, world), world, 0, 1))


def _same(found: Enumeration) -> Enumeration:
    return found


def _ways(world: LogitsWorld) -> Iterator[tuple[str, Law]]:
    """What engines make of one request, in words, and the law of its first token."""
    params = world.params
    if params.penalty_window is not None:
        without = replace(params, penalty_window=None)
        yield "no window", of_other_params(world, without, world.draft_params).target_law(1)
        return
    for ties in Ties:
        kept = replace(params, ties=ties)
        yield f"ties={ties.value!r}", of_other_params(world, kept, world.draft_params).target_law(1)
    first = replace(params, ties=Ties.LOWEST_ID)
    mirrored = law_at(world.target_logits[0][::-1], first, (), 0)[::-1]
    weights: dict[Text, Fraction] = {(v,): Fraction(x) for v, x in enumerate(mirrored.tolist())}
    yield "the highest ids of those that tie", Law(weights, 1)


def _bad_rows() -> Iterator[tuple[str, Floats | None, SamplingParams]]:
    """What is bad, the logits of the row, and its parameters."""
    plain = SamplingParams()
    yield "NaN", np.array([0.0, math.nan, 0.0, 0.0]), plain
    yield "+inf", np.array([0.0, 0.0, math.inf, 0.0]), SamplingParams(top_p=0.9)
    yield "every logit -inf", np.full(4, -math.inf), SamplingParams(temperature=0.7, top_k=2)
    yield "every token banned", None, SamplingParams(logit_bias=dict.fromkeys(range(4), -math.inf))
    yield "an empty mask", None, SamplingParams(allowed_tokens=np.zeros(4, np.bool_), min_p=0.1)


def _batch(params: list[SamplingParams]) -> tuple[Any, ...]:
    """Requests of one draft, 2, that are certain of it and of a 1 behind it."""
    B = len(params)
    q, p = np.zeros((B, 1, 4)), np.zeros((B, 2, 4))
    q[:, 0, 2] = p[:, 0, 2] = p[:, 1, 1] = LARGE
    histories: list[list[int]] = [[] for _ in range(B)]
    plain = [SamplingParams() for _ in range(B)]
    return np.full((B, 1), 2), q, p, np.ones(B, np.int64), params, plain, histories


def _collision(request: Request) -> float:
    """The probability that two independent calls emit the same first token."""
    law = request.world.tables[0][request.world.row(request.text)]
    return float((law**2).sum())


def _finding(check: str, outcome: Outcome, message: str) -> Finding:
    return Finding(check, outcome, Grade.BEHAVIOUR, message)
