"""`draftproof.noise` in C++: the same words."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from draftproof import _native
from draftproof.noise import Stream

__all__ = ["philox4x32", "token_uniforms", "uniform"]


def philox4x32(counter: npt.ArrayLike, key: npt.ArrayLike) -> npt.NDArray[np.uint32]:
    """`draftproof.noise.philox4x32` of one counter [4] and one key [2]."""
    words = _native.philox4x32(np.asarray(counter).tolist(), np.asarray(key).tolist())
    return np.array(words, dtype=np.uint32)


def uniform(
    seeds: npt.ArrayLike, positions: npt.ArrayLike, stream: int, index: npt.ArrayLike
) -> npt.NDArray[np.float64]:
    """`draftproof.noise.uniform`."""
    seed, position, idx = np.broadcast_arrays(
        np.asarray(seeds, dtype=np.uint64),
        np.asarray(positions, dtype=np.int64),
        np.asarray(index, dtype=np.uint32),
    )
    out = np.empty(seed.size)
    _native.fill_uniforms(
        np.ascontiguousarray(seed).reshape(-1),
        np.ascontiguousarray(position).reshape(-1),
        int(stream),
        np.ascontiguousarray(idx).reshape(-1),
        out,
    )
    return out.reshape(seed.shape)


def token_uniforms(
    seeds: npt.ArrayLike, positions: npt.ArrayLike, num_tokens: int
) -> npt.NDArray[np.float64]:
    """`draftproof.noise.token_uniforms`."""
    seed, position = np.broadcast_arrays(
        np.asarray(seeds, dtype=np.uint64), np.asarray(positions, dtype=np.int64)
    )
    out = np.empty((seed.size, num_tokens))
    _native.fill_token_uniforms(
        np.ascontiguousarray(seed).reshape(-1),
        np.ascontiguousarray(position).reshape(-1),
        int(Stream.NOISE),
        out,
    )
    return out.reshape(*seed.shape, num_tokens)
