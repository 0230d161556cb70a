import numpy as np
import pytest

import draftproof
from draftproof.proof.checks.greedy import check_greedy, plain_greedy
from draftproof.proof.subjects.subject import as_subject
from draftproof.proof.trial.plan import make_plan
from draftproof.proof.verdicts.finding import Outcome

PLAN = make_plan("quick", 0)


def right(draft, q, p, num_draft, rng=None):
    """Written with `numpy.argmax`, for which NaN wins."""
    (B, K), best = draft.shape, p.argmax(axis=2)
    matches = (best[:, :K] == draft) & (np.arange(K) < num_draft[:, None])
    tau = np.logical_and.accumulate(matches, axis=1).sum(axis=1)
    out = np.full((B, K + 1), -1)
    out[:, :K] = np.where(np.arange(K) < tau[:, None], draft, -1)
    out[np.arange(B), tau] = best[np.arange(B), tau]
    return out, tau + 1


def findings(subject):
    return list(check_greedy(as_subject(subject, "greedy"), PLAN))


def outcomes(subject):
    return {finding.message.partition(":")[0]: finding.outcome for finding in findings(subject)}


@pytest.mark.parametrize("subject", [draftproof.verify_greedy, right])
def test_right_ones_pass(subject):
    found = findings(subject)
    assert {f.outcome for f in found[:-1]} == {Outcome.PASSED}
    assert "of (.25, NaN, .75) it emits token" in found[-1].message
    assert found[-1].outcome is Outcome.NOTE


def test_the_greedy_rows_of_verify_pass():
    def subject(draft, q, p, num_draft, rng):
        greedy = np.ones(len(draft), bool)
        return draftproof.verify(draft, q, p, num_draft, rng, greedy=greedy)

    assert {f.outcome for f in findings(subject)} == {Outcome.PASSED, Outcome.NOTE}


def test_ties_to_the_highest_id_are_lossy():
    def subject(draft, p, num_draft):
        V = p.shape[2]
        out, n_out = right(V - 1 - draft, None, p[..., ::-1], num_draft)
        return np.where(out >= 0, V - 1 - out, -1), n_out

    found = outcomes(subject)
    assert found["ties go to the lowest id"] is Outcome.LOSSY
    assert found["ragged rows with many ties"] is Outcome.LOSSY


def test_a_sampler_is_lossy():
    found = findings(draftproof.verify)
    assert Outcome.LOSSY in {f.outcome for f in found}


def test_a_wrong_row_is_shown_with_its_call():
    def subject(draft, p, num_draft):
        out, n_out = right(draft, None, p, num_draft)
        out[:, 0] = 0
        return out, n_out

    found = findings(subject)[0]
    assert found.message.endswith("row 0 emits [0, 0, 2]; plain greedy decoding is [1, 0, 2]")
    assert found.case["draft"] == [[1, 0]]
    assert set(found.case) == {"draft", "p", "num_draft"}


def test_bonus_from_the_last_row_is_lossy_only_where_rows_are_ragged():
    def subject(draft, p, num_draft):
        out, n_out = right(draft, None, p, num_draft)
        every = n_out == num_draft + 1
        out[every, num_draft[every]] = p[every, -1].argmax(axis=1)
        return out, n_out

    found = outcomes(subject)
    assert found["ties go to the lowest id"] is Outcome.PASSED
    assert found["ragged rows with many ties"] is Outcome.LOSSY


def test_no_bonus_is_a_note():
    def subject(draft, p, num_draft):
        out, n_out = right(draft, None, p, num_draft)
        short = (n_out == num_draft + 1) & (num_draft > 0)
        out[short, num_draft[short]] = -1
        return out, n_out - short

    found = outcomes(subject)
    assert found["ties go to the lowest id"] is Outcome.NOTE
    assert found["no drafts, K = 0"] is Outcome.PASSED
    assert Outcome.LOSSY not in found.values()


def test_plain_greedy_decoding():
    p = np.array([[[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.2, 0.2, 0.6]]])
    assert plain_greedy(np.array([[0, 1]]), p, np.array([2])) == [[0, 1, 2]]
    assert plain_greedy(np.array([[1, 1]]), p, np.array([2])) == [[0]]
    assert plain_greedy(np.array([[0, 1]]), p, np.array([1])) == [[0, 1]]
