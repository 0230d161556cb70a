"""Every verifier of trees of known worth, judged at the subject's budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from draftproof.proof.checks import CHECKS, checks_for
from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.trees.gallery import load_tree_mutant, tree_gallery
from draftproof.proof.trial.examination import examine
from draftproof.proof.trial.matrix import FATAL, Matrix, judge_in_turn
from draftproof.proof.trial.plan import Plan, make_plan
from draftproof.proof.verdicts.finding import Finding, Outcome

__all__ = ["KEY_TREE_CONTROLS", "judge_tree_gallery", "tree_killers"]

KEY_TREE_CONTROLS: Mapping[Contract, tuple[str, ...]] = MappingProxyType(
    {
        Contract.TREE: (
            "no update",
            "re-sorted siblings",
            "iid repeats counted as rejections",
            "original p at the end",
            "duplicates in a fixed set",
            "traversal, q not updated",
            "noise kept between calls",
        ),
        Contract.TREE_LOGITS: (
            "the sibling's text",
            "raw at the leaves",
            "the mask of the root",
            "ends by number",
            "rejected siblings stay counted",
        ),
    }
)
"""One control for each way of going wrong."""


def judge_tree_gallery(
    plan: Plan,
    names: Iterable[str] | None = None,
    on_progress: Callable[[int, int, str], object] | None = None,
    contract: Contract = Contract.TREE,
) -> Matrix:
    """Judge verifiers of known worth, one after the other.

    Args:
        plan: the subject's.
        names: wrong ones to judge; None for all of them, and for all right ones too.
        on_progress: told (done, total, name) after each.
        contract: whose gallery.
    """
    gallery = tree_gallery(contract)
    chosen = [gallery[name] for name in (gallery if names is None else names)]
    return judge_in_turn(chosen, lambda name: tree_killers(name, plan, contract), on_progress)


def tree_killers(name: str, plan: Plan, contract: Contract = Contract.TREE) -> tuple[str, ...]:
    """Judge one verifier until a check catches it, and return that check's name, if one does.

    The plan is the quick one: what is wrong shows in its worlds. One that is proven right is not
    sampled.
    """
    quick = make_plan("quick", plan.seed, plan.timeout)
    subject = load_tree_mutant(name, contract)
    seen: list[Finding] = []
    for check in checks_for(contract):
        if check == "tree-joint" and all(f.outcome is Outcome.PASSED for f in seen):
            break
        for finding in examine(check, CHECKS[check], subject, quick):
            if finding.outcome in FATAL:
                return (check,)
            seen.append(finding)
    return ()
