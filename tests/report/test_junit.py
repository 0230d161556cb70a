import xml.etree.ElementTree as ET
from typing import Any

import pytest

from draftproof.report.junit import junit_xml
from tests.report.verdicts import ALL, EXACT, broken, verdict


def tree(data) -> Any:
    return ET.fromstring(junit_xml(data))


def cases(data):
    return {case.get("name"): case for case in tree(data).findall("testsuite/testcase")}


@pytest.mark.parametrize("outcome", ALL)
def test_the_counts_are_right_and_every_finding_has_a_case(outcome):
    root = tree(ALL[outcome])
    suite = root.find("testsuite")
    assert int(suite.get("tests")) == len(ALL[outcome]["findings"]) + 1
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert int(suite.get(name)) == len(root.findall(f".//{tag}")) == int(root.get(name))


@pytest.mark.parametrize("outcome", ALL)
def test_a_run_fails_exactly_when_the_exit_code_is_not_0(outcome):
    suite = tree(ALL[outcome]).find("testsuite")
    failed = int(suite.get("failures")) + int(suite.get("errors")) > 0
    assert failed == (ALL[outcome]["exit_code"] != 0)
    assert failed == (cases(ALL[outcome])["verdict"].find("*") is not None)


def test_outcomes_become_elements():
    of = cases(ALL["rejected"])
    assert of["exact law (world L4, g = 2, K = 3)"].find("failure").get("type") == "lossy"
    assert of["shape"].find("error").get("type") == "broken"
    assert cases(ALL["broken"])["exact law"].find("skipped") is not None
    assert "entropy" in cases(ALL["not rejected"])["seeds"].findtext("system-out")


def test_equal_names_are_numbered():
    names = list(cases(verdict(findings=(EXACT, EXACT)).to_dict()))
    assert names[1] == f"{names[0]} #2"


def test_characters_that_xml_cannot_hold_are_replaced():
    text = junit_xml(broken(captured_output="a\x00b\x1b[0m\ud800").to_dict())
    text.encode()
    assert ET.fromstring(text).findtext(".//testsuite/system-out") == "a\ufffdb\ufffd[0m\ufffd"
