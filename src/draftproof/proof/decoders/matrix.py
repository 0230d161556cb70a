"""Decoders of known worth, judged at the subject's budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from draftproof.proof.checks import CHECKS, checks_for
from draftproof.proof.mutants import DECODERS
from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.subjects.subject import load
from draftproof.proof.trial.examination import examine
from draftproof.proof.trial.matrix import FATAL, Matrix, judge_in_turn
from draftproof.proof.trial.plan import Plan, make_plan

__all__ = ["KEY_DECODER_CONTROLS", "decoder_killers", "judge_decoder_gallery"]

KEY_DECODER_CONTROLS: Mapping[Contract, tuple[str, ...]] = MappingProxyType(
    {
        Contract.ROUND: (
            "round: resample p on a rejection",
            "round: noise reused",
            "round: cache not rolled back",
            "round: all accepted, one lost",
            "round: top-2 drafts, full q",
        ),
        Contract.GENERATE: (
            "text: resample p on a rejection",
            "text: rows mixed up when one leaves",
            "text: goes on behind its end",
            "text: seed ignored",
            "text: seeded in each round",
        ),
    }
)
"""One control for each way of going wrong that needs an instrument of its own."""


def judge_decoder_gallery(
    contract: Contract,
    plan: Plan,
    everyone: bool = False,
    on_progress: Callable[[int, int, str], object] | None = None,
) -> Matrix:
    """Judge the decoders of known worth that have a contract.

    Args:
        contract: ``round`` or ``generate``.
        plan: the subject's.
        everyone: all of them, the right ones too; else the key controls.
        on_progress: told (done, total, name) after each.
    """
    gallery = [
        mutant
        for mutant in DECODERS.values()
        if mutant.contract is contract
        and (everyone or mutant.name in KEY_DECODER_CONTROLS[contract])
    ]
    plan = replace(plan, law="", plain="")
    return judge_in_turn(gallery, lambda name: decoder_killers(name, plan), on_progress)


def decoder_killers(name: str, plan: Plan) -> tuple[str, ...]:
    """Judge one decoder until a check catches it, and return that check's name, if one does.

    A right one gets the quick plan: its death would be a false alarm, whatever the plan.
    """
    mutant = DECODERS[name]
    if mutant.kind == "equivalent":
        plan = make_plan("quick", plan.seed, plan.timeout)
    subject = load(mutant.spec)
    for check in checks_for(mutant.contract):
        for finding in examine(check, CHECKS[check], subject, plan):
            if finding.outcome in FATAL:
                return (check,)
    return ()
