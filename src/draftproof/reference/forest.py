"""The reference over a batch of trees, row by row: the signature of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.noise import uniform
from draftproof.reference.tree import TreeEmission, greedy
from draftproof.trees.batch import TreeBatch
from draftproof.trees.faults import id_faults, row_faults
from draftproof.trees.rules import TreeRule
from draftproof.types import IntArray, RowStatus
from draftproof.validation import Fault

__all__ = ["emission", "first_fault", "uniform", "verify_forest"]


def verify_forest(
    batch: TreeBatch,
    rule: TreeRule,
    accept: npt.NDArray[np.float64],
    final: npt.NDArray[np.float64],
    *,
    validate: str,
    num_threads: int | None = None,
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Verify each row's tree with the rule's reference.

    Args:
        batch, rule: known to fit together.
        accept: [B, N], one uniform for each node.
        final: [B].
        validate: see `draftproof.trees.faults`.
        num_threads: not read.

    Returns:
        path [B, D], token_ids [B, D+1], num_emitted [B] and status [B], as in `TreeResult`.
    """
    tree, B = batch.tree, batch.tree.size
    D = int(tree.depths.max(initial=0))
    path, token_ids = np.full((B, D), -1), np.full((B, D + 1), -1)
    num_emitted, status = np.zeros(B, dtype=np.int64), np.zeros(B, dtype=np.int64)
    for row in range(B):
        fault, emitted = _judged(batch, rule, accept, final, row, validate)
        if fault is not None:
            status[row] = fault.status
            continue
        assert emitted is not None, "its ids are in range"
        nodes, last_token, zero_residual = emitted
        assert last_token is not None, "a row without fault can be decided"
        depth = len(nodes)
        path[row, :depth] = nodes
        token_ids[row, : depth + 1] = [*tree.token_ids[row, nodes], last_token]
        num_emitted[row] = depth + 1
        status[row] = RowStatus.ZERO_RESIDUAL if zero_residual else RowStatus.OK
    return path, token_ids, num_emitted, status


def emission(
    batch: TreeBatch,
    rule: TreeRule,
    accept: npt.NDArray[Any],
    final: npt.NDArray[Any],
    row: int,
) -> TreeEmission:
    """Run the rule on one row, whose ids are known to be in range."""
    tokens, children = batch.tree.token_ids[row].tolist(), batch.tree.children(row)
    p_rows = _Rows(batch.target_row, row, len(children))
    with np.errstate(all="ignore"):
        if batch.nodes.greedy is not None and batch.nodes.greedy[row]:
            return greedy(tokens, children, p_rows)
        read = batch.draft_row if rule.needs_draft_probs else _no_law
        q_rows = _Rows(read, row, len(children))
        return rule.verify(tokens, children, q_rows, p_rows, accept[row], final[row])


def first_fault(
    batch: TreeBatch,
    rule: TreeRule,
    accept: npt.NDArray[Any],
    final: npt.NDArray[Any],
    row: int,
    validate: str,
) -> Fault | None:
    """Return the first fault among the numbers that `validate` judges, or None."""
    return _judged(batch, rule, accept, final, row, validate)[0]


def _judged(
    batch: TreeBatch,
    rule: TreeRule,
    accept: npt.NDArray[Any],
    final: npt.NDArray[Any],
    row: int,
    validate: str,
) -> tuple[Fault | None, TreeEmission | None]:
    """Return a row's first fault, and what it emits if its ids are in range."""
    fault = next(id_faults(batch, row), None)
    if fault is not None:
        return fault, None
    emitted = emission(batch, rule, accept, final, row)
    return next(row_faults(batch, rule, accept, final, row, validate, emitted), None), emitted


def _no_law(row: int, context: int) -> None:
    return None


class _Rows(Sequence[Any]):
    """The laws of one row by context, widened when they are read and not before."""

    def __init__(self, read: Callable[[int, int], Any], row: int, contexts: int) -> None:
        self._read, self._row, self._contexts = read, row, contexts

    def __getitem__(self, context: Any) -> Any:
        return self._read(self._row, context)

    def __len__(self) -> int:
        return self._contexts
