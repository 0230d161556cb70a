"""The uniforms of a batch in which some requests have seeds of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.batch import Batch
from draftproof.errors import complaint
from draftproof.logits.params_batch import ParamsBatch
from draftproof.uniforms import Counter, draw_uniforms

__all__ = ["seeded_uniforms"]


def seeded_uniforms(
    batch: Batch,
    params: ParamsBatch,
    rule: str,
    rng: np.random.Generator | None,
    uniforms: Any,
    seeds: Any,
    positions: Any,
    counter: Counter,
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return what `draftproof.uniforms.draw_uniforms` does, where params have seeds of those.

    A request with a seed has the same uniforms alone and in any batch. The others take theirs from
    `rng`, which gives one for every draft and row whether or not it is read. A greedy row needs
    neither.
    """
    if not params.any_seeded:
        alone = uniforms is seeds is positions is None and rule != "gumbel"
        if type(rng) is np.random.Generator and alone and batch.cu_num_draft is None:
            # the long way would take a third of a small call
            return rng.random(batch.draft_token_ids.shape), rng.random(batch.size)
        return draw_uniforms(batch, rule, rng, uniforms, seeds, positions, counter)
    row = int(np.argmax(params.seeded))
    for name, value in (("seeds", seeds), ("uniforms", uniforms)):
        if value is not None:
            found = f"{name}, and seed={params.requests[row].seed} in the params of row {row}"
            wanted, fix = "one source of randomness for each row", f"drop {name}, or the params'"
            raise ValueError(complaint(name, "", found=found, wanted=wanted, fix=fix))
    own = [0 if request.seed is None else request.seed for request in params.requests]
    keyed = draw_uniforms(batch, rule, None, None, own, positions, counter)
    free = ~params.seeded
    if rng is None and batch.greedy is not None:
        free &= ~batch.greedy
    if not free.any() and rng is None:
        return keyed
    if rng is None or rule == "gumbel":
        row = int(np.argmax(free))
        found = f"no seed in the params of row {row}"
        wanted = (
            "one in each row's" if rule == "gumbel" else "one in each row's, or rng for the rest"
        )
        fix = "pass SamplingParams(seed=...), or rng" if rng is None else "pass seeds for all"
        raise ValueError(complaint("rng, uniforms, seeds", "", found=found, wanted=wanted, fix=fix))
    drawn = draw_uniforms(batch, rule, rng, None, None, None, counter)
    owners = params.seeded[:, None]
    if batch.cu_num_draft is not None:
        owners = np.repeat(params.seeded, batch.num_draft)
    return np.where(owners, keyed[0], drawn[0]), np.where(params.seeded, keyed[1], drawn[1])
