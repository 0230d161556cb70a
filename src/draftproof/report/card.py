"""The verdict on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from typing import Any

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from draftproof.report.summary import Json, decisive, facts, headline, place, plural, spread

__all__ = ["card_text", "print_card"]

_STYLES = {"not rejected": "green", "rejected": "red", "broken": "red", "inconclusive": "yellow"}
_RESULT_STYLES = {"passed": "green", "failed": "bold red"}
_MOST_CELLS = 5


def print_card(verdict: Json, console: Console | None = None) -> None:
    """Print the card; its last line begins with ``VERDICT: not rejected``, or what it is.

    Args:
        verdict: what `draftproof.proof.verdicts.verdict.Verdict.to_dict` returns.
        console: where to; by default standard output.
    """
    console = console or Console()
    for part in _parts(verdict):
        console.print(part, highlight=False)
    # Never wrapped or cut: other programs read this line.
    last = Text(headline(verdict), style=f"bold {_STYLES[verdict['outcome']]}")
    console.print(last, soft_wrap=True, highlight=False)


def card_text(verdict: Json, width: int = 100) -> str:
    """Return the card as plain text."""
    out = StringIO()
    print_card(verdict, Console(file=out, width=width, no_color=True, force_terminal=False))
    return out.getvalue()


def _parts(verdict: Json) -> Iterator[RenderableType]:
    yield Text.assemble("Is it lossless?  ", (verdict["subject"], "bold"))
    yield _grid(facts(verdict))
    if verdict["scorecard"]:
        yield Text()
        yield _scorecard(verdict)
    against = decisive(verdict)
    if against:
        yield Text()
        yield from _accusation(verdict, against)
    if verdict["captured_output"] and verdict["outcome"] == "broken":
        yield Text("The end of what it printed:", style="bold")
        printed = Text.from_ansi(verdict["captured_output"].rstrip())
        yield Padding(printed, (0, 0, 0, 2))
    yield Text()


def _grid(rows: list[tuple[str, str]]) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for topic, text in rows:
        grid.add_row(topic, Text(text))
    return grid


def _scorecard(verdict: Json) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for row in verdict["scorecard"]:
        result = Text(row["result"], style=_RESULT_STYLES.get(row["result"], "dim"))
        table.add_row(result, Text(row["name"]), Text(row["message"]))
    return table


def _accusation(verdict: Json, against: list[Json]) -> Iterator[RenderableType]:
    """Name the check, the worlds, the cells, the nearest known fault, and a way back."""
    first = against[0]
    more = len(against) - 1
    rows = [
        ("check", first["check"] + (f", and {plural(more, 'finding')} more" if more else "")),
        ("where", place(first)),
        *spread(verdict),
        ("found", first["message"]),
        ("cells", _cells(first)),
        ("nearest fault", _nearest(verdict["nearest_fault"])),
        ("reproduce", verdict["reproducer"]["command"] if verdict["reproducer"] else ""),
    ]
    yield _grid([(topic, text) for topic, text in rows if text])
    if verdict["reproducer"] and verdict["reproducer"]["script"]:
        yield Text()
        yield Padding(
            Syntax(verdict["reproducer"]["script"].rstrip(), "python", background_color="default"),
            (0, 0, 0, 2),
        )


def _cells(finding: Json) -> str:
    return "\n".join(
        f"{' '.join(map(str, cell['tokens']))}: {cell['observed']:.6f}, "
        f"the target has {cell['expected']:.6f}"
        for cell in finding["cells"][:_MOST_CELLS]
    )


def _nearest(fault: dict[str, Any] | None) -> str:
    if fault is None:
        return ""
    public = f" ({fault['public']})" if fault["public"] else ""
    alike = f"correlation of the residuals {fault['correlation']:.2f}"
    return f"{fault['name']}{public}: {fault['does']}; {alike}"
