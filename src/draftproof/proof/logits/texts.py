"""Many texts of requests from logits that share their batches, and the tally of what they are."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from draftproof.proof.logits.call import Request, call_subject
from draftproof.proof.sampled.sampling import Experiment, Padding, streams
from draftproof.proof.sampled.table import Table
from draftproof.proof.subjects.subject import Subject
from draftproof.proof.worlds.law import Law, Text
from draftproof.proof.worlds.logits_world import LONGEST, LogitsWorld

__all__ = ["LogitsTexts"]

Floats = npt.NDArray[np.float64]
K = LONGEST - 1
"""Drafts of the longest draft."""


class LogitsTexts:
    """Texts by rounds of ragged drafts, and first tokens of rows side by side.

    Two texts in three begin with as many drafts as there may be, so that the row behind them all
    counts. The paddings take turns, batch by batch.

    Args:
        subject: a verifier from logits.
        worlds: of one vocabulary; row b of a batch is a request of world b modulo their number.
        seed, label: of all that is drawn.
        seeded: give each text a seed of its own, the next integer.
    """

    ROWS = 64
    """Of each world in a batch."""

    def __init__(
        self,
        subject: Subject,
        worlds: Sequence[LogitsWorld],
        seed: int,
        label: str,
        seeded: bool = False,
    ) -> None:
        self._subject, self._worlds = subject, worlds
        self._rng, self._subject_rng = streams(seed, label)
        self._seeds, self._batches = 0 if seeded else None, 0
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
        padding = tuple(Padding)[self._batches % len(Padding)]
        self._batches += 1
        seeds: list[int | None] = [None] * len(texts)
        if self._seeds is not None:
            seeds = list(range(self._seeds, self._seeds + len(texts)))
            self._seeds += len(texts)
        while open_rows := [b for b, text in enumerate(texts) if len(text) < LONGEST]:
            requests = [self._request(b, texts[b], seeds[b]) for b in open_rows]
            emitted = call_subject(self._subject, requests, K, self._subject_rng, padding)
            for b, new in zip(open_rows, emitted, strict=True):
                texts[b] += new
        return texts

    def _request(self, b: int, text: Text, seed: int | None) -> Request:
        """Draw as many drafts as may be, or any number."""
        world = self._worlds[b % len(self._worlds)]
        drafts: Text = ()
        any_number = int(self._rng.integers(0, 3 * (K + 1)))
        for _ in range(min(any_number, K, LONGEST - 1 - len(text))):
            law = world.tables[1][world.row(text + drafts)]
            drafts += (_choose(self._rng, law),)
        return Request(world, text, drafts, seed)


def _table_of(law: Law, V: int) -> Floats:
    table = np.zeros((V,) * law.length)
    for text, probability in law.items():
        table[text] = float(probability)
    return table.ravel()


def _choose(rng: np.random.Generator, law: Floats) -> int:
    edges = np.cumsum(law)
    return int(np.searchsorted(edges, rng.random() * edges[-1], side="right"))
