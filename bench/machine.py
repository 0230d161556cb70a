"""Where and when the numbers were measured."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np

__all__ = ["Machine", "this_machine"]

_ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Machine:
    """What a number depends on besides the code; ``commit`` ends in ``+`` if sources differ."""

    date: str
    machine: str
    cpu: str
    python: str
    numpy: str
    commit: str


def this_machine() -> Machine:
    """Describe the machine, without its name."""
    return Machine(
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        machine=f"{platform.system()} {platform.machine()}; {os.cpu_count()} CPUs",
        cpu=_cpu(),
        python=platform.python_version(),
        numpy=np.__version__,
        commit=_commit(),
    )


def _cpu() -> str:
    """Return the model and, where Linux tells it, the size of the last cache."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    cache = Path("/sys/devices/system/cpu/cpu0/cache/index3/size")
    return f"{model}; L3 {cache.read_text().strip()}" if cache.exists() else model


def _commit() -> str:
    try:
        commit = _git("rev-parse", "--short=12", "HEAD")
        return commit + ("+" if _git("status", "--porcelain", "--", "src", "bench/*.py") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(_ROOT), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
