"""Where one draw from a wide row changes its token: a subject's own arithmetic, to 53 bits.

Without drafts the token's law is the row, whatever the rule. If the token rises with a uniform that
can be chosen, the law is told by cut points c(v) = inf {u : token(u) >= v}: token v has the
probability c(v+1) - c(v). Each cut is looked for around the place C(v) where exact sums put it, in
steps that grow until it lies between two of them, and then by bisection. A right subject shows all
of a cut in two calls; sums in a narrow number are off by what they lost.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.proof.exact.bisection import ONE
from draftproof.proof.exact.generator import NotDrivable
from draftproof.proof.exact.replay import LONGEST_SCRIPT, ReplayGenerator
from draftproof.proof.subjects.subject import Subject
from draftproof.proof.worlds.wide import cumulative

__all__ = ["ASSUMPTION", "Cuts", "Draw", "find_cuts"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Row = npt.NDArray[Any]

ASSUMPTION = "the token of a draw rises with its uniform, as it did in every call"
NUMBERS = 1 << 20
"""Of one call: its rows stay in the cache of the processor."""
LEAST_LANES = 3
"""Rows of a call: unlike every other axis, so that the batch is known by its length."""
PROBES = np.sin(np.pi * (np.arange(8) + 0.5) / 16) ** 2
"""Uniforms denser towards 0 and 1: one likely token shall not have them all."""
GROWTH = 32
FINE = 2.0**-12
"""A cut is found to this part of the probability of its token."""
LANDMARKS = (1023, 1024, 65535, 65536)
"""Tokens at the edges of blocks and of narrow integers, which a sample would miss."""


class Draw:
    """The token that a subject draws from one row, as a function of one uniform.

    Attributes:
        law: the row's, in float64.
        lanes: how many rows the subject has been called with.
    """

    def __init__(self, subject: Subject, row: Row) -> None:
        """Find out how the subject asks for the uniform.

        Args:
            subject: takes one uniform that matters.
            row: [V], a law in any precision.

        Raises:
            NotDrivable: it does not, or does not repeat itself for equal uniforms.
        """
        self.law = row.astype(np.float64) / row.sum(dtype=np.float64)
        self.lanes = 0
        self._subject, self._row = subject, row
        batch = max(LEAST_LANES, NUMBERS // len(row))
        refusal: Exception | None = None
        for self._max_draft, self._batch in itertools.product((0, 1), (batch, 1)):
            try:
                self._column, self._columns = self._which_uniform()
                return
            except Exception as error:
                refusal = refusal or error
        if isinstance(refusal, NotDrivable):
            raise refusal
        raise NotDrivable(f"The subject raises {refusal!r} on chosen uniforms.") from refusal

    def tokens(self, steps: Ints) -> Ints:
        """Draw with uniforms steps / 2^53."""
        scripts = np.full((len(steps), self._columns), 0.5)
        scripts[:, self._column] = steps / ONE
        try:
            return self._call(scripts)[0]
        except NotDrivable:
            raise
        except Exception as error:
            raise NotDrivable(f"The subject raises {error!r} on chosen uniforms.") from error

    def _which_uniform(self) -> tuple[int, int]:
        """The one column of the script that decides the token, and how many are consumed."""
        columns = self._call(np.full((1, LONGEST_SCRIPT), 0.5))[1]
        scripts = np.full((columns, len(PROBES), columns), 0.5)
        for column, script in enumerate(scripts):
            script[:, column] = PROBES
        tokens = [self._call(script)[0] for script in scripts]
        deciding = [c for c, drawn in enumerate(tokens) if (drawn != drawn[0]).any()]
        if columns == 1:
            deciding = [0]
        if len(deciding) != 1:
            raise NotDrivable(f"{len(deciding)} uniforms, not one, decide the subject's token.")
        backwards = self._call(scripts[deciding[0], ::-1])[0]
        if (backwards[::-1] != tokens[deciding[0]]).any():
            raise NotDrivable("The subject gives different tokens for equal uniforms.")
        return deciding[0], columns

    def _call(self, scripts: Floats) -> tuple[Ints, int]:
        """Return each lane's token, and how many uniforms a row consumes."""
        tokens, columns = np.empty(len(scripts), dtype=np.int64), 0
        K, V = self._max_draft, len(self._row)
        for first in range(0, len(scripts), self._batch):
            part = scripts[first : first + self._batch]
            B = len(part) if self._batch == 1 else max(len(part), LEAST_LANES)
            generator = ReplayGenerator(np.resize(part, (B, part.shape[1])))
            p = np.broadcast_to(self._row, (B, K + 1, V))
            q = np.full((B, K, V), np.nan, p.dtype)
            with np.errstate(all="ignore"):
                out, _ = self._subject.verify(
                    np.full((B, K), -1), q, p, np.zeros(B, np.int64), generator
                )
            if generator.refusal is not None:
                raise NotDrivable(f"The subject asks for {generator.refusal}.")
            tokens[first : first + len(part)] = out[: len(part), 0]
            columns = generator.columns
            self.lanes += B
        return tokens, columns


@dataclass(frozen=True)
class Cuts:
    """What the cuts of some tokens say about a subject's law of one draw.

    Attributes:
        total_variation: an estimate, the mean of |p'(v) / p(v) - 1| / 2 over tokens v drawn from p,
            and not less than ``least``.
        error: its standard error, and what the cuts are known to.
        least: the total variation is at least this, by the measured cuts alone.
        rounding: so much of ``least`` running sums in double precision may explain: each cut is
            off by 2 V 2^-53 at most, and a cut counts twice at most.
        token, expected, observed: the worst token, its probability and the subject's.
        sample: how many tokens the estimate rests on.
        lanes: rows that the subject was called with.
    """

    total_variation: float
    error: float
    least: float
    rounding: float
    token: int
    expected: float
    observed: float
    sample: int
    lanes: int

    @property
    def is_exact(self) -> bool:
        """Whether double precision explains all that was seen."""
        return self.least <= self.rounding


def find_cuts(draw: Draw, sample: int, rng: np.random.Generator) -> Cuts:
    """Measure the law of a draw at some tokens.

    Tokens may lie along the uniform by their ids or by falling probability.

    Args:
        draw: of the subject.
        sample: tokens to draw from the law; those at `LANDMARKS`, the ends and the padding are
            measured too.
        rng: draws them.

    Raises:
        NotDrivable: the token neither rises nor falls with the uniform.
    """
    sampled = np.searchsorted(cumulative(draw.law)[:-1], rng.random(sample), side="right")
    marked = np.array([v for v in (*LANDMARKS, *_ends(draw.law)) if 0 <= v < len(draw.law)])
    for order in _orders(draw.law):
        along = _Along(draw, order)
        if along.rises:
            cuts = along.measure(sampled, np.union1d(sampled, marked))
            if along.rises:
                return cuts
    raise NotDrivable("The subject's token does not rise with its uniform.")


def _ends(law: Floats) -> Iterator[int]:
    """The first and the last possible token, and the impossible ones beside them."""
    possible = np.flatnonzero(law)
    yield from (int(possible[0]) - 1, int(possible[0]), int(possible[-1]), int(possible[-1]) + 1)
    yield len(law) - 1


def _orders(law: Floats) -> Iterator[Ints]:
    """Orders in which an inverse CDF may lay out the tokens."""
    ids = np.arange(len(law))
    likeliest = np.argsort(-law, kind="stable")
    yield from (ids, likeliest, ids[::-1], likeliest[::-1])


class _Along:
    """A draw whose tokens are numbered by their places along the uniform."""

    def __init__(self, draw: Draw, order: Ints) -> None:
        self._draw = draw
        self._place = np.empty_like(order)
        self._place[order] = np.arange(len(order))
        edges = np.concatenate([[0.0], cumulative(draw.law[order])])
        self._edges = np.rint(edges * ONE).astype(np.int64)
        self._seen: list[tuple[Ints, Ints]] = []
        self._look((PROBES * ONE).astype(np.int64))

    @property
    def rises(self) -> bool:
        """Whether no call so far has drawn an earlier token with a larger uniform."""
        steps, places = (np.concatenate(parts) for parts in zip(*self._seen, strict=True))
        return bool((np.diff(places[np.lexsort((places, steps))]) >= 0).all())

    def measure(self, sampled: Ints, tokens: Ints) -> Cuts:
        """Find the cuts before and behind each token.

        Args:
            sampled: tokens drawn from the law, for the estimate.
            tokens: all tokens to look at, these among them, without repetition.
        """
        law, V = self._draw.law, len(self._edges) - 1
        places = self._place[tokens]
        wanted = np.union1d(places, places + 1)
        wanted = wanted[(wanted > 0) & (wanted < V)]
        fine = np.minimum(*(np.diff(self._edges)[wanted + shift] for shift in (-1, 0)))
        low, high = self._find(wanted, (fine * FINE).astype(np.int64))
        slack = V // 256 + 2  # of `cumulative`, in steps
        wanted = np.concatenate([[0], wanted, [V]])
        low = np.concatenate([[0], low - slack, [ONE]]) - self._edges[wanted]
        high = np.concatenate([[0], high + slack, [ONE]]) - self._edges[wanted]

        gains, losses = low[1:] - high[:-1], low[:-1] - high[1:]
        least = max(float(surely[surely > 0].sum()) for surely in (gains, losses)) / ONE
        at = np.searchsorted(wanted, places)
        gained = np.stack([low[at + 1] - high[at], high[at + 1] - low[at]]) / ONE
        change, doubt = gained.mean(axis=0), np.ptp(gained, axis=0) / 2
        of = np.searchsorted(tokens, sampled)
        relative = np.abs(change[of]) / law[sampled] / 2
        doubtful = doubt[of] / law[sampled] / 2
        known = np.maximum(relative - doubtful, 0)
        worst = int(np.argmax(np.abs(change) - doubt))
        return Cuts(
            total_variation=max(float(known.mean()), least),
            error=float(doubtful.mean() + known.std() / np.sqrt(len(sampled))),
            least=least,
            rounding=2 * len(wanted) * (V + 4) / ONE,
            token=int(tokens[worst]),
            expected=float(law[tokens[worst]]),
            observed=float(max(0.0, law[tokens[worst]] + change[worst])),
            sample=len(sampled),
            lanes=self._draw.lanes,
        )

    def _look(self, steps: Ints) -> Ints:
        places = self._place[self._draw.tokens(steps)]
        self._seen.append((steps, places))
        return places

    def _before(self, steps: Ints, places: Ints) -> npt.NDArray[np.bool_]:
        """Whether the tokens drawn lie before the places; outside [0, 1) the answer is known."""
        before = steps < 0
        inside = np.flatnonzero((steps >= 0) & (steps < ONE))
        if len(inside):
            before[inside] = self._look(steps[inside]) < places[inside]
        return before

    def _find(self, places: Ints, fine: Ints) -> tuple[Ints, Ints]:
        """The last step known to lie before each cut, and the first known to lie behind it."""
        true, reach = self._edges[places], np.int64(64 + len(self._edges) // 128)
        low, high = true - reach, true + reach
        open_low, open_high = np.ones((2, len(true)), dtype=np.bool_)
        while (open_low | open_high).any():
            i, j = np.flatnonzero(open_low), np.flatnonzero(open_high)
            before = self._before(np.append(low[i], high[j]), np.append(places[i], places[j]))
            too_high, too_low = i[~before[: len(i)]], j[before[len(i) :]]
            reach = min(reach * GROWTH, np.int64(2 * ONE))
            open_low[:], open_high[:] = False, False
            open_low[too_high], open_high[too_low] = True, True
            high[too_high], low[too_low] = low[too_high], high[too_low]
            low[too_high], high[too_low] = true[too_high] - reach, true[too_low] + reach
        fine = np.maximum(fine, 2 * (64 + len(self._edges) // 128))
        while len(wide := np.flatnonzero(high - low > fine)):
            middle = (low[wide] + high[wide]) // 2
            before = self._before(middle, places[wide])
            low[wide] = np.where(before, middle, low[wide])
            high[wide] = np.where(before, high[wide], middle)
        return low, high
