"""Every verifier of known worth, judged at the subject's budget: the judge's own test."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, replace
from typing import Protocol, Self

from draftproof.proof.checks import CHECKS, ORACLE, checks_for
from draftproof.proof.mutants import EQUIVALENTS, MUTANTS, get
from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.subjects.subject import Subject, load
from draftproof.proof.trial.course import plan_for
from draftproof.proof.trial.examination import examine
from draftproof.proof.trial.plan import Plan, after_proof, make_plan
from draftproof.proof.trial.process import run_checks
from draftproof.proof.verdicts.catches import first_catches
from draftproof.proof.verdicts.finding import Finding, Outcome
from draftproof.proof.verdicts.verdict import Control

__all__ = [
    "KEY_CONTROLS",
    "Matrix",
    "judge_gallery",
    "judge_in_turn",
    "killers",
    "killers_here",
    "serve",
]

KEY_CONTROLS = (
    "resample p on a rejection",
    "one uniform for all",
    "bonus from row K",
    "rows in pairs share noise",
    "noise kept between calls",
    "coin is a token's noise",
    "long rows summed in float32",
    "token ids in 16 bits",
)
"""One control for each way of going wrong that needs an instrument of its own."""

FATAL = (Outcome.LOSSY, Outcome.BROKEN)
PATIENCE = 10.0
"""Seconds that a check may take of a verifier that is known to hang."""


@dataclass(frozen=True)
class Matrix:
    """What became of the gallery.

    Attributes:
        controls: a row for each wrong verifier.
        casualties: right ones that were rejected: faults of the judge.
    """

    controls: tuple[Control, ...] = ()
    casualties: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """Wrong verifiers that were judged."""
        return len(self.controls)

    @property
    def survivors(self) -> tuple[str, ...]:
        """Wrong ones that no check caught."""
        return tuple(control.name for control in self.controls if not control.killed_by)

    @property
    def killed(self) -> int:
        """Wrong ones that died."""
        return self.total - len(self.survivors)


class Known(Protocol):
    """A verifier of known worth, of any family."""

    @property
    def name(self) -> str:
        """What tables call it."""

    @property
    def kind(self) -> str:
        """``"equivalent"`` if it is right."""


def judge_in_turn(
    chosen: Sequence[Known],
    killers: Callable[[str], tuple[str, ...]],
    on_progress: Callable[[int, int, str], object] | None = None,
) -> Matrix:
    """Judge verifiers of known worth one after the other, in this process.

    Args:
        chosen: whom.
        killers: of a name, the checks that catch it.
        on_progress: told (done, total, name) after each.
    """
    controls: list[Control] = []
    casualties: list[str] = []
    for done, mutant in enumerate(chosen, 1):
        caught = killers(mutant.name)
        if mutant.kind != "equivalent":
            controls.append(Control(mutant.name, caught))
        elif caught:
            casualties.append(mutant.name)
        if on_progress is not None:
            on_progress(done, len(chosen), f"control: {mutant.name}")
    return Matrix(tuple(controls), tuple(casualties))


def judge_gallery(
    plan: Plan,
    names: Iterable[str] | None = None,
    on_progress: Callable[[int, int, str], object] | None = None,
) -> Matrix:
    """Judge verifiers of known worth, as many at once as there are processors.

    Args:
        plan: the subject's.
        names: wrong verifiers to judge; None for all of them, and for all right ones too.
        on_progress: told (done, total, name) after each.
    """
    gallery = list(MUTANTS.values()) + list(EQUIVALENTS.values())
    if names is not None:
        gallery = [get(name) for name in names]
    waiting = [mutant.name for mutant in reversed(gallery)]
    deaths: dict[str, tuple[str, ...]] = {}
    lock = threading.Lock()

    def work() -> None:
        with _Worker(plan) as worker:
            while True:
                with lock:
                    if not waiting:
                        return
                    name = waiting.pop()
                death = worker.ask(name)
                with lock:
                    deaths[name] = death
                    if on_progress is not None:
                        on_progress(len(deaths), len(gallery), f"control: {name}")

    size = min(_processors(), len(gallery))
    with ThreadPoolExecutor(max_workers=size) as pool:
        for future in [pool.submit(work) for _ in range(size)]:
            future.result()
    wrong = [mutant for mutant in gallery if mutant.kind != "equivalent"]
    right = [mutant for mutant in gallery if mutant.kind == "equivalent"]
    return Matrix(
        tuple(Control(mutant.name, deaths[mutant.name]) for mutant in wrong),
        tuple(mutant.name for mutant in right if deaths[mutant.name]),
    )


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Worker:
    """A process that judges one verifier after the other.

    It is started by hand, not by `multiprocessing`, which would run the caller's script anew.
    """

    def __init__(self, plan: Plan) -> None:
        start = f"import sys; sys.path[:] = {sys.path!r}; "
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                start + "from draftproof.proof.trial.matrix import serve; serve()",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._send(asdict(plan))

    def ask(self, name: str) -> tuple[str, ...]:
        self._send(name)
        assert self._process.stdout is not None
        return tuple(json.loads(self._process.stdout.readline()))

    def _send(self, message: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


def serve() -> None:
    """Judge the verifiers that the standard input names, for the plan in its first line.

    The end of the process that asked is the end of this one, whatever it is at.
    """
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    plan = Plan(**json.loads(sys.stdin.readline()))
    for line in sys.stdin:
        name = json.loads(line)
        known = first_catches().get(name, {}).get("driven")
        print(json.dumps(killers(name, plan, known)), flush=True)


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def killers(name: str, plan: Plan, first: str | None = None) -> tuple[str, ...]:
    """Judge one verifier until a check catches it, and return that check's name, if one does.

    A right one gets the quick plan: its death would be a false alarm, whatever the plan.

    Args:
        name, plan: whom, how thoroughly.
        first: the check to begin with, where it is known which one catches it.
    """
    mutant = get(name)
    if mutant.kind == "equivalent":
        plan = make_plan("quick", plan.seed, plan.timeout)
    if mutant.kind == "broken":
        plan = replace(plan, timeout=min(plan.timeout, PATIENCE))
        checks = dict.fromkeys([*([first] if first else []), *checks_for(Contract.RAGGED)])
        findings = run_checks(mutant.spec, Contract.RAGGED, list(checks), plan, fail_fast=True)
        return tuple(f.check for f in findings if f.outcome in FATAL)[:1]
    with redirect_stdout(io.StringIO()):  # one of the right ones prints
        return killers_here(load(mutant.spec), plan, first)


def killers_here(subject: Subject, plan: Plan, first: str | None = None) -> tuple[str, ...]:
    """Judge a subject in this process until a check catches it, and return that check's name.

    Args:
        subject, plan: whom, how thoroughly.
        first: the check to begin with. It is asked for no more than of a subject that the oracle
            has let pass, so that whom it catches would have died in the usual course too.
    """
    if first is not None:
        asked = plan if first in ORACLE else after_proof(plan)
        if any(f.outcome in FATAL for f in examine(first, CHECKS[first], subject, asked)):
            return (first,)
    findings: list[Finding] = []
    for name in checks_for(Contract.RAGGED):
        if name == "scorecard":
            continue
        for finding in examine(name, CHECKS[name], subject, plan_for(name, plan, findings)):
            if finding.outcome in FATAL:
                return (name,)
            findings.append(finding)
    return ()
