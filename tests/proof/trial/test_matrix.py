"""The judge's own test: the gallery at the subject's budget."""

import numpy as np
import pytest

from draftproof.proof.checks import CHECKS, checks_for
from draftproof.proof.mutants import EQUIVALENTS, MUTANTS, get
from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.trial.matrix import judge_gallery, killers
from draftproof.proof.trial.plan import make_plan
from draftproof.proof.verdicts.finding import Finding, Grade, Outcome
from draftproof.proof.verdicts.fingerprint import fingerprint, nearest_fault

PLAN = make_plan("quick", 0)


@pytest.fixture(scope="module")
def matrix():
    return judge_gallery(PLAN)


def test_every_wrong_verifier_dies(matrix):
    assert matrix.survivors == ()
    assert matrix.killed == matrix.total == len(MUTANTS) >= 45


def test_every_right_verifier_lives(matrix):
    assert matrix.casualties == ()
    assert len(EQUIVALENTS) >= 20


@pytest.mark.parametrize(
    ("name", "check"), [("lenience 1.04", ("oracle",)), ("token", ()), ("id V", ("oracle",))]
)
def test_killers_names_the_check(name, check):
    assert killers(name, PLAN) == check


@pytest.mark.parametrize(
    ("name", "first", "check"),
    [
        ("tail of the vocabulary unread", "one-hot", ("one-hot",)),
        ("lenience 1.04", "one-hot", ("oracle",)),
        ("token", "rows", ()),
        ("crashes on an empty batch", "empty-batch", ("empty-batch",)),
    ],
)
def test_a_check_that_is_tried_first_hides_no_other(name, first, check):
    assert killers(name, PLAN, first) == check


def test_every_check_of_the_registry_belongs_to_a_contract():
    assert {name for contract in Contract for name in checks_for(contract)} == set(CHECKS)
    assert checks_for(Contract.GREEDY) == ("greedy",)


def test_stored_fingerprints_are_those_of_the_gallery():
    for name in ("resample p on a rejection", "lenience 1.04"):
        findings = [
            Finding("oracle", Outcome.LOSSY, Grade.EXACT, "", world, int(g), int(K),
                    residuals=tuple(residuals))
            for key, residuals in fingerprint(get(name)).items()
            for check, *world_parts, g, K in [key.split(" ")]
            for world in [" ".join(world_parts)]
            if check == "oracle"
        ]  # fmt: skip
        nearest = nearest_fault(findings)
        assert nearest is not None
        assert (nearest.name, round(nearest.correlation, 6)) == (name, 1)


def test_a_new_fault_is_not_given_an_old_name():
    noise = np.random.default_rng(0).normal(size=64)
    finding = Finding(
        "oracle", Outcome.LOSSY, Grade.EXACT, "", "L4", 2, 2, residuals=tuple(noise - noise.mean())
    )
    assert nearest_fault([finding]) is None
