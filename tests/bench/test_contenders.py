"""All contenders do the same work, and the floor reads what the reference reads."""

from __future__ import annotations

import ctypes
import os
import shutil
from dataclasses import replace

import numpy as np
import pytest

import draftproof
from bench import plain_numpy
from bench.cases import Case
from bench.contenders import THREADS, make_contender
from bench.floor import Floor
from bench.inputs import CALLS, Inputs, make_inputs, make_rng
from bench.reads import bytes_read, num_emitted_of_cycle, row_addresses
from draftproof.backends import load_backend
from draftproof.types import Trace

CASES_TO_RUN = [
    Case("shape", B=9, K=3, V=101),
    Case("shape", B=9, K=3, V=101, dtype="float64"),
    Case("shape", B=50, K=3, V=4),
    Case("flat-K", B=5, K=6, V=64, rejects_at=2),
]

needs_compiler = pytest.mark.skipif(
    shutil.which(os.environ.get("CC", "cc")) is None, reason="no C compiler"
)


@pytest.fixture(params=CASES_TO_RUN, ids=lambda case: case.name)
def inputs(request):
    return make_inputs(request.param)


def reference_cycle(inputs: Inputs) -> list[draftproof.VerifyResult]:
    rng = make_rng(inputs.case)
    ids, q, p = inputs.draft_token_ids, inputs.draft_probs, inputs.target_probs
    return [
        draftproof.verify(ids, q, p, None, rng, backend="reference", return_trace=True)
        for _ in range(CALLS)
    ]


def trace_of(result: draftproof.VerifyResult) -> Trace:
    assert result.trace is not None
    return result.trace


def has_native():
    try:
        load_backend("native")
    except ValueError:
        return False
    return True


def row_at(address, inputs):
    """The numbers of one row, read from its address alone."""
    number = ctypes.c_float if inputs.case.dtype == "float32" else ctypes.c_double
    return np.ctypeslib.as_array((number * inputs.case.V).from_address(int(address)))


def test_the_rows_are_those_that_the_reference_reads(inputs):
    total = 0
    for num_emitted, truth in zip(
        num_emitted_of_cycle(inputs), reference_cycle(inputs), strict=True
    ):
        np.testing.assert_array_equal(num_emitted, truth.num_emitted)
        p_at, q_at = row_addresses(inputs, num_emitted)
        np.testing.assert_array_equal(q_at == 0, trace_of(truth).is_bonus)
        for b, tau in enumerate(truth.num_accepted):
            np.testing.assert_array_equal(row_at(p_at[b], inputs), inputs.target_probs[b, tau])
            total += inputs.target_probs[b, tau].nbytes
            if not trace_of(truth).is_bonus[b]:
                np.testing.assert_array_equal(row_at(q_at[b], inputs), inputs.draft_probs[b, tau])
                total += inputs.draft_probs[b, tau].nbytes
    assert bytes_read(inputs.case, num_emitted_of_cycle(inputs)) == round(total / CALLS)


@needs_compiler
def test_the_floor_sums_the_residuals_and_the_bonus_rows(inputs):
    floor = Floor(inputs)
    floor.cycle()
    traces = map(trace_of, reference_cycle(inputs))
    masses = np.concatenate([np.where(t.is_bonus, 1, t.residual_mass) for t in traces])
    # V additions and V differences of numbers whose sum is at most 1, each rounded once.
    error = 2 * inputs.case.V * np.finfo(inputs.case.dtype).eps
    np.testing.assert_allclose(floor.sums, masses, rtol=0, atol=error)


@pytest.mark.parametrize("name", THREADS)
def test_contenders_accept_the_same_drafts_in_every_cycle(name, inputs):
    if name == "floor" and shutil.which(os.environ.get("CC", "cc")) is None:
        pytest.skip("no C compiler")
    if name in ("draftproof", "draftproof-2") and not has_native():
        pytest.skip("no native kernel")
    contender = make_contender(name, inputs)
    for _ in range(2):
        contender.rewind()
        np.testing.assert_array_equal(contender.cycle(), num_emitted_of_cycle(inputs))


def test_the_straightforward_code_emits_the_reference_tokens_in_float64():
    inputs = make_inputs(replace(CASES_TO_RUN[1], V=16))
    rng = make_rng(inputs.case)
    for truth in reference_cycle(inputs):
        token_ids, num_emitted = plain_numpy.verify(
            inputs.draft_token_ids, inputs.draft_probs, inputs.target_probs, rng
        )
        np.testing.assert_array_equal(num_emitted, truth.num_emitted)
        np.testing.assert_array_equal(token_ids, truth.token_ids)


def test_an_unknown_contender_is_refused(inputs):
    with pytest.raises(ValueError, match="no contender is called 'fastest'"):
        make_contender("fastest", inputs)
