"""Shards on a local cluster of Ray, where it is installed."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from draftproof.proof.shards.merge import merge
from draftproof.proof.shards.shard import identify, run_shard
from draftproof.proof.trial.plan import make_plan
from draftproof.proof.verdicts.finding import Outcome

pytest.importorskip("ray")

PLAN = make_plan("quick", 3)
TEXTS = 60_000


def identity(shards):
    return identify("mutant:resample_p_on_a_rejection", None, PLAN, shards, TEXTS)


def workers():
    """The processes that run a shard just now."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if words.startswith(b"ray::") and b"_run" in words:
            found.append(int(folder.name))
    return found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of what Ray does and leaves open
def test_a_shard_whose_worker_is_killed_is_repeated_and_counts_once():
    from draftproof.integrations.ray import run_shards

    killed = []

    def kill_one():
        for _ in range(600):
            for process in workers():
                os.kill(process, signal.SIGKILL)
                killed.append(process)
                return
            time.sleep(0.1)

    murderer = threading.Thread(target=kill_one)
    murderer.start()
    seen = []
    tallies = run_shards(identity, 3, lambda *step: seen.append(step))
    murderer.join()
    assert killed, "no worker was there to be killed"
    assert sorted(tally.shard for tally in tallies) == [1, 2, 3]
    assert [step[:2] for step in seen] == [(1, 3), (2, 3), (3, 3)]
    assert next(t for t in tallies if t.shard == 2) == run_shard(identity(3), 2)
    verdict = merge(tallies)
    joint = [f for f in verdict.findings if f.check == "joint"]
    assert {f.size for f in joint} == {TEXTS}
    assert {f.outcome for f in joint} == {Outcome.LOSSY}
