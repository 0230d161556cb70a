"""Pairs of texts that must be independent: of two rows, of two calls, of two seeds.

A generator shared by all rows leaves each row's law right; only the law of pairs shows it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.proof.sampled.sampling import Experiment, as_verify, streams
from draftproof.proof.sampled.table import Table

__all__ = ["PairSampler", "Pairing", "consecutive", "halves", "neighbours"]

Array = npt.NDArray[Any]
Pairing = Callable[[Array], tuple[Array, Array]]
"""The cells [2, rows] of two batches -> the cells of the members of pairs; no text in two pairs."""


class PairSampler:
    """Counts of pairs of texts, which are independent of each other if the subject is lossless.

    Attributes:
        counts: by pairing, [V^length, V^length]: how often each pair of texts was made.
        by_call: for each batch, how often each token came first, [batches, V].
    """

    def __init__(
        self,
        subject: Any,
        experiment: Experiment,
        pairings: Mapping[str, Pairing],
        rows: int,
        seed: int,
        label: str,
        reseed: bool = False,
    ) -> None:
        """Start without texts.

        Args:
            subject: as `as_verify` takes it.
            experiment: of one world.
            pairings: which texts of two consecutive batches form pairs.
            rows: of a batch.
            seed, label: see `streams`.
            reseed: give every batch a new generator, of the next seed.
        """
        self.experiment = experiment
        self.by_call = np.empty((0, experiment.vocabulary), dtype=np.int64)
        cells = experiment.laws.shape[1]
        self.counts = {name: np.zeros((cells, cells), dtype=np.int64) for name in pairings}
        self._verify, self._pairings, self.rows = as_verify(subject), pairings, rows
        self._draft_rng, self._subject_rng = streams(seed, label)
        self._next_seed = seed if reseed else None

    @property
    def tables(self) -> list[Table]:
        """The counts so far, pairing by pairing; a pair's law is the product of its texts' laws."""
        experiment = self.experiment
        world, law = experiment.worlds[0].name, experiment.laws[0]
        shape = (experiment.vocabulary,) * (2 * experiment.length)
        what = f"pairs of texts of {experiment.length} tokens"
        return [
            Table(world, f"{what}, {name}", counts.ravel(), np.outer(law, law).ravel(), shape)
            for name, counts in self.counts.items()
        ]

    @property
    def pairs(self) -> int:
        """How many pairs there are, of each kind."""
        return len(self.by_call) // 2 * self.rows

    def extend(self, pairs: int, deadline: float = np.inf) -> bool:
        """Make batches until there are so many pairs; stop early, and say so, at the deadline."""
        side = self.experiment.laws.shape[1]
        first_token = side // self.experiment.vocabulary
        while self.pairs < pairs:
            if time.monotonic() > deadline:
                return False
            batches = np.stack([self._batch(), self._batch()])
            for name, pairing in self._pairings.items():
                a, b = pairing(batches)
                numbered = (a * side + b).ravel()
                self.counts[name] += np.bincount(numbered, minlength=side**2).reshape(side, side)
            firsts = [
                np.bincount(cells // first_token, minlength=self.experiment.vocabulary)
                for cells in batches
            ]
            self.by_call = np.vstack([self.by_call, firsts])
        return True

    def _batch(self) -> Array:
        if self._next_seed is not None:
            self._subject_rng = np.random.default_rng(self._next_seed)
            self._next_seed += 1
        return self.experiment.make(self._verify, self.rows, self._draft_rng, self._subject_rng)


def neighbours(batches: Array) -> tuple[Array, Array]:
    """Rows 0 and 1, 2 and 3, and so on, of one batch."""
    return batches[:, 0::2], batches[:, 1::2]


def halves(batches: Array) -> tuple[Array, Array]:
    """A row of the first half of a batch, and the one as far into the second."""
    half = batches.shape[1] // 2
    return batches[:, :half], batches[:, half:]


def consecutive(batches: Array) -> tuple[Array, Array]:
    """The same row of two batches."""
    return batches[0], batches[1]
