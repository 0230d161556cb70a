"""``python -m draftproof`` and the console script ``draftproof``."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence

__all__ = ["main"]

_BROKEN_PIPE = 128 + 13
"""What a shell reports of a program that SIGPIPE ended."""
_INTERNAL_ERROR = 70
"""As in sysexits.h: a fault of ours. Python's own 1 would read like a rejection."""
_CANNOT_WRITE = 74


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; end quietly where nobody reads on.

    What fails in draftproof itself prints its traceback and returns 70; 74 is an output that
    cannot be written.

    ``doctor`` needs NumPy alone; every other command is in `draftproof.cli`, which needs the
    packages of ``draftproof[proof]``: 2 is returned, and the extra named, where they are missing.

    Args:
        argv: the arguments; by default the program's own.
    """
    code = _BROKEN_PIPE
    try:
        try:
            code = _run(list(sys.argv[1:] if argv is None else argv))
        finally:
            if sys.stdout is not None:  # as it is where it was closed
                sys.stdout.flush()
    except BrokenPipeError:
        _silence_output()
    except OSError as error:
        if error.errno != errno.ENOSPC:
            return _report()
        print("draftproof: the output cannot be written: no space is left", file=sys.stderr)
        _silence_output()
        return _CANNOT_WRITE
    except Exception:
        return _report()
    return code


def _report() -> int:
    traceback.print_exc()
    return _INTERNAL_ERROR


def _silence_output() -> None:
    """Python flushes once more when it ends, and would complain then."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(arguments: list[str]) -> int:
    if arguments[:1] == ["doctor"]:
        from draftproof import doctor

        return doctor.main(arguments[1:])
    try:
        from draftproof.cli import app
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "draftproof":
            raise
        print(
            f"draftproof: this command needs {error.name}: pip install 'draftproof[proof]'",
            file=sys.stderr,
        )
        return 2
    try:
        app(arguments, prog_name="draftproof")
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # which would end like a rejection
            raise end.__context__ from None
        raise
    return 0


if __name__ == "__main__":
    sys.exit(main())
