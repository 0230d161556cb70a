"""pytest: the judge as a fixture, a marker for its budget, an option for its reports.

::

    @pytest.mark.lossless(profile="standard")
    def test_our_sampler(assert_lossless):
        assert_lossless(my_engine.verify)

Loading the plugin costs nothing: the judge is imported by the first assertion.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from draftproof.proof.verdicts.verdict import Verdict

__all__ = ["assert_lossless", "pytest_addoption", "pytest_configure"]

_MARKER = (
    "lossless(profile='quick', seed=0, contract=None, timeout=None): "
    "how the assert_lossless fixture judges in this test."
)
_LONGEST_NAME = 150
_written = pytest.StashKey[Counter[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--draftproof-report DIR``."""
    parser.getgroup("draftproof").addoption(
        "--draftproof-report",
        metavar="DIR",
        help="write the verdict of every assert_lossless there, as JSON and as a page",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker, so that ``--strict-markers`` knows it."""
    config.addinivalue_line("markers", _MARKER)
    config.stash[_written] = Counter()


@pytest.fixture
def assert_lossless(request: pytest.FixtureRequest) -> Callable[..., Verdict]:
    """`draftproof.proof.testing.assert_lossless`, with the marker's arguments as defaults."""
    marker = request.node.get_closest_marker("lossless")
    defaults = _read(*marker.args, **marker.kwargs) if marker else {}
    folder = request.config.getoption("--draftproof-report")

    def judge(subject: Any, **options: Any) -> Verdict:
        __tracebackhide__ = True
        from draftproof.proof.testing import assert_lossless as assertion

        if folder is not None:
            options.setdefault("report", Path(folder) / _name(request))
        return assertion(subject, **{**defaults, **options})

    return judge


def _read(
    profile: str = "quick",
    seed: int = 0,
    contract: str | None = None,
    timeout: float | None = None,
) -> dict[str, Any]:
    """Return a marker's arguments by name; a wrong one is a TypeError that says so."""
    return {"profile": profile, "seed": seed, "contract": contract, "timeout": timeout}


def _name(request: pytest.FixtureRequest) -> str:
    """Name a report after its test: ``tests-test_x.py-test_ours``; a second one ends in ``-2``."""
    name = re.sub(r"[^\w.]+", "-", request.node.nodeid).strip("-")[:_LONGEST_NAME]
    written = request.config.stash[_written]
    written[name] += 1
    return name if written[name] == 1 else f"{name}-{written[name]}"
