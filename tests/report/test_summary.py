from dataclasses import replace

import pytest

from draftproof.proof.verdicts.finding import Grade
from draftproof.proof.verdicts.verdict import ScorecardRow
from draftproof.report.summary import bound, decisive, facts, headline, place, plural, spread
from tests.report.verdicts import ALL, BROKEN, EXACT, LOSSY, NOTE, broken, rejected, verdict


def fact(verdict, topic):
    return dict(facts(verdict.to_dict()))[topic]


@pytest.mark.parametrize("outcome", ALL)
def test_the_headline_is_one_line_that_begins_with_the_verdict(outcome):
    line = headline({**ALL[outcome], "reason": "two\nlines\x1b[31m"})
    assert line.startswith(f"VERDICT: {outcome} (")
    assert line.isprintable()
    assert "two lines" in line


def test_only_a_verdict_that_is_not_rejected_bounds_the_total_variation():
    assert bound(ALL["not rejected"]) == "0.0041"
    assert bound(verdict(total_variation_bound=None).to_dict()) is None
    assert bound(rejected(total_variation_bound=0.2).to_dict()) is None


def test_lossy_findings_outrank_broken_ones():
    assert [f["outcome"] for f in decisive(ALL["rejected"])] == ["lossy"]
    assert [f["outcome"] for f in decisive(ALL["broken"])] == ["broken"]
    assert decisive(ALL["not rejected"]) == []


def test_a_place_is_a_world_and_a_size():
    assert place(LOSSY.to_dict()) == "world L4, g = 2, K = 3"
    assert place(BROKEN.to_dict()) == ""


def test_a_wrong_law_shows_in_some_worlds_and_not_in_others():
    worlds = {"penalties": 0.1, "a, b": 0.25, "grammar": None}
    findings = [replace(LOSSY, world=w, total_variation=tv) for w, tv in worlds.items()]
    findings += [replace(EXACT, world=w) for w in ("ends", "penalties", "greedy", "ends")]
    assert spread(rejected(findings=tuple(findings)).to_dict()) == [
        ("shows in", "a, b 0.25; penalties 0.1; grammar"),
        ("not in", "ends; greedy"),
    ]
    beside = replace(LOSSY, world="toy", grade=Grade.SAMPLED)
    assert "toy" not in str(spread(rejected(findings=(*findings, beside)).to_dict()))
    assert spread(rejected(findings=(LOSSY, EXACT)).to_dict()) == []
    assert spread(verdict(findings=(EXACT,)).to_dict()) == []


def test_evidence_is_counted_by_its_grade():
    assert fact(verdict(), "exact") == "1 passed; worlds L4; g <= 2, K <= 3; 412 replayed paths"
    assert fact(rejected(), "exact").startswith("1 lossy; worlds L4")
    assert fact(verdict(findings=(EXACT, EXACT)), "exact").startswith("2 passed; worlds L4; ")
    assert fact(verdict(findings=()), "sampling") == "not examined"
    assert fact(broken(), "exact") == "1 not drivable"


def test_what_a_verdict_lacks_has_no_line():
    bare = verdict(false_alarm_budget={}, efficiency={}, numerical_grade=None, findings=())
    topics = [topic for topic, _ in facts(bare.to_dict())]
    assert topics == [
        "contract", "exact", "sampling", "behaviour", "power", "NOT covered", "time"
    ]  # fmt: skip


def test_power_names_the_survivors():
    assert "survivors: lenience 1.1" in dict(facts(ALL["inconclusive"]))["power"]
    assert "2 of 2 wrong verifiers" in dict(facts(ALL["not rejected"]))["power"]


def test_equal_notes_are_said_once():
    assert fact(verdict(findings=(NOTE, NOTE)), "notes") == NOTE.message


def test_a_note_that_is_a_row_of_the_scorecard_is_not_repeated():
    row = ScorecardRow("seeds", "failed", NOTE.message)
    assert "notes" not in dict(facts(verdict(scorecard=(row,)).to_dict()))


def test_the_false_alarm_budget_adds_up():
    assert "at most 1e-06, shared by 2 checks" in fact(verdict(), "false alarms")


def test_plurals():
    assert (plural(1, "world"), plural(2_000, "world")) == ("1 world", "2,000 worlds")
