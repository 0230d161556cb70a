"""Lists, ndarray subclasses and other libraries' tensors, read as NumPy arrays or refused."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.errors import complaint

__all__ = ["TORCH_BFLOAT16", "bfloat16_of_words", "dtype_name", "marked", "read_array"]

TORCH_BFLOAT16 = np.dtype([("bfloat16", np.uint16)])
"""What PyTorch's bfloat16 tensors are read as, since NumPy has no such dtype."""
_SCALARS = frozenset((int, float, bool))
_MOST_AXES = 64
"""Of a NumPy array."""


def read_array(name: str, value: Any, wanted: str = "a rectangular array") -> npt.NDArray[Any]:
    """Read whatever a caller may pass as an array; what NumPy can share is not copied.

    Args:
        name: of the public argument.
        value: an array of any library on the CPU, or nested lists of numbers or such arrays.
        wanted: the kind and shape that the argument should have, for the message.

    Raises:
        TypeError: a masked array, a tensor that is not in the CPU's memory, an object that NumPy
            cannot read.
        ValueError: nested lists of differing lengths.
    """
    if type(value) is np.ndarray:
        return value
    if isinstance(value, list | tuple):
        return _read_list(name, value, wanted)
    if _is_a(value, "numpy.ma", "MaskedArray"):
        raise TypeError(
            complaint(
                name,
                "",
                found="a masked array",
                wanted=f"{wanted}, without a mask, which would be ignored",
                fix="fill it with .filled(...), or pass its .data if nothing is masked",
            )
        )
    tensor = _is_a(value, "torch", "Tensor")
    if tensor and value.device.type != "cpu":
        empty = value.device.type == "meta"
        fix = "pass one that holds numbers" if empty else "move it with .cpu()"
        found, wanted = f"a tensor on {value.device}", "an array on the CPU"
        raise TypeError(complaint(name, "", found=found, wanted=wanted, fix=fix))
    try:
        return _read_tensor(value) if tensor else np.asarray(value)
    except MemoryError:
        raise
    except Exception as error:  # whatever another library raises
        found = f"a {type(value).__name__} that NumPy cannot read ({error})"
        fix = "pass a numpy.ndarray"
        raise TypeError(complaint(name, "", found=found, wanted=wanted, fix=fix)) from error


def dtype_name(dtype: np.dtype[Any]) -> str:
    """Return the name of a dtype, which for PyTorch's bfloat16 is not NumPy's."""
    return "bfloat16" if dtype == TORCH_BFLOAT16 else str(dtype)


def bfloat16_of_words(words: npt.NDArray[np.uint16]) -> npt.NDArray[Any]:
    """Mark 16-bit words as bfloat16 numbers, for callers without ml_dtypes or PyTorch; no copy.

    The result goes wherever draftproof takes floats. Raises TypeError for another dtype.

    >>> from draftproof import sample_rows
    >>> sample_rows(bfloat16_of_words(np.array([[0, 0x3F80]], np.uint16)), uniforms=[0.5]).tolist()
    [1]
    """
    array = read_array("words", words, "words of 16 bits")
    if array.dtype not in (np.dtype(np.uint16), np.dtype(np.int16)):
        found, wanted = f"dtype {dtype_name(array.dtype)}", "uint16 or int16 words"
        fix = "pass the numbers' upper 16 bits as they lie in memory"
        raise TypeError(complaint("words", "", found=found, wanted=wanted, fix=fix))
    return array.view(TORCH_BFLOAT16)


def marked(checked: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return what `draftproof.arrays.as_probabilities` returned in a form that it takes again."""
    return checked.view(TORCH_BFLOAT16) if checked.dtype == np.uint16 else checked


def _is_a(value: Any, module: str, name: str) -> bool:
    """Tell whether a value is of a class of a module, which need not be imported for that."""
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(value, kind)


def _read_tensor(tensor: Any) -> npt.NDArray[Any]:
    torch = sys.modules["torch"]
    tensor = tensor.detach().resolve_conj().resolve_neg()
    if tensor.dtype == torch.bfloat16:
        return np.asarray(tensor.view(torch.int16).numpy().view(TORCH_BFLOAT16))
    return np.asarray(tensor.numpy())


def _read_list(name: str, value: list[Any] | tuple[Any, ...], wanted: str) -> npt.NDArray[Any]:
    try:
        return np.asarray(_with_arrays(name, value, wanted))
    except RecursionError:
        place, found = "", "lists within lists without end"
    except ValueError:
        place, found = _unevenness(value)
    fix = "give all entries one length, padded where they are shorter"
    raise ValueError(complaint(name, place, found=found, wanted=wanted, fix=fix))


def _with_arrays(name: str, value: Any, wanted: str) -> Any:
    """Replace what nested lists hold of other libraries by arrays; NumPy would drop its mask."""
    if isinstance(value, list | tuple):
        if _SCALARS.issuperset(map(type, value)):
            return value
        return [_with_arrays(name, item, wanted) for item in value]
    if type(value) in _SCALARS:
        return value
    array = read_array(name, value, wanted)
    return value if array.dtype.kind == "O" and array.ndim == 0 else array


def _unevenness(value: Any) -> tuple[str, str]:
    """Find where nested lists first differ in length: the place and what is there, in words."""
    level: list[tuple[list[int], Any]] = [([], value)]
    while level and len(level[0][0]) <= _MOST_AXES:
        lengths = [_length(item) for _, item in level]
        for (place, _), length in zip(level, lengths, strict=True):
            if length != lengths[0]:
                here, there = (_spelled(n) for n in (length, lengths[0]))
                return f"index {place}", f"{here}, where index {level[0][0]} has {there}"
        if lengths[0] is None:
            break
        level = [([*place, i], part) for place, item in level for i, part in enumerate(item)]
    return "", "lists that NumPy cannot read"


def _length(item: Any) -> int | None:
    """Return the length of what has one, None for a number."""
    return len(item) if isinstance(item, list | tuple) or np.ndim(item) else None


def _spelled(length: int | None) -> str:
    return "a single number" if length is None else f"length {length}"
