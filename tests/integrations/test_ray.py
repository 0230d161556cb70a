"""Shards on a local cluster of Ray, where it is installed."""

import os
import signal
import threading
from pathlib import Path

import pytest

from draftproof.proof.shards.merge import merge
from draftproof.proof.shards.shard import identify, run_shard
from draftproof.proof.trial.plan import make_plan
from draftproof.proof.verdicts.finding import Outcome

ray = pytest.importorskip("ray")

PLAN = make_plan("quick", 3)
TEXTS = 60_000
STARTS = 4
"""Ray gives up on a node after 30 seconds, which a busy machine may need for its first start."""
SETTINGS = {
    "RAY_gcs_server_port_wait_time_s": "300",
    "RAY_raylet_start_wait_time_s": "300",
    "RAY_worker_register_timeout_seconds": "300",
    "RAY_USAGE_STATS_ENABLED": "0",
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # of what Ray does and leaves open
]


@pytest.fixture
def cluster(monkeypatch):
    """Two processors, on this machine alone."""
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    for start in range(STARTS):
        try:
            ray.init(
                num_cpus=2, object_store_memory=80 << 20, include_dashboard=False,
                log_to_driver=False, _node_ip_address="127.0.0.1",
            )  # fmt: skip
            break
        except Exception:
            ray.shutdown()
            if start == STARTS - 1:
                raise
    yield
    ray.shutdown()


def identity(shards):
    return identify("mutant:resample_p_on_a_rejection", None, PLAN, shards, TEXTS)


def parent(process):
    stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    return int(stat.rpartition(")")[2].split()[1])


def workers():
    """The processes of this test's cluster that run a shard just now."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        process = int(folder.name)
        try:
            words = (folder / "cmdline").read_bytes()
            ours = b"_run" in words and parent(parent(process)) == os.getpid()
        except OSError:
            continue
        if ours and words.startswith(b"ray::"):
            found.append(process)
    return found


def test_a_shard_whose_worker_is_killed_is_repeated_and_counts_once(cluster):
    from draftproof.integrations.ray import run_shards

    killed: list[int] = []
    over = threading.Event()

    def kill_one():
        while not killed and not over.wait(0.05):
            for process in workers()[:1]:
                os.kill(process, signal.SIGKILL)
                killed.append(process)

    murderer = threading.Thread(target=kill_one)
    murderer.start()
    seen = []
    try:
        tallies = run_shards(identity, 3, lambda *step: seen.append(step))
    finally:
        over.set()
        murderer.join()
    assert killed, "no worker was there to be killed"
    assert ray.is_initialized(), "a cluster of others was shut down"
    assert sorted(tally.shard for tally in tallies) == [1, 2, 3]
    assert [step[:2] for step in seen] == [(1, 3), (2, 3), (3, 3)]
    assert next(t for t in tallies if t.shard == 2) == run_shard(identity(3), 2)
    verdict = merge(tallies)
    joint = [f for f in verdict.findings if f.check == "joint"]
    assert {f.size for f in joint} == {TEXTS}
    assert {f.outcome for f in joint} == {Outcome.LOSSY}
