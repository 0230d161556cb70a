"""A tree and its laws, brought to one checked `TreeBatch`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from draftproof.arrays import widen
from draftproof.batch import Batch, padded_batch
from draftproof.errors import complaint
from draftproof.trees.draft_tree import DraftTree
from draftproof.types import SparseProbs

__all__ = ["TreeBatch", "tree_batch"]


class TreeBatch(NamedTuple):
    """A batch of trees whose shapes fit its laws; the laws' numbers are not judged yet.

    Attributes:
        tree: B trees of up to N nodes.
        nodes: the nodes as a padded `Batch` of up to N drafts, for what depends on no parent: the
            target's laws [B, N+1, V], token ids, counts, uniforms, greedy rows.
    """

    tree: DraftTree
    nodes: Batch

    def target_row(self, row: int, context: int) -> npt.NDArray[np.float64]:
        """The target's law after a context, 0 for the root, n + 1 for node n."""
        return widen(self.nodes.target_probs[row, context])

    def draft_row(self, row: int, context: int) -> npt.NDArray[np.float64]:
        """The law that the context's children were drawn from."""
        laws = self.tree.draft_probs
        assert laws is not None, "check_rule has seen to it"
        if not isinstance(laws, SparseProbs):
            return widen(laws[row, context])
        ids, listed = laws.ids[row, context], widen(laws.probs[row, context])
        dense, known = np.zeros(self.nodes.vocabulary), (ids >= 0) & (ids < self.nodes.vocabulary)
        with np.errstate(invalid="ignore"):
            np.add.at(dense, ids[known], listed[known])
        return dense


def tree_batch(tree: DraftTree, target_probs: Any, greedy: Any = None) -> TreeBatch:
    """Check the target's laws [B, N+1, V] against the tree."""
    if not isinstance(tree, DraftTree):
        raise TypeError(
            complaint(
                "tree",
                "",
                found=f"a {type(tree).__name__}",
                wanted="a draftproof.DraftTree",
                fix="build one of token_ids, parents and draft_probs",
            )
        )
    nodes = padded_batch(tree.token_ids, None, target_probs, tree.num_nodes, greedy)
    laws = tree.draft_probs
    width = nodes.vocabulary if not isinstance(laws, np.ndarray) else laws.shape[-1]
    if width != nodes.vocabulary:
        raise ValueError(
            complaint(
                "tree.draft_probs",
                "its last axis",
                found=width,
                wanted=f"{nodes.vocabulary}, the target's vocabulary",
                fix="bring the draft's laws to the target's vocabulary, absent tokens at 0",
            )
        )
    return TreeBatch(tree, nodes)
