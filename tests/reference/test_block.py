from fractions import Fraction

import numpy as np
import pytest

from draftproof.proof.exact.exact_law import exact_law, expected_accepted
from draftproof.proof.worlds.catalogue import WORLDS, random_rational
from draftproof.reference.block import block, keeps, weight_after
from draftproof.reference.chain import token

P = np.array([[1, 2], [1, 2], [1, 2]]) / 3
Q = np.array([[2, 1], [2, 1]]) / 3


def run(drafts, q, p, accept, final, rule=block):
    return rule(drafts, q, p, accept, final)


@pytest.mark.parametrize("world", WORLDS.values(), ids=str)
@pytest.mark.parametrize("num_draft", [0, 1, 2])
def test_block_is_lossless(world, num_draft):
    assert exact_law("block", world, num_draft) == world.target_law(num_draft + 1)


def test_block_is_lossless_for_three_drafts():
    world = WORLDS["toy"]
    assert exact_law("block", world, 3) == world.target_law(4)


@pytest.mark.parametrize(
    ("world", "num_draft", "expected"),
    [
        ("L4", 1, Fraction(3, 4)),
        ("L4", 2, Fraction(11, 8)),
        ("toy", 1, Fraction(2, 3)),
        ("toy", 2, Fraction(11, 9)),
    ],
)
def test_expected_accepted(world, num_draft, expected):
    assert expected_accepted("block", WORLDS[world], num_draft) == expected


@pytest.mark.parametrize("seed", range(3))
def test_block_keeps_at_least_what_token_keeps(seed):
    world = random_rational(seed, vocabulary=3)
    assert expected_accepted("block", world, 1) == expected_accepted("token", world, 1)
    assert expected_accepted("block", world, 2) >= expected_accepted("token", world, 2)


def test_expected_accepted_is_the_sum_of_the_weights():
    world = WORLDS["L357"]
    expected = Fraction(0)
    for drafts, probability in world.draft_paths(2):
        q, p = world.rows(drafts)
        w = Fraction(1)
        for i, x in enumerate(drafts):
            w = weight_after(w, p[i][x], q[i][x])
            expected += probability * w
    assert expected_accepted("block", world, 2) == expected


def test_a_failed_draft_does_not_stop_the_scan():
    # w_1 = 1/2, Z_1 = 0, so the first draft alone is never kept; w_2 = min(1, 1/2 * 2) = 1.
    assert run([0, 1], Q, P, np.array([0.99, 0.99]), 0.0).num_accepted == 2
    assert run([0, 1], Q, P, np.array([0.99, 0.99]), 0.0, rule=token).num_accepted == 0


def test_the_cap_belongs_to_every_step():
    # 2 * 1/2 = 1 without the cap after the first draft, 1/2 with it.
    assert run([1, 0], Q, P, np.array([0.9, 0.6]), 0.0).num_accepted == 1
    assert run([1, 0], Q, P, np.array([0.9, 0.4]), 0.0).num_accepted == 2


def test_the_residual_carries_the_weight():
    # w_1 = 1/2: (w p - q)+ = (.05, 0, 0) has no room for token 1, (p - q)+ = (.3, .1, 0) has.
    p = np.array([[0.25, 0.25, 0.5], [0.5, 0.4, 0.1], [1.0, 0.0, 0.0]])
    q = np.array([[0.5, 0.25, 0.25], [0.2, 0.3, 0.5]])
    assert run([0, 2], q, p, np.array([0.09, 0.99]), 0.999) == (1, 0, False)  # h_1 = 1/11
    assert run([0, 2], q, p, np.array([0.092, 0.99]), 0.0).num_accepted == 0


def test_a_row_decides_by_its_own_length():
    # w_1 = 1/2 for draft 0: kept below 1/2 as the last draft, never (Z_1 = 0) as one of two.
    assert run([0], Q[:1], P[:2], np.array([0.4]), 0.0).num_accepted == 1
    assert run([0, 0], Q, P, np.array([0.4, 0.9]), 0.0).num_accepted == 0


def test_corners():
    assert run([], Q[:0], P[:1], np.array([]), 0.9) == (0, 1, False)
    equal = np.array([[0.5, 0.5]] * 3)
    largest = np.full(2, 1 - 2.0**-53)
    assert run([0, 1], equal[:2], equal, largest, 0.0).num_accepted == 2
    impossible = np.array([[0.0, 1.0]] * 2)
    assert run([0], np.array([[0.0, 1.0]]), impossible, np.array([0.0]), 0.0) == (0, 1, True)


def test_weights_and_tests():
    assert weight_after(Fraction(1, 2), Fraction(1, 2), Fraction(1, 3)) == Fraction(3, 4)
    assert weight_after(1, 0.75, 0.5) == 1
    assert weight_after(1, 0.0, 0.0) == 0
    assert weight_after(1, 0.5, 0.0) == 1
    assert keeps(1, 0, 0.999), "0/0 is 1"
    assert not keeps(0, 0, 0.0)
    assert keeps(Fraction(1, 2), Fraction(1, 2), 0.49)
    assert not keeps(Fraction(1, 2), Fraction(1, 2), 0.5)
    assert keeps(1, 5e-324, 1 - 2.0**-53), "h = 1 for w = 1, whatever u * z rounds to"
