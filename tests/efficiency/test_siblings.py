"""Several drafts at one node: each closed form against its rule, and against the best rule."""

# mypy: no-check-untyped-defs
from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from draftproof.efficiency import one_draft, optimum
from draftproof.efficiency.siblings import hu_greedy, k_seq, naive_tree, nss, rrs, rrsw
from draftproof.proof.worlds.catalogue import WORLDS, random_rational
from tests.efficiency.linear_program import best_acceptance


def fractions(row):
    law = np.empty(len(row), dtype=object)
    law[:] = row
    return law


L4 = fractions(WORLDS["L4"].target[0]), fractions(WORLDS["L4"].draft[0])
WITH_REPLACEMENT = {"nss": nss, "naive-tree": naive_tree, "rrs": rrs, "k-seq": k_seq}


def rows(count, vocabulary=4):
    """Random laws, then the hard ones: zeros, ties, p = q, certain of a token."""
    for seed in range(count):
        world = random_rational(seed, vocabulary)
        yield fractions(world.target[0]), fractions(world.draft[0])
    for name in ("zeros", "one-hot", "ties", "equal"):
        world = WORLDS[name]
        for p, q in zip(world.target, world.draft, strict=True):
            yield fractions(p), fractions(q)


def iid_law(q, K):
    draws = itertools.product(range(len(q)), repeat=K)
    return {draw: float(np.prod([q[x] for x in draw])) for draw in draws}


def pair_law(q):
    """Two draws without replacement; one alone where nothing is left to draw."""
    law = {}
    for x in np.flatnonzero(q):
        rest = 1 - q[x]
        if rest == 0:
            law[(x,)] = float(q[x])
        for y in np.flatnonzero(q):
            if y != x:
                law[(x, y)] = float(q[x] * q[y] / rest)
    return law


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (nss, Fraction(231, 512)),
        (naive_tree, Fraction(99, 128)),
        (rrs, Fraction(13, 16)),
        (hu_greedy, Fraction(7, 8)),
        (optimum.iid, Fraction(223, 256)),
    ],
)
def test_two_siblings_on_the_first_row_of_l4(rule, expected):
    assert rule(*L4, 2) == expected


def test_k_seq_on_the_first_row_of_l4():
    assert k_seq(*L4, 2) == pytest.approx(0.83768, abs=5e-6)
    assert k_seq(*L4, 2) <= k_seq(*L4, 2, rho=Fraction(1)), "a smaller rho accepts more, and lies"


@pytest.mark.parametrize("rule", [nss, naive_tree, rrs, rrsw, k_seq, hu_greedy, optimum.iid])
def test_one_sibling_is_the_chain(rule):
    for p, q in rows(3):
        single = one_draft.exact_match if rule is nss else one_draft.token
        assert rule(p, q, 1) == pytest.approx(float(single(p, q)))


@pytest.mark.parametrize("K", [2, 3])
def test_no_rule_exceeds_the_linear_program_and_the_optimum_meets_it(K):
    for p, q in rows(4, vocabulary=3):
        best = best_acceptance(p, iid_law(q, K))
        assert float(optimum.iid(p, q, K)) == pytest.approx(best, abs=1e-9)
        for rule in WITH_REPLACEMENT.values():
            assert float(rule(p, q, K)) <= best + 1e-9


def test_without_replacement_the_optimum_is_the_linear_program_too():
    for p, q in rows(6):
        best = best_acceptance(p, pair_law(q))
        assert float(optimum.without_replacement(p, q)) == pytest.approx(best, abs=1e-9)
        assert float(rrsw(p, q, 2)) <= best + 1e-9


def test_hu_greedy_is_the_optimum_for_its_own_draws():
    for p, q in rows(4):
        certain = int(np.argmax(q))
        rest = 1 - q[certain]
        draws = (
            {(certain, x): float(q[x] / rest) for x in np.flatnonzero(q) if x != certain}
            if rest
            else {(certain,): 1.0}
        )
        assert float(hu_greedy(p, q, 2)) == pytest.approx(best_acceptance(p, draws), abs=1e-9)


def test_rrsw_by_hand():
    """X_2 meets norm (P - Q)+ with Q without X_1, whatever X_1 was."""
    for p, q in rows(5):
        left = np.maximum(p - q, 0)
        expected = np.minimum(p, q).sum()
        for x in np.flatnonzero(q > p):
            rest = fractions([0 if v == x else q[v] for v in range(len(q))])
            if rest.sum() and left.sum():
                second = np.minimum(left / left.sum(), rest / rest.sum()).sum()
                expected += (q[x] - p[x]) * second
        assert rrsw(p, q, 2) == expected
    with pytest.raises(ValueError, match="num_siblings"):
        rrsw(*L4, 3)


def test_floats_of_any_shape_give_what_fractions_give():
    pairs = list(rows(6))
    p, q = (np.array([pair[side] for pair in pairs]).astype(float) for side in (0, 1))
    p, q = p.reshape(2, -1, 4), q.reshape(2, -1, 4)
    for rule in (nss, naive_tree, rrs, rrsw, k_seq, hu_greedy, optimum.iid):
        exact = [float(rule(*pair, 2)) for pair in pairs]
        assert rule(p, q, 2).shape == p.shape[:-1]
        np.testing.assert_allclose(rule(p, q, 2).ravel(), exact, atol=1e-14)
    exact = [float(optimum.without_replacement(*pair)) for pair in pairs]
    np.testing.assert_allclose(optimum.without_replacement(p, q).ravel(), exact, atol=1e-14)


def test_a_large_vocabulary():
    rng = np.random.default_rng(0)
    p, q = rng.exponential(size=(2, 128_000)) ** 4
    p, q = p / p.sum(), q / q.sum()
    single = one_draft.token(p, q)
    ordered = [naive_tree(p, q, 2), rrs(p, q, 2), optimum.iid(p, q, 2)]
    assert single < ordered[0] < ordered[1] < ordered[2] < 1
    assert rrs(p, q, 2) <= rrsw(p, q, 2) <= optimum.without_replacement(p, q) + 1e-12
    assert single < k_seq(p, q, 2) <= optimum.iid(p, q, 2)
    assert (1 - (1 - single)) / (2 - single) <= one_draft.gumbel(p, q) <= single
