import itertools
import time

import numpy as np
import pytest

from draftproof.proof.checks.scorecard import Result, ScoreRow, check_scorecard, scorecard
from draftproof.proof.subjects.subject import as_subject, load
from draftproof.proof.trial.plan import make_plan
from draftproof.proof.verdicts.finding import Finding, Outcome

PLAN = make_plan("quick", 0)
COUNTING = "mistake: counting drafts after the first rejection"
NO_BONUS = "mistake: no bonus"
UNPROCESSED = "mistake: unprocessed probabilities against processed drafts"
JOINT = "mistake: errors that only a joint law shows"
ROWS = [
    "accept rule",
    "residual",
    "bonus token",
    "first rejection",
    "ragged counts",
    "p = q",
    "no draft",
    "empty batch",
    "vectorised",
    COUNTING,
    NO_BONUS,
    UNPROCESSED,
    JOINT,
]


def rows(subject):
    return {row.name: row for row in scorecard(subject, PLAN)}


def results(spec, result=Result.FAILED):
    """Names of the rows with a result."""
    found = rows(load(spec) if isinstance(spec, str) else spec)
    return [name for name, row in found.items() if row.result is result]


def test_a_right_verifier_passes_every_row():
    found = rows(load("own:numpy"))
    assert list(found) == ROWS
    assert {row.result for row in found.values()} == {Result.PASSED}


@pytest.mark.parametrize("name", ["block", "token", "token, accepts at u q = p"])
def test_other_right_verifiers_pass_too(name):
    assert results(f"mutant:{name}") == []


def test_other_lossless_rules_are_told_from_faults():
    assert results("mutant:exact match") == []
    assert results("mutant:exact match", Result.NOT_APPLICABLE) == ["p = q"]
    assert results("mutant:sub-stochastic drop") == []
    assert "accept rule" in results("mutant:sub-stochastic drop", Result.NOT_APPLICABLE)


@pytest.mark.parametrize(
    ("name", "failed"),
    [
        ("lenience 1.1", ["accept rule", UNPROCESSED, JOINT]),
        ("resample p on a rejection", ["residual", UNPROCESSED, JOINT]),
        ("bonus from q", ["bonus token", "ragged counts", JOINT]),
        ("bonus from row K", ["bonus token", "ragged counts", "no draft"]),
        ("counts past the first rejection", ["first rejection", COUNTING, JOINT]),
        ("one uniform for all", [JOINT]),
        ("block, one uniform for all", [JOINT]),
        ("no bonus", [NO_BONUS]),
        ("top-2 drafts, full q", [UNPROCESSED, JOINT]),
        ("crashes without drafts", ["no draft", "empty batch"]),
    ],
)
def test_a_fault_fails_the_rows_that_are_its_own(name, failed):
    assert results(f"mutant:{name}") == failed


def test_a_loop_over_rows_is_seen():
    assert results("mutant:token, a loop over rows") == ["vectorised"]


def test_a_comprehension_over_rows_is_a_loop():
    right = load("mutant:token").call

    def verify(draft, q, p, num_draft, rng):
        out, n_out = right(draft, q, p, num_draft, rng)
        return [list(row) for row in out], n_out

    assert "vectorised" in results(as_subject(verify))


def single(draft, q, p, rng):
    for i, x in enumerate(draft):
        if rng.random() * q[i, x] >= p[i, x]:
            weights = np.maximum(p[i] - q[i], 0)
            return [*draft[:i], _draw(weights, rng)]
    return [*draft, _draw(p[len(draft)], rng)]


def _draw(weights, rng):
    cumulative = weights.cumsum()
    return int((cumulative <= rng.random() * cumulative[-1]).sum())


def test_a_single_row_contract_has_no_batch():
    found = rows(as_subject(single))
    inapplicable = {name for name, row in found.items() if row.result is Result.NOT_APPLICABLE}
    assert inapplicable == {"empty batch", "vectorised"}
    assert all(row.result is not Result.FAILED for row in found.values())


def test_a_verifier_that_raises_or_breaks_its_contract_fails_rows():
    def raises(draft, q, p, num_draft, rng):
        raise KeyError("mine")

    found = rows(as_subject(raises))
    assert {row.result for row in found.values()} == {Result.FAILED}
    assert found["residual"].message.startswith("raised KeyError: 'mine' (at test_scorecard.py")
    assert "wrote to its input" in rows(load("mutant:writes to its inputs"))["residual"].message


def test_other_contracts_have_no_scorecard():
    assert scorecard(as_subject(lambda draft, p, num_draft: None, "greedy"), PLAN) == []


def test_the_check_never_rejects_and_carries_the_rows():
    subject = load("mutant:accept always")
    found = list(check_scorecard(subject, PLAN))
    assert {f.outcome for f in found} == {Outcome.PASSED, Outcome.NOTE}
    *graded, times = (Finding.from_dict(f.to_dict()) for f in found)
    read = [ScoreRow.from_finding(f) for f in graded]
    assert times.case["row_seconds"].keys() == {"1", "4096"}
    assert [row.name for row in read] == ROWS
    assert {row.name for row in read if row.result is Result.FAILED} >= {"accept rule", JOINT}


@pytest.mark.parametrize("subject", [load("own:numpy"), as_subject(single)])
def test_one_seed_one_scorecard_however_slow_the_machine(subject, monkeypatch):
    first = scorecard(subject, PLAN)
    clock = itertools.count(step=1e3)
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    assert scorecard(subject, PLAN) == first
