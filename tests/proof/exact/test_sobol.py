import pytest

from draftproof.proof import WORLDS
from draftproof.proof.exact.replay import Replay
from draftproof.proof.exact.sobol import sobol_law
from draftproof.proof.subjects.subject import load


def test_sobol_points_come_close():
    pytest.importorskip("scipy")
    world = WORLDS["L357"]
    right = sobol_law(Replay(load("mutant:token"), world, 2), 11)
    assert 0 < right.law.total_variation(world.target_law(3)) < right.law.error < 0.01


def test_sobol_points_show_a_wrong_law():
    pytest.importorskip("scipy")
    world = WORLDS["L4"]
    wrong = sobol_law(Replay(load("mutant:one uniform for all"), world, 2), 11)
    assert wrong.law.total_variation(world.target_law(3)) == pytest.approx(3 / 32, abs=0.002)
