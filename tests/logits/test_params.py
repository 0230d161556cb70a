"""What a request may ask for, and what is refused by name."""

# mypy: no-check-untyped-defs
from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from draftproof import Order, ParamsBatch, SamplingParams, Ties
from draftproof.logits.masks import packed_bits, unpacked
from draftproof.logits.order import ORDERS, Filters

NUMBERS = (
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "typical_p",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
    "min_tokens",
)


def test_what_is_unset_has_no_effect():
    unset = SamplingParams(**dict.fromkeys(NUMBERS))
    assert repr(unset) == repr(SamplingParams()) == "SamplingParams()"
    assert unset.temperature == 1
    assert not unset.edits
    assert not unset.filters
    assert SamplingParams(top_k=-1).top_k == 0
    shown = SamplingParams(top_k=3, order="vllm", ties="keep")
    assert repr(shown) == "SamplingParams(top_k=3, order='vllm', ties='keep')"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", -0.1),
        ("temperature", math.nan),
        ("temperature", math.inf),
        ("temperature", 5e-324),
        ("temperature", 1.7e308),
        ("top_k", -2),
        ("top_p", 0.0),
        ("top_p", 1.01),
        ("min_p", -0.1),
        ("min_p", 1.1),
        ("typical_p", 0),
        ("repetition_penalty", 0),
        ("presence_penalty", math.nan),
        ("frequency_penalty", math.inf),
        ("penalty_window", -1),
        ("min_tokens", -1),
        ("seed", 2**64),
        ("logit_bias", {-1: 0.0}),
        ("logit_bias", {0: math.inf}),
        ("logit_bias", {0: math.nan}),
        ("eos_token_ids", [-1]),
        ("order", "beam"),
        ("ties", "random"),
        ("allowed_tokens", np.ones((2, 2, 2), dtype=bool)),
    ],
)
def test_values_out_of_range_are_refused_by_name(name, value):
    with pytest.raises(ValueError, match=rf"^{name}.*found .*wanted .*Fix: "):
        SamplingParams(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", "hot"),
        ("temperature", True),
        ("top_k", 1.5),
        ("top_k", False),
        ("logit_bias", [1.0]),
        ("logit_bias", {"a": 1.0}),
        ("eos_token_ids", 1.5),
        ("eos_token_ids", ["</s>"]),
        ("allowed_tokens", [1, 2]),
        ("banned_tokens", np.zeros(3)),
        ("seed", 0.5),
    ],
)
def test_values_of_another_type_are_refused_by_name(name, value):
    with pytest.raises(TypeError, match=rf"^{name}.*found .*wanted .*Fix: "):
        SamplingParams(**{name: value})


def test_a_parameter_that_no_such_field_has_is_no_parameter():
    with pytest.raises(TypeError, match="beam_width"):
        SamplingParams(beam_width=4)


@pytest.mark.parametrize(
    ("order", "name"),
    [
        ("transformers", "presence_penalty"),
        ("transformers", "frequency_penalty"),
        ("vllm", "typical_p"),
        ("sglang", "typical_p"),
    ],
)
def test_an_engine_without_a_parameter_refuses_it(order, name):
    with pytest.raises(ValueError, match=rf"^{name}: found 0.5 with order='{order}'"):
        SamplingParams(order=order, **{name: 0.5})


def test_min_tokens_needs_the_ends():
    with pytest.raises(ValueError, match="eos_token_ids"):
        SamplingParams(min_tokens=1)
    assert SamplingParams(min_tokens=1, eos_token_ids=7).eos_token_ids == (7,)


def test_every_order_is_described():
    assert set(ORDERS) == set(Order)
    assert {recipe.filters for recipe in ORDERS.values()} == set(Filters)
    assert SamplingParams(order="vllm").tie_policy is Ties.KEEP_TOP_K
    assert SamplingParams(order="vllm", ties="keep").tie_policy is Ties.KEEP


def test_numpy_scalars_are_numbers():
    params = SamplingParams(temperature=np.float32(0.5), top_k=np.int64(3))
    assert (params.temperature, params.top_k) == (0.5, 3)


def test_params_survive_a_pickle():
    assert (
        repr(pickle.loads(pickle.dumps(SamplingParams(top_p=0.5)))) == "SamplingParams(top_p=0.5)"
    )


def test_columns_are_the_requests_by_row():
    rows = [SamplingParams(top_k=2, order="sglang"), SamplingParams(temperature=0, seed=3)]
    batch = ParamsBatch.of(rows)
    assert batch.temperature.tolist() == [1, 0]
    assert batch.top_k.tolist() == [2, 0]
    assert batch.filter_codes.tolist() == [Filters.JOINT, Filters.SEQUENTIAL]
    assert batch.tie_codes.tolist() == [3, 0]
    assert batch.seeded.tolist() == [False, True]
    assert len(ParamsBatch.of([])) == 0
    assert ParamsBatch.alike(rows[0], 3).top_k.tolist() == [2, 2, 2]
    assert ParamsBatch.of([SamplingParams(top_k=2**63 - 1)]).top_k[0] > 0


@pytest.mark.parametrize("V", [1, 31, 32, 33, 100])
def test_packed_bits_are_the_mask(V):
    mask = np.random.default_rng(V).random((3, V)) < 0.5
    mask[0, V // 2] = True
    words = packed_bits(mask)
    assert words.shape == (3, -(-V // 32))
    np.testing.assert_array_equal(unpacked(words, V), mask)
    token = np.flatnonzero(mask[0])[-1]
    assert words[0, token // 32] >> np.uint32(token % 32) & 1
    signed = SamplingParams(allowed_tokens=words.view(np.int32)).allowed_tokens
    np.testing.assert_array_equal(signed, words)
