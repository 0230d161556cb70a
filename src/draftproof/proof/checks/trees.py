"""The law of a verifier of siblings or of trees: exactly where it can be driven, and sampled."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from draftproof.proof.checks.oracle import law_finding
from draftproof.proof.checks.sampled import PATIENCE, Trial
from draftproof.proof.exact.generator import NotDrivable
from draftproof.proof.exact.tree_oracle import draw_tree, oracle_tree_law, text_length
from draftproof.proof.sampled.sampling import Experiment, streams
from draftproof.proof.sampled.table import Table
from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.subjects.subject import Subject
from draftproof.proof.trees.call import call_subject, draws_of
from draftproof.proof.trial.plan import Plan
from draftproof.proof.verdicts.finding import Finding, Grade, Outcome
from draftproof.proof.worlds.catalogue import WORLDS
from draftproof.proof.worlds.law import Text
from draftproof.proof.worlds.logits_world import TWO_ROUNDS, logits_world
from draftproof.proof.worlds.tree_world import TREE_WORLDS, TreeWorld

__all__ = ["check_tree_calls", "check_tree_joint", "check_tree_oracle", "worlds_for"]

QUICK_WORLDS = 3
LOGITS_TREES = ("penalties", "grammar", "ends", "top-k, top-p", "bias and ban", "greedy")
"""Worlds of logits in which trees grow."""
VISIBLE = 0.04
"""Of the sampled check at least: it calls the subject for one tree at a time."""


def worlds_for(subject: Subject, plan: Plan) -> tuple[TreeWorld, ...]:
    """Return the worlds whose siblings are drawn as the subject asks, cheap and telling first."""
    draws, deepest = draws_of(subject), 1 if subject.contract is Contract.SIBLINGS else 9
    if subject.contract is Contract.TREE_LOGITS:
        shapes = [(2,)] if plan.profile == "quick" else [(2,), (2, 1)]
        return tuple(
            TreeWorld(logits_world(name), shape, draws) for shape in shapes for name in LOGITS_TREES
        )
    worlds = [w for w in TREE_WORLDS.values() if w.draws is draws and w.depth <= deepest]
    return tuple(worlds[:QUICK_WORLDS] if plan.profile == "quick" else worlds)


def check_tree_oracle(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """The exact joint law of one round, in each world of the subject's draws."""
    for world in worlds_for(subject, plan):
        yield _exact("tree-oracle", subject, [world], plan)


def check_tree_calls(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """Two rounds with one generator: noise kept or used again shows in the law of both.

    From logits, so does a history that holds more than was emitted, or less.
    """
    draws = draws_of(subject)
    if subject.contract is Contract.TREE_LOGITS:
        world = logits_world(TWO_ROUNDS)
        rounds = [TreeWorld(world, (2,), draws), TreeWorld(world, (1,), draws)]
    else:
        rounds = [TreeWorld(WORLDS["toy"], (2,), draws)] * 2
    yield _exact("tree-calls", subject, rounds, plan)


def check_tree_joint(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """The joint law of many rounds with a real generator, against the exact one."""
    worlds = worlds_for(subject, plan)[:2]
    size, visible = plan.false_alarm / len(worlds), max(VISIBLE, plan.visible)
    start = time.monotonic()
    for done, world in enumerate(worlds, 1):
        rounds = _Rounds(subject, world, plan.seed)
        deadline = start + done / len(worlds) * PATIENCE * plan.timeout
        yield from Trial("tree-joint", plan, visible, size, deadline).run(rounds)


def _exact(check: str, subject: Subject, worlds: Sequence[TreeWorld], plan: Plan) -> Finding:
    world, depth = worlds[0], worlds[0].depth
    try:
        found = oracle_tree_law(subject, *worlds, max_paths=4 * plan.max_paths)
    except NotDrivable as refusal:
        return Finding(
            check, Outcome.NOT_DRIVABLE, Grade.EXACT, str(refusal), world.name, depth, depth
        )
    what = f"the exact law of {'a round' if len(worlds) == 1 else f'{len(worlds)} rounds'}"
    target = world.world.target_law(text_length(subject, worlds))
    finding = law_finding(check, world.name, (depth, depth), what, found, target)
    if subject.contract is Contract.SIBLINGS:  # which returns one token whatever it accepts
        return replace(finding, emitted=None)
    return finding


class _Rounds:
    """Rounds of one tree each, completed from the target, and the tally of their texts."""

    def __init__(self, subject: Subject, world: TreeWorld, seed: int) -> None:
        self._subject, self._world = subject, world
        self._rng, self._subject_rng = streams(seed, f"tree-joint {world.name}")
        length = 1 if subject.contract is Contract.SIBLINGS else world.depth + 1
        self._shape = (world.world.vocabulary,) * length
        law = np.zeros(self._shape)
        for text, probability in world.world.target_law(length).items():
            law[text] = float(probability)
        self.experiment = Experiment((world.world,), length=length, longest=world.depth)
        self._table = Table(
            world.name, "texts", np.zeros(law.size, np.int64), law.ravel(), self._shape
        )

    @property
    def tables(self) -> list[Table]:
        """The one table of counts."""
        return [self._table]

    def extend(self, each: int, deadline: float, /) -> bool:
        """Go on until so many texts are counted; False if the time was not enough."""
        while self._table.size < each:
            if time.monotonic() > deadline:
                return False
            for _ in range(min(500, each - self._table.size)):
                cell = int(np.ravel_multi_index(self._text(), self._shape))
                self._table.counts[cell] += 1
        return True

    def _text(self) -> Text:
        choose = partial(_choose, self._rng)
        text = call_subject(self._subject, draw_tree(self._world, (), choose), self._subject_rng)[
            : len(self._shape)
        ]
        while len(text) < len(self._shape):
            text += (choose(self._world.world.target[self._world.world.row(text)]),)
        return text


def _choose(rng: np.random.Generator, law: object) -> int:
    edges = np.cumsum(np.asarray(law, dtype=np.float64))
    return int(np.searchsorted(edges[:-1], rng.random() * edges[-1], side="right"))
