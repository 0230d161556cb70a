"""Acceptance records against a row-by-row count, their laws of addition, and their exports."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftproof.acceptance import AcceptanceRecord, cut_at_eos
from draftproof.types import RowStatus, Trace, VerifyResult

VOCABULARY = 5

Row = tuple[list[int], int, float]
"""A row's emitted tokens, its draft length and its expected acceptance."""


def make_result(rows: list[Row], K: int, traced: bool = True) -> VerifyResult:
    token_ids = np.full((len(rows), K + 1), -1, dtype=np.int64)
    for row, (tokens, _, _) in enumerate(rows):
        token_ids[row, : len(tokens)] = tokens
    unread = np.empty((len(rows), K))
    num_emitted = np.array([len(tokens) for tokens, _, _ in rows], dtype=np.int64)
    trace = Trace(
        accept_mask=np.arange(K) < num_emitted[:, None] - 1,
        ratios=unread,
        accept_uniforms=unread,
        final_uniforms=np.empty(len(rows)),
        residual_mass=np.empty(len(rows)),
        expected_acceptance=np.array([expected for *_, expected in rows], dtype=np.float64),
        is_bonus=np.zeros(len(rows), dtype=np.bool_),
    )
    return VerifyResult(
        token_ids,
        num_emitted,
        np.array([length for _, length, _ in rows], dtype=np.int64),
        np.where(num_emitted > 0, RowStatus.OK, RowStatus.TARGET_MASS).astype(np.int64),
        "numpy",
        trace if traced else None,
    )


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[Row], int]:
    K = draw(st.integers(0, 4))
    rows: list[Row] = []
    for _ in range(draw(st.integers(0, 6))):
        length = draw(st.integers(0, K))
        emitted = draw(st.integers(0, length + 1))
        tokens = draw(st.lists(st.integers(0, VOCABULARY - 1), min_size=emitted, max_size=emitted))
        rejected = 0 < emitted <= length
        rows.append((tokens, length, draw(st.floats(0, 1)) if rejected else math.nan))
    return rows, K


@st.composite
def records(draw: st.DrawFn) -> AcceptanceRecord:
    return AcceptanceRecord.from_result(make_result(*draw(batches())))


def count(rows: Iterable[Row], eos: set[int]) -> dict[str, Any]:
    """Count as a person would: one row, one token at a time."""
    seen: dict[str, Any] = {
        "num_spec_tokens": 0,
        "num_spec_steps": 0,
        "num_draft_tokens": 0,
        "num_accepted_draft_tokens": 0,
        "num_emitted_tokens": 0,
        "num_undecided": 0,
        "expected_acceptance_count": 0,
    }
    histogram, drafted, accepted, expected = [0], list[int](), list[int](), list[float]()
    for tokens, length, mass in rows:
        if not tokens:
            seen["num_undecided"] += 1
            continue
        while len(drafted) < length:
            histogram.append(0)
            drafted.append(0)
            accepted.append(0)
        seen["num_spec_steps"] += 1
        histogram[len(tokens) - 1] += 1
        for position in range(length):
            drafted[position] += 1
            seen["num_draft_tokens"] += 1
            if position < len(tokens) - 1:
                accepted[position] += 1
                seen["num_accepted_draft_tokens"] += 1
        for token in tokens:
            seen["num_emitted_tokens"] += 1
            if token in eos:
                break
        if not math.isnan(mass):
            expected.append(mass)
    return seen | {
        "num_spec_tokens": len(drafted),
        "acceptance_histogram": histogram,
        "drafted_per_position": drafted,
        "accepted_per_position": accepted,
        "expected_acceptance_count": len(expected),
        "expected_acceptance_sum": pytest.approx(sum(expected)),
    }


def tallies(record: AcceptanceRecord, names: Iterable[str]) -> dict[str, Any]:
    exported = record.to_dict()
    return {name: exported[name] for name in names}


@given(batches(), st.sets(st.integers(-1, VOCABULARY)))
def test_a_batch_is_counted_as_row_by_row(batch, eos):
    rows, K = batch
    record = AcceptanceRecord.from_result(make_result(rows, K), eos_token_ids=eos)
    wanted = count(rows, eos)
    assert tallies(record, wanted) == wanted


@given(batches(), st.data())
def test_chosen_rows_are_counted_alone(batch, data):
    rows, K = batch
    result = make_result(rows, K)
    mask = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    indices = [row for row, chosen in enumerate(mask) if chosen]
    wanted = count([rows[row] for row in indices], {2})
    for chosen in (mask, np.array(mask, dtype=np.bool_), indices, np.array(indices, np.int32)):
        record = AcceptanceRecord.from_result(result, rows=chosen, eos_token_ids=2)
        assert tallies(record, wanted) == wanted


@given(batches(), st.integers(0, 3))
def test_padding_is_never_counted(batch, padding):
    rows, K = batch
    wider = AcceptanceRecord.from_result(make_result(rows, K + padding))
    assert wider == AcceptanceRecord.from_result(make_result(rows, K))


@given(batches())
def test_the_requests_records_add_up_to_the_batch(batch):
    rows, K = batch
    result = make_result(rows, K)
    each = [AcceptanceRecord.from_result(result, rows=[row]) for row in range(len(rows))]
    assert close(AcceptanceRecord.merge(each), AcceptanceRecord.from_result(result))


def close(one: AcceptanceRecord, other: AcceptanceRecord) -> bool:
    """Compare exactly, but for the rounding of the one float."""
    same = math.isclose(one.expected_acceptance_sum, other.expected_acceptance_sum, rel_tol=1e-14)
    return same and one == replace(other, expected_acceptance_sum=one.expected_acceptance_sum)


@given(records(), records(), records())
def test_addition_is_a_commutative_monoid(a, b, c):
    assert a + b == b + a
    assert close((a + b) + c, a + (b + c))
    assert close(AcceptanceRecord.merge(iter([a, b, c])), a + b + c)
    assert a + AcceptanceRecord() == AcceptanceRecord() + a == a
    assert AcceptanceRecord.merge([]) == AcceptanceRecord()


@pytest.mark.parametrize("other", [1, None, {}, AcceptanceRecord().to_dict()])
def test_adding_something_else_is_a_type_error(other):
    with pytest.raises(TypeError, match=r"records: found a .*; wanted an AcceptanceRecord"):
        AcceptanceRecord() + other


def from_lengths(accepted: list[int], drafted: list[int], K: int) -> AcceptanceRecord:
    rows: list[Row] = [([1] * (a + 1), d, math.nan) for a, d in zip(accepted, drafted, strict=True)]
    return AcceptanceRecord.from_result(make_result(rows, K))


def test_the_numbers_of_a_request_served_by_vllm():
    served = {
        "mean_acceptance_length": 1.2325581395348837,
        "draft_acceptance_rate": 0.07751937984496124,
        "acceptance_histogram": [39, 1, 0, 3],
        "num_spec_steps": 43,
        "num_accepted_draft_tokens": 10,
        "num_draft_tokens": 129,
        "num_spec_tokens": 3,
    }
    record = from_lengths([0] * 39 + [1] + [3] * 3, [3] * 43, 3)
    assert tallies(record, served) == served


def test_rates_of_ragged_drafts():
    record = from_lengths([0, 1, 3, 0], [0, 1, 3, 2], 3)
    assert record.acceptance_per_position == (2 / 3, 1 / 2, 1 / 1)
    assert record.draft_acceptance_rate == 4 / 6
    assert record.mean_acceptance_length == record.block_efficiency == 2
    assert record.expected_acceptance is None


def test_a_text_ends_at_its_eos_and_the_drafts_past_it_remain_drafts():
    result = make_result([([5, 2, 7, 9], 3, math.nan)], 3)
    assert cut_at_eos(result, 2).tolist() == [2]
    record = AcceptanceRecord.from_result(result, eos_token_ids=2)
    assert (record.num_draft_tokens, record.num_accepted_draft_tokens) == (3, 3)
    assert record.num_emitted_tokens == record.block_efficiency == 2
    assert record.mean_acceptance_length == 4


EOS_FOUR: list[Any] = [
    4,
    np.int64(4),
    np.array(4),
    np.array(4, dtype=np.uint8),
    [4],
    (9, 4),
    {9, 4},
    frozenset([4]),
    {4: "end"},
    {4: "end"}.keys(),
    range(4, 6),
    np.array([4]),
    [np.array(4)],
    [4, 2**64],
]
EOS_NONE: list[Any] = [-1, [], (), set(), np.array([], dtype=np.int64), 2**63, 2**70, [2**70], 9]


@pytest.mark.parametrize("eos", EOS_FOUR + EOS_NONE)
def test_the_ids_of_eos_may_come_in_any_form_and_never_match_padding(eos):
    result = make_result([([4, 4, 1], 2, math.nan), ([1, 3], 2, 0.5), ([], 1, math.nan)], 2)
    matches = any(eos is one for one in EOS_FOUR)
    for tokens, counts in (result, (result[0].tolist(), result[1].tolist())):
        kept = cut_at_eos((tokens, counts), eos)
        assert kept.dtype == np.int64
        assert kept.tolist() == [1 if matches else 3, 2, 0]


def test_an_iterator_of_ids_is_read_once():
    assert cut_at_eos(([[1, 4, 2]], [3]), iter([9, 4])).tolist() == [2]


@pytest.mark.parametrize(("B", "width"), [(0, 0), (0, 3), (2, 0)])
def test_an_empty_batch_is_cut_to_nothing(B, width):
    kept = cut_at_eos((np.zeros((B, width), int), np.zeros(B, int)), [2])
    assert kept.dtype == np.int64
    assert kept.tolist() == [0] * B


@pytest.mark.parametrize(
    ("result", "error", "message"),
    [
        (5, TypeError, "result: found a int; wanted a pair"),
        (([[1]],), TypeError, "result: found a tuple; wanted a pair"),
        (([[1.0]], [1]), TypeError, r"result\[0\]: found dtype float64"),
        (([1, 2], [1]), ValueError, r"result\[0\]: found shape \[2\]; wanted shape \[B, K\+1\]"),
        (([[1], [1, 2]], [1, 2]), ValueError, r"result\[0\] at index \[1\]: found length 2"),
        (([[1, 2]], [1, 2]), ValueError, r"result\[1\]: found shape \[2\]; wanted shape \[1\]"),
        (([[1, 2]] * 2, [1, 3]), ValueError, r"result\[1\] at row 1: found 3; wanted .* 0\.\.2"),
        (([[1, 2]], [-1]), ValueError, r"result\[1\] at row 0: found -1"),
        (([[1, 2]], [True]), TypeError, r"result\[1\]: found dtype bool"),
    ],
)
def test_tokens_and_counts_that_do_not_fit_are_refused(result, error, message):
    with pytest.raises(error, match=message):
        cut_at_eos(result, 2)


def test_expected_acceptance_is_the_mean_over_traced_rejections():
    rows: list[Row] = [([1], 1, 0.25), ([1], 1, 0.75), ([1, 1], 1, math.nan), ([], 1, 0.9)]
    assert AcceptanceRecord.from_result(make_result(rows, 1)).expected_acceptance == 0.5
    untraced = AcceptanceRecord.from_result(make_result(rows, 1, traced=False))
    assert untraced.expected_acceptance is None
    assert untraced.expected_acceptance_count == 0


@pytest.mark.parametrize("rows", [[], [([], 3, math.nan)], [([], -1, math.nan)] * 2])
def test_nothing_decided_gives_finite_rates(rows):
    record = AcceptanceRecord.from_result(make_result(rows, 3))
    assert record == AcceptanceRecord(num_undecided=len(rows))
    assert record.draft_acceptance_rate == record.block_efficiency == 0
    assert record.mean_acceptance_length == 1
    assert record.acceptance_per_position == ()


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ([3], ValueError, r"rows: found 3; wanted indices in 0\.\.1"),
        ([-1], ValueError, "rows: found -1"),
        ([True], ValueError, "rows: found shape"),
        ([0.0], TypeError, "rows: found dtype float64"),
        (0, ValueError, "rows: found shape"),
    ],
)
def test_rows_outside_the_batch_are_refused(rows, error, message):
    result = make_result([([1], 1, 0.5)] * 2, 1)
    with pytest.raises(error, match=message):
        AcceptanceRecord.from_result(result, rows=rows)


@pytest.mark.parametrize("eos", ["stop", b"stop", 2.0, None, True, [None], {2.5}, np.array("2")])
def test_ids_of_eos_that_are_no_integers_are_refused(eos):
    with pytest.raises(TypeError, match="eos_token_ids"):
        cut_at_eos(make_result([], 1), eos)


def test_a_result_that_is_only_a_pair_is_refused():
    pair: Any = tuple(make_result([], 1))
    with pytest.raises(TypeError, match="result: found a tuple; wanted a VerifyResult"):
        AcceptanceRecord.from_result(pair)


@given(records())
def test_the_dictionary_is_json_and_reads_back(record):
    text = json.dumps(record.to_dict(), allow_nan=False)
    assert AcceptanceRecord.from_dict(json.loads(text)) == record


def test_a_dictionary_without_a_tally_is_refused():
    data = AcceptanceRecord().to_dict()
    del data["num_undecided"]
    with pytest.raises(ValueError, match=r"data: .*wanted also num_undecided"):
        AcceptanceRecord.from_dict(data)


@pytest.mark.parametrize(
    ("tally", "value"),
    [
        ("num_undecided", None),
        ("num_undecided", -1),
        ("num_undecided", True),
        ("num_emitted_tokens", 1.5),
        ("num_emitted_tokens", [1]),
        ("expected_acceptance_sum", math.nan),
        ("expected_acceptance_sum", math.inf),
        ("expected_acceptance_count", "1"),
        ("acceptance_histogram", "1"),
        ("acceptance_histogram", [1, -1]),
        ("acceptance_histogram", 1),
        ("drafted_per_position", [0.5]),
    ],
)
def test_a_dictionary_with_no_tally_in_a_tallys_place_is_refused(tally, value):
    with pytest.raises(ValueError, match=f"{tally}: found .*; wanted a count >= 0"):
        AcceptanceRecord.from_dict(AcceptanceRecord().to_dict() | {tally: value})


def test_tallies_of_differing_lengths_are_refused():
    with pytest.raises(ValueError, match="acceptance_histogram: found length 1; wanted 3"):
        AcceptanceRecord(drafted_per_position=(2, 1), acceptance_histogram=(3,))


LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{{({LABEL}(?:,{LABEL})*)\}})? ([0-9.e+-]+)")
UNESCAPED = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


def parse(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Read Prometheus' text format: per metric HELP, TYPE, then its samples, none twice."""
    samples = dict[tuple[str, frozenset[tuple[str, str]]], float]()
    described = list[str]()
    assert text.endswith("\n")
    lines = iter(text[:-1].split("\n"))
    for line in lines:
        if line.startswith("# HELP "):
            metric, _ = line.removeprefix("# HELP ").split(" ", 1)
            assert next(lines) == f"# TYPE {metric} counter"
            assert metric.endswith("_total")
            assert metric not in described
            described.append(metric)
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        metric, inside, value = match.groups()
        assert metric == described[-1]
        pairs = [label.split("=", 1) for label in re.findall(LABEL, inside or "")]
        labels = {k: re.sub(r'\\["\\n]', lambda m: UNESCAPED[m[0]], v[1:-1]) for k, v in pairs}
        assert len(labels) == len(pairs)
        key = metric, frozenset(labels.items())
        assert key not in samples
        samples[key] = float(value)
    return samples


@given(records(), st.dictionaries(st.sampled_from(["model", "_x9", "le"]), st.text()))
def test_prometheus_text_parses_to_the_tallies(record, labels):
    samples = parse(record.to_prometheus("engine", labels))
    wanted = dict[tuple[str, frozenset[tuple[str, str]]], float]()
    for name in (
        "num_spec_steps",
        "num_draft_tokens",
        "num_accepted_draft_tokens",
        "num_emitted_tokens",
        "num_undecided",
        "expected_acceptance_sum",
        "expected_acceptance_count",
    ):
        wanted[f"engine_{name}_total", frozenset(labels.items())] = getattr(record, name)
    for name in ("drafted_per_position", "accepted_per_position"):
        for position, value in enumerate(getattr(record, name)):
            place = labels | {"position": str(position)}
            wanted[f"engine_{name}_total", frozenset(place.items())] = value
    assert samples == wanted


def test_label_values_are_texts_whatever_they_are():
    labels: Any = {"a": 'say "x"\\\n', "b": 7, "c": None, "d": "\r\x00é"}
    samples = parse(AcceptanceRecord().to_prometheus(labels=labels))
    found = dict(next(iter(samples))[1])
    assert found == {name: str(value) for name, value in labels.items()}


@pytest.mark.parametrize("labels", [["model"], "model", 5, [("model", "a")]])
def test_labels_that_are_no_mapping_are_refused(labels):
    with pytest.raises(TypeError, match=r"labels: found a .*; wanted a mapping"):
        AcceptanceRecord().to_prometheus(labels=labels)


@pytest.mark.parametrize(
    "label", ["", "9x", "a-b", "é", "__reserved", "position", "a\n", "a b", 1, None, b"a", ("a",)]
)
def test_illegal_label_names_are_refused(label):
    with pytest.raises(ValueError, match="labels: found"):
        AcceptanceRecord().to_prometheus(labels={label: "x"})


def test_a_metric_may_be_called_position():
    assert parse(AcceptanceRecord().to_prometheus("position"))


@pytest.mark.parametrize("prefix", ["", "9x", "a-b", "a b", None, 1])
def test_illegal_prefixes_are_refused(prefix):
    with pytest.raises(ValueError, match="prefix: found"):
        AcceptanceRecord().to_prometheus(prefix)
