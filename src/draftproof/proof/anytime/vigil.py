"""A watch without end: until the subject is proved wrong, or somebody has seen enough."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from draftproof.proof.anytime.watch import Watch
from draftproof.proof.decoders.sources import require_source
from draftproof.proof.subjects.emission import ContractBroken
from draftproof.proof.subjects.raised import phrase
from draftproof.proof.subjects.subject import Subject, as_subject
from draftproof.proof.trial.examination import broken
from draftproof.proof.trial.plan import Plan
from draftproof.proof.verdicts.finding import Finding, Outcome
from draftproof.proof.verdicts.verdict import Conclusion, Power, Verdict

__all__ = ["keep_watch"]


@dataclass
class _Bell:
    """Rung by the first interrupt; the second one is an interrupt like any other."""

    rung: bool = False


def keep_watch(
    subject: Subject | str | Callable[..., Any],
    plan: Plan,
    *,
    contract: str | None = None,
    tokens: float = math.inf,
    on_state: Callable[[Watch], object] | None = None,
) -> Verdict:
    """Watch a subject in this process, and conclude when it is proved wrong or on an interrupt.

    Args:
        subject: of any contract that draws from the target's law.
        plan: names the seed, the whole false-alarm rate, and what a decoder is held against.
        contract: its call shape; guessed if left out.
        tokens: after so many of them the watch ends by itself.
        on_state: shown the watch, again and again.

    Returns:
        A verdict of one check, ``anytime``: not rejected means so far.

    Raises:
        ValueError: the subject cannot be found, or has no law to watch.
    """
    known = as_subject(subject, contract)
    if not (known.contract.is_sampler or known.contract.is_decoder):
        raise ValueError(
            f"watch: found the contract {known.contract.value!r}; wanted a chain's verifier or a "
            "decoder, whose law can be bet on. Fix: leave --watch out."
        )
    require_source(known, plan)
    started, failures = time.monotonic(), []
    watch = Watch(known, plan, plan.false_alarm)
    with _bell() as bell:
        try:
            while not (bell.rung or watch.is_decided) and watch.tokens < tokens:
                watch.advance()
                if on_state is not None:
                    on_state(watch)
        except ContractBroken as failure:
            failures.append(broken("anytime", failure.reason))
        except Exception as error:
            failures.append(broken("anytime", f"raised {phrase(error)}"))
    findings = (*watch.findings(), *failures)
    return _verdict(known, plan, watch, findings, time.monotonic() - started)


def _verdict(
    subject: Subject, plan: Plan, watch: Watch, findings: tuple[Finding, ...], seconds: float
) -> Verdict:
    outcome, reason = Conclusion.NOT_REJECTED, f"so far: {watch.tokens:,} tokens were watched"
    for wanted, conclusion in (
        (Outcome.BROKEN, Conclusion.BROKEN),
        (Outcome.LOSSY, Conclusion.REJECTED),
    ):
        for finding in findings:
            if finding.outcome is wanted:
                outcome, reason = conclusion, finding.message
    return Verdict(
        subject=subject.name,
        contract=subject.contract.value,
        profile=plan.profile,
        seed=plan.seed,
        outcome=outcome,
        reason=reason,
        findings=findings,
        power=Power(),
        false_alarm_budget={"anytime": plan.false_alarm},
        not_covered=(
            "Only bets were made: a subject that is right to them so far may be wrong by less than "
            "so many tokens show, or where they do not look.",
        ),
        seconds=seconds,
    )


@contextmanager
def _bell() -> Iterator[_Bell]:
    """Turn the first interrupt into a wish to stop, so that no text is left half written."""
    bell = _Bell()
    if threading.current_thread() is not threading.main_thread():
        yield bell
        return
    before = signal.getsignal(signal.SIGINT)

    def ring(number: int, frame: Any) -> None:
        if bell.rung:
            raise KeyboardInterrupt
        bell.rung = True

    signal.signal(signal.SIGINT, ring)
    try:
        yield bell
    finally:
        signal.signal(signal.SIGINT, before)
