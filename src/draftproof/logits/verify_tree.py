"""The public call for trees of drafts and logits; no mathematics."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.backends import BACKENDS, load_logits_tree_backend
from draftproof.errors import complaint
from draftproof.logits.batch import logits_batch
from draftproof.logits.params import SamplingParams
from draftproof.logits.rows import Contexts, LogitRows
from draftproof.logits.seeded import seeded_uniforms
from draftproof.logits.verify import explained
from draftproof.reference import forest
from draftproof.trees.batch import TreeBatch, tree_batch
from draftproof.trees.draft_tree import DraftTree
from draftproof.trees.result import TreeResult
from draftproof.trees.rules import check_rule
from draftproof.types import DraftLogits, IntArray, RowStatus
from draftproof.validation import VALIDATE
from draftproof.verify import ON_BAD_ROW, check_num_threads

__all__ = ["tree_logits_batch", "verify_tree_logits"]


def verify_tree_logits(
    tree: DraftTree,
    target_logits: npt.ArrayLike,
    rng: np.random.Generator | None = None,
    *,
    draft_logits: npt.ArrayLike | DraftLogits | None = None,
    params: SamplingParams | Any = None,
    draft_params: SamplingParams | Any = None,
    history: Any = None,
    prompts: Any = None,
    token_mask: Any = None,
    draft_token_mask: Any = None,
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
    """Verify trees of drafts against logits; each node's row sees its own path as history.

    ::

        p at node n = process(target_logits[b, n + 1], params[b],
                              history[b] + the tokens from the root's child down to n)
        verify_tree(tree, p, ...)

    Args:
        tree: a `DraftTree`, with its ``draft_probs`` or with ``draft_logits`` beside it.
        target_logits: [B, N+1, V] floats: the root in row 0, node n in row n + 1.
        draft_logits: [B, N+1, V] floats in place of ``tree.draft_probs``: the logits that each
            context's children were drawn from.
        params, draft_params, history, prompts: as for `verify_logits`. Per-position masks in them
            have a row for each context, in the same order.
        token_mask: bool [B, N+1, V], or words of packed bits; ``draft_token_mask`` alike.
        rng, uniforms, seeds, positions, rule, greedy, validate: as for `verify_tree`.
        on_bad_row: as for `verify_logits`.
        backend: ``"auto"``, ``"native"``, ``"numpy"`` (the reference's walk on laws that NumPy
            makes) or ``"reference"``, the definition. All make a law when the rule reads it.
        num_threads: as for `verify_tree`.

    Returns:
        A `TreeResult`.

    Exactness and errors are `verify_logits`'s, uniforms and sources `verify_tree`'s.

    >>> tree = DraftTree([[1, 1]], [[-1, 0]], draws="deterministic")
    >>> logits = [[[0.0, 9.0], [1.0, 2.0], [0.0, 0.0]]]
    >>> params = SamplingParams(temperature=0, repetition_penalty=3.0)
    >>> verify_tree_logits(tree, logits, params=params, history=[[]], rule="target-only",
    ...                    uniforms=([[0.5, 0.5]], [0.5])).to_lists()  # 2 / 3 < 1 behind a 1
    [[1, 0]]
    """
    for name, value, options in (
        ("validate", validate, VALIDATE),
        ("on_bad_row", on_bad_row, ON_BAD_ROW),
        ("backend", backend, ("auto", *BACKENDS)),
    ):
        if value not in options:
            wanted = f"one of {', '.join(map(repr, options))}"
            fix = "choose one of these"
            raise ValueError(complaint(name, "", found=repr(value), wanted=wanted, fix=fix))
    check_num_threads(num_threads)
    chosen, kernel = load_logits_tree_backend(backend, rule)
    batch = tree_logits_batch(
        tree, target_logits, draft_logits, params, draft_params, history, prompts, token_mask,
        draft_token_mask, greedy, definition=backend == "reference",
    )  # fmt: skip
    known = check_rule(rule, batch.tree)
    rows: Any = batch.nodes.target_probs
    accept, final = seeded_uniforms(
        batch.nodes, rows.params, "tree", rng, uniforms, seeds, positions, kernel.uniform
    )
    path, token_ids, num_emitted, status = kernel.verify_forest(
        batch, known, accept, final, validate=validate, num_threads=num_threads
    )
    bad = np.flatnonzero(status > RowStatus.ZERO_RESIDUAL)
    if len(bad) and on_bad_row == "raise":
        row = int(bad[0])
        fault = forest.first_fault(batch, known, accept, final, row, validate)
        assert fault is not None, "the status says that there is one"
        laws: tuple[Any, Any] = rows, batch.tree.draft_probs
        names = {"target_probs": "target_logits"}
        if isinstance(laws[1], LogitRows):
            names["tree.draft_probs"] = "draft_logits"
        fault = fault._replace(argument=names.get(fault.argument, fault.argument))
        raise explained(fault, laws, row, int(status[row]))
    return TreeResult(path, token_ids, num_emitted, status, chosen)


def tree_logits_batch(
    tree: DraftTree,
    target_logits: npt.ArrayLike,
    draft_logits: Any,
    params: Any,
    draft_params: Any,
    history: Any,
    prompts: Any,
    token_mask: Any,
    draft_token_mask: Any,
    greedy: Any,
    definition: bool,
) -> TreeBatch:
    """Put laws in the place of the logits of a tree; arguments are `verify_tree_logits`'s."""
    bare = tree_batch(tree, target_logits)
    contexts = Contexts(
        lambda at: (at[0], at[1]),
        lambda row, context: _path_tokens(tree, row, context),
        lambda row, context: context <= tree.num_nodes[row],
        lambda row, context: (
            f"row {row}, node {context - 1}" if context else f"row {row}, the root"
        ),
    )
    own = draft_logits.logits if isinstance(draft_logits, DraftLogits) else draft_logits
    if own is not None:
        if tree.draft_probs is not None:
            found, wanted = "draft_logits beside tree.draft_probs", "one of them"
            fix = "pass the one that the siblings were drawn from"
            raise ValueError(complaint("draft_logits", "", found=found, wanted=wanted, fix=fix))
        shaped = DraftTree(tree.token_ids, tree.parents, own, tree.draws, tree.num_nodes)
        own = tree_batch(shaped, target_logits).tree.draft_probs
    nodes = bare.nodes._replace(draft_probs=own, target_argument="target_logits")
    draft = None if own is None else DraftLogits(own)
    nodes = logits_batch(
        nodes, draft, params, draft_params, history, prompts, token_mask, draft_token_mask,
        greedy, definition, contexts,
    )  # fmt: skip
    if own is not None:
        tree = copy.copy(tree)
        object.__setattr__(tree, "draft_probs", nodes.draft_probs)
    return TreeBatch(tree, nodes._replace(draft_probs=None))


def _path_tokens(tree: DraftTree, row: int, context: int) -> IntArray:
    """The tokens from the root's child down to the node of a context."""
    tokens, node = [], context - 1
    while node >= 0:
        tokens.append(int(tree.token_ids[row, node]))
        node = int(tree.parents[row, node])
    return np.array(tokens[::-1], dtype=np.int64)
