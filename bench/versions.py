"""Which versions of other people's packages ran."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import packages_distributions, version

__all__ = ["versions_of"]


def versions_of(modules: Iterable[str]) -> str:
    """Return the distributions that these modules come from, with their versions."""
    origins = packages_distributions()
    names = [name for module in modules for name in origins.get(module, ())]
    return ", ".join(f"{name} {version(name)}" for name in dict.fromkeys(names))
