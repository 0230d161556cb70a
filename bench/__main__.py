"""The command: ``python -m bench``."""

from __future__ import annotations

import argparse
import fnmatch
import os
import sys
from pathlib import Path

from bench.cases import CASES, MEMORY_CASE
from bench.machine import this_machine
from bench.memory import can_measure_memory, peak_extra_bytes
from bench.page import fill_in
from bench.plots import plot_bandwidth
from bench.race import Effort, run_race
from bench.results import Result, memory_result, race_results, read_results, write_results
from bench.tables import terminal

HOME = Path(__file__).parent
FULL = Effort(rounds=9, batch_ns=20_000_000)
QUICK = Effort(rounds=3, batch_ns=0)


def measure(pattern: str, effort: Effort) -> list[Result]:
    """Run the cases whose name matches, and tell on stderr how it goes."""
    machine = this_machine()
    results: list[Result] = []
    cases = [case for case in CASES if fnmatch.fnmatch(case.name, pattern)]
    for number, case in enumerate(cases, 1):
        print(f"[{number}/{len(cases)}] {case.name} ...", end=" ", file=sys.stderr, flush=True)
        lines = race_results(run_race(case, effort), machine)
        medians = ", ".join(f"{line.contender} {line.median_us:g}" for line in lines)
        print(f"{medians} us", file=sys.stderr, flush=True)
        results += lines
    if fnmatch.fnmatch(MEMORY_CASE.name, pattern) and can_measure_memory():
        for contender in MEMORY_CASE.contenders:
            peak = peak_extra_bytes(contender, MEMORY_CASE)
            print(f"{MEMORY_CASE.name}: {contender} {peak} bytes", file=sys.stderr, flush=True)
            results.append(memory_result(MEMORY_CASE, machine, contender, peak))
    return results


def save(results: list[Result], folder: Path) -> None:
    """Write results.csv and its plot; those of the repository also go into the documents."""
    folder.mkdir(parents=True, exist_ok=True)
    write_results(results, folder / "results.csv")
    render(results, folder)


def render(results: list[Result], folder: Path) -> None:
    """Draw and fill in what shows the results."""
    plot_bandwidth(results, folder / "achieved_bandwidth.png")
    if folder == HOME:
        fill_in(results)


def main() -> int:
    """Parse the command line, measure, show."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few rounds: noisy, and not kept")
    parser.add_argument("--case", metavar="NAME", help="only cases of this name (or glob)")
    parser.add_argument("--output", metavar="FOLDER", type=Path, help="keep the results there")
    parser.add_argument("--plot-only", action="store_true", help="draw the plot of results.csv")
    parser.add_argument("--table", action="store_true", help="show results.csv, and in the docs")
    arguments = parser.parse_args()
    folder: Path = arguments.output or HOME
    if arguments.plot_only or arguments.table:
        results = read_results(folder / "results.csv")
        if arguments.plot_only:
            plot_bandwidth(results, folder / "achieved_bandwidth.png")
        else:
            render(results, folder)
            print(terminal(results))
        return 0
    # One thread each, whatever NumPy was built with; workers inherit it before they load NumPy.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    results = measure(arguments.case or "*", QUICK if arguments.quick else FULL)
    if not results:
        names = "\n  ".join(case.name for case in (*CASES, MEMORY_CASE))
        parser.error(f"no case is called {arguments.case!r}; there are\n  {names}")
    if arguments.output or not (arguments.quick or arguments.case):
        save(results, folder)
    print(terminal(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
