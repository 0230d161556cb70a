"""What is installed here, which backends work, and what to do about those that do not.

``python -m draftproof doctor`` needs the standard library and NumPy alone.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
from collections.abc import Sequence
from importlib import metadata
from typing import Any

import numpy as np

from draftproof.backends import BACKENDS, native_import_error
from draftproof.kernels.threads import available_threads
from draftproof.verify import verify

__all__ = ["main", "render", "report"]

INSTALL_NATIVE = (
    "install a C++17 compiler, then: pip install --force-reinstall --no-deps --no-cache-dir "
    "--no-binary draftproof draftproof"
)
USER_EXTRAS = ("proof", "bench")

# Both drafts accepted and a bonus; a rejection (0.5 * 0.5 is not below 0.25); no draft at all.
_P = [0.25, 0.25, 0.25, 0.25]
_Q = [0.50, 0.25, 0.25, 0.00]
_DRAFTS, _NUM_DRAFT = [[1, 2], [0, -1], [-1, -1]], [2, 1, 0]
_UNIFORMS = ([[0.9, 0.9], [0.5, 0.0], [0.0, 0.0]], [0.6, 0.0, 0.0])
_TOKENS = [[1, 2, 2], [3, -1, -1], [0, -1, -1]]


def report() -> dict[str, Any]:
    """Examine this installation; the result is JSON-able.

    ``usable`` is true when every backend that is installed gives the tokens that were worked out
    by hand for a small batch.
    """
    backends = {name: _examine(name) for name in BACKENDS}
    version = _version("draftproof")
    return {
        "draftproof": version,
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "numpy": np.__version__,
        "platform": f"{platform.system()} {platform.machine()}",
        "cpu_features": _cpu_features(),
        "native": _native(),
        "threads": {
            "available": available_threads(),
            "cpus": os.cpu_count(),
            "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS"),
        },
        "backends": backends,
        "extras": {name: _extra(name) for name in USER_EXTRAS} if version else {},
        "usable": all(finding in ("ok", "missing") for finding in backends.values()),
    }


def render(findings: dict[str, Any]) -> str:
    """Write a report for people, one line a topic."""
    threads, native, backends = findings["threads"], findings["native"], findings["backends"]
    omp = threads["OMP_NUM_THREADS"]
    healthy = [name for name, finding in backends.items() if finding == "ok"]
    lines = [
        ("draftproof", findings["draftproof"] or "not installed, only importable"),
        ("python", f"{findings['python']} ({findings['implementation']})"),
        ("numpy", findings["numpy"]),
        ("platform", " ".join([findings["platform"] + ",", *findings["cpu_features"]])),
        ("native", native["instruction_set"] or f"no: {native['error']}"),
        ("", INSTALL_NATIVE if native["error"] else ""),
        (
            "threads",
            f"{threads['available']} of {threads['cpus']} CPUs, "
            + ("OMP_NUM_THREADS is not set" if omp is None else f"OMP_NUM_THREADS={omp}"),
        ),
        ("backends", ", ".join(f"{name}: {finding}" for name, finding in backends.items())),
    ]
    for name, packages in findings["extras"].items():
        missing = [package for package, version in packages.items() if version is None]
        advice = f"lacks {', '.join(missing)}: pip install 'draftproof[{name}]'"
        lines.append((f"[{name}]", advice if missing else "installed"))
    health = f"{', '.join(healthy)} verify a small batch to the right tokens"
    lines.append(("health", health if findings["usable"] else "NOT USABLE, see backends above"))
    return "\n".join(f"{topic:<12}{text}" for topic, text in lines if text)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the report; return 0 if the installation is usable, else 1.

    Args:
        argv: the arguments behind ``doctor``; by default the program's own.
    """
    parser = argparse.ArgumentParser("draftproof doctor", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    arguments = parser.parse_args(argv)
    findings = report()
    print(json.dumps(findings, indent=2) if arguments.json else render(findings))
    return 0 if findings["usable"] else 1


def _examine(backend: str) -> str:
    """Return ``"ok"``, ``"missing"``, or what is wrong with a backend."""
    if backend == "native" and native_import_error() is not None:
        return "missing"
    try:
        result = verify(
            _DRAFTS,
            [[_Q] * 2] * 3,
            [[_P] * 3] * 3,
            _NUM_DRAFT,
            uniforms=_UNIFORMS,
            backend=backend,
        )
    except Exception as error:  # whatever it is, the patient's condition is the doctor's result
        return f"{type(error).__name__}: {error}"
    tokens = result.token_ids.tolist()
    return "ok" if tokens == _TOKENS else f"wrong tokens {tokens}, not {_TOKENS}"


def _native() -> dict[str, str | None]:
    """Return the instruction set that the kernel runs with here, or why there is no kernel."""
    error = native_import_error()
    if error is not None:
        return {"instruction_set": None, "error": error}
    from draftproof import _native

    return {"instruction_set": _native.instruction_set(), "error": None}


def _cpu_features() -> list[str]:
    """Return the SIMD extensions of this CPU, in NumPy's names for them."""
    config: Any = np.show_config(mode="dicts")
    extensions = config.get("SIMD Extensions", {})  # NumPy leaves out what is empty
    return [*extensions.get("baseline", []), *extensions.get("found", [])]


def _extra(name: str) -> dict[str, str | None]:
    """Return the packages of an extra with their versions, None for those that are missing."""
    wanted = rf"extra == ['\"]{name}['\"]"
    return {
        package: _version(package)
        for requirement in metadata.requires("draftproof") or []
        if re.search(wanted, requirement)
        for package in re.findall(r"^[\w.-]+", requirement)
    }


def _version(distribution: str) -> str | None:
    """Return the version of an installed distribution, or None."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
