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
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True)
        pinned = ["--no-deps"] if file.read_text().startswith(NO_DEPS) else []
        _pip(python, "install", *pinned, "--requirement", str(file))
        done.write_text(file.read_text())
    _pip(python, "install", "--constraint", str(requirements_of("draftproof")), f"{wheel}[proof]")
    _pip(python, "install", "--no-deps", "--force-reinstall", str(wheel))
    return python


def _pip(python: Path, *arguments: str) -> None:
    quiet = ["-qq", "--disable-pip-version-check"]
    subprocess.run([str(python), "-m", "pip", *quiet, *arguments], check=True)
