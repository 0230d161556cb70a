"""What a subject returns, read strictly: an output that breaks the contract is not interpreted."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["ContractBroken", "read_batch", "read_row", "read_tokens"]

Array = npt.NDArray[Any]
IntArray = npt.NDArray[np.int64]


class ContractBroken(Exception):  # noqa: N818 - it says what happened, and is no fault of ours
    """A subject's call or output that its contract forbids.

    Attributes:
        reason: one sentence: what was found, what was wanted.
        row: the first row of the batch that shows it; None if it is no single row's.
        case: the arguments of the failing call, in JSON types; cut to that row where it is known.
    """

    def __init__(
        self, reason: str, row: int | None = None, case: dict[str, Any] | None = None
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.row = row
        self.case = case or {}


def read_batch(result: object, num_draft: IntArray, K: int, V: int) -> tuple[IntArray, IntArray]:
    """Read ``(out, n_out)`` of one call, as fresh int64 arrays [B, K+1] and [B].

    Args:
        result: what the subject returned: a tuple or list of two arrays, or of what NumPy takes
            for arrays (lists of integers, CPU or GPU tensors).
        num_draft: [B], the rows' draft lengths.
        K: longest draft.
        V: vocabulary.

    Raises:
        ContractBroken: not two arrays of integers of the right shapes; a length outside
            1..num_draft + 1; a token outside 0..V-1 within the length, or anything but -1 past it.
    """
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise ContractBroken(f"returned {_describe(result)}; wanted the pair (out, n_out)")
    B = len(num_draft)
    out = _integers("out", result[0], (B, K + 1))
    n_out = _integers("n_out", result[1], (B,))
    _first(
        (n_out < 1) | (n_out > num_draft + 1),
        lambda b: (
            f"n_out of row {b} is {n_out[b]}; wanted 1..{num_draft[b] + 1}, "
            f"for it has {num_draft[b]} drafts"
        ),
    )
    emitted = np.arange(K + 1) < n_out[:, None]
    _first(
        emitted & ((out < 0) | (out >= V)),
        lambda b, i: f"out of row {b} at position {i} is {out[b, i]}; wanted a token in 0..{V - 1}",
    )
    _first(
        ~emitted & (out != -1),
        lambda b, i: (
            f"out of row {b} at position {i}, past its {n_out[b]} tokens, is {out[b, i]}; "
            "wanted the padding -1"
        ),
    )
    return out, n_out


def read_row(result: object, b: int, g: int, V: int) -> list[int]:
    """Read the list of tokens that row b emits.

    Raises:
        ContractBroken: not a flat sequence of 1..g+1 integers in 0..V-1.
    """
    tokens: list[int]
    if type(result) is list and all(type(token) is int for token in result):
        tokens = list(result)
    else:
        try:
            tokens = _integers("the list of tokens", result, None).tolist()
        except ContractBroken as broken:
            raise ContractBroken(f"row {b}: {broken.reason}", row=b) from None
    if not 1 <= len(tokens) <= g + 1:
        raise ContractBroken(
            f"row {b}: returned {len(tokens)} tokens; wanted 1..{g + 1}, for it has {g} drafts",
            row=b,
        )
    for i, token in enumerate(tokens):
        if not 0 <= token < V:
            raise ContractBroken(
                f"row {b}: token {i} of the list is {token}; wanted a token in 0..{V - 1}", row=b
            )
    return tokens


def read_tokens(name: str, result: object, V: int | None, *, padded: bool = False) -> list[int]:
    """Read a list of tokens, of any length.

    Args:
        name: what a message calls it.
        result: what the subject returned.
        V: vocabulary; None if nobody knows.
        padded: take off -1 from its end.

    Raises:
        ContractBroken: not a flat sequence of integers in 0..V-1.
    """
    tokens: list[int] = _integers(name, result, None).tolist()
    while padded and tokens and tokens[-1] == -1:
        tokens.pop()
    for i, token in enumerate(tokens):
        if token < 0 or (V is not None and token >= V):
            wanted = "a token >= 0" if V is None else f"a token in 0..{V - 1}"
            raise ContractBroken(f"{name}: token {i} is {token}; wanted {wanted}")
    return tokens


def _integers(name: str, value: object, shape: tuple[int, ...] | None) -> IntArray:
    """Copy an array of integers to int64; ``shape=None`` asks for any one axis."""
    array = _as_array(name, value)
    if array.size == 0 and isinstance(value, list | tuple):
        array = np.empty(shape or (0,), np.int64) if 0 in (shape or (0,)) else array
    if (array.ndim != 1) if shape is None else (array.shape != shape):
        raise ContractBroken(
            f"{name} has shape {array.shape}; wanted {'one axis' if shape is None else shape}"
        )
    if array.dtype == object and all(isinstance(n, int | np.integer) for n in array.flat):
        try:
            array = array.astype(np.int64)
        except OverflowError:
            raise ContractBroken(f"{name} holds integers of more than 64 bits") from None
    if not np.issubdtype(array.dtype, np.integer):
        found = f"{name} has dtype {array.dtype}"
        if np.issubdtype(array.dtype, np.floating) and np.isnan(array).any():
            found += ", with NaN in it"
        raise ContractBroken(f"{found}; wanted integers")
    largest = np.iinfo(np.int64).max
    if array.dtype == np.uint64 and array.size and array.max() > largest:  # -1 without its sign
        raise ContractBroken(f"{name} holds {array.max()}, in dtype uint64; wanted token ids or -1")
    return array.astype(np.int64)


def _as_array(name: str, value: object) -> Array:
    if hasattr(value, "detach"):  # a tensor of PyTorch: off its graph and its device
        value = value.detach().cpu()
    try:
        return np.asarray(value)
    except (ValueError, OverflowError) as error:
        raise ContractBroken(f"{name} is no array: {error}") from None


def _first(broken: Array, describe: Any) -> None:
    """Raise for the first place, if any, where a boolean array is true."""
    if broken.any():
        place = tuple(int(i) for i in np.argwhere(broken)[0])
        raise ContractBroken(describe(*place), row=place[0])


def _describe(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"one array of shape {value.shape}"
    if isinstance(value, dict):
        return f"a dict with the keys {', '.join(map(repr, list(value)[:5]))}"
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)} entries"
    return "None" if value is None else f"a {type(value).__name__}"
