"""Verification of trees in C++: the door to ``csrc/tree.hpp``."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from draftproof import _native
from draftproof.kernels.noise_native import uniform
from draftproof.kernels.threads import available_threads
from draftproof.trees.batch import TreeBatch
from draftproof.trees.draft_tree import DraftTree, Draws
from draftproof.trees.result import TreeResult
from draftproof.trees.rules import TREE_RULES, TreeRule
from draftproof.types import IntArray, SparseProbs
from draftproof.validation import VALIDATE, mass_tolerance

__all__ = ["DISTINCT", "RULES", "empty_results", "uniform", "verify_forest", "verify_plain"]

RULES = tuple(TREE_RULES)
"""In the order of the kernel's enum."""

DISTINCT = (Draws.WITHOUT_REPLACEMENT, Draws.TOP_AND_ONE)
"""Draws that exclude repeated siblings."""


def verify_forest(
    batch: TreeBatch,
    rule: TreeRule,
    accept: npt.NDArray[np.float64],
    final: npt.NDArray[np.float64],
    *,
    validate: str,
    num_threads: int | None = None,
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Verify a batch; arguments and results are `draftproof.reference.forest.verify_forest`'s.

    Reads the rows at the nodes of each row's path alone (traversal: every row), and allocates the
    result and, per thread, a few numbers for each node and each block of the vocabulary; of sparse
    laws a dense row for each context that it reads.
    """
    tree, target_probs = batch.tree, batch.nodes.target_probs
    laws = tree.draft_probs if rule.needs_draft_probs else None
    sparse_ids, draft_probs = None, laws
    if isinstance(laws, SparseProbs):
        sparse_ids, draft_probs = np.ascontiguousarray(laws.ids), laws.probs
    vocabulary = batch.nodes.vocabulary
    results = empty_results(tree)
    _native.verify_forest(
        tree.num_nodes,
        tree.token_ids,
        tree.parents,
        tree.draw_order,
        draft_probs,
        sparse_ids,
        target_probs,
        batch.nodes.greedy,
        np.ascontiguousarray(accept, np.float64),
        np.ascontiguousarray(final, np.float64),
        RULES.index(rule.name),
        VALIDATE.index(validate),
        tree.draws in DISTINCT,
        mass_tolerance(target_probs.dtype, vocabulary),
        0.0 if draft_probs is None else mass_tolerance(draft_probs.dtype, draft_probs.shape[2]),
        num_threads,
        available_threads,
        *results,
    )
    return results


def empty_results(tree: DraftTree) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return room for path [B, D], token_ids [B, D+1], num_emitted and status [B], D the depth."""
    depth = _native.forest_depth(tree.num_nodes, tree.parents)
    path = np.empty((tree.size, depth), dtype=np.int64)
    token_ids = np.empty((tree.size, depth + 1), dtype=np.int64)
    num_emitted, status = np.empty((2, tree.size), dtype=np.int64)
    return path, token_ids, num_emitted, status


_native.set_tree_surroundings(
    TreeResult,
    np.random.Generator,
    mass_tolerance,
    available_threads,
    RULES,
    VALIDATE,
    DraftTree,
    tuple(TREE_RULES[rule].draws for rule in RULES),
    DISTINCT,
)
verify_plain = _native.verify_tree_plain
"""`draftproof.verify_tree` for a generator and common options; None where it declines."""
