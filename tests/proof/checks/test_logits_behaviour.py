# mypy: no-check-untyped-defs
from dataclasses import replace

import numpy as np
import pytest

from draftproof.proof.checks.logits_behaviour import (
    UNUSUAL,
    check_logits_bad_rows,
    check_logits_habits,
    check_logits_lacks,
    check_logits_seeds,
)
from draftproof.proof.logits.batch_faults import Seeded
from draftproof.proof.logits.coverage import not_covered_from_logits
from draftproof.proof.logits.skeleton import LogitsVerifier
from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.subjects.subject import Subject, load
from draftproof.proof.trial.plan import make_plan
from draftproof.proof.verdicts.finding import Outcome
from draftproof.proof.worlds.logits_world import law_at

PLAN = make_plan("quick", 0)


def subject_of(verify):
    return Subject("test", Contract.LOGITS, verify)


def outcomes(findings):
    return [finding.outcome for finding in findings]


class KeepsTies(LogitsVerifier):
    def _law(self, logits, params, output, position):
        return law_at(logits, replace(params, ties="keep"), output, position)


class KeepsTheHighestIds(LogitsVerifier):
    def _law(self, logits, params, output, position):
        return law_at(logits[::-1], params, [3 - t for t in output], position)[::-1]


class HasNoWindow(LogitsVerifier):
    def _law(self, logits, params, output, position):
        return law_at(logits, replace(params, penalty_window=None), output, position)


@pytest.mark.parametrize(
    ("verify", "noted", "way"),
    [
        (KeepsTies, [0, 1], "ties='keep"),
        (KeepsTheHighestIds, [0, 1], "the highest ids"),
        (HasNoWindow, [2], "no window"),
    ],
)
def test_an_engine_may_have_its_own_way(verify, noted, way):
    findings = list(check_logits_habits(subject_of(verify()), PLAN))
    notes = [finding for finding in findings if finding.outcome is Outcome.NOTE]
    worlds = ["ties at top-k", "ties at top-p", "window"]
    assert [finding.world for finding in notes] == [worlds[number] for number in noted]
    assert all(way in finding.message for finding in notes)
    assert {f.outcome for f in findings} == {Outcome.PASSED, Outcome.NOTE}
    said = not_covered_from_logits(findings, 0.1)
    assert "What the notes say of its habits was not held against it." in said


def test_what_is_no_engines_way_is_lossy():
    wrong = load("logits-mutant:ties_at_top_k_dropped")
    assert next(check_logits_habits(wrong, PLAN)).outcome is Outcome.LOSSY


def test_our_own_way_is_the_one_asked_for():
    assert outcomes(check_logits_habits(load("own:logits:reference"), PLAN)) == [Outcome.PASSED] * 6


class Lacking(LogitsVerifier):
    lacks = ("min_p", "top_k")

    def __call__(self, *call):
        if any(params.min_p for params in call[4]):
            raise ValueError("min_p: this engine has none")
        return super().__call__(*call)


def test_a_parameter_it_lacks_should_raise_and_is_noted_if_it_does_not():
    findings = list(check_logits_lacks(subject_of(Lacking()), PLAN))
    assert outcomes(findings) == [Outcome.PASSED, Outcome.NOTE]
    assert findings[1].message == "dropped in silence, though it says that it lacks them: top_k"


def test_every_parameter_has_a_value_to_be_refused():
    from draftproof import SamplingParams

    assert set(UNUSUAL) == set(SamplingParams.__dataclass_fields__) - {"order", "eos_token_ids"}


def test_rows_without_a_law():
    assert outcomes(check_logits_bad_rows(load("own:logits"), PLAN)) == [Outcome.PASSED]
    wrong = load("logits-mutant:every_row_greedy_beside_a_nan")
    finding = next(check_logits_bad_rows(wrong, PLAN))
    assert finding.outcome is Outcome.LOSSY
    assert finding.message == (
        "beside a row with NaN of the target, a row certain of [2, 1] emits [0]"
    )


class Inventing(LogitsVerifier):
    """Emits a token of its choice in a row that it cannot decide."""

    token = 0

    def __call__(self, *call):
        out, n_out = np.full((len(call[0]), call[0].shape[1] + 1), -1), np.ones(len(call[0]), int)
        for b in range(len(out)):
            part = [side[b : b + 1] for side in call[:-1]]
            try:
                row, n = super().__call__(*part, call[-1])
                out[b], n_out[b] = row[0], n[0]
            except (AssertionError, ValueError, IndexError):
                out[b, 0] = self.token
        return out, n_out


def test_an_invented_token_is_noted_and_one_out_of_range_breaks_the_contract():
    verify = Inventing()
    assert outcomes(check_logits_bad_rows(subject_of(verify), PLAN)) == [
        Outcome.NOTE, Outcome.PASSED,
    ]  # fmt: skip
    verify.token = 4
    finding = next(check_logits_bad_rows(subject_of(verify), PLAN))
    assert finding.outcome is Outcome.BROKEN
    assert finding.message.endswith("of the target emits [4]")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a_seed_ignored", "the request of seed"),
        ("noise_by_the_row_of_the_batch", "in another place, else"),
    ],
)
def test_a_seed_is_honoured_in_any_batch(name, message):
    finding = next(check_logits_seeds(load(f"logits-mutant:{name}"), PLAN))
    assert finding.outcome is Outcome.BROKEN
    assert message in finding.message


@pytest.mark.slow
def test_a_seeds_noise_is_used_once():
    assert set(outcomes(check_logits_seeds(subject_of(Seeded()), PLAN))) == {Outcome.PASSED}
    wrong = load("logits-mutant:a_seed_s_noise_used_again")
    assert Outcome.LOSSY in outcomes(check_logits_seeds(wrong, PLAN))


class OneSeed(Seeded):
    def _key(self, b, seed, history):
        return [len(history)]


def test_other_seeds_are_other_noise():
    findings = list(check_logits_seeds(subject_of(OneSeed()), PLAN))
    assert outcomes(findings) == [Outcome.LOSSY]
    assert findings[0].message.startswith("equal tokens for other seeds in 24 rows")


def test_who_takes_no_seeds_is_given_none():
    assert outcomes(check_logits_seeds(subject_of(LogitsVerifier()), PLAN)) == []
    assert any("takes seeds" in said for said in not_covered_from_logits([], 0.1))
