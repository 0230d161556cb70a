"""`verify_logits`: laws made of logits, the rules of `verify`, and what comes out beside tokens."""

# mypy: no-check-untyped-defs
from __future__ import annotations

import inspect

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftproof import (
    RULES,
    BackendUnavailableError,
    DraftLogits,
    ParamsBatch,
    SamplingParams,
    SparseProbs,
    process,
    verify,
    verify_logits,
    verify_logits_packed,
    verify_packed,
)
from draftproof.backends import load_logits_backend
from draftproof.logits.masks import packed_bits
from tests.logits.requests import requests

COLD, WARM = SamplingParams(temperature=0), SamplingParams()


def case(seed, B=4, K=3, V=7):
    """Ragged drafts with logits on both sides; what is never read holds NaN, or -1."""
    rng = np.random.default_rng(seed)
    target, draft = rng.normal(size=(B, K + 1, V)) * 2, rng.normal(size=(B, K, V)) * 2
    ids, lengths = rng.integers(0, V, (B, K)), rng.integers(0, K + 1, B)
    never = np.arange(K) >= lengths[:, None]
    ids[never], draft[never], target[:, 1:][never] = -1, np.nan, np.nan
    history = [rng.integers(0, V, rng.integers(0, 4)).tolist() for _ in range(B)]
    return ids, draft, target, lengths, history, (rng.random((B, K)), rng.random(B))


def assert_same(result, expected):
    np.testing.assert_array_equal(result.token_ids, expected.token_ids)
    np.testing.assert_array_equal(result.num_emitted, expected.num_emitted)
    np.testing.assert_array_equal(result.status, expected.status)


# The law is that of `process`, on both sides and in every row


@given(st.data())
def test_it_is_verify_on_processed_rows(data):
    B, K, V = 3, 2, 5
    rule = data.draw(st.sampled_from(["token", "block", "greedy-block", "exact-match"]))
    rows = data.draw(st.lists(requests(V), min_size=B, max_size=B))
    drafters = data.draw(st.lists(requests(V), min_size=B, max_size=B))
    ids, draft, target, lengths, history, uniforms = case(data.draw(st.integers(0, 999)), B, K, V)
    texts = {"num_draft": lengths, "draft_token_ids": ids}
    p = process(target, rows, history, **texts)
    steps = np.concatenate([draft, np.full((B, 1, V), np.nan)], axis=1)
    q = process(steps, drafters, history, num_draft=lengths - 1, draft_token_ids=ids)[:, :-1]
    cold = [params.temperature == 0 for params in rows]
    expected = verify(ids, q, p, lengths, uniforms=uniforms, rule=rule, greedy=cold)
    for backend in ("numpy", "reference"):
        result = verify_logits(
            ids, DraftLogits(draft), target, lengths, uniforms=uniforms, rule=rule,
            params=rows, draft_params=drafters, history=history, backend=backend,
        )  # fmt: skip
        assert_same(result, expected)


def test_gumbel_races_on_processed_rows(how):
    ids, _, target, lengths, history, _ = case(5)
    params = SamplingParams(top_k=3, frequency_penalty=1.0)
    keys = {"seeds": [1, 2, 3, 4], "positions": [9, 8, 7, 6], "rule": "gumbel"}
    p = process(target, params, history, num_draft=lengths, draft_token_ids=ids)
    result = verify_logits(
        ids, None, target, lengths, params=params, history=history, backend=how, **keys
    )
    assert_same(result, verify(ids, None, p, lengths, **keys))


def test_the_drafter_samples_as_the_target_unless_it_says_otherwise(how):
    ids, draft, target, lengths, history, uniforms = case(1)
    params = SamplingParams(temperature=0.7, top_p=0.8, repetition_penalty=1.4)
    mask = np.ones(target.shape, dtype=bool)
    mask[..., 2] = False
    call = {"uniforms": uniforms, "params": params, "history": history, "backend": how}
    alone = verify_logits(ids, DraftLogits(draft), target, lengths, token_mask=mask, **call)
    said = verify_logits(
        ids, DraftLogits(draft), target, lengths, draft_params=params, token_mask=mask,
        draft_token_mask=mask[:, :-1], **call,
    )  # fmt: skip
    assert_same(alone, said)


@pytest.mark.parametrize("draft", ["dense", "sparse", "none"])
def test_probabilities_are_taken_as_they_are(how, draft):
    ids, logits, target, lengths, _, uniforms = case(2)
    params = SamplingParams(temperature=0.5, min_p=0.1)
    valid = np.arange(3) < lengths[:, None]
    q = np.full(logits.shape, np.nan)
    q[valid] = process(logits[valid])
    law = {
        "dense": q,
        "sparse": SparseProbs(np.broadcast_to(np.arange(7), q.shape), q),
        "none": None,
    }[draft]
    p = process(target, params, num_draft=lengths)
    result = verify_logits(ids, law, target, lengths, uniforms=uniforms, params=params, backend=how)
    assert_same(result, verify(ids, law, p, lengths, uniforms=uniforms))


def test_packed_rows_are_padded_rows(how):
    ids, draft, target, lengths, history, (accept, final) = case(3, B=6)
    rng = np.random.default_rng(0)
    mask = rng.random(target.shape) < 0.8
    mask[..., 0] = True
    rows = [
        SamplingParams(top_k=2), COLD, SamplingParams(presence_penalty=1.5), WARM,
        SamplingParams(order="sglang", top_p=0.5, top_k=3), SamplingParams(logit_bias={1: 2.0}),
    ]  # fmt: skip
    call = {"params": rows, "history": history, "backend": how, "logprobs": 2}
    expected = verify_logits(
        ids, DraftLogits(draft), target, lengths, uniforms=(accept, final), token_mask=mask, **call
    )
    valid = np.arange(3) < lengths[:, None]
    read = np.arange(4) <= lengths[:, None]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    for words in (mask[read], packed_bits(mask[read])):
        result = verify_logits_packed(
            ids[valid], DraftLogits(draft[valid]), target[read], offsets,
            uniforms=(accept[valid], final), token_mask=words, **call,
        )  # fmt: skip
        K = result.token_ids.shape[1]
        np.testing.assert_array_equal(result.token_ids, expected.token_ids[:, :K])
        np.testing.assert_array_equal(
            result.logprobs.token_logprobs, expected.logprobs.token_logprobs[:, :K]
        )


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16])
def test_dtypes_and_strides(how, dtype):
    ids, draft, target, lengths, history, uniforms = case(4)
    narrow = [side.astype(dtype) for side in (draft, target)]
    params = SamplingParams(top_k=4, repetition_penalty=2.0)
    call = {"uniforms": uniforms, "params": params, "history": history, "backend": how}
    wide = [side.astype(np.float64) for side in narrow]
    expected = verify_logits(ids, DraftLogits(wide[0]), wide[1], lengths, **call)
    result = verify_logits(ids, DraftLogits(narrow[0]), narrow[1], lengths, **call)
    assert_same(result, expected)
    strided = [np.repeat(side, 2, axis=-1)[..., ::2] for side in narrow]
    for side in strided:
        side.flags.writeable = False
    assert_same(verify_logits(ids, DraftLogits(strided[0]), strided[1], lengths, **call), expected)


def test_a_narrow_draft_vocabulary_has_no_logits_for_the_rest(how):
    ids, draft, target, lengths, history, uniforms = case(6)
    ids = np.minimum(ids, 4)
    params = SamplingParams(presence_penalty=1.0)
    call = {"uniforms": uniforms, "params": params, "history": history, "backend": how}
    padded = np.concatenate([draft[..., :5], np.full((4, 3, 2), -np.inf)], axis=-1)
    expected = verify_logits(ids, DraftLogits(padded), target, lengths, **call)
    result = verify_logits(
        ids, DraftLogits(draft[..., :5]), target, lengths, allow_narrow_draft=True, **call
    )
    assert_same(result, expected)


def test_a_drafter_with_ids_of_its_own(how):
    ids, draft, target, lengths, _, uniforms = case(7)
    ids, id_map = np.minimum(ids, 2), np.array([5, 0, 3])
    params = SamplingParams(temperature=0.5, top_k=2)
    valid = np.arange(3) < lengths[:, None]
    q = np.full((4, 3, 3), np.nan)
    q[valid] = process(draft[valid][:, :3], params)
    options = {"uniforms": uniforms, "draft_to_target": id_map}
    expected = verify(ids, q, process(target, params, num_draft=lengths), lengths, **options)
    laws = DraftLogits(draft[..., :3]), target
    assert_same(verify_logits(ids, *laws, lengths, params=params, backend=how, **options), expected)
    biased = SamplingParams(logit_bias={1: 1.0})
    with pytest.raises(ValueError, match=r"^params: found penalties, biases or masks"):
        verify_logits(ids, *laws, lengths, params=biased, **options)


def test_a_history_holds_ids_that_a_drafter_of_its_own_ids_has_not(how):
    result = verify_logits(
        [[1]], DraftLogits(np.zeros((1, 1, 2))), np.array([[[0.0, 0, 1, 0], [0, 0, 5, 0]]]),
        params=SamplingParams(repetition_penalty=2.0, temperature=0.1), history=[[2]],
        draft_params=SamplingParams(), draft_to_target=[1, 3], uniforms=([[0.0]], [0.5]),
        backend=how,
    )  # fmt: skip
    assert result.to_lists() == [[3, 2]]


# Greedy rows


@pytest.mark.parametrize("rule", list(RULES))
def test_greedy_rows_are_the_argmax_of_edited_logits(how, rule):
    logits = np.array([[[1.0, 3.0, 3.0], [2.5, 1.0, 2.5], [0.0, 0.0, 1.0]]])
    params = SamplingParams(temperature=0, presence_penalty=1.0, top_p=0.01)
    result = verify_logits(
        [[1, 2]], None, logits, params=params, history=[[]], rule=rule, backend=how,
        seeds=[0], positions=[0],
    )  # fmt: skip
    assert result.to_lists() == [[1, 0]], "ties to the lowest id"
    penalised = verify_logits(
        [[1, 2]], None, logits, params=params, history=[[1]], rule=rule, backend=how,
        seeds=[0], positions=[0],
    )  # fmt: skip
    assert penalised.to_lists() == [[2]], "3 - 1 < 3"


def test_greedy_overrules_the_temperature_of_single_rows(how):
    logits = np.log([[[0.6, 0.4]], [[0.6, 0.4]]])
    result = verify_logits(
        np.zeros((2, 0), int), None, logits, uniforms=(np.zeros((2, 0)), [0.9, 0.9]),
        greedy=[True, False], backend=how,
    )  # fmt: skip
    assert result.to_lists() == [[0], [1]]


def test_tensors_of_torch(how):
    torch = pytest.importorskip("torch")
    ids, draft, target, lengths, history, uniforms = case(4)
    params = SamplingParams(top_k=4, repetition_penalty=2.0)
    call = {"uniforms": uniforms, "params": params, "history": history, "backend": how}
    for dtype in (torch.float32, torch.bfloat16):
        tensors = [torch.from_numpy(side).to(dtype) for side in (draft, target)]
        arrays = [tensor.to(torch.float64).numpy() for tensor in tensors]
        expected = verify_logits(ids, DraftLogits(arrays[0]), arrays[1], lengths, **call)
        result = verify_logits(ids, DraftLogits(tensors[0]), tensors[1], lengths, **call)
        assert_same(result, expected)


def test_a_tiny_ratio_keeps_its_relative_precision(how):
    target = np.array([[[0.0, np.log(1e-9)], [0.0, 0.0]]])
    draft = DraftLogits([[[np.log(1e-9), 0.0]]])
    for u, accepted in ((1.01e-9, 0), (0.99e-9, 1)):
        result = verify_logits([[1]], draft, target, uniforms=([[u]], [0.5]), backend=how)
        assert result.num_accepted.tolist() == [accepted]


# Seeds of requests


def test_a_request_with_a_seed_has_its_tokens_alone_and_in_company(how):
    ids, draft, target, lengths, _, _ = case(8, B=5)
    seeds = [1, None, 2, None, 3]
    rows = [SamplingParams(seed=seed, top_k=5) for seed in seeds]
    positions = np.arange(5) + 10
    result = verify_logits(
        ids, DraftLogits(draft), target, lengths, np.random.default_rng(4), params=rows,
        positions=positions, backend=how,
    )  # fmt: skip
    for row in (0, 2, 4):
        one = slice(row, row + 1)
        alone = verify_logits(
            ids[one], DraftLogits(draft[one]), target[one], lengths[one], params=rows[row],
            positions=positions[one], backend=how,
        )  # fmt: skip
        assert alone.to_lists()[0] == result.to_lists()[row]
    free = verify_logits(
        ids, DraftLogits(draft), target, lengths, np.random.default_rng(4),
        params=SamplingParams(top_k=5), backend=how,
    )  # fmt: skip
    assert [result.to_lists()[row] for row in (1, 3)] == [free.to_lists()[row] for row in (1, 3)]


def test_seeds_in_params_are_never_dropped():
    ids, target, seeded = [[0]], np.zeros((1, 2, 3)), SamplingParams(seed=1)
    keyed = {"params": seeded, "positions": [0]}
    with pytest.raises(ValueError, match=r"^seeds: .*seed=1"):
        verify_logits(ids, None, target, seeds=[3], **keyed)
    with pytest.raises(ValueError, match=r"^uniforms: .*seed=1"):
        verify_logits(ids, None, target, uniforms=([[0.5]], [0.5]), params=seeded)
    with pytest.raises(ValueError, match=r"^positions"):
        verify_logits(ids, None, target, params=seeded)
    both = {"params": [seeded, WARM], "positions": [0, 0]}
    with pytest.raises(ValueError, match="no seed in the params of row 1"):
        verify_logits(ids * 2, None, np.zeros((2, 2, 3)), **both)
    with pytest.raises(ValueError, match="no seed in the params of row 1"):
        verify_logits(
            ids * 2, None, np.zeros((2, 2, 3)), rng=np.random.default_rng(0), rule="gumbel", **both
        )
    both["params"] = [seeded, COLD]
    assert verify_logits(ids * 2, None, np.zeros((2, 2, 3)), **both).num_emitted.all()


# What comes out beside the tokens


@given(st.data())
def test_logprobs_are_of_the_row_that_emitted_the_token(data):
    B, K, V, n = 3, 2, 5, 3
    rows = data.draw(st.lists(requests(V, greedy=False), min_size=B, max_size=B))
    ids, _, target, lengths, history, uniforms = case(data.draw(st.integers(0, 999)), B, K, V)
    p = process(target, rows, history, num_draft=lengths, draft_token_ids=ids)
    result = verify_logits(
        ids, None, target, lengths, uniforms=uniforms, params=rows, history=history, logprobs=n
    )
    logs = result.logprobs
    for b, tokens in enumerate(result.to_lists()):
        for i, token in enumerate(tokens):
            assert logs.token_logprobs[b, i] == pytest.approx(np.log(p[b, i, token]), rel=1e-9)
            assert logs.token_ranks[b, i] == 1 + (p[b, i] > p[b, i, token]).sum()
            top = np.lexsort((np.arange(V), -p[b, i]))[:n]
            top = top[p[b, i, top] > 0]
            assert logs.top_token_ids[b, i, : len(top)].tolist() == top.tolist()
            assert (logs.top_token_ids[b, i, len(top) :] == -1).all()
            np.testing.assert_allclose(logs.top_logprobs[b, i, : len(top)], np.log(p[b, i, top]))
        assert np.isnan(logs.token_logprobs[b, len(tokens) :]).all()
        assert (logs.token_ranks[b, len(tokens) :] == 0).all()


def test_raw_logprobs_are_of_the_logits_as_given(how):
    target = np.log([[[0.5, 0.3, 0.2]]])
    params = SamplingParams(temperature=0.1, top_k=1, logit_bias={2: 50.0})
    call = {"uniforms": (np.zeros((1, 0)), [0.5]), "params": params, "backend": how}
    ids = np.zeros((1, 0), int)
    raw = verify_logits(ids, None, target, logprobs=3, logprobs_mode="raw", **call)
    assert raw.to_lists() == [[2]]
    assert raw.logprobs.token_logprobs[0, 0] == pytest.approx(np.log(0.2))
    assert raw.logprobs.top_token_ids.tolist() == [[[0, 1, 2]]]
    assert raw.logprobs.token_ranks.tolist() == [[3]]
    processed = verify_logits(ids, None, target, logprobs=0, **call)
    assert processed.logprobs.token_logprobs.tolist() == [[0.0]]
    assert processed.logprobs.top_token_ids.shape == (1, 1, 0)


def test_greedy_logprobs_are_no_zeros(how):
    result = verify_logits(
        np.zeros((1, 0), int), None, np.log([[[0.5, 0.3, 0.2]]]), params=COLD, logprobs=1,
        uniforms=(np.zeros((1, 0)), [0.5]), backend=how,
    )  # fmt: skip
    assert result.logprobs.token_logprobs[0, 0] == pytest.approx(np.log(0.5))


def test_a_logarithm_beyond_float64_lists_no_token(how):
    logits = np.array([[[1.7e308, -1.7e308, 1.7e308]]])
    result = verify_logits(
        np.zeros((1, 0), int), None, logits, uniforms=(np.zeros((1, 0)), [0.1]), logprobs=3,
        backend=how,
    )  # fmt: skip
    assert result.logprobs.top_token_ids.tolist() == [[[0, 2, -1]]]
    assert np.isnan(result.logprobs.top_logprobs[0, 0, 2])


def test_expected_acceptance_where_rows_were_read(how):
    target = np.log([[[0.6, 0.4], [0.5, 0.5], [0.5, 0.5]]] * 2)
    draft = DraftLogits(np.log([[[0.2, 0.8], [0.9, 0.1]]] * 2))
    result = verify_logits(
        [[0, 0], [1, 0]], draft, target, uniforms=([[0.5, 0.5], [0.9, 0.5]], [0.5, 0.5]),
        backend=how, return_acceptance=True, return_trace=True,
    )  # fmt: skip
    assert result.num_accepted.tolist() == [2, 0]
    np.testing.assert_allclose(result.acceptance, [[0.6, 0.6], [0.6, np.nan]])
    assert result.trace.ratios[0].tolist() == pytest.approx([3.0, 5 / 9])


def test_results_carry_no_logprobs_unless_asked():
    result = verify_logits(np.zeros((1, 0), int), None, [[[0.0]]], rng=np.random.default_rng(0))
    assert result.logprobs is None
    assert result.acceptance is None
    assert verify_packed([], None, [[1.0]], [0, 0], np.random.default_rng(0)).logprobs is None


# Arguments


def test_it_takes_every_keyword_of_verify():
    own = inspect.signature(verify_logits).parameters
    for name, parameter in inspect.signature(verify).parameters.items():
        if name not in ("draft_probs", "target_probs"):
            assert own[name].default == parameter.default
    packed = set(inspect.signature(verify_logits_packed).parameters)
    assert set(own) - packed == {"num_draft"}


def test_columns_may_be_built_once(how):
    ids, draft, target, lengths, _, uniforms = case(9)
    rows = [SamplingParams(top_k=k) for k in (1, 2, 3, 4)]
    call = {"uniforms": uniforms, "backend": how}
    expected = verify_logits(ids, DraftLogits(draft), target, lengths, params=rows, **call)
    columns = ParamsBatch.of(rows)
    assert_same(
        verify_logits(ids, DraftLogits(draft), target, lengths, params=columns, **call), expected
    )


def test_a_missing_kernel_is_named():
    with pytest.raises(BackendUnavailableError, match="greedy-block"):
        load_logits_backend("native", "greedy-block")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"draft_params": WARM}, ValueError, "^draft_params: .*no DraftLogits"),
        ({"draft_token_mask": np.ones((1, 1, 3), bool)}, ValueError, "^draft_token_mask"),
        ({"token_mask": np.ones((1, 1, 3), bool)}, ValueError, "^token_mask: found shape"),
        ({"logprobs": -1}, ValueError, "^logprobs"),
        ({"logprobs": True}, ValueError, "^logprobs"),
        ({"logprobs_mode": "cooked"}, ValueError, "^logprobs_mode"),
        ({"return_acceptance": 1}, ValueError, "^return_acceptance"),
        ({"rule": "typical"}, ValueError, "^rule"),
        ({"greedy": [1]}, TypeError, "^greedy"),
        ({"params": SamplingParams(allowed_tokens=np.ones((1, 3), bool))}, ValueError, "params"),
        ({"params": SamplingParams(repetition_penalty=2)}, ValueError, "^history"),
        ({"draft": DraftLogits(np.zeros((1, 1, 2)))}, ValueError, "^draft.logits"),
        ({"draft": DraftLogits(np.zeros((1, 2, 3)))}, ValueError, "^draft.logits"),
        ({"draft": np.zeros((1, 1, 2))}, ValueError, "^draft at its last axis"),
        ({"target_logits": np.zeros((1, 1, 3))}, ValueError, "^target_logits"),
        ({"target_logits": np.zeros((1, 2, 3), dtype=int)}, TypeError, "^target_logits"),
    ],
)
def test_what_cannot_be_honoured_is_refused(arguments, error, message):
    call = {"draft": None, "target_logits": np.zeros((1, 2, 3)), **arguments}
    with pytest.raises(error, match=message):
        verify_logits([[0]], call.pop("draft"), call.pop("target_logits"),
                      uniforms=([[0.5]], [0.5]), **call)  # fmt: skip


@pytest.mark.parametrize(("B", "K"), [(0, 3), (3, 0), (0, 0)])
def test_empty_shapes(how, B, K):
    result = verify_logits(
        np.zeros((B, K), int), DraftLogits(np.zeros((B, K, 5))), np.zeros((B, K + 1, 5)),
        rng=np.random.default_rng(0), params=SamplingParams(top_k=2, presence_penalty=1),
        history=[[]] * B, backend=how, logprobs=1, return_acceptance=True,
    )  # fmt: skip
    assert result.token_ids.shape == (B, K + 1)
    assert result.acceptance.shape == (B, K)
