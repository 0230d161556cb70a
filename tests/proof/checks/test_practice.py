from pathlib import Path

import pytest

import draftproof
from draftproof.proof.checks.practice import NOT_LOSSLESS, check_practice, score
from draftproof.proof.checks.practice_cases import DECIDED, OPEN
from draftproof.proof.subjects.loading import find_callable
from draftproof.proof.subjects.subject import as_subject
from draftproof.proof.trial.plan import make_plan
from draftproof.proof.verdicts.finding import Finding, Outcome

FILE = Path(__file__).parents[1] / "subjects" / "practice.py"
PLAN = make_plan("quick", 0)


def solution(name):
    return find_callable(f"{FILE}:{name}")


def failed(name):
    return [answer.case.name for answer in score(solution(name)).answers if not answer.right]


def test_a_hundred_points_in_all():
    assert sum(case.points for case in DECIDED) == 100
    assert all(case.points > 0 for case in DECIDED)
    assert not any(case.points for case in OPEN)


@pytest.mark.parametrize("case", DECIDED, ids=lambda case: case.name)
def test_our_own_function_gives_what_is_wanted(case):
    if case.wanted is ValueError:
        with pytest.raises(ValueError, match="found"):
            draftproof.verify_speculative_tokens(*case.arguments)
    else:
        assert draftproof.verify_speculative_tokens(*case.arguments) == case.wanted


def test_ours_has_all_the_points():
    grade = score(draftproof.verify_speculative_tokens)
    assert (grade.points, grade.bonus) == (100, 10)
    assert all(answer.right for answer in grade.open_answers)


@pytest.mark.parametrize(
    ("name", "bonus", "reason"),
    [
        ("plain", 10, "plain Python"),
        ("with_numpy", 0, "it uses numpy"),
        ("by_string", 0, "it uses __import__"),
        ("borrowed", 0, "it uses draftproof"),
        ("tuples", 10, "plain Python"),
        ("spoils_its_inputs", 10, "plain Python"),
    ],
)
def test_right_solutions(name, bonus, reason):
    grade = score(solution(name))
    assert (grade.points, grade.bonus, grade.bonus_reason) == (100, bonus, reason)


@pytest.mark.parametrize(
    ("name", "cases"),
    [
        ("strict_test", ["a uniform equal to the ratio accepts"]),
        ("mislabelled", ["public example: .9/.1 > 1 accepts, and there is no row for a bonus"]),
        (
            "argmax_of_target",
            ["the first draft rejected: the argmax of the residual, not of the target"],
        ),
        (
            "last_of_equals",
            [
                "a tie in the residual goes to the lower index",
                "a tie in the bonus row goes to the lower index",
            ],
        ),
    ],
)
def test_a_wrong_solution_loses_the_points_of_its_cases(name, cases):
    assert set(failed(name)) >= set(cases)
    grade = score(solution(name))
    lost = sum(answer.case.points for answer in grade.answers if not answer.right)
    assert grade.points == 100 - lost


def test_counting_on_after_a_rejection_is_seen():
    assert "a later draft rejected: what came before stays, and nothing after it counts" in failed(
        "counts_on"
    )


def test_lengths_that_are_not_looked_at_are_seen_in_each_argument():
    assert {
        "public example: one draft, two uniforms",
        "too few tokens",
        "too many draft rows",
        "too few target rows",
        "too few uniforms",
    } <= set(failed("no_lengths"))


@pytest.mark.parametrize("name", ["floats", "extra_key", "unwritten", "exits"])
def test_answers_of_another_kind(name):
    assert len(failed(name)) >= 10


def test_an_unwritten_solution_scores_nothing():
    grade = score(solution("unwritten"))
    assert (grade.points, grade.bonus) == (0, 0)
    assert grade.answers[0].found == "raises NotImplementedError: "


def test_without_source_there_is_no_bonus():
    scope: dict[str, object] = {"plain": solution("plain")}
    exec("def unseen(tokens, q, p, u): return plain(tokens, q, p, u)", scope)
    unseen = scope["unseen"]
    assert callable(unseen)
    grade = score(unseen)
    assert (grade.points, grade.bonus, grade.bonus_reason) == (100, 0, "its source cannot be read")


def test_findings():
    found = list(check_practice(as_subject(solution("mislabelled"), "practice"), PLAN))
    assert len(found) == len(DECIDED) + len(OPEN) + 1
    assert [f.outcome for f in found].count(Outcome.LOSSY) == 2  # the case, and the total
    wrong = next(f for f in found if f.outcome is Outcome.LOSSY)
    assert "wanted: returns {'accepted_tokens': [0, 1], 'bonus_token': None" in wrong.message
    assert wrong.case["draft_tokens"] == [0, 1]
    assert wrong.case["random_samples"] == [0.5, 0.8]
    total = found[-1]
    assert total.case == {"points": 90, "bonus": 10, "bonus_reason": "plain Python"}
    assert NOT_LOSSLESS in total.message
    assert [Finding.from_dict(f.to_dict()) for f in found[:3]] == found[:3]


def test_open_cases_are_notes_beside_our_answer():
    found = list(check_practice(as_subject(solution("plain"), "practice"), PLAN))
    notes = [f for f in found if f.outcome is Outcome.NOTE]
    assert len(notes) == len(OPEN)
    assert all("; ours r" in note.message for note in notes)
    assert found[-1].outcome is Outcome.PASSED
