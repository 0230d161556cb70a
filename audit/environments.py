"""One environment for each package: its pinned requirements, and this draftproof."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

__all__ = ["FOLDER", "REQUIREMENTS", "build_environment", "build_wheel", "requirements_of"]

ROOT = Path(__file__).parents[1]
REQUIREMENTS = Path(__file__).parent / "requirements"
FOLDER = ROOT / "build" / "audit"
"""Environments, and whole verdicts as JSON."""
NO_DEPS = "# --no-deps"
"""The first line of a file to install as it is: its package asks for what no CPU has."""


def requirements_of(package: str) -> Path:
    """Return a package's file of pinned requirements; draftproof's own are constraints."""
    return REQUIREMENTS / f"{package}.txt"


def build_wheel() -> Path:
    """Build draftproof without its native kernel: the judge needs none."""
    command = [
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "--config-settings",
        "wheel.cmake=false",
    ]
    _pip(Path(sys.executable), *command, "--wheel-dir", str(FOLDER), str(ROOT))
    return max(FOLDER.glob("draftproof-*.whl"), key=lambda wheel: wheel.stat().st_mtime)


def build_environment(package: str, wheel: Path) -> Path:
    """Make a package's environment, or bring it up to date, and return its Python."""
    place = FOLDER / package
    python = place / "bin" / "python"
    file = requirements_of(package)
    done = place / "requirements.txt"
    if not done.exists() or done.read_text() != file.read_text():
        subprocess.run(
            [sys.executable, "-m", "venv", "--clear", "--without-pip", str(place)], check=True
        )
        pinned = ["--no-deps"] if file.read_text().startswith(NO_DEPS) else []
        _install(python, *pinned, "--requirement", str(file))
        done.write_text(file.read_text())
    _install(python, "--constraint", str(requirements_of("draftproof")), f"{wheel}[proof]")
    _install(python, "--no-deps", "--force-reinstall", str(wheel))
    return python


def _install(python: Path, *arguments: str) -> None:
    """Leave it to the first import to compile: most of PyTorch is never imported."""
    _pip(python, "install", "--no-compile", *arguments)


def _pip(python: Path, *arguments: str) -> None:
    """Run this environment's pip for another: theirs have none."""
    options = ["-qq", "--disable-pip-version-check", "--python", str(python)]
    subprocess.run([sys.executable, "-m", "pip", *options, *arguments], check=True)
