"""Masks over the vocabulary: booleans, or bits packed as grammar engines pack them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.errors import complaint
from draftproof.foreign import dtype_name, read_array

__all__ = ["Mask", "check_mask", "packed_bits", "read_mask", "unpacked"]

Mask = npt.NDArray[Any]
"""bool [..., V], or uint32 [..., ceil(V / 32)] whose bit v % 32 of word v // 32 is token v."""


def read_mask(name: str, value: Any) -> Mask:
    """Read booleans, or words of 32 bits (int32 and uint32, as xgrammar and llguidance fill them).

    Raises:
        TypeError: another dtype; lists of integers, which could be ids as well as words.
        ValueError: a single number.
    """
    array = read_array(name, value, "booleans or words of 32 bits")
    words = array.dtype in (np.dtype(np.int32), np.dtype(np.uint32))
    if array.dtype != np.bool_ and not (words and not isinstance(value, list | tuple)):
        found = f"dtype {dtype_name(array.dtype)}"
        if isinstance(value, list | tuple):
            found = "a list of numbers"
        wanted = "booleans, one for each token, or an array of uint32 or int32 words of packed bits"
        fix = "to name single tokens pass logit_bias={token: -inf}"
        raise TypeError(complaint(name, "", found=found, wanted=wanted, fix=fix))
    if not array.ndim:
        wanted = "one entry for each token"
        fix = "pass an array over the whole vocabulary"
        raise ValueError(complaint(name, "", found="a single one", wanted=wanted, fix=fix))
    return array.view(np.uint32) if words else array


def check_mask(name: str, mask: Mask, lead: tuple[int, ...], vocabulary: int) -> None:
    """Refuse a mask of another shape than `lead` and then the vocabulary, in tokens or in words."""
    columns = vocabulary if mask.dtype == np.bool_ else -(-vocabulary // 32)
    if mask.shape == (*lead, columns):
        return
    unit = "tokens" if mask.dtype == np.bool_ else "words of 32 bits"
    found, wanted = f"shape {list(mask.shape)}", f"shape {[*lead, columns]} ({unit})"
    fix = f"make the mask over the {vocabulary} tokens of these logits"
    raise ValueError(complaint(name, "", found=found, wanted=wanted, fix=fix))


def unpacked(mask: Mask, vocabulary: int) -> npt.NDArray[np.bool_]:
    """Return a mask as booleans [..., V].

    >>> unpacked(np.array([0b101], dtype=np.uint32), 4).tolist()
    [True, False, True, False]
    """
    if mask.dtype == np.bool_:
        return mask
    octets = np.ascontiguousarray(mask, dtype="<u4").view(np.uint8)
    return np.unpackbits(octets, axis=-1, count=vocabulary, bitorder="little").view(np.bool_)


def packed_bits(mask: Mask) -> npt.NDArray[np.uint32]:
    """Return a mask as words [..., ceil(V / 32)].

    >>> packed_bits(np.array([True, False, True, False])).tolist()
    [5]
    """
    if mask.dtype != np.bool_:
        return np.ascontiguousarray(mask)
    octets = np.packbits(mask, axis=-1, bitorder="little")
    missing = -octets.shape[-1] % 4
    octets = np.pad(octets, [(0, 0)] * (mask.ndim - 1) + [(0, missing)])
    return octets.view("<u4").astype(np.uint32, copy=False)
