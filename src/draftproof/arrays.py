"""From what a caller passed to NumPy arrays of a checked dtype and shape; no numbers are judged."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.errors import complaint
from draftproof.types import IntArray

__all__ = ["as_booleans", "as_integers", "as_probabilities", "widen"]

_INT64 = np.dtype(np.int64)
_FLOATS = (np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16))
_TORCH_BFLOAT16 = np.dtype([("bfloat16", np.uint16)])


def widen(numbers: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Convert any accepted dtype to float64, exactly; uint16 words are bfloat16."""
    if numbers.dtype == np.uint16:
        numbers = (numbers.astype(np.uint32) << np.uint32(16)).view(np.float32)
    with np.errstate(invalid="ignore"):  # a signalling NaN is found by whoever judges the row
        return numbers.astype(np.float64)


def as_integers(name: str, value: Any, known: tuple[int, ...], *free: str) -> IntArray:
    """Check an integer array and return it as contiguous, aligned int64.

    Its first axes must be as long as `known` says; `free` names the others.
    Unsigned values beyond int64 wrap to negative ones, which no range admits.
    """
    array = value if type(value) is np.ndarray else _foreign(name, value)
    if array.dtype.kind not in "iu":
        if array.size or array.dtype.kind != "f":
            raise TypeError(
                complaint(
                    name,
                    "",
                    found=f"dtype {array.dtype}",
                    wanted="integers",
                    fix="convert it with .astype(numpy.int64)",
                )
            )
        array = array.astype(np.int64)
    shape = array.shape
    if len(shape) != len(known) + len(free) or shape[: len(known)] != known:
        raise _wrong_shape(name, shape, known, free)
    if array.dtype is _INT64 and array.flags.c_contiguous and array.flags.aligned:
        return array
    return np.require(array, np.int64, ["C", "A"])


def as_booleans(name: str, value: Any, known: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    """Check a boolean array of a known shape and return it contiguous."""
    array = value if type(value) is np.ndarray else _foreign(name, value)
    if array.dtype != np.bool_ and array.size:
        raise TypeError(
            complaint(
                name,
                "",
                found=f"dtype {array.dtype}",
                wanted="booleans",
                fix="compare explicitly, as in temperatures == 0",
            )
        )
    if array.shape != known:
        raise _wrong_shape(name, array.shape, known, ())
    return np.ascontiguousarray(array, dtype=np.bool_)


def as_probabilities(
    name: str, value: Any, known: tuple[int, ...], *free: str, fix: str = ""
) -> npt.NDArray[Any]:
    """Check a float array; nothing is copied. bfloat16 comes back as its uint16 words.

    Its first axes must be as long as `known` says; `free` names the others.
    """
    array = value if type(value) is np.ndarray else _foreign(name, value)
    dtype = array.dtype
    if dtype not in _FLOATS:
        if dtype.name == "bfloat16" or dtype == _TORCH_BFLOAT16:
            array = array.view(np.uint16)
        elif dtype.kind in "iu" and isinstance(value, list | tuple):
            array = array.astype(np.float64)
        else:
            raise TypeError(
                complaint(
                    name,
                    "",
                    found=f"dtype {dtype}",
                    wanted="float64, float32, float16 or bfloat16 in native byte order",
                    fix="convert it with .astype(numpy.float64)",
                )
            )
    shape = array.shape
    if len(shape) != len(known) + len(free) or shape[: len(known)] != known:
        raise _wrong_shape(name, shape, known, free, fix)
    return array


def _wrong_shape(
    name: str,
    shape: tuple[int, ...],
    known: tuple[int, ...],
    free: tuple[str, ...],
    fix: str = "",
) -> ValueError:
    spelled = "[" + ", ".join(map(str, (*known, *free))) + "]"
    return ValueError(
        complaint(
            name,
            "",
            found=f"shape {list(shape)}",
            wanted=f"shape {spelled}",
            fix=fix or f"pass an array of shape {spelled}",
        )
    )


def _foreign(name: str, value: Any) -> npt.NDArray[Any]:
    """Read a list, an ndarray's subclass or another library's CPU tensor."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        if value.device.type != "cpu":
            raise TypeError(
                complaint(
                    name,
                    "",
                    found=f"a tensor on {value.device}",
                    wanted="an array on the CPU",
                    fix="move it with .cpu()",
                )
            )
        value = value.detach()
        if value.dtype == torch.bfloat16:
            return np.asarray(value.view(torch.int16).numpy().view(_TORCH_BFLOAT16))
        return np.asarray(value.numpy())
    try:
        return np.asarray(value)
    except (ValueError, TypeError) as error:
        raise type(error)(
            complaint(
                name,
                "",
                found=f"a {type(value).__name__} that NumPy cannot read ({error})",
                wanted="a rectangular array",
                fix="pass a numpy.ndarray",
            )
        ) from error
