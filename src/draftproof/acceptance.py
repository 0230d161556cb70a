"""Acceptance records: what became of the drafts, in tallies that add up over batches and hosts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate, zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.arrays import as_booleans, as_integers
from draftproof.errors import complaint
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
        """Add any number of records."""
        tallies = [vars(record) for record in (cls(), *records)]
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
        """Read what `to_dict` returned; ValueError if a tally is missing."""
        if missing := sorted(vars(cls()).keys() - data):
            wanted, fix = f"also {', '.join(missing)}", "pass all that to_dict returned"
            raise ValueError(complaint("data", "", found=data, wanted=wanted, fix=fix))
        values = ((name, data[name]) for name in vars(cls()))
        tallies: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values}
        return cls(**tallies)

    def to_prometheus(
        self, prefix: str = "draftproof", labels: dict[str, str] | None = None
    ) -> str:
        """Return the tallies as counters in Prometheus' text format, for queries to divide.

        ValueError for a name that Prometheus forbids, or the label ``position``, which is taken.

        >>> AcceptanceRecord().to_prometheus(labels={"model": "a"}).splitlines()[2]
        'draftproof_num_spec_steps_total{model="a"} 0'
        """
        labels = labels or {}
        for argument, name in (("prefix", prefix), *(("labels", label) for label in labels)):
            legal = name.isascii() and name.isidentifier() and not name.startswith("__")
            if not legal or name == "position":
                wanted, fix = "a legal name, not position", "use letters, digits and _"
                raise ValueError(complaint(argument, "", found=name, wanted=wanted, fix=fix))
        constant = [f'{name}="{str(text).translate(_ESCAPES)}"' for name, text in labels.items()]
        lines = []
        for name, meaning in _COUNTERS.items():
            metric, value = f"{prefix}_{name}_total", getattr(self, name)
            lines += [f"# HELP {metric} {meaning}", f"# TYPE {metric} counter"]
            for position, count in enumerate(value if isinstance(value, tuple) else [value]):
                own = [f'position="{position}"'] if isinstance(value, tuple) else []
                pairs = ",".join([*constant, *own])
                lines.append(f"{metric}{{{pairs}}} {count}" if pairs else f"{metric} {count}")
        return "\n".join(lines) + "\n"


def cut_at_eos(result: tuple[IntArray, IntArray], eos_token_ids: int | Iterable[int]) -> IntArray:
    """Count the tokens of each row to keep, int64 [B]: those up to and with its first EOS.

    ``result`` may be just ``(token_ids [B, K+1], num_emitted [B])``. TypeError for a non-integer.

    >>> cut_at_eos((np.array([[5, 2, 7, 4], [4, -1, -1, -1]]), np.array([4, 1])), 2).tolist()
    [2, 1]
    """
    token_ids, num_emitted = result
    ids = list(eos_token_ids) if isinstance(eos_token_ids, Iterable) else [eos_token_ids]
    matches = [token_ids == token for token in as_integers("eos_token_ids", ids, (), "ids")]
    is_eos = np.any(matches, axis=0) & (np.arange(token_ids.shape[1]) < num_emitted[:, None])
    return np.where(is_eos.any(axis=1), is_eos.argmax(axis=1) + 1, num_emitted)


def _row_indices(rows: npt.ArrayLike, size: int) -> IntArray:
    if np.asarray(rows).dtype == np.bool_:
        return np.flatnonzero(as_booleans("rows", rows, (size,)))
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
