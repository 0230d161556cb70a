from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftproof.reference.block import block
from draftproof.reference.siblings import (
    hu_greedy,
    k_seq,
    k_seq_rho,
    naive_tree,
    nss,
    rrs,
    rrsw,
    target_only,
)
from draftproof.reference.siblings.draws import (
    draw_iid,
    draw_top,
    draw_top_and_one,
    draw_without_replacement,
)
from draftproof.reference.traversal import traversal
from draftproof.reference.tree import children_of, greedy, walk

P = np.array([0.3, 0.4, 0.3])
Q = np.array([0.6, 0.3, 0.1])
RULES = [nss, target_only, naive_tree, rrs, rrsw, k_seq, hu_greedy]


@pytest.mark.parametrize("rule", RULES)
def test_without_siblings_the_token_is_the_targets(rule):
    assert rule([], None, P, [], 0.29) == (None, 0, False)
    assert rule([], None, P, [], 0.71) == (None, 2, False)


@pytest.mark.parametrize("rule", RULES)
def test_an_impossible_sibling_is_never_entered(rule):
    p, q = np.array([0.0, 0.5, 0.5]), np.array([1.0, 0.0, 0.0])
    for u in (0.0, 0.5, 1 - 2.0**-53):
        choice = rule([0], q, p, [u], u)
        assert choice.sibling is None
        assert choice.token in (1, 2)


def test_nss_draws_with_the_first_uniform_and_enters_the_first_child():
    assert nss([2, 1, 1], None, P, [0.5, 0.9, 0.9], 0.9) == (1, 1, False)
    assert nss([2], None, P, [0.5], 0.9) == (None, 1, False)


def test_target_only_counts_a_repeated_sibling_once():
    assert target_only([0, 0], None, P, [0.31, 0.0], 0.0) == (None, 1, False)
    assert target_only([0, 2], None, P, [0.31, 0.0], 0.0) == (1, 2, False)


def test_target_only_without_mass_beside_the_siblings():
    p = np.array([0.5, 0.5 - 2.0**-53, 0.0])
    choice = target_only([0, 1], None, p, [1 - 2.0**-53, 0.0], 0.7)
    assert choice == (None, 1, True)


def test_naive_tree_may_hit_another_sibling():
    # (p - q)+ = (0, .1, .2): the second uniform draws, the last one is not read.
    assert naive_tree([0, 2], Q, P, [0.6, 0.4], 0.0) == (1, 2, False)
    assert naive_tree([0, 2], Q, P, [0.6, 0.3], 0.9) == (None, 1, False)
    assert naive_tree([0], Q, P, [0.6], 0.3) == (None, 1, False)


def test_rrs_tests_the_second_sibling_against_the_residual():
    # P becomes (0, 1/3, 2/3): token 1 is accepted for certain, and token 0 is not at all.
    assert rrs([0, 1], Q, P, [0.6, 0.999], 0.0) == (1, 1, False)
    assert rrs([0, 0], Q, P, [0.6, 0.0], 0.0).sibling is None


def test_rrsw_takes_a_rejected_token_out_of_q():
    # Q becomes (0, .75, .25): 1/3 against .75 for token 1.
    assert rrsw([0, 1], Q, P, [0.6, 0.44], 0.0).sibling == 1
    assert rrsw([0, 1], Q, P, [0.6, 0.45], 0.0).sibling is None


def test_rrsw_skips_a_repeat_with_its_uniform():
    once = rrsw([0, 1], Q, P, [0.6, 0.44], 0.0)
    assert rrsw([0, 0, 1], Q, P, [0.6, 0.0, 0.44], 0.0) == once._replace(sibling=2)


def test_rrsw_stops_where_q_has_no_mass_left():
    q = np.array([1.0, 0.0, 0.0])
    assert rrsw([0, 1], q, P, [0.3, 0.0], 0.0) == (None, 1, False)


def test_hu_greedy_tests_the_last_sibling_with_the_last_uniform():
    # q' = (0, .75, .25) off token 0; (p - q')+ = (.3, 0, .05).
    assert hu_greedy([0, 1], Q, P, [0.99, 0.53], 0.0) == (1, 1, False)
    assert hu_greedy([0, 1], Q, P, [0.85, 0.54], 0.0) == (0, 0, False)
    assert hu_greedy([0, 1], Q, P, [0.86, 0.54], 0.0) == (None, 2, False)


def test_k_seq_takes_a_rho_of_its_caller():
    assert k_seq([0, 0], Q, P, [0.3, 0.24], 0.0, rho=2).sibling == 1
    assert k_seq([0, 0], Q, P, [0.3, 0.26], 0.0, rho=2).sibling is None


@given(st.integers(1, 8), st.integers(0, 2**32))
def test_rho_is_at_or_above_its_root_and_hardly_above(K, seed):
    p, q = np.random.default_rng(seed).dirichlet(np.full(6, 0.3), size=2)

    def excess(rho):
        beta = np.minimum(p / rho, q).sum()
        return rho * beta - (1 - (1 - beta) ** K)

    rho = k_seq_rho(p, q, K)
    assert rho >= 1
    assert excess(rho) >= -(2.0**-50)
    m = round(2**18 / rho)
    assert rho == 1 or (rho == 2**18 / m and excess(2**18 / (m + 1)) <= 2.0**-40)


def test_rho_of_laws_that_share_nothing_or_everything():
    p, q = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    assert k_seq_rho(p, p, 3) == 1
    assert k_seq_rho(p, q, 3) == 1
    assert k_seq([1, 1], q, p, [0.0, 0.0], 0.5) == (None, 0, False)
    assert k_seq_rho(np.full(2, np.nan), q, 3) >= 1, "it must end"


def test_draws():
    assert draw_iid(Q, [0.0, 0.59, 0.61]) == [0, 0, 1]
    assert draw_without_replacement(Q, [0.0, 0.0, 0.0, 0.0]) == [0, 1, 2]
    assert draw_without_replacement(np.array([0.0, 1.0]), [0.5, 0.5]) == [1]
    assert draw_top(np.array([0.2, 0.4, 0.4, 0.0]), 4) == [1, 2, 0]
    assert draw_top_and_one(Q, 2, 0.76) == [0, 2]
    assert draw_top_and_one(np.array([0.7, 0.3]), 5, 0.0) == [0, 1]
    assert draw_top_and_one(Q, 0, 0.5) == []


@given(st.integers(0, 4), st.integers(2, 9), st.integers(0, 2**32))
def test_traversal_of_one_path_is_block_token_for_token(g, V, seed):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(V, 0.5), size=g + 1)
    q = 0.5 * rng.dirichlet(np.full(V, 0.5), size=g) + 0.5 * p[:g]
    drafts = [int(rng.choice(V, p=law)) for law in q]
    accept, final = rng.random(g), rng.random()
    chain = block(drafts, list(q), list(p), accept, final)
    tree = traversal(
        drafts, children_of([i - 1 for i in range(g)]), list(q), list(p), accept, final
    )
    assert tree.path == list(range(chain.num_accepted))
    assert tree[1:] == chain[1:]


def test_a_residual_that_rounding_emptied():
    equal = np.array([1.0, 0.0])
    tiny = np.array([1 - 2.0**-53, 0.0])
    assert naive_tree([0], equal, tiny, [1 - 2.0**-53], 0.5) == (0, 0, True), "a hit after all"
    for rule in (rrs, rrsw, hu_greedy):
        assert rule([0], equal, tiny, [1 - 2.0**-53], 0.5) == (None, 0, True)
    tree = traversal([0], [[0], []], [equal], [tiny, equal], [1 - 2.0**-53], 0.5)
    assert tree == ([], 0, True)


def test_walk_tries_siblings_in_draw_order():
    children = children_of([-1, -1, 1], order=[1, 0, 0])
    assert children == [[1, 0], [], [2], []]
    rows = [np.array([0.5, 0.5])] * 4
    emission = walk(rrs, [0, 1, 0], children, rows, rows, [0.0, 0.9, 0.9], 0.9)
    assert emission == ([1, 2], 1, False)


def test_greedy_follows_the_argmax():
    rows = [np.array([0.1, 0.9]), np.array([0.9, 0.1]), np.array([0.8, 0.2]), np.array([0.1, 0.9])]
    assert greedy([0, 1, 0], [[0, 1], [], [2], []], rows) == ([1, 2], 1, False)
    assert greedy([0], [[0], []], rows) == ([], 1, False)


def test_fractions_stay_fractions():
    p, q = (np.array([Fraction(n, 10) for n in row]) for row in ((3, 4, 3), (6, 3, 1)))
    for rule in (naive_tree, rrs, rrsw, hu_greedy, k_seq):
        assert rule([0, 1], q, p, [Fraction(3, 5)] * 2, Fraction(1, 2)).token is not None
