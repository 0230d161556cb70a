"""Subjects that misbehave: the judge must end each of them in a finding."""

import atexit
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np

from draftproof import verify as correct

SLEEP = "import time; time.sleep(1000)"


def right(draft, q, p, num_draft, rng):
    return correct(draft, q, p, num_draft, rng)


def hangs(draft, q, p, num_draft, rng):
    while True:
        pass


def sleeps(draft, q, p, num_draft, rng):
    time.sleep(1_000)


def stops(draft, q, p, num_draft, rng):
    os.kill(os.getpid(), signal.SIGSTOP)


def segfaults(draft, q, p, num_draft, rng):
    ctypes.string_at(0)


def aborts(draft, q, p, num_draft, rng):
    os.abort()


def kills_itself(draft, q, p, num_draft, rng):
    os.kill(os.getpid(), signal.SIGKILL)


def exits(draft, q, p, num_draft, rng):
    sys.exit(0)


def exits_at_once(draft, q, p, num_draft, rng):
    print("good", "bye", flush=True)
    os._exit(0)


def raises(draft, q, p, num_draft, rng):
    raise KeyError("missing")


_calls = 0


def raises_at_times(draft, q, p, num_draft, rng):
    global _calls
    _calls += 1
    if _calls % 37 == 0:
        raise RuntimeError("by chance\nand a second line")
    return correct(draft, q, p, num_draft, rng)


def interrupts(draft, q, p, num_draft, rng):
    raise KeyboardInterrupt


class Odd(BaseException):
    def __str__(self):
        return "odd"


def raises_oddly(draft, q, p, num_draft, rng):
    raise Odd


def stops_iteration(draft, q, p, num_draft, rng):
    raise StopIteration


def recurses(draft, q, p, num_draft, rng):
    return recurses(draft, q, p, num_draft, rng)


def eats_memory(draft, q, p, num_draft, rng):
    return np.ones(1 << 45)


def prints(draft, q, p, num_draft, rng):
    print("x" * 10_000)
    print('{"finding": {"outcome": "passed"}}', file=sys.stderr, flush=True)
    os.write(1, b"\xff\xfe\n" * 1_000)
    return correct(draft, q, p, num_draft, rng)


def asks(draft, q, p, num_draft, rng):
    input("which token? ")


def closes_files(draft, q, p, num_draft, rng):
    os.closerange(0, 256)
    return correct(draft, q, p, num_draft, rng)


def closes_output(draft, q, p, num_draft, rng):
    sys.stdout.close()
    with contextlib.suppress(OSError):
        os.close(1)
    return correct(draft, q, p, num_draft, rng)


def forks(draft, q, p, num_draft, rng):
    os.fork()
    return correct(draft, q, p, num_draft, rng)


def forks_and_raises(draft, q, p, num_draft, rng):
    if os.fork() == 0:
        raise RuntimeError("in the fork")
    return correct(draft, q, p, num_draft, rng)


def forks_and_exits(draft, q, p, num_draft, rng):
    if os.fork() == 0:
        sys.exit(3)
    return correct(draft, q, p, num_draft, rng)


def leaves_a_process(draft, q, p, num_draft, rng):
    subprocess.Popen([sys.executable, "-c", SLEEP, os.environ["MARK"]])
    return correct(draft, q, p, num_draft, rng)


def moves(draft, q, p, num_draft, rng):
    os.chdir("/")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)
    np.seterr(all="raise")
    return correct(draft, q, p, num_draft, rng)


def moves_and_hangs(draft, q, p, num_draft, rng):
    moves(draft, q, p, num_draft, rng)
    time.sleep(1_000)


def alarms(draft, q, p, num_draft, rng):
    signal.signal(signal.SIGALRM, lambda *_: sys.exit(5))
    signal.setitimer(signal.ITIMER_REAL, 1e-4)
    return correct(draft, q, p, num_draft, rng)


def forks_and_stays(draft, q, p, num_draft, rng):
    if os.fork() == 0:
        time.sleep(1_000)
    return correct(draft, q, p, num_draft, rng)


def leaves_a_daemon(draft, q, p, num_draft, rng):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv(sys.executable, [sys.executable, "-c", SLEEP, os.environ["MARK"]])
        os._exit(0)
    return correct(draft, q, p, num_draft, rng)


def sleeps_in_company(draft, q, p, num_draft, rng):
    leaves_a_daemon(draft, q, p, num_draft, rng)
    time.sleep(1_000)


def leaves_threads(draft, q, p, num_draft, rng):
    threading.Thread(target=time.sleep, args=(1_000,)).start()
    return correct(draft, q, p, num_draft, rng)


def hangs_at_exit(draft, q, p, num_draft, rng):
    atexit.register(time.sleep, 1_000)
    return correct(draft, q, p, num_draft, rng)


def loses_output(draft, q, p, num_draft, rng):
    sys.stdout = sys.stderr = None
    return correct(draft, q, p, num_draft, rng)


def floods(draft, q, p, num_draft, rng):
    print("x" * (1 << 17), flush=True)
    return correct(draft, q, p, num_draft, rng)


def hides(draft, q, p, num_draft, rng):
    os.umask(0o777)
    with contextlib.suppress(OSError):
        os.setsid()
    return correct(draft, q, p, num_draft, rng)


_kept: list[object] = []


def hoards(draft, q, p, num_draft, rng):
    while True:
        _kept.append(np.empty(1 << 27))


def replaces_numpys(draft, q, p, num_draft, rng):
    np.random.default_rng = lambda *_: rng
    return correct(draft, q, p, num_draft, rng)


def stops_the_clock(draft, q, p, num_draft, rng):
    time.monotonic = lambda: 0.0
    return correct(draft, q, p, num_draft, rng)
