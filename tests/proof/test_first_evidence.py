import json

import pytest

import draftproof
from draftproof.proof.controls import CONTROLS, correct
from draftproof.proof.first_evidence import Trial, first_evidence, own_trials

WRONG = next(iter(CONTROLS.values()))
FEW = 3_000


def test_every_installed_backend_passes_and_every_control_fails():
    evidence = first_evidence(sequences=FEW)
    assert evidence["verdict"] == "not rejected"
    subjects = [f for f in evidence["findings"] if not f["is_control"]]
    controls = [f for f in evidence["findings"] if f["is_control"]]
    backends = draftproof.available_backends()
    assert [finding["name"] for finding in subjects] == [f"verify, {name}" for name in backends]
    assert [finding["name"] for finding in controls] == list(CONTROLS)
    assert all(finding["outcome"] == finding["wanted"] for finding in evidence["findings"])
    assert all(finding["counts"] == subjects[0]["counts"] for finding in subjects)
    assert evidence["reason"].endswith(" < 103.4; 2 of 2 controls rejected")


def test_the_evidence_survives_json():
    evidence = first_evidence([Trial("right", correct)], sequences=FEW)
    assert json.loads(json.dumps(evidence)) == evidence


@pytest.mark.parametrize(
    ("trials", "verdict", "reason"),
    [
        ([Trial("ours", WRONG), Trial("control", WRONG, is_control=True)], "rejected", "ours:"),
        (
            [Trial("ours", correct), Trial("control", correct, is_control=True)],
            "inconclusive",
            "no power: not rejected either: control",
        ),
        ([Trial("ours", correct)], "inconclusive", "no power shown: there is no control"),
        (
            [Trial("ours", WRONG), Trial("control", correct, is_control=True)],
            "rejected",
            "ours: joint law of 3 tokens, 3,000 sequences, chi-square",
        ),
        (
            [Trial("good", correct), Trial("bad", WRONG), Trial("no", WRONG, is_control=True)],
            "rejected",
            "bad:",
        ),
    ],
)
def test_the_verdict(trials, verdict, reason):
    evidence = first_evidence(trials, sequences=FEW)
    assert evidence["verdict"] == verdict
    assert evidence["reason"].startswith(reason)


def test_the_slow_reference_gets_fewer_texts_and_the_scope_says_so():
    limits = {trial.name: trial.max_sequences for trial in own_trials()}
    assert limits["verify, reference"] == 10_000
    assert limits["verify, numpy"] is None
    trials = [Trial("ours", correct), Trial("slow", correct, max_sequences=2_500)]
    evidence = first_evidence(trials, sequences=FEW)
    assert [finding["sequences"] for finding in evidence["findings"]] == [3_000, 2_500]
    assert "at 3,000 sequences and" in evidence["scope"]
    assert "at 2,500 sequences is rejected with probability .99" in evidence["scope"]


def test_the_reason_is_that_of_the_largest_trial():
    trials = [
        Trial("slow", correct, max_sequences=2_500),
        Trial("ours", correct),
        Trial("control", WRONG, is_control=True),
    ]
    reason = first_evidence(trials, sequences=FEW)["reason"]
    assert reason.startswith("joint law of 3 tokens, 3,000 sequences, chi-square ")
