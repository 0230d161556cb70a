"""Log-probabilities of what was emitted, from the rows that it was drawn from."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from draftproof.batch import Batch
from draftproof.logits.rows import LogitRows
from draftproof.reference.rows import draft_row
from draftproof.types import IntArray, Logprobs

__all__ = ["LOGPROBS_MODES", "expected_acceptance", "make_logprobs"]

LOGPROBS_MODES = ("processed", "raw")

Floats = npt.NDArray[np.float64]


Fill = Callable[[Batch, IntArray, IntArray, bool, Logprobs], npt.NDArray[np.bool_]]


def make_logprobs(
    batch: Batch,
    rows: LogitRows,
    token_ids: IntArray,
    num_emitted: IntArray,
    n: int,
    mode: str,
    fill: Fill | None = None,
) -> Logprobs:
    """Read the rows of all emitted tokens once more.

    Args:
        rows: the target's.
        token_ids, num_emitted: the outcome.
        n: how many alternatives.
        mode: ``"processed"`` for the law that the token was judged by (at temperature 0 that of
            the edited logits at temperature 1), ``"raw"`` for the softmax of the logits as given.
        fill: a kernel that fills what it can of the tables, and says which rows.

    Exact up to float64 rounding.
    """
    size, columns = token_ids.shape
    logprobs = Logprobs(
        np.full((size, columns), np.nan),
        np.zeros((size, columns), dtype=np.int64),
        np.full((size, columns, n), -1, dtype=np.int64),
        np.full((size, columns, n), np.nan),
    )
    raw = mode == "raw"
    left = np.arange(columns) < num_emitted[:, None]
    if fill is not None:
        left &= ~fill(batch, token_ids, num_emitted, raw, logprobs)
    for row, i in np.argwhere(left).tolist():
        logs = rows.logarithms(batch.target_index(row, i), row, i, raw=raw)
        token = int(token_ids[row, i])
        logprobs.token_logprobs[row, i] = logs[token]
        logprobs.token_ranks[row, i] = 1 + np.count_nonzero(logs > logs[token])
        best = _likeliest(logs, n)
        logprobs.top_token_ids[row, i, : len(best)] = best
        logprobs.top_logprobs[row, i, : len(best)] = logs[best]
    return logprobs


def _likeliest(logs: Floats, n: int) -> IntArray:
    """The n largest entries above -inf, largest first, lowest ids first among equals."""
    if n < len(logs):
        edge = np.partition(logs, len(logs) - n)[len(logs) - n] if n else np.inf
        tokens = np.flatnonzero((logs >= edge) & (logs > -np.inf))
    else:
        tokens = np.flatnonzero(logs > -np.inf)
    return np.asarray(tokens[np.argsort(-logs[tokens], kind="stable")][:n])


def expected_acceptance(batch: Batch, num_emitted: IntArray) -> Floats:
    """sum_x min(p, q) at each draft of a sampled row up to the first rejection, else NaN; [B, K].

    It tells a bad draft from a bad verifier: the token rule accepts with just this probability.
    """
    acceptance = np.full((batch.size, batch.max_draft), np.nan)
    for row in range(batch.size):
        if batch.greedy is not None and batch.greedy[row]:
            continue
        for i in range(min(int(num_emitted[row]), int(batch.num_draft[row]))):
            p = batch.target_probs[batch.target_index(row, i)]
            acceptance[row, i] = np.minimum(p, draft_row(batch, row, i)).sum()
    return acceptance
