"""The arrays of a case: the same in every process, from the case alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.cases import Case
from draftproof import DraftTree, process
from draftproof.trees import TREE_RULES

__all__ = ["CALLS", "Floats", "Inputs", "Ints", "make_inputs", "make_rng"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.floating[Any]]

CALLS = 8
"""Calls of a cycle: each has uniforms of its own, so that different rows are read."""

_SEED = 20_240_229
_NOISE = 0.77
"""Standard deviation of the drafter's error s: sum min(p, q) is near 2 * Phi(-s / 2) = 0.70."""
_CHUNK_NUMBERS = 1 << 21


@dataclass(frozen=True, eq=False)
class Inputs:
    """A case's arrays: ``draft_token_ids`` [B, K], ``draft_probs`` [B, K, V], ``target_probs``.

    Where the case has logits they stand in the places of the laws. For a rule for trees
    ``draft_probs`` is [B, K+1, V], by context, and ``tree`` has all but the target's laws.
    """

    case: Case
    draft_token_ids: Ints
    draft_probs: Floats
    target_probs: Floats
    tree: DraftTree | None = None


def make_rng(case: Case) -> np.random.Generator:
    """Return the generator of a cycle's uniforms, at its start."""
    return np.random.default_rng([_SEED, case.B, case.K, case.V, 1])


def make_inputs(case: Case) -> Inputs:
    """Draw laws p, laws q that err around p, and drafts from q.

    ::

        p = softmax(4 * normal),  q = softmax(log p + 0.77 * normal),  x ~ q

    With ``rejects_at = r``: q = p before position r, and p(x) = 0 there. Siblings in a tree are
    drawn as its rule likes them best.
    """
    if case.branching:
        return _tree_inputs(case)
    B, K, V = case.B, case.K, case.V
    rng = np.random.default_rng([_SEED, B, K, V, 0])
    dtype = np.dtype(case.dtype).type
    target: Floats = np.empty((B, K + 1, V), dtype=dtype)
    draft: Floats = np.empty((B, K, V), dtype=dtype)
    ids = np.empty((B, K), dtype=np.int64)
    step = max(1, _CHUNK_NUMBERS // ((K + 1) * V))
    for start in range(0, B, step):
        p, q = target[start : start + step], draft[start : start + step]
        logits = rng.standard_normal(p.shape, dtype=dtype) * dtype(case.spread)
        errors = rng.standard_normal(q.shape, dtype=dtype) * dtype(_NOISE)
        if case.logits:
            p[:], q[:] = logits, logits[:, :K] + errors
            ids[start : start + step] = _sample(_softmax(q), rng.random((len(q), K, 1)))
            continue
        p[:], q[:] = _softmax(logits), _softmax(logits[:, :K] + errors)
        if case.rejects_at is not None:
            q[:, : case.rejects_at] = p[:, : case.rejects_at]
        ids[start : start + step] = _sample(q, rng.random((len(q), K, 1)))
        if case.rejects_at is not None:
            _forbid(p[:, case.rejects_at], ids[start : start + step, case.rejects_at])
    return Inputs(case, ids, draft, target)


def _tree_inputs(case: Case) -> Inputs:
    B, K, V = case.B, case.K, case.V
    rng = np.random.default_rng([_SEED, B, K, V, 0])
    dtype = np.dtype(case.dtype).type
    draws = TREE_RULES[case.rule].draws[0]
    parents = _parents(case.branching)
    target: Floats = np.empty((B, K + 1, V), dtype=dtype)
    draft: Floats = np.zeros((B, K + 1, V), dtype=dtype)  # pages of leaves are never touched
    ids = np.zeros((B, K), dtype=np.int64)
    for b, context in np.ndindex(B, K + 1):
        logits = rng.standard_normal(V, dtype=dtype) * dtype(case.spread)
        target[b, context] = logits if case.logits else _softmax(logits)
        children = np.flatnonzero(parents == context - 1)
        if len(children):
            noise = rng.standard_normal(V, dtype=dtype) * dtype(_NOISE)
            law = draft[b, context] = _softmax(logits + noise)
            if case.logits:
                draft[b, context] = logits + noise
                law = process(draft[b, context, None], case.params)[0]
            for child in children:
                if not law.any():  # fewer tokens than siblings, the last of which have q = 0
                    law = np.ones_like(law)
                    law[ids[b, children]] = 0
                ids[b, child] = _sample(law, rng.random(1))
                if draws == "without-replacement":
                    law = law.copy()
                    law[ids[b, child]] = 0
    tree = DraftTree(ids, np.tile(parents, (B, 1)), None if case.logits else draft, draws)
    return Inputs(case, ids, draft, target, tree)


def _parents(branching: tuple[int, ...]) -> Ints:
    parents: list[int] = []
    level = [-1]
    for children in branching:
        above, level = level, []
        for parent in above:
            level += range(len(parents), len(parents) + children)
            parents += [parent] * children
    return np.array(parents, dtype=np.int64)


def _softmax(logits: Floats) -> Floats:
    weights = np.exp(logits)
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True, dtype=np.float64))


def _sample(laws: Floats, u: npt.NDArray[np.float64]) -> Ints:
    sums = np.cumsum(laws, axis=-1, dtype=np.float64)
    return np.asarray((sums <= u * sums[..., -1:]).sum(axis=-1), dtype=np.int64)


def _forbid(laws: Floats, tokens: Ints) -> None:
    laws[np.arange(len(laws)), tokens] = 0
    laws /= laws.sum(axis=-1, keepdims=True, dtype=np.float64)
