"""Faults of large vocabularies: their laws, and that small ones show nothing."""

from dataclasses import replace

import numpy as np
import pytest

from draftproof.proof.checks.wide import check_cuts, check_witnesses
from draftproof.proof.exact.exact_law import oracle_law
from draftproof.proof.mutants import EQUIVALENTS, MUTANTS, get, wide
from draftproof.proof.subjects.subject import load
from draftproof.proof.trial.examination import examine
from draftproof.proof.trial.plan import after_proof, make_plan
from draftproof.proof.verdicts.finding import Outcome
from draftproof.proof.worlds.catalogue import WORLDS
from draftproof.proof.worlds.wide import WIDE_WORLDS

WIDE = [mutant for mutant in MUTANTS.values() if mutant.seen == "vocabulary"]
DRIVEN = [mutant for mutant in WIDE if mutant.drivable]
PLAN = after_proof(make_plan("quick", 0))
CHECKS = {"cuts": check_cuts, "witnesses": check_witnesses}
RIGHT = (
    "token",
    "exact match",
    "block",
    "no bonus",
    "token, exponential race",
    "token, own entropy",
)


def outcomes(name, check):
    return {
        finding.outcome for finding in examine(check, CHECKS[check], load(get(name).spec), PLAN)
    }


def names(mutants):
    return [mutant.name for mutant in mutants]


@pytest.mark.parametrize(
    ("check", "name"),
    [
        ("witnesses", "residual floor 1e-5"),
        ("witnesses", "draft law clamped at 1e-3"),
        ("cuts", "argmax of a peaked row"),
        ("cuts", "draw from the top 4096"),
        ("cuts", "small weights dropped"),
        ("cuts", "last block lost"),
        ("cuts", "long rows summed in float32"),
        ("cuts", "the rest to the last token"),
        ("witnesses", "token ids in 16 bits"),
    ],
)
def test_each_dies_and_each_check_catches_what_the_other_misses(check, name):
    assert Outcome.LOSSY in outcomes(name, check)


def test_none_is_left_out():
    assert len(WIDE) == 9
    assert len({mutant.total_variation for mutant in WIDE}) == 9


@pytest.mark.parametrize("name", RIGHT)
def test_right_verifiers_live(name):
    assert name in EQUIVALENTS
    seen = {outcome for check in CHECKS for outcome in outcomes(name, check)}
    assert seen <= {Outcome.PASSED, Outcome.NOT_DRIVABLE}


@pytest.mark.parametrize("mutant", DRIVEN, ids=names(DRIVEN))
@pytest.mark.parametrize("world", ["L4", "L357", "zeros", "near-equal"])
def test_small_vocabularies_show_nothing(mutant, world):
    law = oracle_law(load(mutant.spec), WORLDS[world], 1).law
    assert law.total_variation(WORLDS[world].target_law(2)) <= law.error


SMALL = {
    "BLOCK": 3, "CLAMP": 0.35, "LEAST_WEIGHT": 0.7, "GREEDY_ABOVE": 0.3, "SIXTEEN_BITS": 3,
}  # fmt: skip


@pytest.mark.parametrize("mutant", DRIVEN, ids=names(DRIVEN))
def test_the_law_that_a_mutant_states_is_its_own(mutant, monkeypatch):
    """With its constants made small the oracle can follow it: the formula against the program."""
    for name, value in SMALL.items():
        monkeypatch.setattr(wide, name, value)
    world, it = replace(WORLDS["L357"], start=2), mutant.build()
    q, p = world.arrays([0])
    stated = it.first_token(p[0], q[0])
    if "float32" not in mutant.does:  # else it is off by rounding alone
        assert np.abs(stated - p[0]).sum() > 0.01
    num_draft = 0 if isinstance(it, wide.WideDraw) else 1
    first = np.zeros(4)
    for text, mass in oracle_law(load(mutant.spec), world, num_draft).law.items():
        first[text[0]] += mass
    assert first == pytest.approx(stated, abs=1e-15)


def test_a_floor_of_the_residual_grows_with_the_vocabulary():
    """A published pair of figures: 9e-5 at V = 16 and .28 at V = 128,256, on exponential rows."""
    floor = wide.ResidualFloor()
    for V, expected, tolerance in ((16, 9e-5, 3e-5), (128_256, 0.28, 0.01)):
        p, q = np.random.default_rng(0).dirichlet(np.ones(V), 2)
        distance = np.abs(floor.first_token(p, q) - p).sum() / 2
        assert distance == pytest.approx(expected, abs=tolerance)


def test_distances_are_taken_in_wide_worlds():
    assert all(mutant.world in WIDE_WORLDS for mutant in WIDE)
    sixteen = get("token ids in 16 bits")
    p = WIDE_WORLDS[sixteen.world].tables[0][0]
    assert float(sixteen.total_variation or 0) == pytest.approx(p[65_536:].sum(), abs=1e-12)
    assert 1e-3 < float(get("long rows summed in float32").total_variation or 0) < 2e-3
