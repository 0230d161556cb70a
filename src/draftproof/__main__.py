"""``python -m draftproof`` and the console script ``draftproof``."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

__all__ = ["main"]

_BROKEN_PIPE = 128 + 13
"""What a shell reports of a program that SIGPIPE ended."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; end quietly where nobody reads on.

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
        # Python flushes once more when it ends, and would complain then.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


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
    app(arguments, prog_name="draftproof")
    return 0


if __name__ == "__main__":
    sys.exit(main())
