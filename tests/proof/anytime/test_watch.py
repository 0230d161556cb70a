import itertools
from dataclasses import replace

import numpy as np
import pytest

from draftproof.proof.anytime.watch import Watch, tokens_for
from draftproof.proof.mutants import get
from draftproof.proof.subjects.subject import as_subject, load
from draftproof.proof.trial.plan import make_plan
from draftproof.proof.verdicts.finding import Outcome
from tests.proof.subjects import decoders

PLAN = make_plan("quick", 3)


def watch(subject, size=1e-6, most=3_000, **beside):
    watching = Watch(subject, replace(PLAN, **beside), size)
    assert watching.run(most)
    return watching


def test_a_wrong_verifier_is_stopped_as_soon_as_it_is_proved_wrong():
    watching = watch(load(get("resample p on a rejection").spec), most=10**6)
    (guilty,) = [f for f in watching.findings() if f.outcome is Outcome.LOSSY]
    assert "proved wrong after" in guilty.message
    assert watching.tokens < 20_000


def test_a_right_verifier_may_be_watched_on():
    watching = watch(load("mutant:token"))
    assert all(f.outcome is Outcome.PASSED for f in watching.findings())
    before = watching.tokens
    assert watching.advance()
    assert watching.tokens > before
    assert {lane.name for lane in watching.lanes} == {"L4", "L357"}


def test_time_that_runs_out_is_no_acquittal():
    watching = Watch(load("mutant:token"), PLAN, 1e-6)
    assert not watching.run(deadline=0.0)
    assert {f.outcome for f in watching.findings(complete=False)} == {Outcome.INCONCLUSIVE}


def test_one_seed_gives_one_stream():
    first, second = (watch(as_subject(decoders.make_round), most=500) for _ in range(2))
    assert list(first.findings()) == list(second.findings())


def test_where_no_law_is_known_two_streams_are_compared():
    plain = "tests.proof.subjects.decoders:plain_engine"
    wrong = watch(as_subject(decoders.resampling_engine), most=20_000, plain=plain)
    (lane,) = wrong.lanes
    assert lane.account.decided_after < 20_000
    assert lane.name == plain


def test_the_bets_find_a_law_of_any_length_of_text_and_of_any_prompt():
    prompts = tuple(itertools.product(range(4), repeat=2))
    law = "tests.proof.subjects.decoders:law"
    subject = as_subject(decoders.resampling_engine)
    assert watch(subject, most=20_000, law=law, prompts=prompts).is_decided
    right = watch(as_subject(decoders.engine), most=1_500, law=law, prompts=prompts)
    assert not right.is_decided
    assert right.lanes[0].account.log_peak < np.log(1e3)


def test_a_law_that_is_none_is_refused():
    from draftproof.proof.subjects.emission import ContractBroken

    law = "tests.proof.subjects.decoders:draw"
    with pytest.raises((ContractBroken, AttributeError)):
        watch(as_subject(decoders.engine), law=law)


def test_finer_plans_read_more():
    assert [tokens_for(make_plan(p, 0)) for p in ("quick", "standard", "paper")] == [
        20_000, 320_000, 1_000_000,
    ]  # fmt: skip
