from dataclasses import replace

import numpy as np
import pytest

from draftproof.proof.shards.merge import merge
from draftproof.proof.shards.shard import experiments_of, identify, run_shard
from draftproof.proof.subjects.subject import load
from draftproof.proof.trial.plan import make_plan
from draftproof.proof.verdicts.finding import Outcome
from draftproof.proof.verdicts.verdict import Conclusion

PLAN = make_plan("quick", 0)
SUBJECT = "tests.proof.subjects.decoders:make_generate"
TEXTS = 600


@pytest.fixture(scope="module")
def shards():
    """Three shards of a right decoder, the first without its other checks."""
    identity = identify(SUBJECT, None, PLAN, 3, TEXTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("draftproof.proof.shards.shard._rest", lambda identity, plan: None)
        patch.setattr("draftproof.proof.shards.shard.tokens_for", lambda plan: 600)
        return [run_shard(identity, shard) for shard in (1, 2, 3)]


def by_check(verdict, check):
    return [finding for finding in verdict.findings if finding.check == check]


def test_counts_add_up(shards):
    verdict = merge(shards)
    joint = by_check(verdict, "joint")
    assert [f.world for f in joint] == ["L4", "L357"]
    assert [f.size for f in joint] == [
        sum(sum(tally.counts[world].counts) for tally in shards) for world in (0, 1)
    ]
    assert min(f.size for f in joint) >= TEXTS
    assert {f.outcome for f in joint} == {Outcome.PASSED}
    assert verdict.outcome is Conclusion.NOT_REJECTED


def test_e_values_multiply(shards):
    wealth = [sum(t.lanes[0].log_e for t in shards), sum(t.lanes[0].tokens for t in shards)]
    (small, large) = by_check(merge(shards), "anytime")
    assert f"{wealth[1]:,} tokens, multiply to 10^{wealth[0] / np.log(10):.2f}" in small.message
    assert (small.world, large.world) == ("L4", "V = 5,000")
    rich = [replace(t, lanes=tuple(replace(lane, log_e=10.0) for lane in t.lanes)) for t in shards]
    assert merge(rich).outcome is Conclusion.REJECTED


def test_an_infinite_e_value_decides_whatever_the_others_are(shards):
    proved = replace(shards[2], lanes=(replace(shards[2].lanes[0], log_e=None),))
    assert merge([*shards[:2], proved]).outcome is Conclusion.REJECTED


def test_a_missing_shard_is_named_and_nothing_is_concluded(shards):
    verdict = merge([shards[0], shards[2]])
    assert (verdict.outcome, verdict.exit_code) == (Conclusion.INCONCLUSIVE, 4)
    assert "shard 2" in verdict.findings[0].message


def test_a_shard_run_twice_counts_once(shards):
    assert merge([*shards, shards[1]]).findings == merge(shards).findings


def test_shards_have_seeds_of_their_own_and_can_be_repeated(shards, monkeypatch):
    monkeypatch.setattr("draftproof.proof.shards.shard.tokens_for", lambda plan: 600)
    assert run_shard(shards[1].identity, 2) == shards[1]
    assert len({tally.counts for tally in shards}) == 3


def test_a_subject_that_breaks_stops_its_shard():
    identity = identify("mutant:id_v", None, PLAN, 2, 100)
    verdict = merge([run_shard(identity, 2)])
    assert verdict.outcome is Conclusion.BROKEN


def test_texts_are_as_many_as_the_power_needs():
    assert identify("mutant:token", None, PLAN, 2).texts > 90_000
    assert identify(SUBJECT, None, PLAN, 2).texts > 20_000
    assert [e.worlds[0].name for e in experiments_of(load("mutant:token"), PLAN)] == ["L4", "L357"]


@pytest.mark.parametrize(
    ("spec", "shards", "message"),
    [
        ("draftproof:verify_greedy", 2, "wanted one that is sampled"),
        ("mutant:token", 0, "found 0; wanted 1 or more"),
        ("nowhere:f", 2, "there is no module"),
    ],
)
def test_what_has_no_shards_is_refused(spec, shards, message):
    with pytest.raises(ValueError, match=message):
        identify(spec, None, PLAN, shards)
