"""Every verifier of trees of known worth, judged at the subject's budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from draftproof.proof.checks import CHECKS, checks_for
from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.trees.gallery import load_tree_mutant, tree_gallery
from draftproof.proof.trial.examination import examine
from draftproof.proof.trial.matrix import FATAL, Matrix
from draftproof.proof.trial.plan import Plan, make_plan
from draftproof.proof.verdicts.finding import Finding, Outcome
from draftproof.proof.verdicts.verdict import Control

__all__ = ["KEY_TREE_CONTROLS", "judge_tree_gallery", "tree_killers"]

KEY_TREE_CONTROLS = (
    "no update",
    "re-sorted siblings",
    "iid repeats counted as rejections",
    "original p at the end",
    "duplicates in a fixed set",
    "traversal, q not updated",
    "noise kept between calls",
)
"""One control for each way of going wrong."""


def judge_tree_gallery(
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
    gallery = tree_gallery()
    chosen = [gallery[name] for name in (gallery if names is None else names)]
    controls: list[Control] = []
    casualties: list[str] = []
    for done, mutant in enumerate(chosen, 1):
        killers = tree_killers(mutant.name, plan)
        if mutant.kind != "equivalent":
            controls.append(Control(mutant.name, killers))
        elif killers:
            casualties.append(mutant.name)
        if on_progress is not None:
            on_progress(done, len(chosen), f"control: {mutant.name}")
    return Matrix(tuple(controls), tuple(casualties))


def tree_killers(name: str, plan: Plan) -> tuple[str, ...]:
    """Judge one verifier until a check catches it, and return that check's name, if one does.

    The plan is the quick one: what is wrong shows in its worlds. One that is proven right is not
    sampled.
    """
    quick = make_plan("quick", plan.seed, plan.timeout)
    subject = load_tree_mutant(name)
    seen: list[Finding] = []
    for check in checks_for(Contract.TREE):
        if check == "tree-joint" and all(f.outcome is Outcome.PASSED for f in seen):
            break
        for finding in examine(check, CHECKS[check], subject, quick):
            if finding.outcome in FATAL:
                return (check,)
            seen.append(finding)
    return ()
