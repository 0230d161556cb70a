import json
from importlib import metadata

import pytest
from typer.testing import CliRunner

import draftproof.doctor
from draftproof import cli
from draftproof.proof.controls import CONTROLS, correct
from draftproof.proof.first_evidence import Trial, first_evidence

WRONG = next(iter(CONTROLS.values()))


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


@pytest.mark.parametrize("command", [(), ("doctor",), ("practice",), ("proof",)])
def test_every_command_and_option_has_a_help_text(command):
    assert run(*command, "--help").exit_code == 0


@pytest.mark.parametrize("arguments", [("nonsense",), ("practice",), ("proof", "--sequences", "5")])
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


def test_proof_shows_a_table_and_ends_with_the_verdict(tmp_path):
    file = tmp_path / "evidence.json"
    result = run("proof", "--sequences", "3000", "--json", file)
    assert (result.exit_code, result.stderr) == (0, "")
    evidence = json.loads(file.read_text())
    for finding in evidence["findings"]:
        assert finding["name"] in result.stdout
    last = result.stdout.splitlines()[-1]
    assert last == f"VERDICT: not rejected ({evidence['reason']})"
    assert evidence == first_evidence(sequences=3_000)


@pytest.mark.parametrize(
    ("trials", "code", "verdict"),
    [
        ([Trial("x", correct), Trial("c", WRONG, is_control=True)], 0, "not rejected"),
        ([Trial("x", WRONG), Trial("c", WRONG, is_control=True)], 1, "rejected"),
        ([Trial("x", correct), Trial("c", correct, is_control=True)], 4, "inconclusive"),
    ],
)
def test_the_exit_code_of_proof_is_its_verdict(monkeypatch, trials, code, verdict):
    evidence = first_evidence(trials, sequences=3_000)
    monkeypatch.setattr(cli, "first_evidence", lambda **_: evidence)
    result = run("proof")
    assert result.exit_code == code
    assert result.stdout.splitlines()[-1].startswith(f"VERDICT: {verdict} (")


def test_proof_refuses_a_file_that_cannot_be_written_before_it_works(monkeypatch, tmp_path):
    monkeypatch.setattr(cli, "first_evidence", lambda **_: pytest.fail("it worked"))
    result = run("proof", "--json", tmp_path / "nowhere" / "evidence.json")
    assert result.exit_code == 2
    assert "Usage:" in result.stderr


def test_proof_names_the_extra_that_is_missing(monkeypatch):
    def without_scipy(**_):
        raise ModuleNotFoundError(
            "The joint test needs SciPy. Fix: pip install 'draftproof[proof]'."
        )

    monkeypatch.setattr(cli, "first_evidence", without_scipy)
    result = run("proof")
    assert result.exit_code == 2
    assert result.stderr == (
        "Error: The joint test needs SciPy. Fix: pip install 'draftproof[proof]'.\n"
    )
