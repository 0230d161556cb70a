"""Many texts by draft and verify, and the tally of what they are.

Whole texts are made, over several rounds: a lossless subject gives them the target's law whatever
the drafts, their number or the padding were. Every text is independent of every other one.
"""

from __future__ import annotations

import enum
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.errors import complaint
from draftproof.proof.sampled.table import Table
from draftproof.proof.worlds.world import World

__all__ = [
    "Experiment",
    "Lengths",
    "Padding",
    "Sampler",
    "Verify",
    "always",
    "as_needed",
    "as_verify",
    "ragged",
    "streams",
]

Array = npt.NDArray[Any]
Verify = Callable[[Array, Array, Array, Array, np.random.Generator], tuple[Array, Array]]
"""(draft_token_ids [B, K], draft_probs [B, K, V], target_probs [B, K+1, V], num_draft [B], rng)
-> (token_ids [B, K+1], num_emitted [B]), the first five arguments of `draftproof.verify`."""
Lengths = Callable[[Array, int, int, np.random.Generator], Array]
"""(tokens made [B], tokens wanted, longest draft, rng) -> num_draft [B]."""

FIRST_CHUNK, LARGEST_CHUNK = 1 << 8, 1 << 18
"""Rows of the first call, and numbers in the p of the largest: both time and memory stay small."""


SLOW = 0.25
"""Part of the time left that a chunk may take: a slow subject's calls are no hangs. It binds only
where there is no time for what is wanted, so that no clock decides what a verdict rests on."""


class Padding(enum.Enum):
    """What lies past a row's drafts, where nothing may be read."""

    POISON = "token -1 and rows of NaN"
    ZERO = "token 0 and rows of zeros"
    STALE = "tokens and rows that look like drafts"


def as_needed(made: Array, wanted: int, longest: int, rng: np.random.Generator) -> Array:
    """As many drafts as there may be, then one less than the text needs: its bonus counts too."""
    return np.where(made > 0, np.clip(wanted - 1 - made, 0, longest), longest)


def ragged(made: Array, wanted: int, longest: int, rng: np.random.Generator) -> Array:
    """Any number of drafts, each as likely."""
    return rng.integers(0, longest + 1, len(made))


def always(made: Array, wanted: int, longest: int, rng: np.random.Generator) -> Array:
    """As many drafts as there may be, in every round."""
    return np.full(len(made), longest)


def streams(seed: int, label: str) -> tuple[np.random.Generator, np.random.Generator]:
    """Two independent generators, for the drafts and for the subject, of a seed and a purpose."""
    draft_rng, subject_rng = np.random.default_rng([seed, zlib.crc32(label.encode())]).spawn(2)
    return draft_rng, subject_rng


def as_verify(subject: Any) -> Verify:
    """A subject's canonical call: its ``verify``, or the callable itself with its result checked.

    Raises:
        ValueError: by the call, if a plain callable returns what is no emission at all.
    """
    if hasattr(subject, "verify"):
        return subject.verify  # type: ignore[no-any-return]

    def verify(
        draft: Array, q: Array, p: Array, num_draft: Array, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        lengths = num_draft.copy()
        token_ids, num_emitted = subject(draft, q, p, num_draft, rng)
        token_ids, num_emitted = np.asarray(token_ids), np.asarray(num_emitted)
        _check_emission(token_ids, num_emitted, lengths, p.shape)
        return token_ids, num_emitted

    return verify


def _check_emission(
    token_ids: Array, num_emitted: Array, num_draft: Array, shape: tuple[int, ...]
) -> None:
    """Refuse what is no emission at all, which is not the same as a wrong law."""
    B, columns, V = shape
    if token_ids.shape != (B, columns) or num_emitted.shape != (B,):
        raise ValueError(
            complaint(
                "subject",
                "its result",
                found=f"shapes {token_ids.shape} and {num_emitted.shape}",
                wanted=f"({B}, {columns}) and ({B},)",
                fix="return (token_ids [B, K+1], num_emitted [B])",
            )
        )
    bad_count = (num_emitted < 1) | (num_emitted > num_draft + 1)
    emitted = np.arange(columns) < num_emitted[:, None]
    bad_token = emitted & ((token_ids < 0) | (token_ids >= V))
    if bad_count.any() or bad_token.any():
        row = int(np.argmax(bad_count | bad_token.any(axis=1)))
        raise ValueError(
            complaint(
                "subject",
                f"row {row} of a call",
                found=f"{num_emitted[row]} tokens emitted, row {token_ids[row].tolist()}",
                wanted=f"1..{num_draft[row] + 1} tokens in 0..{V - 1}, for {num_draft[row]} drafts",
                fix="emit the accepted drafts and one token after them",
            )
        )


@dataclass(frozen=True)
class Experiment:
    """How texts are made.

    Attributes:
        worlds: row b of a batch lives in world b modulo their number; a world of a smaller
            vocabulary is padded with ids that have no mass.
        length: tokens of a text.
        longest: the longest draft.
        extra: columns of padding past the longest draft.
        lengths: how many drafts each row gets.
        padding: what lies past them.
        together: rows of each world in a batch; None for as many as are worth a call.
        rounds: calls for each text, behind which the target itself writes on; None for as many as
            the text needs.
        in_place: a row keeps its place in the batch to the end of the last text; else only
            unfinished texts are in a call.
        sampled_law: what drafts are really sampled from, by the declared row; None if they are
            sampled from the declared row itself.
    """

    worlds: tuple[World, ...]
    length: int = 3
    longest: int = 3
    extra: int = 0
    lengths: Lengths = as_needed
    padding: Padding = Padding.POISON
    together: int | None = None
    rounds: int | None = None
    in_place: bool = False
    sampled_law: Callable[[Sequence[Fraction]], Sequence[Fraction]] | None = None

    @property
    def max_draft(self) -> int:
        """K, the padded length."""
        return self.longest + self.extra

    @cached_property
    def vocabulary(self) -> int:
        """V, common to all worlds."""
        return max(world.vocabulary for world in self.worlds)

    @cached_property
    def laws(self) -> npt.NDArray[np.float64]:
        """The exact law of each world's texts, [worlds, V^length], each product rounded once."""
        laws = np.zeros((len(self.worlds), *(self.vocabulary,) * self.length))
        for law, world in zip(laws, self.worlds, strict=True):
            rows = np.array(world.target, dtype=object)
            exact = rows[world.start]
            for _ in range(self.length - 1):
                exact = exact[..., None] * rows
            law[(slice(world.vocabulary),) * self.length] = exact
        return laws.reshape(len(self.worlds), -1)

    def batch(self, num_draft: Array, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        """Draft the first round: (draft_token_ids, draft_probs, target_probs) of one call.

        The drafts depend on ``rng`` and not on ``extra`` or ``padding``.
        """
        base, state = self._starts(len(num_draft))
        return self._arguments(state, base, num_draft, rng)

    def make(
        self,
        verify: Verify,
        rows: int,
        draft_rng: np.random.Generator,
        subject_rng: np.random.Generator,
        emitted: Array | None = None,
    ) -> npt.NDArray[np.int64]:
        """Make one text in each row of a batch, a call for each round.

        Args:
            verify: the subject; it gets fresh arrays.
            rows: of the batch.
            draft_rng: for the drafts and for their number.
            subject_rng: for the subject.
            emitted: a tally [longest+1, longest+2] of (drafts, tokens emitted) to add to.

        Returns:
            The number of each text's cell.
        """
        base, state = self._starts(rows)
        cells, made = np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=np.int64)
        rounds = 0
        while (made < self.length).any():
            if rounds == self.rounds:
                return self._written_on(cells, made, base, state, draft_rng)
            rounds += 1
            active = np.arange(rows) if self.in_place else np.flatnonzero(made < self.length)
            done, first = made[active], base[active]
            num_draft = self.lengths(done, self.length, self.longest, draft_rng)
            call = self._arguments(state[active], first, num_draft, draft_rng)
            token_ids, num_emitted = verify(*call, num_draft.copy(), subject_rng)
            cells[active] = self._append(cells[active], done, token_ids, num_emitted)
            made[active] = done + num_emitted
            last = token_ids[np.arange(len(active)), num_emitted - 1]
            state[active] = first + last
            if emitted is not None:
                pairs = num_draft * emitted.shape[1] + num_emitted
                emitted += np.bincount(pairs, minlength=emitted.size).reshape(emitted.shape)
        return cells

    def _written_on(
        self, cells: Array, made: Array, base: Array, state: Array, rng: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        """Finish the texts by the target's own law."""
        edges = self._rows[0].cumsum(axis=1)[:, :-1]
        for length in range(1, self.length):
            unfinished = np.flatnonzero(made <= length)
            uniforms = rng.random((len(unfinished), 1))
            token = (edges[state[unfinished]] <= uniforms).sum(axis=1)
            cells[unfinished] = cells[unfinished] * self.vocabulary + token
            state[unfinished] = base[unfinished] + token
        return cells

    def _starts(self, rows: int) -> tuple[Array, Array]:
        """The first state of each row's world, and the state that its text starts in."""
        world = np.arange(rows) % len(self.worlds)
        base = world * self.vocabulary
        return base, base + np.array([world.start for world in self.worlds])[world]

    def _append(self, cells: Array, done: Array, token_ids: Array, num_emitted: Array) -> Array:
        for column in range(int(num_emitted.max())):
            counts = (column < num_emitted) & (done < self.length - column)
            cells = np.where(counts, cells * self.vocabulary + token_ids[:, column], cells)
        return cells

    def _arguments(
        self, state: Array, first: Array, num_draft: Array, rng: np.random.Generator
    ) -> tuple[Array, Array, Array]:
        """Drafts [B, K] after the given states, and the rows of q and p along them."""
        p, q, edges = self._rows
        states = np.empty((self.max_draft + 1, len(state)), dtype=np.int64)
        states[0] = state
        for i, u in enumerate(rng.random((self.max_draft, len(state)))):
            states[i + 1] = first
            for edge in edges:
                states[i + 1] += edge.take(states[i]) <= u
        walk = np.ascontiguousarray(states.T)
        ids, drafted_after = walk[:, 1:] - first[:, None], walk[:, :-1]
        if self.padding is not Padding.STALE:
            past = np.arange(self.max_draft + 1) > num_draft[:, None]
            np.copyto(ids, -1 if self.padding is Padding.POISON else 0, where=past[:, 1:])
            drafted_after = np.where(past[:, 1:], len(p) - 1, drafted_after)
            np.copyto(walk, len(p) - 1, where=past)
        return ids, q.take(drafted_after, axis=0), p.take(walk, axis=0)

    @cached_property
    def _rows(self) -> tuple[Array, Array, Array]:
        """Rows of p and q, those of all worlds and one of padding; the drafter's edges by token."""
        blank = np.nan if self.padding is Padding.POISON else 0.0
        p, q = np.zeros((2, len(self.worlds) * self.vocabulary + 1, self.vocabulary))
        sampled = np.zeros_like(q)
        p[-1] = q[-1] = blank
        for w, world in enumerate(self.worlds):
            block = np.s_[
                w * self.vocabulary : w * self.vocabulary + world.vocabulary, : world.vocabulary
            ]
            p[block], q[block] = np.array(world.target), np.array(world.draft)
            really = map(self.sampled_law or tuple, world.draft)
            sampled[block] = np.array([tuple(row) for row in really])
        edges = sampled.cumsum(axis=1)
        edges[edges >= sampled.sum(axis=1, keepdims=True)] = 1.0  # no uniform lies past the last id
        return p, q, np.ascontiguousarray(edges[:, :-1].T)


class Sampler:
    """Counts that grow: the texts of one experiment, made chunk by chunk.

    Attributes:
        counts: [worlds, V^length], how often each text was made.
        emitted: [longest+1, longest+2], how often a row of so many drafts emitted so many tokens.
    """

    def __init__(self, subject: Any, experiment: Experiment, seed: int, label: str = "") -> None:
        self.experiment = experiment
        self.counts = np.zeros(experiment.laws.shape, dtype=np.int64)
        self.emitted = np.zeros((experiment.longest + 1, experiment.longest + 2), dtype=np.int64)
        self._verify = as_verify(subject)
        self._draft_rng, self._subject_rng = streams(seed, label)
        self._chunk, self._seconds_per_row = FIRST_CHUNK, 0.0

    @property
    def tables(self) -> list[Table]:
        """The counts so far, world by world."""
        experiment = self.experiment
        shape = (experiment.vocabulary,) * experiment.length
        what = f"texts of {experiment.length} tokens"
        return [
            Table(world.name, what, counts, law, shape)
            for world, counts, law in zip(
                experiment.worlds, self.counts, experiment.laws, strict=True
            )
        ]

    @property
    def emitted_per_call(self) -> float:
        """Tokens of a row that had as many drafts as there may be: efficiency, and never proof."""
        row = self.emitted[-1]
        return float(row @ np.arange(len(row)) / max(1, row.sum()))

    def extend(self, texts: int, deadline: float = np.inf) -> bool:
        """Make texts until there are so many of each world; the subject is called chunk by chunk.

        Args:
            texts: of each world, those that are there included.
            deadline: of `time.monotonic`, when to stop early.

        Returns:
            Whether the time was enough.
        """
        experiment = self.experiment
        worlds, cells = experiment.laws.shape
        numbers = (experiment.max_draft + 1) * experiment.vocabulary * worlds
        largest = max(1, LARGEST_CHUNK // numbers)
        while (missing := texts - int(self.counts[0].sum())) > 0:
            began = time.monotonic()
            if began > deadline:
                return False
            rows = worlds * (experiment.together or min(missing, self._chunk, largest))
            if rows * self._seconds_per_row > SLOW * (deadline - began):
                rows = int(SLOW * (deadline - began) / self._seconds_per_row) // worlds * worlds
                rows = max(rows, worlds)
            made = experiment.make(
                self._verify, rows, self._draft_rng, self._subject_rng, self.emitted
            )
            numbered = (np.arange(rows) % worlds) * cells + made
            self.counts += np.bincount(numbered, minlength=self.counts.size).reshape(worlds, cells)
            self._chunk *= 2
            self._seconds_per_row = (time.monotonic() - began) / rows
        return True
