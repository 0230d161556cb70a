"""A ragged batch of trees of drafts, and how their siblings were drawn."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.arrays import as_integers, as_probabilities
from draftproof.errors import complaint
from draftproof.reference.tree import children_of
from draftproof.types import IntArray, SparseProbs

__all__ = ["DraftTree", "Draws"]


class Draws(enum.StrEnum):
    """How the children of one node were drawn from its draft law q. A rule holds for some only."""

    IID = "iid"
    """Independent draws from q, in an order chosen without a look at their values; may repeat."""
    WITHOUT_REPLACEMENT = "without-replacement"
    """Each from what the earlier ones left of q, kept IN DRAW ORDER."""
    DETERMINISTIC = "deterministic"
    """Fixed by the text alone, such as the likeliest tokens of q or an n-gram's continuations."""
    TOP_AND_ONE = "top-and-one"
    """The likeliest tokens of q for certain, then one draw from q off them, last."""


@dataclass(frozen=True, eq=False, init=False)
class DraftTree:
    """A batch of B trees of up to N drafted nodes each, below a root that is no draft.

    The contexts of a tree are its root and its nodes: row 0 of ``draft_probs``, and of the target's
    laws, belongs to the root, row n + 1 to node n. Siblings are tried in the order of
    ``draw_order``, or of their numbers: the order in which they were drawn, which no sorting may
    change.

    Attributes:
        token_ids: integers [B, N]; what lies at or past ``num_nodes[b]`` is never read.
        parents: integers [B, N], the parent of each node: an earlier node, or -1 for the root.
        draft_probs: floats [B, N+1, V], the law that each context's children were drawn from, or
            `SparseProbs` of shape [B, N+1, M]; rows of contexts without children are never read
            (they may be NaN). None for rules that need no q.
        draws: how siblings were drawn, a `Draws` or its value.
        num_nodes: integers [B] in 0..N; N if it is left out.
        draw_order: integers [B, N]: siblings are tried in ascending order of it.

    All arrays are read-only. The shape (parents, counts, order) is copied; tokens and laws are not.

    Raises:
        ValueError, TypeError: shapes, dtypes, a parent that is no earlier node, a count outside
            0..N, siblings with the same place in ``draw_order``.

    >>> tree = DraftTree([[5, 7, 9]], [[-1, -1, 1]], draws="deterministic")
    >>> tree.depths.tolist(), tree.children(0)  # of the root, then of each node
    ([[1, 1, 2]], [[0, 1], [], [2], []])
    """

    token_ids: IntArray
    parents: IntArray
    draft_probs: Any  # an array, `SparseProbs`, or None
    draws: Draws
    num_nodes: IntArray
    draw_order: IntArray | None

    def __init__(
        self,
        token_ids: npt.ArrayLike,
        parents: npt.ArrayLike,
        draft_probs: npt.ArrayLike | SparseProbs | None = None,
        draws: Draws | str = Draws.WITHOUT_REPLACEMENT,
        num_nodes: npt.ArrayLike | None = None,
        draw_order: npt.ArrayLike | None = None,
    ) -> None:
        ids = as_integers("token_ids", token_ids, (), "B", "N")
        B, N = ids.shape
        counts = np.full(B, N) if num_nodes is None else num_nodes
        put = object.__setattr__
        put(self, "token_ids", _sealed(ids))
        put(self, "parents", _sealed(as_integers("parents", parents, (B, N)).copy()))
        put(self, "draft_probs", None)
        put(self, "draws", _draws(draws))
        put(self, "num_nodes", _sealed(as_integers("num_nodes", counts, (B,)).copy()))
        put(self, "draw_order", None)
        if draft_probs is not None:
            put(self, "draft_probs", _laws(draft_probs, (B, N + 1)))
        self._check_counts()
        self._check_parents()
        if draw_order is not None:
            order = _sealed(as_integers("draw_order", draw_order, (B, N)).copy())
            put(self, "draw_order", order)
            self._check_order(order)

    @property
    def size(self) -> int:
        """B."""
        return len(self.num_nodes)

    @property
    def max_nodes(self) -> int:
        """N."""
        return int(self.token_ids.shape[1])

    @property
    def exists(self) -> npt.NDArray[np.bool_]:
        """Which of the [B, N] places hold a node."""
        return np.arange(self.max_nodes) < self.num_nodes[:, None]

    @property
    def depths(self) -> IntArray:
        """The depth [B, N] of each node, 1 for the root's children; 0 where there is no node."""
        depths = np.zeros((self.size, self.max_nodes + 1), dtype=np.int64)
        for node in range(self.max_nodes):
            here = np.flatnonzero(node < self.num_nodes)
            depths[here, node + 1] = depths[here, self.parents[here, node] + 1] + 1
        return depths[:, 1:]

    def children(self, row: int) -> list[list[int]]:
        """The children of each context of one row, the root's first, in draw order."""
        n = int(self.num_nodes[row])
        order = None if self.draw_order is None else self.draw_order[row, :n].tolist()
        return children_of(self.parents[row, :n].tolist(), order)

    @classmethod
    def stack(cls, trees: Sequence[DraftTree]) -> DraftTree:
        """Join batches into one, padded to the largest tree; they must agree on draws and V."""
        N = max((tree.max_nodes for tree in trees), default=0)
        kinds = {tree.draws for tree in trees}
        laws = [tree.draft_probs for tree in trees]
        if len(kinds) != 1 or len({type(law) for law in laws}) != 1:
            raise ValueError(
                complaint(
                    "trees",
                    "",
                    found=f"{len(trees)} trees, of draws {', '.join(sorted(kinds)) or 'none'}",
                    wanted="one or more trees of one kind of draws, all or none with draft laws, "
                    "all dense or all sparse",
                    fix="verify trees of different kinds in calls of their own",
                )
            )
        ordered = any(tree.draw_order is not None for tree in trees)
        return cls(
            np.concatenate([_padded(tree.token_ids, N, -1) for tree in trees]),
            np.concatenate([_padded(tree.parents, N, -1) for tree in trees]),
            _stacked(laws, N + 1),
            trees[0].draws,
            np.concatenate([tree.num_nodes for tree in trees]),
            np.concatenate([_padded(tree._order(), N, 0) for tree in trees]) if ordered else None,
        )

    def _order(self) -> IntArray:
        if self.draw_order is not None:
            return self.draw_order
        return np.broadcast_to(np.arange(self.max_nodes), self.token_ids.shape)

    def _check_counts(self) -> None:
        for row in np.flatnonzero((self.num_nodes < 0) | (self.num_nodes > self.max_nodes))[:1]:
            raise ValueError(
                complaint(
                    "num_nodes",
                    f"row {row}",
                    found=self.num_nodes[row],
                    wanted=f"a count in 0..{self.max_nodes}",
                    fix="pass the number of nodes of each tree, without its root",
                )
            )

    def _check_parents(self) -> None:
        nodes = np.arange(self.max_nodes)
        wrong = self.exists & ((self.parents < -1) | (self.parents >= nodes))
        for row, node in np.argwhere(wrong)[:1]:
            raise ValueError(
                complaint(
                    "parents",
                    f"row {row}, node {node}",
                    found=self.parents[row, node],
                    wanted=f"an earlier node, in 0..{node - 1}, or -1 for the root"
                    if node
                    else "-1, the root",
                    fix="number the nodes so that parents come before their children",
                )
            )

    def _check_order(self, order: IntArray) -> None:
        for row in range(self.size):
            n = int(self.num_nodes[row])
            places = list(zip(self.parents[row, :n], order[row, :n], strict=True))
            if len(set(places)) == n:
                continue
            node = next(i for i, place in enumerate(places) if place in places[:i])
            raise ValueError(
                complaint(
                    "draw_order",
                    f"row {row}, node {node}",
                    found=f"{places[node][1]}, which an earlier sibling has too",
                    wanted="a place of its own for each sibling",
                    fix="number siblings in the order in which they were drawn",
                )
            )


def _laws(laws: Any, contexts: tuple[int, int]) -> npt.NDArray[Any] | SparseProbs:
    fix = "pass the law of the root's children, then that of each node's children"
    if not isinstance(laws, SparseProbs):
        return _sealed(as_probabilities("draft_probs", laws, contexts, "V", fix=fix))
    beyond = np.iinfo(np.int64).max  # no id beyond int64 is padding
    ids = as_integers("draft_probs.ids", laws.ids, contexts, "M", beyond=beyond)
    probs = as_probabilities("draft_probs.probs", laws.probs, ids.shape)
    return SparseProbs(_sealed(ids), _sealed(probs))


def _sealed(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A read-only view; the array itself, which may be the caller's, stays as it is."""
    view = array.view()
    view.flags.writeable = False
    return view


def _draws(value: Any) -> Draws:
    try:
        return Draws(value)
    except ValueError:
        raise ValueError(
            complaint(
                "draws",
                "",
                found=repr(value),
                wanted=f"one of {', '.join(repr(d.value) for d in Draws)}",
                fix="declare how the siblings were really drawn",
            )
        ) from None


def _stacked(laws: Sequence[Any], contexts: int) -> npt.NDArray[Any] | SparseProbs | None:
    if laws[0] is None:
        return None
    if not isinstance(laws[0], SparseProbs):
        return np.concatenate([_padded(law, contexts, np.nan) for law in laws])
    M = max(law.ids.shape[2] for law in laws)
    columns = [(0, 0), (0, 0)]
    parts = [
        np.concatenate(
            [
                np.pad(
                    _padded(getattr(law, part), contexts, filler),
                    [*columns, (0, M - law.ids.shape[2])],
                    constant_values=filler,
                )
                for law in laws
            ]
        )
        for part, filler in (("ids", -1), ("probs", 0))
    ]
    return SparseProbs(parts[0], parts[1])


def _padded(array: npt.NDArray[Any], length: int, filler: float) -> npt.NDArray[Any]:
    if array.shape[1] == length:
        return array
    shape = (len(array), length - array.shape[1], *array.shape[2:])
    return np.concatenate([array, np.full(shape, filler, dtype=array.dtype)], axis=1)
