"""What the command line does piece by piece: a watch, one shard, all of them on Ray, a merger."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from draftproof.proof.anytime.vigil import keep_watch
from draftproof.proof.anytime.watch import Watch
from draftproof.proof.decoders.sources import beside
from draftproof.proof.shards.merge import merge
from draftproof.proof.shards.shard import identify, run_shard
from draftproof.proof.shards.tally import Tally
from draftproof.proof.trial.plan import Plan, make_plan
from draftproof.proof.verdicts.verdict import Verdict

__all__ = ["Piecemeal", "merge_files"]

OnProgress = Callable[[int, int, str], object]
GLANCE = 0.5
"""Seconds between two lines about a watch."""


@dataclass(frozen=True)
class Piecemeal:
    """A subject, and what every piece of its verdict shares.

    Attributes:
        spec: its specification; None for draftproof's own verifier.
        contract, profile, seed, timeout: as `draftproof.proof.judge.check` takes them.
        given: its ``law``, ``plain``, ``prompts`` and ``eos``.
    """

    spec: Any
    contract: Any
    profile: str
    seed: int
    timeout: float | None
    given: dict[str, Any]

    @property
    def plan(self) -> Plan:
        """The whole verdict's."""
        return beside(make_plan(self.profile, self.seed, self.timeout), **self.given)

    def watch(self, on_progress: OnProgress) -> Verdict:
        """Watch without end; see `draftproof.proof.anytime.vigil.keep_watch`."""
        last = 0.0

        def show(watch: Watch) -> None:
            nonlocal last
            if time.monotonic() - last >= GLANCE:
                last = time.monotonic()
                on_progress(0, 0, f"{watch.tokens:,} tokens, e-value {watch.largest}; Ctrl-C ends")

        own = identify(self.spec, self.contract, self.plan, 1, 0)
        return keep_watch(own.subject, self.plan, contract=own.contract, on_state=show)

    def write_shard(
        self, which: str, texts: int | None, file: Path | None, on_progress: OnProgress
    ) -> Path:
        """Run the shard ``i/n`` and write its tally.

        Raises:
            ValueError: no ``i/n`` with 1 <= i <= n.
        """
        match = re.fullmatch(r"(\d+)/(\d+)", which)
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            raise ValueError(f"shard: found {which!r}; wanted i/n with 1 <= i <= n, such as 3/8.")
        shard, shards = int(match[1]), int(match[2])
        identity = identify(self.spec, self.contract, self.plan, shards, texts)
        tally = run_shard(identity, shard, on_progress)
        file = file or Path(f"draftproof-tally-{shard}-of-{shards}.json")
        tally.write(file)
        return file

    def run_all(
        self,
        run_shards: Callable[..., Sequence[Tally]],
        shards: int | None,
        texts: int | None,
        on_progress: OnProgress,
    ) -> Verdict:
        """Let a cluster run every shard, and merge.

        Args:
            run_shards: such as `draftproof.integrations.ray.run_shards`.
        """

        def name(shards: int) -> Any:
            return identify(self.spec, self.contract, self.plan, shards, texts)

        return merge(run_shards(name, shards, on_progress))


def merge_files(files: Sequence[Path]) -> Verdict:
    """Merge the tallies of files."""
    return merge([Tally.read(file) for file in files])
