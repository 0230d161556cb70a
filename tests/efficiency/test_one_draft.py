# mypy: no-check-untyped-defs
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftproof.efficiency.one_draft import by_token, exact_match, gumbel, token
from draftproof.proof.worlds.catalogue import WORLDS


def fractions(row):
    law = np.empty(len(row), dtype=object)
    law[:] = row
    return law


def wins_as_defined(p, q):
    """1 / sum over i of max(P_i / P_j, Q_i / Q_j), term by term."""
    V = len(p)
    return [
        1 / sum(max(p[i] / p[j], q[i] / q[j]) for i in range(V)) if p[j] and q[j] else 0
        for j in range(V)
    ]


@pytest.mark.parametrize("name", WORLDS)
def test_gumbel_in_order_is_gumbel_term_by_term(name):
    for p, q in zip(WORLDS[name].target, WORLDS[name].draft, strict=True):
        p, q = fractions(p), fractions(q)
        wins = by_token("gumbel", p, q)
        assert wins.tolist() == wins_as_defined(p, q)
        alpha = token(p, q)
        assert alpha / (2 - alpha) <= gumbel(p, q) <= alpha


@given(seed=st.integers(0, 2**32 - 1), V=st.integers(1, 60))
def test_floats_with_zeros_and_ties(seed, V):
    rng = np.random.default_rng(seed)
    p, q = rng.integers(0, 4, size=(2, V)) + np.eye(V)[rng.integers(V, size=2)]
    p, q = p / p.sum(), q / q.sum()
    np.testing.assert_allclose(by_token("gumbel", p, q), wins_as_defined(p, q), atol=1e-14)


def test_leading_axes():
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(7), (2, 3, 5))
    for rule in (token, exact_match, gumbel):
        assert rule(p, q).shape == (3, 5)
        assert rule(p, q)[1, 2] == rule(p[1, 2], q[1, 2])


def test_equal_and_disjoint_laws():
    p = np.array([0.5, 0.5, 0.0])
    assert token(p, p) == gumbel(p, p) == 1
    assert token(p, p[::-1].copy() * [1, 0, 2]) == gumbel(p, np.array([0.0, 0.0, 1.0])) == 0
    assert exact_match(p, p) == 0.5
