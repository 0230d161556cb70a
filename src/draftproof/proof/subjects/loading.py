"""Find the callable that a specification names: ``module:attr`` or ``path/to/file.py:attr``."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from draftproof.proof.subjects.raised import phrase

__all__ = ["SubjectNotFound", "find_callable", "importable_name"]


class SubjectNotFound(ValueError):  # noqa: N818 - a message to whoever named the subject
    """A specification that leads to no callable; the message says why, and what is near."""


def find_callable(spec: str) -> Callable[..., Any]:
    """Import what a specification names.

    Args:
        spec: ``module:attr`` (the current folder is searched too) or ``path/to/file.py:attr`` (its
            folder is searched for what it imports). ``attr`` may be dotted.

    Raises:
        SubjectNotFound: no such module, file or attribute; the import fails, which is shown by the
            subject's own frames; or what was found is not callable.
    """
    place, colon, path = spec.rpartition(":")
    if not colon or not place or not path:
        raise SubjectNotFound(
            f"subject: found {spec!r}; wanted module:attr or path/to/file.py:attr. "
            f"Fix: name the function after a colon{_offer(spec)}."
        )
    owner: Any = None
    found: Any = _import_file(place) if place.endswith(".py") else _import_module(place)
    for depth, name in enumerate(path.split(".")):
        owner = found
        if not hasattr(owner, name):
            parent = ".".join([place, *path.split(".")[:depth]])
            raise SubjectNotFound(
                f"subject: {parent} has no attribute {name!r}. Fix: {_suggest(name, owner)}."
            )
        found = getattr(owner, name)
    if not callable(found):
        raise SubjectNotFound(
            f"subject: {spec} is a {type(found).__name__}; wanted a callable. "
            f"Fix: {_suggest(path, owner)}."
        )
    return found  # type: ignore[no-any-return]


def importable_name(call: Callable[..., Any]) -> str | None:
    """Return a specification under which another process finds this very callable, if there is one.

    None for closures, lambdas, partial objects, and whatever a script or a notebook defines.
    """
    module, name = getattr(call, "__module__", None), getattr(call, "__qualname__", None)
    if not module or not name or module == "__main__" or module not in sys.modules:
        return None
    found: Any = sys.modules[module]
    for part in name.split("."):
        found = getattr(found, part, None)
    file = getattr(sys.modules[module], "__file__", None)
    if found is not call or file is None:
        return None
    try:
        known = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        known = None
    if known is not None and known.origin == file:
        return f"{module}:{name}"
    return f"{file}:{name}" if "." not in module else None


def _import_file(place: str) -> ModuleType:
    file = Path(place)
    if not file.is_file():
        raise SubjectNotFound(f"subject: there is no file {place}.{_near_files(file)}")
    file = file.resolve()
    name = file.stem if file.stem.isidentifier() else "subject"
    known = sys.modules.get(name)
    if known is not None:
        if getattr(known, "__file__", None) == str(file):
            return known
        name = f"_subject_{name}"  # never shadow a module of the same name
        if name in sys.modules and getattr(sys.modules[name], "__file__", None) == str(file):
            return sys.modules[name]
    if str(file.parent) not in sys.path:
        sys.path.insert(0, str(file.parent))
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise SubjectNotFound(f"subject: {place} cannot be imported: {phrase(error)}") from error
    return module


def _import_module(place: str) -> ModuleType:
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{place}.".startswith(f"{error.name}."):
            raise SubjectNotFound(
                f"subject: {place} cannot be imported: {phrase(error)}"
            ) from error
        hint = f" Did you mean {place}.py:...?" if Path(f"{place}.py").is_file() else ""
        raise SubjectNotFound(f"subject: there is no module {error.name}.{hint}") from None
    except Exception as error:
        raise SubjectNotFound(f"subject: {place} cannot be imported: {phrase(error)}") from error


def _suggest(name: str, owner: object) -> str:
    known = [n for n in dir(owner) if not n.startswith("_") and callable(getattr(owner, n, None))]
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.0)
    return f"the closest callable is {close[0]!r}" if close else "it has no callables"


def _near_files(file: Path) -> str:
    siblings = [f.name for f in file.parent.glob("*.py")] if file.parent.is_dir() else []
    close = difflib.get_close_matches(file.name, siblings, n=1)
    return f" Did you mean {file.parent / close[0]}?" if close else ""


def _offer(spec: str) -> str:
    return f", as in {spec}:verify" if spec else ""
