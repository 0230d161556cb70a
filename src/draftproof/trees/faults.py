"""Which numbers of a tree are judged: those that its rule reads.

========== =====================================================================================
Level      Judged
========== =====================================================================================
"touched"  token ids; repeated siblings where the draws exclude them; the uniforms and the laws
           that the rule reads on its way, below
"full"     also every law of the target, every draft law of a context with children, and that
           q(x) > 0 at each drafted token
"off"      token ids; a row whose last draw has no positive finite mass still emits nothing
========== =====================================================================================

What is read at a context on the path, beside the last one's whole target law:

=============  ====================================================================
nss            the whole target law
target-only    p at the siblings up to the one entered
naive-tree,    p and q at the first sibling; both whole laws unless it is entered
rrs, rrsw
k-seq          both whole laws
hu-greedy      the whole draft law, p at the drawn sibling; the target's unless that is entered
traversal      both whole laws of every context, on the path or off it
=============  ====================================================================

Greedy rows are compared, not summed: NaN never wins, and only a row with nothing above -inf is bad.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.arrays import widen
from draftproof.reference.tree import TreeEmission
from draftproof.trees.batch import TreeBatch
from draftproof.trees.draft_tree import Draws
from draftproof.trees.rules import TreeRule
from draftproof.types import RowStatus, SparseProbs
from draftproof.validation import (
    DRAFT,
    TARGET,
    Fault,
    entry_faults,
    law_faults,
    sparse_id_faults,
    uniform_fault,
)

__all__ = ["id_faults", "read_faults", "row_faults"]

_DRAFT = DRAFT._replace(argument="tree.draft_probs")


def id_faults(batch: TreeBatch, row: int) -> Iterator[Fault]:
    """Judge the token ids of one row."""
    tokens = batch.tree.token_ids[row, : batch.tree.num_nodes[row]]
    for node in np.flatnonzero((tokens < 0) | (tokens >= batch.nodes.vocabulary))[:1]:
        yield Fault(
            RowStatus.TOKEN_OUT_OF_RANGE,
            "tree.token_ids",
            f"row {row}, node {node}",
            tokens[node],
            f"a token id in 0..{batch.nodes.vocabulary - 1}",
            "lower num_nodes if this is padding",
        )


def row_faults(
    batch: TreeBatch,
    rule: TreeRule,
    accept: npt.NDArray[Any],
    final: npt.NDArray[Any],
    row: int,
    validate: str,
    emitted: TreeEmission,
) -> Iterator[Fault]:
    """Judge the numbers of one row, whose ids are in range, that a level of `validate` means."""
    if validate != "off" and batch.tree.draws in (Draws.WITHOUT_REPLACEMENT, Draws.TOP_AND_ONE):
        yield from _repeated_siblings(batch, row)
    if validate == "full":
        yield from _every_number(batch, rule, row)
    if _is_greedy(batch, row):
        if emitted.last_token is None:
            yield _no_argmax(row, emitted.path[-1] + 1 if emitted.path else 0)
    elif validate != "off" or emitted.last_token is None:
        yield from read_faults(batch, rule, accept, final, row, emitted)


def read_faults(
    batch: TreeBatch,
    rule: TreeRule,
    accept: npt.NDArray[Any],
    final: npt.NDArray[Any],
    row: int,
    emitted: TreeEmission,
) -> Iterator[Fault]:
    """Judge what the rule read on its way down the path."""
    tree = batch.tree
    children = tree.children(row)
    if rule.name == "traversal":
        for context, nodes in enumerate(children):
            yield from _laws(batch, row, context, with_draft=bool(nodes))
    for context, child in zip(
        [0, *(node + 1 for node in emitted.path)], [*emitted.path, None], strict=True
    ):
        nodes = children[context]
        for node in nodes:
            yield from uniform_fault(accept[row, node], f"[0] at row {row}, node {node}")
        if nodes and rule.name != "traversal":
            yield from _siblings_read(batch, rule, row, context, nodes, child)
    yield from uniform_fault(final[row], f"[1] at row {row}")
    last = emitted.path[-1] + 1 if emitted.path else 0
    if rule.name != "traversal":
        yield from _laws(batch, row, last, with_draft=False)


def _siblings_read(
    batch: TreeBatch, rule: TreeRule, row: int, context: int, nodes: list[int], child: int | None
) -> Iterator[Fault]:
    """Judge what a rule for siblings reads at one context; `child` is the one that it enters."""
    if rule.name in ("nss", "k-seq"):
        yield from _laws(batch, row, context, with_draft=rule.name == "k-seq")
        return
    tested = {
        "target-only": nodes if child is None else nodes[: nodes.index(child) + 1],
        "hu-greedy": nodes[-1:],
    }.get(rule.name, nodes[:1])
    for node in tested:
        token = int(batch.tree.token_ids[row, node])
        place = f"{_place(row, context)}, token {token}"
        yield from entry_faults(TARGET, float(batch.target_row(row, context)[token]), place)
        if rule.needs_draft_probs:
            yield from entry_faults(_DRAFT, float(batch.draft_row(row, context)[token]), place)
    if rule.name == "hu-greedy":
        yield from _law(batch, _DRAFT, row, context)
    if rule.needs_draft_probs and child != tested[0]:
        yield from _laws(batch, row, context, with_draft=True)


def _every_number(batch: TreeBatch, rule: TreeRule, row: int) -> Iterator[Fault]:
    only_largest = batch.nodes.greedy_logits and _is_greedy(batch, row)
    for context, nodes in enumerate(batch.tree.children(row)):
        if not only_largest:
            yield from _law(batch, TARGET, row, context)
        elif not (batch.target_row(row, context) > -np.inf).any():
            yield _no_argmax(row, context)
        if nodes and rule.needs_draft_probs:
            yield from _law(batch, _DRAFT, row, context)
        for node in nodes if rule.needs_draft_probs else []:
            token = int(batch.tree.token_ids[row, node])
            if batch.draft_row(row, context)[token] == 0:
                yield Fault(
                    RowStatus.DRAFT_ZERO,
                    _DRAFT.argument,
                    f"{_place(row, context)}, token {token}",
                    "probability 0",
                    "a positive probability, since the token was drawn from this law",
                    "declare the law that the drafter really sampled from",
                )


def _is_greedy(batch: TreeBatch, row: int) -> bool:
    return batch.nodes.greedy is not None and bool(batch.nodes.greedy[row])


def _no_argmax(row: int, context: int) -> Fault:
    return Fault(
        RowStatus.TARGET_NOT_FINITE,
        TARGET.argument,
        _place(row, context),
        "no entry above -inf",
        "at least one number to take the argmax of",
        "check the logits and masks of this context",
    )


def _repeated_siblings(batch: TreeBatch, row: int) -> Iterator[Fault]:
    for context, nodes in enumerate(batch.tree.children(row)):
        tokens = batch.tree.token_ids[row, nodes].tolist()
        for place, token in enumerate(tokens):
            if token in tokens[:place]:
                yield Fault(
                    RowStatus.SIBLING_REPEATED,
                    "tree.token_ids",
                    f"{_place(row, context)}, node {nodes[place]}",
                    f"token {token}, which an earlier sibling has too",
                    f"siblings that differ, since they are declared {batch.tree.draws.value!r}",
                    "declare draws='iid' if they are, or merge the two nodes before drawing on",
                )
                return


def _laws(batch: TreeBatch, row: int, context: int, *, with_draft: bool) -> Iterator[Fault]:
    yield from _law(batch, TARGET, row, context)
    if with_draft:
        yield from _law(batch, _DRAFT, row, context)


def _law(batch: TreeBatch, side: Any, row: int, context: int) -> Iterator[Fault]:
    laws = batch.nodes.target_probs if side is TARGET else batch.tree.draft_probs
    assert laws is not None, "check_rule has seen to it"
    place = _place(row, context)
    if isinstance(laws, SparseProbs):
        stored, tokens = laws.probs[row, context], laws.ids[row, context]
        yield from sparse_id_faults(side, place, tokens, batch.nodes.vocabulary)
        listed = tokens >= 0
    else:
        stored = laws[row, context]
        tokens, listed = np.arange(len(stored)), slice(None)
    numbers = widen(stored)[listed]
    yield from law_faults(side, place, numbers, tokens[listed], stored.dtype, len(stored))


def _place(row: int, context: int) -> str:
    return f"row {row}, node {context - 1}" if context else f"row {row}, the root"
