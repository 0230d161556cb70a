"""`pip install` of the source distribution in clean environments, with and without a compiler."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import time
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sdist")
    command = [sys.executable, "-m", "build", "--sdist", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    (archive,) = folder.glob("draftproof-*.tar.gz")
    return archive


@pytest.fixture
def source(sdist, tmp_path):
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / sdist.name.removesuffix(".tar.gz")


@pytest.fixture
def python(tmp_path):
    venv.create(tmp_path / "venv", with_pip=True)
    return tmp_path / "venv" / "bin" / "python"


def install(python, source, **environment):
    start = time.perf_counter()
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", source],
        check=True,
        env={**os.environ, "DRAFTPROOF_REQUIRE_NATIVE": "0", **environment},
    )
    print(f"pip install took {time.perf_counter() - start:.1f} s")


def examine(python):
    """What the doctor says there, seen from a folder without sources."""
    run = subprocess.run(
        [python, "-m", "draftproof", "doctor", "--json"],
        check=True,
        capture_output=True,
        cwd=python.parent,
    )
    return json.loads(run.stdout)


def installed_packages(python):
    command = [python, "-m", "pip", "list", "--format", "json"]
    run = subprocess.run(command, check=True, capture_output=True)
    return {package["name"] for package in json.loads(run.stdout)}


def installed_files(python):
    command = [python, "-m", "pip", "show", "--files", "draftproof"]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    return run.stdout.partition("Files:")[2].split()


def test_with_a_compiler_the_kernel_is_there_and_nothing_but_numpy_comes_along(python, source):
    install(python, source)
    assert examine(python)["backends"] == {"native": "ok", "numpy": "ok", "reference": "ok"}
    assert installed_packages(python) - {"pip", "setuptools"} == {"draftproof", "numpy"}
    files = installed_files(python)
    assert "draftproof/py.typed" in files
    assert [name for name in files if "csrc" in name] == []


def test_without_a_compiler_the_package_is_pure(python, source):
    install(python, source, CC="/bin/false", CXX="/bin/false")
    findings = examine(python)
    assert findings["usable"]
    assert findings["backends"] == {"native": "missing", "numpy": "ok", "reference": "ok"}


def test_a_kernel_that_does_not_compile_is_as_good_as_no_compiler(python, source):
    binding = source / "src" / "draftproof" / "kernels" / "csrc" / "binding.cpp"
    binding.write_text("#error this machine's compiler refuses\n")
    install(python, source)
    findings = examine(python)
    assert findings["usable"]
    assert findings["backends"]["native"] == "missing"
    (tags,) = [name for name in installed_files(python) if name.endswith("/WHEEL")]
    site = next((python.parents[1] / "lib").glob("python*/site-packages"))
    assert "Tag: py3-none-any" in (site / tags).read_text()


def test_a_build_that_requires_the_kernel_fails_without_it(python, source):
    with pytest.raises(subprocess.CalledProcessError):
        install(python, source, CXX="/bin/false", DRAFTPROOF_REQUIRE_NATIVE="1")
