"""The page of the documents that shows the result."""

from __future__ import annotations

from pathlib import Path

from evidence.result import Result

__all__ = ["PAGE", "page", "write_page"]

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "long-run.md"


def page(result: Result) -> str:
    """Render it as Markdown."""
    rows = [f"| {f.check} | {f.world} | {f.outcome} | {f.message} |" for f in result.found]
    return f"""\
# The long run

`make evidence-long` has draftproof's own verifier (`{result.subject}`) make {result.made:,} texts
of three tokens, by rounds of drafts and verification, in worlds whose laws are known exactly. They
are counted in {result.shards} shards, each with a seed of its own; finished ones are kept, and a
killed one is repeated. All other checks of the profile `{result.profile}` run once, with the first
shard. This page is made from [evidence/result.json](../../evidence/result.json).

**Verdict: {result.verdict}** ({result.reason}).

| check | world | outcome | what was found |
|---|---|---|---|
{chr(10).join(rows)}

No sample shows that a law is right to the last digit; this one would have shown a bias above the
total variation that it names. The joint law is compared once, when all shards are there.

Measured: {result.date}, {result.cpu}, {result.machine}, Python {result.python}, NumPy
{result.numpy}, draftproof {result.version} at {result.commit}, seed {result.seed};
{result.seconds / 60:.0f} minutes by the clock, one shard after another.
"""


def write_page(result: Result) -> None:
    """Write the page."""
    PAGE.write_text(page(result), encoding="utf-8")
