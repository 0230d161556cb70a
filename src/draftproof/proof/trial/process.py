"""Judge a subject in a child process: whatever it does to itself ends in a finding.

A subject may hang, crash, exit, fork, print, close files, change folders or ask for all memory.
One child runs check after check while it lives; after its death the next check gets a new one.
This keeps accidents away from the judge. It is no defence against a subject that means harm.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import mmap
import os
import re
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.subjects.emission import ContractBroken
from draftproof.proof.subjects.raised import places
from draftproof.proof.subjects.subject import Subject, SubjectNotFound
from draftproof.proof.trial.child import CHANNEL_LOST, HEART
from draftproof.proof.trial.examination import CHECKS, Check, broken, examine, find_checks
from draftproof.proof.trial.plan import Plan
from draftproof.proof.verdicts.finding import Finding, Grade, Outcome

__all__ = ["TAIL", "SubjectProcess", "run_checks"]

CALL_SHARE = 0.5
"""A call that takes this share of a check's time hangs; a check all of whose calls return does not,
however long it takes."""
MOST_HANGS = 2
START_TIMEOUT = 120.0
"""Seconds in which a child must have imported what is ours, however busy the machine is."""
TAIL = 4_096
"""Bytes that are kept of what a subject prints."""
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_DOORS = (Path(__file__).parent, Path(__file__).parents[1] / "subjects")
"""Where our own frames end and the subject's begin."""
_START = (
    "import runpy, sys; runpy.run_path({guardian!r})['guard']({life}); sys.path[:] = {path!r}; "
    "from draftproof.proof.trial.child import main; main({channel}, {heart})"
)
_GUARDIAN = str(Path(__file__).with_name("guardian.py"))

OnFinding = Callable[[Finding], object]


class SubjectProcess:
    """A subject in a child process, as a context manager.

    Args:
        spec: see `draftproof.proof.subjects.subject.load`.
        contract: its contract; guessed by the child if left out.
        plan: what the checks are given; ``plan.timeout`` bounds the loading and every check.
        registry: ``module:attr`` of a mapping from names to checks.

    Attributes:
        name: what a verdict calls the subject.
        contract: the subject's contract.
        printed: the end of what it has printed, in printable letters; complete after leaving.

    Entering raises ValueError if the subject cannot be found, imported or called as its contract
    says, and ContractBroken if loading it hangs or ends the process. Leaving ends the child and
    all that it began, and so does the end of this process, however it comes: see
    `draftproof.proof.trial.guardian`.
    """

    def __init__(
        self, spec: str, contract: Contract | str | None, plan: Plan, registry: str = CHECKS
    ) -> None:
        self._order: dict[str, Any] = {
            "spec": spec,
            "contract": contract,
            "plan": dataclasses.asdict(plan),
            "registry": registry,
        }
        self._plan, self._timeout = plan, plan.timeout
        self._child: _Child | None = None
        self._hangs = 0
        self._stopped = False
        self.printed = ""
        self.name = spec
        self.contract = contract

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def run(
        self,
        checks: Sequence[str],
        on_finding: OnFinding | None = None,
        *,
        plan: Plan | None = None,
        fail_fast: bool = False,
    ) -> list[Finding]:
        """Run checks by their names, in order.

        Args:
            checks: names in the registry.
            on_finding: told each finding as it comes.
            plan: what they are given, of the same time-out; the first plan if left out.
            fail_fast: stop after the first finding that is lossy or broken.
        """
        examine = functools.partial(self._examine, plan=plan or self._plan)
        return _collect(checks, examine, on_finding, fail_fast)

    def stop(self) -> None:
        """End the child at once, whatever another thread has it do."""
        self._stopped = True
        if self._child is not None:
            self._child.kill()

    def _examine(self, check: str, plan: Plan) -> Iterator[Finding]:
        if self._stopped:
            return
        if self._hangs >= MOST_HANGS:
            message = f"not run: the subject hung in {self._hangs} checks before"
            yield Finding(check, Outcome.INCONCLUSIVE, Grade.BEHAVIOUR, message)
            return
        finished = False
        try:
            child = self._child or self._open()
            child.send({"check": check, "plan": dataclasses.asdict(plan)})
            while "finding" in (answer := child.receive(self._timeout)):
                yield Finding.from_dict(answer["finding"])
            finished = True
        except _Overdue as overdue:
            self._hangs += overdue.is_hang
            if overdue.is_hang:
                yield broken(check, str(overdue))
            else:
                message = f"{overdue}; no single call took long: {plan.longer}"
                yield Finding(check, Outcome.INCONCLUSIVE, Grade.BEHAVIOUR, message)
        except _Died as death:
            yield broken(check, str(death))
        except ContractBroken as failure:  # it loaded before, and does not any more
            yield broken(check, failure.reason)
        finally:
            if not finished:
                self._close()

    def _open(self) -> _Child:
        self._child = child = _Child()
        if self._stopped:
            child.kill()
        try:
            child.receive(START_TIMEOUT)
            child.send(self._order)
            answer = child.receive(self._timeout)
            if "refused" in answer:
                raise SubjectNotFound(answer["refused"])
            if "broken" in answer:
                raise ContractBroken(f"loading the subject {answer['broken']}")
            self.name = answer["loaded"]["name"]
            self.contract = Contract(answer["loaded"]["contract"])
        except BaseException as error:
            self._close()
            if isinstance(error, _Overdue):
                more = f"if it only loads slowly, {self._plan.longer}"
                raise ContractBroken(f"loading the subject: {error}; {more}") from None
            if isinstance(error, _Died):
                raise ContractBroken(f"loading the subject: {error}") from None
            raise
        return child

    def _close(self) -> None:
        if self._child is not None:
            self._child.end()
            self.printed = (self.printed + self._child.printed)[-TAIL:]
            self._child = None


def run_checks(
    subject: Subject | str,
    contract: Contract | str | None,
    checks: Sequence[str],
    plan: Plan,
    on_finding: OnFinding | None = None,
    *,
    registry: str = CHECKS,
    fail_fast: bool = False,
) -> list[Finding]:
    """Run checks on a subject: in a child process, see `SubjectProcess`, if another can find it.

    A `Subject` without a ``spec`` exists here only and is judged here: what it raises is a finding
    all the same, but if it hangs or crashes so does the judge.

    A subject whose loading hangs or ends the process has one finding, of the check ``load``.

    Raises:
        ValueError: the subject cannot be found, imported or called as its contract says.
    """
    if isinstance(subject, Subject):
        if subject.spec is None:
            known = find_checks(registry)
            here = functools.partial(_examine_here, subject, known, plan)
            return _collect(checks, here, on_finding, fail_fast)
        spec, contract = subject.spec, subject.contract
    else:
        spec = subject
    try:
        with SubjectProcess(spec, contract, plan, registry) as process:
            return process.run(checks, on_finding, fail_fast=fail_fast)
    except ContractBroken as failure:
        finding = broken("load", failure.reason)
        if on_finding is not None:
            on_finding(finding)
        return [finding]


def _examine_here(
    subject: Subject, known: Mapping[str, Check], plan: Plan, check: str
) -> Iterator[Finding]:
    return examine(check, known[check], subject, plan)


def _collect(
    checks: Sequence[str],
    examine: Callable[[str], Iterator[Finding]],
    on_finding: OnFinding | None,
    fail_fast: bool,
) -> list[Finding]:
    findings = []
    for check in checks:
        for finding in examine(check):
            findings.append(finding)
            if on_finding is not None:
                on_finding(finding)
            if fail_fast and finding.outcome in (Outcome.LOSSY, Outcome.BROKEN):
                return findings
    return findings


class _Died(Exception):  # noqa: N818
    """The child ended before it was done; the message says how."""


class _Overdue(Exception):  # noqa: N818
    """The child took too long; ``is_hang`` if one single call did."""

    def __init__(self, message: str, is_hang: bool) -> None:
        super().__init__(message)
        self.is_hang = is_hang


class _Child:
    """One child process, the socket to it, and the tail of what it prints."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        heart = tempfile.TemporaryFile()  # noqa: SIM115 - closed below
        heart.write(HEART.pack(0.0))
        heart.flush()
        self._heart = mmap.mmap(heart.fileno(), HEART.size)
        life, self._life = os.pipe()
        fds = {"channel": theirs.fileno(), "heart": heart.fileno(), "life": life}
        with theirs, heart:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    _START.format(guardian=_GUARDIAN, path=sys.path, **fds),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=tuple(fds.values()),
                start_new_session=True,  # an interrupt from the terminal is for us alone
            )
        os.close(life)
        self.pid = self._process.pid
        assert self._process.stdout is not None
        self._output = self._process.stdout
        self._lock = threading.Lock()
        self._received = self._printed = b""
        self._began = time.monotonic()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._socket, selectors.EVENT_READ)
        self._selector.register(self._output, selectors.EVENT_READ)

    def send(self, message: dict[str, Any]) -> None:
        """Send a message; from now on the time for the answers runs."""
        self._began = time.monotonic()
        with contextlib.suppress(OSError):  # of a child that has just died: seen by `receive`
            self._socket.sendall(json.dumps(message).encode() + b"\n")

    def receive(self, timeout: float) -> dict[str, Any]:
        """Wait for an answer to the last message.

        Args:
            timeout: seconds since that message.

        Raises:
            _Died, _Overdue: the child ended, or is not done in time.
        """
        while b"\n" not in self._received:
            self._look_at_the_clock(timeout)
            self._read(wait=min(timeout / 10, 0.5))
        line, _, self._received = self._received.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        self.pid = answer.get("pid", self.pid)
        return answer

    def end(self) -> None:
        """End the child and all that it began, whatever state they are in."""
        self.kill()
        self._process.wait()
        self._drain()
        self._selector.close()
        self._socket.close()
        self._output.close()
        self._heart.close()

    @property
    def printed(self) -> str:
        """The end of what it has printed, without colours and what else does not print."""
        text = _ESCAPES.sub("", self._printed.decode(errors="replace"))
        return "".join(c if c.isprintable() or c in "\n\t" else "?" for c in text)

    def kill(self) -> None:
        """Have the guardian kill the child."""
        with self._lock:
            life, self._life = self._life, -1
        if life >= 0:
            os.close(life)

    def _read(self, wait: float) -> None:
        for key, _ in self._selector.select(wait):
            if key.fileobj is self._output:
                printed = os.read(self._output.fileno(), 65_536)
                self._printed = (self._printed + printed)[-TAIL:]
                if not printed:
                    self._selector.unregister(self._output)
                continue
            try:
                received = self._socket.recv(65_536)
            except ConnectionResetError:
                received = b""
            if not received:
                raise _Died(self._describe_death())
            self._received += received

    def _look_at_the_clock(self, timeout: float) -> None:
        now = time.monotonic()
        (call_began,) = HEART.unpack_from(self._heart)
        if call_began and now - call_began > CALL_SHARE * timeout:
            place = self._ask_where()
            raise _Overdue(
                f"hangs: one call has not returned after {now - call_began:.1f} s, the "
                f"{CALL_SHARE:.0%} of --timeout that it may take{place}",
                True,
            )
        if now - self._began > timeout:
            place = self._ask_where()
            raise _Overdue(f"not finished after {timeout:g} s{place}", False)

    def _describe_death(self) -> str:
        try:
            code = self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            return "closed file descriptors that are not its own"
        self._drain()
        if code == CHANNEL_LOST:
            return "closed file descriptors that are not its own"
        if code >= 0:
            return f"ended the process with exit code {code}{self._last_words()}"
        name = signal.Signals(-code).name
        meaning = {"SIGSEGV": " (segmentation fault)", "SIGKILL": " (out of memory?)"}.get(name, "")
        return f"died of {name}{meaning}{self._frames() or self._last_words()}"

    def _ask_where(self) -> str:
        """Let the child's fault handler print where its main thread is."""
        before, self._printed = self._printed, b""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGUSR1)
        time.sleep(0.1)
        self._drain()
        frames, self._printed = self._frames(), before
        return frames

    def _drain(self) -> None:
        os.set_blocking(self._output.fileno(), False)
        with contextlib.suppress(BlockingIOError):
            for _ in range(64):  # it may print without end
                self._printed = (self._printed + os.read(self._output.fileno(), 65_536))[-TAIL:]
        os.set_blocking(self._output.fileno(), True)

    def _frames(self) -> str:
        """Where the subject was, innermost first, by the fault handler's print."""
        text = self._printed.decode(errors="replace").rpartition("(most recent call first):")[2]
        frames = [(file, int(line)) for file, line in re.findall(r'File "(.*?)", line (\d+)', text)]
        judge = [i for i, (file, _) in enumerate(frames) if Path(file).parent in _DOORS]
        return places(frames[: judge[0]] if judge else frames)

    def _last_words(self) -> str:
        words = self._printed.decode(errors="replace").strip().splitlines()
        return f"; it last printed: {words[-1][:200]!r}" if words else ""
