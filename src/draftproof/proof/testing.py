"""The judge as an assertion, for other people's test suites."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from draftproof.proof.verdicts.verdict import Verdict

__all__ = ["assert_lossless"]


def assert_lossless(
    subject: Callable[..., Any] | str | None,
    *,
    contract: str | None = None,
    profile: str = "quick",
    seed: int = 0,
    timeout: float | None = None,
    report: str | os.PathLike[str] | None = None,
) -> Verdict:
    """Judge a verifier, and fail with the card unless it was not rejected.

    Args:
        subject: the verifier, or ``"module:attr"``, or ``"path/to/file.py:attr"``; None for
            draftproof's own.
        contract: its call shape; by default guessed from the signature.
        profile: "quick" (seconds), "standard" or "paper".
        seed: of all that is drawn; fixed, so that a test gives one answer.
        timeout: seconds until one check counts as hanging.
        report: where to write the verdict, whatever it is: a path to which ``.json`` and
            ``.html`` are appended. Missing folders are made.

    Returns:
        The verdict, whose power and bounds can be asserted on.

    Raises:
        AssertionError: rejected, contract broken, or inconclusive.
        ValueError: the subject cannot be found, or its contract is unclear.
    """
    __tracebackhide__ = True  # pytest then shows the caller's line, not this one
    from draftproof.proof.judge import check
    from draftproof.report.card import card_text

    verdict = check(subject, contract=contract, profile=profile, seed=seed, timeout=timeout)
    data = verdict.to_dict()
    if report is not None:
        _write(data, Path(report))
    if data["exit_code"] != 0:
        raise AssertionError(f"not shown to be lossless\n\n{card_text(data)}")
    return verdict


def _write(data: dict[str, Any], path: Path) -> None:
    from draftproof.report.page import html_page

    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(data, indent=2, allow_nan=False)
    path.with_name(f"{path.name}.json").write_text(text + "\n", encoding="utf-8")
    page = html_page(data)
    path.with_name(f"{path.name}.html").write_text(page, encoding="utf-8", errors="replace")
