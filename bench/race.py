"""One case: all its contenders, interleaved, so that the machine's moods hit all alike."""

from __future__ import annotations

import statistics
from contextlib import ExitStack
from dataclasses import dataclass

from bench.cases import Case
from bench.contenders import THREADS
from bench.inputs import CALLS
from bench.peers import PEERS, is_installed
from bench.worker import Worker, available_cpus

__all__ = ["Effort", "Race", "run_race"]


@dataclass(frozen=True)
class Effort:
    """How much is measured: rounds, and the least nanoseconds of a contender's batch in each."""

    rounds: int
    batch_ns: int


@dataclass(frozen=True)
class Race:
    """The times of a case.

    Attributes:
        case: whose times.
        bytes_read: the mean bytes of the rows that a call must read.
        times: for each contender, microseconds a call in each round.
    """

    case: Case
    bytes_read: int
    times: dict[str, list[float]]

    def ratio(self, contender: str, other: str) -> float | None:
        """Return the median over the rounds of one's time over the other's in the same round."""
        if other not in self.times:
            return None
        pairs = zip(self.times[contender], self.times[other], strict=True)
        return statistics.median(mine / others for mine, others in pairs)


def run_race(case: Case, effort: Effort) -> Race:
    """Start a process for each contender, then let one at a time run a batch, round after round.

    Each round begins with another contender, so that nobody always follows the same one.
    """
    cpus = len(available_cpus())
    names = [
        name
        for name in case.contenders
        if THREADS[name] <= cpus and (name not in PEERS or is_installed(name))
    ]
    with ExitStack() as stack:
        workers = [stack.enter_context(Worker(name, case)) for name in names]
        for worker in workers:
            worker.wait_until_ready()
        if len({worker.digest for worker in workers if worker.name not in PEERS}) > 1:
            raise RuntimeError(f"{case.name}: the contenders accept different drafts")
        cycles = {
            worker.name: max(1, round(effort.batch_ns / worker.cycle_ns)) for worker in workers
        }
        times: dict[str, list[float]] = {name: [] for name in names}
        for turn in range(effort.rounds):
            first = turn % len(workers)
            for worker in workers[first:] + workers[:first]:
                count = cycles[worker.name]
                times[worker.name].append(worker.time(count) / (count * CALLS * 1000))
        return Race(case, workers[0].bytes_read, times)
