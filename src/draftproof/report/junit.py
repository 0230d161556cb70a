"""The verdict as JUnit XML, which CI systems show without being told how."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter

from draftproof.report.summary import Json, headline, place

__all__ = ["junit_xml"]

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold, not even escaped."""

_ELEMENTS = {
    "lossy": "failure",
    "broken": "error",
    "inconclusive": "failure",
    "not_drivable": "skipped",
}
"""What a finding's outcome becomes; the others passed."""

_VERDICT_ELEMENTS = {"rejected": "failure", "broken": "error", "inconclusive": "failure"}


def junit_xml(verdict: Json) -> str:
    """Return JUnit XML: one test case for each finding, and one for the verdict itself.

    The last one fails whenever the command's exit code is not 0, for an inconclusive verdict, say,
    whose findings all passed.

    Args:
        verdict: what `draftproof.proof.verdicts.verdict.Verdict.to_dict` returns.
    """
    suite = ET.Element("testsuite", name=_clean(f"draftproof {verdict['subject']}"))
    seen: Counter[str] = Counter()
    for finding in verdict["findings"]:
        name = f"{finding['check']} ({place(finding)})" if place(finding) else finding["check"]
        seen[name] += 1
        case = _case(suite, verdict, name if seen[name] == 1 else f"{name} #{seen[name]}")
        _conclude(case, _ELEMENTS.get(finding["outcome"]), finding["outcome"], finding["message"])
        if finding["outcome"] == "note":
            ET.SubElement(case, "system-out").text = _clean(finding["message"])
    last = _case(suite, verdict, "verdict")
    element = _VERDICT_ELEMENTS.get(verdict["outcome"])
    _conclude(last, element, verdict["outcome"], headline(verdict))

    counts = {
        "tests": len(suite),
        "failures": len(suite.findall("testcase/failure")),
        "errors": len(suite.findall("testcase/error")),
        "skipped": len(suite.findall("testcase/skipped")),
    }
    for each, number in counts.items():
        suite.set(each, str(number))
    suite.set("time", f"{verdict['seconds']:.3f}")
    if verdict["captured_output"]:
        ET.SubElement(suite, "system-out").text = _clean(verdict["captured_output"])
    root = ET.Element("testsuites", suite.attrib)
    root.append(suite)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _case(suite: ET.Element, verdict: Json, name: str) -> ET.Element:
    classname = f"draftproof.{verdict['contract']}.{verdict['profile']}"
    return ET.SubElement(suite, "testcase", classname=_clean(classname), name=_clean(name))


def _conclude(case: ET.Element, element: str | None, outcome: str, message: str) -> None:
    if element == "skipped":
        ET.SubElement(case, element, message=_clean(message))
    elif element is not None:
        ET.SubElement(case, element, type=outcome, message=_clean(message)).text = _clean(message)


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
