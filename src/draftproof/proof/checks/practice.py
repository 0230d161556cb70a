"""The contract ``practice``: the practice problem's answers, exactly, and a score."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from draftproof.proof.checks.plain_python import packages_used
from draftproof.proof.checks.practice_cases import DECIDED, OPEN, Case
from draftproof.proof.subjects.subject import Subject
from draftproof.proof.trial.plan import Plan
from draftproof.proof.verdicts.finding import Finding, Grade, Outcome

__all__ = ["BONUS", "NOT_LOSSLESS", "Answer", "Score", "check_practice", "score"]

BONUS = 10
"""Points beyond the hundred for a solution in plain Python."""
NOT_LOSSLESS = (
    "This contract is not lossless by its own rule: it takes the argmax of the residual, where a "
    "lossless verifier draws from it."
)
_KEYS = {"accepted_tokens", "bonus_token", "acceptance_count"}
_ARGUMENTS = ("draft_tokens", "draft_probs", "target_probs", "random_samples")


@dataclass(frozen=True)
class Answer:
    """What a solution made of one case; ``found`` says it in words if it is not as wanted."""

    case: Case
    right: bool
    found: str


@dataclass(frozen=True)
class Score:
    """The grade of a solution.

    Attributes:
        points: of 100, the sum over the cases that it got right.
        bonus: 10 for a solution in plain Python, if any of its answers is right; else 0.
        bonus_reason: why.
        answers: of the cases that the task's text decides.
        open_answers: of those that it leaves open, beside our answer; they score nothing.
    """

    points: int
    bonus: int
    bonus_reason: str
    answers: tuple[Answer, ...]
    open_answers: tuple[Answer, ...]


def check_practice(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """Grade a solution: a finding for each case, and last the score.

    Yields:
        Wrong answers are lossy, the open cases notes. The last finding's ``case`` holds
        ``points``, ``bonus`` and ``bonus_reason``; every other one's the arguments of its call.
    """
    grade = score(subject.call)
    for answer in grade.answers:
        yield _judge(answer, Outcome.PASSED if answer.right else Outcome.LOSSY)
    for answer in grade.open_answers:
        yield _judge(answer, Outcome.NOTE)
    total = f"{grade.points} of 100 points and {grade.bonus} of {BONUS} bonus points"
    yield Finding(
        "practice",
        Outcome.PASSED if grade.points == 100 else Outcome.LOSSY,
        Grade.EXACT,
        f"{total} ({grade.bonus_reason}). {NOT_LOSSLESS}",
        size=len(grade.answers),
        case={"points": grade.points, "bonus": grade.bonus, "bonus_reason": grade.bonus_reason},
    )


def score(solution: Callable[..., Any]) -> Score:
    """Grade a solution of the practice problem.

    >>> from draftproof.practice import verify_speculative_tokens
    >>> grade = score(verify_speculative_tokens)
    >>> grade.points, grade.bonus
    (100, 10)
    """
    answers = tuple(_ask(solution, case) for case in DECIDED)
    open_answers = tuple(_ask(solution, case) for case in OPEN)
    points = sum(answer.case.points for answer in answers if answer.right)
    bonus, reason = _bonus(solution) if points else (0, "no answer is right")
    return Score(points, bonus, reason, answers, open_answers)


def _bonus(solution: Callable[..., Any]) -> tuple[int, str]:
    try:
        used = packages_used(solution)
    except (OSError, TypeError, SyntaxError):
        return 0, "its source cannot be read"
    if used:
        return 0, f"it uses {', '.join(sorted(used))}"
    return BONUS, "plain Python"


def _ask(solution: Callable[..., Any], case: Case) -> Answer:
    arguments = copy.deepcopy(case.arguments)
    try:
        result = solution(*arguments)
    except ValueError:
        return Answer(case, case.wanted is ValueError, "raises ValueError")
    except (Exception, SystemExit) as error:
        return Answer(case, False, f"raises {type(error).__name__}: {error}"[:200])
    found = _read(result)
    if isinstance(found, str):
        return Answer(case, False, f"returns {found}"[:200])
    return Answer(case, found == case.wanted, f"returns {found}"[:200])


def _read(result: Any) -> dict[str, Any] | str:
    """Read a result in plain integers, whatever integers it holds; say what is odd about it."""
    if not isinstance(result, dict):
        return f"a {type(result).__name__}, no dict"
    if set(result) != _KEYS:
        return f"a dict of the keys {', '.join(map(repr, result))}"
    try:
        bonus = result["bonus_token"]
        return {
            "accepted_tokens": [operator.index(token) for token in result["accepted_tokens"]],
            "bonus_token": None if bonus is None else operator.index(bonus),
            "acceptance_count": operator.index(result["acceptance_count"]),
        }
    except TypeError:
        return f"{result}, whose tokens are no integers"


def _judge(answer: Answer, outcome: Outcome) -> Finding:
    case = answer.case
    wanted = "raises ValueError" if case.wanted is ValueError else f"returns {case.wanted}"
    if outcome is Outcome.NOTE:
        message = f"{case.name} (open, no points): {answer.found}; ours {wanted}"
    elif answer.right:
        message = f"{case.name} ({case.points} of {case.points} points)"
    else:
        message = f"{case.name} (0 of {case.points} points): {answer.found}; wanted: {wanted}"
    arguments = dict(zip(_ARGUMENTS, copy.deepcopy(case.arguments), strict=True))
    K = len(case.arguments[0])
    return Finding("practice", outcome, Grade.EXACT, message, num_draft=K, case=arguments)
