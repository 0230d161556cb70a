from fractions import Fraction

import pytest

from draftproof.proof.sampled.budget import LOOKS, SHARES, share, table


def test_the_shares_add_up_to_the_whole():
    assert sum(SHARES.values()) == 1
    assert all(part > 0 for part in SHARES.values())
    assert sum(table(1e-6).values()) == pytest.approx(1e-6)
    assert table(1e-6)["joint"] == share(1e-6, "joint")


def test_the_looks_spend_their_share_and_the_last_sees_everything():
    assert sum(part for _, part in LOOKS) == 1
    fractions = [fraction for fraction, _ in LOOKS]
    assert fractions == sorted(set(fractions))
    assert fractions[-1] == Fraction(1)


def test_a_check_without_a_share_may_spend_nothing():
    with pytest.raises(KeyError):
        share(1e-6, "unheard of")
