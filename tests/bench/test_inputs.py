"""The benchmark's inputs are lawful, repeatable and as realistic as they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import draftproof
from bench.cases import CASES, MEMORY_CASE, Case
from bench.contenders import THREADS
from bench.inputs import make_inputs, make_rng
from bench.reads import reads_of_cycle

SMALL = Case("shape", B=40, K=3, V=1_000)


def test_names_are_unique():
    names = [case.name for case in (*CASES, MEMORY_CASE)]
    assert len(set(names)) == len(names)


def test_every_contender_is_known():
    assert {name for case in CASES for name in case.contenders} == set(THREADS)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_inputs_depend_on_the_case_alone(dtype):
    case = replace(SMALL, dtype=dtype)
    one, other = make_inputs(case), make_inputs(case)
    assert one.target_probs.dtype == one.draft_probs.dtype == dtype
    np.testing.assert_array_equal(one.target_probs, other.target_probs)
    np.testing.assert_array_equal(one.draft_probs, other.draft_probs)
    np.testing.assert_array_equal(one.draft_token_ids, other.draft_token_ids)
    assert make_rng(case).random() == make_rng(case).random()


@pytest.mark.parametrize("rejects_at", [None, 2])
def test_inputs_pass_the_full_validation(rejects_at):
    inputs = make_inputs(replace(SMALL, rejects_at=rejects_at))
    result = draftproof.verify(
        inputs.draft_token_ids,
        inputs.draft_probs,
        inputs.target_probs,
        None,
        make_rng(inputs.case),
        validate="full",
    )
    assert (result.status == 0).all()


def test_drafters_are_neither_perfect_nor_hopeless():
    inputs = make_inputs(SMALL)
    both = np.minimum(inputs.target_probs[:, :-1], inputs.draft_probs)
    assert 0.6 < both.sum(axis=-1).mean() < 0.8


@pytest.mark.parametrize("K", [3, 7])
def test_a_fixed_rejection_depends_on_no_chance(K):
    inputs = make_inputs(replace(SMALL, K=K, rejects_at=2))
    for num_emitted, *_ in reads_of_cycle(inputs):
        np.testing.assert_array_equal(num_emitted, 3)


@pytest.mark.parametrize("rule", ["rrs", "rrsw", "nss", "traversal"])
def test_trees_pass_the_full_validation(rule):
    case = Case(rule, B=2, K=10, V=1_000, rule=rule, branching=(2, 2, 1))
    inputs = make_inputs(case)
    assert inputs.tree is not None
    assert inputs.tree.parents[0].tolist() == [-1, -1, 0, 0, 1, 1, 2, 3, 4, 5]
    draftproof.verify_tree(
        inputs.tree, inputs.target_probs, make_rng(case), rule=rule, validate="full"
    )


def test_a_case_for_a_tree_names_its_nodes():
    for case in CASES:
        levels = np.cumprod(case.branching, dtype=int)
        assert not case.branching or levels.sum() == case.K
