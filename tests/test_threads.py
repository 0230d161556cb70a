"""Living inside an engine: many threads, any number of them, forks, signals, quotas."""

# mypy: no-check-untyped-defs
from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from draftproof import BadRowError, available_backends, verify
from draftproof.kernels import threads
from draftproof.kernels.threads import available_threads

BACKENDS = available_backends()
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
needs_affinity = pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="this system has no CPU affinity"
)


@pytest.mark.parametrize("num_threads", [1, 2, 3, 8, 64, None])
@pytest.mark.parametrize("B", [0, 1, 2, 7, 100])
def test_the_number_of_threads_changes_no_token(backend, case_of, B, num_threads):
    case = case_of(B, 4, 1_025)
    expected = verify(*case, np.random.default_rng(0), backend="reference")
    result = verify(*case, np.random.default_rng(0), backend=backend, num_threads=num_threads)
    np.testing.assert_array_equal(result.token_ids, expected.token_ids)
    np.testing.assert_array_equal(result.num_emitted, expected.num_emitted)


def test_many_threads_call_at_once(backend, case_of):
    """Each thread has a batch of its own; none may see another's scratch or results."""
    cases = [case_of(20, 3, V, seed=V) for V in (5, 130, 1_025, 3_000)] * 4
    expected = [verify(*case, np.random.default_rng(1), backend=backend) for case in cases]
    start = threading.Barrier(len(cases))

    def call(case):
        start.wait(timeout=60)
        return [
            verify(*case, np.random.default_rng(1), backend=backend, num_threads=1 + i % 3)
            for i in range(5)
        ]

    with ThreadPoolExecutor(len(cases)) as pool:
        for results, alone in zip(pool.map(call, cases), expected, strict=True):
            for result in results:
                np.testing.assert_array_equal(result.token_ids, alone.token_ids)


def test_a_bad_row_in_one_thread_leaves_nothing_locked(backend, case_of):
    case, bad = case_of(20, 3, 600), case_of(20, 3, 600)
    bad.p[11] = np.nan
    expected = verify(*case, np.random.default_rng(0), backend=backend).to_lists()

    def call(i):
        if i % 2:
            with pytest.raises(BadRowError, match="row 11"):
                verify(*bad, np.random.default_rng(0), backend=backend, num_threads=2)
            return expected
        return verify(*case, np.random.default_rng(0), backend=backend, num_threads=2).to_lists()

    with ThreadPoolExecutor(6) as pool:
        assert all(lists == expected for lists in pool.map(call, range(30), timeout=60))


def run_python(code, *arguments, **environment):
    """In a fresh interpreter in which warnings are errors; a hang is a failure."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code), *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=90,
        check=True,
    ).stdout


SETUP = """
import os, signal, sys, threading, time, warnings
import numpy as np
from draftproof import verify
from draftproof.kernels.threads import available_threads
backend = sys.argv[1]
B, V = 64, 5_000
law = np.random.default_rng(0).dirichlet(np.ones(V), size=B)
p = np.stack([law, law[::-1]], axis=1)
q = np.roll(p[:, :1], 1, axis=0)
ids = np.arange(B)[:, None]
def call():
    rng = np.random.default_rng(0)
    return verify(ids, q, p, None, rng, backend=backend, num_threads=4).to_lists()
def fork():
    # Python 3.12 warns of forks in a process with threads; surviving one is what is tested here.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()
def child_agrees(expected):
    child = fork()
    if not child:
        signal.alarm(20)
        os._exit(0 if call() == expected and call() == expected else 1)
    return os.waitpid(child, 0)[1] == 0
"""


@needs_fork
@pytest.mark.parametrize("name", BACKENDS)
def test_the_pool_survives_a_fork(name):
    code = """
    expected = call()
    print([child_agrees(expected) for _ in range(3)], call() == expected)
    """
    assert run_python(SETUP + textwrap.dedent(code), name) == "[True, True, True] True\n"


@needs_fork
def test_the_pool_survives_a_fork_in_the_middle_of_a_call():
    code = """
    expected = call()
    stop = threading.Event()
    def work():
        while not stop.is_set():
            assert call() == expected
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads: thread.start()
    agreed = [child_agrees(expected) for _ in range(20)]
    stop.set()
    for thread in threads: thread.join()
    print(all(agreed))
    """
    assert run_python(SETUP + textwrap.dedent(code), BACKENDS[0]) == "True\n"


@pytest.mark.parametrize("name", BACKENDS)
def test_a_signal_leaves_nothing_locked(name):
    code = """
    expected = call()
    class Interrupted(Exception): pass
    def interrupt(*_): raise Interrupted
    signal.signal(signal.SIGALRM, interrupt)
    interrupted = 0
    for i in range(20):
        try:
            signal.setitimer(signal.ITIMER_REAL, 1e-4 + i * 5e-4)
            call()
            while True:  # NumPy may have swallowed an interrupt of its inner calls: send another
                time.sleep(0.02)
                signal.setitimer(signal.ITIMER_REAL, 0.001)
        except Interrupted:
            interrupted += 1
        assert call() == expected
    print(interrupted)
    """
    assert run_python(SETUP + textwrap.dedent(code), name) == "20\n"


@pytest.mark.parametrize("name", BACKENDS[: len(BACKENDS) - 2])
def test_other_threads_of_python_run_during_a_call(name):
    """The interpreter's lock is released while the kernel works."""
    law = np.full(4_000, 1 / 4_000)
    B = 60_000
    p = np.lib.stride_tricks.as_strided(law, (B, 1, 4_000), (0, 0, 8))
    ids, uniforms = np.zeros((B, 0), int), (np.zeros((B, 0)), np.linspace(0, 1, B, False))
    spans, ticks = [], []

    def call():
        begin = time.perf_counter()
        verify(ids, None, p, uniforms=uniforms, backend=name, num_threads=1)
        spans.append((begin, time.perf_counter()))

    worker = threading.Thread(target=call)
    worker.start()
    while worker.is_alive():
        time.sleep(0.001)
        ticks.append(time.perf_counter())
    worker.join()
    begin, end = spans[0]
    middle = (begin + (end - begin) / 4, end - (end - begin) / 4)
    assert sum(middle[0] < tick < middle[1] for tick in ticks) >= 3


# How many threads


@pytest.fixture
def eight_cpus(monkeypatch):
    monkeypatch.setattr(threads, "_affinity", lambda: 8)
    monkeypatch.setattr(threads, "_cgroup_quota", lambda: None)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


@pytest.mark.parametrize(
    ("value", "expected"),
    [("1", 1), ("3", 3), ("2,4", 2), (" 5 ", 5), ("99", 8), ("", 8), ("0", 8), ("-2", 8), ("x", 8)],
)
def test_omp_num_threads_is_a_limit(eight_cpus, monkeypatch, value, expected):
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert available_threads() == expected


@pytest.mark.parametrize(("quota", "expected"), [(None, 8), (3, 3), (20, 8)])
def test_the_quota_of_a_container_is_a_limit(eight_cpus, monkeypatch, quota, expected):
    monkeypatch.setattr(threads, "_cgroup_quota", lambda: quota)
    assert available_threads() == expected


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("cpu.max", "200000 100000\n", 2),
        ("cpu.max", "150000 100000\n", 2),
        ("cpu.max", "10000 100000\n", 1),
        ("cpu.max", "max 100000\n", None),
        ("cpu.max", "", None),
        ("nonesuch", "", None),
    ],
)
def test_a_quota_is_read_from_the_containers_file(tmp_path, file, text, expected):
    (tmp_path / file).write_text(text)
    assert threads._cgroup_quota(tmp_path) == expected


def test_the_first_containers_quota_is_read_as_well(tmp_path):
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("250000\n")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    assert threads._cgroup_quota(tmp_path) == 3
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("-1\n")
    threads._cgroup_quota.cache_clear()
    assert threads._cgroup_quota(tmp_path) is None


@needs_affinity
def test_the_affinity_of_the_process_is_a_limit():
    code = """
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print(available_threads())
    """
    assert run_python(SETUP + textwrap.dedent(code), BACKENDS[0]) == "1\n"


@pytest.mark.parametrize("name", BACKENDS)
def test_a_call_starts_no_more_threads_than_asked(name):
    """One thread asked for: none is started."""
    if not sys.platform.startswith("linux"):
        return
    code = """
    import pathlib
    tasks = lambda: len(list(pathlib.Path("/proc/self/task").iterdir()))
    before = tasks()
    verify(ids, q, p, None, np.random.default_rng(0), backend=backend, num_threads=1)
    print(tasks() - before)
    """
    assert run_python(SETUP + textwrap.dedent(code), name) == "0\n"
