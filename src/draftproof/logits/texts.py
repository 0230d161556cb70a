"""The texts behind a batch: what penalties and ``min_tokens`` look back at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from draftproof.arrays import as_integers
from draftproof.errors import complaint
from draftproof.logits.params_batch import ParamsBatch
from draftproof.types import IntArray

__all__ = ["Texts", "read_texts"]

_NONE = np.zeros(0, dtype=np.int64)


class Texts(NamedTuple):
    """Each request's prompt and the tokens that it has emitted; empty where nothing reads them."""

    prompts: Sequence[IntArray]
    outputs: Sequence[IntArray]


def read_texts(history: Any, prompts: Any, params: Sequence[ParamsBatch], vocabulary: int) -> Texts:
    """Read the texts of the requests whose parameters look back.

    Args:
        history: B sequences of token ids, each request's emitted tokens; None if nobody needs it.
        prompts: B sequences of token ids; None counts no prompt.
        params: one or more batches of the same requests.

    Raises:
        ValueError: a parameter needs the history and there is none; not B of them; an id outside
            the vocabulary.
    """
    size = len(params[0])
    if not any(columns.any_edits for columns in params):
        return Texts([_NONE] * size, [_NONE] * size)
    readers: list[str | None] = [None] * size
    for columns in params:
        for row in np.flatnonzero(columns.edits).tolist():
            name = columns.requests[row].reads_history
            readers[row] = readers[row] or name
            if name is not None and history is None:
                raise ValueError(
                    complaint(
                        "history",
                        "",
                        found=f"none, with {name}={getattr(columns.requests[row], name)} "
                        f"in row {row}",
                        wanted="the tokens that each request has emitted so far",
                        fix="pass history=[[...], ...], empty lists where texts begin",
                    )
                )
    return Texts(
        _sequences("prompts", prompts, readers, vocabulary),
        _sequences("history", history, readers, vocabulary),
    )


def _sequences(
    name: str, value: Any, readers: Sequence[str | None], vocabulary: int
) -> Sequence[IntArray]:
    if value is None or not any(readers):
        return [_NONE] * len(readers)
    wanted = f"{len(readers)} sequences of token ids, one for each row"
    fix = "pass a list of lists"
    if not hasattr(value, "__len__") or isinstance(value, str | bytes):
        found = f"a {type(value).__name__}"
        raise TypeError(complaint(name, "", found=found, wanted=wanted, fix=fix))
    if len(value) != len(readers):
        found = f"{len(value)} of them"
        raise ValueError(complaint(name, "", found=found, wanted=wanted, fix=fix))
    rows = []
    for row, reader in enumerate(readers):
        ids = _NONE if reader is None else as_integers(f"{name}[{row}]", value[row], (), "n")
        outside = np.flatnonzero((ids < 0) | (ids >= vocabulary))
        if len(outside):
            place, found = f"row {row}, entry {outside[0]}", ids[outside[0]]
            wanted = f"a token id in 0..{vocabulary - 1}"
            fix = "pass each text without its padding"
            raise ValueError(complaint(name, place, found=found, wanted=wanted, fix=fix))
        rows.append(ids)
    return rows
