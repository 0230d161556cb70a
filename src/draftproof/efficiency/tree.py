"""The best tree of drafts for its size: which nodes are worth a place.

The target's token is the child of rank k of a node at depth d with probability b_(d,k), and stops
there with the rest. Where that depends on depth and rank alone,

    E[tokens] = 1 + sum over the nodes of b_(1,k_1) ... b_(d,k_d)

with k_1 ... k_d the ranks on the node's path, so the n nodes with the largest products are the best
tree of n (Sequoia, arXiv 2402.12374, section 3.1, finds it by dynamic programming). They are a tree
where b falls with the rank, as it does for these rules: then no product rises on the way down.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from draftproof.errors import complaint
from draftproof.trees.draft_tree import DraftTree
from draftproof.trees.result import TreeResult

__all__ = [
    "RANKED_RULES",
    "TreeShape",
    "acceptance_by_rank",
    "best_shape",
    "mean_by_rank",
    "ranks_accepted",
]

Floats = npt.NDArray[np.float64]

RANKED_RULES = ("rrsw", "rrs", "target-only")
"""The rules whose first k siblings do not change with how many there are."""


@dataclass(frozen=True)
class TreeShape:
    """A tree without its tokens.

    Attributes:
        parents: of each node, an earlier node or -1 for the root: what `DraftTree` takes.
        expected_tokens: 1 + the nodes that are expected on the accepted path.
    """

    parents: tuple[int, ...]
    expected_tokens: float

    @property
    def levels(self) -> tuple[int, ...]:
        """Nodes at depth 1, 2, ..."""
        depths: list[int] = []
        for parent in self.parents:
            depths.append(depths[parent] + 1 if parent >= 0 else 1)
        return tuple(depths.count(depth + 1) for depth in range(max(depths, default=0)))


def acceptance_by_rank(
    target_probs: npt.ArrayLike,
    draft_probs: npt.ArrayLike,
    num_siblings: int,
    *,
    rule: str = "rrsw",
    rng: np.random.Generator | None = None,
) -> Floats:
    """Return the probability that the sibling of each rank is the one that is accepted.

    Args:
        target_probs, draft_probs: laws [..., V].
        num_siblings: K.
        rule: ``"rrs"`` of iid siblings; ``"rrsw"`` of those drawn without replacement, whose
            probabilities are those after one drawn history of rejections, without bias;
            ``"target-only"`` of the likeliest tokens of q.
        rng: for rrsw, draws K - 1 rejected tokens for each law; ``default_rng(0)`` if left out.

    Returns:
        float64 [..., K]; for rrs its sums are `draftproof.efficiency.siblings.rrs`.

    >>> acceptance_by_rank([0.5, 0.5], [0.75, 0.25], 2, rule="rrs").tolist()
    [0.75, 0.0625]
    """
    p = np.array(target_probs, dtype=np.float64)
    q = np.array(draft_probs, dtype=np.float64)
    accepted = np.zeros((*p.shape[:-1], num_siblings))
    if rule == "target-only":
        likeliest = np.argsort(-q, axis=-1, kind="stable")[..., :num_siblings]
        known = np.take_along_axis(p, likeliest, axis=-1)
        accepted[..., : known.shape[-1]] = known
        return accepted
    if rule not in RANKED_RULES:
        wanted = f"one of {', '.join(map(repr, RANKED_RULES))}"
        fix = "plan by one of these; traversal keeps at least as much of rrsw's trees"
        raise ValueError(complaint("rule", "", found=repr(rule), wanted=wanted, fix=fix))
    coins = (rng or np.random.default_rng(0)).random((*p.shape[:-1], num_siblings))
    reached = np.ones(p.shape[:-1])
    for rank in range(num_siblings):
        left = np.maximum(p - q, 0)
        rejected = left.sum(axis=-1)
        accepted[..., rank] = reached * (q.sum(axis=-1) - np.maximum(q - p, 0).sum(axis=-1))
        reached = reached * rejected
        if rule == "rrsw":
            _drop(q, np.maximum(q - p, 0), coins[..., rank])
        p = np.where(
            rejected[..., None] > 0, left / np.where(rejected > 0, rejected, 1)[..., None], p
        )
    return accepted


def _drop(q: Floats, weights: Floats, coins: Floats) -> None:
    """Draw a token of each law by its weights, take it out of q, and normalise what is left."""
    sums = weights.cumsum(axis=-1)
    token = (sums <= coins[..., None] * sums[..., -1:]).sum(axis=-1, keepdims=True)
    np.put_along_axis(q, np.minimum(token, q.shape[-1] - 1), 0, axis=-1)
    mass = q.sum(axis=-1, keepdims=True)
    np.divide(q, mass, out=q, where=mass > 0)


def ranks_accepted(tree: DraftTree, result: TreeResult, depth: int, num_siblings: int) -> Floats:
    """Count, over verified trees, how often the sibling of each rank was accepted at each depth.

    Args:
        tree, result: what `draftproof.verify_tree` took and returned.
        depth, num_siblings: D, K; deeper nodes and later siblings are left out.

    Returns:
        float64 [D, K]: accepted, over the visits of a node with so many children; 0 where there
        was none.
    """
    accepted, offered = np.zeros((2, depth, num_siblings))
    for row, path in enumerate(result.path.tolist()):
        children = tree.children(row)
        context = 0
        for level in range(depth if result.num_emitted[row] else 0):
            siblings = children[context][:num_siblings]
            offered[level, : len(siblings)] += 1
            node = path[level] if level < len(path) else -1
            if node in siblings:
                accepted[level, siblings.index(node)] += 1
            if node < 0:
                break
            context = node + 1
    return accepted / np.maximum(offered, 1)


def best_shape(by_rank: npt.ArrayLike, num_nodes: int, depth: int | None = None) -> TreeShape:
    """Return the tree of at most so many nodes that is expected to emit the most tokens.

    Args:
        by_rank: [D, K], the probability that the sibling of a rank is accepted, at each depth.
        num_nodes: n; fewer where no more have any chance.
        depth: levels of the tree; D if it is left out.

    >>> shape = best_shape([[0.6, 0.2], [0.6, 0.2]], num_nodes=3)
    >>> shape.parents, shape.levels, round(shape.expected_tokens, 2)
    ((-1, 0, -1), (2, 1), 2.16)
    """
    table = np.asarray(by_rank, dtype=np.float64)[:depth]
    parents: list[int] = []
    tokens = 1.0
    # (-product, its node's parent, depth, rank, the parent's product): siblings come one by one.
    waiting = list(_child(table, 1.0, -1, 0, 0))
    while waiting and len(parents) < num_nodes:
        product, parent, level, rank, above = heapq.heappop(waiting)
        node = len(parents)
        parents.append(parent)
        tokens -= product
        for more in (
            *_child(table, above, parent, level, rank + 1),
            *_child(table, -product, node, level + 1, 0),
        ):
            heapq.heappush(waiting, more)
    return TreeShape(tuple(parents), tokens)


def _child(
    table: Floats, above: float, parent: int, level: int, rank: int
) -> Iterator[tuple[float, int, int, int, float]]:
    if level < table.shape[0] and rank < table.shape[1] and above * table[level, rank] > 0:
        yield -above * float(table[level, rank]), parent, level, rank, above


def mean_by_rank(
    laws: Sequence[tuple[npt.ArrayLike, npt.ArrayLike]], num_siblings: int, rule: str
) -> Floats:
    """Average `acceptance_by_rank` over the laws (p, q) of each depth, [D, K]."""
    rng = np.random.default_rng(0)
    rows = [
        acceptance_by_rank(p, q, num_siblings, rule=rule, rng=rng)
        .reshape(-1, num_siblings)
        .mean(axis=0)
        for p, q in laws
    ]
    return np.array(rows).reshape(-1, num_siblings)
