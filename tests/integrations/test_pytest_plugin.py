"""The plugin in a pytest of its own, with a judge that answers at once."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import entry_points

import pytest

from draftproof.proof.verdicts.verdict import Verdict
from tests.report.verdicts import broken, inconclusive, rejected, verdict

pytest_plugins = ["pytester"]

PLUGIN = "draftproof.integrations.pytest_plugin"
LOADED = [] if entry_points(group="pytest11", name="draftproof") else ["-p", PLUGIN]
JUDGE = """
import json, sys, types
from draftproof.proof.verdicts.verdict import Verdict

def check(subject, **options):
    print("judged:", subject, options)
    return Verdict.from_dict(json.loads({text!r}))

sys.modules["draftproof.proof.judge"] = types.ModuleType("draftproof.proof.judge")
sys.modules["draftproof.proof.judge"].check = check
"""
TEST = """
def test_ours(assert_lossless):
    assert assert_lossless("m:f").subject
"""


@pytest.fixture
def run(pytester):
    """Run a test file under a judge that always gives one verdict."""

    def run(source=TEST, *options, ruling=None):
        text = json.dumps((ruling or verdict()).to_dict())
        pytester.makeconftest(JUDGE.format(text=text))
        pytester.makepyfile(source)
        return pytester.runpytest_inprocess(*LOADED, "-rP", "--strict-markers", *options)

    return run


def test_a_lossless_subject_passes_by_the_quick_profile(run):
    result = run()
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["judged: m:f {*'profile': 'quick', 'seed': 0*}"])


@pytest.mark.parametrize("ruling", [rejected(), broken(), inconclusive()])
def test_every_other_verdict_fails_with_the_card_at_the_caller(run, ruling):
    result = run(ruling=ruling)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"*VERDICT: {ruling.outcome} (*"])
    result.stdout.fnmatch_lines(['>*assert_lossless("m:f")*'])
    assert "testing.py" not in result.stdout.str()


def test_the_marker_sets_defaults_and_a_call_overrides_them(run):
    result = run("""
        import pytest

        @pytest.mark.lossless(profile="standard", seed=3)
        def test_ours(assert_lossless):
            assert_lossless("m:f", seed=4)
    """)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["judged: *'profile': 'standard', 'seed': 4*"])


def test_an_unknown_argument_of_the_marker_is_an_error(run):
    result = run("""
        import pytest

        @pytest.mark.lossless(profil="standard")
        def test_ours(assert_lossless):
            assert_lossless("m:f")
    """)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*TypeError*profil*"])


def test_every_verdict_is_reported_even_a_rejection(run, pytester):
    result = run(
        "def test_ours(assert_lossless):\n"
        "    for _ in range(2):\n"
        "        try:\n"
        "            assert_lossless('m:f')\n"
        "        except AssertionError:\n"
        "            pass\n",
        "--draftproof-report",
        "out/reports",
        ruling=rejected(),
    )
    result.assert_outcomes(passed=1)
    folder = pytester.path / "out" / "reports"
    stem = "test_every_verdict_is_reported_even_a_rejection.py-test_ours"
    assert sorted(file.name for file in folder.iterdir()) == [
        f"{stem}-2.html", f"{stem}-2.json", f"{stem}.html", f"{stem}.json"
    ]  # fmt: skip
    data = json.loads((folder / f"{stem}.json").read_text())
    assert Verdict.from_dict(data) == Verdict.from_dict(rejected().to_dict())
    assert "What speaks against it" in (folder / f"{stem}.html").read_text()


def test_without_the_option_nothing_is_written(run, pytester):
    run()
    assert not list(pytester.path.glob("**/*.html"))


def test_loading_the_plugin_imports_numpy_and_pytest_alone():
    code = f"""
import sys
import numpy, pytest
before = set(sys.modules)
import {PLUGIN}
tops = {{name.partition(".")[0] for name in set(sys.modules) - before}}
print(*sorted(tops - sys.stdlib_module_names - {{"draftproof", "numpy"}}))
print(*sorted(name for name in sys.modules if name.startswith("draftproof.proof")))
"""
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout.split() == []
