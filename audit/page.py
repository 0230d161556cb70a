"""The page of the documents that shows the table: correct ones first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from audit.results import Result
from draftproof.integrations.public.table import ADAPTERS

__all__ = ["PAGE", "page", "write_page"]

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "audit.md"
CONFIRMED = Path(__file__).parent / "confirm"

_HEAD = """\
# The audit

Public implementations of speculative decoding, as they are installed from their packages, each
judged in an environment of its own by `make audit`. The table is
[audit/results.csv](../../audit/results.csv), and this page is made from it.
`make audit NAMES="specdec economize"` judges these anew, by the profile `standard`, which takes
far longer than `NAMES="--profile quick specdec"`.

**What was judged**: the function named, at temperature 1, on small worlds whose laws are known
(V = 2 to 5), with laws in float32, on a CPU. Each draws from its own generator, which is seeded
from the judge's for each call. **What was not**: other functions of the same package, other
devices, whole laws at larger vocabularies, top-k and top-p, other versions, speed. A verifier that
is not rejected may still be called with the wrong laws by its engine; one that is rejected is so in
the version and in the call that are named, and nothing follows for the rest of its project.

Where a function does not take drafts from outside, a round or a whole decoder was judged, drafts
included, with models that are tables of the worlds' laws. Rows without drafts, which many of these
functions never meet, are drawn by the adapter.
"""

_SHARED = """
Those marked * were judged in one environment that held several of them, in the pinned versions.
"""

_RIGHT = """
## Not rejected

The bound is the largest total variation that the evidence allows in any world examined; a bias
above "visible" would have been seen in the hardest world with probability .99.

| name | version | calls | contract, profile | bound | visible |
|---|---|---|---|---|---|
"""

_WRONG = """
## Rejected

Each was confirmed by a short script without the judge and without the adapter, in
[audit/confirm](../../audit/confirm): it calls the package's own function and counts.

| name | version | calls | contract, profile | total variation | resembles |
|---|---|---|---|---|---|
"""

_DECLARED = """
## Rejected, as their own documentation says

These rules trade the law for speed, and say so. They are here to show that the judge sees it.

| name | version | calls | contract, profile | total variation | resembles |
|---|---|---|---|---|---|
"""

_OTHER = """
## Neither

| name | version | calls | contract, profile | verdict |
|---|---|---|---|---|
"""


_MISSING = """
## Not judged yet

There are adapters, and no lines in the table: """

_BESIDE = """
## Seen in passing

Outside what was judged; each has a script in [audit/confirm](../../audit/confirm).

"""


def page(results: Sequence[Result]) -> str:
    """Render the table as Markdown."""
    right = [r for r in results if r.verdict == "not rejected"]
    wrong = [r for r in results if r.verdict == "rejected" and r.claims_lossless]
    declared = [r for r in results if r.verdict == "rejected" and not r.claims_lossless]
    other = [r for r in results if r.verdict not in ("not rejected", "rejected")]
    parts = [_HEAD]
    if any(r.environment == "given" for r in results):
        parts.append(_SHARED)
    if right:
        parts += [_RIGHT, *(_row(r, _number(r.bound), _number(r.visible)) for r in right)]
    if wrong:
        parts += [_WRONG, *(_row(r, _distance(r), _fault(r)) for r in wrong)]
        parts += ["\n", *map(_why, wrong)]
    if declared:
        parts += [_DECLARED, *(_row(r, _distance(r), _fault(r)) for r in declared)]
    if other:
        parts += [_OTHER, *(_row(r, f"{r.verdict}: {r.reason}") for r in other)]
    missing = [f"`{name}`" for name in ADAPTERS if name not in {r.name for r in results}]
    if missing:
        parts += [_MISSING, ", ".join(missing), ".\n"]
    parts += [_BESIDE, *_beside()]
    return "".join([*parts, *_reproduce(results)])


def write_page(results: Sequence[Result]) -> None:
    """Write the page."""
    PAGE.write_text(page(results), encoding="utf-8")


def _row(result: Result, *cells: str) -> str:
    torch = f", torch {result.torch}" if result.torch else ""
    mark = "" if result.environment == "own" else " *"
    fixed = (
        f"`{result.name}`{mark}", f"{result.package} {result.version}{torch}", f"`{result.calls}`",
        f"{result.contract}, {result.profile}",
    )  # fmt: skip
    return f"| {' | '.join([*fixed, *cells])} |\n"


def _distance(result: Result) -> str:
    where = f"{result.check}, {result.world}" if result.world else result.check
    return f"{_number(result.total_variation)} ({where})"


def _fault(result: Result) -> str:
    if not result.nearest_fault:
        return "no known fault"
    return f"{result.nearest_fault} ({result.correlation:.2f})"


def _beside() -> list[str]:
    """The scripts that belong to no line."""
    known = {name.replace("-", "_") for name in ADAPTERS}
    scripts = sorted(script for script in CONFIRMED.glob("*.py") if script.stem not in known)
    return [f"- `{script.name}`: {_first_line(script)}\n" for script in scripts]


def _why(result: Result) -> str:
    script = CONFIRMED / f"{result.name.replace('-', '_')}.py"
    told = _first_line(script) if script.exists() else "Not confirmed by hand yet."
    return f"- `{result.name}`: {told}\n"


def _first_line(script: Path) -> str:
    """The script's docstring, up to its first empty line."""
    text = script.read_text(encoding="utf-8").split('"""')[1]
    return " ".join(text.partition("\n\n")[0].split())


def _reproduce(results: Sequence[Result]) -> list[str]:
    lines = ["\n## Reproduce\n\n```console\n"]
    lines += [f"$ {result.reproduce}\n" for result in results]
    machines = sorted({f"{r.date}, {r.cpu}, {r.machine}, Python {r.python}" for r in results})
    return [*lines, "```\n\nMeasured: ", "; ".join(machines), ".\n"]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}" if value < 0.01 else f"{value:.3f}"
