"""Which implementations of a rule are installed, and which one a call gets."""

from __future__ import annotations

import functools
from types import ModuleType

from draftproof.errors import BackendUnavailableError, complaint

__all__ = ["BACKENDS", "available_backends", "load_backend", "native_import_error"]

BACKENDS = ("native", "numpy", "reference")


def native_import_error() -> str | None:
    """Return why the compiled kernel cannot be used, or None if it can."""
    try:
        import draftproof._native  # noqa: F401
    except ImportError as error:
        return str(error)
    return None


def available_backends() -> tuple[str, ...]:
    """Return the backends this installation has, fastest first.

    >>> available_backends()[-2:]
    ('numpy', 'reference')
    """
    return BACKENDS if native_import_error() is None else BACKENDS[1:]


@functools.cache
def load_backend(name: str) -> tuple[str, ModuleType]:
    """Return the name and the module of a backend: it has ``verify_chain``.

    ``"auto"`` takes the fastest that is installed. A backend that was named and is missing raises
    `BackendUnavailableError`.
    """
    if name == "auto":
        name = available_backends()[0]
    if name == "native":
        reason = native_import_error()
        if reason is not None:
            raise BackendUnavailableError(
                complaint(
                    "backend",
                    "",
                    found=f"'native', which this installation lacks ({reason})",
                    wanted=f"one of {', '.join(map(repr, ('auto', *available_backends())))}",
                    fix="install a C++17 compiler and reinstall draftproof (it was installed "
                    "without one), or pass backend='auto'",
                )
            )
        from draftproof.kernels import chain_native

        return name, chain_native
    if name == "numpy":
        from draftproof.kernels import chain_numpy

        return name, chain_numpy
    if name == "reference":
        from draftproof.reference import batch

        return name, batch
    raise ValueError(
        complaint(
            "backend",
            "",
            found=repr(name),
            wanted=f"one of {', '.join(map(repr, ('auto', *BACKENDS)))}",
            fix="leave it at 'auto'",
        )
    )
