"""Which implementations of a rule are installed, and which one a call gets."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from draftproof.errors import BackendUnavailableError, complaint
from draftproof.rules import PLAIN_RULES, RULES

__all__ = [
    "BACKENDS",
    "available_backends",
    "load_backend",
    "load_logits_backend",
    "load_logits_tree_backend",
    "load_short_way",
    "load_short_way_from_logits",
    "load_short_way_of_trees",
    "load_tree_backend",
    "native_import_error",
]

BACKENDS = ("native", "numpy", "reference")

_FOREST = {"native": "draftproof.kernels.tree_native", "reference": "draftproof.reference.forest"}
_LOGITS_FOREST = {  # the walk is the reference's; what differs is how laws are made
    "native": "draftproof.kernels.logits_tree_native",
    "numpy": "draftproof.reference.forest",
    "reference": "draftproof.reference.forest",
}


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
def load_short_way() -> Callable[..., Any]:
    """Return the native kernel's own `draftproof.verify`, which declines by None.

    Where there is no such kernel every call is declined.
    """
    return _short_way("chain_native", "verify_plain")


@functools.cache
def load_short_way_from_logits() -> Callable[..., Any]:
    """Return the same for `draftproof.verify_logits`."""
    return _short_way("logits_native", "verify_short")


@functools.cache
def load_short_way_of_trees() -> Callable[..., Any]:
    """Return the same for `draftproof.verify_tree`."""
    return _short_way("tree_native", "verify_plain")


def _short_way(kernel: str, name: str) -> Callable[..., Any]:
    if native_import_error() is not None:
        return lambda *_: None
    module = importlib.import_module(f"draftproof.kernels.{kernel}")
    return getattr(module, name)  # type: ignore[no-any-return]


@functools.cache
def load_backend(name: str, rule: str = "token") -> tuple[str, ModuleType]:
    """Return the name and the module of a rule's backend: it has ``verify_chain``.

    ``"auto"`` takes the fastest that is installed. A backend that was named and is missing, or has
    no kernel for the rule, raises `BackendUnavailableError`.
    """
    return _load(name, rule, RULES[rule].kernels)


@functools.cache
def load_logits_backend(name: str, rule: str) -> tuple[str, ModuleType]:
    """Return the same for laws that are made of logits."""
    kernels = dict(RULES[rule].kernels)
    kernels.pop("native", None)
    if rule in (*PLAIN_RULES, "gumbel"):
        kernels = {"native": "draftproof.kernels.logits_native", **kernels}
    if rule == "token":
        kernels["numpy"] = "draftproof.kernels.logits_numpy"
    return _load(name, rule, kernels)


@functools.cache
def load_tree_backend(name: str, rule: str) -> tuple[str, ModuleType]:
    """Return the same for a rule for trees: the module has ``verify_forest``."""
    return _load(name, rule, _FOREST)


@functools.cache
def load_logits_tree_backend(name: str, rule: str) -> tuple[str, ModuleType]:
    """Return the same for such a rule and laws that are made of logits."""
    return _load(name, rule, _LOGITS_FOREST)


def _load(name: str, rule: str, kernels: Mapping[str, str]) -> tuple[str, ModuleType]:
    usable = [backend for backend in kernels if backend in available_backends()]
    if name not in ("auto", *BACKENDS):
        raise ValueError(
            complaint(
                "backend",
                "",
                found=repr(name),
                wanted=f"one of {', '.join(map(repr, ('auto', *BACKENDS)))}",
                fix="leave it at 'auto'",
            )
        )
    if name == "auto":
        name = usable[0]
    if name not in usable:
        found = f"{name!r}, which has no kernel for rule {rule!r}"
        fix = "pass backend='auto'"
        if name in kernels:
            found = f"{name!r}, which this installation lacks ({native_import_error()})"
            fix = (
                "install a C++17 compiler and reinstall draftproof (it was installed without one), "
                f"or {fix}"
            )
        wanted = f"one of {', '.join(map(repr, ('auto', *usable)))}"
        raise BackendUnavailableError(complaint("backend", "", found=found, wanted=wanted, fix=fix))
    return name, importlib.import_module(kernels[name])
