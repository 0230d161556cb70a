# mypy: no-check-untyped-defs
from dataclasses import replace

import numpy as np
import pytest

from draftproof.proof.checks import CHECKS, checks_for
from draftproof.proof.checks.trees import (
    VISIBLE,
    check_tree_calls,
    check_tree_joint,
    check_tree_oracle,
    worlds_for,
)
from draftproof.proof.judge import check, conclude
from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.subjects.subject import Subject, load
from draftproof.proof.trial.matrix import Matrix
from draftproof.proof.trial.plan import make_plan
from draftproof.proof.verdicts.finding import Finding, Grade, Outcome
from draftproof.proof.verdicts.verdict import Conclusion

PLAN = make_plan("quick", 0)
FAST = replace(PLAN, visible=0.2)


def outcomes(findings):
    return {finding.outcome for finding in findings}


def test_the_contracts_have_checks_of_their_own():
    for contract in (Contract.SIBLINGS, Contract.TREE):
        assert checks_for(contract) == ("tree-oracle", "tree-calls", "tree-joint")
    assert set(checks_for(Contract.TREE)) <= set(CHECKS)


def test_worlds_are_those_of_the_subjects_draws():
    assert [w.name for w in worlds_for(load("tree:traversal"), PLAN)] == [
        "L4, 2, without-replacement",
        "L357, 3, without-replacement",
        "toy, 2 x 1, without-replacement",
    ]
    siblings = Subject("test", Contract.SIBLINGS, lambda siblings, q, p, rng: 0)
    assert all(w.depth == 1 for w in worlds_for(siblings, make_plan("standard", 0)))


def test_a_right_one_passes_and_says_how_much_it_emits():
    findings = list(check_tree_oracle(load("tree:target-only"), PLAN))
    assert outcomes(findings) == {Outcome.PASSED}
    assert findings[0].emitted == pytest.approx(1.5)
    assert outcomes(check_tree_calls(load("tree:target-only"), PLAN)) == {Outcome.PASSED}


def test_a_wrong_one_is_lossy_with_its_worst_texts():
    finding = next(check_tree_oracle(load("tree-mutant:duplicates_in_a_fixed_set"), PLAN))
    assert finding.outcome is Outcome.LOSSY
    assert finding.total_variation == 0.5
    assert finding.cells[0].observed > finding.cells[0].expected


def test_sampled_evidence_finds_a_wrong_one_too():
    wrong = check_tree_joint(load("tree-mutant:duplicates_in_a_fixed_set"), FAST)
    assert Outcome.LOSSY in outcomes(wrong)


def test_no_time_is_no_verdict():
    findings = check_tree_joint(load("tree:target-only"), replace(PLAN, timeout=-1.0))
    assert outcomes(findings) == {Outcome.INCONCLUSIVE}


def undrivable(siblings, q, p, rng):
    """The target's own token by noise that no instrument drives."""
    return int(np.argmin(rng.exponential(size=len(p)) / p))


def plain(siblings, q, p, rng):
    """The target's own token."""
    return int((np.cumsum(p) <= rng.random()).sum())


def test_siblings_say_nothing_of_how_many_are_accepted():
    finding = next(check_tree_oracle(Subject("test", Contract.SIBLINGS, plain), PLAN))
    assert (finding.outcome, finding.emitted) == (Outcome.PASSED, None)


def test_siblings_that_cannot_be_driven_are_sampled():
    subject = Subject("test", Contract.SIBLINGS, undrivable)
    assert outcomes(check_tree_oracle(subject, PLAN)) == {Outcome.NOT_DRIVABLE}
    assert outcomes(check_tree_joint(subject, FAST)) == {Outcome.PASSED}


def test_a_verdict_states_what_its_trees_were_sampled_for():
    sampled = Finding("tree-joint", Outcome.PASSED, Grade.SAMPLED, "", "L4", 1, 2, error=0.03)
    subject = Subject("test", Contract.SIBLINGS, undrivable)
    power = conclude(subject, [sampled], Matrix(), PLAN, 0.0).power
    assert PLAN.visible < power.smallest_visible_total_variation == VISIBLE


@pytest.mark.slow
def test_a_verdict_of_a_wrong_one():
    verdict = check("tree-mutant:fixed_siblings_tested_by_p_q", profile="quick", fail_fast=True)
    assert verdict.outcome is Conclusion.REJECTED
    assert verdict.reason.startswith("tree-oracle: the exact law of a round is 0.375 from")
    assert verdict.reproducer is not None
    assert "CHECKS['tree-oracle'](load(" in verdict.reproducer.script


@pytest.mark.slow
def test_a_verdict_of_our_own():
    verdict = check("tree:rrsw", profile="quick")
    assert verdict.outcome is Conclusion.NOT_REJECTED
    assert verdict.reason == ("its exact law is the target's in 3 worlds; 7 of 7 controls rejected")
    assert verdict.efficiency["L4, 2, without-replacement, g = 1"] == pytest.approx(
        0.8385, abs=1e-4
    )
    assert verdict.false_alarm_budget == {"tree-joint": 1e-6}
