"""Hostile subjects end in findings. They all run once, a few at a time; each test looks at one."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from draftproof.proof.mutants import get
from draftproof.proof.subjects.emission import ContractBroken
from draftproof.proof.subjects.subject import Contract, Subject, as_subject
from draftproof.proof.trial import guardian
from draftproof.proof.trial.plan import make_plan
from draftproof.proof.trial.process import TAIL, SubjectProcess, run_checks
from draftproof.proof.verdicts.finding import Finding, Outcome

correct = get("token").build()

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs process groups")

FILE = Path(__file__).parents[1] / "subjects" / "hostile.py"
TOYS = "tests.proof.toy_checks:CHECKS"
PLAN = replace(make_plan("quick", 0), timeout=6.0)
RIGHT = "[[[1, -1, -1]], [1]]"
CLOSED = "closed file descriptors that are not its own"

ENDS = {
    "segfaults": "died of SIGSEGV (segmentation fault) (at hostile.py line ",
    "aborts": "died of SIGABRT (at hostile.py line ",
    "kills_itself": "died of SIGKILL (out of memory?)",
    "exits": "raised SystemExit: 0 (at hostile.py line ",
    "exits_at_once": "ended the process with exit code 0; it last printed: 'good bye'",
    "raises": "raised KeyError: 'missing' (at hostile.py line ",
    "interrupts": "raised KeyboardInterrupt (at hostile.py line ",
    "raises_oddly": "raised Odd: odd (at hostile.py line ",
    "stops_iteration": "raised StopIteration (at hostile.py line ",
    "recurses": "raised RecursionError: maximum recursion depth exceeded",
    "eats_memory": "raised MemoryError: Unable to allocate",
    "asks": "raised EOFError: EOF when reading a line (at hostile.py line ",
    "closes_files": CLOSED,
    "alarms": "raised SystemExit: 5 (at hostile.py line ",
    "hoards": "raised MemoryError: Unable to allocate",
    "replaces_numpys": "replaced numpy.random.default_rng for the whole program",
    "stops_the_clock": "replaced time.monotonic for the whole program",
}
"""What ends each of these subjects, in every check."""
LIVES = [
    "right",
    "prints",
    "closes_output",
    "forks",
    "forks_and_raises",
    "forks_and_exits",
    "forks_and_stays",
    "leaves_threads",
    "hangs_at_exit",
    "loses_output",
    "floods",
    "moves",
    "hides",
]
HANGS = ["hangs", "sleeps", "stops", "moves_and_hangs"]


def run(name, checks=("small", "many", "small"), timeout=6.0, **options):
    plan = replace(PLAN, timeout=timeout)
    return run_checks(f"{FILE}:{name}", None, checks, plan, registry=TOYS, **options)


@pytest.fixture(scope="module")
def findings():
    with ThreadPoolExecutor(4) as pool:
        runs = {name: pool.submit(run, name) for name in [*LIVES, "raises_at_times"]}
        runs |= {name: pool.submit(run, name, ["small"]) for name in ENDS}
        runs |= {name: pool.submit(run, name, ["small"], timeout=3.0) for name in HANGS}
        return {name: future.result() for name, future in runs.items()}


@pytest.mark.parametrize("name", ENDS)
def test_an_end_is_a_finding_of_each_check(findings, name):
    (found,) = findings[name]
    assert (found.check, found.outcome) == ("small", Outcome.BROKEN)
    assert found.message.startswith(ENDS[name])
    assert "Traceback" not in found.message
    assert "child.py" not in found.message


@pytest.mark.parametrize("name", ["segfaults", "raises"])
def test_the_next_check_goes_on(name):
    found = run(name)
    assert [f.check for f in found] == ["small", "many", "small"]
    assert all(f.message.startswith(ENDS[name]) for f in found)


@pytest.mark.parametrize("name", LIVES)
def test_odd_behaviour_leaves_the_findings_alone(findings, name):
    found = findings[name]
    assert {f.outcome for f in found} == {Outcome.PASSED}
    assert [f.check for f in found] == ["small", *["many"] * 4, "small"]
    assert found[0].message == found[-1].message == RIGHT
    assert found[1].size == 9
    assert found[0].cells[0].tokens == (0, 1)
    assert found[0].cells[0].observed != found[0].cells[0].observed  # NaN came through


@pytest.mark.parametrize("name", HANGS)
def test_a_hang_is_a_finding(findings, name):
    (found,) = findings[name]
    assert found.outcome is Outcome.BROKEN
    assert found.message.startswith("hangs: one call has not returned after ")
    if name in ("hangs", "sleeps"):
        assert "(at hostile.py line " in found.message


def test_the_second_hang_is_the_last():
    found = run("sleeps", timeout=2.0)
    assert [f.outcome for f in found] == [Outcome.BROKEN] * 2 + [Outcome.INCONCLUSIVE]
    assert found[2].message == "not run: the subject hung in 2 checks before"


def test_what_raises_at_times_is_found_by_the_check_that_meets_it(findings):
    found = findings["raises_at_times"]
    assert found[0].outcome is found[-1].outcome is Outcome.PASSED
    assert [f.message for f in found[1:-1]][:3] == ["10 calls", "20 calls", "30 calls"]
    assert found[-2].outcome is Outcome.BROKEN
    assert found[-2].message.startswith("raised RuntimeError: by chance (at hostile.py line ")


def test_a_slow_check_is_no_hang():
    (found,) = run("right", ["endless"], timeout=2.0)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert found.message.startswith("not finished after 2 s")
    assert found.message.endswith("no single call took long: raise --timeout, 2 s now")


def test_a_fault_of_a_check_is_not_the_subjects():
    faulty, undrivable = run("right", ["faulty", "undrivable"])
    assert faulty.outcome is Outcome.INCONCLUSIVE
    assert "a fault of draftproof and not of the subject: ZeroDivisionError: ours" in faulty.message
    assert undrivable.outcome is Outcome.NOT_DRIVABLE


@pytest.mark.parametrize("name", ["leaves_a_process", "leaves_a_daemon"])
def test_no_process_outlives_the_run(monkeypatch, name):
    mark = f"mark-{os.getpid()}-{time.monotonic_ns()}"
    monkeypatch.setenv("MARK", mark)
    assert {f.outcome for f in run(name, ["small"])} == {Outcome.PASSED}
    time.sleep(0.1)
    assert mark not in listed()


def listed():
    """The command lines of all processes."""
    found = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return found.stdout


def test_the_eldest_of_too_many_processes_have_to_go():
    spared = subprocess.Popen(["sleep", "1000"])
    room = guardian.MOST_PROCESSES - len(guardian._begun(spared.pid))  # other tests left some
    sleepers = [subprocess.Popen(["sleep", "1000"]) for _ in range(room + 2)]
    try:
        beyond = guardian._beyond(spared.pid)
        assert len(beyond) == 2
        assert spared.pid not in beyond
    finally:
        for sleeper in (*sleepers, spared):
            sleeper.kill()
            sleeper.wait()


def test_findings_are_told_as_they_come():
    told: list[Finding] = []
    found = run("right", on_finding=told.append)
    assert told == found


def test_fail_fast_stops_at_the_first_failure():
    assert len(run("raises", fail_fast=True)) == 1
    assert len(run("raises", ["faulty", "small", "small"], fail_fast=True)) == 2


def test_the_process_tells_what_it_loaded():
    with SubjectProcess(f"{FILE}:right", None, PLAN, TOYS) as process:
        assert (process.name, process.contract) == (f"{FILE}:right", Contract.RAGGED)
        assert process.run(["small"])[0].outcome is Outcome.PASSED
        assert process.run(["small"])[0].message == RIGHT


def test_our_own_subjects_and_mutants_run_too():
    assert run_checks("own:numpy", None, ["small"], PLAN, registry=TOYS)[0].message == RIGHT
    (found,) = run_checks("mutant:accept always", None, ["small"], PLAN, registry=TOYS)
    assert found.message == "[[[0, 0, 0]], [3]]"


@pytest.mark.parametrize(
    ("spec", "contract", "message"),
    [
        (f"{FILE}:rihgt", None, "the closest callable is 'right'"),
        ("no/such/file.py:f", None, "there is no file"),
        (f"{FILE}:right", "single", "take 4 positional arguments"),
        (f"{FILE}:Odd", None, "contract: found Odd"),
        (f"{FILE.parent}/unimportable.py:f", None, "JSONDecodeError"),
        ("mutant:nonesuch", None, "the closest names are"),
    ],
)
def test_wrong_usage_is_a_value_error(spec, contract, message):
    with pytest.raises(ValueError, match=message):
        run_checks(spec, contract, ["small"], PLAN, registry=TOYS)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import sys; sys.exit(1)", "loading the subject raised SystemExit: 1 (at mine.py line 1)"),
        ("import os; os._exit(4)", "loading the subject: ended the process with exit code 4"),
        ("import ctypes; ctypes.string_at(0)", "loading the subject: died of SIGSEGV"),
        ("while True: pass", "loading the subject: not finished after 1 s (at mine.py line 1)"),
    ],
)
def test_what_ends_or_hangs_while_it_loads(tmp_path, source, message):
    (tmp_path / "mine.py").write_text(source)
    plan = replace(PLAN, timeout=1.0)
    with (
        pytest.raises(ContractBroken) as failure,
        SubjectProcess(f"{tmp_path}/mine.py:f", None, plan, TOYS),
    ):
        pass
    assert failure.value.reason.startswith(message)


def test_loading_that_fails_is_one_finding(tmp_path):
    (tmp_path / "mine.py").write_text("import os; os._exit(4)")
    (found,) = run_checks(f"{tmp_path}/mine.py:f", None, ["small", "many"], PLAN, registry=TOYS)
    assert (found.check, found.outcome) == ("load", Outcome.BROKEN)


def test_a_subject_of_this_process_alone_is_judged_here():
    here = Subject("mine", Contract.RAGGED, lambda *a: correct(*a))
    assert run_checks(here, None, ["small"], PLAN, registry=TOYS)[0].message == RIGHT

    def exits(draft, q, p, num_draft, rng):
        raise SystemExit(3)

    (found,) = run_checks(as_subject(exits), None, ["small"], PLAN, registry=TOYS)
    assert found.outcome is Outcome.BROKEN
    assert found.message.startswith("raised SystemExit: 3 (at test_process.py line ")


def test_an_interrupt_of_the_user_is_the_users():
    def interrupted(draft, q, p, num_draft, rng):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_checks(as_subject(interrupted), None, ["small"], PLAN, registry=TOYS)


SCRIPT = f"""
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
from draftproof.proof.trial.plan import make_plan
from draftproof.proof.trial.process import SubjectProcess
spec = {str(FILE)!r} + ":sleeps_in_company"
with SubjectProcess(spec, None, make_plan("quick", 0), {TOYS!r}) as process:
    print(process._child.pid, flush=True)
    process.run(["small"])
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_child_ends_with_its_parent(number, monkeypatch):
    mark = f"mark-{os.getpid()}-{time.monotonic_ns()}"
    monkeypatch.setenv("MARK", mark)
    root = str(Path(__file__).parents[3])
    parent = subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": root},
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    time.sleep(0.3)
    parent.send_signal(number)
    _, printed = parent.communicate(timeout=60)
    if number == signal.SIGINT:
        assert printed.rstrip().endswith("KeyboardInterrupt")
    deadline = time.monotonic() + 10
    while (_is_alive(child) or mark in listed()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _is_alive(child)
    assert mark not in listed()


def _is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return (
        not Path(f"/proc/{pid}/stat").is_file()
        or " Z " not in Path(f"/proc/{pid}/stat").read_text()
    )


def test_the_end_of_what_a_subject_prints_is_kept():
    with SubjectProcess(f"{FILE}:prints", None, PLAN, TOYS) as process:
        process.run(["small"])
    assert len(process.printed) == TAIL
    assert process.printed.endswith("\ufffd\ufffd\n")


def test_colours_and_bytes_that_are_no_text_are_left_out(tmp_path):
    file = tmp_path / "colourful.py"
    file.write_text(
        "import os\n"
        "os.write(1, b'\\x1b[31mred\\x1b[0m \\xff\\x00\\n')\n"
        "def verify(draft, q, p, num_draft, rng): os._exit(3)\n"
    )
    with SubjectProcess(f"{file}:verify", None, PLAN, TOYS) as process:
        process.run(["small"])
    assert process.printed == "red \ufffd?\n"
