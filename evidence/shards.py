"""Shards on disk: those that are there are kept, those that are not are run."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from draftproof.proof.shards.shard import run_shard
from draftproof.proof.shards.tally import Identity, Tally

__all__ = ["complete"]


def complete(
    identity: Identity, folder: Path, tell: Callable[[str], object] = print
) -> list[Tally]:
    """Run the shards that a folder lacks, one after another, and return all of them.

    A shard's file is written whole or not at all, so one that was killed is run again, and none
    counts twice.

    Args:
        identity: of the verdict.
        folder: of its tallies alone; made if need be.
        tell: takes a line after each shard.

    Raises:
        ValueError: a file in the folder is no tally, or one of another verdict.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tallies: list[Tally] = []
    began, run = time.monotonic(), 0
    for shard in range(1, identity.shards + 1):
        file = folder / f"{shard}.json"
        if file.exists():
            tally = Tally.read(file)
            if (tally.identity, tally.shard) != (identity, shard):
                raise ValueError(f"{file}: found a shard of another verdict. Fix: remove it.")
            found = "kept"
        else:
            tally = run_shard(identity, shard)
            tally.write(file)
            run += 1
            found = f"{tally.seconds:.0f} s"
        tallies.append(tally)
        left = (identity.shards - shard) * (time.monotonic() - began) / max(1, run)
        tell(f"shard {shard} of {identity.shards}: {found}; at most {left / 60:.0f} minutes left")
    return tallies
