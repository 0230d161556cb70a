import itertools
import math

import numpy as np
import pytest
from scipy import stats

import draftproof
from draftproof.proof.sampled.sampling import Experiment, Sampler
from draftproof.proof.sampled.statistics import (
    compare,
    dispersion,
    pool,
    required_sequences,
    threshold,
    total_variation_upper,
    visible_total_variation,
)
from draftproof.proof.worlds.catalogue import WORLDS, random_rational

L4 = Experiment((WORLDS["L4"],)).laws[0]
SKEWED = np.array([0.7, 0.25, 0.05])


def biased(law, total_variation):
    """The alternative that is hardest to see: chi-square is 4 TV^2 and no more."""
    half = np.flatnonzero(np.arange(len(law)) // 16 % 3 == 0)  # first token 0 or 3: mass 1/2
    assert law[half].sum() == 0.5
    factor = np.full(len(law), 1 - 2 * total_variation)
    factor[half] = 1 + 2 * total_variation
    return law * factor


def test_p_values_of_the_description_are_uniform():
    rng = np.random.default_rng(1)
    p_values = [compare(rng.multinomial(20_000, L4), L4).p_value for _ in range(300)]
    assert stats.kstest(p_values, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("law", [SKEWED, np.array([0.5, 0.5]), np.array([0.98, 0.01, 0.01])])
@pytest.mark.parametrize("n", [1, 7, 40])
def test_the_false_alarm_bound_holds_exactly(law, n):
    outcomes = [
        np.array(counts)
        for counts in itertools.product(range(n + 1), repeat=len(law))
        if sum(counts) == n
    ]
    bounds = np.array([compare(counts, law).false_alarm for counts in outcomes])
    masses = np.array([stats.multinomial.pmf(counts, n, law) for counts in outcomes])
    assert masses.sum() == pytest.approx(1)
    for size in (0.5, 0.1, 1e-2, 1e-4, 1e-6, 1e-9):
        assert masses[bounds <= size].sum() <= size


def test_the_bound_decides_where_chi_square_would_be_wrong():
    law = np.array([5e-6] + [(1 - 5e-6) / 4] * 4)
    n = 1_000_000  # the rare cell is expected 5 times
    counts = np.round(n * law).astype(int)
    counts[0], counts[1] = 19, counts[1] - 14
    result = compare(counts, law)
    assert result.p_value < 1e-6
    assert result.false_alarm > stats.poisson.sf(18, 5) > 1e-6


def test_a_biased_law_is_seen_with_the_stated_power():
    size, total_variation = 1e-6, 0.02
    n = required_sequences(total_variation, 0.99, size, L4)
    assert n < 90_000
    assert visible_total_variation(n, 0.99, size, L4) == pytest.approx(total_variation, rel=1e-3)
    rng, law = np.random.default_rng(2), biased(L4, total_variation)
    seen = [compare(rng.multinomial(n, law), L4).false_alarm <= size for _ in range(200)]
    assert sum(seen) >= 193  # a binomial(200, .99) is below that once in 10,000


def test_a_bias_of_half_the_size_is_mostly_not_seen():
    n = required_sequences(0.02, 0.99, 1e-6, L4)
    rng, law = np.random.default_rng(3), biased(L4, 0.01)
    seen = [compare(rng.multinomial(n, law), L4).false_alarm <= 1e-6 for _ in range(50)]
    assert sum(seen) < 5


def test_the_threshold_is_where_the_bound_reaches_the_size():
    g = threshold(64, 1e-6, L4.max())
    n = 10_000_000
    expected = n * L4
    low, high = 0.0, 1.0
    pattern = np.where(np.arange(64) % 2, 1, -1) * np.sqrt(expected)
    pattern -= pattern.sum() * L4
    for _ in range(60):
        middle = (low + high) / 2
        result = compare(expected + 4 * middle * pattern, L4)
        low, high = (middle, high) if result.likelihood_ratio < g else (low, middle)
    assert result.likelihood_ratio == pytest.approx(g, rel=1e-6)
    assert result.false_alarm == pytest.approx(1e-6, rel=0.05)


def test_an_impossible_cell_fails_at_once():
    law = np.array([0.5, 0.5, 0.0])
    result = compare(np.array([500_000, 499_999, 1]), law)
    assert (result.statistic, result.p_value, result.false_alarm) == (math.inf, 0, 0)
    assert compare(np.array([500_000, 500_000, 0]), law).false_alarm == 1


def test_rare_cells_are_pooled_by_the_law_alone():
    law = np.array([0.001, 0.002, 0.5, 0.003, 0.494, 0.0])
    observed, expected, mass = pool(np.array([0, 900, 40, 1, 59, 0]), law)
    assert expected.tolist() == [494.0, 500.0, 6.0]
    assert observed.tolist() == [59, 40, 901]
    assert mass == pytest.approx(0.006)


def test_a_pool_takes_more_until_it_is_expected_often_enough():
    counts = np.array([1, 9, 90, 900])
    _, expected, mass = pool(counts, counts / 1000)
    assert expected.tolist() == [90.0, 900.0, 10.0]
    assert mass == pytest.approx(0.01)


def test_a_law_of_one_cell_has_nothing_to_show():
    result = compare(np.array([0, 40]), np.array([0.0, 1.0]))
    assert (result.degrees_of_freedom, result.p_value, result.false_alarm) == (0, 1, 1)
    assert required_sequences(0.01, 0.99, 1e-6, np.array([0.0, 1.0])) == 0


def test_no_counts_show_nothing():
    result = compare(np.zeros(3, int), SKEWED)
    assert (result.false_alarm, result.total_variation_upper) == (1, 1)


@pytest.mark.parametrize("total_variation", [0, 0.01, 0.1])
def test_the_upper_bound_holds(total_variation):
    rng, law = np.random.default_rng(4), biased(L4, total_variation)
    bounds = [compare(rng.multinomial(20_000, law), L4).total_variation_upper for _ in range(200)]
    assert sum(bound >= total_variation for bound in bounds) >= 193
    assert np.mean(bounds) < total_variation + 0.03


def test_the_upper_bound_is_smooth_where_the_normal_law_takes_over():
    inside, outside = (total_variation_upper(s, 63, 10**6) for s in (16_299, 16_301))
    assert inside == pytest.approx(outside, rel=5e-3)


def test_dispersion_sees_too_little_and_too_much():
    rng = np.random.default_rng(5)
    right = rng.binomial(256, 0.3, 500)
    index, bound = dispersion(right, 256, 0.3)
    assert index == pytest.approx(1, abs=0.3)
    assert bound > 1e-3
    constant = np.full(500, 77)
    assert dispersion(constant, 256, 0.3)[1] < 1e-12
    paired = 2 * rng.binomial(128, 0.3, 500)
    index, bound = dispersion(paired, 256, 0.3)
    assert index == pytest.approx(2, abs=0.5)
    assert bound < 1e-12


def test_the_dispersion_bound_holds_exactly():
    size, probability, calls = 5, 0.3, 3
    masses = stats.binom.pmf(np.arange(size + 1), size, probability)
    outcomes = list(itertools.product(range(size + 1), repeat=calls))
    weights = np.array([math.prod(masses[list(counts)]) for counts in outcomes])
    bounds = np.array([dispersion(np.array(counts), size, probability)[1] for counts in outcomes])
    for level in (0.5, 0.1, 1e-2, 1e-4, 1e-6):
        assert weights[bounds <= level].sum() <= level


@pytest.mark.slow
def test_p_values_are_uniform_over_a_thousand_worlds():
    p_values = []
    for seed in range(1_000):
        sampler = Sampler(draftproof.verify, Experiment((random_rational(seed),)), seed)
        sampler.extend(20_000)
        (table,) = sampler.tables
        result = compare(table.counts, table.law)
        p_values.append(result.p_value)
        assert result.false_alarm > 1e-5
    assert stats.kstest(p_values, "uniform").pvalue > 1e-3
