"""The error classes, and the one way in which a message is phrased."""

from __future__ import annotations

__all__ = ["BackendUnavailableError", "BadRowError", "complaint"]

_MOST_CHARACTERS = 300
"""Of what a message shows of a value."""


class BadRowError(ValueError):
    """A row that cannot be decided, raised under ``on_bad_row="raise"``.

    Attributes:
        row: the first bad row of the batch.
        status: that row's `RowStatus` bits.
    """

    def __init__(self, message: str, row: int = -1, status: int = 0) -> None:
        super().__init__(message)
        self.row = row
        self.status = status

    def __reduce__(self) -> tuple[type[BadRowError], tuple[str, int, int]]:
        return type(self), (str(self), self.row, self.status)


class BackendUnavailableError(ValueError):
    """A backend was named that this installation does not have."""


def complaint(argument: str, place: str, *, found: object, wanted: str, fix: str) -> str:
    """Phrase an error: which argument, where, what was found, what was wanted, and the fix.

    Args:
        argument: name of the public argument.
        place: where in it (``"row 3, position 1, token 17"``); empty if it is the argument itself.
        found: the offending value, shape or type.
        wanted: what the contract asks for.
        fix: what the caller can do about it.
    """
    where = f"{argument} at {place}" if place else argument
    return f"{where}: found {_brief(found)}; wanted {wanted}. Fix: {fix}."


def _brief(found: object) -> str:
    """Spell a value, whatever it is: one too large is cut, one that cannot be spelled named."""
    try:
        text = str(found)
    except Exception:  # integers of more digits than Python converts, or a class of the caller's
        return f"a {type(found).__name__} that cannot be printed"
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."
