"""Every name leads to an adapter; what is missing is told with the command that mends it."""

from __future__ import annotations

import importlib
import inspect
from importlib.metadata import PackageNotFoundError

import pytest
from typer.testing import CliRunner

from draftproof.cli import app
from draftproof.integrations.public import table
from draftproof.integrations.public.table import ADAPTERS, find_adapter

PARAMETERS = {
    "single": ["draft", "q", "p", "rng"],
    "ragged": ["draft", "q", "p", "num_draft", "rng"],
    "greedy": ["draft", "p", "num_draft"],
    "round": ["world"],
    "generate": ["world"],
}


@pytest.fixture
def installed(monkeypatch):
    """Say which packages there are."""

    def install(versions):
        def version(package):
            if package not in versions:
                raise PackageNotFoundError(package)
            return versions[package]

        monkeypatch.setattr(table, "version", version)

    return install


def run(*arguments):
    return CliRunner().invoke(app, ["check", *arguments])


@pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=lambda adapter: adapter.name)
def test_a_name_leads_to_a_callable_of_its_contract_without_the_package(adapter):
    module, _, attribute = adapter.spec.partition(":")
    call = getattr(importlib.import_module(module), attribute)
    assert list(inspect.signature(call).parameters) == PARAMETERS[adapter.contract]


def test_an_installed_package_of_any_version_will_do(installed):
    installed({"dflash": "9.9"})
    assert find_adapter("dflash") is ADAPTERS["dflash"]


def test_a_missing_package_is_named_with_its_pip_command(installed):
    installed({})
    with pytest.raises(ValueError, match=r"needs the package dflash\. Fix: pip install dflash==0"):
        find_adapter("dflash")


def test_an_unknown_name_is_told_the_nearest(installed):
    installed({})
    with pytest.raises(ValueError, match=r"'flashspek'.*Did you mean flashspec\?.*--list"):
        find_adapter("flashspek")


def test_check_hands_a_name_to_the_judge_as_its_adapter_and_contract(installed, monkeypatch):
    asked = []

    def judge(subject, *, contract, **_):
        asked.append((subject, contract))
        raise ValueError("enough")

    installed({"dflash": "0.1.0"})
    monkeypatch.setattr("draftproof.proof.judge.check", judge)
    run("dflash")
    run("dflash", "--contract", "ragged")
    run("module:attr")
    spec = "draftproof.integrations.public.dflash:verify"
    assert asked == [(spec, "single"), (spec, "ragged"), ("module:attr", None)]


def test_check_refuses_a_name_in_one_line(installed):
    installed({})
    result = run("dflash")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: subject: dflash needs the package dflash.")


def test_check_lists_the_names_with_what_is_installed(installed):
    installed({"dflash": "7.7.7"})
    result = run("--list")
    assert result.exit_code == 0
    assert all(name[:20] in result.stdout for name in ADAPTERS)
    assert "7.7.7" in result.stdout
