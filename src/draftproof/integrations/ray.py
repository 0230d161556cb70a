"""Ray: the shards of one verdict as tasks of a cluster, local or remote (extra ``ray``).

A task whose worker dies is run again by Ray, with the seed that is its own, so it counts once. The
subject must be importable on every node: install it there, or hand it over by Ray's runtime
environment.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from draftproof.proof.shards.shard import run_shard
from draftproof.proof.shards.tally import Identity, Tally

__all__ = ["RETRIES", "run_shards"]

RETRIES = 3
"""Times that a shard is repeated when its worker dies."""


def run_shards(
    identify: Callable[[int], Identity],
    shards: int | None = None,
    on_progress: Callable[[int, int, str], object] | None = None,
) -> list[Tally]:
    """Run all shards of a verdict on the cluster of ``RAY_ADDRESS``, or on one started here.

    Args:
        identify: names the verdict, given the number of shards.
        shards: into how many parts; as many as the cluster has processors if left out.
        on_progress: told (done, total, what) after each shard.

    Raises:
        ModuleNotFoundError: Ray is not installed.
        ray.exceptions.RayError: a shard's worker died more than `RETRIES` times.
    """
    try:
        import ray
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "--ray needs Ray. Fix: pip install 'draftproof[proof,ray]'."
        ) from error

    ours = not ray.is_initialized()
    if ours:
        here = {} if os.environ.get("RAY_ADDRESS") else {"include_dashboard": False}
        ray.init(log_to_driver=False, **here)
    try:
        number = shards or max(1, int(ray.cluster_resources().get("CPU", 1)))
        task = ray.remote(max_retries=RETRIES)(_run)
        identity = identify(number)
        waiting = [task.remote(identity, shard, sys.path) for shard in range(1, number + 1)]
        tallies: list[Tally] = []
        while waiting:
            done, waiting = ray.wait(waiting, num_returns=1)
            tallies += [Tally.from_dict(data) for data in ray.get(done)]
            if on_progress is not None:
                on_progress(len(tallies), number, f"shard {tallies[-1].shard}")
        return tallies
    finally:
        if ours:
            ray.shutdown()


def _run(identity: Identity, shard: int, path: Sequence[str]) -> dict[str, Any]:
    """One shard, in a worker of Ray, which finds what the driver finds where both can see it."""
    sys.path += [place for place in path if place not in sys.path]
    return run_shard(identity, shard).to_dict()
