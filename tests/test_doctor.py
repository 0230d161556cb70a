"""`draftproof.doctor` tells what is installed, in words and in JSON, and never needs an extra."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from draftproof import doctor
from draftproof.backends import BACKENDS

EXTRA_PACKAGES = ("scipy", "typer", "rich", "matplotlib", "jinja2", "threadpoolctl", "ml_dtypes")


@pytest.fixture
def without_native(monkeypatch):
    monkeypatch.setitem(sys.modules, "draftproof._native", None)


def test_report_survives_json():
    findings = doctor.report()
    assert json.loads(json.dumps(findings)) == findings


def test_this_installation_is_usable():
    findings = doctor.report()
    assert findings["usable"]
    assert set(findings["backends"]) == set(BACKENDS)
    assert findings["backends"]["numpy"] == findings["backends"]["reference"] == "ok"
    assert findings["threads"]["available"] >= 1


def test_a_missing_kernel_is_no_illness_and_comes_with_a_remedy(without_native):
    findings = doctor.report()
    assert findings["usable"]
    assert findings["backends"]["native"] == "missing"
    assert "_native" in findings["native"]["error"]
    assert doctor.INSTALL_NATIVE in doctor.render(findings)


def test_wrong_tokens_are_an_illness(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "_TOKENS", [[0, 0, 0]])
    assert doctor.main([]) == 1
    assert "NOT USABLE" in capsys.readouterr().out


def test_a_backend_that_raises_is_an_illness(monkeypatch):
    def explode(*_args, **_keywords):
        raise RuntimeError("illegal instruction")

    monkeypatch.setattr(doctor, "verify", explode)
    findings = doctor.report()
    assert not findings["usable"]
    assert findings["backends"]["numpy"] == "RuntimeError: illegal instruction"


@pytest.mark.parametrize(
    ("config", "features"),
    [
        ({}, []),
        ({"SIMD Extensions": {"baseline": ["NEON"]}}, ["NEON"]),
        ({"SIMD Extensions": {"found": ["AVX2"], "not found": ["AVX512F"]}}, ["AVX2"]),
        ({"SIMD Extensions": {"baseline": ["SSE"], "found": ["AVX2"]}}, ["SSE", "AVX2"]),
    ],
)
def test_a_numpy_without_extensions_of_one_kind_is_no_illness(monkeypatch, config, features):
    monkeypatch.setattr(np, "show_config", lambda mode: config)
    assert doctor.report()["cpu_features"] == features


def test_a_missing_extra_is_named_with_its_installation(monkeypatch):
    found = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda name: None if name == "rich" else found(name))
    findings = doctor.report()
    assert findings["extras"]["proof"]["rich"] is None
    assert "lacks rich: pip install 'draftproof[proof]'" in doctor.render(findings)


def test_json_option_prints_the_report(capsys):
    assert doctor.main(["--json"]) == 0
    assert json.loads(capsys.readouterr().out)["usable"] is True


def test_words_name_every_backend(capsys):
    assert doctor.main([]) == 0
    printed = capsys.readouterr().out
    assert all(f"{name}: " in printed for name in BACKENDS)


def test_doctor_needs_numpy_alone():
    hide = "".join(f"sys.modules[{name!r}] = None; " for name in EXTRA_PACKAGES)
    code = f"import sys; {hide}from draftproof.__main__ import main; sys.exit(main(['doctor']))"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
