"""Which numbers of a row are judged, in the order in which its rule reads them.

========== =====================================================================================
Level      Judged
========== =====================================================================================
"touched"  lengths and drafted ids; what the rule reads, see `draftproof.touched`: single numbers
           at the drafts, uniforms, and every number and the mass of the rows summed
"full"     also every valid row of p and q, and that q(x) > 0 at each drafted token
"off"      lengths and drafted ids; a row whose last draw has no positive finite mass still
           emits nothing
========== =====================================================================================

Greedy rows are compared, not summed: NaN never wins, and only a row with nothing above -inf is bad.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from draftproof.arrays import widen
from draftproof.batch import Batch
from draftproof.reference.emission import emission
from draftproof.reference.rows import drafted_entry
from draftproof.touched import Part, Read, reads
from draftproof.types import RowStatus

__all__ = [
    "DRAFT",
    "TARGET",
    "VALIDATE",
    "Fault",
    "Side",
    "entry_faults",
    "first_fault",
    "law_faults",
    "mass_tolerance",
    "uniform_fault",
]

VALIDATE = ("touched", "full", "off")


class Side(NamedTuple):
    """The public argument that a law came in, and its status bits."""

    argument: str
    not_finite: RowStatus
    negative: RowStatus
    mass: RowStatus


TARGET = Side(
    "target_probs", RowStatus.TARGET_NOT_FINITE, RowStatus.TARGET_NEGATIVE, RowStatus.TARGET_MASS
)
DRAFT = Side(
    "draft_probs", RowStatus.DRAFT_NOT_FINITE, RowStatus.DRAFT_NEGATIVE, RowStatus.DRAFT_MASS
)


class Fault(NamedTuple):
    """Why a row cannot be decided: its status bit, and the parts of a `complaint`."""

    status: RowStatus
    argument: str
    place: str
    found: object
    wanted: str
    fix: str


@functools.cache
def mass_tolerance(dtype: np.dtype[Any], columns: int) -> float:
    """How far from 1 the sum of a row normalised in its dtype may lie.

    ``u + (columns + 1024) * a + columns * d / 2``, where u is the dtype's unit roundoff (each entry
    is rounded once), a that of the arithmetic which normalised it (float64 for float64, float32
    for all narrower dtypes: a running sum errs by at most ``columns * a``, an exponential of a
    logit of size up to 1024 by ``1024 * a``) and d the dtype's smallest positive number (an
    underflowing entry errs by at most half of it).

    Args:
        dtype: of the row; uint16 stands for bfloat16's words.
        columns: the row's length.

    >>> f"{mass_tolerance(np.dtype(np.float32), 32_000):.1e}"
    '2.0e-03'
    """
    if dtype == np.uint16:
        roundoff, smallest = 2.0**-8, 2.0**-133
    else:
        info = np.finfo(dtype)
        roundoff, smallest = float(info.eps) / 2, float(info.smallest_subnormal)
    arithmetic = 2.0**-53 if dtype == np.float64 else 2.0**-24
    return roundoff + (columns + 1024) * arithmetic + columns * smallest / 2


def first_fault(
    batch: Batch,
    rule: str,
    accept: npt.NDArray[Any],
    final: npt.NDArray[Any],
    row: int,
    validate: str,
) -> Fault | None:
    """Return the first fault among the numbers that `validate` judges, or None."""
    fault = next(_faults(batch, rule, accept, final, row, validate), None)
    if fault is None:
        return None
    names = {TARGET.argument: batch.target_argument, DRAFT.argument: batch.draft_argument}
    name, dot, part = fault.argument.partition(".")
    return fault._replace(argument=names.get(name, name) + dot + part)


def _faults(
    batch: Batch,
    rule: str,
    accept: npt.NDArray[Any],
    final: npt.NDArray[Any],
    row: int,
    validate: str,
) -> Iterator[Fault]:
    yield from _length_and_ids(batch, row)
    if validate == "full":
        yield from _every_number(batch, row)
    emitted = emission(batch, rule, accept, final, row)
    if batch.greedy is not None and batch.greedy[row]:
        if emitted.last_token is None:
            yield _no_argmax(row, emitted.num_accepted)
    elif validate != "off" or emitted.last_token is None:
        for read in reads(batch, rule, row, emitted.num_accepted):
            yield from _read_faults(batch, accept, final, row, read)


def _length_and_ids(batch: Batch, row: int) -> Iterator[Fault]:
    g, least = int(batch.num_draft[row]), int(batch.least_draft[row])
    if not least <= g <= batch.max_draft:
        yield Fault(
            RowStatus.LENGTH_OUT_OF_RANGE,
            "num_draft",
            f"row {row}",
            _spelled(g),
            f"a length in {least}..{batch.max_draft}",
            "pass the number of drafts of each row"
            + (", at least one for each position that its state holds open" if least else ""),
        )
        return
    for i in range(g):
        token = int(batch.drafter_token_ids[batch.draft_index(row, i)])
        if not 0 <= token < batch.drafter_vocabulary:
            yield Fault(
                RowStatus.TOKEN_OUT_OF_RANGE,
                "draft_token_ids",
                f"row {row}, position {i}",
                _spelled(token),
                f"a token id in 0..{batch.drafter_vocabulary - 1}",
                "lower num_draft if this is padding",
            )


def _every_number(batch: Batch, row: int) -> Iterator[Fault]:
    g = int(batch.num_draft[row])
    only_largest = batch.greedy_logits and batch.greedy is not None and bool(batch.greedy[row])
    for i in range(g + 1):
        if not only_largest:
            yield from _row_faults(batch, TARGET, row, i)
        elif not (batch.target_probs[batch.target_index(row, i)] > -np.inf).any():
            yield _no_argmax(row, i)
        if i < g and batch.draft_probs is not None:
            yield from _row_faults(batch, DRAFT, row, i)
            if drafted_entry(batch, row, i) == 0:
                yield Fault(
                    RowStatus.DRAFT_ZERO,
                    DRAFT.argument,
                    _place(batch, row, i),
                    "probability 0",
                    "a positive probability, since the token was drawn from this law",
                    "declare the law that the drafter really sampled from",
                )


def _no_argmax(row: int, position: int) -> Fault:
    return Fault(
        TARGET.not_finite,
        TARGET.argument,
        f"row {row}, position {position}",
        "no entry above -inf",
        "at least one number to take the argmax of",
        "check the logits and masks of this position",
    )


def _read_faults(
    batch: Batch, accept: npt.NDArray[Any], final: npt.NDArray[Any], row: int, read: Read
) -> Iterator[Fault]:
    position, at = read.position, batch.draft_index(row, read.position)
    match read.part:
        case Part.UNIFORM:
            yield from uniform_fault(accept[at], f"[0] at row {row}, position {position}")
        case Part.FINAL_UNIFORM:
            yield from uniform_fault(final[row], f"[1] at row {row}")
        case Part.ENTRIES:
            place, target_at = _place(batch, row, position), batch.target_index(row, position)
            p = widen(batch.target_probs[target_at][batch.draft_token_ids[at]])
            yield from entry_faults(TARGET, float(p), place)
            yield from entry_faults(DRAFT, drafted_entry(batch, row, position), place)
        case Part.TARGET_LAW:
            yield from _row_faults(batch, TARGET, row, position)
        case Part.DRAFT_LAW:
            if batch.draft_probs is not None:
                yield from _row_faults(batch, DRAFT, row, position)


def _spelled(integer: int) -> object:
    """Spell an integer as it was passed: what int64 cannot hold was brought to one of its ends."""
    ends = np.iinfo(np.int64)
    return "an integer beyond int64" if integer in (ends.min, ends.max) else integer


def uniform_fault(u: float, where: str) -> Iterator[Fault]:
    """Judge one uniform of the argument ``uniforms``."""
    if not 0 <= u < 1:
        yield Fault(
            RowStatus.UNIFORM_OUT_OF_RANGE,
            f"uniforms{where}",
            "",
            u,
            "a number in [0, 1)",
            "draw them with numpy.random.Generator.random",
        )


def entry_faults(side: Side, number: float, place: str) -> Iterator[Fault]:
    """Judge one number of a law."""
    if not np.isfinite(number):
        yield _not_finite(side, place, number)
    elif number < 0:
        yield _negative(side, place, number)


def _row_faults(batch: Batch, side: Side, row: int, position: int) -> Iterator[Fault]:
    """Judge one whole row of a law: first its ids if it is sparse, then its numbers and mass."""
    place = f"row {row}, position {position}"
    if side is TARGET:
        stored = batch.target_probs[batch.target_index(row, position)]
        tokens = np.arange(batch.vocabulary)
    else:
        assert batch.draft_probs is not None
        stored = batch.draft_probs[batch.draft_index(row, position)]
        tokens = np.arange(len(stored))
    columns, numbers = len(stored), widen(stored)
    if side is DRAFT and batch.sparse_ids is not None:
        assert batch.drafter_sparse_ids is not None
        tokens = batch.drafter_sparse_ids[batch.draft_index(row, position)]
        yield from sparse_id_faults(side, place, tokens, batch.drafter_vocabulary)
        numbers, tokens = numbers[tokens >= 0], tokens[tokens >= 0]
    yield from law_faults(side, place, numbers, tokens, stored.dtype, columns)


def sparse_id_faults(
    side: Side, place: str, ids: npt.NDArray[Any], vocabulary: int
) -> Iterator[Fault]:
    """Judge the ids of a sparse law."""
    for entry in np.flatnonzero(ids >= vocabulary)[:1]:
        yield Fault(
            RowStatus.SPARSE_ID_OUT_OF_RANGE,
            f"{side.argument}.ids",
            f"{place}, entry {entry}",
            _spelled(ids[entry]),
            f"a token id in 0..{vocabulary - 1}, or -1 for padding",
            "pad with -1",
        )


def law_faults(
    side: Side,
    place: str,
    numbers: npt.NDArray[np.float64],
    tokens: npt.NDArray[Any],
    dtype: np.dtype[Any],
    columns: int,
) -> Iterator[Fault]:
    """Judge the numbers of one law and its mass; `tokens` names its entries in messages.

    Args:
        side, place: what messages speak of.
        numbers, tokens: the entries, and the token of each.
        dtype, columns: of the row as it is stored, for the tolerance on its mass.
    """
    for bad, name in ((~np.isfinite(numbers), _not_finite), (numbers < 0, _negative)):
        if bad.any():
            first = int(np.argmax(bad))
            yield name(side, f"{place}, token {tokens[first]}", float(numbers[first]))
            return
    with np.errstate(over="ignore"):
        mass = float(np.cumsum(numbers)[-1]) if len(numbers) else 0.0
    tolerance = mass_tolerance(dtype, columns)
    if not abs(mass - 1) <= tolerance:
        spelled = "bfloat16" if dtype == np.uint16 else dtype.name
        yield Fault(
            side.mass,
            side.argument,
            place,
            f"a row of mass {mass!r}",
            f"1 within {tolerance:.2g} ({spelled}, {columns} columns)",
            "normalise the row in the dtype it is passed in",
        )


def _not_finite(side: Side, place: str, number: float) -> Fault:
    return Fault(
        side.not_finite,
        side.argument,
        place,
        number,
        "a finite probability",
        "check the logits and masks of this position",
    )


def _negative(side: Side, place: str, number: float) -> Fault:
    return Fault(
        side.negative, side.argument, place, number, "a probability >= 0", "pass probabilities"
    )


def _place(batch: Batch, row: int, position: int) -> str:
    token = batch.drafter_token_ids[batch.draft_index(row, position)]
    return f"row {row}, position {position}, token {token}"
