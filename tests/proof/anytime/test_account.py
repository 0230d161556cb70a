import numpy as np
import pytest

from draftproof.proof.anytime.account import Account, Tokens, log_sum_exp
from draftproof.proof.anytime.cells import Cells, Transforms
from draftproof.proof.anytime.tilts import DRAFT_WITNESSES, WITNESSES, Tilts
from tests.proof.anytime.laws import at_distance, draw, lenient, random_rows, resampling


def account(seed=0):
    every = {**WITNESSES, **DRAFT_WITNESSES}
    return Account(Cells(), Tilts(every), Transforms(np.random.default_rng(seed), True))


def watch(p, q, law, tokens, seed):
    rng = np.random.default_rng(seed)
    states = rng.integers(0, len(p), tokens)
    watched = account(seed)
    watched.observe(Tokens(p, states, draw(law, states, rng), q))
    return watched


def test_wealth_is_the_average_of_the_experts():
    p = np.array([[0.25, 0.75]])
    cells = Cells(concentrations=(2.0, 8.0))
    both = Account(cells)
    both.observe(Tokens(p, np.zeros(3, int), np.array([0, 0, 1])))
    factors = [
        (A * 0.25) / (A * 0.25) * (1 + A / 4) / ((1 + A) / 4) * (A * 0.75) / ((2 + A) * 0.75)
        for A in (2.0, 8.0)
    ]
    assert np.exp(both.log_e) == pytest.approx(np.mean(factors))


def test_the_path_does_not_depend_on_how_tokens_are_handed_over():
    p, q = random_rows(np.random.default_rng(0), 3, 5)
    rng = np.random.default_rng(1)
    states = rng.integers(0, 3, 2_500)
    ids = draw(resampling(p, q), states, rng)
    whole, pieces = (Account(Cells(), Tilts(DRAFT_WITNESSES)) for _ in range(2))
    whole.observe(Tokens(p, states, ids, q))
    for part in np.array_split(np.arange(2_500), 7):
        pieces.observe(Tokens(p, states[part], ids[part], q))
    assert whole.decided_after == pieces.decided_after is not None
    assert whole.log_e == pytest.approx(pieces.log_e)
    assert whole.log_peak == pytest.approx(pieces.log_peak)


def test_the_decision_falls_at_the_first_token_that_reaches_the_level():
    p = np.array([[0.5, 0.5]])
    account = Account(Cells(concentrations=(2.0,)), level=4.0)
    # Factors (c + 1) / (n / 2 + 1) after n tokens, all of them zeros: 1, 4/3, 3/2, 8/5, ...
    wealth = np.cumprod([2 * (n + 1) / (n + 2) for n in range(10)])
    account.observe(Tokens(p, np.zeros(10, int), np.zeros(10, int)))
    assert account.decided_after == int(np.argmax(wealth >= 4.0)) + 1
    assert account.false_alarm == pytest.approx(1 / wealth[-1])


def test_an_impossible_token_settles_it_for_ever():
    p = np.array([[0.0, 1.0], [0.5, 0.5]])
    account = Account(Cells(), Tilts())
    account.observe(Tokens(p, np.array([1, 0, 1, 1]), np.array([1, 0, 0, 1])))
    assert (account.decided_after, account.log_e, account.false_alarm) == (2, np.inf, 0.0)


def test_log_sum_exp_takes_infinities():
    assert log_sum_exp(np.array([0.0, np.inf])) == np.inf
    assert log_sum_exp(np.array([1_000.0, 1_000.0])) == pytest.approx(1_000 + np.log(2))


@pytest.mark.parametrize("wrong", [resampling, lenient])
def test_a_bias_of_2_percent_in_5000_tokens_is_seen_in_time(wrong):
    p, q = random_rows(np.random.default_rng(7), 2, 5_000)
    watched = watch(p, q, at_distance(p, wrong(p, q), 0.02), 40_000, seed=1)
    assert watched.decided_after is not None
    assert watched.decided_after < 100_000
    assert "q" in watched.leader


@pytest.mark.slow
def test_a_thousand_right_subjects_are_no_false_alarm():
    """Ville: at most 5 % ever reach 20, and 0.1 % are expected at most to reach 1,000."""
    peaks = []
    for seed in range(1_000):
        V = (2, 4, 16, 300)[seed % 4]
        p, q = random_rows(np.random.default_rng([seed, 1]), 3, V)
        peaks.append(watch(p, q, p, 3_000, seed).log_peak)
    assert max(peaks) < np.log(1e6)
    assert np.mean(np.array(peaks) >= np.log(20)) <= 0.05
