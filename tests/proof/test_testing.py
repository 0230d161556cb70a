import json
import sys
import types

import pytest

from draftproof.proof.testing import assert_lossless
from tests.report.verdicts import broken, inconclusive, rejected, verdict


@pytest.fixture
def rule(monkeypatch):
    """Make the judge give one verdict, and remember what it was asked."""

    def rule(ruling):
        asked = []
        judge = types.ModuleType("draftproof.proof.judge")

        def check(subject, **options):
            asked.append((subject, options))
            return ruling

        judge.__dict__["check"] = check
        monkeypatch.setitem(sys.modules, "draftproof.proof.judge", judge)
        return asked

    return rule


def test_a_lossless_subject_gives_its_verdict(rule):
    asked = rule(verdict())
    assert assert_lossless("m:f", profile="standard", timeout=9.0) == verdict()
    options = {"contract": None, "profile": "standard", "seed": 0, "timeout": 9.0}
    assert asked == [("m:f", options)]


@pytest.mark.parametrize("build", [rejected, broken, inconclusive])
def test_every_other_verdict_raises_with_the_card(rule, build):
    rule(build())
    with pytest.raises(AssertionError) as caught:
        assert_lossless("m:f")
    lines = str(caught.value).splitlines()
    assert lines[0] == "not shown to be lossless"
    assert lines[-1].startswith(f"VERDICT: {build().outcome} (")
    assert any(line.startswith("NOT covered") for line in lines)


def test_a_report_is_written_whatever_the_verdict(rule, tmp_path):
    rule(rejected())
    with pytest.raises(AssertionError):
        assert_lossless("m:f", report=tmp_path / "deep" / "v1.0")
    data = json.loads((tmp_path / "deep" / "v1.0.json").read_text())
    assert data == rejected().to_dict()
    assert "Rejected" in (tmp_path / "deep" / "v1.0.html").read_text()
