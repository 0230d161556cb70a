"""The house itself: what importing costs, which layer may import which, names, sizes, metadata."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from validate_pyproject.api import Validator

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "draftproof"
MODULES = sorted(PACKAGE.rglob("*.py"))
LONGEST_FILE = 600


def dotted_name(path):
    """'draftproof.kernels.threads' for its file; a package is the name of its folder."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_modules(source, package):
    """Every module that a source imports anywhere; `from a import b` counts as a and as a.b."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: -node.level + 1 or None] if node.level else []
            module = ".".join([*above, *filter(None, [node.module])])
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def imports_of(path):
    name = dotted_name(path)
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    return set(imported_modules(path.read_text(), package))


def inside(module, package):
    return module == package or module.startswith(package + ".")


@pytest.mark.parametrize(
    ("source", "imported"),
    [
        ("import draftproof.kernels.threads", "draftproof.kernels.threads"),
        ("from draftproof import kernels", "draftproof.kernels"),
        ("from draftproof.kernels import threads", "draftproof.kernels.threads"),
        ("def f():\n    from draftproof.kernels.threads import x", "draftproof.kernels.threads"),
        ("from ..kernels import threads", "draftproof.kernels.threads"),
        ("from .. import kernels", "draftproof.kernels"),
        ("from . import worlds", "draftproof.proof.worlds"),
    ],
)
def test_every_spelling_of_an_import_is_seen(source, imported):
    assert imported in set(imported_modules(source, "draftproof.proof"))


@pytest.mark.parametrize("layer", ["reference", "proof"])
def test_truth_and_judge_never_import_what_they_judge(layer):
    modules = sorted((PACKAGE / layer).rglob("*.py"))
    assert modules
    culprits = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules
        for name in imports_of(path)
        if inside(name, "draftproof.kernels") or inside(name, "draftproof._native")
    ]
    assert culprits == []


def test_the_command_line_alone_opens_the_doors():
    culprits = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in MODULES
        if path.name != "cli.py" and not inside(dotted_name(path), "draftproof.integrations")
        for name in imports_of(path)
        if inside(name, "draftproof.integrations")
    ]
    assert culprits == []


def test_no_file_is_named_after_nothing():
    nameless = {"utils", "util", "helpers", "helper", "common", "misc"}
    assert [path for path in PACKAGE.rglob("*") if path.stem in nameless] == []


def test_no_file_is_too_long():
    sources = [*MODULES, *PACKAGE.rglob("*.hpp"), *PACKAGE.rglob("*.cpp")]
    lengths = {path.name: len(path.read_text().splitlines()) for path in sources}
    assert {name: length for name, length in lengths.items() if length > LONGEST_FILE} == {}


def test_importing_the_package_imports_numpy_and_the_standard_library_alone():
    code = """
import sys
import numpy
before = set(sys.modules)
import draftproof
tops = {name.partition(".")[0] for name in set(sys.modules) - before}
print(*sorted(tops - sys.stdlib_module_names - {"numpy", "draftproof"}))
"""
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout.split() == []


def test_pyproject_is_valid():
    Validator()(tomllib.loads((ROOT / "pyproject.toml").read_text()))


def test_the_project_depends_on_numpy_alone():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert [requirement.partition(">=")[0] for requirement in project["dependencies"]] == ["numpy"]


@pytest.mark.parametrize(
    ("platform", "systems"),
    [
        (
            "linux",
            [
                f"{libc}_{cpu}"
                for libc in ("manylinux", "musllinux")
                for cpu in ("x86_64", "aarch64")
            ],
        ),
        ("macos", ["macosx_x86_64", "macosx_arm64"]),
    ],
)
def test_the_release_builds_these_wheels(platform, systems):
    command = [sys.executable, "-m", "cibuildwheel", "--print-build-identifiers"]
    run = subprocess.run(
        [*command, "--platform", platform, str(ROOT)], check=True, capture_output=True, text=True
    )
    pythons = ["cp311", "cp312", "cp313", "cp314", "cp314t"]
    assert set(run.stdout.split()) == {
        f"{python}-{system}" for python in pythons for system in systems
    }
