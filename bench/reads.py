"""What a verification has to read: each row of p and q that its rule sums or draws from, once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

import draftproof
from bench.inputs import CALLS, Inputs, Ints, make_rng
from bench.sampling import verify_logits_of, verify_tree_logits_of

__all__ = ["Reads", "bytes_read", "reads_of_cycle"]

Pairs = list[tuple[int, int, bool]]
"""A batch row, the place of its row of p, and whether the row of q there is read too."""


class Reads(NamedTuple):
    """What one call emits and reads.

    Attributes:
        num_emitted: [B].
        p_at, q_at: [R], the addresses of the rows read; 0 where no row of q is.
    """

    num_emitted: Ints
    p_at: npt.NDArray[np.uint64]
    q_at: npt.NDArray[np.uint64]


def reads_of_cycle(inputs: Inputs) -> list[Reads]:
    """Return what each call of a cycle reads, with its own uniforms."""
    rng = make_rng(inputs.case)
    if inputs.tree is not None:
        return [_tree(inputs, rng) for _ in range(CALLS)]
    return [_chain(inputs, rng) for _ in range(CALLS)]


def bytes_read(inputs: Inputs, cycle: list[Reads]) -> int:
    """Return the mean bytes of a call's rows."""
    rows = sum(len(reads.p_at) + np.count_nonzero(reads.q_at) for reads in cycle) / len(cycle)
    return round(rows * inputs.case.V * np.dtype(inputs.case.dtype).itemsize)


def _chain(inputs: Inputs, rng: np.random.Generator) -> Reads:
    """Token: the last token's rows. Block: those from the last draft down, unless all are kept."""
    K, rule = inputs.case.K, inputs.case.rule
    if inputs.case.logits:
        return _logits(inputs, rng)
    if rule == "token":
        num_emitted = _token(inputs, rng)
    else:
        ids, q, p = inputs.draft_token_ids, inputs.draft_probs, inputs.target_probs
        num_emitted = draftproof.verify(ids, q, p, None, rng, rule=rule).num_emitted
    pairs: Pairs = []
    for b, tau in enumerate((num_emitted - 1).tolist()):
        last = tau if rule == "token" else K - 1
        pairs += [(b, i, True) for i in range(tau, last + 1)] if tau < K else [(b, K, False)]
    return _reads(inputs, num_emitted, pairs)


def _logits(inputs: Inputs, rng: np.random.Generator) -> Reads:
    """Every row that is reached, since each has a normaliser; the first as one of p and q."""
    num_emitted = verify_logits_of(inputs, rng, num_threads=1).num_emitted
    pairs: Pairs = [
        (b, i, i < inputs.case.K)
        for b, count in enumerate(num_emitted.tolist())
        for i in range(count)
    ]
    return _reads(inputs, num_emitted, pairs)


def _token(inputs: Inputs, rng: np.random.Generator) -> Ints:
    """Apply the rule ``u * q(x) < p(x)``."""
    at = inputs.draft_token_ids[..., None]
    p = np.take_along_axis(inputs.target_probs[:, :-1], at, axis=2)[..., 0]
    q = np.take_along_axis(inputs.draft_probs, at, axis=2)[..., 0]
    accepts = rng.random(p.shape) * q < p
    rng.random((len(p), 1))
    return np.asarray(1 + np.cumprod(accepts, axis=1, dtype=np.int64).sum(axis=1))


def _tree(inputs: Inputs, rng: np.random.Generator) -> Reads:
    """Traversal: every context's. nss, k-seq: the path's. Else those that reject one.

    Of logits every row on the path, since each has a normaliser.
    """
    tree, rule = inputs.tree, inputs.case.rule
    assert tree is not None, "the caller knows"
    if inputs.case.logits:
        result = verify_tree_logits_of(inputs, rng, num_threads=1)
    else:
        result = draftproof.verify_tree(tree, inputs.target_probs, rng, rule=rule)
    pairs: Pairs = []
    for b, depth in enumerate(result.num_accepted.tolist()):
        children = tree.children(b)
        path = result.path[b, :depth].tolist()
        if rule == "traversal":
            pairs += [(b, context, bool(nodes)) for context, nodes in enumerate(children)]
            continue
        for context, entered in zip([0, *(n + 1 for n in path)], [*path, None], strict=True):
            nodes = children[context]
            if rule == "nss":
                pairs.append((b, context, False))
            elif inputs.case.logits or rule == "k-seq" or entered is None or entered != nodes[0]:
                pairs.append((b, context, bool(nodes)))
    return _reads(inputs, result.num_emitted, pairs)


def _reads(inputs: Inputs, num_emitted: Ints, pairs: Pairs) -> Reads:
    p, q = inputs.target_probs, inputs.draft_probs
    rows, places, both = (np.array(part) for part in zip(*pairs, strict=True))
    p_at = p.ctypes.data + rows * p.strides[0] + places * p.strides[1]
    q_at = q.ctypes.data + rows * q.strides[0] + places * q.strides[1]
    return Reads(num_emitted, p_at.astype(np.uint64), np.where(both, q_at, 0).astype(np.uint64))
