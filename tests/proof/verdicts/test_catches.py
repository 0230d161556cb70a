"""Each check earns its place: in some class of subject it is the first to catch a fault."""

import numpy as np
import pytest

from draftproof.proof.checks import ORACLE, checks_for
from draftproof.proof.mutants import MUTANTS, get
from draftproof.proof.mutants.access import ACCESSES, with_access
from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.verdicts.catches import accesses, caught_by, first_catch, first_catches

ELSEWHERE = {
    # Scripted uniforms tell all of calls without drafts and of two rounds; no seed is left. A
    # trial spares few rows where the oracle has followed calls and pairs.
    "driven": {"different-seeds", "few-rows", "no-drafts", "rounds", "seeds"},
    "rng": {*ORACLE, "bisection", "cuts"},
    # Without uniforms the oracle sees what comes whatever the noise is; and no seed is taken.
    "own": {"oracle-pairs", "oracle-calls", "bisection", "cuts", "few-rows", "seeds"},
}
"""Checks that speak of another class of subject."""
NO_CHECK = {"scorecard"}
"""It explains, and never rejects."""
SMALL = 0.02
"""What a quick trial of a subject that cannot be driven promises to see."""
ROUNDS = {"block, noise by absolute position": 29 / 5120}
"""Distances that show over rounds alone."""


def test_the_stored_catches_are_of_this_gallery():
    assert list(first_catches()) == list(MUTANTS), "python -m draftproof.proof.verdicts.catches"
    for name, catches in first_catches().items():
        assert tuple(catches) == accesses(MUTANTS[name])


@pytest.mark.parametrize("access", ACCESSES)
def test_each_check_is_the_first_to_catch_something(access):
    first = {
        catches[access]
        for name, catches in first_catches().items()
        if access in catches and (MUTANTS[name].drivable or access != "driven")
    }
    assert set(checks_for(Contract.RAGGED)) - NO_CHECK - ELSEWHERE[access] <= first


@pytest.mark.parametrize("access", ACCESSES)
def test_what_survives_is_small(access):
    for name, catches in first_catches().items():
        mutant = MUTANTS[name]
        if catches.get(access, "") is None and mutant.seen != "vocabulary":
            distance = ROUNDS.get(name, mutant.total_variation)
            is_small = mutant.kind == "float" or (distance is not None and distance < SMALL)
            right_without_seeds = access == "own" and mutant.seen == "seeds"
            assert access != "driven"
            assert is_small or right_without_seeds, name


@pytest.mark.parametrize(
    ("name", "access", "check"),
    [
        ("resample p on a rejection", "driven", "oracle"),
        ("rows in pairs share noise", "rng", "rows"),
        ("last row's coin left at 0", "rng", "few-rows"),
        ("length told by pads of -1", "own", "ragged"),
        ("0/0 where p = q", "own", "equal-laws"),
    ],
)
def test_the_first_catch(name, access, check):
    assert first_catch(get(name), access) == first_catches()[name][access] == check


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_stored_catches_are_found_again(name):
    mutant = MUTANTS[name]
    found = {access: first_catch(mutant, access) for access in accesses(mutant)}
    assert found == first_catches()[name]


def test_a_right_verifier_lives_with_entropy_of_its_own():
    assert first_catch(get("token"), "own") is None


def test_access_is_what_its_name_says():
    p = np.full((50, 1, 4), 0.25)
    call = np.zeros((50, 0), int), p[:, :0], p, np.zeros(50, int)

    def differ(access, *seeds):
        subject = with_access(get("token"), access)
        first, second = (subject.verify(*call, np.random.default_rng(s))[0] for s in seeds)
        return not np.array_equal(first, second)

    assert differ("rng", 0, 1)
    assert not differ("rng", 0, 0)
    assert differ("own", 0, 0)


def test_all_kinds_of_evidence_are_named():
    assert caught_by("resample p on a rejection")[:3] == ("oracle", "oracle-pairs", "oracle-calls")
    assert "rows" in caught_by("rows in pairs share noise")
    assert "one-hot" in caught_by("tail of the vocabulary unread")
