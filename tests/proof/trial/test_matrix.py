"""The judge's own test: the gallery at the subject's budget."""

import numpy as np
import pytest

from draftproof.proof.checks import CHECKS, checks_for
from draftproof.proof.mutants import EQUIVALENTS, MUTANTS, get
from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.subjects.subject import Subject
from draftproof.proof.trial.examination import examine
from draftproof.proof.trial.matrix import FATAL, judge_gallery, killers
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


def test_each_kind_of_exact_evidence_is_the_first_to_catch_something(matrix):
    first = {control.killed_by[0] for control in matrix.controls}
    assert {"oracle", "oracle-pairs", "oracle-calls", "bisection"} <= first


@pytest.mark.parametrize(
    ("name", "check"), [("lenience 1.04", ("oracle",)), ("token", ()), ("id V", ("oracle",))]
)
def test_killers_names_the_check(name, check):
    assert killers(name, PLAN) == check


def undrivable(name):
    """A mutant that takes only a seed from the judge's generator, so that nothing can drive it."""
    call = get(name).build()

    def verify(draft, q, p, num_draft, rng):
        return call(draft, q, p, num_draft, np.random.default_rng(rng.integers(2**62)))

    return Subject(name, Contract.RAGGED, verify, None, get(name).sampled_law)


@pytest.mark.parametrize(
    ("check", "name"),
    [
        ("joint", "resample p on a rejection"),
        ("ragged", "bonus from row K"),
        ("rows", "rows in pairs share noise"),
    ],
)
def test_sampling_catches_what_cannot_be_driven(check, name):
    subject = undrivable(name)
    outcomes = {
        name: [f.outcome for f in examine(name, CHECKS[name], subject, PLAN)]
        for name in ("oracle", "bisection", check)
    }
    assert not set(outcomes["oracle"] + outcomes["bisection"]) & {*FATAL, Outcome.PASSED}
    assert Outcome.LOSSY in outcomes[check]


def test_every_check_of_the_registry_runs_on_a_sampler():
    assert set(checks_for(Contract.RAGGED)) == set(CHECKS) - {"greedy", "practice"}
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
