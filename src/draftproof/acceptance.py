"""Acceptance records: what became of the drafts, in tallies that add up over batches and hosts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate, zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.arrays import as_booleans, as_bounded_integers, as_integers
from draftproof.errors import complaint
from draftproof.foreign import read_array
from draftproof.types import IntArray, VerifyResult

__all__ = ["AcceptanceRecord", "cut_at_eos"]

_COUNTERS = {
    "num_spec_steps": "Target calls: rows that were decided.",
    "num_draft_tokens": "Drafts verified.",
    "num_accepted_draft_tokens": "Drafts accepted.",
    "num_emitted_tokens": "Tokens emitted, none past an EOS.",
    "num_undecided": "Rows that could not be decided.",
    "drafted_per_position": "Drafts verified at a position of the draft.",
    "accepted_per_position": "Drafts accepted at a position of the draft.",
    "expected_acceptance_sum": "Sum of sum_x min(p, q) over the traced rejections.",
    "expected_acceptance_count": "Traced rejections.",
}
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


@dataclass(frozen=True, kw_only=True)
class AcceptanceRecord:
    """What became of the drafts of any number of rows: exact tallies, and the rates they give.

    A *step* is a row that was decided: one target call, with drafts or without (vLLM omits those
    without). ``+`` and `merge` add records of any K: commutative, associative (the one float up to
    rounding), with identity ``AcceptanceRecord()``. As in vLLM a rate of nothing is 0 and a mean
    length of nothing 1; the tallies tell whether anything was measured.

    Attributes:
        drafted_per_position: [i] = steps with a draft at position i, for i < K, the longest draft.
        acceptance_histogram: [j] = steps in which exactly j drafts were accepted, for j <= K.
        num_emitted_tokens: tokens emitted, without those past a row's first EOS.
        num_undecided: rows that could not be decided; no other tally counts them.
        expected_acceptance_sum: sum_x min(p, q) at the rejected position, summed over the traced
            rejections. Conditional on a rejection there, it leans to where the drafter is bad.
        expected_acceptance_count: the traced rejections.
    """

    drafted_per_position: tuple[int, ...] = ()
    acceptance_histogram: tuple[int, ...] = (0,)
    num_emitted_tokens: int = 0
    num_undecided: int = 0
    expected_acceptance_sum: float = 0.0
    expected_acceptance_count: int = 0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            each = isinstance(value, tuple)
            if each != name.endswith(("_per_position", "_histogram")) or not all(
                _is_tally(number, name) for number in (value if each else [value])
            ):
                wanted, fix = "a count >= 0, or a list of them", "pass all that to_dict returned"
                raise ValueError(complaint(name, "", found=repr(value), wanted=wanted, fix=fix))
        if len(self.acceptance_histogram) != len(self.drafted_per_position) + 1:
            name, found = "acceptance_histogram", f"length {len(self.acceptance_histogram)}"
            wanted = f"{len(self.drafted_per_position) + 1}: one more than drafted_per_position"
            fix = "pass all that to_dict returned"
            raise ValueError(complaint(name, "", found=found, wanted=wanted, fix=fix))

    @classmethod
    def from_result(
        cls,
        result: VerifyResult,
        *,
        eos_token_ids: int | Iterable[int] | None = None,
        rows: npt.ArrayLike | None = None,
    ) -> AcceptanceRecord:
        """Count the rows of a verified batch.

        Only ``num_emitted_tokens`` stops at an EOS. A draft past it stays drafted, and accepted or
        not, as the verifier decided: that tells how good the drafter is, not how long the text is.

        Args:
            result: what the verifier returned, with a trace or without.
            eos_token_ids: the id or ids that end a text; None cuts nothing.
            rows: those to count, as indices or a bool mask [B], say one request's; None is all.

        Raises:
            TypeError: if ``result`` is no `VerifyResult`, or if ids or rows are no integers.
            ValueError: for a row outside the batch.

        >>> import numpy as np
        >>> from draftproof import verify
        >>> target = np.eye(8)[[[5, 2, 7, 4]]]  # one-hot laws: 5, then EOS = 2, ...
        >>> result = verify([[5, 2, 7]], None, target, rng=np.random.default_rng(0))
        >>> AcceptanceRecord.from_result(result, eos_token_ids=2).num_emitted_tokens
        2
        """
        if not hasattr(result, "num_draft"):
            found, fix = f"a {type(result).__name__}", "pass all that verify returned"
            raise TypeError(complaint("result", "", found=found, wanted="a VerifyResult", fix=fix))
        size = len(result.num_emitted)
        chosen = np.arange(size) if rows is None else _row_indices(rows, size)
        decided = chosen[result.num_emitted[chosen] > 0]
        emitted = kept = result.num_emitted[decided]
        if eos_token_ids is not None:
            kept = cut_at_eos((result.token_ids[decided], emitted), eos_token_ids)
        trace = result.trace
        expected = np.empty(0) if trace is None else trace.expected_acceptance[decided]
        known = expected[~np.isnan(expected)]
        lengths = np.bincount(result.num_draft[decided], minlength=1)
        histogram = np.bincount(emitted - 1, minlength=len(lengths))
        return cls(
            drafted_per_position=_exceeding(lengths.tolist()),
            acceptance_histogram=tuple(histogram.tolist()),
            num_emitted_tokens=int(kept.sum()),
            num_undecided=len(chosen) - len(decided),
            expected_acceptance_sum=float(known.sum()),
            expected_acceptance_count=len(known),
        )

    @classmethod
    def merge(cls, records: Iterable[AcceptanceRecord]) -> AcceptanceRecord:
        """Add any number of records; TypeError for anything else."""
        tallies = [vars(cls()), *map(_tallies_of, records)]
        return cls(**{name: _add_up([tally[name] for tally in tallies]) for name in tallies[0]})

    def __add__(self, other: AcceptanceRecord) -> AcceptanceRecord:
        return self.merge((self, other))

    @property
    def num_spec_tokens(self) -> int:
        """K, the longest draft seen."""
        return len(self.drafted_per_position)

    @property
    def num_spec_steps(self) -> int:
        """Rows decided, one target call each."""
        return sum(self.acceptance_histogram)

    @property
    def num_draft_tokens(self) -> int:
        """Drafts verified."""
        return sum(self.drafted_per_position)

    @property
    def num_accepted_draft_tokens(self) -> int:
        """Drafts accepted, past an EOS too."""
        return sum(self.accepted_per_position)

    @property
    def accepted_per_position(self) -> tuple[int, ...]:
        """[i] = steps that accepted their draft at position i, for i < K."""
        return _exceeding(self.acceptance_histogram)

    @property
    def acceptance_per_position(self) -> tuple[float, ...]:
        """[i] = accepted / drafted, over the steps with a draft at i (vLLM's log: over all)."""
        pairs = zip(self.accepted_per_position, self.drafted_per_position, strict=True)
        return tuple(accepted / max(drafted, 1) for accepted, drafted in pairs)

    @property
    def draft_acceptance_rate(self) -> float:
        """Accepted / drafted."""
        return self.num_accepted_draft_tokens / max(self.num_draft_tokens, 1)

    @property
    def mean_acceptance_length(self) -> float:
        """1 + accepted / steps: vLLM's number, which counts the last token and knows no EOS."""
        return 1 + self.num_accepted_draft_tokens / max(self.num_spec_steps, 1)

    @property
    def block_efficiency(self) -> float:
        """Tokens emitted per target call."""
        return self.num_emitted_tokens / max(self.num_spec_steps, 1)

    @property
    def expected_acceptance(self) -> float | None:
        """Mean sum_x min(p, q) over the traced rejections, None if there are none."""
        return self.expected_acceptance_sum / n if (n := self.expected_acceptance_count) else None

    def to_dict(self) -> dict[str, Any]:
        """Return every number by name, ready for JSON; what vLLM reports has vLLM's name."""
        rates = ("draft_acceptance_rate", "mean_acceptance_length", "block_efficiency")
        more = ("num_spec_tokens", "acceptance_per_position", "expected_acceptance")
        values = ((name, getattr(self, name)) for name in (*vars(self), *_COUNTERS, *rates, *more))
        return {name: list(v) if isinstance(v, tuple) else v for name, v in values}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> AcceptanceRecord:
        """Read what `to_dict` returned; ValueError if a tally is missing or cannot be one."""
        if missing := sorted(vars(cls()).keys() - data):
            wanted, fix = f"also {', '.join(missing)}", "pass all that to_dict returned"
            raise ValueError(complaint("data", "", found=data, wanted=wanted, fix=fix))
        values = ((name, data[name]) for name in vars(cls()))
        tallies: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values}
        return cls(**tallies)

    def to_prometheus(
        self, prefix: str = "draftproof", labels: Mapping[str, str] | None = None
    ) -> str:
        """Return the tallies as counters in Prometheus' text format, for queries to divide.

        ValueError for a name that Prometheus forbids, or the label ``position``, which is taken;
        TypeError for labels that are no mapping.

        >>> AcceptanceRecord().to_prometheus(labels={"model": "a"}).splitlines()[2]
        'draftproof_num_spec_steps_total{model="a"} 0'
        """
        _check_name("prefix", prefix)
        constant = _label_pairs({} if labels is None else labels)
        lines = []
        for name, meaning in _COUNTERS.items():
            metric, value = f"{prefix}_{name}_total", getattr(self, name)
            lines += [f"# HELP {metric} {meaning}", f"# TYPE {metric} counter"]
            for position, count in enumerate(value if isinstance(value, tuple) else [value]):
                own = [f'position="{position}"'] if isinstance(value, tuple) else []
                pairs = ",".join([*constant, *own])
                lines.append(f"{metric}{{{pairs}}} {count}" if pairs else f"{metric} {count}")
        return "\n".join(lines) + "\n"


def _is_tally(number: object, name: str) -> bool:
    kinds = int | float if name == "expected_acceptance_sum" else int
    return isinstance(number, kinds) and not isinstance(number, bool) and 0 <= number < np.inf


def _tallies_of(record: Any) -> dict[str, Any]:
    if not isinstance(record, AcceptanceRecord):
        found, wanted = f"a {type(record).__name__}", "an AcceptanceRecord"
        fix = "read dictionaries with from_dict first"
        raise TypeError(complaint("records", "", found=found, wanted=wanted, fix=fix))
    return vars(record)


def _check_name(argument: str, name: Any) -> None:
    legal = isinstance(name, str) and name.isascii() and name.isidentifier()
    if not legal or name.startswith("__"):
        wanted, fix = "a legal name", "use letters, digits and _, no digit in front"
        raise ValueError(complaint(argument, "", found=repr(name), wanted=wanted, fix=fix))


def _label_pairs(labels: Any) -> list[str]:
    if not isinstance(labels, Mapping):
        found, wanted = f"a {type(labels).__name__}", "a mapping of names to texts"
        fix = "pass a dict, as in {'model': 'a'}"
        raise TypeError(complaint("labels", "", found=found, wanted=wanted, fix=fix))
    for name in labels:
        _check_name("labels", name)
    if "position" in labels:
        wanted, fix = "another name: draftproof sets that label itself", "rename it"
        raise ValueError(complaint("labels", "", found="'position'", wanted=wanted, fix=fix))
    return [f'{name}="{str(text).translate(_ESCAPES)}"' for name, text in labels.items()]


def cut_at_eos(
    result: tuple[npt.ArrayLike, npt.ArrayLike], eos_token_ids: int | Iterable[int]
) -> IntArray:
    """Count the tokens of each row to keep, int64 [B]: those up to and with its first EOS.

    ``result`` may be just ``(token_ids [B, K+1], num_emitted [B])``. TypeError for a non-integer,
    ValueError for shapes that do not fit.

    >>> cut_at_eos(([[5, 2, 7, 4], [4, -1, -1, -1]], [4, 1]), 2).tolist()
    [2, 1]
    """
    try:
        token_ids, num_emitted = result
    except (TypeError, ValueError):
        found, wanted = f"a {type(result).__name__}", "a pair (token_ids [B, K+1], num_emitted [B])"
        fix = "pass what verify returned"
        raise TypeError(complaint("result", "", found=found, wanted=wanted, fix=fix)) from None
    tokens = as_integers("result[0]", token_ids, (), "B", "K+1")
    emitted = as_bounded_integers(
        "result[1]",
        num_emitted,
        tokens.shape[:1],
        least=0,
        largest=tokens.shape[1],
        dtype=np.int64,
        wanted=f"a count in 0..{tokens.shape[1]}, the tokens of a row",
        fix="pass the num_emitted of the same call",
    )
    ends = np.ones((len(tokens), tokens.shape[1] + 1), dtype=np.bool_)  # the last one for all rows
    ends[:, :-1] = np.isin(tokens, _eos_ids(eos_token_ids))
    return np.asarray(np.minimum(ends.argmax(axis=1) + 1, emitted))


def _eos_ids(eos_token_ids: Any) -> IntArray:
    """Read one id or several, in whatever they come: an array of any library, a set, a range."""
    name, wanted, ids = "eos_token_ids", "an integer, or integers of shape [ids]", eos_token_ids
    if isinstance(ids, int):
        ids = [ids]
    if not isinstance(ids, list | tuple):
        plain = isinstance(ids, Iterable) and not isinstance(ids, str | bytes)
        if plain and not hasattr(ids, "__array__"):
            ids = list(ids)
        else:
            array = read_array(name, ids, wanted)
            ids = array.reshape(1) if array.ndim == 0 and array.dtype.kind != "O" else array
    return as_integers(name, ids, (), "ids")


def _row_indices(rows: npt.ArrayLike, size: int) -> IntArray:
    array = read_array("rows", rows, "indices, or a bool mask [B]")
    if array.dtype == np.bool_:
        return np.flatnonzero(as_booleans("rows", array, (size,)))
    indices = as_integers("rows", rows, (), "rows")
    if (outside := indices[(indices < 0) | (indices >= size)]).size:
        wanted, fix = f"indices in 0..{size - 1}", "index the batch's rows"
        raise ValueError(complaint("rows", "", found=outside[0], wanted=wanted, fix=fix))
    return indices


def _exceeding(counts: Iterable[int]) -> tuple[int, ...]:
    """Turn counts of the values 0, 1, ... into counts of the values above 0, above 1, ..."""
    return tuple(accumulate([*counts][:0:-1]))[::-1]


def _add_up(values: list[Any]) -> Any:
    if isinstance(values[0], tuple):
        return tuple(map(sum, zip_longest(*values, fillvalue=0)))
    return sum(values)
