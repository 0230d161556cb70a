import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

from draftproof.proof.worlds.wide import WIDE_WORLDS, cumulative, noisy_world

by_world = pytest.mark.parametrize("world", WIDE_WORLDS.values(), ids=list(WIDE_WORLDS))


@by_world
def test_rows_are_laws_that_nobody_can_edit(world):
    for law in world.tables:
        assert law.shape == (world.contexts, world.vocabulary)
        assert law.dtype == np.float64
        assert (law >= 0).all()
        assert law.sum(axis=1) == pytest.approx(1, abs=1e-12)
        assert not law.flags.writeable
    assert WIDE_WORLDS[world.name] is world
    assert world.why
    assert world.name.endswith(f"-{world.vocabulary}")


@by_world
def test_drafts_are_neither_useless_nor_perfect(world):
    p, q = world.tables
    alpha = np.minimum(p, q).sum(axis=1)
    assert (alpha > 0.2).all()
    assert (alpha < 0.999).all()


def test_the_last_token_says_which_row_governs_the_next_one():
    world = noisy_world(1_000)
    p, _ = world.tables
    assert (p == 0).any()
    assert world.row((5, 9)) == 1 != world.row((5, 8))
    assert world.row(()) == world.start
    assert world.context_after(np.array([9, 8])).tolist() == [1, 0]


def test_cumulative_sums_are_those_of_fractions():
    law = np.random.default_rng(0).dirichlet(np.full(500, 0.1))
    exact, total = Fraction(0), sum(map(Fraction, law))
    for p, edge in zip(law, cumulative(law), strict=True):
        exact += Fraction(p)
        assert abs(Fraction(edge) - exact / total) < 500 * Fraction(1, 2**61) + Fraction(1, 2**53)


@by_world
def test_nothing_lies_behind_the_last_possible_token(world):
    p, _ = world.tables
    last = world.vocabulary - 1 - (p[:, ::-1] > 0).argmax(axis=1)
    for edges, law, at in zip(world.edges[0], p, last, strict=True):
        assert edges[at] == edges[-1] == 1
        assert np.searchsorted(edges, 1 - 2.0**-53, side="right") == at
        assert np.searchsorted(edges, 0.0, side="right") == np.flatnonzero(law)[0]


def test_the_recorded_rows_are_a_language_models():
    world = WIDE_WORLDS["real-49152"]
    p, _ = world.tables
    assert 0.9 < p.max() < 1
    assert p.max(axis=1).min() < 0.1
    entropy = -np.sum(p * np.log(p, where=p > 0, out=np.zeros_like(p)), axis=1)
    assert (entropy > 0.1).all()
    assert (entropy < np.log(world.vocabulary) / 1.5).all()


def test_an_import_makes_no_row():
    program = (
        "from draftproof.proof.worlds.wide import WIDE_WORLDS\n"
        "assert not any({'tables', 'edges'} & set(vars(w)) for w in WIDE_WORLDS.values())"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
