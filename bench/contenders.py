"""Who runs: each contender makes the same calls on the same inputs with the same uniforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

import draftproof
from bench import plain_numpy
from bench.floor import Floor
from bench.inputs import CALLS, Inputs, Ints, make_rng
from bench.peers import PEERS, Peer
from bench.sampling import verify_logits_of, verify_tree_logits_of

__all__ = ["THREADS", "Contender", "make_contender"]

THREADS = {
    "floor": 1,
    "numpy": 1,
    "draftproof": 1,
    "draftproof-2": 2,
    "draftproof-numpy": 1,
    **dict.fromkeys(PEERS, 1),
}
"""The contenders' names, and how many CPUs each is pinned to."""


class Contender(Protocol):
    """Something that verifies one case's inputs, a cycle of calls at a time."""

    def cycle(self) -> list[Ints]:
        """Make the calls that are timed; return each one's num_emitted [B]."""

    def rewind(self) -> None:
        """Go back to the first call's uniforms, untimed."""


def make_contender(name: str, inputs: Inputs) -> Contender:
    """Prepare a contender: all that a user does once, and not for every call."""
    ids, q, p = inputs.draft_token_ids, inputs.draft_probs, inputs.target_probs

    def straightforward(rng: np.random.Generator) -> Ints:
        return plain_numpy.verify(ids, q, p, rng)[1]

    def native(rng: np.random.Generator) -> Ints:
        rule, threads = inputs.case.rule, THREADS[name]
        if inputs.case.logits and inputs.tree is not None:
            return verify_tree_logits_of(inputs, rng, threads, "native").num_emitted
        if inputs.case.logits:
            return verify_logits_of(inputs, rng, threads, "native").num_emitted
        if inputs.tree is not None:
            return draftproof.verify_tree(
                inputs.tree, p, rng, rule=rule, num_threads=threads, backend="native"
            ).num_emitted
        return draftproof.verify(
            ids, q, p, None, rng, rule=rule, num_threads=threads, backend="native"
        ).num_emitted

    def vectorised(rng: np.random.Generator) -> Ints:
        return draftproof.verify(ids, q, p, None, rng, backend="numpy").num_emitted

    match name:
        case "floor":
            return Floor(inputs)
        case "numpy":
            return _Calls(inputs, straightforward)
        case "draftproof" | "draftproof-2":
            return _Calls(inputs, native)
        case "draftproof-numpy":
            return _Calls(inputs, vectorised)
        case _ if name in PEERS:
            return Peer(name, inputs)
    raise ValueError(f"no contender is called {name!r}: choose one of {', '.join(THREADS)}")


class _Calls:
    """A cycle of calls that draw their uniforms from one generator."""

    def __init__(self, inputs: Inputs, call: Callable[[np.random.Generator], Ints]) -> None:
        self._call = call
        self._rng = make_rng(inputs.case)
        self._start = self._rng.bit_generator.state

    def cycle(self) -> list[Ints]:
        return [self._call(self._rng) for _ in range(CALLS)]

    def rewind(self) -> None:
        self._rng.bit_generator.state = self._start
