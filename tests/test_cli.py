import io
import json
import sys
import types
import xml.etree.ElementTree as ET
from importlib import metadata

import numpy as np
import pytest
import rich.console
from typer.testing import CliRunner

import draftproof.doctor
from draftproof import AcceptanceRecord, cli
from draftproof.proof import reproduce as figures_of
from draftproof.proof.figure import Figure
from draftproof.proof.worlds.catalogue import WORLDS
from draftproof.proof.worlds.wide import WIDE_WORLDS
from tests.report.verdicts import ALL, broken, inconclusive, rejected, verdict


def run(*arguments):
    return CliRunner().invoke(cli.app, list(map(str, arguments)))


def test_version():
    result = run("--version")
    assert (result.exit_code, result.stdout) == (
        0,
        f"draftproof {metadata.version('draftproof')}\n",
    )


def test_without_a_command_the_help_is_shown():
    result = run()
    assert result.exit_code == 2
    assert "Lossless verification" in result.output


@pytest.mark.parametrize(
    "command",
    [
        (),
        *[(name,) for name in ("doctor", "practice", "check", "worlds", "mutants")],
        *[(name,) for name in ("reproduce", "plan")],
    ],
)
def test_every_command_and_option_has_a_help_text(command):
    assert run(*command, "--help").exit_code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("practice",),
        ("check", "m:f", "--contract", "raged"),
        ("check", "m:f", "--profile", "slow"),
        ("check", "m:f", "--against", "all"),
        ("check", "m:f", "--seed", "-1"),
        ("check", "m:f", "--timeout", "0"),
    ],
)
def test_wrong_usage_exits_with_2_and_no_traceback(arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert isinstance(result.exception, SystemExit)
    assert "Usage:" in result.stderr


@pytest.mark.parametrize(("options", "argv"), [([], []), (["--json"], ["--json"])])
@pytest.mark.parametrize("code", [0, 1])
def test_doctor_hands_over_its_options_and_exit_code(monkeypatch, options, argv, code):
    seen = []

    def examine(argv):
        seen.append(argv)
        return code

    monkeypatch.setattr(draftproof.doctor, "main", examine)
    assert run("doctor", *options).exit_code == code
    assert seen == [argv]


def test_practice_writes_a_stub(tmp_path):
    file = tmp_path / "mine.py"
    result = run("practice", "--init", file)
    assert (result.exit_code, result.stderr) == (0, "")
    assert f"python {file}" in result.stdout
    assert "NotImplementedError" in file.read_text()


def test_practice_replaces_a_file_only_by_force(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("my work")
    result = run("practice", "--init", file)
    assert result.exit_code == 2
    assert result.stderr == (
        f"Error: {file} exists. Choose another name, or replace it with --force.\n"
    )
    assert file.read_text() == "my work"
    assert run("practice", "--init", file, "--force").exit_code == 0
    assert "NotImplementedError" in file.read_text()


def test_practice_names_a_file_that_cannot_be_written(tmp_path):
    file = tmp_path / "nowhere" / "mine.py"
    result = run("practice", "--init", file)
    assert result.exit_code == 2
    assert result.stderr == f"Error: {file} cannot be written: No such file or directory.\n"


@pytest.fixture
def judge(monkeypatch):
    """Put a judge in place that gives one verdict; return what it is asked."""

    def install(ruling):
        asked = []

        def check(subject, *, on_progress, **options):
            asked.append((subject, options))
            on_progress(1, 2, "exact law")
            if isinstance(ruling, Exception):
                raise ruling
            return ruling

        module = types.ModuleType("draftproof.proof.judge")
        module.__dict__["check"] = check
        monkeypatch.setitem(sys.modules, "draftproof.proof.judge", module)
        return asked

    return install


@pytest.mark.parametrize("build", [verdict, rejected, broken, inconclusive])
def test_check_prints_the_card_and_exits_by_the_verdict(judge, build):
    judge(build())
    result = run("check", "m:f")
    assert result.exit_code == build().exit_code
    assert result.stderr == ""
    last = result.stdout.splitlines()[-1]
    assert last.startswith(f"VERDICT: {build().outcome} (")


def test_check_hands_over_its_options(judge):
    asked = judge(verdict())
    run("check")
    run("check", "a.py:f", "--contract", "single", "--profile", "quick", "--seed", "5", "--timeout",
        "2.5", "--fail-fast", "--against", "mutants")  # fmt: skip
    assert asked == [
        (None, {"contract": None, "profile": "standard", "seed": 0, "timeout": None,
                "fail_fast": False, "against_mutants": False}),
        ("a.py:f", {"contract": "single", "profile": "quick", "seed": 5, "timeout": 2.5,
                    "fail_fast": True, "against_mutants": True}),
    ]  # fmt: skip


def test_check_writes_json_page_and_junit(judge, tmp_path):
    judge(rejected(captured_output="caf\u00e9 \ud800"))
    files = [tmp_path / name for name in ("v.json", "v.html", "v.xml")]
    result = run("check", "m:f", "--json", files[0], "--html", files[1], "--junit", files[2])
    assert result.exit_code == 1
    data = json.loads(files[0].read_text(encoding="utf-8"))
    assert {**data, "captured_output": "hello\n"} == ALL["rejected"]
    assert "caf\u00e9" in files[1].read_text(encoding="utf-8")
    assert ET.fromstring(files[2].read_text(encoding="utf-8")).get("failures") == "2"


def test_check_refuses_a_file_that_cannot_be_written_before_it_judges(judge, tmp_path):
    asked = judge(verdict())
    assert run("check", "m:f", "--html", tmp_path / "nowhere" / "v.html").exit_code == 2
    assert asked == []


def test_check_refuses_a_subject_that_cannot_be_judged_in_one_line(judge):
    judge(ValueError("subject: there is no module nonsense."))
    result = run("check", "nonsense:f")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "Error: subject: there is no module nonsense.\n"


def test_check_names_the_extra_that_is_missing(judge):
    judge(ModuleNotFoundError("No module named 'jinja2'", name="jinja2"))
    result = run("check")
    assert result.exit_code == 2
    assert result.stderr == (
        "Error: this command needs jinja2. Fix: pip install 'draftproof[proof]'.\n"
    )


def test_check_does_not_hide_a_fault_of_its_own(judge):
    judge(ModuleNotFoundError("No module named 'draftproof.x'", name="draftproof.x"))
    assert isinstance(run("check").exception, ModuleNotFoundError)


@pytest.mark.parametrize(("ci", "shown"), [("", True), ("true", False)])
def test_progress_is_shown_on_a_terminal_and_not_in_ci(judge, monkeypatch, ci, shown):
    judge(verdict())
    monkeypatch.setenv("CI", ci)
    terminal = io.StringIO()

    def console(*, stderr=False, **options):
        file = terminal if stderr else io.StringIO()
        return original(file=file, force_terminal=stderr, **options)

    original = rich.console.Console
    monkeypatch.setattr(cli, "Console", console)
    run("check")
    assert ("exact law" in terminal.getvalue()) == shown


def test_worlds_are_listed():
    result = run("worlds")
    assert result.exit_code == 0
    assert all(name in result.stdout for name in [*WORLDS, *WIDE_WORLDS])
    rows = {row["name"]: row for row in json.loads(run("worlds", "--json").stdout)}
    assert rows["L4"]["target"][0] == ["3/8", "1/4", "1/4", "1/8"]
    assert rows["toy"]["tokens"] == 2


def test_mutants_are_listed(monkeypatch):
    row = {
        "name": "accept always",
        "kind": "lossy",
        "total_variation": 0.34375,
        "caught_by": "oracle",
        "public": "x #1",
        "does": "Accepts every draft",
        "note": "",
    }
    rows = [row, {**row, "name": "unseen", "total_variation": None}]

    def table():
        print("a subject prints")
        return rows

    tree = {**row, "name": "no update", "caught_by": "tree-oracle"}
    monkeypatch.setattr("draftproof.proof.mutants.table", table)
    monkeypatch.setattr("draftproof.proof.trees.gallery.tree_table", lambda: [tree])
    logits = {**row, "name": "raw bonus", "caught_by": "logits-oracle"}
    monkeypatch.setattr("draftproof.proof.logits.gallery.logits_table", lambda: [logits])
    result = run("mutants")
    assert result.exit_code == 0
    assert "accept always lossy" in " ".join(result.stdout.split())
    assert "0.34375" in result.stdout
    assert json.loads(run("mutants", "--json").stdout) == [*rows, tree, logits]


@pytest.mark.parametrize(
    ("measured", "code", "last"),
    [(3.0, 0, "REPRODUCED: all 1 values met"), (3.5, 1, "REPRODUCED: missed: tokens")],
)
def test_reproduce_fails_on_a_miss(monkeypatch, measured, code, last):
    figure = Figure("tokens", 3.0, measured, "a paper")
    monkeypatch.setattr(figures_of, "reproduce", lambda: [figure])
    result = run("reproduce")
    assert result.exit_code == code
    assert result.stdout.splitlines()[-1] == last
    as_json = run("reproduce", "--json")
    assert as_json.exit_code == code
    assert json.loads(as_json.stdout) == [figure.to_dict()]


def test_plan_reads_rounds_records_and_rates(tmp_path):
    q, p = np.full((1, 2, 2), 0.5), np.array([[[0.25, 0.75], [1.0, 0.0], [0.5, 0.5]]])
    np.savez(tmp_path / "rounds.npz", draft_token_ids=[[0, 0]], draft_probs=q, target_probs=p)
    result = run("plan", tmp_path / "rounds.npz", "--cost-ratio", 0.1)
    assert result.exit_code == 0
    assert "make 6 drafts in a tree of 2 + 4 nodes and verify by rrsw: 3 tokens" in result.stdout
    chains = run("plan", tmp_path / "rounds.npz", "--cost-ratio", 0.1, "--nodes", 0)
    assert "make 2 drafts and verify by block: 2.5 tokens" in chains.stdout
    (tmp_path / "record.json").write_text(json.dumps(AcceptanceRecord().to_dict()))
    nothing = run("plan", tmp_path / "record.json", "--cost-ratio", 0.1)
    assert "do not speculate" in nothing.stdout
    rows = json.loads(run("plan", "--alpha", 0.8, "--cost-ratio", 0.1, "--json").stdout)
    assert [(row["alpha"], row["num_draft"]) for row in rows] == [(0.8, 6)]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--cost-ratio", 0.1),
        ("--alpha", 0.8),
        ("--alpha", 1.0, "--cost-ratio", 0.1),
        ("--alpha", 0.8, "--cost-ratio", 0),
        ("nowhere.npz", "--cost-ratio", 0.1),
        (__file__, "--cost-ratio", 0.1),
    ],
)
def test_plan_refuses_what_it_cannot_plan_from(arguments):
    result = run("plan", *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
