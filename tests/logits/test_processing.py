"""`process`: texts, drafts, masks and bad rows over a batch; the fast way equals the definition."""

# mypy: no-check-untyped-defs
from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftproof import BadRowError, SamplingParams, bfloat16_of_words, process
from draftproof.logits.edits import logit_edits
from draftproof.logits.masks import packed_bits
from draftproof.reference.processing import edit
from tests.logits.requests import plain_law, requests

BACKENDS = ["numpy", "reference"]


@pytest.fixture(params=BACKENDS)
def how(request):
    return request.param


def case(seed, B, L, V):
    rng = np.random.default_rng(seed)
    texts = [[rng.integers(0, V, rng.integers(0, 5)).tolist() for _ in range(B)] for _ in range(2)]
    return rng.normal(size=(B, L, V)) * 3, rng.integers(0, V, (B, L - 1)), *texts


@given(st.data())
def test_position_i_sees_the_drafts_before_it(data):
    V = data.draw(st.integers(2, 6))
    rows = data.draw(st.lists(requests(V), min_size=1, max_size=3))
    logits, drafts, prompts, history = case(data.draw(st.integers(0, 2**32)), len(rows), 3, V)
    texts = {"prompts": prompts, "draft_token_ids": drafts}
    laws = process(logits, rows, history, **texts)
    np.testing.assert_array_equal(
        laws, process(logits, rows, history, **texts, backend="reference")
    )
    for b, params in enumerate(rows):
        for i in range(3):
            text = [*history[b], *drafts[b, :i].tolist()]
            plain = plain_law(logits[b, i], params, prompts[b], text)
            np.testing.assert_allclose(laws[b, i], plain, rtol=1e-12)


@given(st.data())
def test_sparse_edits_are_the_definition_bit_for_bit(data):
    V = data.draw(st.integers(2, 8))
    params = data.draw(requests(V))
    logits, _, (prompt,), (output,) = case(data.draw(st.integers(0, 2**32)), 1, 1, V)
    ids, values = logit_edits(
        logits[0, 0], params, np.array(prompt, dtype=int), np.array(output, dtype=int)
    )
    edited = logits[0, 0].copy()
    edited[ids] = values
    np.testing.assert_array_equal(edited, edit(logits[0, 0], params, prompt, output))
    assert (np.diff(ids) > 0).all()


def test_the_default_is_the_softmax(how):
    logits = np.array([[0.0, np.log(3)], [-np.inf, 5.0]])
    np.testing.assert_allclose(process(logits, backend=how), [[0.25, 0.75], [0, 1]])


def test_greedy_is_the_lowest_id_of_the_largest(how):
    cold = SamplingParams(temperature=0, top_p=0.1, typical_p=0.1)
    logits = [[1.0, 3.0, 3.0], [np.nan, -np.inf, 0.0]]
    assert process(logits, cold, backend=how).tolist() == [[0, 1, 0], [0, 0, 1]]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16])
def test_every_dtype_is_taken_as_its_exact_numbers(how, dtype):
    narrow = np.random.default_rng(0).normal(size=(3, 40)).astype(dtype)
    params = SamplingParams(top_k=5, repetition_penalty=1.3)
    expected = process(narrow.astype(np.float64), params, [[1, 2]] * 3, backend=how)
    np.testing.assert_array_equal(process(narrow, params, [[1, 2]] * 3, backend=how), expected)
    if dtype == ml_dtypes.bfloat16:
        marked = bfloat16_of_words(narrow.view(np.uint16))
        np.testing.assert_array_equal(process(marked, params, [[1, 2]] * 3, backend=how), expected)


def test_words_without_a_mark_are_no_logits():
    with pytest.raises(TypeError, match="bfloat16"):
        process(np.zeros((1, 4), dtype=np.uint16))
    with pytest.raises(TypeError, match="words"):
        bfloat16_of_words(np.zeros(3))


@pytest.mark.parametrize("packed", [False, True])
def test_masks_of_requests_and_of_positions_are_joined(how, packed):
    V = 40
    form = packed_bits if packed else np.asarray
    each = np.random.default_rng(1).random((2, 2, V)) < 0.7
    allowed, banned = np.random.default_rng(2).random((2, V)) < 0.6
    per_position = np.random.default_rng(3).random((2, V)) < 0.7
    rows = [
        SamplingParams(allowed_tokens=form(allowed), banned_tokens=form(banned)),
        SamplingParams(allowed_tokens=form(per_position)),
    ]
    laws = process(np.zeros((2, 2, V)), rows, token_mask=form(each), backend=how)
    expected = np.stack([each[0] & allowed & ~banned, each[1] & per_position])
    np.testing.assert_array_equal(laws > 0, expected)


@pytest.mark.parametrize(
    ("row", "place", "found"),
    [
        ([0.0, np.nan, 0.0], "row 1, position 0, token 1", "nan"),
        ([0.0, 0.0, np.inf], "row 1, position 0, token 2", "inf"),
        ([-np.inf] * 3, "row 1, position 0", "no token left"),
    ],
)
def test_a_bad_row_is_named_and_the_others_are_right(how, row, place, found):
    logits = [[1.0, 2.0, 3.0], row, [3.0, 2.0, 1.0]]
    with pytest.raises(BadRowError, match=f"^logits at {place}: found {found}") as caught:
        process(logits, backend=how)
    assert caught.value.row == 1
    laws = process(logits, on_bad_row="status", backend=how)
    assert np.isnan(laws).all(axis=1).tolist() == [False, True, False]
    np.testing.assert_array_equal(laws[[0, 2]], process([logits[0], logits[2]], backend=how))


def test_a_banned_token_may_be_nan_and_all_banned_is_bad(how):
    mask = np.array([True, False, True])
    params = SamplingParams(allowed_tokens=mask)
    np.testing.assert_allclose(process([[0, np.nan, 0]], params, backend=how), [[0.5, 0, 0.5]])
    nothing = SamplingParams(banned_tokens=np.ones(3, dtype=bool))
    with pytest.raises(BadRowError, match="no token left"):
        process([[0.0, 0, 0]], nothing, backend=how)
    with pytest.raises(BadRowError, match="no token left"):
        process([[0.0, 1]], SamplingParams(logit_bias={0: -math.inf, 1: -math.inf}), backend=how)


def test_rows_past_the_drafts_are_not_read(how):
    logits = np.full((2, 3, 2), np.nan)
    logits[0, :1] = logits[1, :2] = 0
    laws = process(logits, num_draft=[0, 1], draft_token_ids=[[-1, 9], [0, -1]], backend=how)
    assert np.isnan(laws[..., 0]).tolist() == [[False, True, True], [False, False, True]]


def test_inputs_are_not_written_to(how):
    logits = np.zeros((1, 4))
    logits.flags.writeable = False
    mask = np.ones((1, 4), dtype=bool)
    process(
        logits, SamplingParams(repetition_penalty=2, top_k=2), [[1]], token_mask=mask, backend=how
    )
    assert mask.all()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"params": SamplingParams(presence_penalty=1)}, ValueError, "^history: .*row 0"),
        ({"params": [SamplingParams()] * 3}, ValueError, "^params: found 3"),
        ({"params": [SamplingParams(), 1]}, TypeError, "^params at row 1"),
        ({"params": {"temperature": 1}}, TypeError, "^params: found a dict"),
        ({"params": SamplingParams(logit_bias={9: 1})}, ValueError, "logit_bias.*0..2"),
        (
            {"params": SamplingParams(min_tokens=1, eos_token_ids=(3,)), "history": [[], []]},
            ValueError,
            "eos_token_ids.*0..2",
        ),
        (
            {"params": SamplingParams(presence_penalty=1), "history": [[0], [3]]},
            ValueError,
            "^history at row 1, entry 0: found 3",
        ),
        ({"params": SamplingParams(presence_penalty=1), "history": [[0]]}, ValueError, "found 1"),
        ({"params": SamplingParams(presence_penalty=1), "history": 3}, TypeError, "^history"),
        ({"params": SamplingParams(allowed_tokens=np.ones(4, bool))}, ValueError, "allowed_tokens"),
        ({"token_mask": np.ones((2, 4), bool)}, ValueError, "^token_mask: found shape"),
        ({"token_mask": np.ones((2, 3))}, TypeError, "^token_mask"),
        ({"backend": "native"}, ValueError, "^backend"),
        ({"on_bad_row": "ignore"}, ValueError, "^on_bad_row"),
    ],
)
def test_what_cannot_be_honoured_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        process(np.zeros((2, 3)), **arguments)


def test_positions_with_penalties_need_their_drafts():
    params = SamplingParams(presence_penalty=1)
    with pytest.raises(ValueError, match=r"^draft_token_ids: found none"):
        process(np.zeros((1, 2, 3)), params, [[]])
    with pytest.raises(ValueError, match="at least 2 columns"):
        process(np.zeros((1, 3, 3)), params, [[]], draft_token_ids=[[0]])


def test_empty_batches():
    assert process(np.zeros((0, 5))).shape == (0, 5)
    assert process(np.zeros((0, 3, 5)), []).shape == (0, 3, 5)
