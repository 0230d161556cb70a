"""The page of the documents that shows the results."""

from __future__ import annotations

from pathlib import Path

from bench.results import Result
from bench.tables import document

__all__ = ["PAGE", "fill_in", "filled_in"]

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "speed.md"

_BEGIN = "<!-- results: python -m bench --table -->"
_END = "<!-- end of results -->"
_PLOT = "![Achieved bandwidth](../../bench/achieved_bandwidth.png)"


def filled_in(text: str, results: list[Result]) -> str:
    """Return the page's text with these results and their plot between its two marks."""
    before, _, rest = text.partition(_BEGIN)
    _, mark, after = rest.partition(_END)
    if not mark:
        raise ValueError(f"{PAGE.name} lacks {_BEGIN!r} or, behind it, {_END!r}")
    shown = f"{document(results)}\n\n{_PLOT}" if results else document(results)
    return f"{before}{_BEGIN}\n{shown}\n{_END}{after}"


def fill_in(results: list[Result]) -> None:
    """Write these results into the page."""
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(filled_in(text, results), encoding="utf-8")
