from fractions import Fraction

import numpy as np
import pytest

from draftproof.reference.block import block
from draftproof.reference.chain import Emission
from draftproof.reference.greedy_block import (
    Discount,
    advance,
    discounted,
    greedy_block,
    joint_residual,
    ratio_after,
    state_after,
    target_row,
)

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)
P = np.array([[THIRD, 2 * THIRD]] * 3)
Q = np.array([[2 * THIRD, THIRD]] * 2)
BELOW_ONE = 1 - 2.0**-53


def run(drafts, q, p, accept, final, rule=greedy_block):
    return rule(drafts, q, p, accept, final)


def after(drafts, q, p, emission):
    return state_after(drafts, q, p, (), emission)


def test_the_ratio_is_not_capped():
    # r = 2, then 1: kept whatever the uniform. Block caps w_1 at 1, and keeps both below 1/2.
    accept = [Fraction(9, 10)] * 2
    assert run([1, 0], Q, P, accept, Fraction(0)).num_accepted == 2
    assert run([1, 0], Q, P, accept, Fraction(0), rule=block).num_accepted == 1


def test_the_residual_carries_the_ratio():
    # r_1 = 2: (2 p - q)+ = (0, 1) as often as (2/3 - 2/3)+ and (4/3 - 1/3)+ say.
    q = np.array([[2 * THIRD, THIRD], [1 - Fraction(1, 8), Fraction(1, 8)]])
    emission = run([1, 0], q, P, [Fraction(0), BELOW_ONE], Fraction(0))
    assert emission == (1, 1, False)  # r_2 = 2 * (1/3) / (7/8) = 16/21


@pytest.mark.parametrize("r", [Fraction(1, 4), 1, Fraction(7, 2)])
def test_the_joint_residual_is_a_multiple_of_the_papers(r):
    expected = np.maximum(r * P[0] - Q[0], 0)
    measured = joint_residual(r, P[0], Q[0])
    assert (measured * max(r, 1) == expected).all()


def test_an_infinite_ratio_leaves_the_target():
    assert ratio_after(1, 0.5, 0.0) == np.inf
    assert ratio_after(np.inf, 0.0, 0.5) == ratio_after(1, 0.0, 0.0) == 0
    assert ratio_after(0, 0.5, 0.0) == 0
    assert joint_residual(np.inf, np.array([0.25, 0.75]), np.array([1.0, 0.0])).tolist() == [
        0.25,
        0.75,
    ]


def test_a_rejection_leaves_a_discount_for_the_open_positions():
    drafts, rejected = [0, 0, 0], Emission(0, 1)
    q, p = np.vstack([Q, Q[:1]]), np.vstack([P, P[:1]])
    # y = 1 after no draft: d = q(y) / p(y) = 1/2, for the two positions behind y.
    assert after(drafts, q, p, rejected) == (Discount(2, HALF),)
    # One draft kept at r = 1/2: d = (1/3) / (1/2 * 2/3) = 1 for y = 1.
    assert after(drafts, q, p, Emission(1, 1)) == (Discount(1, 1),)
    assert after(drafts, q, p, Emission(2, 1)) == ()
    assert after(drafts, q, p, Emission(3, 1)) == ()


def test_a_discount_takes_from_the_target_what_was_emitted_in_excess():
    assert discounted(P[0], Q[0], HALF).tolist() == [0, 1]
    assert discounted(P[0], Q[0], Fraction(1, 4)).tolist() == [Fraction(2, 9), Fraction(7, 9)]
    assert discounted(P[0], Q[0], 1).tolist() == P[0].tolist(), "a text that is never written"
    both = (Discount(1, Fraction(1, 4)), Discount(1, HALF))
    assert target_row(both, Q[0], P[0]).tolist() == [0, 1]


def test_discounts_move_with_the_text_and_run_out():
    state = (Discount(1, Fraction(1, 4)), Discount(3, Fraction(1, 4)))
    # The earlier one ends; the later one sees p below itself, which is (2/9, 7/9).
    assert advance(state, 1, Q[0], P[0]) == (Discount(2, Fraction(1, 4) * THIRD * Fraction(9, 7)),)
    assert advance((Discount(2, HALF),), 0, Q[0], np.array([0, 1])) == (Discount(1, 1),)


def test_corners():
    assert run([], Q[:0], P[:1], [], 0.9) == (0, 1, False)
    equal = np.full((3, 2), 0.5)
    assert run([0, 1], equal[:2], equal, [BELOW_ONE] * 2, 0.0).num_accepted == 2
    impossible = np.array([[0.0, 1.0]] * 2)
    assert run([0], impossible[:1], impossible, [0.0], 0.0) == (0, 1, True)
