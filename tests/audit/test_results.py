"""The audit's table survives its file, its page is made from it, every package is pinned."""

from __future__ import annotations

from dataclasses import replace

import pytest

from audit.environments import requirements_of
from audit.page import CONFIRMED, PAGE, page
from audit.results import read_results, result_of, with_results, write_results
from bench.machine import Machine
from draftproof.integrations.public.table import ADAPTERS
from tests.report.verdicts import rejected, verdict

MACHINE = Machine("2030-01-02", "Linux x86_64; 2 CPUs", "a CPU", "3.13", "2.4", "abc")
VERSIONS = {"dflash": "0.1.0", "torch": "2.13.0", "flashspec": "0.3.1"}


@pytest.fixture
def right():
    return result_of(ADAPTERS["dflash"], verdict().to_dict(), VERSIONS, "own", MACHINE)


@pytest.fixture
def wrong():
    return result_of(ADAPTERS["flashspec"], rejected().to_dict(), VERSIONS, "given", MACHINE)


def test_a_line_says_what_the_verdict_says(right, wrong):
    assert (right.verdict, right.version, right.torch) == ("not rejected", "0.1.0", "2.13.0")
    assert right.total_variation is None
    assert right.reproduce.startswith("draftproof check dflash --profile ")
    assert wrong.verdict == "rejected"
    assert wrong.total_variation is not None


def test_lines_survive_their_file(right, wrong, tmp_path):
    file = tmp_path / "results.csv"
    write_results([right, wrong], file)
    assert read_results(file) == [right, wrong]


def test_a_file_that_is_not_there_has_no_lines(tmp_path):
    assert read_results(tmp_path / "none.csv") == []


def test_a_new_line_takes_the_place_of_the_old_one(right, wrong):
    newer = replace(right, seconds=9.0)
    assert with_results([right, wrong], [newer]) == [newer, wrong]


def test_the_page_names_the_right_ones_first_and_what_is_declared_lossy_apart(right, wrong):
    declared = replace(wrong, name="flashspec-typical", claims_lossless=False)
    text = page([wrong, declared, right])
    places = [text.index(f"`{name}`") for name in ("dflash", "flashspec", "flashspec-typical")]
    assert places == sorted(places)
    assert "as their own documentation says" in text


def test_the_page_marks_what_was_judged_in_a_shared_environment(right, wrong):
    own = replace(right, environment="own")
    assert "*" not in page([own]).replace("**", "")
    text = page([own, wrong])
    assert "Those marked *" in text
    assert "`flashspec` *" in text
    assert "`dflash` *" not in text


def test_the_committed_page_is_made_from_the_committed_table():
    assert PAGE.read_text(encoding="utf-8") == page(read_results())


def test_what_the_committed_table_rejects_is_confirmed_by_a_script():
    wrong = [r for r in read_results() if r.verdict == "rejected" and r.claims_lossless]
    assert all((CONFIRMED / f"{r.name.replace('-', '_')}.py").exists() for r in wrong)


@pytest.mark.parametrize("package", sorted({a.package for a in ADAPTERS.values()}))
def test_every_package_is_pinned_with_all_that_it_needs(package):
    pins = _pins(package)
    assert all("==" in pin for pin in pins)
    tested = {a.tested for a in ADAPTERS.values() if a.package == package}
    assert f"{package}=={tested.pop()}" in pins
    assert not tested


@pytest.mark.parametrize("package", sorted({a.package for a in ADAPTERS.values()}))
def test_the_judge_asks_for_no_other_versions_than_the_package(package):
    """Otherwise it would be installed over what was pinned."""
    own, asked = (dict(pin.split("==") for pin in _pins(p)) for p in (package, "draftproof"))
    assert "numpy" in own
    assert {name: own[name] for name in own.keys() & asked} == {
        name: asked[name] for name in own.keys() & asked
    }


def _pins(package):
    lines = requirements_of(package).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]
