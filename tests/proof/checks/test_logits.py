# mypy: no-check-untyped-defs
from dataclasses import replace
from functools import partial
from itertools import islice

import numpy as np
import pytest

from draftproof.proof.checks import CHECKS, checks_for
from draftproof.proof.checks.logits import (
    check_logits_bisection,
    check_logits_engine,
    check_logits_joint,
    check_logits_oracle,
    check_logits_padding,
    check_logits_pairs,
    worlds_for,
)
from draftproof.proof.judge import check
from draftproof.proof.logits.coverage import not_covered_from_logits
from draftproof.proof.logits.skeleton import LogitsVerifier, PromptedVerifier
from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.subjects.emission import ContractBroken
from draftproof.proof.subjects.subject import Subject, load
from draftproof.proof.trial.plan import after_proof, make_plan
from draftproof.proof.verdicts.finding import Outcome
from draftproof.proof.verdicts.verdict import Conclusion
from draftproof.proof.worlds.logits_world import (
    FOCUSED,
    HABITS,
    LOGITS_WORLDS,
    PROMPTED,
    TWO_ROUNDS,
)

PLAN = make_plan("quick", 0)
SHORT = replace(PLAN, sizes=((1, 2),))


class OfFloats(LogitsVerifier):
    """Turns its uniforms into floats."""

    def _uniforms(self, shape, rng):
        accept, final = super()._uniforms(shape, rng)
        return accept.astype(float), final.astype(float)


class InOrder(LogitsVerifier):
    order, lacks = "vllm", ("min_p",)


def subject_of(verify):
    return Subject("test", Contract.LOGITS, verify)


def outcomes(findings):
    return {finding.outcome for finding in findings}


def test_the_contract_has_checks_of_its_own():
    assert set(checks_for(Contract.LOGITS)) <= set(CHECKS)
    assert checks_for(Contract.LOGITS)[:2] == ("logits-engine", "logits-oracle")


def test_worlds_are_the_focused_ones_and_some_at_random():
    own = subject_of(LogitsVerifier())
    assert [w.name for w in worlds_for(own, PLAN)] == [*FOCUSED, "random 0", "random 1"]
    asked = worlds_for(own, make_plan("standard", 0))
    assert {w.name for w in asked} == set(LOGITS_WORLDS) - {*HABITS, *PROMPTED, TWO_ROUNDS}
    told = subject_of(PromptedVerifier())
    assert worlds_for(told, PLAN)[-1].name == "prompt"


def test_a_right_one_passes_in_its_own_order():
    for verify in (LogitsVerifier(), InOrder()):
        assert outcomes(check_logits_oracle(subject_of(verify), SHORT)) == {Outcome.PASSED}


def test_what_it_lacks_is_noted_and_said():
    findings = list(check_logits_engine(subject_of(InOrder()), PLAN))
    assert findings[0].outcome is Outcome.NOTE
    assert "It was judged without min_p, which it says that it lacks." in (
        not_covered_from_logits(findings, 0.1)
    )


def test_a_wrong_one_is_lossy_with_its_worst_texts():
    finding = next(check_logits_oracle(load("logits-mutant:raw_accept"), SHORT))
    assert finding.outcome is Outcome.LOSSY
    assert finding.cells[0].expected != finding.cells[0].observed


class Mixed(LogitsVerifier):
    def __init__(self, part):
        self.part = part

    def _bonus(self, rows):
        law = super()._bonus(rows)
        return (1 - self.part) * law + self.part / len(law)


def test_float32_is_a_note():
    finding = next(check_logits_oracle(load("logits-mutant:laws_in_float32"), SHORT))
    assert finding.outcome is Outcome.NOTE
    assert "rounding to float32 explains" in finding.message
    assert 1e-9 < finding.total_variation < 1e-6
    coverage = not_covered_from_logits([finding], 0.1)
    assert any(sentence.startswith("Its laws are rounded") for sentence in coverage)


def test_what_float32_does_not_explain_is_a_bias():
    found = check_logits_oracle(subject_of(Mixed(1e-3)), SHORT)
    assert next(found).outcome is Outcome.LOSSY
    smallest = list(islice(check_logits_oracle(subject_of(Mixed(1e-7)), SHORT), 2))
    assert [finding.outcome for finding in smallest] == [Outcome.NOTE, Outcome.LOSSY]
    assert smallest[1].world == "top-k, top-p"  # where some texts are impossible


def test_rows_with_each_others_parameters_are_seen_by_twos():
    wrong = load("logits-mutant:the_first_row_s_parameters")
    assert outcomes(check_logits_oracle(wrong, SHORT)) == {Outcome.PASSED}
    assert next(check_logits_pairs(wrong, PLAN)).outcome is Outcome.LOSSY


def test_what_an_earlier_call_left_may_not_be_read():
    wrong = load("logits-mutant:drafts_left_behind_taken_for_its_own")
    assert outcomes(check_logits_oracle(wrong, SHORT)) == {Outcome.PASSED}
    with pytest.raises(ContractBroken, match="n_out of row 0"):
        list(check_logits_padding(wrong, SHORT))


@pytest.mark.slow
def test_replay_sees_the_row_beside():
    wrong = load("logits-mutant:the_neighbour_s_temperature_of_floats")
    assert next(check_logits_oracle(wrong, SHORT)).outcome is Outcome.NOT_DRIVABLE
    assert next(check_logits_bisection(wrong, PLAN)).outcome is Outcome.LOSSY


def test_replay_stops_where_there_is_no_time():
    findings = list(check_logits_bisection(subject_of(OfFloats()), replace(PLAN, timeout=-1.0)))
    assert [finding.outcome for finding in findings] == [Outcome.NOTE]
    assert findings[0].message.startswith("no time for the thresholds in temperatures")


def test_wrong_log_probabilities_break_the_contract():
    wrong = load("logits-mutant:log_probabilities_of_the_row_before")
    with pytest.raises(ContractBroken, match="logprobs of row 0 at position 1"):
        list(check_logits_oracle(wrong, SHORT))


@pytest.mark.parametrize("backend", ["reference", "numpy"])
def test_our_own_call_can_be_followed(backend):
    findings = check_logits_oracle(load(f"own:logits:{backend}"), SHORT)
    assert outcomes(islice(findings, 4)) == {Outcome.PASSED}


@pytest.mark.slow
def test_what_cannot_be_followed_is_replayed():
    subject = subject_of(OfFloats())
    assert next(check_logits_oracle(subject, SHORT)).outcome is Outcome.NOT_DRIVABLE
    assert next(check_logits_bisection(subject, PLAN)).outcome is Outcome.PASSED


def test_nothing_is_replayed_where_the_oracle_has_told_the_law():
    findings = check_logits_bisection(subject_of(LogitsVerifier()), after_proof(PLAN))
    assert list(findings) == []


def test_no_time_is_no_verdict():
    plan = replace(PLAN, timeout=-1.0)
    findings = check_logits_joint(subject_of(LogitsVerifier()), plan)
    assert outcomes(findings) == {Outcome.INCONCLUSIVE}


def test_sampling_sees_a_batch_of_one_noise():
    verify = partial(_with_one_uniform, OfFloats())
    assert Outcome.LOSSY in outcomes(check_logits_joint(subject_of(verify), PLAN))


def _with_one_uniform(verify, *arguments):
    shared = arguments[-1].integers(2**32)
    parts = [
        verify(*(part[b : b + 1] for part in arguments[:-1]), np.random.default_rng(shared))
        for b in range(len(arguments[0]))
    ]
    return tuple(np.concatenate(part) for part in zip(*parts, strict=True))


@pytest.mark.slow
def test_a_verdict_of_a_wrong_one():
    verdict = check("logits-mutant:raw_bonus", profile="quick", fail_fast=True)
    assert verdict.outcome is Conclusion.REJECTED
    assert verdict.reason.startswith("logits-oracle: the exact law of a text is")
    assert verdict.reproducer is not None
    assert "CHECKS['logits-oracle'](load(" in verdict.reproducer.script


@pytest.mark.slow
def test_a_verdict_of_our_own():
    verdict = check("own:logits:reference", profile="quick")
    assert verdict.outcome is Conclusion.NOT_REJECTED
    assert verdict.reason == "its exact law is the target's in 12 worlds; 8 of 8 controls rejected"
    assert sum(verdict.false_alarm_budget.values()) == pytest.approx(1e-6)
    assert verdict.total_variation_bound is not None
    assert verdict.total_variation_bound < 1e-12
    assert not any("prompts" in sentence for sentence in verdict.not_covered)
