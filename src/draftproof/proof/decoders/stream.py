"""Streams of tokens beside their laws, without end: what any-time evidence watches."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.proof.anytime.account import Tokens
from draftproof.proof.decoders.models import Models, Scenery
from draftproof.proof.decoders.recital import prompt_for, write_texts
from draftproof.proof.sampled.sampling import Experiment, as_verify, streams
from draftproof.proof.subjects.decoder import Decoder, Text
from draftproof.proof.subjects.emission import ContractBroken
from draftproof.proof.subjects.subject import Subject

__all__ = [
    "TEXT",
    "LawFunction",
    "by_law",
    "from_experiment",
    "from_world",
    "row_of",
]

Array = npt.NDArray[Any]
LawFunction = Callable[[Text, Text], Any]
"""(prompt, prefix) -> the target's law of the next token, [V]."""

TEXT = 8
"""Tokens of a text: a few rounds, in which rows fall behind one another."""
BATCHES = (1, 2, 5, 32)
"""Rows of one call, by turns: some faults need company, others vanish in it."""
DRAFTS = 3
KNOWN = 1 << 16
"""Contexts whose tokens are counted: as many as fit beside a small vocabulary."""
COUNTED = 2
"""The first contexts of a text, which come again and again, are told apart by the whole text."""


class _Contexts:
    """Names for contexts, in the order in which they come; -1 once there are enough."""

    def __init__(self, vocabulary: int) -> None:
        self._names: dict[Any, int] = {}
        self._most = max(64, min(KNOWN, 4_000_000 // vocabulary))

    def name(self, key: Any) -> int:
        if key not in self._names and len(self._names) >= self._most:
            return -1
        return self._names.setdefault(key, len(self._names))


def from_world(
    subject: Subject, world: Scenery, seed: int, eos: int | None = None, label: str = ""
) -> Iterator[Tokens]:
    """Texts that a decoder writes in a world of any size."""
    decoder = Decoder(subject, Models(world, eos))
    length_rng, rng = streams(seed, f"anytime {world.name} {label}")
    contexts, (p, q) = _Contexts(world.vocabulary), world.tables
    starts = [world.start, (world.start + 1) % world.vocabulary]
    for size in itertools.cycle(BATCHES):
        prompts = [prompt_for(starts[b % 2], b) for b in range(size)]
        texts = write_texts(decoder, prompts, TEXT, DRAFTS, length_rng, rng)
        states, keys = [], []
        for prompt, text in zip(prompts, texts, strict=True):
            for i in range(len(text)):
                before = (*prompt[-1:], *text[:i])
                states.append(world.row(before))
                keys.append(contexts.name((i, before) if i <= COUNTED else before[-2:]))
        ids = list(itertools.chain.from_iterable(texts))
        yield Tokens(p, np.array(states), np.array(ids), q, np.array(keys))


def from_experiment(
    subject: Any, experiment: Experiment, seed: int, label: str
) -> Iterator[Tokens]:
    """Texts that a verifier makes, by an experiment in one world of a small vocabulary."""
    (world,), verify = experiment.worlds, as_verify(subject)
    length_rng, rng = streams(seed, f"anytime {label}")
    (p, q), V, L = world.tables, experiment.vocabulary, experiment.length
    for rows in itertools.cycle(64 * n for n in BATCHES):
        cells = experiment.make(verify, rows, length_rng, rng)
        texts = np.stack(np.unravel_index(cells, (V,) * L), axis=1)
        before = np.hstack([np.full((rows, 1), world.start), texts[:, :-1]])
        keys = np.zeros_like(texts)
        for i in range(1, L):  # every text so far is a context of its own
            keys[:, i] = keys[:, i - 1] * V + texts[:, i - 1] + 1
        yield Tokens(p, before.ravel(), texts.ravel(), q, keys.ravel())


def by_law(
    subject: Subject, law: LawFunction, prompts: Sequence[Text], seed: int, eos: int | None
) -> Iterator[Tokens]:
    """Texts that a decoder writes by models of its own, beside the law that it should have."""
    first = row_of(law, prompts[0], (), None)
    V = len(first)
    decoder, contexts = Decoder(subject, None, V, eos), _Contexts(V)
    length_rng, rng = streams(seed, "anytime law")
    rows: dict[tuple[Text, Text], Array] = {}
    offset = 0
    for size in itertools.cycle(BATCHES):
        asked = [prompts[(offset + b) % len(prompts)] for b in range(size)]
        offset += size
        texts = write_texts(decoder, asked, TEXT, DRAFTS, length_rng, rng)
        places = [
            (prompt, text[:i])
            for prompt, text in zip(asked, texts, strict=True)
            for i in range(len(text))
        ]
        table = []
        for place in places:
            if (row := rows.get(place)) is None:
                row = row_of(law, *place, V)
                if len(place[1]) <= COUNTED and len(rows) * V < 4_000_000:
                    rows[place] = row
            table.append(row)
        keys = [contexts.name(place) if len(place[1]) <= COUNTED else -1 for place in places]
        ids = np.array(list(itertools.chain.from_iterable(texts)))
        yield Tokens(np.array(table), np.arange(len(ids)), ids, None, np.array(keys))


def row_of(law: LawFunction, prompt: Text, prefix: Text, V: int | None) -> Array:
    """Ask a law for a row, and refuse what is none.

    Raises:
        ContractBroken: not V numbers >= 0 of sum 1.
    """
    row: Array = np.asarray(law(prompt, prefix), dtype=np.float64)
    wanted = "a row of probabilities" if V is None else f"a row of {V} probabilities"
    if row.ndim != 1 or (V is not None and len(row) != V):
        raise ContractBroken(f"law({prompt}, {prefix}) has shape {row.shape}; wanted {wanted}")
    total = float(row.sum())
    if not (np.isfinite(total) and row.min() >= 0 and abs(total - 1) < 1e-3):
        raise ContractBroken(f"law({prompt}, {prefix}) sums to {total:g}; wanted {wanted}")
    return row / total
