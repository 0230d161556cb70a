"""The definition of processing, against another one with plain sorts, and by hand."""

# mypy: no-check-untyped-defs
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftproof import SamplingParams
from draftproof.reference import processing
from draftproof.reference.processing import edit, law
from tests.logits.requests import ORDERS, plain_law, requests


def laws_of(logits, params, prompt=(), output=()):
    prompt, output = list(prompt), list(output)
    z = edit(np.array(logits, dtype=np.float64), params, prompt, output, params.allowed_tokens)
    return processing.greedy_law(z) if params.temperature == 0 else law(z, params)


@given(st.data())
def test_the_law_is_the_plain_one_on_random_logits(data):
    V = data.draw(st.integers(2, 9))
    params = data.draw(requests(V))
    logits = np.random.default_rng(data.draw(st.integers(0, 2**32))).normal(size=V) * 3
    texts = st.lists(st.integers(0, V - 1), max_size=4)
    prompt, output = data.draw(texts), data.draw(texts)
    np.testing.assert_allclose(
        laws_of(logits, params, prompt, output),
        plain_law(logits, params, prompt, output),
        rtol=1e-12,
    )


SHAPES = {
    "ties": np.array([1.0, 2.0, 2.0, 2.0, 1.0, 0.0, 0.0, 3.0]),
    "plateau": np.array([0.0] * 7 + [1.0]),
    "flat": np.zeros(8),
    "one-hot": np.array([-np.inf] * 3 + [0.5] + [-np.inf] * 4),
    "peaked": np.array([40.0, 1.0, 0.5, 0.25, 0.0, -1.0, -2.0, -3.0]),
    "two": np.array([5.0, 5.0, -np.inf, -np.inf, -900.0, -np.inf, -np.inf, -np.inf]),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("ties", ["lowest-id", "keep-top-k", "keep"])
def test_ties_and_extreme_shapes(shape, order, ties):
    for k in (0, 1, 3, 20):
        for p in (0.05, 0.45, 1.0):
            for q in (0.0, 0.3):
                params = SamplingParams(top_k=k, top_p=p, min_p=q, order=order, ties=ties)
                np.testing.assert_allclose(
                    laws_of(SHAPES[shape], params),
                    plain_law(SHAPES[shape], params, [], []),
                    rtol=1e-12,
                )


@pytest.mark.parametrize("order", ["standard", "llama.cpp"])
def test_large_rows_by_one_sort(order):
    temperature = 0.5
    rng = np.random.default_rng(3)
    V = 262_144
    for logits in (rng.normal(size=V), rng.normal(size=V) * 6, np.round(rng.normal(size=V), 1)):
        params = SamplingParams(top_k=1000, top_p=0.9, temperature=temperature, order=order)
        order_ = np.lexsort((np.arange(V), -logits))[:1000]
        T = 1.0 if order == "llama.cpp" else temperature
        w = np.exp((logits[order_] - logits.max()) / T)
        before = np.concatenate([[0], np.cumsum(w / w.sum())[:-1]])
        kept = order_[before < 0.9]
        expected = np.zeros(V)
        expected[kept] = np.exp((logits[kept] - logits.max()) / temperature)
        np.testing.assert_allclose(laws_of(logits, params), expected / expected.sum(), rtol=1e-12)


P = np.log([0.4, 0.3, 0.2, 0.1])


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("standard", [1, 0, 0, 0]),  # 0.4 / 0.7 has the mass already
        ("transformers", [1, 0, 0, 0]),
        ("vllm", [1, 0, 0, 0]),
        ("sglang", [4 / 7, 3 / 7, 0, 0]),  # 0.4 of the whole law has not
        ("llama.cpp", [1, 0, 0, 0]),
    ],
)
def test_joint_and_sequential_filters_differ(order, expected):
    params = SamplingParams(top_k=2, top_p=0.5, order=order)
    np.testing.assert_allclose(laws_of(P, params), expected, rtol=1e-12)


def test_filters_before_or_after_the_temperature():
    params = {"temperature": 0.1, "top_p": 0.5}
    np.testing.assert_allclose(laws_of(P, SamplingParams(**params)), [1, 0, 0, 0])
    late = laws_of(P, SamplingParams(**params, order="llama.cpp"))
    np.testing.assert_allclose(late, [1 / (1 + 0.75**10), 0.75**10 / (1 + 0.75**10), 0, 0])


def test_min_p_before_or_after_top_p():
    z = np.log([0.36, 0.3, 0.17, 0.17])
    both = {"min_p": 0.5, "top_p": 0.6}
    assert (laws_of(z, SamplingParams(**both)) > 0).tolist() == [True, True, False, False]
    vllm = laws_of(z, SamplingParams(**both, order="vllm"))
    assert (vllm > 0).tolist() == [True, True, False, False]
    both["top_p"] = 0.53  # 0.36 / 0.66 of what min-p keeps, 0.36 of the whole
    assert (laws_of(z, SamplingParams(**both)) > 0).sum() == 2
    assert (laws_of(z, SamplingParams(**both, order="vllm")) > 0).sum() == 1


def test_penalties_count_what_their_order_says():
    z, both = np.ones(3), {"repetition_penalty": 2.0, "presence_penalty": 0.5}
    prompt, output = [0, 1], [1]
    edits = {
        order: edit(z, SamplingParams(**both, order=order), prompt, output).tolist()
        for order in ("standard", "vllm", "sglang", "llama.cpp")
    }
    assert edits == {
        "standard": [0.5, 0.0, 1.0],
        "vllm": [0.5, 0.0, 1.0],
        "sglang": [1.0, 0.25, 1.0],  # the output alone; presence first
        "llama.cpp": [0.0, 0.0, 1.0],  # prompt and output alike
    }


def test_frequency_counts_each_time_and_negative_logits_are_multiplied():
    params = SamplingParams(frequency_penalty=0.5, repetition_penalty=2.0)
    assert edit(np.array([-1.0, 2.0]), params, [], [0, 1, 1]).tolist() == [-2.5, 0.0]


def test_bias_acts_before_or_after_the_repetition_penalty():
    bias = {"logit_bias": {0: -3.0}, "repetition_penalty": 2.0}
    assert edit(np.array([1.0, 0.0]), SamplingParams(**bias), [], [0])[0] == -4.0
    assert edit(np.array([1.0, 0.0]), SamplingParams(**bias, order="sglang"), [], [0])[0] == -2.5


def test_a_window_hides_the_older_text():
    params = SamplingParams(presence_penalty=1.0, penalty_window=2, order="llama.cpp")
    assert edit(np.zeros(4), params, [0, 1], [2]).tolist() == [0, -1, -1, 0]
    none = SamplingParams(presence_penalty=1.0, penalty_window=0)
    assert edit(np.zeros(2), none, [], [0, 1]).tolist() == [0, 0]


def test_ends_are_banned_until_the_output_is_long_enough():
    params = SamplingParams(min_tokens=2, eos_token_ids=[1])
    assert edit(np.zeros(2), params, [0, 0, 0], [0])[1] == -np.inf
    assert edit(np.zeros(2), params, [], [0, 0])[1] == 0


def test_nothing_brings_a_banned_token_back():
    params = SamplingParams(logit_bias={0: 100.0}, presence_penalty=-5.0, repetition_penalty=0.1)
    z = edit(np.array([-np.inf, 0.0]), params, [], [0])
    assert z[0] == -np.inf
    assert law(z, params).tolist() == [0, 1]


def test_a_tiny_temperature_is_no_overflow():
    assert law(np.array([1.0, 2.0, 2.0]), SamplingParams(temperature=1e-300)).tolist() == [
        0,
        0.5,
        0.5,
    ]
