"""The documents that show the results: all of them on a page, the shapes in the README."""

from __future__ import annotations

from pathlib import Path

from bench.results import Result
from bench.tables import digest, document

__all__ = ["PAGE", "README", "fill_in", "filled_in"]

_ROOT = Path(__file__).parents[1]
PAGE = _ROOT / "docs" / "explanation" / "speed.md"
README = _ROOT / "README.md"

_BEGIN = "<!-- results: python -m bench --table -->"
_END = "<!-- end of results -->"
_PLOT = "![Achieved bandwidth](../../bench/achieved_bandwidth.png)"


def filled_in(path: Path, text: str, results: list[Result]) -> str:
    """Return the text of one of these documents with the results between its two marks."""
    before, _, rest = text.partition(_BEGIN)
    _, mark, after = rest.partition(_END)
    if not mark:
        raise ValueError(f"{path.name} lacks {_BEGIN!r} or, behind it, {_END!r}")
    shown = digest(results) if path == README else document(results)
    if results and path == PAGE:
        shown += f"\n\n{_PLOT}"
    return f"{before}{_BEGIN}\n{shown}\n{_END}{after}"


def fill_in(results: list[Result]) -> None:
    """Write these results into the documents."""
    for path in (PAGE, README):
        text = path.read_text(encoding="utf-8")
        path.write_text(filled_in(path, text, results), encoding="utf-8")
