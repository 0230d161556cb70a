"""An exception of a subject, in one line, and whether it is the subject's at all."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

__all__ = ["is_the_subjects", "phrase", "places"]

_PROOF = Path(__file__).parents[1]
_DOORS = {
    str(_PROOF / door)
    for door in (
        "subjects/subject.py",
        "subjects/decoder.py",
        "subjects/loading.py",
        "logits/call.py",
        "trees/call.py",
        "trial/child.py",
    )
}
"""The files of ours that call into a subject: what they call is the subject's."""

_LIBRARIES = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib"))
"""Where frames tell little of a subject, unless it lies there itself."""


def phrase(error: BaseException) -> str:
    """Say the type, the message, and where in the subject it was raised, innermost first."""
    frames = [(f.filename, f.lineno or 0) for f in traceback.extract_tb(error.__traceback__)]
    doors = [i for i, (file, _) in enumerate(frames) if file in _DOORS]
    frames = frames[doors[-1] + 1 :] if doors else frames
    message = str(error)
    if isinstance(error, SyntaxError) and error.filename:
        frames, message = [(error.filename, error.lineno or 0)], error.msg
    first_line = message.strip().partition("\n")[0][:200]
    colon = ": " if first_line else ""
    text = f"{type(error).__name__}{colon}{first_line}{places(frames[::-1])}"
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def places(frames: Sequence[tuple[str, int]]) -> str:
    """Name up to three frames, innermost first, of the subject's own code where there is any."""
    frames = [frame for frame in frames if not frame[0].startswith("<frozen ")]
    own = [frame for frame in frames if not frame[0].startswith(_LIBRARIES)] or frames
    named = ", from ".join(f"{Path(file).name} line {line}" for file, line in own[:3])
    return f" (at {named})" if named else ""


def is_the_subjects(error: BaseException) -> bool:
    """Whether it passed through the call of a subject; else it is a fault of a check."""
    link: TracebackType | None = error.__traceback__
    while link is not None:
        if link.tb_frame.f_code.co_filename in _DOORS:
            return True
        link = link.tb_next
    return False
