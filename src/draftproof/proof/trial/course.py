"""The course of a trial: what each check is asked for, and in which of two processes it runs.

Both depend on the checks before and never on a clock: one seed gives one verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

from draftproof.proof.checks import ORACLE, is_proven
from draftproof.proof.trial.plan import PROVEN_VISIBLE, Plan, after_proof, after_replay
from draftproof.proof.verdicts.finding import Finding, Grade, Outcome

__all__ = ["is_refuted", "plan_for", "side_by_side", "split"]

LAWS = ("no-drafts", "equal-laws", "joint")
"""Checks of the law of single rows, which replay has told already where it could."""
ASIDE = (
    *("oracle-pairs", "oracle-calls"),
    *("ragged", "rounds", "few-rows", "rows", "seeds", "scorecard"),
)
"""Checks that run beside the others, for they wait for the oracle at most."""


def plan_for(check: str, plan: Plan, findings: Sequence[Finding]) -> Plan:
    """Return what a check is asked for after these findings.

    ::

        the oracle told the law, right or wrong    only what is gross, see `after_proof`
        replay did                                 the same, of laws of single rows: `after_replay`
        replay did, from logits                    as much as rows of a batch can hide
        neither                                    the plan
    """
    if check in ORACLE:
        return plan
    if is_proven(findings) or is_refuted(f for f in findings if f.check in ORACLE):
        return after_proof(plan)
    if check in LAWS and (is_refuted(findings) or _is_replayed(findings, "bisection")):
        return after_replay(plan)
    if check == "logits-joint" and _is_replayed(findings, "logits-bisection"):
        return replace(plan, visible=max(plan.visible, PROVEN_VISIBLE))
    return plan


def split(checks: Sequence[str]) -> tuple[list[str], list[str]]:
    """Share out the checks of a trial between two processes, in order."""
    aside = [check for check in checks if check in ASIDE]
    return [check for check in checks if check not in aside], aside


@contextmanager
def side_by_side(stop: Callable[[], object]) -> Iterator[Executor]:
    """Yield what runs functions one after the other beside this thread.

    Args:
        stop: ends them, should this thread end before they do: by an interrupt, say.
    """
    with ThreadPoolExecutor(max_workers=1) as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            stop()
            raise


def is_refuted(findings: Iterable[Finding]) -> bool:
    """Whether exact evidence has found the law wrong, which no more of any evidence can mend."""
    return any(f.outcome is Outcome.LOSSY and f.grade is Grade.EXACT for f in findings)


def _is_replayed(findings: Sequence[Finding], check: str) -> bool:
    """Whether a law by a subject's own thresholds was found right in every world and size."""
    seen = [finding for finding in findings if finding.check == check]
    return bool(seen) and all(f.outcome in (Outcome.PASSED, Outcome.NOTE) for f in seen)
