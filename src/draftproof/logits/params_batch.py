"""The sampling parameters of a batch, by column."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.errors import complaint
from draftproof.logits.masks import check_mask
from draftproof.logits.params import SamplingParams
from draftproof.types import IntArray

__all__ = ["ParamsBatch", "read_params"]

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

_PLAIN = SamplingParams()


@dataclass(frozen=True, eq=False)
class ParamsBatch:
    """The parameters of B requests: build it once where they stay the same from call to call.

    Attributes:
        requests: B `SamplingParams`.
        temperature, top_k, top_p, min_p, typical_p: [B].
        filter_codes: [B] of `draftproof.logits.order.Filters`.
        tie_codes: [B] of `draftproof.logits.order.Ties.code`.
        edits: [B], whether single logits of the request are changed.
        masks: [B], whether the request has a mask.
        filters: [B], whether a filter has an effect.
        seeded: [B], whether the request has a seed.

    >>> ParamsBatch.of([SamplingParams(top_k=3), SamplingParams(temperature=0)]).top_k.tolist()
    [3, 0]
    """

    requests: tuple[SamplingParams, ...]
    temperature: Floats
    top_k: IntArray
    top_p: Floats
    min_p: Floats
    typical_p: Floats
    filter_codes: IntArray
    tie_codes: IntArray
    edits: Flags
    masks: Flags
    filters: Flags
    seeded: Flags

    def __len__(self) -> int:
        """B."""
        return len(self.requests)

    @classmethod
    def of(cls, requests: Iterable[SamplingParams]) -> ParamsBatch:
        """Gather the columns of B requests."""
        rows = tuple(requests)
        return cls._of_table(rows, np.array([_columns(row) for row in rows], dtype=np.float64))

    @classmethod
    @functools.lru_cache(maxsize=64)
    def alike(cls, params: SamplingParams, size: int) -> ParamsBatch:
        """Give all of B requests the same parameters; the same object each time."""
        return cls._of_table((params,) * size, np.array([_columns(params)]).repeat(size, axis=0))

    @classmethod
    def _of_table(cls, rows: tuple[SamplingParams, ...], table: Floats) -> ParamsBatch:
        columns = np.ascontiguousarray(table.reshape(len(rows), 11).T)
        temperature, top_p, min_p, typical_p = columns[[0, 2, 3, 4]]
        top_k, filter_codes, tie_codes = columns[[1, 5, 6]].astype(np.int64)
        edits, masks, filters, seeded = columns[7:] != 0
        return cls(
            rows,
            temperature,
            top_k,
            top_p,
            min_p,
            typical_p,
            filter_codes,
            tie_codes,
            edits,
            masks,
            filters,
            seeded,
        )

    @functools.cached_property
    def greedy(self) -> Flags:
        """[B], requests at temperature 0."""
        return np.asarray(self.temperature == 0)

    @functools.cached_property
    def any_edits(self) -> bool:
        """Whether any request's single logits are changed."""
        return bool(self.edits.any())

    @functools.cached_property
    def any_masks(self) -> bool:
        """Whether any request has a mask."""
        return bool(self.masks.any())

    @functools.cached_property
    def any_seeded(self) -> bool:
        """Whether any request has a seed."""
        return bool(self.seeded.any())

    @functools.cached_property
    def any_greedy(self) -> bool:
        """Whether any request is at temperature 0."""
        return bool(self.greedy.any())

    def check_masks(self, name: str, vocabulary: int, contexts: IntArray) -> None:
        """Refuse a request's mask that does not fit its logits.

        Args:
            name: of the public argument.
            vocabulary: V.
            contexts: [B], how many contexts each request has.
        """
        for row in np.flatnonzero(self.masks).tolist():
            for field in ("allowed_tokens", "banned_tokens"):
                mask = getattr(self.requests[row], field)
                if mask is None:
                    continue
                place = f"{name}[{row}].{field}"
                lead = mask.shape[:-1]
                if lead and lead[0] < contexts[row]:
                    lead = (int(contexts[row]),)
                check_mask(place, mask, lead, vocabulary)

    def check_ids(self, name: str, vocabulary: int) -> None:
        """Refuse a token of ``logit_bias`` or ``eos_token_ids`` beyond the vocabulary."""
        for row in np.flatnonzero(self.edits).tolist():
            request = self.requests[row]
            for field in ("logit_bias", "eos_token_ids"):
                token = max(getattr(request, field) or [0])
                if token >= vocabulary:
                    wanted = f"a token id in 0..{vocabulary - 1}"
                    fix = "pass ids of these logits' vocabulary"
                    place = f"row {row}, {field}"
                    raise ValueError(complaint(name, place, found=token, wanted=wanted, fix=fix))


def read_params(name: str, value: Any, size: int) -> ParamsBatch:
    """Read one `SamplingParams` for all requests, B of them, a `ParamsBatch`, or None."""
    if value is None:
        value = _PLAIN
    if isinstance(value, SamplingParams):
        return ParamsBatch.alike(value, size)
    wanted = f"a SamplingParams for all, or a sequence of {size}"
    fix = "pass draftproof.SamplingParams(...), or one for each row"
    batch = value if isinstance(value, ParamsBatch) else None
    if batch is None:
        rows = list(value) if isinstance(value, Iterable) and not isinstance(value, dict) else None
        odd = (i for i, row in enumerate(rows or []) if not isinstance(row, SamplingParams))
        if rows is None or (at := next(odd, None)) is not None:
            place, kind = ("", value) if rows is None else (f"row {at}", rows[at or 0])
            found = f"a {type(kind).__name__}"
            raise TypeError(complaint(name, place, found=found, wanted=wanted, fix=fix))
        batch = ParamsBatch.of(rows)
    if len(batch) != size:
        found = f"{len(batch)} of them"
        raise ValueError(complaint(name, "", found=found, wanted=wanted, fix=fix))
    return batch


@functools.lru_cache(maxsize=4096)
def _columns(params: SamplingParams) -> tuple[float, ...]:
    """The numbers of `ParamsBatch`, in this order: [0] temperature .. [10] seeded."""
    return (
        params.temperature,
        min(params.top_k, 2**53),
        params.top_p,
        params.min_p,
        params.typical_p,
        params.recipe.filters,
        params.tie_policy.code,
        params.edits,
        params.allowed_tokens is not None or params.banned_tokens is not None,
        params.filters,
        params.seed is not None,
    )
