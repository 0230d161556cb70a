"""Judge public implementations, and write the table and its page.

::

    python -m audit                     all of them, each in an environment of its own
    python -m audit NAME ...            some of them; the other lines stay
    python -m audit --python BIN NAME   in an environment that is there already
    python -m audit --page              write the page again from the table
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

from audit.environments import FOLDER, build_environment, build_wheel
from audit.page import write_page
from audit.results import Result, read_results, result_of, with_results, write_results
from bench.machine import this_machine
from draftproof.integrations.public.table import ADAPTERS, Adapter

PATIENCE = 3600.0
"""Seconds for one check: most of these verifiers take one row at a time."""
_VERSIONS = """
import importlib.metadata, json
names = {d.metadata["Name"]: d.version for d in importlib.metadata.distributions()}
print(json.dumps(names))
"""


def main() -> None:
    """Read the command line and do it."""
    parser = argparse.ArgumentParser(prog="python -m audit", description="Judge public code.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="see draftproof check --list")
    parser.add_argument("--profile", default="standard")
    parser.add_argument("--python", type=Path, help="of an environment that is there already")
    parser.add_argument("--page", action="store_true", help="only write the page again")
    options = parser.parse_args()
    if unknown := set(options.names) - set(ADAPTERS):
        parser.error(f"found {min(unknown)!r}; wanted names from draftproof check --list")
    if not options.page:
        wheel = None if options.python else build_wheel()
        for name in options.names or ADAPTERS:
            adapter = ADAPTERS[name]
            python = options.python
            if wheel is not None:
                python = build_environment(adapter.package, wheel)
            result = judge(adapter, python, options.profile)
            print(f"{name}: {result.verdict} ({result.seconds:.0f} s)", flush=True)
            write_results(with_results(read_results(), [result]))
    write_page(read_results())


def judge(adapter: Adapter, python: Path, profile: str) -> Result:
    """Judge one implementation in an environment that has it."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    file = FOLDER / f"{adapter.name}.json"
    with tempfile.TemporaryDirectory() as folder:
        command = [
            python, "-m", "draftproof", "check", adapter.name, "--profile", profile,
            "--timeout", PATIENCE, "--json", file,
        ]  # fmt: skip
        done = subprocess.run([*map(str, command)], cwd=folder, check=False)
    if done.returncode == 2:
        raise SystemExit(f"{adapter.name} could not be judged.")
    verdict = json.loads(file.read_text(encoding="utf-8"))
    told = subprocess.run(
        [str(python), "-c", _VERSIONS], check=True, capture_output=True, text=True
    )
    environment = "own" if python.is_relative_to(FOLDER) else "given"
    return result_of(adapter, verdict, json.loads(told.stdout), environment, this_machine())


if __name__ == "__main__":
    main()
