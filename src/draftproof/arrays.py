"""From what a caller passed to NumPy arrays of a checked dtype and shape; no laws are judged."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.errors import complaint
from draftproof.foreign import TORCH_BFLOAT16, dtype_name, read_array

__all__ = [
    "IntArray",
    "as_booleans",
    "as_bounded_integers",
    "as_integers",
    "as_probabilities",
    "widen",
]

IntArray = npt.NDArray[np.int64]

_INT64 = np.dtype(np.int64)
_LEAST, _LARGEST = -(2**63), 2**63 - 1
_NUMBERS = (int, float, np.number)
_FLOATS = (np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16))


def widen(numbers: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Convert any accepted dtype to float64, exactly; uint16 words are bfloat16."""
    if numbers.dtype == np.uint16:
        numbers = (numbers.astype(np.uint32) << np.uint32(16)).view(np.float32)
    with np.errstate(invalid="ignore"):  # a signalling NaN is found by whoever judges the row
        return numbers.astype(np.float64)


def as_integers(
    name: str, value: Any, known: tuple[int, ...], *free: str, beyond: int = _LEAST
) -> IntArray:
    """Check an integer array and return it as contiguous, aligned int64.

    Its first axes must be as long as `known` says; `free` names the others. What int64 cannot hold
    becomes `beyond`, by default a number that no range admits: where it lies may never be read.
    """
    array: npt.NDArray[Any] = value
    if type(value) is not np.ndarray or value.dtype.kind != "i":
        array = _read_integers(name, value, f"integers of {_spelled(known, free)}")
    shape = array.shape
    if len(shape) != len(known) + len(free) or shape[: len(known)] != known:
        raise _wrong_shape(name, shape, known, free)
    if array.dtype is _INT64 and array.flags.c_contiguous and array.flags.aligned:
        return array
    if array.dtype.kind == "O" or array.dtype == np.uint64:
        outside = (array < _LEAST) | (array > _LARGEST)
        array = np.where(outside, 0, array).astype(np.int64)
        array[outside] = beyond
    return np.require(array, np.int64, ["C", "A"])


def as_bounded_integers(
    name: str,
    value: Any,
    known: tuple[int, ...] | None,
    *,
    least: int,
    largest: int,
    dtype: npt.DTypeLike,
    wanted: str,
    fix: str,
) -> npt.NDArray[Any]:
    """Check integers that must all lie in `least`..`largest`, and return them contiguous.

    Args:
        known: the shape, or None for any.
        dtype: of the result: int64 or an unsigned one, modulo its range.
        wanted, fix: for the message about an integer out of range.
    """
    shape = "any shape" if known is None else _spelled(known)
    array = _read_integers(name, value, f"integers of {shape}")
    if known is not None and array.shape != known:
        raise _wrong_shape(name, array.shape, known)
    outside = np.argwhere((array < least) | (array > largest))
    if len(outside):
        at = outside[0].tolist()
        place = "" if not at else f"index {at}" if known is None else f"row {at[0]}"
        found = array[tuple(at)]
        raise ValueError(complaint(name, place, found=found, wanted=wanted, fix=fix))
    if array.dtype.kind == "O" and least < 0:
        array = array % 2**64
    return array.astype(dtype, order="C")


def as_booleans(name: str, value: Any, known: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    """Check a boolean array of a known shape and return it contiguous."""
    array = read_array(name, value, f"booleans of {_spelled(known)}")
    if array.dtype != np.bool_ and array.size:
        fix = "compare explicitly, as in temperatures == 0"
        raise _wrong_dtype(name, value, array, "booleans", fix)
    if array.shape != known:
        raise _wrong_shape(name, array.shape, known)
    return np.ascontiguousarray(array, dtype=np.bool_)


def as_probabilities(
    name: str, value: Any, known: tuple[int, ...], *free: str, fix: str = ""
) -> npt.NDArray[Any]:
    """Check a float array; nothing is copied. bfloat16 comes back as its uint16 words.

    Its first axes must be as long as `known` says; `free` names the others.
    """
    array: npt.NDArray[Any] = value
    if type(value) is not np.ndarray:
        array = read_array(name, value, f"probabilities of {_spelled(known, free)}")
    dtype = array.dtype
    if dtype not in _FLOATS:
        if (dtype.name == "bfloat16" and dtype.isnative) or dtype == TORCH_BFLOAT16:
            array = array.view(np.uint16)
        elif dtype.kind in "iu" and isinstance(value, list | tuple):
            array = array.astype(np.float64)
        else:
            wanted = "float64, float32, float16 or bfloat16 in native byte order"
            raise _wrong_dtype(name, value, array, wanted, "convert it to numpy.float64")
    shape = array.shape
    if len(shape) != len(known) + len(free) or shape[: len(known)] != known:
        raise _wrong_shape(name, shape, known, free, fix)
    return array


def _read_integers(name: str, value: Any, wanted: str) -> npt.NDArray[Any]:
    """Read integers of any size: of an integer dtype, or Python's own in an array of objects."""
    array = read_array(name, value, wanted)
    if array.dtype.kind in "iu":
        return array
    if array.dtype.kind == "f" and not array.size:  # NumPy's dtype for an empty list
        return array.astype(np.int64)
    if isinstance(value, list | tuple | int):
        # NumPy makes floats of integers of which one exceeds int64, and objects beyond uint64.
        own = np.array(value, dtype=object)
        if own.shape == array.shape and all(map(_is_integer, own.flat)):
            return np.asarray(np.frompyfunc(int, 1, 1)(own))
    raise _wrong_dtype(name, value, array, "integers", "convert it to numpy.int64")


def _is_integer(number: object) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool)


def _spelled(known: tuple[int, ...], free: tuple[str, ...] = ()) -> str:
    return f"shape [{', '.join(map(str, (*known, *free)))}]"


def _wrong_dtype(
    name: str, value: Any, array: npt.NDArray[Any], wanted: str, fix: str
) -> TypeError:
    """Say which dtype it is, or what was passed that NumPy could make nothing of."""
    place, found = "", f"dtype {dtype_name(array.dtype)}"
    if array.dtype.kind == "O" and array.ndim == 0:
        found = f"a {type(value).__name__}"
    elif array.dtype.kind == "O":
        odd = (at for at in np.ndindex(array.shape) if not isinstance(array[at], _NUMBERS))
        if (at := next(odd, None)) is not None:
            place, found = f"index {list(at)}", f"a {type(array[at]).__name__}"
    return TypeError(complaint(name, place, found=found, wanted=wanted, fix=fix))


def _wrong_shape(
    name: str,
    shape: tuple[int, ...],
    known: tuple[int, ...],
    free: tuple[str, ...] = (),
    fix: str = "",
) -> ValueError:
    spelled = _spelled(known, free)
    return ValueError(
        complaint(
            name,
            "",
            found=f"shape {list(shape)}",
            wanted=spelled,
            fix=fix or f"pass an array of {spelled}",
        )
    )
