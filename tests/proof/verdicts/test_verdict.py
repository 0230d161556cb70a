import json
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from draftproof.proof.verdicts import verdict as module
from draftproof.proof.verdicts.finding import Finding, Grade, Outcome
from draftproof.proof.verdicts.verdict import SCHEMA, Conclusion, Verdict
from tests.report.verdicts import ALL, BROKEN, EXACT, LOSSY, broken, inconclusive, rejected, verdict

DOCUMENT = json.loads(Path(module.__file__).with_name("verdict.schema.json").read_text())
TYPES: dict[str, Any] = {
    "object": dict, "array": list, "string": str, "null": type(None),
    "integer": int, "number": (int, float),
}  # fmt: skip
KEYWORDS = {
    "$schema", "$id", "$defs", "$ref", "title", "description", "type", "enum", "const", "anyOf",
    "items", "required", "properties", "additionalProperties", "minimum", "maximum",
}  # fmt: skip


def complaints(value, schema=DOCUMENT, path="$"):
    """What a JSON schema validator would say, for the keywords that our schema uses."""
    assert set(schema) <= KEYWORDS, f"the test does not know {set(schema) - KEYWORDS}"
    if "$ref" in schema:
        schema = DOCUMENT["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    if "anyOf" in schema and all(list(complaints(value, each, path)) for each in schema["anyOf"]):
        yield f"{path}: fits none of anyOf"
    if "const" in schema and value != schema["const"]:
        yield f"{path}: {value!r} is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} is not one of {schema['enum']}"
    if "type" in schema:
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        fits = any(isinstance(value, TYPES[name]) for name in names)
        if not fits or isinstance(value, bool):
            yield f"{path}: {value!r} is no {names}"
            return
    if isinstance(value, int | float):
        if not schema.get("minimum", value) <= value <= schema.get("maximum", value):
            yield f"{path}: {value} is out of range"
    elif isinstance(value, list):
        for i, entry in enumerate(value):
            yield from complaints(entry, schema.get("items", {}), f"{path}[{i}]")
    elif isinstance(value, dict):
        known, rest = schema.get("properties", {}), schema.get("additionalProperties", {})
        yield from (
            f"{path}: lacks {key}" for key in schema.get("required", []) if key not in value
        )
        for key, entry in value.items():
            inner = known.get(key, rest)
            if inner is False:
                yield f"{path}: knows no {key}"
            else:
                yield from complaints(entry, inner, f"{path}.{key}")


@pytest.mark.parametrize("outcome", ALL)
def test_verdicts_fit_the_schema(outcome):
    assert list(complaints(ALL[outcome])) == []


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"exit_code": 2}, "$.exit_code: 2 is not one of"),
        ({"surprise": 1}, "$: knows no surprise"),
        ({"seed": "1"}, "$.seed: '1' is no"),
        ({"seed": True}, "$.seed: True is no"),
        ({"seconds": -1.0}, "$.seconds: -1.0 is out of range"),
        ({"reproducer": {"command": "x"}}, "$.reproducer: fits none"),
        ({"not_covered": [1]}, "$.not_covered[0]: 1 is no"),
        ({"efficiency": {"L4": "1"}}, "$.efficiency.L4: '1' is no"),
        ({"schema": "draftproof/verdict/2"}, "$.schema: 'draftproof/verdict/2' is not"),
    ],
)
def test_the_schema_refuses_what_is_no_verdict(change, complaint):
    found = list(complaints({**ALL["not rejected"], **change}))
    assert len(found) == 1
    assert found[0].startswith(complaint)


def test_the_schema_refuses_what_lacks_a_field():
    for key in ALL["rejected"]:
        lacking = {k: v for k, v in ALL["rejected"].items() if k != key}
        assert list(complaints(lacking)) == [f"$: lacks {key}"]


def test_schema_and_classes_have_the_same_fields():
    parts = {"finding": Finding, "power": module.Power, "control": module.Control,
             "scorecard_row": module.ScorecardRow, "nearest_fault": module.NearestFault,
             "reproducer": module.Reproducer}  # fmt: skip
    for name, part in parts.items():
        assert list(DOCUMENT["$defs"][name]["properties"]) == [each.name for each in fields(part)]
    assert set(DOCUMENT["properties"]) == {
        *(each.name for each in fields(Verdict)), "schema", "exit_code"
    }  # fmt: skip
    assert DOCUMENT["$id"] == SCHEMA


def test_schema_and_classes_know_the_same_words():
    finding = DOCUMENT["$defs"]["finding"]["properties"]
    assert finding["outcome"]["enum"] == [*map(str, Outcome)]
    assert finding["grade"]["enum"] == [*map(str, Grade)]
    assert DOCUMENT["properties"]["outcome"]["enum"] == [*map(str, Conclusion)]


@pytest.mark.parametrize("build", [verdict, rejected, broken, inconclusive])
def test_json_is_read_back_as_it_was_written(build):
    text = json.dumps(build().to_dict(), allow_nan=False)
    again = Verdict.from_dict(json.loads(text))
    assert again == build()
    assert json.dumps(again.to_dict()) == text


def test_arrays_fractions_and_what_json_lacks_become_plain():
    case = {
        "p": np.array([[0.5, np.nan]]), "n": np.int64(3), "third": Fraction(1, 4),
        "tuple": (1, 2), "huge": np.float64("inf"), "flag": np.True_, "none": None,
    }  # fmt: skip
    finding = Finding("x", Outcome.LOSSY, Grade.EXACT, "m", case=case)
    found = verdict(findings=(finding,)).to_dict()["findings"][0]["case"]
    assert found == {
        "p": [[0.5, None]], "n": 3, "third": 0.25, "tuple": [1, 2], "huge": None, "flag": True,
        "none": None,
    }  # fmt: skip
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize("schema", [None, "draftproof/verdict/0"])
def test_another_schema_is_refused(schema):
    with pytest.raises(ValueError, match="wanted 'draftproof/verdict/1'"):
        Verdict.from_dict({**ALL["rejected"], "schema": schema})


def test_every_conclusion_has_its_exit_code():
    codes = {str(each): each.exit_code for each in Conclusion}
    assert codes == {"not rejected": 0, "rejected": 1, "broken": 3, "inconclusive": 4}
    assert rejected().exit_code == rejected().to_dict()["exit_code"] == 1


def test_lossy_findings_decide_before_broken_ones():
    assert rejected().decisive == (LOSSY,)
    assert broken().decisive == (BROKEN,)
    assert verdict().decisive == ()


def test_the_assertion_passes_a_verdict_that_was_not_rejected():
    verdict().assert_not_rejected()


def test_the_assertion_says_what_is_wrong_in_a_few_lines():
    with pytest.raises(AssertionError) as caught:
        rejected().assert_not_rejected()
    assert str(caught.value).splitlines() == [
        "VERDICT: rejected (mine.py:verify: exact law: total variation 0.1445 on L4)",
        f"check exact law in world L4, g = 2, K = 3: {LOSSY.message}",
        "  (0, 1, 2): 0.007812, the target has 0.023438",
        "  (3, 0, 0): 0.023438, the target has 0.007812",
        "nearest known fault: residual |p - q| (naive #19)",
        "reproduce: draftproof check mine.py:verify --seed 7",
    ]


@pytest.mark.parametrize("build", [broken, inconclusive])
def test_the_assertion_fails_whatever_is_not_shown(build):
    with pytest.raises(AssertionError, match=f"VERDICT: {build().outcome}"):
        build().assert_not_rejected()


def test_a_finding_without_a_world_has_no_place():
    line = broken(findings=(BROKEN, EXACT)).summary().splitlines()[1]
    assert line == f"check shape: {BROKEN.message}"


def test_every_field_is_documented():
    text = (Path(__file__).parents[3] / "docs" / "reference" / "verdict.md").read_text()
    parts = [DOCUMENT, *DOCUMENT["$defs"].values()]
    names = {name for part in parts for name in part["properties"]}
    assert [name for name in sorted(names) if f"`{name}`" not in text] == []
