"""Temperature 0: equal to plain greedy decoding on the same rows, bit for bit."""

# mypy: no-check-untyped-defs
from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftproof import BadRowError, RowStatus, verify, verify_greedy

DTYPES = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16]
INFINITE = [np.nan, np.inf, -np.inf]


def best(row):
    """The lowest id of the largest number; NaN never wins; None if nothing exceeds -inf."""
    token, largest = None, -np.inf
    for v, number in enumerate(row.tolist()):
        if number > largest:
            token, largest = v, number
    return token


def plain(ids, rows, g):
    """Row by row: emit the argmax until it differs from the draft; None if it has none."""
    emitted = []
    for i in range(g + 1):
        emitted.append(best(rows[i]))
        if emitted[-1] is None:
            return None
        if i < g and emitted[-1] != ids[i]:
            break
    return emitted


@st.composite
def batches(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    B, K = draw(st.integers(0, 4)), draw(st.integers(0, 9))
    V = draw(st.integers(1, 70) | st.sampled_from([127, 128, 129, 1023, 1025]))
    distinct = draw(st.sampled_from([1, 2, 3, 1000]))
    rows = rng.integers(-distinct, distinct, size=(B, K + 1, V)).astype(np.float64)
    spoilt = rng.random(rows.shape) < draw(st.sampled_from([0.0, 0.3, 1.0]))
    rows[spoilt] = rng.choice(INFINITE, size=spoilt.sum())
    rows = rows.astype(draw(st.sampled_from(DTYPES)))
    ids = rng.integers(V, size=(B, K))
    likely = np.array([[best(row) or 0 for row in some] for some in rows], dtype=int)
    likely = likely.reshape(B, K + 1)[:, :K]
    ids = np.where(rng.random((B, K)) < 0.9, likely, ids)
    return ids, rows, rng.integers(K + 1, size=B)


@given(batch=batches())
def test_it_equals_plain_greedy_decoding(backend, batch):
    ids, rows, lengths = batch
    result = verify_greedy(*batch, backend=backend, on_bad_row="status")
    for b, g in enumerate(lengths):
        expected = plain(ids[b], rows[b], g)
        assert result.to_lists()[b] == (expected or [])
        assert result.status[b] == (RowStatus.TARGET_NOT_FINITE if expected is None else 0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("V", [1, 2, 31, 32, 33, 127, 128, 129, 1_024, 50_257])
def test_ties_go_to_the_lowest_id_wherever_they_lie(backend, dtype, V):
    places = sorted({0, V // 3, V // 2, V - 1})
    for first in places:
        rows = np.zeros((1, 1, V), dtype=dtype)
        rows[0, 0, [place for place in places if place >= first]] = 1
        assert verify_greedy(np.zeros((1, 0), int), rows, backend=backend).to_lists() == [[first]]


@pytest.mark.parametrize("V", [2, 33, 129, 1_025])
def test_nan_never_wins_wherever_it_lies(backend, V):
    for winner in (0, V - 1):
        rows = np.full((1, 1, V), np.nan)
        rows[0, 0, winner] = -1e30
        assert verify_greedy(np.zeros((1, 0), int), rows, backend=backend).to_lists() == [[winner]]


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_a_row_with_nothing_to_choose_is_bad_where_it_is_reached(backend, value):
    rows = np.zeros((2, 3, 4))
    rows[:, :, 1] = 1
    rows[0, 1], rows[1, 2] = value, value
    ids = [[1, 1], [1, 0]]
    result = verify_greedy(ids, rows, backend=backend, on_bad_row="status")
    assert result.to_lists() == [[], [1, 1]]
    with pytest.raises(BadRowError, match="row 0, position 1"):
        verify_greedy(ids, rows, backend=backend)


def test_what_lies_past_num_draft_is_never_read(backend):
    rows = np.full((2, 4, 5), np.nan)
    rows[0, :2], rows[1, :1] = np.eye(5)[2], np.eye(5)[4]
    ids = [[2, -1, 99], [-1, -1, 2**40]]
    assert verify_greedy(ids, rows, [1, 0], backend=backend).to_lists() == [[2, 2], [4]]


def test_the_argmax_may_be_given_instead(backend):
    rng = np.random.default_rng(0)
    rows = rng.random((30, 5, 3))
    ids, lengths = rng.integers(3, size=(30, 4)), rng.integers(5, size=30)
    expected = verify_greedy(ids, rows, lengths, backend=backend)
    target_argmax = rows.argmax(axis=-1)
    for result in (
        verify_greedy(ids, target_argmax, lengths),
        verify_greedy(ids, num_draft=lengths, target_argmax=target_argmax.astype(np.int32)),
    ):
        np.testing.assert_array_equal(result.token_ids, expected.token_ids)
        np.testing.assert_array_equal(result.num_emitted, expected.num_emitted)


@pytest.mark.parametrize("both", [{}, {"target_probs": [[[1.0]]], "target_argmax": [[0]]}])
def test_exactly_one_of_rows_and_argmax(both):
    with pytest.raises(ValueError, match="exactly one"):
        verify_greedy(np.zeros((1, 0), int), **both)


@pytest.mark.parametrize(
    ("ids", "target_argmax", "lengths", "message"),
    [
        ([[0], [0]], [[0, 0], [0, -1]], None, "target_argmax at row 1, position 1: found -1"),
        ([[0], [-1]], [[0, 0], [0, 0]], None, "draft_token_ids at row 1, position 0: found -1"),
        ([[0], [0]], [[0, 0], [0, 0]], [1, 2], r"num_draft at row 1: found 2; wanted .*0\.\.1"),
    ],
)
def test_a_bad_row_of_a_given_argmax(ids, target_argmax, lengths, message):
    arguments = {"target_argmax": target_argmax, "num_draft": lengths}
    with pytest.raises(BadRowError, match=message):
        verify_greedy(ids, **arguments)
    result = verify_greedy(ids, **arguments, on_bad_row="status")
    assert result.to_lists() == [[0, 0], []]
    assert result.status[1] != 0


def test_what_is_not_reached_of_a_given_argmax_may_be_padding():
    assert verify_greedy([[3, -1]], [[3, 5, -1]], [1]).to_lists() == [[3, 5]]
    assert verify_greedy([[3, 4]], [[2, -1, -1]]).to_lists() == [[2]]


@pytest.mark.parametrize(("B", "K"), [(0, 3), (3, 0), (0, 0)])
def test_empty_batches_and_rows_without_drafts(backend, B, K):
    ids = np.zeros((B, K), int)
    for target in (np.ones((B, K + 1, 2)), np.zeros((B, K + 1), int)):
        result = verify_greedy(ids, target, backend=backend)
        assert result.token_ids.shape == (B, K + 1)
        assert result.num_emitted.tolist() == [1] * B


# Greedy rows among sampled ones


@pytest.mark.parametrize("rule", ["token", "exact-match"])
@pytest.mark.parametrize("seeded", [False, True])
def test_greedy_rows_mix_with_sampled_ones_and_read_no_randomness(backend, case_of, rule, seeded):
    case = case_of(20, 4, 11)
    greedy = np.arange(20) % 3 == 0
    accept, final = case.uniforms()
    keys = {"seeds": np.arange(20), "positions": np.arange(20)}
    source = keys if seeded else {"uniforms": (accept, final)}
    options = {"rule": rule, "backend": backend}
    sampled = verify(*case, **source, **options).to_lists()
    best = verify_greedy(case.ids, case.p, case.num_draft, backend=backend).to_lists()
    accept[greedy], final[greedy], case.q[greedy] = np.nan, np.nan, np.nan
    mixed = verify(*case, **source, greedy=greedy, **options).to_lists()
    assert mixed == [(best if greedy[b] else sampled)[b] for b in range(20)]


def test_a_greedy_row_may_hold_logits(backend, case_of):
    case = case_of(4, 2, 6, ragged=False)
    case.p[1] = np.log(case.p[1] + 1e-9) * 5
    result = verify(
        *case, np.random.default_rng(0), greedy=[False, True, False, False], backend=backend
    )
    assert result.to_lists()[1] == plain(case.ids[1], case.p[1], 2)


@pytest.mark.parametrize("greedy", [np.zeros(4), [0, 1, 0, 1]])
def test_greedy_must_be_booleans(case_of, greedy):
    with pytest.raises(TypeError, match="greedy"):
        verify(*case_of(4, 2, 6), np.random.default_rng(0), greedy=greedy)
