"""Run the shards that are missing, merge them all, and write the result and its page.

::

    python -m evidence                        10^9 texts of the native verifier
    python -m evidence --texts N --shards M   fewer, or in other parts
    python -m evidence --page                 write the page again from the result

Shards lie below build/evidence, in a folder of their own for each commit and each cut.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from bench.machine import this_machine
from draftproof.proof.shards.merge import merge
from draftproof.proof.shards.shard import experiments_of, identify
from draftproof.proof.subjects.subject import load
from draftproof.proof.trial.plan import make_plan
from evidence.page import write_page
from evidence.result import read_result, result_of, write_result
from evidence.shards import complete

SUBJECT = "own:native"
FOLDER = Path(__file__).parents[1] / "build" / "evidence"


def main() -> None:
    """Read the command line and do it."""
    parser = argparse.ArgumentParser(prog="python -m evidence", description="The long run.")
    parser.add_argument("--texts", type=int, default=10**9, help="of all worlds together")
    parser.add_argument("--shards", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", action="store_true", help="only write the page again")
    options = parser.parse_args()
    if not options.page:
        plan, machine = make_plan("standard", options.seed), this_machine()
        worlds = len(experiments_of(load(SUBJECT), plan))
        each = -(-options.texts // worlds)
        identity = identify(SUBJECT, None, plan, options.shards, each)
        cut = f"{machine.commit}-{options.seed}-{options.texts}-{options.shards}"
        tallies = complete(identity, FOLDER / cut, partial(print, flush=True))
        write_result(result_of(identity, merge(tallies), machine))
    write_page(read_result())


if __name__ == "__main__":
    main()
