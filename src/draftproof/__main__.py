"""``python -m draftproof`` and the console script ``draftproof``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    ``doctor`` needs NumPy alone; every other command is in `draftproof.cli`, which needs the
    packages of ``draftproof[proof]``: 2 is returned, and the extra named, where they are missing.

    Args:
        argv: the arguments; by default the program's own.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
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
