"""A verdict's JSON in the words that the card and the page share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["bound", "decisive", "facts", "headline", "place", "plural", "spread"]

Json = Mapping[str, Any]

_OUTCOMES = {
    "lossy": "lossy",
    "broken": "broken",
    "inconclusive": "inconclusive",
    "passed": "passed",
    "note": "with a note",
    "not_drivable": "not drivable",
}
"""In the order in which they matter, with the word that stands behind their number."""

_GRADES = {
    "exact": ("exact", "replayed paths"),
    "sampled": ("sampling", "sampled sequences"),
    "behaviour": ("behaviour", "calls"),
}


def headline(verdict: Json) -> str:
    """Return the last line of the card: ``VERDICT: not rejected (...)``, whole in one line."""
    says = [] if bound(verdict) is None else [f"total variation at most {bound(verdict)}"]
    return f"VERDICT: {verdict['outcome']} ({'; '.join([*says, _one_line(verdict['reason'])])})"


def bound(verdict: Json) -> str | None:
    """Return the upper bound of the total variation, of a subject that was not rejected."""
    value = verdict["total_variation_bound"]
    return None if value is None or verdict["outcome"] != "not rejected" else f"{value:.2g}"


def decisive(verdict: Json) -> list[Json]:
    """Return the findings that speak against the subject: the lossy ones, else the broken ones."""
    for outcome in ("lossy", "broken"):
        found = [finding for finding in verdict["findings"] if finding["outcome"] == outcome]
        if found:
            return found
    return []


def place(finding: Json) -> str:
    """Say where a finding was made: ``world L4, g = 2, K = 3``; empty if in no world."""
    if not finding["world"]:
        return ""
    if not finding["max_draft"]:  # it drafts by itself
        return f"world {finding['world']}"
    return f"world {finding['world']}, g = {finding['num_draft']}, K = {finding['max_draft']}"


def spread(verdict: Json) -> list[tuple[str, str]]:
    """Say in which worlds a wrong law shows, the most first, and in which it does not.

    By exact laws where one is wrong: in a sampled batch a row of another world may be at fault.
    """
    against = decisive(verdict)
    grade = "exact" if any(f["grade"] == "exact" for f in against) else "sampled"
    off: dict[str, float] = {}
    for finding in against:
        if finding["world"] and finding["grade"] == grade:
            distance = finding["total_variation"] or 0.0
            off[finding["world"]] = max(off.get(finding["world"], 0.0), distance)
    alike = [f for f in verdict["findings"] if f["outcome"] == "passed" and f["grade"] == grade]
    right = [world for world in dict.fromkeys(f["world"] for f in alike) if world not in {*off, ""}]
    if not off or len(off) + len(right) < 2:
        return []
    most = sorted(off, key=lambda world: -off[world])
    shows = "; ".join(f"{world} {off[world]:.3g}" if off[world] else world for world in most)
    return [("shows in", shows), ("not in", "; ".join(right))]


def facts(verdict: Json) -> list[tuple[str, str]]:
    """Return the lines of the card in order, as (topic, text); a text may have several lines."""
    lines = [("contract", _contract(verdict))]
    for grade, (topic, unit) in _GRADES.items():
        found = [finding for finding in verdict["findings"] if finding["grade"] == grade]
        lines.append((topic, _evidence(found, unit)))
    lines += [
        ("false alarms", _false_alarms(verdict["false_alarm_budget"])),
        ("power", _power(verdict["power"])),
        ("efficiency", _efficiency(verdict["efficiency"])),
        ("numbers", verdict["numerical_grade"] or ""),
        ("notes", "\n".join(_notes(verdict))),
        ("NOT covered", "\n".join(verdict["not_covered"]) or "nothing was left out"),
        ("time", _times(verdict)),
    ]
    return [(topic, text) for topic, text in lines if text]


def plural(number: int, noun: str) -> str:
    """Return ``1 world``, ``2 worlds``."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _contract(verdict: Json) -> str:
    backends = verdict["backends"]
    parts = [
        verdict["contract"],
        f"profile {verdict['profile']}",
        f"seed {verdict['seed']}",
        f"backends {', '.join(backends)}" if backends else "",
        f"draftproof {verdict['version']}" if verdict["version"] else "",
    ]
    return "; ".join(filter(None, parts))


def _evidence(findings: Sequence[Json], unit: str) -> str:
    if not findings:
        return "not examined"
    counts = Counter(finding["outcome"] for finding in findings)
    parts = [", ".join(f"{counts[o]} {word}" for o, word in _OUTCOMES.items() if counts[o])]
    looked = [f for f in findings if f["outcome"] != "not_drivable" and f["world"]]
    if looked:
        parts.append("worlds " + "; ".join(dict.fromkeys(f["world"] for f in looked)))
        g, K = (max(f[key] for f in looked) for key in ("num_draft", "max_draft"))
        parts.append(f"g <= {g}, K <= {K}" if K else "")
    size = sum(finding["size"] for finding in findings)
    if size:
        parts.append(f"{size:,} {unit}")
    return "; ".join(filter(None, parts))


def _false_alarms(budget: Mapping[str, float]) -> str:
    if not budget:
        return ""
    return (
        f"a lossless subject is rejected with probability at most {sum(budget.values()):.1g}, "
        f"shared by {plural(len(budget), 'check')}"
    )


def _power(power: Json) -> str:
    parts = []
    if power["controls_total"]:
        killed, total = power["controls_killed"], power["controls_total"]
        parts.append(f"{killed} of {total} wrong verifiers caught at this budget")
    if power["survivors"]:
        parts.append("survivors: " + ", ".join(power["survivors"]))
    visible = power["smallest_visible_total_variation"]
    if visible is not None:
        where = f" in the hardest world, {power['hardest_world']}" if power["hardest_world"] else ""
        parts.append(f"a total variation above {visible:.2g} would have been seen{where}")
    return "; ".join(parts) or "not shown: no control was run"


def _efficiency(efficiency: Mapping[str, float]) -> str:
    figures = "; ".join(f"{world}: {value:.4g}" for world, value in efficiency.items())
    return f"expected accepted drafts (a figure, no proof): {figures}" if figures else ""


def _times(verdict: Json) -> str:
    rows = verdict["row_seconds"].items()
    parts = [f"{seconds * 1e6:.3g} us for a row at B = {B}" for B, seconds in rows]
    return "; ".join([f"{verdict['seconds']:.1f} s", *parts])


def _notes(verdict: Json) -> list[str]:
    """Return what is worth a note, once each; the scorecard's rows stand in the scorecard."""
    graded = {row["message"] for row in verdict["scorecard"]}
    messages = (f["message"] for f in verdict["findings"] if f["outcome"] == "note")
    return [message for message in dict.fromkeys(messages) if message not in graded]


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
