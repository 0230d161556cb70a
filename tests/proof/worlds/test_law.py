import pickle
from fractions import Fraction

import pytest

from draftproof.proof import WORLDS, Law
from draftproof.proof.worlds.law import complete

HALF = Fraction(1, 2)


def test_a_law_is_a_mapping_in_which_absent_texts_have_no_mass():
    law = Law({(1,): HALF, (0,): HALF, (2,): Fraction(0)}, length=1)
    assert list(law) == [(0,), (1,)]
    assert law[(2,)] == 0
    assert (2,) not in law
    assert law == {(0,): HALF, (1,): HALF, (5,): 0}
    assert law != {(0,): HALF}
    assert pickle.loads(pickle.dumps(law)) == law
    with pytest.raises(ValueError, match="1 tokens"):
        Law({(0, 1): HALF}, length=1)


def test_total_variation_counts_missing_mass():
    law = Law({(0,): HALF, (1,): HALF}, 1)
    assert law.total_variation({(0,): Fraction(1)}) == HALF
    assert law.total_variation({(0,): Fraction(3, 4), (1,): Fraction(1, 4)}) == Fraction(1, 4)
    assert law.total_variation(law) == 0
    assert Law({(0,): HALF}, 1).total_variation(law) == HALF
    assert law.differences({(2,): HALF}) == {(0,): HALF, (1,): HALF, (2,): -HALF}


def test_products():
    law = Law({(0, 1): HALF, (1, 1): HALF}, 2, error=0.25)
    assert law.product(law)[0, 1, 1, 1] == Fraction(1, 4)
    assert (law.product(law).length, law.product(law).error) == (4, 0.5)
    assert (law.with_error(0.1).error, law.error) == (0.1, 0.25)


def test_completion_goes_on_from_the_emitted_token():
    world = WORLDS["L4"]
    law = complete([((3,), HALF), ((1, 2), HALF), ((), Fraction(0))], world, 2)
    assert law[3, 1] == HALF * Fraction(8, 16)
    assert law[1, 2] == HALF
    assert sum(law.values()) == 1


def test_completion_cuts_and_adds_up():
    world = WORLDS["toy"]
    emissions = [((0, 1, 1), HALF), ((0, 1, 0), Fraction(1, 4)), ((0, 1), Fraction(1, 4))]
    assert complete(emissions, world, 2) == {(0, 1): 1}
