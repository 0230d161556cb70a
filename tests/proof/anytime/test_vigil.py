import os
import signal

import pytest

from draftproof.proof.anytime.vigil import keep_watch
from draftproof.proof.trial.plan import make_plan
from draftproof.proof.verdicts.verdict import Conclusion, Verdict
from tests.proof.subjects import decoders

PLAN = make_plan("quick", 1)


def test_an_interrupt_ends_the_watch_with_the_state_so_far():
    def interrupt(watch):
        if watch.tokens > 500:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    verdict = keep_watch(decoders.make_round, PLAN, on_state=interrupt)
    assert (verdict.outcome, verdict.exit_code) == (Conclusion.NOT_REJECTED, 0)
    assert "so far: " in verdict.reason
    assert signal.getsignal(signal.SIGINT) is before
    assert Verdict.from_dict(verdict.to_dict()) == verdict


def test_a_second_interrupt_is_an_interrupt():
    def interrupt(watch):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        keep_watch(decoders.make_round, PLAN, on_state=interrupt)


def test_a_wrong_subject_ends_its_watch():
    verdict = keep_watch("mutant:accept_always", PLAN)
    assert verdict.outcome is Conclusion.REJECTED
    assert "proved wrong after" in verdict.reason


def test_a_crash_ends_it_too():
    def make(world):
        return lambda context, k, rng: [] if len(context) > 4 else [0]

    verdict = keep_watch(make, PLAN)
    assert (verdict.outcome, verdict.exit_code) == (Conclusion.BROKEN, 3)


def test_what_has_no_law_cannot_be_watched():
    with pytest.raises(ValueError, match="Fix: leave --watch out"):
        keep_watch("draftproof:verify_greedy", PLAN)


def test_a_watch_may_have_an_end():
    assert "so far: " in keep_watch("mutant:token", PLAN, tokens=2_000).reason
