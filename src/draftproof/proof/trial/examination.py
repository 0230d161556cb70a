"""Run one check on one subject so that whatever happens ends in a finding."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping

from draftproof.proof.exact.generator import NotDrivable
from draftproof.proof.subjects.emission import ContractBroken
from draftproof.proof.subjects.raised import is_the_subjects, phrase
from draftproof.proof.subjects.subject import Subject
from draftproof.proof.trial.plan import Plan
from draftproof.proof.verdicts.finding import Finding, Grade, Outcome

__all__ = ["CHECKS", "Check", "broken", "examine", "find_checks"]

CHECKS = "draftproof.proof.checks:CHECKS"
"""Where the checks are found by their names."""

Check = Callable[[Subject, Plan], Iterator[Finding]]
"""One finding for each world or size it examined. It may raise NotDrivable or ContractBroken."""


def examine(
    name: str,
    check: Check,
    subject: Subject,
    plan: Plan,
    let_through: tuple[type[BaseException], ...] = (KeyboardInterrupt,),
) -> Iterator[Finding]:
    """Yield a check's findings; an exception ends it in one more.

    ::

        NotDrivable                       -> not drivable
        ContractBroken                    -> broken
        any other, raised by the subject  -> broken, even SystemExit and its like
        any other, raised by the check    -> inconclusive: a fault of ours, and said to be one

    Args:
        name: the check's.
        check: what to run.
        subject: on what.
        plan: how thoroughly.
        let_through: exceptions that are nobody's fault.
    """
    try:
        findings = iter(check(subject, plan))
    except BaseException as error:
        yield _last_finding(name, error, let_through)
        return
    while True:
        try:
            finding = next(findings)
        except StopIteration:
            return
        except BaseException as error:
            yield _last_finding(name, error, let_through)
            return
        yield finding


def find_checks(registry: str = CHECKS) -> Mapping[str, Check]:
    """Import the mapping from names to checks that ``module:attr`` leads to."""
    module, _, attribute = registry.partition(":")
    checks: Mapping[str, Check] = getattr(importlib.import_module(module), attribute)
    return checks


def broken(check: str, message: str) -> Finding:
    """Say that the subject broke its contract in a check."""
    return Finding(check, Outcome.BROKEN, Grade.BEHAVIOUR, message)


def _last_finding(
    name: str, error: BaseException, let_through: tuple[type[BaseException], ...]
) -> Finding:
    if isinstance(error, let_through):
        raise error
    if isinstance(error, RuntimeError) and isinstance(error.__cause__, StopIteration):
        error = error.__cause__  # which a generator turns into a RuntimeError
    if isinstance(error, NotDrivable):
        return Finding(name, Outcome.NOT_DRIVABLE, Grade.EXACT, str(error))
    if isinstance(error, ContractBroken):
        return Finding(name, Outcome.BROKEN, Grade.BEHAVIOUR, error.reason, case=dict(error.case))
    if is_the_subjects(error):
        return broken(name, f"raised {phrase(error)}")
    message = (
        f"the check itself failed, a fault of draftproof and not of the subject: {phrase(error)}"
    )
    return Finding(name, Outcome.INCONCLUSIVE, Grade.BEHAVIOUR, message)
