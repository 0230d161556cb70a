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
from bench.peers import PEERS, is_installed
from bench.reads import bytes_read, reads_of_cycle
from bench.sampling import verify_logits_of, verify_tree_logits_of
from draftproof.backends import load_backend
from draftproof.types import Trace

CASES_TO_RUN = [
    Case("shape", B=9, K=3, V=101),
    Case("shape", B=9, K=3, V=101, dtype="float64"),
    Case("shape", B=50, K=3, V=4),
    Case("flat-K", B=5, K=6, V=64, rejects_at=2),
]
OTHER_RULES = [
    Case("block", B=9, K=4, V=101, rule="block"),
    *(
        Case(rule, B=6, K=9, V=101, rule=rule, branching=(3, 2))
        for rule in ("rrs", "rrsw", "nss", "traversal")
    ),
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
    cycle = reads_of_cycle(inputs)
    for (num_emitted, p_at, q_at), truth in zip(cycle, reference_cycle(inputs), strict=True):
        np.testing.assert_array_equal(num_emitted, truth.num_emitted)
        np.testing.assert_array_equal(q_at == 0, trace_of(truth).is_bonus)
        for b, tau in enumerate(truth.num_accepted):
            np.testing.assert_array_equal(row_at(p_at[b], inputs), inputs.target_probs[b, tau])
            total += inputs.target_probs[b, tau].nbytes
            if not trace_of(truth).is_bonus[b]:
                np.testing.assert_array_equal(row_at(q_at[b], inputs), inputs.draft_probs[b, tau])
                total += inputs.draft_probs[b, tau].nbytes
    assert bytes_read(inputs, cycle) == round(total / CALLS)


def references(inputs):
    """The num_emitted of a cycle's calls, by the references."""
    rng, p, rule = make_rng(inputs.case), inputs.target_probs, inputs.case.rule
    if inputs.tree is not None:
        return [
            draftproof.verify_tree(inputs.tree, p, rng, rule=rule, backend="reference").num_emitted
            for _ in range(CALLS)
        ]
    ids, q = inputs.draft_token_ids, inputs.draft_probs
    return [
        draftproof.verify(ids, q, p, None, rng, rule=rule, backend="reference").num_emitted
        for _ in range(CALLS)
    ]


@pytest.mark.parametrize("case", OTHER_RULES, ids=lambda case: case.rule)
def test_other_rules_read_the_rows_named_and_no_others(case):
    """Beside single numbers at drafts: the rest of all other rows may be anything."""
    inputs = make_inputs(case)
    cycle = reads_of_cycle(inputs)
    named = {int(address) for reads in cycle for address in (*reads.p_at, *reads.q_at)}
    for laws in (inputs.target_probs, inputs.draft_probs):
        for b, place in np.ndindex(laws.shape[:2]):
            if laws[b, place].ctypes.data not in named:
                laws[b, place, np.setdiff1d(np.arange(case.V), inputs.draft_token_ids[b])] = 7
    for again, reads in zip(reads_of_cycle(inputs), cycle, strict=True):
        np.testing.assert_array_equal(again.num_emitted, reads.num_emitted)
    for address in {int(at) for at in (*cycle[0].p_at, *cycle[0].q_at)} - {0}:
        row = row_at(address, inputs)
        kept = row.copy()
        row[:] = np.where(np.isin(np.arange(case.V), inputs.draft_token_ids), row, 7)
        with pytest.raises(draftproof.BadRowError):
            reads_of_cycle(inputs)
        row[:] = kept


@pytest.mark.parametrize("case", OTHER_RULES, ids=lambda case: case.rule)
@pytest.mark.parametrize("name", ["floor", "draftproof"])
def test_contenders_of_other_rules_do_the_same_work(case, name):
    if name == "floor" and shutil.which(os.environ.get("CC", "cc")) is None:
        pytest.skip("no C compiler")
    if name == "draftproof" and not has_native():
        pytest.skip("no native kernel")
    inputs = make_inputs(case)
    contender = make_contender(name, inputs)
    contender.rewind()
    np.testing.assert_array_equal(contender.cycle(), references(inputs))


@needs_compiler
def test_the_floor_sums_the_residuals_and_the_bonus_rows(inputs):
    floor = Floor(inputs)
    floor.cycle()
    traces = map(trace_of, reference_cycle(inputs))
    masses = np.concatenate([np.where(t.is_bonus, 1, t.residual_mass) for t in traces])
    # V additions and V differences of numbers whose sum is at most 1, each rounded once.
    error = 2 * inputs.case.V * np.finfo(inputs.case.dtype).eps
    np.testing.assert_allclose(floor.sums, masses, rtol=0, atol=error)


@pytest.mark.parametrize("name", [name for name in THREADS if name not in PEERS])
def test_contenders_accept_the_same_drafts_in_every_cycle(name, inputs):
    if name == "floor" and shutil.which(os.environ.get("CC", "cc")) is None:
        pytest.skip("no C compiler")
    if name in ("draftproof", "draftproof-2") and not has_native():
        pytest.skip("no native kernel")
    contender = make_contender(name, inputs)
    for _ in range(2):
        contender.rewind()
        expected = [reads.num_emitted for reads in reads_of_cycle(inputs)]
        np.testing.assert_array_equal(contender.cycle(), expected)


@pytest.mark.filterwarnings("default")  # other people's code may warn
@pytest.mark.parametrize("name", PEERS)
def test_peers_leave_the_logits_as_they_are(name):
    """Or the next call would be given others."""
    if not is_installed(name):
        pytest.skip(f"{name} is not installed")
    inputs = make_inputs(Case("logits", B=1, K=3, V=101, logits=True))
    p, q = inputs.target_probs.copy(), inputs.draft_probs.copy()
    make_contender(name, inputs).cycle()
    np.testing.assert_array_equal(inputs.target_probs, p)
    np.testing.assert_array_equal(inputs.draft_probs, q)


@pytest.mark.parametrize("sampling", [None, ("top_p", 0.9), ("top_k", 5)])
def test_from_logits_all_rows_are_named_that_are_reached(sampling):
    if not has_native():
        pytest.skip("no native kernel")
    case = Case("logits", B=9, K=3, V=101, logits=True, sampling=sampling)
    inputs = make_inputs(case)
    contender, rng = make_contender("draftproof", inputs), make_rng(case)
    for reads, num_emitted in zip(reads_of_cycle(inputs), contender.cycle(), strict=True):
        truth = verify_logits_of(inputs, rng, num_threads=1, backend="reference").num_emitted
        np.testing.assert_array_equal(num_emitted, truth)
        np.testing.assert_array_equal(reads.num_emitted, truth)
        reached = [(b, i) for b, count in enumerate(truth) for i in range(count)]
        for (b, i), p_at, q_at in zip(reached, reads.p_at, reads.q_at, strict=True):
            np.testing.assert_array_equal(row_at(p_at, inputs), inputs.target_probs[b, i])
            assert (q_at == 0) == (i == case.K)


@pytest.mark.parametrize("sampling", [None, ("top_p", 0.9)])
def test_from_a_trees_logits_the_rows_on_the_path_are_named(sampling):
    if not has_native():
        pytest.skip("no native kernel")
    tree = Case("tree", B=5, K=9, V=101, rule="rrsw", branching=(3, 2))
    case = replace(tree, logits=True, sampling=sampling)
    inputs = make_inputs(case)
    contender, rng = make_contender("draftproof", inputs), make_rng(case)
    for reads, num_emitted in zip(reads_of_cycle(inputs), contender.cycle(), strict=True):
        truth = verify_tree_logits_of(inputs, rng, num_threads=1, backend="reference")
        np.testing.assert_array_equal(num_emitted, truth.num_emitted)
        np.testing.assert_array_equal(reads.num_emitted, truth.num_emitted)
        reached = [
            (b, context)
            for b, path in enumerate(truth.path)
            for context in (0, *(path[path >= 0] + 1))
        ]
        for (b, context), p_at, q_at in zip(reached, reads.p_at, reads.q_at, strict=True):
            np.testing.assert_array_equal(row_at(p_at, inputs), inputs.target_probs[b, context])
            assert (q_at == 0) == (context > 3), "leaves have no drafter's law"


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
