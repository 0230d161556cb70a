from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftproof.proof.anytime.account import Tokens
from draftproof.proof.anytime.tilts import DRAFT_WITNESSES, WITNESSES, Tilts, tilted_ratio
from tests.proof.anytime.laws import random_rows


@given(
    weights=st.lists(st.integers(0, 50), min_size=3, max_size=3).filter(any),
    h=st.lists(st.fractions(-5, 5), min_size=3, max_size=3),
    k=st.fractions(-1, 1),
)
def test_the_factor_has_expectation_one_exactly(weights, h, k):
    law = [Fraction(w, sum(weights)) for w in weights]
    mean = sum((p * x for p, x in zip(law, h, strict=True)), Fraction(0))
    assert sum(p * tilted_ratio(k, x, mean) for p, x in zip(law, h, strict=True)) == 1


@pytest.mark.parametrize("V", [2, 5, 300])
def test_every_expert_has_expectation_one_on_every_row(V):
    p, q = random_rows(np.random.default_rng(V), 6, V)
    p[0], p[1] = np.eye(V)[V - 1], np.eye(V)[0]  # certain of one token
    p[2] = q[2] = 1 / V
    q[3] = np.eye(V)[0]
    p[4, 0], q[5, 1] = 0, 0
    p /= p.sum(axis=1, keepdims=True)
    tilts = Tilts({**WITNESSES, **DRAFT_WITNESSES})
    for s in range(6):
        tokens = Tokens(p, np.full(V, s), np.arange(V), q)
        factors = np.exp(tilts.bet(tokens))
        assert (factors[p[s] > 0] > 0).all(), "no possible token takes everything"
        np.testing.assert_allclose(p[s] @ np.where(p[s][:, None] > 0, factors, 0), 1, rtol=1e-12)


def test_a_token_earns_what_its_witness_says():
    """Of (3/4, 1/4) the likeliest token is seen too rarely: z = (1, -3) / sqrt(3)."""
    tilts = Tilts({"the likeliest token": WITNESSES["the likeliest token"]})
    p = np.array([[0.75, 0.25]])
    logs = tilts.bet(Tokens(p, np.zeros(1, int), np.array([1])))[0]
    by_label = dict(zip(tilts.labels, logs, strict=True))
    assert by_label["the likeliest token, too rarely"] == pytest.approx(np.log1p(0.4 * np.sqrt(3)))
    assert by_label["the likeliest token, too often"] == pytest.approx(np.log1p(-0.4 * np.sqrt(3)))
