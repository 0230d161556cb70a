"""The law of a verifier from logits: exact where it can be driven, else by replay; and sampled."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial, reduce
from itertools import islice, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.proof.checks.oracle import law_finding
from draftproof.proof.checks.sampled import PATIENCE, Trial
from draftproof.proof.exact.bisection import ASSUMPTION, bisected_law
from draftproof.proof.exact.exact_law import Enumeration
from draftproof.proof.exact.generator import NotDrivable
from draftproof.proof.exact.logits_oracle import oracle_logits_law
from draftproof.proof.exact.replay import Replay
from draftproof.proof.logits.call import Request, call_subject, engine_of
from draftproof.proof.sampled.sampling import Experiment, streams
from draftproof.proof.sampled.table import Table
from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.subjects.subject import Subject
from draftproof.proof.trial.plan import Plan
from draftproof.proof.verdicts.finding import Finding, Grade, Outcome
from draftproof.proof.worlds.law import Law, Text
from draftproof.proof.worlds.logits_world import (
    FOCUSED,
    LOGITS_WORLDS,
    LONGEST,
    LogitsWorld,
    logits_world,
)

__all__ = [
    "check_logits_bisection",
    "check_logits_calls",
    "check_logits_engine",
    "check_logits_joint",
    "check_logits_oracle",
    "check_logits_pairs",
    "worlds_for",
]

QUICK_RANDOM = 2
"""Random worlds of a quick trial, beside the focused ones."""
QUICK_PAIRS = 2
REPLAYED = 4
"""Worlds that are replayed for each one of the plan but the first."""
VISIBLE = 0.1
"""Of the sampled check at least: every row of a call has parameters and a history of its own."""
FLOAT32 = 2.0**29
"""How much coarser float32 rounds than float64: engines make their laws in it."""
K = LONGEST - 1
"""Drafts of the longest draft."""


def worlds_for(subject: Subject, plan: Plan) -> tuple[LogitsWorld, ...]:
    """Return the worlds of a trial, their requests as the subject's engine can have them."""
    order, lacks = engine_of(subject)
    names = list(LOGITS_WORLDS)
    if plan.profile == "quick":
        names = names[: len(FOCUSED) + QUICK_RANDOM]
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


def check_logits_bisection(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """The law of one request by the subject's own thresholds, where they can be found by replay.

    Where the oracle has told the law, and `after_proof` has left one world, none is replayed.
    """
    for world in worlds_for(subject, plan)[: REPLAYED * (len(plan.worlds) - 1)]:
        what = f"the law of a text by its own thresholds, taking it that {ASSUMPTION},"
        found = partial(_bisected, subject, world)
        yield _judged("logits-bisection", world.name, (1, K), what, found, world.target_law(2))


def check_logits_joint(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """The joint law of many texts with a real generator, ragged drafts in mixed batches."""
    worlds = worlds_for(subject, plan)[: min(2 * len(plan.worlds), len(FOCUSED))]
    texts = _Texts(subject, worlds, plan.seed)
    deadline = time.monotonic() + PATIENCE * plan.timeout
    visible = max(VISIBLE, plan.visible)
    how = " in batches of mixed requests"
    yield from Trial("logits-joint", plan, visible, plan.false_alarm, deadline, how).run(texts)


def _pairs(worlds: Sequence[LogitsWorld]) -> Iterator[tuple[LogitsWorld, LogitsWorld]]:
    for number, (first, second) in enumerate(pairwise(worlds)):
        if number % 2 == 0 and first.vocabulary == second.vocabulary:
            yield first, second


def _exact(
    check: str,
    subject: Subject,
    worlds: Sequence[LogitsWorld],
    rounds: Sequence[tuple[int, ...]],
    columns: int,
    plan: Plan,
) -> Finding:
    """Compare the exact law of a batch's texts with the product of the requests' laws."""
    name = " and ".join(world.name for world in worlds)
    run = partial(oracle_logits_law, subject, worlds, rounds, columns, 4 * plan.max_paths)
    lengths = [sum(row) + len(rounds) for row in zip(*rounds, strict=True)]
    targets = (world.target_law(n) for world, n in zip(worlds, lengths, strict=True))
    what = f"the exact law of {'a text' if len(worlds) == 1 else 'two texts'}"
    if len(rounds) > 1:
        what += f" by {len(rounds)} calls"
    size = max(rounds[0]), columns
    return _judged(check, name, size, what, run, reduce(Law.product, targets))


def _judged(
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


def _bisected(subject: Subject, world: LogitsWorld) -> Enumeration:
    return bisected_law(Replay(_bound(subject, world), world, 1, K))


def _bound(subject: Subject, world: LogitsWorld) -> Subject:
    """A subject of laws in whose place logits stand, for replay: all its rows are one request."""

    @cache
    def requests(drafts: Text, columns: int) -> Any:
        return world.requests(drafts, columns)

    def call(draft: Any, q: Any, p: Any, num_draft: Any, rng: np.random.Generator) -> Any:
        K = draft.shape[1]
        lengths = num_draft.tolist()
        rows = [requests(tuple(row[:g]), K) for row, g in zip(draft.tolist(), lengths, strict=True)]
        history = [list(world.history) for _ in rows]
        params, draft_params = ([row[side] for row in rows] for side in (0, 1))
        return subject.call(draft, q, p, num_draft, params, draft_params, history, rng)[:2]

    return Subject(subject.name, Contract.RAGGED, call)


class _Texts:
    """Texts of requests that share their batches, and first tokens of rows side by side."""

    ROWS = 64
    """Of each world in a batch."""

    def __init__(self, subject: Subject, worlds: Sequence[LogitsWorld], seed: int) -> None:
        self._subject, self._worlds = subject, worlds
        self._rng, self._subject_rng = streams(seed, "logits-joint")
        self.experiment = Experiment(tuple(worlds), length=LONGEST, longest=K)
        V = worlds[0].vocabulary
        self._laws = [_table_of(world.target_law(LONGEST), V) for world in worlds]
        self._texts = [np.zeros(V**LONGEST, np.int64) for _ in worlds]
        first = [_table_of(world.target_law(1), V) for world in worlds]
        self._pairs = [np.zeros(V**2, np.int64) for _ in worlds]
        self._pair_laws = [
            np.outer(a, b).ravel() for a, b in zip(first, [*first[1:], first[0]], strict=True)
        ]
        self._V = V

    @property
    def tables(self) -> list[Table]:
        """Of texts, by world; and of pairs of first tokens, of a row and the row below."""
        names = [world.name for world in self._worlds]
        shape = (self._V,) * LONGEST
        return [
            *(
                Table(name, "texts", counts, law, shape)
                for name, counts, law in zip(names, self._texts, self._laws, strict=True)
            ),
            *(
                Table(name, f"first tokens beside a row of {below!r}", counts, law, shape[:2])
                for name, below, counts, law in zip(
                    names, [*names[1:], names[0]], self._pairs, self._pair_laws, strict=True
                )
            ),
        ]

    def extend(self, each: int, deadline: float, /) -> bool:
        """Go on until there are so many texts of each world; False if the time was not enough."""
        while self._texts[0].sum() < each:
            if time.monotonic() > deadline:
                return False
            texts = self._batch()
            count, V = len(self._worlds), self._V
            for b, text in enumerate(texts):
                self._texts[b % count][np.ravel_multi_index(text, (V,) * LONGEST)] += 1
                below = texts[(b + 1) % len(texts)]
                self._pairs[b % count][text[0] * V + below[0]] += 1
        return True

    def _batch(self) -> list[Text]:
        texts: list[Text] = [()] * (self.ROWS * len(self._worlds))
        while open_rows := [b for b, text in enumerate(texts) if len(text) < LONGEST]:
            requests = [self._request(b, texts[b]) for b in open_rows]
            emitted = call_subject(self._subject, requests, K, self._subject_rng)
            for b, new in zip(open_rows, emitted, strict=True):
                texts[b] += new
        return texts

    def _request(self, b: int, text: Text) -> Request:
        """Draw as many drafts as may be, down to none."""
        world = self._worlds[b % len(self._worlds)]
        drafts: Text = ()
        for _ in range(min(int(self._rng.integers(0, K + 1)), LONGEST - 1 - len(text))):
            law = world.tables[1][world.row(text + drafts)]
            drafts += (_choose(self._rng, law),)
        return Request(world, text, drafts)


def _table_of(law: Law, V: int) -> npt.NDArray[np.float64]:
    table = np.zeros((V,) * law.length)
    for text, probability in law.items():
        table[text] = float(probability)
    return table.ravel()


def _choose(rng: np.random.Generator, law: npt.NDArray[np.float64]) -> int:
    edges = np.cumsum(law)
    return int(np.searchsorted(edges, rng.random() * edges[-1], side="right"))
