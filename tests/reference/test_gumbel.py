import numpy as np
import pytest

from draftproof.reference.draw import race_winner
from draftproof.reference.gumbel import gumbel

BELOW_ONE = 1 - 2.0**-53
EVEN = np.full(3, 0.5)


def run(drafts, p, noise):
    return gumbel(drafts, p, noise)


def test_the_first_to_arrive_wins():
    assert race_winner(np.array([0.5, 0.3, 0.2]), EVEN) == 0
    assert race_winner(np.array([0.5, 0.3, 0.2]), np.array([0.5, 0.5, 0.01])) == 2
    assert race_winner(np.array([0.25, 0.5, 0.25]), 1 - np.exp([-1.0, -3.0, -1.2])) == 0
    assert race_winner(np.array([0.25, 0.25, 0.25]), EVEN) == 0, "a tie goes to the lowest id"


def test_a_token_of_weight_zero_never_arrives():
    weights = np.array([0.0, 1.0, 0.0])
    assert race_winner(weights, np.array([0.0, BELOW_ONE, 0.0])) == 1
    assert race_winner(np.array([0.0, 5e-324, 0.0]), np.full(3, BELOW_ONE)) == 1


@pytest.mark.parametrize("weights", [[0.0, 0.0], [np.nan, 0.0], [np.inf, 0.5], [-1.0, 0.0]])
def test_without_a_finite_weight_nobody_wins(weights):
    assert race_winner(np.array(weights), np.full(2, 0.5)) is None


def test_the_winner_has_the_law_of_its_weight():
    rng = np.random.default_rng(0)
    weights = np.array([0.5, 0.3, 0.2])
    winners = [race_winner(weights, rng.random(3)) for _ in range(20_000)]
    wins = np.bincount(np.array(winners, dtype=int))
    assert np.abs(wins / 20_000 - weights).max() < 4.9 * 0.5 / 20_000**0.5


def test_drafts_are_kept_while_they_win():
    p = np.array([[0.6, 0.3, 0.1], [0.1, 0.6, 0.3], [0.3, 0.1, 0.6]])
    assert run([0, 1], p, [EVEN] * 3) == (2, 2, False)
    assert run([0, 2], p, [EVEN] * 3) == (1, 1, False)
    assert run([2, 1], p, [EVEN] * 3) == (0, 0, False)
    assert run([], p, [EVEN]) == (0, 0, False)
