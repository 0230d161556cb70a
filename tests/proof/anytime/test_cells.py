import copy
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln

from draftproof.proof.anytime.account import Tokens
from draftproof.proof.anytime.cells import BINS, Cells, Transforms, _mass_before, predictive_ratio
from tests.proof.anytime.laws import draw, random_rows


@given(
    weights=st.lists(st.integers(1, 50), min_size=2, max_size=6),
    counts=st.lists(st.integers(0, 40), min_size=6, max_size=6),
    concentration=st.fractions(Fraction(1, 8), 10_000),
)
def test_the_factor_has_expectation_one_exactly(weights, counts, concentration):
    law = [Fraction(w, sum(weights)) for w in weights]
    counts = counts[: len(law)]
    expectation = sum(
        p * predictive_ratio(c, sum(counts), p, concentration)
        for p, c in zip(law, counts, strict=True)
    )
    assert expectation == 1


def test_every_expert_has_expectation_one_after_any_past():
    p, q = random_rows(np.random.default_rng(0), 3, 6)
    rng = np.random.default_rng(1)
    cells = Cells()
    states = rng.integers(0, 3, 500)
    cells.bet(Tokens(p, states, draw(q, states, rng)))  # a past that looks nothing like p
    for state in range(3):
        one = np.array([state])
        factors = [
            np.exp(copy.deepcopy(cells).bet(Tokens(p, one, np.array([x])))) for x in range(6)
        ]
        assert p[state] @ np.vstack(factors) == pytest.approx(np.ones(len(cells.labels)))


def test_factors_multiply_to_the_dirichlet_mixture():
    p, _ = random_rows(np.random.default_rng(2), 2, 4)
    rng = np.random.default_rng(3)
    states = rng.integers(0, 2, 1_000)
    ids = draw(p, states, rng)
    cells = Cells(concentrations=(3.0, 500.0))
    logs = np.vstack(
        [cells.bet(Tokens(p, states[i], ids[i])) for i in np.array_split(range(1_000), 3)]
    )
    for A, log in zip((3.0, 500.0), logs.sum(axis=0), strict=True):
        expected = 0.0
        for s in range(2):
            c = np.bincount(ids[states == s], minlength=4)
            expected += (gammaln(A * p[s] + c) - gammaln(A * p[s]) - c * np.log(p[s])).sum()
            expected += gammaln(A) - gammaln(A + c.sum())
        assert log == pytest.approx(expected)


def test_masses_before_tokens_cut_the_unit_interval_whatever_their_order():
    p, q = random_rows(np.random.default_rng(4), 3, 7)
    before = _mass_before(p, np.argsort(q / p, axis=1))
    order = np.argsort(before, axis=1)
    starts = np.take_along_axis(before, order, axis=1)
    ends = starts + np.take_along_axis(p, order, axis=1)
    np.testing.assert_allclose(starts[:, 0], 0)
    np.testing.assert_allclose(ends[:, :-1], starts[:, 1:], atol=1e-12)
    np.testing.assert_allclose(ends[:, -1], 1)


def test_transforms_follow_rows_that_never_come_again():
    """Each token has a row of its own; half of the mass of its first half is missing."""
    rng = np.random.default_rng(5)
    p, q = random_rows(rng, 2_000, 32)
    wrong = p * np.where(np.arange(32) < 16, 0.5, 1.5)
    states = np.arange(2_000)
    ids = draw(wrong / wrong.sum(axis=1, keepdims=True), states, rng)
    wealth = Transforms(rng, with_draft=True).bet(Tokens(p, states, ids, q)).sum(axis=0)
    assert wealth.max() > np.log(1e6)
    right = Transforms(rng, with_draft=True).bet(Tokens(p, states, draw(p, states, rng), q))
    assert right.sum(axis=0).max() < np.log(1e3)
    assert right.shape[1] % 2 == 0
    assert BINS == 16


def test_contexts_of_different_laws_may_be_counted_together():
    """What was learned elsewhere makes a poor bet, and still a fair one."""
    p, q = random_rows(np.random.default_rng(6), 4, 5)
    rng = np.random.default_rng(7)
    cells = Cells()
    states = rng.integers(0, 4, 300)
    cells.bet(Tokens(p, states, draw(q, states, rng), keys=states % 2))
    each = [Tokens(p, np.array([3]), np.array([x]), keys=np.array([0])) for x in range(5)]
    factors = [np.exp(copy.deepcopy(cells).bet(token)) for token in each]
    assert p[3] @ np.vstack(factors) == pytest.approx(np.ones(len(cells.labels)))
    silent = Tokens(p, np.array([3]), np.array([0]), keys=np.array([-1]))
    assert not cells.bet(silent).any()
