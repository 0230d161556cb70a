from fractions import Fraction

import numpy as np
import pytest

from draftproof.proof import WORLDS
from draftproof.proof.controls import CONTROLS, correct
from draftproof.proof.exact.exact_law import RULES
from draftproof.proof.exact.generator import NotDrivable
from draftproof.proof.exact.lattice import disagreements, lattice_law, rule_thresholds, sobol_law
from draftproof.proof.exact.replay import Replay
from draftproof.proof.subjects.subject import as_subject

L4, L357 = WORLDS["L4"], WORLDS["L357"]


class FirstScaled(np.random.Generator):
    """A generator whose first uniforms are another one's, made smaller."""

    def __init__(self, rng, factor):
        super().__init__(np.random.PCG64(0))
        self.rng, self.factor = rng, factor

    def random(self, *args, **kwargs):
        factor, self.factor = self.factor, 1
        return self.rng.random(*args, **kwargs) / factor


def lenient(draft, q, p, num_draft, rng):
    """Accepts with probability min(1, 1.04 p / q)."""
    return correct(draft, q, p, num_draft, FirstScaled(rng, 1.04))


def test_a_rules_own_thresholds():
    first, second, final = rule_thresholds(RULES["token"], L4, (0, 0))
    assert first == [0, Fraction(3, 4), 1]
    assert second == [0, Fraction(3, 4), 1]
    assert [8 * t for t in final] == [0, 2, 3, 5, 7, 8]  # (0, 1, 3, 0) / 4, and 6 4 4 2
    block = rule_thresholds(RULES["block"], L357, (0, 1))
    assert all(t.denominator % 2 for t in block[0])
    match, last = rule_thresholds(RULES["exact-match"], L4, (2,))
    assert match == [0, Fraction(3, 8), Fraction(5, 8), Fraction(7, 8), 1]
    assert last == [0, Fraction(1, 8), Fraction(1, 2), Fraction(3, 4), 1]


@pytest.mark.parametrize("world", [L4, L357, WORLDS["zeros"]], ids=["L4", "L357", "zeros"])
@pytest.mark.parametrize("size", [(0, 2), (1, 2), (2, 2)])
def test_a_right_verifier_is_exact_on_its_own_cells(world, size):
    replay = Replay(as_subject(correct), world, *size)
    run = lattice_law(replay, RULES["token"])
    assert run.law == world.target_law(size[0] + 1)
    assert run.law.error == 0


def test_a_control_shows_on_the_lattice():
    replay = Replay(as_subject(CONTROLS["resample p on a rejection"]), L4, 2)
    law = lattice_law(replay, RULES["token"]).law
    assert law.total_variation(L4.target_law(3)) > 0.1


def test_only_refinement_shows_a_threshold_between_the_points():
    replay = Replay(as_subject(lenient), L4, 2)
    coarse, fine = (lattice_law(replay, RULES["token"], refine).law for refine in (1, 5))
    assert coarse == L4.target_law(3)
    assert fine.total_variation(L4.target_law(3)) == pytest.approx(0.023, abs=0.015)


def test_the_reference_agrees_at_every_edge():
    replay = Replay(as_subject(correct), L4, 2)
    assert list(disagreements(replay, RULES["token"])) == []


def test_another_edge_is_a_disagreement():
    def shifted(draft, q, p, num_draft, rng):
        cumulative = np.cumsum(p[:, 0], axis=1)
        token = (cumulative < rng.random((len(p), 1))).sum(axis=1)
        return token[:, None], np.ones(len(p), dtype=int)

    found = list(disagreements(Replay(as_subject(shifted), L4, 0), RULES["token"]))
    assert [d.uniforms for d in found] == [(0.375,), (0.625,), (0.875,)]
    assert [(d.emitted, d.expected) for d in found[:1]] == [((0,), (1,))]


def test_other_numbers_of_uniforms_are_refused():
    def one_more(draft, q, p, num_draft, rng):
        rng.random(len(draft))
        return correct(draft, q, p, num_draft, rng)

    with pytest.raises(NotDrivable, match="3 uniforms"):
        lattice_law(Replay(as_subject(one_more), L4, 1), RULES["token"])


def test_sobol_points_come_close():
    pytest.importorskip("scipy")
    right = sobol_law(Replay(as_subject(correct), L357, 2), 11)
    target = L357.target_law(3)
    assert 0 < right.law.total_variation(target) < right.law.error < 0.01
    wrong = sobol_law(Replay(as_subject(CONTROLS["one uniform for all"]), L4, 2), 11)
    assert wrong.law.total_variation(L4.target_law(3)) == pytest.approx(3 / 32, abs=0.002)
