"""What a verdict on a verifier from logits does not say."""

from __future__ import annotations

from collections.abc import Sequence

from draftproof.proof.exact.bisection import ASSUMPTION
from draftproof.proof.verdicts.finding import Finding, Grade, Outcome
from draftproof.proof.worlds.logits_world import PROMPTED

__all__ = ["not_covered_from_logits"]

TOLERANT = ("logits-habits", "logits-lacks", "logits-bad-rows")
"""Checks that note what is no bias of a law."""


def not_covered_from_logits(findings: Sequence[Finding], visible: float) -> tuple[str, ...]:
    """Return the sentences.

    Args:
        findings: of the trial.
        visible: the total variation that sampling was to show, or did where the time ran out.
    """
    prompts = "" if any(f.world in PROMPTED for f in findings) else ", and prompts,"
    sentences = [
        "Laws were examined for V up to 7, drafts of up to 2 tokens, batches of one request and of "
        "two, and mixed ones by sampling; larger vocabularies and longer drafts"
        f"{prompts} were not.",
        "Logits were float64 numbers that bfloat16 holds too.",
        "Whether a caller passes the logits and parameters that its drafts were sampled by, no "
        "verifier can show.",
    ]
    if not any(f.check == "logits-seeds" for f in findings):
        sentences.append("It does not say that it takes seeds of requests: none had one.")
    sentences += [
        f"It was {f.message}."
        for f in findings
        if f.check == "logits-engine" and f.outcome is Outcome.NOTE
    ]
    if any(f.check in TOLERANT and f.outcome is Outcome.NOTE for f in findings):
        sentences.append("What the notes say of its habits was not held against it.")
    rounded = [f for f in findings if f.grade is Grade.EXACT and f.outcome is Outcome.NOTE]
    if any(f.total_variation is not None for f in rounded):
        sentences.append(
            "Its laws are rounded, which was not held against it: a bias of the size of float32's "
            "rounding is not told from it."
        )
    driven = [f for f in findings if f.check == "logits-oracle"]
    if any(f.outcome is Outcome.NOT_DRIVABLE for f in driven):
        replayed = [f for f in findings if f.check == "logits-bisection"]
        if replayed and all(f.outcome in (Outcome.PASSED, Outcome.NOTE) for f in replayed):
            sentences.append(f"A law by a subject's own thresholds takes it that {ASSUMPTION}.")
        sentences.append(
            f"A total variation above {visible:.2g} in drafts of two tokens, or "
            "between two rows, would have been seen by sampling; a smaller bias is not excluded."
        )
    return tuple(sentences)
