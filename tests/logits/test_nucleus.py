"""Top-p without a sort of the whole row is top-p with one."""

# mypy: no-check-untyped-defs
from __future__ import annotations

import numpy as np
import pytest

from draftproof import SamplingParams
from draftproof.logits.nucleus import WIDE, quick_law
from draftproof.reference.processing import law

V = 2 * WIDE
RNG = np.random.default_rng(0)
ROWS = {
    "normal": RNG.normal(size=V),
    "peaked": RNG.normal(size=V) * 5,
    "flat": RNG.normal(size=V) * 1e-3,
    "all alike": np.zeros(V),
    "plateaus": np.round(RNG.normal(size=V) * 2) / 2,
    "one-hot": np.where(np.arange(V) == 7, 1e4, 0.0),
    "banned": np.where(RNG.random(V) < 0.3, -np.inf, RNG.normal(size=V)),
    "underflow": np.where(RNG.random(V) < 0.5, RNG.normal(size=V), -800.0),
    "two tokens": np.where(np.arange(V) < 2, np.arange(V), -np.inf),
    "denormal": np.where(np.arange(V) == 7, 5e-324, 0.0),
    "beyond float64": np.where(np.arange(V) == 7, 1.7e308, -1.7e308),
}
PARAMS = [
    SamplingParams(top_p=0.9),
    SamplingParams(top_p=1e-9),
    SamplingParams(top_p=0.999, temperature=0.3),
    SamplingParams(top_p=0.5, ties="keep"),
    SamplingParams(top_p=0.5, min_p=0.05, order="vllm"),
    SamplingParams(top_p=0.8, min_p=0.01, order="sglang"),
    SamplingParams(top_p=0.8, top_k=50, order="sglang"),
    SamplingParams(top_p=0.9, temperature=2.0, order="llama.cpp"),
    SamplingParams(top_p=0.9, typical_p=0.5),
]


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("params", PARAMS, ids=repr)
def test_it_is_the_definition(kind, params):
    np.testing.assert_array_equal(quick_law(ROWS[kind], params), law(ROWS[kind], params))


def test_the_public_fault_of_peaked_rows():
    """p = .949 and 102 tokens of .0005, top_p = .9497: the large one and two small ones."""
    p = np.zeros(V)
    p[5], p[100:202] = 0.949, 0.0005
    with np.errstate(divide="ignore"):
        kept = np.flatnonzero(quick_law(np.log(p), SamplingParams(top_p=0.9497)))
    assert kept.tolist() == [5, 100, 101]
