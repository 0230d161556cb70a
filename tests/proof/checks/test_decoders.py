from dataclasses import replace

import numpy as np
import pytest

from draftproof.proof.checks import CHECKS, checks_for
from draftproof.proof.judge import check
from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.subjects.subject import as_subject
from draftproof.proof.trial.plan import make_plan
from draftproof.proof.verdicts.finding import Outcome
from draftproof.proof.verdicts.verdict import Conclusion
from tests.proof.subjects import decoders

COARSE = replace(make_plan("quick", 0), visible=0.5)


def judge(subject, **options):
    return check(subject, profile="quick", **options)


def outcomes(name, subject, plan=COARSE):
    return {finding.outcome for finding in CHECKS[name](as_subject(subject), plan)}


@pytest.mark.parametrize("make", [decoders.make_round, decoders.make_generate])
def test_a_right_decoder_passes_every_check(make):
    for name in checks_for(as_subject(make).contract):
        allowed = {Outcome.NOTE if name == "honesty" else Outcome.PASSED}  # it tells no drafts
        assert outcomes(name, make) == allowed, name


def test_a_decoder_that_does_not_know_of_ends_is_told_so():
    def make(world):
        return lambda prompts, num_tokens, seed: np.random.default_rng(seed).integers(
            0, 4, (len(prompts), num_tokens)
        )

    assert outcomes("ends", make) == {Outcome.NOTE}


def test_entropy_of_its_own_is_a_note():
    rng = np.random.default_rng()

    def make(world):
        return lambda context, k, _: [int(rng.integers(world.vocabulary))]

    subject = as_subject(make, "round")
    assert [f.outcome for f in CHECKS["different-seeds"](subject, COARSE)] == [Outcome.NOTE]


def test_the_judge_proves_a_round():
    verdict = judge(decoders.make_round)
    assert (verdict.outcome, verdict.contract) == (Conclusion.NOT_REJECTED, "round")
    assert verdict.total_variation_bound < 1e-12
    assert verdict.efficiency["L4, g = 2"] == 21 / 16
    assert verdict.power.survivors == ()
    assert sum(verdict.false_alarm_budget.values()) == pytest.approx(1e-6)


def test_the_judge_recognises_a_fault_in_a_decoder():
    verdict = judge("mutant:round_resample_p_on_a_rejection", fail_fast=True)
    assert (verdict.outcome, verdict.exit_code) == (Conclusion.REJECTED, 1)
    assert verdict.nearest_fault.name == "resample p on a rejection"
    assert "CHECKS['oracle']" in verdict.reproducer.script


def test_a_decoder_with_models_of_its_own_needs_a_law_or_a_twin():
    with pytest.raises(ValueError, match=r"neither for .*engine"):
        judge(decoders.engine)
    with pytest.raises(ValueError, match="has no use for it"):
        judge(decoders.make_round, law=decoders.law)
    with pytest.raises(ValueError, match="no other process can find"):
        judge(decoders.engine, law=lambda prompt, prefix: [1.0])


def test_a_law_beside_it_rejects_an_engine():
    options = {"prompts": [(0,), (1, 2)], "fail_fast": True}
    verdict = judge(decoders.resampling_engine, law=decoders.law, **options)
    assert verdict.outcome is Conclusion.REJECTED
    assert "proved wrong after" in verdict.reason


def test_a_plain_twin_rejects_an_engine():
    verdict = judge(decoders.resampling_engine, plain=decoders.plain_engine, fail_fast=True)
    assert verdict.outcome is Conclusion.REJECTED
    assert verdict.contract == Contract.GENERATE
    assert "with and without" in verdict.not_covered[0]


@pytest.mark.slow
@pytest.mark.parametrize("beside", [{"law": decoders.law}, {"plain": decoders.plain_engine}])
def test_a_right_engine_is_not_rejected(beside):
    verdict = judge(decoders.engine, **beside)
    assert verdict.outcome is Conclusion.NOT_REJECTED
