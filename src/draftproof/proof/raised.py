"""An exception of a subject, in one line, and whether it is the subject's at all."""

from __future__ import annotations

import traceback
from pathlib import Path
from types import TracebackType

__all__ = ["is_the_subjects", "phrase"]

_DOORS = {str(Path(__file__).with_name(f"{name}.py")) for name in ("subject", "loading", "child")}
"""The files of ours that call into a subject: what they call is the subject's."""


def phrase(error: BaseException) -> str:
    """Say the type, the message, and where in the subject it was raised, innermost first."""
    frames = [
        (frame.filename, frame.lineno)
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<frozen importlib")
    ]
    doors = [i for i, (file, _) in enumerate(frames) if file in _DOORS]
    frames = frames[doors[-1] + 1 :] if doors else frames
    message = str(error)
    if isinstance(error, SyntaxError) and error.filename:
        frames, message = [(error.filename, error.lineno)], error.msg
    places = [f"{Path(file).name} line {line}" for file, line in reversed(frames)]
    where = f" (at {', from '.join(places[:3])})" if places else ""
    first_line = message.strip().partition("\n")[0][:200]
    return f"{type(error).__name__}{': ' if first_line else ''}{first_line}{where}"


def is_the_subjects(error: BaseException) -> bool:
    """Whether it passed through the call of a subject; else it is a fault of a check."""
    link: TracebackType | None = error.__traceback__
    while link is not None:
        if link.tb_frame.f_code.co_filename in _DOORS:
            return True
        link = link.tb_next
    return False
