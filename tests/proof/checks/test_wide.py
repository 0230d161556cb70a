from dataclasses import replace

import numpy as np
import pytest

from draftproof.proof.checks import wide
from draftproof.proof.checks.wide import check_cuts, check_witnesses
from draftproof.proof.mutants import get
from draftproof.proof.mutants.skeleton import Verifier
from draftproof.proof.sampled.budget import share
from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.subjects.subject import Subject
from draftproof.proof.trial.plan import PROFILES, make_plan
from draftproof.proof.verdicts.finding import Grade, Outcome
from draftproof.proof.worlds.wide import WIDE_WORLDS

PLAN = make_plan("quick", 0)


def subject(call, **more):
    return Subject("it", Contract.RAGGED, call, **more)


class FloatSums(Verifier):
    """Right as long as rows are float64: its sums have the precision of the rows."""

    def last_law(self, call, tau):
        return super().last_law(call, tau).astype(call.p.dtype)

    def draw(self, weights, u):
        edges = weights.cumsum(axis=1).astype(np.float64)
        return (edges <= u[:, None] * edges[:, -1:]).sum(axis=1)


@pytest.mark.parametrize("profile", PROFILES)
def test_every_profile_looks_at_worlds_of_the_catalogue(profile):
    assert {name for name, *_ in wide.CUTS[profile] + wide.TEXTS[profile]} <= set(WIDE_WORLDS)
    assert all(0 < briefly <= texts for _, _, texts, briefly in wide.TEXTS[profile])


def test_float32_rows_give_a_grade_and_never_a_rejection(monkeypatch):
    cases = (("flat-32768", "float64", 4), ("flat-32768", "float32", 4))
    monkeypatch.setitem(wide.CUTS, "quick", cases)
    double, single = check_cuts(subject(FloatSums()), PLAN)
    assert (double.outcome, double.case) == (Outcome.PASSED, {"dtype": "float64"})
    assert (single.outcome, single.case) == (Outcome.NOTE, {"dtype": "float32"})
    assert 1e-6 < (single.total_variation or 0) < 1e-3
    assert (single.grade, single.num_draft) == (Grade.EXACT, 0)
    assert "float32 rows of 32,768 tokens" in single.message


def test_a_wrong_draw_names_its_worst_token():
    (finding,) = check_cuts(subject(get("argmax of a peaked row").build()), PLAN)
    assert finding.outcome is Outcome.LOSSY
    (cell,) = finding.cells
    assert cell.expected == pytest.approx(15 / 16)
    assert cell.observed == pytest.approx(1)


def test_what_cannot_be_driven_is_not_graded():
    findings = list(check_cuts(subject(get("token, Gumbel noise").build()), PLAN))
    assert [f.outcome for f in findings] == [Outcome.NOT_DRIVABLE]


def test_witnesses_spend_what_the_budget_allots():
    findings = list(check_witnesses(subject(Verifier()), PLAN))
    assert [f.outcome for f in findings] == [Outcome.PASSED] * 2
    assert [(f.world, f.num_draft, f.size) for f in findings] == [
        (world, g, texts) for world, g, texts, _ in wide.TEXTS["quick"]
    ]
    assert share(PLAN.false_alarm, "witnesses") > 0


def test_a_wrong_law_is_stopped_at_the_first_look():
    class Uniform(Verifier):
        def draw(self, weights, u):
            return (u * weights.shape[1]).astype(np.int64)

    sparse, _ = check_witnesses(subject(Uniform()), PLAN)
    assert sparse.outcome is Outcome.LOSSY
    assert sparse.size < wide.TEXTS["quick"][0][2]
    assert "impossible" in sparse.message
    assert sparse.cells[0].expected == 0 < sparse.cells[0].observed


def test_without_time_it_is_inconclusive():
    findings = list(check_witnesses(subject(Verifier()), replace(PLAN, timeout=0.0)))
    assert {f.outcome for f in findings} == {Outcome.INCONCLUSIVE}
    assert all("there was no time" in f.message for f in findings)


def test_drafts_that_do_not_come_from_the_declared_law_show():
    def squared(row):
        total = sum(x * x for x in row)
        return [x * x / total for x in row]

    it = subject(Verifier(), sampled_law=squared)
    sparse, _ = check_witnesses(it, replace(PLAN, seed=1))
    assert sparse.outcome is Outcome.LOSSY
