from fractions import Fraction

import numpy as np
import pytest

from draftproof.proof import WORLDS, World
from draftproof.proof.worlds.catalogue import random_dyadic, random_rational


def test_rows_of_integers_are_over_their_sum():
    world = World.chain([(1, 2), (3, 1)], [(2, 2), (0, 5)], start=1, name="w")
    assert world.target == ((Fraction(1, 3), Fraction(2, 3)), (Fraction(3, 4), Fraction(1, 4)))
    assert world.draft == ((Fraction(1, 2), Fraction(1, 2)), (Fraction(0), Fraction(1)))
    assert (world.vocabulary, world.start, world.name) == (2, 1, "w")
    assert world.row(()) == 1
    assert world.row((1, 0)) == 0


def test_floats_are_the_numbers_they_are():
    third = World.chain([(0.1, 0.9)] * 2, [(1, 1)] * 2).target[0][0]
    assert third == Fraction(0.1) / (Fraction(0.1) + Fraction(0.9))


@pytest.mark.parametrize(
    ("target", "draft", "start"),
    [
        ([(1, 2)], [(1, 1)], 0),
        ([(1, 1), (1, 1, 1)], [(1, 1)] * 2, 0),
        ([(1, -1), (1, 1)], [(1, 1)] * 2, 0),
        ([(0, 0), (1, 1)], [(1, 1)] * 2, 0),
        ([(Fraction(1, 2), Fraction(1, 3))] * 2, [(1, 1)] * 2, 0),
        ([(1, 1)] * 2, [(1, 1)], 0),
        ([(1, 1)] * 2, [(1, 1)] * 2, 2),
    ],
)
def test_what_is_no_world_is_refused(target, draft, start):
    with pytest.raises(ValueError, match="Fix:"):
        World.chain(target, draft, start)


def test_the_target_law_is_the_product_of_its_rows():
    law = WORLDS["L4"].target_law(2)
    assert sum(law.values()) == 1
    assert law[2, 1] == Fraction(4, 16) * Fraction(6, 16)


def test_draft_paths_have_the_drafters_probabilities():
    world = WORLDS["zeros"]
    paths = dict(world.draft_paths(2))
    assert sum(paths.values()) == 1
    assert paths[1, 3] == Fraction(1, 2) * Fraction(1, 4)
    assert (0, 0) not in paths
    assert dict(world.draft_paths(0)) == {(): 1}


def test_arrays_follow_the_drafts_and_pad_with_nan():
    world = WORLDS["L4"]
    q, p = world.arrays((2, 1), max_draft=3)
    assert (q[:2] * 16).tolist() == [[8, 3, 1, 4], [4, 5, 3, 4]]
    assert (p[:3] * 16).tolist() == [[6, 4, 4, 2], [2, 6, 4, 4], [6, 6, 2, 2]]
    assert np.isnan(q[2:]).all()
    assert np.isnan(p[3:]).all()
    assert (q.shape, p.shape) == ((3, 4), (4, 4))
    exact_q, exact_p = world.rows((2, 1))
    assert (exact_q == q[:2]).all()
    assert (exact_p == p[:3]).all()
    _, after = world.arrays((), 0, context=(0, 3))
    assert (after * 16).tolist() == [[2, 8, 2, 4]]


def is_dyadic(world):
    """Whether float64 holds every probability exactly."""
    return all(
        Fraction(float(x)) == x for rows in (world.target, world.draft) for row in rows for x in row
    )


def test_the_catalogue():
    assert list(WORLDS)[:2] == ["L4", "L357"]
    for name, world in WORLDS.items():
        assert world.name == name
        assert world.why
    dyadic = {name for name, world in WORLDS.items() if is_dyadic(world)}
    assert {"L4", "zeros", "dyadic-1"} <= dyadic
    assert not dyadic & {"L357", "toy", "rational-1"}
    assert WORLDS["equal"].target == WORLDS["equal"].draft
    assert random_dyadic(3) == random_dyadic(3) != random_dyadic(4)
    assert random_rational(3).vocabulary == 4
