"""Where a call's uniforms come from: a generator, the caller, or seeds and positions."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.arrays import as_bounded_integers
from draftproof.batch import Batch
from draftproof.errors import complaint
from draftproof.foreign import dtype_name, read_array
from draftproof.noise import Stream
from draftproof.rules import RULES
from draftproof.types import IntArray

__all__ = ["as_uniforms", "draw_uniforms"]

Uniforms = npt.NDArray[np.float64]
Counter = Callable[[Any, Any, int, Any], Uniforms]
"""`draftproof.noise.uniform` or a kernel equal to it."""


def draw_uniforms(
    batch: Batch,
    rule: str,
    rng: np.random.Generator | None,
    uniforms: Any,
    seeds: Any,
    positions: Any,
    counter: Counter,
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return (accept, final): accept in the batch's layout ([B, K] or [N]), final [B].

    Exactly one of `rng`, `uniforms`, `seeds` is given.

    - A generator gives ``rng.random((B, K))``, then ``rng.random((B, 1))`` (packed: ``random(N)``,
      then ``random(B)``), read or not.
    - Seeds give `draftproof.noise.uniform`: rejection rules key by the round, ``accept`` from
      (seed, position, `Stream.ACCEPT`, depth) and ``final`` from (seed, position, `Stream.FINAL`,
      0); exact match keys the draw at each absolute position t by (seed, t, `Stream.FINAL`, 0).
    - `gumbel` needs noise for every token, which its kernel makes from (seed, t, `Stream.NOISE`):
      it is handed (seeds, positions), checked, [B] each, and takes no other source.
    """
    noise = RULES[rule].noise if rule in RULES else "round"  # as for every rule for trees
    if noise == "keys" and seeds is None:
        raise ValueError(
            complaint(
                "seeds",
                "",
                found=f"none of them, for rule {rule!r}",
                wanted="seeds [B] with positions [B]: the drafter races on the same noise",
                fix="pass seeds and positions, and draw the drafts with draftproof.sample_gumbel",
            )
        )
    if (rng is None) + (uniforms is None) + (seeds is None) != 2:
        sources = {"rng": rng, "uniforms": uniforms, "seeds": seeds}
        given = [name for name, source in sources.items() if source is not None]
        raise ValueError(
            complaint(
                "rng, uniforms, seeds",
                "",
                found=" and ".join(given) or "none of them",
                wanted="exactly one source of randomness",
                fix="pass rng=numpy.random.default_rng(), or uniforms, or seeds with positions",
            )
        )
    if positions is not None and seeds is None:
        raise ValueError(
            complaint(
                "positions",
                "",
                found="positions without seeds",
                wanted="seeds beside them",
                fix="pass seeds [B], or drop positions",
            )
        )
    if seeds is not None:
        keys, starts = _keys(batch, noise, seeds, positions)
        if noise == "keys":
            return keys, starts
        return _from_keys(batch, noise, keys, starts, counter)
    if uniforms is not None:
        return _from_caller(batch, uniforms)
    if not isinstance(rng, np.random.Generator):
        raise TypeError(
            complaint(
                "rng",
                "",
                found=f"a {type(rng).__module__}.{type(rng).__name__}",
                wanted="a numpy.random.Generator",
                fix="pass numpy.random.default_rng(seed)",
            )
        )
    size, lead = len(batch.num_draft), batch.draft_token_ids.shape
    accept = as_uniforms("rng", rng.random(lead), lead)
    final = read_array("rng", rng.random(size if batch.cu_num_draft is not None else (size, 1)))
    return accept, as_uniforms("rng", final.reshape(-1), (size,))


def _from_caller(batch: Batch, uniforms: Any) -> tuple[Uniforms, Uniforms]:
    try:
        accept, final = uniforms
    except (TypeError, ValueError):
        raise TypeError(
            complaint(
                "uniforms",
                "",
                found=f"a {type(uniforms).__name__}",
                wanted="a pair (accept, final)",
                fix="pass (accept [B, K], final [B])",
            )
        ) from None
    lead = batch.draft_token_ids.shape
    return as_uniforms("uniforms[0]", accept, lead), as_uniforms(
        "uniforms[1]", final, (batch.size,)
    )


def _are_numbers(array: npt.NDArray[Any]) -> bool:
    """Whether a generator of one's own hands out numbers: Fractions, or the judge's intervals."""
    return array.dtype == object and all(isinstance(x, numbers.Real) for x in array.flat)


def as_uniforms(
    name: str,
    value: Any,
    shape: tuple[int, ...],
    fix: str = "pass one uniform for each draft and one for each row's last token",
) -> Uniforms:
    """Read uniforms of a shape, float64; of a generator also numbers that are no floats."""
    array = read_array(name, value, f"floats of shape {list(shape)}")
    if array.dtype.kind not in "fiu" and not (name == "rng" and _are_numbers(array)):
        raise TypeError(
            complaint(
                name,
                "",
                found=f"dtype {dtype_name(array.dtype)}",
                wanted="floats in [0, 1)",
                fix="draw them with numpy.random.Generator.random",
            )
        )
    if array.shape != shape:
        raise ValueError(
            complaint(
                name,
                "",
                found=f"shape {list(array.shape)}",
                wanted=f"shape {list(shape)}",
                fix=fix,
            )
        )
    if array.dtype == object:
        return array
    return np.require(array, np.float64, ["C", "A"])


def _keys(
    batch: Batch, noise: str, seeds: Any, positions: Any
) -> tuple[npt.NDArray[np.uint64], IntArray]:
    if positions is None:
        raise ValueError(
            complaint(
                "positions",
                "",
                found="seeds without positions",
                wanted="positions [B]: the index of the first token this call can emit",
                fix="pass the number of tokens that precede it in each text; a constant would "
                "reuse noise in every round",
            )
        )
    keys = as_bounded_integers(
        "seeds",
        seeds,
        (batch.size,),
        least=-(2**63),
        largest=2**64 - 1,
        dtype=np.uint64,
        wanted="64 bits: an integer in 0..2**64 - 1, or a negative one as its two's complement",
        fix="pass each request's seed modulo 2**64",
    )
    ahead = 0 if noise == "round" else batch.max_draft
    starts = as_bounded_integers(
        "positions",
        positions,
        (batch.size,),
        least=0,
        largest=2**63 - 1 - ahead,
        dtype=np.int64,
        wanted=f"an index >= 0 and below 2**63{f' - {ahead}' if ahead else ''}",
        fix="pass the index of the first token this call can emit",
    )
    return keys, starts


def _from_keys(
    batch: Batch,
    noise: str,
    keys: npt.NDArray[np.uint64],
    starts: IntArray,
    counter: Counter,
) -> tuple[Uniforms, Uniforms]:
    if batch.cu_num_draft is None:
        depths = np.arange(batch.max_draft)
        key, start = keys[:, None], starts[:, None]
    else:
        rows = np.repeat(np.arange(batch.size), batch.num_draft)
        depths = np.arange(len(rows)) - batch.cu_num_draft[rows]
        key, start = keys[rows], starts[rows]
    if noise == "position":
        ends = starts + np.clip(batch.num_draft, 0, batch.max_draft)
        return (
            counter(key, start + depths, Stream.FINAL, 0),
            counter(keys, ends, Stream.FINAL, 0),
        )
    return counter(key, start, Stream.ACCEPT, depths), counter(keys, starts, Stream.FINAL, 0)
