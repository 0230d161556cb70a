"""The public call for trees of drafts: docstring, checks of the arguments; no mathematics."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.backends import BACKENDS, load_short_way_of_trees, load_tree_backend
from draftproof.errors import BadRowError, complaint
from draftproof.reference import forest
from draftproof.trees.batch import TreeBatch, tree_batch
from draftproof.trees.draft_tree import DraftTree
from draftproof.trees.result import TreeResult
from draftproof.trees.rules import TreeRule, check_rule
from draftproof.types import IntArray, RowStatus
from draftproof.uniforms import draw_uniforms
from draftproof.validation import VALIDATE
from draftproof.verify import ON_BAD_ROW, check_num_threads

__all__ = ["verify_tree"]


def verify_tree(
    tree: DraftTree,
    target_probs: npt.ArrayLike,
    rng: np.random.Generator | None = None,
    *,
    uniforms: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    seeds: npt.ArrayLike | None = None,
    positions: npt.ArrayLike | None = None,
    rule: str = "rrsw",
    greedy: npt.ArrayLike | None = None,
    validate: str = "touched",
    on_bad_row: str = "raise",
    backend: str = "auto",
    num_threads: int | None = None,
) -> TreeResult:
    """Verify a ragged batch of trees of drafts, losslessly.

    ::

        at the root:        run the rule for siblings on its children
        at a child entered: run it on that child's children
        it stops with a token: the accepted path's tokens and that one are emitted

        rule="traversal" goes from the leaves up instead: the block rule, for trees

    Args:
        tree: a `DraftTree`, which says how its siblings were drawn.
        target_probs: [B, N+1, V] floats, the target's law after each context: the root in row 0,
            node n in row n + 1. Rows of contexts that the rule does not reach are not read.
        rng: consumes ``rng.random((B, N))``, a uniform for each node, then ``rng.random((B, 1))``
            for the last draws.
        uniforms: ``(accept [B, N], final [B])`` in [0, 1) instead.
        seeds, positions: [B], instead: keyed by the round. The uniform of node n comes from
            (seed, position, accept, n), that of the last draw from (seed, position, final, 0);
            ``positions`` is the index in its text of the first token that a row can emit.
        rule: one of `draftproof.trees.TREE_RULES`; each is lossless for the draws it names:

            ============= ================================ ===
            rule          siblings                         q
            ============= ================================ ===
            nss           any                              no
            target-only   any                              no
            naive-tree    iid, without-replacement         yes
            rrs           iid                              yes
            rrsw          without-replacement, iid         yes
            k-seq         iid                              yes
            hu-greedy     top-and-one                      yes
            traversal     without-replacement              yes
            ============= ================================ ===

        greedy: [B] booleans, rows at temperature 0: follow the target's argmax down the tree.
        validate: ``"touched"``, ``"full"`` or ``"off"``; see `draftproof.trees.faults`.
        on_bad_row: ``"raise"``, or ``"status"``: a row that cannot be decided emits nothing.
        backend: ``"auto"``, ``"native"`` or ``"reference"``: the same tokens.
        num_threads: the most that the native backend may use, by default the CPUs at hand.

    Returns:
        A `TreeResult`: ``path, token_ids, num_emitted, status, backend``.

    Exactness:
        Inputs are taken as exact numbers, all arithmetic runs in float64.

    Uniforms consumed:
        One for each sibling tested on the path (``traversal``: for each leaf tried), and one for
        the last token; nss draws each token with the uniform of the first child, and the last one
        at a leaf. With ``rng`` all B*N + B are drawn.

    Raises:
        ValueError, TypeError: shapes, dtypes and options; siblings for whose draws the rule is
            lossy.
        BadRowError: a `ValueError` for the first bad row, under ``on_bad_row="raise"``.
        BackendUnavailableError: a `ValueError` for a named backend that is missing, or that has no
            such rule for trees.

    Source:
        nss: EAGLE (arXiv 2401.15077). rrs: SpecInfer (arXiv 2305.09781). rrsw: RSD (arXiv
        2402.14160), Sequoia (arXiv 2402.12374). k-seq: SpecTr (arXiv 2310.15141). hu-greedy: arXiv
        2502.18779. traversal: arXiv 2505.12398.

    >>> q = [[[0.6, 0.3, 0.1]] * 3]
    >>> tree = DraftTree([[0, 1]], [[-1, -1]], q)  # two siblings, drawn in this order
    >>> p = [[[0.3, 0.4, 0.3]] * 3]
    >>> result = verify_tree(tree, p, uniforms=([[0.9, 0.2]], [0.5]))  # 0.9 * 0.6 >= 0.3: rejected
    >>> result.path.tolist(), result.to_lists()
    ([[1]], [[1, 1]])
    """
    short = load_short_way_of_trees()(
        tree,
        target_probs,
        rng,
        uniforms,
        seeds,
        positions,
        rule,
        greedy,
        validate,
        on_bad_row,
        backend,
        num_threads,
    )
    if type(short) is TreeResult:
        return short
    if short is not None:
        status, drawn = short
        batch = tree_batch(tree, target_probs)
        accept, final = np.split(drawn, [tree.size * tree.max_nodes])
        accept = accept.reshape(tree.size, tree.max_nodes)
        raise _bad_row(batch, check_rule(rule, tree), accept, final, status, validate)
    for name, value, options in (
        ("validate", validate, VALIDATE),
        ("on_bad_row", on_bad_row, ON_BAD_ROW),
        ("backend", backend, ("auto", *BACKENDS)),
    ):
        if value not in options:
            raise ValueError(
                complaint(
                    name,
                    "",
                    found=repr(value),
                    wanted=f"one of {', '.join(map(repr, options))}",
                    fix="choose one of these",
                )
            )
    check_num_threads(num_threads)
    batch = tree_batch(tree, target_probs, greedy)
    known = check_rule(rule, tree)
    backend, kernel = load_tree_backend(backend, rule)
    accept, final = draw_uniforms(
        batch.nodes, "tree", rng, uniforms, seeds, positions, kernel.uniform
    )
    path, token_ids, num_emitted, status = kernel.verify_forest(
        batch, known, accept, final, validate=validate, num_threads=num_threads
    )
    result = TreeResult(path, token_ids, num_emitted, status, backend)
    if on_bad_row == "raise" and (status > RowStatus.ZERO_RESIDUAL).any():
        raise _bad_row(batch, known, accept, final, status, validate)
    return result


def _bad_row(
    batch: TreeBatch,
    rule: TreeRule,
    accept: npt.NDArray[Any],
    final: npt.NDArray[Any],
    status: IntArray,
    validate: str,
) -> BadRowError:
    row = int(np.argmax(status > RowStatus.ZERO_RESIDUAL))
    fault = forest.first_fault(batch, rule, accept, final, row, validate)
    assert fault is not None, "the status says that there is one"
    message = complaint(
        fault.argument, fault.place, found=fault.found, wanted=fault.wanted, fix=fault.fix
    )
    return BadRowError(message, row, int(fault.status))
