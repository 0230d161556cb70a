"""Right subjects of every contract under many seeds: not one may be rejected, or left undecided."""

import functools
import io
from contextlib import redirect_stdout

import numpy as np
import pytest

import draftproof
from draftproof import practice
from draftproof.proof.checks import CHECKS, ORACLE, checks_for
from draftproof.proof.judge import conclude
from draftproof.proof.mutants import EQUIVALENTS
from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.subjects.subject import Subject, load
from draftproof.proof.trial.course import plan_for
from draftproof.proof.trial.examination import examine
from draftproof.proof.trial.matrix import Matrix
from draftproof.proof.trial.plan import make_plan
from draftproof.proof.verdicts.finding import Finding
from draftproof.proof.verdicts.verdict import Conclusion
from tests.proof.test_judge import greedy, single, with_uniforms

PATIENCE = 3_600.0
EXACT = (*ORACLE, "bisection")
"""Checks that no seed changes: done once for each subject."""


class Floats:
    """A generator of plain numbers, which intervals cannot follow."""

    def __init__(self, rng):
        self.rng = rng

    def random(self):
        return float(self.rng.random())


def single_of_floats(draft, q, p, rng):
    return single(draft, q, p, Floats(rng))


def with_own_generator(draft, q, p, num_draft, rng):
    """Nothing can drive it."""
    own = np.random.default_rng(rng.integers(1 << 62))
    return draftproof.verify(draft, q, p, num_draft, own)


SUBJECTS = [
    *(load(equivalent.spec) for equivalent in EQUIVALENTS.values()),
    *(load(f"own:{backend}") for backend in ("native", "numpy")),
    Subject("single", Contract.SINGLE, single),
    Subject("single of floats", Contract.SINGLE, single_of_floats),
    Subject("uniforms", Contract.UNIFORMS, with_uniforms),
    Subject("own generator", Contract.RAGGED, with_own_generator),
    Subject("greedy", Contract.GREEDY, greedy),
    Subject("practice", Contract.PRACTICE, practice.verify_speculative_tokens),
]


@functools.cache
def exact_findings(number, seed=0):
    subject, plan = SUBJECTS[number], make_plan("quick", seed, PATIENCE)
    names = [name for name in checks_for(subject.contract) if name in EXACT]
    findings: list[Finding] = []
    for name in names:
        findings += examine(name, CHECKS[name], subject, plan_for(name, plan, findings))
    return tuple(findings)


def verdict(number, seed):
    """The verdict of a quick trial, but for its controls."""
    subject, plan = SUBJECTS[number], make_plan("quick", seed, PATIENCE)
    with redirect_stdout(io.StringIO()):
        findings = list(exact_findings(number))
        for name in checks_for(subject.contract):
            if name not in EXACT:
                asked = plan_for(name, plan, findings)
                findings += examine(name, CHECKS[name], subject, asked)
    return conclude(subject, findings, Matrix(), plan, 0.0)


@pytest.mark.parametrize("name", ["single", "single of floats"])
def test_no_seed_changes_exact_evidence(name):
    (number,) = (i for i, subject in enumerate(SUBJECTS) if subject.name == name)
    assert exact_findings(number, 1) == exact_findings(number, 2)


@pytest.mark.slow
def test_two_hundred_quick_verdicts_of_right_subjects_are_right():
    wrong = []
    for seed in range(200):
        found = verdict(seed % len(SUBJECTS), seed)
        if found.outcome is not Conclusion.NOT_REJECTED:
            wrong.append((found.subject, seed, found.reason))
    assert wrong == []
