from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from draftproof.proof.exact.generator import NotDrivable
from draftproof.proof.exact.interval import OracleGenerator, explore

WEIGHTS = np.array([0.125, 0.0, 0.375, 0.5])
CUMULATIVE = np.cumsum(WEIGHTS)


def law_of(subject, **options):
    """The exact law of what a function of a generator returns."""
    law: dict[object, Fraction] = {}
    for result, weight in explore(lambda path: subject(OracleGenerator()), **options):
        if isinstance(result, Exception):
            raise result
        law[result] = law.get(result, Fraction(0)) + weight
    assert sum(law.values()) == 1
    return law


ACCEPT_TESTS = {
    "product": lambda u: u * 0.5 < 0.375,
    "reversed product": lambda u: np.float64(0.5) * u < np.float64(0.375),
    "ratio": lambda u: u <= min(1, 0.375 / 0.5),
    "numpy ratio": lambda u: u < np.minimum(1, np.array([0.375]) / 0.5)[0],
    "reversed": lambda u: not np.float64(0.75) < u,
    "complement": lambda u: 1 - u > 0.25,
    "difference": lambda u: bool(u - np.float32(0.75) < 0),
    "quotient": lambda u: u / 0.75 < 1,
    "negative quotient": lambda u: u / -0.75 > -1,
    "same uniform": lambda u: u * 0.5 + 0.375 > u,
    "distance": lambda u: abs(u - 0.375) < 0.375,
    "fraction": lambda u: u < Fraction(3, 4),
    "minimum": lambda u: np.minimum(u, 0.75) < 0.75,
    "in an array": lambda u: (np.array([u]) * np.array([0.5]) < np.array([0.375])).all(),
    "where": lambda u: np.where(np.array([u]) < 0.75, 1, 0)[0] == 1,
    "twice": lambda u: u < 0.75 and u <= 0.75 and not u >= 0.75 and u != 0.75,
    "not beside NaN": lambda u: u < 0.75 and not (u < np.nan or u > np.nan or u * np.nan < 1),
    "infinity": lambda u: u < 0.75 and u < np.inf and u > -np.inf,
    "constant": lambda u: u < 0.75 and u * 0 <= 0 and u * 0 + 1 > 0.5,
}


@pytest.mark.parametrize("test", ACCEPT_TESTS.values(), ids=ACCEPT_TESTS)
def test_accept_tests_are_driven(test):
    law = law_of(lambda rng: bool(test(rng.random())))
    assert law == {True: Fraction(3, 4), False: Fraction(1, 4)}


def subtracting(rng):
    u = rng.random()
    for token, weight in enumerate(WEIGHTS):
        if u < weight:
            return token
        u -= weight
    raise AssertionError


DRAWS = {
    "count": lambda rng: int((rng.random() >= CUMULATIVE).sum()),
    "count in rows": lambda rng: int((CUMULATIVE[None] <= rng.random((1, 1))).sum(axis=1)[0]),
    "count, scaled": lambda rng: int((rng.random() * 3 >= CUMULATIVE * 3).sum()),
    "count, strict": lambda rng: int((rng.random() > CUMULATIVE).sum()),
    "searchsorted": lambda rng: int(np.searchsorted(CUMULATIVE, rng.random())),
    "right": lambda rng: int(np.searchsorted(CUMULATIVE, rng.random(1), side="right")[0]),
    "digitize": lambda rng: int(np.digitize(rng.random(1), CUMULATIVE)[0]),
    "argmax": lambda rng: int(np.argmax(rng.uniform(size=1) < CUMULATIVE)),
    "argmin": lambda rng: int((rng.random((1, 1)) >= CUMULATIVE).argmin(axis=1)[0]),
    "nonzero": lambda rng: int(np.nonzero(rng.uniform(0, 2) < 2 * CUMULATIVE)[0][0]),
    "loop": subtracting,
    "choice": lambda rng: int(rng.choice(4, p=WEIGHTS)),
    "choice among": lambda rng: int(rng.choice([0, 1, 2, 3], size=2, p=WEIGHTS)[1]),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_draws_are_driven(draw):
    expected = {0: Fraction(1, 8), 2: Fraction(3, 8), 3: Fraction(1, 2)}
    assert law_of(draw) == expected


def test_leading_drafts_are_counted():
    def accepted(rng):
        accepts = rng.random((1, 3)) * 0.5 < np.array([[0.25, 0.25, 0.5]])
        return int(np.cumprod(accepts, axis=1).sum())

    assert law_of(accepted) == {0: Fraction(1, 2), 1: Fraction(1, 4), 3: Fraction(1, 4)}


def test_a_uniform_that_is_used_twice_is_one_uniform():
    def reused(rng):
        u = rng.random()
        return bool(u < 0.5), bool(u < 0.25)

    assert law_of(reused) == {
        (True, True): Fraction(1, 4),
        (True, False): Fraction(1, 4),
        (False, False): Fraction(1, 2),
    }


REFUSED = {
    "float": lambda rng: float(rng.random()),
    "float array": lambda rng: rng.random(3).astype(np.float64),
    "buffer": lambda rng: np.zeros(3).__setitem__(slice(None), rng.random(3)),
    "index": lambda rng: int(rng.random() * 4),
    "truth": lambda rng: bool(rng.random()),
    "hash": lambda rng: {rng.random()},
    "two uniforms": lambda rng: rng.random() < rng.random(),
    "sum of two": lambda rng: rng.random(2).sum(),
    "square": lambda rng: rng.random() * rng.random(),
    "division by itself": lambda rng: 1.0 / rng.random() < 2,
    "narrow": lambda rng: rng.random(dtype=np.float32),
    "out": lambda rng: rng.random(out=np.empty(3)),
    "integers": lambda rng: rng.integers(4),
    "gumbel": lambda rng: rng.gumbel(size=4),
    "exponential": lambda rng: rng.exponential(size=4),
    "multinomial": lambda rng: rng.multinomial(1, WEIGHTS),
    "uniform choice": lambda rng: rng.choice(4),
    "bit generator": lambda rng: rng.bit_generator.random_raw(),
}


@pytest.mark.parametrize("use", REFUSED.values(), ids=REFUSED)
def test_what_is_more_than_a_comparison_is_refused(use):
    def careless(path):
        try:
            use(OracleGenerator())
        except NotDrivable:
            return 0
        return 1

    with pytest.raises((NotDrivable, TypeError)):
        list(map(law_of, [use]))
    if use is not REFUSED["division by itself"]:
        with pytest.raises(NotDrivable):
            list(explore(careless))


def test_entropy_of_its_own_is_noticed():
    own = np.random.default_rng(0)
    with pytest.raises(NotDrivable, match="different results"):
        law_of(lambda rng: bool(rng.random() < 0.5) and own.random())
    with pytest.raises(NotDrivable, match="repeat itself"):
        law_of(lambda rng: bool(rng.random() < own.random()))


def test_a_uniform_left_behind_by_another_run_is_unknown_again():
    kept: list[Any] = []

    def caching(rng):
        if not kept:
            kept.append(rng.random())
        return bool(kept[0] < 0.25)

    assert law_of(caching) == {True: Fraction(1, 4), False: Fraction(3, 4)}
    with pytest.raises(NotDrivable, match="after its call"):
        _ = kept[0] < 0.25


def test_paths_are_capped():
    with pytest.raises(NotDrivable, match="more than 20 paths"):
        law_of(lambda rng: int((rng.random(5) < 0.5).sum()), max_paths=20)


def test_exceptions_are_results_with_a_weight():
    def raising(path):
        return 1 // int(OracleGenerator().random() < 0.25)

    results = {type(result): weight for result, weight in explore(raising)}
    assert results == {int: Fraction(1, 4), ZeroDivisionError: Fraction(3, 4)}


def test_choices_skip_what_cannot_happen():
    law = [Fraction(0), Fraction(1, 3), Fraction(0), Fraction(2, 3)]
    runs = list(explore(lambda path: path.choose(law)))
    assert runs == [(1, Fraction(1, 3)), (3, Fraction(2, 3))]
