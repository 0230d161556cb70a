"""The judge: every check that fits, the controls beside them, and one conclusion."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from draftproof.proof.checks import ORACLE, checks_for, is_proven
from draftproof.proof.checks.scorecard import ScoreRow
from draftproof.proof.checks.trees import VISIBLE as TREES_VISIBLE
from draftproof.proof.decoders.sources import beside, not_covered, require_source
from draftproof.proof.exact.bisection import ASSUMPTION
from draftproof.proof.sampled import budget
from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.subjects.emission import ContractBroken
from draftproof.proof.subjects.subject import Subject, as_subject
from draftproof.proof.trial.course import plan_for, side_by_side, split
from draftproof.proof.trial.examination import broken
from draftproof.proof.trial.matrix import KEY_CONTROLS, Matrix, judge_gallery
from draftproof.proof.trial.plan import Plan, after_proof, make_plan, visible_by_decoders
from draftproof.proof.trial.process import TAIL, SubjectProcess, run_checks
from draftproof.proof.verdicts.finding import Finding, Grade, Outcome
from draftproof.proof.verdicts.fingerprint import nearest_fault
from draftproof.proof.verdicts.numerical_grade import caveat, numerical_grade
from draftproof.proof.verdicts.reproducer import find_reproducer
from draftproof.proof.verdicts.verdict import (
    Conclusion,
    Power,
    Reproducer,
    ScorecardRow,
    Verdict,
)
from draftproof.proof.worlds.catalogue import WORLDS
from draftproof.proof.worlds.wide import WIDE_WORLDS

__all__ = ["OnProgress", "check", "conclude", "installed_version"]

OnProgress = Callable[[int, int, str], object]
"""(done, total, what is next)."""
EXACT = ("oracle", "tree-oracle", "logits-oracle")
SAMPLED = ("joint", "tree-joint", "logits-joint")
"""The checks whose findings are a law's exact, or sampled, distance in each world."""


def check(
    subject: Subject | str | Callable[..., Any] | None = None,
    *,
    contract: Contract | str | None = None,
    profile: str = "standard",
    seed: int = 0,
    timeout: float | None = None,
    fail_fast: bool = False,
    against_mutants: bool = False,
    law: str | Callable[..., Any] | None = None,
    plain: str | Callable[..., Any] | None = None,
    prompts: Sequence[Sequence[int]] = (),
    eos: int | None = None,
    leave_out: Sequence[str] = (),
    on_progress: OnProgress | None = None,
) -> Verdict:
    """Judge whether a verifier, or a decoder, is lossless.

    ::

        exact evidence     the law of everything it can do, where its uniforms can be driven
        behaviour          seeds, places in the batch, padding, empty batches, its inputs
        sampled evidence   joint laws over rounds and ragged rows, independence, with their power
        controls           wrong verifiers at the same budget, which must die

    Args:
        subject: ``module:attr``, ``path/to/file.py:attr``, a callable or a `Subject`; None for
            our own `draftproof.verify`, on every installed backend. What another process can
            find again is judged in a child process.
        contract: its call shape; guessed from its signature if left out.
        profile: "quick" (seconds), "standard" or "paper": see `draftproof.proof.trial.plan`.
        seed: of all that is drawn. Two runs with one seed give one verdict.
        timeout: seconds until one check counts as hanging.
        fail_fast: stop at the first finding that decides.
        against_mutants: judge the whole gallery too; else a few key controls.
        law: for a decoder ``f(prompts, num_tokens, seed)`` with models of its own, its target's
            law, ``law(prompt, prefix) -> row``: what another process can find again, or its name.
        plain: for one whose law nobody knows, the same decoder without speculation.
        prompts: that such decoders are given.
        eos: the token behind which their texts end.
        leave_out: names of checks that are made elsewhere, see `draftproof.proof.shards`.
        on_progress: told after each check.

    Returns:
        A `Verdict`; see `draftproof.proof.verdicts.verdict.Conclusion` for the exit code.

    Raises:
        ValueError: the subject, the contract or the profile cannot be understood.
    """
    started = time.monotonic()
    plan = make_plan(profile, seed, timeout)
    plan = beside(plan, law=law, plain=plain, prompts=prompts, eos=eos)
    trials = _own_trials(plan) if subject is None else [_Trial(subject, contract, plan)]
    names = None if against_mutants or subject is None else KEY_CONTROLS
    progress = _Progress(on_progress)
    for trial in trials:
        trial.leave_out = leave_out
        trial.run(progress, fail_fast)
        if fail_fast and trial.is_decided:
            break
    matrix = Matrix()
    if not any(trial.is_decided for trial in trials):
        matrix = _controls(trials[0].contract, plan, names, progress.say)
    return _conclude(trials, matrix, plan, time.monotonic() - started, own=subject is None)


def _controls(
    contract: Contract, plan: Plan, names: Sequence[str] | None, on_progress: OnProgress
) -> Matrix:
    """Judge the gallery that belongs to a contract; some contracts have none."""
    if contract.is_decoder:
        from draftproof.proof.decoders.matrix import judge_decoder_gallery

        return judge_decoder_gallery(contract, plan, names is None, on_progress)
    if contract.is_tree:
        from draftproof.proof.trees import matrix as trees

        gallery = contract if contract is Contract.TREE_LOGITS else Contract.TREE
        return trees.judge_tree_gallery(
            plan, names and trees.KEY_TREE_CONTROLS[gallery], on_progress, gallery
        )
    if contract is Contract.LOGITS:
        from draftproof.proof.logits.matrix import KEY_LOGITS_CONTROLS, judge_logits_gallery

        return judge_logits_gallery(plan, names and KEY_LOGITS_CONTROLS, on_progress)
    return judge_gallery(plan, names, on_progress) if contract.is_sampler else Matrix()


class _Progress:
    """Counts what is done; what is still to come grows as it becomes known."""

    def __init__(self, listener: OnProgress | None) -> None:
        self._listener, self._done, self._total = listener, 0, 0

    def expect(self, steps: int) -> None:
        self._total += steps

    def begin(self, what: str, seconds: float) -> None:
        """Announce what comes next, and its bound."""
        if self._done:
            self.say(self._done, self._total, f"{what}, {seconds:g} s at most")

    def step(self, what: str) -> None:
        self._done += 1
        self.say(self._done, self._total, what)

    def say(self, done: int, total: int, what: str) -> None:
        if self._listener is not None:
            self._listener(done, total, what)


class _Trial:
    """One subject with its plan, and what the checks found."""

    def __init__(
        self,
        subject: Subject | str | Callable[..., Any],
        contract: Contract | str | None,
        plan: Plan,
        label: str = "",
    ) -> None:
        self._subject: Subject | str = (
            subject if isinstance(subject, str) else as_subject(subject, contract)
        )
        self.plan, self.label = plan, label
        self.contract = Contract.RAGGED
        self._wanted = contract
        self.name = self.spec = self.printed = ""
        self.findings: list[Finding] = []
        self.scorecard: list[ScorecardRow] = []
        self.row_seconds: dict[str, float] = {}
        self.leave_out: Sequence[str] = ()

    @property
    def is_decided(self) -> bool:
        return any(f.outcome in (Outcome.LOSSY, Outcome.BROKEN) for f in self.findings)

    def run(self, progress: _Progress, fail_fast: bool) -> None:
        """Run every check that fits the contract."""
        subject = self._subject
        if isinstance(subject, Subject) and subject.spec is None:
            self.name, self.contract = subject.name, subject.contract
            require_source(subject, self.plan)
            for name in self._expect(progress):
                self._take(run_checks(subject, None, [name], self._plan_for(name)))
                progress.step(f"{self.name}: {name}")
                if fail_fast and self.is_decided:
                    return
            return
        spec = subject if isinstance(subject, str) else subject.spec
        assert spec is not None
        wanted = self._wanted if isinstance(subject, str) else subject.contract
        self.name = self.spec = spec
        names: Sequence[str] = ()
        try:
            with self._process(wanted, self.plan) as process:
                assert isinstance(process.contract, Contract)
                self.name, self.contract = process.name, process.contract
                names = self._expect(progress)
                if fail_fast or not self.contract.is_sampler:
                    self._examine(names, process, progress, fail_fast)
                else:
                    self._examine_by_two(names, process, progress)
        except ContractBroken as failure:
            self.findings.append(broken("load", failure.reason))

    @contextmanager
    def _process(self, contract: Contract | str | None, plan: Plan) -> Iterator[SubjectProcess]:
        process = SubjectProcess(self.spec, contract, plan)
        try:
            with process:
                yield process
        finally:
            self.printed += process.printed

    def _plan_for(self, check: str) -> Plan:
        return plan_for(check, self.plan, self.findings)

    @property
    def visible(self) -> float:
        """The total variation that was to be seen by sampling."""
        return after_proof(self.plan).visible if is_proven(self.findings) else self.plan.visible

    def _examine_by_two(
        self, names: Sequence[str], process: SubjectProcess, progress: _Progress
    ) -> None:
        """Run checks in two processes; which of them runs what is settled beforehand."""
        oracle = [name for name in names if name in ORACLE]
        others = [name for name in names if name not in ORACLE]
        second = SubjectProcess(self.spec, self.contract, self.plan)
        try:
            with side_by_side(second.stop) as pool:
                pool.submit(second.__enter__)
                for checks in (oracle, others):
                    here, aside = split(checks)
                    found = [
                        pool.submit(second.run, [name], plan=self._plan_for(name)) for name in aside
                    ]
                    self._examine(here, process, progress, fail_fast=False)
                    for name, future in zip(aside, found, strict=True):
                        self._take(future.result())
                        progress.step(f"{self.name}: {name}")
        finally:
            second.__exit__()
            self.printed += second.printed

    def _examine(
        self,
        names: Sequence[str],
        process: SubjectProcess,
        progress: _Progress,
        fail_fast: bool,
    ) -> None:
        for name in names:
            plan = self._plan_for(name)
            progress.begin(f"{self.name}: {name}", plan.timeout)
            self._take(process.run([name], plan=plan, fail_fast=fail_fast))
            progress.step(f"{self.name}: {name}")
            if fail_fast and self.is_decided:
                return

    def _expect(self, progress: _Progress) -> Sequence[str]:
        names = [name for name in checks_for(self.contract) if name not in self.leave_out]
        progress.expect(len(names))
        return names

    def _take(self, findings: list[Finding]) -> None:
        for finding in findings:
            if finding.check == "scorecard" and "row" in finding.case:
                row = ScoreRow.from_finding(finding)
                self.scorecard.append(ScorecardRow(row.name, row.result.value, row.message))
            elif finding.check == "scorecard" and "row_seconds" in finding.case:
                self.row_seconds = finding.case["row_seconds"]
            elif self.label:
                self.findings.append(replace(finding, message=f"{self.label}: {finding.message}"))
            else:
                self.findings.append(finding)


def _own_trials(plan: Plan) -> list[_Trial]:
    """Every installed backend of our own verifier."""
    from draftproof import available_backends

    return [_Trial(f"own:{name}", Contract.RAGGED, plan, name) for name in available_backends()]


def conclude(
    subject: Subject,
    findings: Sequence[Finding],
    matrix: Matrix,
    plan: Plan,
    seconds: float,
    scorecard: Sequence[ScorecardRow] = (),
) -> Verdict:
    """Conclude from findings that were made elsewhere; see `draftproof.proof.shards`."""
    trial = _Trial(subject, subject.contract, plan)
    trial.name, trial.spec, trial.contract = subject.name, subject.spec or "", subject.contract
    trial.findings, trial.scorecard = list(findings), list(scorecard)
    return _conclude([trial], matrix, plan, seconds, own=False)


def _conclude(
    trials: Sequence[_Trial], matrix: Matrix, plan: Plan, seconds: float, *, own: bool
) -> Verdict:
    findings = tuple(finding for trial in trials for finding in trial.findings)
    first = trials[0]
    outcome, reason = _outcome(findings, matrix, first.contract)
    decisive = _smallest(findings, outcome)
    guilty = next((t for t in trials if decisive in t.findings), first)
    reproducer: Reproducer | None = None
    if decisive is not None and guilty.spec:
        reproducer = find_reproducer(
            guilty.spec, guilty.contract, plan.profile, plan.seed, decisive
        )
    bounds = [_bound(trial.findings) for trial in trials]
    return Verdict(
        subject="draftproof.verify" if own else first.name,
        contract=first.contract.value,
        profile=plan.profile,
        seed=plan.seed,
        outcome=outcome,
        reason=reason,
        backends=tuple(trial.label for trial in trials if trial.label),
        version=installed_version(),
        findings=findings,
        total_variation_bound=None if None in bounds else max(b for b in bounds if b is not None),
        power=_power(findings, matrix, _visible(trials)),
        false_alarm_budget=_budget(first.contract, plan),
        scorecard=tuple(first.scorecard),
        nearest_fault=nearest_fault(findings) if outcome is Conclusion.REJECTED else None,
        reproducer=reproducer,
        not_covered=_not_covered(findings, plan, first.contract),
        numerical_grade=numerical_grade(findings),
        efficiency={
            f"{f.world}, g = {f.num_draft}": f.emitted - 1
            for f in findings
            if f.check in EXACT and f.emitted is not None and f.num_draft == f.max_draft > 0
        },
        seconds=seconds,
        row_seconds=first.row_seconds,
        captured_output="".join(trial.printed for trial in trials)[-TAIL:],
    )


def _visible(trials: Sequence[_Trial]) -> float:
    """The total variation that the sampled laws were to show."""
    coarsest = max(trials, key=lambda trial: trial.visible)
    if coarsest.contract.is_decoder:
        return visible_by_decoders(replace(coarsest.plan, visible=coarsest.visible))
    if coarsest.contract.is_tree:
        return max(TREES_VISIBLE, coarsest.visible)
    return coarsest.visible


def _budget(contract: Contract, plan: Plan) -> Mapping[str, float]:
    """Which check may spend what of the probability of a false alarm."""
    if contract.is_tree:
        return {"tree-joint": plan.false_alarm}
    if contract is Contract.LOGITS:
        return budget.table(plan.false_alarm, budget.LOGITS_SHARES)
    if contract.is_decoder:
        return budget.table(plan.false_alarm, budget.DECODER_SHARES)
    return budget.table(plan.false_alarm) if contract.is_sampler else {}


def _outcome(
    findings: Sequence[Finding], matrix: Matrix, contract: Contract
) -> tuple[Conclusion, str]:
    """Lossy outranks broken; what is neither must have shown its power."""
    by_outcome = {outcome: [f for f in findings if f.outcome is outcome] for outcome in Outcome}
    if by_outcome[Outcome.LOSSY]:
        worst = by_outcome[Outcome.LOSSY][0]
        return Conclusion.REJECTED, f"{worst.check}: {worst.message}"
    if by_outcome[Outcome.BROKEN]:
        worst = by_outcome[Outcome.BROKEN][0]
        return Conclusion.BROKEN, f"{worst.check}: {worst.message}"
    if contract in (Contract.GREEDY, Contract.PRACTICE):
        passed = len(by_outcome[Outcome.PASSED])
        return Conclusion.NOT_REJECTED, f"{passed} findings, none against it"
    if matrix.survivors:
        return Conclusion.INCONCLUSIVE, f"no power: not rejected either: {matrix.survivors[0]}"
    if matrix.casualties:
        return (
            Conclusion.INCONCLUSIVE,
            f"the judge rejects a right verifier, {matrix.casualties[0]}",
        )
    exact = [f for f in findings if f.check in EXACT]
    exactly = bool(exact) and all(f.outcome is Outcome.PASSED for f in exact)
    unfinished = by_outcome[Outcome.INCONCLUSIVE]
    if unfinished and not exactly:
        return Conclusion.INCONCLUSIVE, f"{unfinished[0].check}: {unfinished[0].message}"
    evidence = "its exact law is the target's" if exactly else "no sampled law is off"
    if not _worlds(findings):  # a decoder with models of its own
        return Conclusion.NOT_REJECTED, f"{findings[-1].check}: {findings[-1].message}"
    killed = f"{matrix.killed} of {matrix.total} controls rejected"
    return Conclusion.NOT_REJECTED, f"{evidence} in {_worlds(findings)} worlds; {killed}"


def _worlds(findings: Sequence[Finding]) -> int:
    told = (f for f in findings if f.outcome is not Outcome.NOT_DRIVABLE)
    return len({f.world for f in told if f.check in EXACT + SAMPLED and f.world})


def _smallest(findings: Sequence[Finding], outcome: Conclusion) -> Finding | None:
    """The finding to show again: the shortest text, exact before sampled."""
    wanted = {Conclusion.REJECTED: Outcome.LOSSY, Conclusion.BROKEN: Outcome.BROKEN}.get(outcome)
    found = [f for f in findings if f.outcome is wanted]
    grades = list(Grade)

    def size(f: Finding) -> tuple[int, bool, int, int]:
        return grades.index(f.grade), f.world in WIDE_WORLDS, f.num_draft, f.max_draft

    return min(found, key=size, default=None)


def _bound(findings: Sequence[Finding]) -> float | None:
    """The largest total variation that the strongest check which reached every world allows."""
    for check in (*EXACT, "bisection", *SAMPLED):
        laws = [f for f in findings if f.check == check and f.outcome is not Outcome.NOTE]
        if laws and all(f.outcome is Outcome.PASSED and f.error is not None for f in laws):
            exact = laws[0].grade is Grade.EXACT  # a sampled distance is noise within its bound
            return max(max(f.error or 0.0, (f.total_variation or 0.0) * exact) for f in laws)
    return None


def _really_visible(findings: Sequence[Finding], wanted: float) -> float:
    """The total variation that was seen to: more than was wanted where the time ran out."""
    seen = (f.case["visible"] for f in findings if f.check in SAMPLED and "visible" in f.case)
    return max([wanted, *map(float, seen)])


def _power(findings: Sequence[Finding], matrix: Matrix, visible: float) -> Power:
    sampled = [f for f in findings if f.check in SAMPLED and f.error is not None]
    hardest = max(sampled, key=lambda f: f.error or 0.0, default=None)
    return Power(
        controls_killed=matrix.killed,
        controls_total=matrix.total,
        smallest_visible_total_variation=_really_visible(findings, visible) if sampled else None,
        hardest_world=hardest.world if hardest else "",
        survivors=matrix.survivors,
        controls=matrix.controls,
    )


def _not_covered(findings: Sequence[Finding], plan: Plan, contract: Contract) -> tuple[str, ...]:
    if contract is Contract.PRACTICE:
        return ("The practice problem emits an argmax: by its own rule it is not lossless.",)
    if contract is Contract.GREEDY:
        return ("Temperatures above 0; vocabularies beyond those of the cases.",)
    if contract.is_decoder:
        return not_covered(findings, plan)
    if contract.is_tree:
        return (
            "Laws were examined for V up to 4, up to 3 siblings and 2 levels, in float64, one tree "
            "at a time; larger trees and vocabularies, other dtypes and batches were not.",
            "Whether siblings were really drawn as the subject asks, no verifier can show.",
        )
    if contract is Contract.LOGITS:
        from draftproof.proof.logits.coverage import not_covered_from_logits

        return not_covered_from_logits(findings, _really_visible(findings, plan.visible))
    longest = max((g for g, _ in plan.sizes), default=0)
    padded = max((K for _, K in plan.sizes), default=0)
    vocabulary = max(WORLDS[name].vocabulary for name in plan.worlds)
    sentences = [
        f"Laws were examined for V up to {vocabulary}, drafts of up to {longest} tokens padded to "
        f"{padded}, in float64, rows alone, in pairs and in batches; longer drafts were not.",
        *_wide_coverage(findings),
        "Whether a caller passes the laws that its drafts were sampled from, no verifier can show.",
    ]
    if any(f.outcome is Outcome.NOT_DRIVABLE and f.check == "oracle" for f in findings):
        replayed = [f for f in findings if f.check == "bisection"]
        if replayed and all(f.outcome in (Outcome.PASSED, Outcome.NOTE) for f in replayed):
            sentences.append(f"A law by a subject's own thresholds takes it that {ASSUMPTION}.")
        else:
            sentences.append(
                "Its uniforms could not be driven: its law was sampled. A total variation above "
                f"{_really_visible(findings, plan.visible):.2g} would have been seen with "
                f"probability {plan.power:g}; "
                "a smaller bias is not excluded."
            )
    return tuple(sentences)


def _wide_coverage(findings: Sequence[Finding]) -> Iterator[str]:
    """What was looked at beyond the vocabularies whose laws can be written down."""
    wide = [WIDE_WORLDS[f.world].vocabulary for f in findings if f.world in WIDE_WORLDS]
    if wide:
        yield (
            f"At larger vocabularies, up to {max(wide):,}, single draws and witnesses of short "
            "texts were examined, and no whole law."
        )
    grade_caveat = caveat(findings)
    if grade_caveat:
        yield grade_caveat


def installed_version() -> str:
    """Of draftproof; empty for a source tree that nobody has installed."""
    try:
        return version("draftproof")
    except PackageNotFoundError:
        return ""
