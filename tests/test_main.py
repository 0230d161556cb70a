"""`python -m draftproof`: the doctor by itself, all else through the command line's extra."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from draftproof.__main__ import main


def test_doctor_does_not_import_the_command_line(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "draftproof.cli", None)
    assert main(["doctor"]) == 0
    assert capsys.readouterr().out.startswith("draftproof")


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_a_missing_package_is_one_clear_line(monkeypatch, capsys, package):
    def import_cli(name, *arguments, **keywords):
        if name == "draftproof.cli":
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)
        return original(name, *arguments, **keywords)

    import builtins

    original = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", import_cli)
    assert main(["proof"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert package in printed.err
    assert "pip install 'draftproof[proof]'" in printed.err


def test_a_fault_of_ours_is_neither_a_rejection_nor_blamed_on_the_extra(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "draftproof.cli", None)
    assert main(["proof"]) == 70
    printed = capsys.readouterr().err
    assert "ModuleNotFoundError: import of draftproof.cli halted" in printed
    assert "pip install" not in printed


def test_other_commands_go_to_the_command_line(monkeypatch):
    calls = []
    cli = SimpleNamespace(app=lambda arguments, prog_name: calls.append((arguments, prog_name)))
    monkeypatch.setitem(sys.modules, "draftproof.cli", cli)
    assert main(["proof", "--fast"]) == 0
    assert calls == [(["proof", "--fast"], "draftproof")]


def test_module_is_runnable():
    subprocess.run([sys.executable, "-m", "draftproof", "doctor"], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("options", "unbuffered", "codes"),
    [
        (["doctor"], "", {0}),
        (["doctor", "--json"], "", {0}),
        (["doctor"], "1", {141}),
        (["doctor", "--help"], "", {0, 141}),
        (["worlds"], "1", {141}),
    ],
)
def test_a_command_ends_quietly_where_nobody_reads_on(options, unbuffered, codes):
    """As in ``doctor | head -1``: no traceback, and no verdict where there was none yet."""
    with subprocess.Popen(
        [sys.executable, "-m", "draftproof", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
    ) as program:
        assert program.stdout is not None
        assert program.stderr is not None
        program.stdout.close()
        complaints = program.stderr.read()
    assert complaints == b""
    assert program.returncode in codes


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
@pytest.mark.parametrize("command", ["doctor", "worlds"])
def test_a_full_disk_is_one_clear_line(command):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "draftproof", command], stdout=full, stderr=subprocess.PIPE
        )
    assert done.returncode == 74
    assert done.stderr == b"draftproof: the output cannot be written: no space is left\n"
