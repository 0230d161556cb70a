"""The results as tables: aligned for a terminal, or in Markdown for the documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.results import Result

__all__ = ["digest", "document", "terminal"]

Cells = list[list[str]]
Case = dict[str, Result]
"""A case's results by contender."""

NOTHING = "-"
LOGITS = ("logits", "top-p", "top-k")
_LOGITS_TITLE = "From logits; a peer's column is its time over that of our one thread:"


def terminal(results: Sequence[Result]) -> str:
    """Render for people at a terminal."""
    return _render(results, _aligned)


def document(results: Sequence[Result]) -> str:
    """Render as the documents show it, with machine and date."""
    return _render(results, _markdown)


def digest(results: Sequence[Result]) -> str:
    """Render the medians of the shapes and of logits, as the README shows them."""
    if not results:
        return "Not measured yet."
    cases = _by_case(results)
    shapes = [case for name, case in cases.items() if name.startswith("shape")]
    logits = [case for name, case in cases.items() if name.startswith(LOGITS)]
    where = _headline(results).removesuffix("; in parentheses the same from the fastest rounds.")
    parts = [f"{where}.", _markdown(_medians(_shape_cells(shapes)))]
    if logits:
        parts += [
            _LOGITS_TITLE,
            _markdown(_medians(_logits_cells(logits))),
            _peers_sentence(logits),
        ]
    return "\n\n".join(parts)


def _medians(cells: Cells) -> Cells:
    """Leave the minima out, and what only the document shows."""
    hidden = {"NumPy backend", "2 threads / 1"}
    return [
        [cell.partition(" (")[0] for cell, name in zip(row, cells[0], strict=True)
         if name not in hidden]
        for row in cells
    ]  # fmt: skip


def _render(results: Sequence[Result], layout: Callable[[Cells], str]) -> str:
    if not results:
        return "Not measured yet."
    cases = _by_case(results)
    shapes = [case for name, case in cases.items() if name.startswith("shape")]
    growing = [case for name, case in cases.items() if name.startswith("flat")]
    logits = [case for name, case in cases.items() if name.startswith(LOGITS)]
    known = ("shape", "flat", "memory", *LOGITS)
    rules = [case for name, case in cases.items() if not name.startswith(known)]
    parts = [_headline(results)]
    if shapes:
        parts.append(layout(_shape_cells(shapes)))
    if rules:
        parts += ["Other rules, trees of K nodes, against a pass over each row that the rule sums:"]
        parts.append(layout(_growth_cells(rules, "rule")))
    if logits:
        parts += [_LOGITS_TITLE, layout(_logits_cells(logits)), _peers_sentence(logits)]
    if growing:
        parts += ["One size grows, every row is rejected at position 2:"]
        parts.append(layout(_growth_cells(growing)))
    parts += [_memory_sentence(result) for result in results if result.peak_extra_bytes is not None]
    return "\n\n".join(parts)


def _by_case(results: Sequence[Result]) -> dict[str, Case]:
    cases: dict[str, Case] = {}
    for result in results:
        cases.setdefault(result.case, {})[result.contender] = result
    return cases


def _headline(results: Sequence[Result]) -> str:
    """Say where, when and of which commits; lines of a partial run stand among older ones."""
    first = results[0]
    dates, versions, commits = (
        ", ".join(dict.fromkeys(getattr(result, name) for result in results))
        for name in ("date", "numpy", "commit")
    )
    return (
        f"Measured {dates} on {first.cpu} ({first.machine}), Python {first.python}, "
        f"NumPy {versions}, commit {commits}. Times in microseconds a call, medians; "
        "in parentheses the same from the fastest rounds."
    )


def _shape_cells(cases: list[Case]) -> Cells:
    header = ["B × K × V", "floor", "1 thread", "2 threads", "NumPy code", "NumPy backend"]
    header += ["1 thread / floor", "2 threads / 1", "NumPy code / 1 thread"]
    columns = ("floor", "draftproof", "draftproof-2", "numpy", "draftproof-numpy")
    rows = [
        [_shape(case), *(_time(case.get(contender)) for contender in columns), *_ratios(case)]
        for case in cases
    ]
    return [header, *rows]


def _growth_cells(cases: list[Case], name: str = "") -> Cells:
    """One line for each case; under `name`, if there is one, what the case is called."""
    header = [name] if name else []
    header += ["B × K × V", "floor", "1 thread", "2 threads", "1 thread, GB/s"]
    header += ["1 thread / floor", "2 threads / 1"]
    columns = ("floor", "draftproof", "draftproof-2")
    rows = [
        [
            *([_series(case)] if name else []),
            _shape(case),
            *(_time(case.get(contender)) for contender in columns),
            _bandwidth(case.get("draftproof")),
            *_ratios(case)[:2],
        ]
        for case in cases
    ]
    return [header, *rows]


def _logits_cells(cases: list[Case]) -> Cells:
    """One line for each case, one column for each peer that ran."""
    ours = ("floor", "draftproof", "draftproof-2")
    peers = list(dict.fromkeys(name for case in cases for name in case if name not in ours))
    header = ["case", "B × K × V", "floor", "1 thread", "2 threads", "1 thread / floor"]
    header += ["2 threads / 1", *peers]
    rows = [
        [
            _series(case),
            _shape(case),
            *(_time(case.get(contender)) for contender in ours),
            *_ratios(case)[:2],
            *(_ratio(case, peer, "draftproof") for peer in peers),
        ]
        for case in cases
    ]
    return [header, *rows]


def _peers_sentence(cases: list[Case]) -> str:
    software = {result.software for case in cases for result in case.values()}
    names = dict.fromkeys(name for line in sorted(software) for name in line.split(", ") if name)
    return f"Peers: {', '.join(names) or 'none was installed'}."


def _series(case: Case) -> str:
    return next(iter(case.values())).case.rsplit("-", 2)[0]


def _shape(case: Case) -> str:
    result = next(iter(case.values()))
    return f"{result.B:,} × {result.K} × {result.V:,} {result.dtype}"


def _ratios(case: Case) -> list[str]:
    return [
        _ratio(case, "draftproof", "floor"),
        _ratio(case, "draftproof-2", "draftproof"),
        _ratio(case, "numpy", "draftproof"),
    ]


def _ratio(case: Case, one: str, other: str) -> str:
    """Return the median of the rounds' ratios and, in parentheses, the ratio of the minima."""
    if one not in case or other not in case:
        return NOTHING
    mine, others = case[one], case[other]
    paired = mine.over_floor if other == "floor" else mine.over_draftproof
    if not (paired and mine.min_us and others.min_us):
        return NOTHING
    return f"{_number(paired)} ({_number(mine.min_us / others.min_us)})"


def _time(result: Result | None) -> str:
    if not (result and result.median_us and result.min_us):
        return NOTHING
    return f"{_number(result.median_us)} ({_number(result.min_us)})"


def _bandwidth(result: Result | None) -> str:
    return NOTHING if not (result and result.gb_per_s) else _number(result.gb_per_s)


def _number(value: float) -> str:
    """Return three digits that count: 0.0123, 1.23, 123, 12,345."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 1 else f"{value:.{1 if value >= 10 else 2}f}"


def _memory_sentence(result: Result) -> str:
    who = {"draftproof": "the native kernel", "numpy": "the NumPy code"}[result.contender]
    assert result.peak_extra_bytes is not None
    return (
        f"Peak memory beyond the inputs at {result.B} × {result.K} × {result.V:,} {result.dtype}, "
        f"{who}: {result.peak_extra_bytes / 2**20:,.2f} MiB."
    )


def _aligned(cells: Cells) -> str:
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in cells
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def _markdown(cells: Cells) -> str:
    header, *rows = [f"| {' | '.join(row)} |" for row in cells]
    rule = "|---" + "|--:" * (len(cells[0]) - 1) + "|"
    return "\n".join([header, rule, *rows])
