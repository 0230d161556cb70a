"""Small experiments on a subject, each of which isolates one choice of a verifier.

Where it can be, a probe's laws are one-hot: then every lossless rule gives one answer, whatever
its uniforms are. Else first tokens of many equal rows are counted.
"""

from __future__ import annotations

import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.proof.sampled.statistics import compare
from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.subjects.subject import Subject
from draftproof.proof.worlds.catalogue import WORLDS

__all__ = ["Probe", "Tally", "one_hot"]

Array = npt.NDArray[Any]
FALSE_ALARM = 1e-9
"""Of one table: a right subject fails a row of the scorecard about once in ten million runs."""
Q = np.array([4, 2, 1, 1]) / 8
P = np.array([1, 1, 2, 4]) / 8
"""One pair of rows: p/q is 1/4, 1/2, 2, 4."""
BATCHED, ALONE = 10_000, 1_000
"""Rows of one experiment, of a verifier of batches and of one that takes row after row."""
MOST_LINES = 0.5
"""Lines of Python for each row of a batch; a loop over rows takes more."""


def one_hot(tokens: Sequence[int], V: int = 4) -> Array:
    """The point masses on some tokens, as rows."""
    return np.eye(V)[list(tokens)]


@dataclass(frozen=True)
class Tally:
    """Counts of first tokens beside their law."""

    counts: Array
    law: Array

    @property
    def fits(self) -> bool:
        """Whether the counts can come from the law."""
        return compare(self.counts, self.law).false_alarm >= FALSE_ALARM

    def __str__(self) -> str:
        seen = self.counts / max(self.counts.sum(), 1)
        show = ", ".join
        return (
            f"({show(f'{x:.3f}' for x in seen)}) of {self.counts.sum():,}; "
            f"wanted ({show(f'{x:.3f}' for x in self.law)})"
        )


class Probe:
    """A subject, and how many equal rows it is asked for: no clock decides that."""

    def __init__(self, subject: Subject, seed: int) -> None:
        self.subject, self._seed = subject, seed

    @cached_property
    def size(self) -> int:
        """Rows of one experiment."""
        if self.subject.contract is Contract.SINGLE:
            return ALONE
        try:
            loops = self.lines_per_row > MOST_LINES
        except Exception:  # it will be seen, by the experiment that is about to be made
            return ALONE
        return ALONE if loops else BATCHED

    def rng(self, label: str) -> np.random.Generator:
        """A generator of its own for each experiment."""
        return np.random.default_rng([self._seed, zlib.crc32(label.encode())])

    def ask(
        self,
        label: str,
        draft: Sequence[int],
        q: Array,
        p: Array,
        *,
        rows: int,
        num_draft: int | None = None,
    ) -> tuple[Array, Array]:
        """Verify many copies of one row."""
        K = len(draft)
        return self.subject.verify(
            np.tile(np.array(draft, dtype=np.int64), (rows, 1)),
            np.tile(q, (rows, 1, 1)),
            np.tile(p, (rows, 1, 1)),
            np.full(rows, K if num_draft is None else num_draft),
            self.rng(label),
        )

    @cached_property
    def has_bonus(self) -> bool:
        """Whether it emits a token after drafts that were all accepted."""
        _, n_out = self.ask("bonus", [0], one_hot([0]), one_hot([0, 1]), rows=8)
        return bool((n_out == 2).all())

    @cached_property
    def first_draft(self) -> dict[int, tuple[Array, Array]]:
        """For each draft x against `P` and `Q`: which rows accept it, and their first tokens."""
        seen = {}
        for x in range(4):
            p = np.vstack([P, one_hot([0])])
            out, n_out = self.ask(f"draft {x}", [x], Q[None], p, rows=self.size)
            accepted = n_out == 2 if self.has_bonus else out[:, 0] == x
            seen[x] = accepted, out[:, 0]
        return seen

    def acceptance(self, probabilities: Array) -> list[Tally]:
        """How often each draft was accepted, beside what a rule says."""
        return [
            Tally(
                np.array([accepted.sum(), (~accepted).sum()]),
                np.array([probabilities[x], 1 - probabilities[x]]),
            )
            for x, (accepted, _) in self.first_draft.items()
        ]

    @cached_property
    def rule(self) -> str:
        """Which lossless rule it accepts by: "token", "exact-match", or "" if neither."""
        rules = {"token": np.minimum(1, P / Q), "exact-match": P}
        fitting = (r for r, law in rules.items() if all(t.fits for t in self.acceptance(law)))
        return next(fitting, "")

    def recovered(self, exact_match: bool) -> list[Tally]:
        """First tokens after a rejection, beside the residual's law or that of p without x."""
        tallies = []
        for x, (accepted, tokens) in self.first_draft.items():
            law = np.where(np.arange(4) == x, 0, P) if exact_match else np.maximum(P - Q, 0)
            rejected = tokens[~accepted]
            if len(rejected):
                tallies.append(Tally(np.bincount(rejected, minlength=4), law / law.sum()))
        return tallies

    def bonus(self, K: int) -> Tally:
        """Second tokens after one draft that is surely accepted, in a row padded to K."""
        law = np.array([4, 2, 2, 0]) / 8
        q = np.vstack([one_hot([0]), one_hot([3] * (K - 1))])
        p = np.vstack([one_hot([0]), law, one_hot([3] * (K - 1))])
        out, n_out = self.ask(f"bonus of {K}", [0] * K, q, p, rows=self.size, num_draft=1)
        return Tally(np.bincount(out[n_out == 2, 1], minlength=4), law)

    def no_draft(self, K: int) -> Tally:
        """Tokens of rows without a draft."""
        p = np.vstack([P, one_hot([0] * K)])
        out, _ = self.ask(
            f"no draft of {K}", [0] * K, one_hot([0] * K), p, rows=self.size, num_draft=0
        )
        return Tally(np.bincount(out[:, 0], minlength=4), P)

    def first_token(self, q: Array, p: Array) -> Tally:
        """First tokens over drafts as they come, beside p: what losslessness means at one place."""
        sampled = q
        if self.subject.sampled_law is not None:
            row = [Fraction(float(x)) for x in q]
            sampled = np.array([float(x) for x in self.subject.sampled_law(row)])
        n, rng = 2 * self.size, self.rng("drafts")
        draft = rng.choice(4, size=(n, 1), p=sampled / sampled.sum())
        rows = np.tile(np.vstack([p, one_hot([0])]), (n, 1, 1))
        out, _ = self.subject.verify(
            draft, np.tile(q[None], (n, 1, 1)), rows, np.ones(n, np.int64), self.rng("first token")
        )
        return Tally(np.bincount(out[:, 0], minlength=4), p)

    def joint(self) -> Tally:
        """Texts of three tokens in the world L4, completed from the target after one round."""
        world, n = WORLDS["L4"], 2 * self.size
        P_, Q_ = (np.array(rows, dtype=np.float64) for rows in (world.target, world.draft))
        sampled = Q_
        if self.subject.sampled_law is not None:
            laws = (self.subject.sampled_law(row) for row in world.draft)
            sampled = np.array([[float(x) for x in law] for law in laws])
        rng = self.rng("texts")
        states = np.full((n, 3), world.start)
        for i in range(2):
            states[:, i + 1] = _draw(sampled[states[:, i]], rng)
        text, n_out = self.subject.verify(
            states[:, 1:], Q_[states[:, :2]], P_[states], np.full(n, 2), self.rng("joint")
        )
        for i in (1, 2):
            text[:, i] = np.where(i < n_out, text[:, i], _draw(P_[text[:, i - 1]], rng))
        law = np.zeros((4, 4, 4))
        for tokens, probability in world.target_law(3).items():
            law[tokens] = probability
        return Tally(np.bincount(text @ [16, 4, 1], minlength=64), law.ravel())

    def seconds_per_row(self, B: int) -> float:
        """Median time in the subject's own call, for a row with four drafts of 32 tokens."""
        times: list[float] = []
        while len(times) < 15 and sum(times) < 0.2:
            self._watch(_timed(times), B)
        return float(np.median(times)) / B

    @cached_property
    def lines_per_row(self) -> float:
        """Lines of Python that a call runs for each further row of its batch."""
        small, large = 64, 256
        counts: list[int] = []
        for B in (small, small, large):  # the first call may import what it needs
            self._watch(_counted(counts), B)
        return (counts[-1] - counts[-2]) / (large - small)

    def _watch(self, watching: AbstractContextManager[None], B: int) -> None:
        call, rng = self.subject.call, self.rng("any")

        def watched(*arguments: Any) -> Any:
            with watching:
                return call(*arguments)

        watched.__wrapped__ = call  # type: ignore[attr-defined]
        p = rng.dirichlet(np.ones(32), (B, 5))
        draft, num_draft = rng.integers(0, 32, (B, 4)), np.full(B, 4)
        replace(self.subject, call=watched).verify(draft, p[:, :4], p, num_draft, rng)


@contextmanager
def _timed(times: list[float]) -> Iterator[None]:
    """Note how long it takes."""
    began = time.perf_counter()
    yield
    times.append(time.perf_counter() - began)


@contextmanager
def _counted(counts: list[int]) -> Iterator[None]:
    """Note how many lines of Python it runs, those of libraries too."""
    lines = 0

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)
    counts.append(lines)


def _draw(rows: Array, rng: np.random.Generator) -> Array:
    cumulative = rows.cumsum(axis=1)
    threshold = rng.random((len(rows), 1)) * cumulative[:, -1:]
    return np.asarray((cumulative <= threshold).sum(axis=1))
