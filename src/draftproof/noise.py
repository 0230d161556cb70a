"""Randomness by counter: the same words for the same request, whatever surrounds it.

Philox4x32-10 (Salmon et al., SC 2011; the Random123 library's variant, not NumPy's 4x64) is keyed
by a request's 64-bit seed. Its counter holds a position, a stream tag and an index, so a number
depends on nothing else: not on the batch, the padding, the other rows, threads or backends.

==============  =====================================================
Counter word    Content
==============  =====================================================
0, 1            low and high 32 bits of the position
2               the `Stream`
3               the index: depth or node in the round; token >> 1 for noise
==============  =====================================================

What a *position* is depends on the rule. Rejection rules key by the ROUND: the position of the
first token a call can emit, the index counting the drafts. Exact match keys by ABSOLUTE position:
the token at position t depends on (seed, t) alone, so its text is plain keyed sampling's.
"""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.arrays import as_bounded_integers
from draftproof.errors import complaint

__all__ = ["Stream", "philox4x32", "token_uniforms", "uniform"]

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL_INCREMENTS = (np.uint64(0x9E3779B9), np.uint64(0xBB67AE85))
_ROUNDS = 10
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)

Words = npt.NDArray[np.uint32]


class Stream(enum.IntEnum):
    """What a random number decides."""

    DRAFT = 0
    ACCEPT = 1
    FINAL = 2
    NOISE = 3


def philox4x32(counter: npt.ArrayLike, key: npt.ArrayLike) -> Words:
    """Encrypt counters: Philox4x32 with 10 rounds.

    Args:
        counter: uint32 [..., 4].
        key: uint32 [..., 2], broadcast against the counters.

    Returns:
        uint32 [..., 4] random words, equal to Random123's ``philox4x32_R(10, counter, key)``.

    Raises:
        ValueError: a word outside 0..2^32-1, or a last axis of another length.
        TypeError: a word that is no integer.

    >>> [hex(w) for w in philox4x32([0, 0, 0, 0], [0, 0])]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    return _encrypt(_last_axis("counter", counter, 4), _last_axis("key", key, 2))


def _last_axis(name: str, value: npt.ArrayLike, length: int) -> npt.NDArray[np.uint64]:
    words = _bounded(name, value, 32)
    if words.shape[-1:] != (length,):
        found, wanted = f"shape {list(words.shape)}", f"shape [..., {length}]"
        fix = f"pass {length} words of 32 bits, the low one first"
        raise ValueError(complaint(name, "", found=found, wanted=wanted, fix=fix))
    return words


def _bounded(
    name: str, value: npt.ArrayLike, bits: int, shape: tuple[int, ...] | None = None
) -> npt.NDArray[np.uint64]:
    return as_bounded_integers(
        name,
        value,
        shape,
        least=0,
        largest=2**bits - 1,
        dtype=np.uint64,
        wanted=f"an integer in 0..2**{bits} - 1",
        fix=f"take it modulo 2**{bits} where that is meant",
    )


def _encrypt(counter: npt.NDArray[np.uint64], key: npt.NDArray[np.uint64]) -> Words:
    c0, c1, c2, c3 = np.moveaxis(counter, -1, 0)
    k0, k1 = np.moveaxis(key, -1, 0)
    for _ in range(_ROUNDS):
        product0, product1 = _MULTIPLIERS[0] * c0, _MULTIPLIERS[1] * c2
        c0, c1, c2, c3 = (
            (product1 >> _HALF) ^ c1 ^ k0,
            product1 & _LOW,
            (product0 >> _HALF) ^ c3 ^ k1,
            product0 & _LOW,
        )
        k0, k1 = (k0 + _WEYL_INCREMENTS[0]) & _LOW, (k1 + _WEYL_INCREMENTS[1]) & _LOW
    return np.stack(np.broadcast_arrays(c0, c1, c2, c3), axis=-1).astype(np.uint32)


def _words(
    seeds: npt.ArrayLike, positions: npt.ArrayLike, stream: int, index: npt.ArrayLike
) -> Words:
    seed, position, idx = np.broadcast_arrays(
        _bounded("seeds", seeds, 64),
        _bounded("positions", positions, 63),
        _bounded("index", index, 32),
    )
    tag = np.full_like(idx, np.uint64(Stream(stream)))
    counter = np.stack([position & _LOW, position >> _HALF, tag, idx], axis=-1)
    return _encrypt(counter, np.stack([seed & _LOW, seed >> _HALF], axis=-1))


def _to_uniform(high: Words, low: Words) -> npt.NDArray[np.float64]:
    """Join 27 + 26 bits: (w0 >> 5) * 2^26 + (w1 >> 6), over 2^53."""
    bits = (high >> np.uint32(5)).astype(np.float64) * 2.0**26 + (low >> np.uint32(6))
    return np.asarray(bits * 2.0**-53)


def uniform(
    seeds: npt.ArrayLike, positions: npt.ArrayLike, stream: int, index: npt.ArrayLike
) -> npt.NDArray[np.float64]:
    """One 53-bit uniform in [0, 1) for each (seed, position, index); arguments broadcast.

    Args:
        seeds: integers in 0..2^64-1, a request's key.
        positions: integers in 0..2^63-1.
        stream: the `Stream` it belongs to.
        index: integers in 0..2^32-1.

    Raises:
        ValueError: a number outside its range, or a stream that there is not.
        TypeError: a number that is no integer.

    >>> float(uniform(seeds=7, positions=0, stream=Stream.FINAL, index=0))
    0.9419531438570538
    """
    words = _words(seeds, positions, stream, index)
    return _to_uniform(words[..., 0], words[..., 1])


def token_uniforms(
    seeds: npt.ArrayLike, positions: npt.ArrayLike, num_tokens: int
) -> npt.NDArray[np.float64]:
    """One uniform for every token of the vocabulary, from `Stream.NOISE`.

    Token v takes the pair of words ``v & 1`` of index ``v >> 1``, so both pairs of an output of
    Philox are used.

    Args:
        seeds, positions: as for `uniform`, of one common shape [...].
        num_tokens: V, at most 2^33.

    Returns:
        float64 [..., V] in [0, 1).

    Raises as `uniform` does.
    """
    size = int(_bounded("num_tokens", num_tokens, 33, ()))  # a token is half an index
    pairs = np.arange((size + 1) // 2, dtype=np.uint64)
    seed = _bounded("seeds", seeds, 64)[..., None]
    position = _bounded("positions", positions, 63)[..., None]
    words = _words(seed, position, Stream.NOISE, pairs)
    both = np.stack(
        [_to_uniform(words[..., 0], words[..., 1]), _to_uniform(words[..., 2], words[..., 3])],
        axis=-1,
    )
    flat: npt.NDArray[Any] = both.reshape(*both.shape[:-2], 2 * len(pairs))
    return flat[..., :size]
