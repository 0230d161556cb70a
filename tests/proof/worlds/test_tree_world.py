from fractions import Fraction

import pytest

from draftproof.proof.worlds.tree_world import TREE_WORLDS, draw_siblings
from draftproof.trees import Draws

LAW = tuple(Fraction(n, 16) for n in (8, 3, 0, 5))


def first_possible(law):
    assert sum(law) == 1
    return next(token for token, probability in enumerate(law) if probability)


@pytest.mark.parametrize(
    ("draws", "K", "expected"),
    [
        (Draws.IID, 3, (0, 0, 0)),
        (Draws.WITHOUT_REPLACEMENT, 2, (0, 1)),
        (Draws.WITHOUT_REPLACEMENT, 9, (0, 1, 3)),
        (Draws.DETERMINISTIC, 2, (0, 3)),
        (Draws.DETERMINISTIC, 9, (0, 3, 1)),
        (Draws.TOP_AND_ONE, 2, (0, 1)),
        (Draws.TOP_AND_ONE, 3, (0, 3, 1)),
        (Draws.TOP_AND_ONE, 9, (0, 3, 1)),
        (Draws.TOP_AND_ONE, 0, ()),
    ],
)
def test_how_siblings_are_drawn(draws, K, expected):
    assert draw_siblings(LAW, K, draws, first_possible) == expected


def test_the_law_of_a_second_draw_lacks_the_first():
    laws = []

    def record(law):
        laws.append(law)
        return first_possible(law)

    draw_siblings(LAW, 2, Draws.WITHOUT_REPLACEMENT, record)
    assert laws[1] == [0, Fraction(3, 8), 0, Fraction(5, 8)]


def test_every_kind_of_draws_has_worlds_of_one_level_and_of_two():
    for draws in Draws:
        depths = {world.depth for world in TREE_WORLDS.values() if world.draws is draws}
        assert depths == {1, 2}
    assert all(name == world.name for name, world in TREE_WORLDS.items())


def test_a_leaf_has_no_children():
    world = TREE_WORLDS["toy, 2 x 1, without-replacement"]
    assert world.siblings((0, 1), 2, first_possible) == ()
