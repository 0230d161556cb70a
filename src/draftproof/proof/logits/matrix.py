"""Every verifier from logits of known worth, judged at the subject's budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from draftproof.proof.checks import CHECKS, checks_for
from draftproof.proof.logits.gallery import load_logits_mutant, logits_gallery
from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.trial.examination import examine
from draftproof.proof.trial.matrix import FATAL, Matrix, judge_in_turn
from draftproof.proof.trial.plan import Plan, make_plan

__all__ = ["KEY_LOGITS_CONTROLS", "judge_logits_gallery", "logits_killers"]

KEY_LOGITS_CONTROLS = (
    "raw bonus",
    "stale penalty",
    "rejected drafts stay counted",
    "temperature last",
    "the neighbour's parameters",
    "silent greedy",
    "mask missing on the bonus row",
    "log-probabilities of the row before",
)
"""One control for each way of going wrong."""


def judge_logits_gallery(
    plan: Plan,
    names: Iterable[str] | None = None,
    on_progress: Callable[[int, int, str], object] | None = None,
) -> Matrix:
    """Judge verifiers of known worth, one after the other.

    Args:
        plan: the subject's.
        names: wrong ones to judge; None for all of them, and for all right ones too.
        on_progress: told (done, total, name) after each.
    """
    gallery = logits_gallery()
    chosen = [gallery[name] for name in (gallery if names is None else names)]
    return judge_in_turn(chosen, lambda name: logits_killers(name, plan), on_progress)


def logits_killers(name: str, plan: Plan) -> tuple[str, ...]:
    """Judge one verifier until a check catches it, and return that check's name, if one does.

    The plan is the quick one, and exact checks are enough where the oracle can follow.
    """
    quick, mutant = make_plan("quick", plan.seed, plan.timeout), logits_gallery()[name]
    subject = load_logits_mutant(name)
    for check in checks_for(Contract.LOGITS):
        if mutant.drivable and check in ("logits-bisection", "logits-joint"):
            break
        for finding in examine(check, CHECKS[check], subject, quick):
            if finding.outcome in FATAL:
                return (check,)
    return ()
