import copy
import math

import numpy as np
import pytest

from draftproof.proof.anytime.paired import END, Paired, swap_ratio
from draftproof.proof.worlds.catalogue import WORLDS
from tests.proof.anytime.laws import draw, resampling

WORLD = WORLDS["L4"]
P, Q = np.array(WORLD.target, float), np.array(WORLD.draft, float)


def texts(law, number, length, rng):
    made = np.empty((number, length), dtype=np.int64)
    state = np.zeros(number, dtype=np.int64)
    for i in range(length):
        made[:, i] = state = draw(law, state, rng)
    return made.tolist()


def watch(law, seed, tokens=20_000, length=16):
    rng = np.random.default_rng(seed)
    paired = Paired()
    number = tokens // length
    for x, y in zip(texts(law, number, length, rng), texts(P, number, length, rng), strict=True):
        if paired.observe((0,), x, y):
            break
    return paired


def test_the_two_ways_round_average_to_one():
    for odds in (-800.0, -1.0, 0.0, 3.0, 800.0):
        assert math.exp(swap_ratio(odds)) + math.exp(swap_ratio(-odds)) == pytest.approx(2)


def test_wealth_has_expectation_one_over_both_ways_round_after_any_past():
    rng = np.random.default_rng(0)
    paired = Paired()
    for x, y in zip(texts(Q, 40, 5, rng), texts(P, 40, 5, rng), strict=True):
        paired.observe((0,), x, y)
    x, y = [0, 1, 2, END], [3, 3, 1, 0, 2]
    wealth = []
    for first, second in ((x, y), (y, x)):
        one = copy.deepcopy(paired)
        one.observe((0,), first, second)
        wealth.append(math.exp(one.log_e))
    assert sum(wealth) / 2 == pytest.approx(math.exp(paired.log_e))


def test_an_engine_that_resamples_p_is_seen_within_20000_tokens_a_side():
    paired = watch(resampling(P, Q), seed=1)
    assert paired.decided_after is not None
    assert paired.decided_after < 20_000


def test_two_streams_of_one_law_are_let_go():
    paired = watch(P, seed=2, tokens=3_000)
    assert paired.decided_after is None
    assert paired.log_peak < math.log(1e3)


@pytest.mark.slow
def test_a_thousand_pairs_of_equal_streams_are_no_false_alarm():
    peaks = [watch(P, [seed, 3], tokens=480).log_peak for seed in range(1_000)]
    assert max(peaks) < math.log(1e6)
    assert np.mean(np.array(peaks) >= math.log(20)) <= 0.05
