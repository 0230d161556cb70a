"""Does a function use the standard library alone? Read from its source, never guessed."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

__all__ = ["packages_used"]

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_Import = ast.Import | ast.ImportFrom
_BY_STRING = {"__import__", "import_module", "exec", "eval"}


def packages_used(function: Callable[..., Any]) -> set[str]:
    """Return the packages that a function uses, beside the standard library and its own code.

    ::

        of its file:  its definition, and the definitions and imports of every name that these use
        of every file of its own package, or beside it, that is imported so:  everything

    An import that nothing uses does not count. What ``exec``, ``eval`` and imports by string lead
    to cannot be known: each of these counts, under its own name.

    Raises:
        OSError, TypeError, SyntaxError: there is no source to read.

    >>> import json, statistics
    >>> packages_used(json.dumps) | packages_used(packages_used)
    set()
    """
    function = inspect.unwrap(function)
    if not hasattr(function, "__qualname__"):
        function = type(function)
    file = Path(inspect.getsourcefile(function) or "").resolve()
    tree = _parse(file)
    root = file.parents[function.__module__.count(".") + (file.name == "__init__.py")]
    return _packages(_reachable(tree, function.__qualname__), file, root, {file})


def _parse(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def _reachable(tree: ast.Module, qualified_name: str) -> Iterator[ast.AST]:
    """Every node that a definition leads to by names; all of the file if it is a lambda, say."""
    bound: dict[str, list[ast.stmt]] = {}
    for statement in _outside_definitions(tree):
        for name in _binds(statement):
            bound.setdefault(name, []).append(statement)
    outermost = qualified_name.partition(".")[0]
    todo: list[ast.AST] = [*bound.get(outermost, [tree]), *bound.get("*", [])]
    seen = set(map(id, todo))
    while todo:
        for node in ast.walk(todo.pop()):
            yield node
            if isinstance(node, ast.Name):
                new = [s for s in bound.get(node.id, []) if id(s) not in seen]
                seen.update(map(id, new))
                todo += new


def _outside_definitions(node: ast.AST) -> Iterator[ast.stmt]:
    """The statements that give the names of a module their meaning."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        if not isinstance(child, _Definition):
            yield from _outside_definitions(child)


def _binds(statement: ast.stmt) -> Iterator[str]:
    """The names to which a statement gives a meaning."""
    if isinstance(statement, _Import):
        for alias in statement.names:
            yield alias.asname or alias.name.partition(".")[0]
    elif isinstance(statement, _Definition):
        yield statement.name
    elif isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            yield from (node.id for node in ast.walk(target) if isinstance(node, ast.Name))


def _packages(nodes: Iterable[ast.AST], file: Path, root: Path, seen: set[Path]) -> set[str]:
    used = set()
    for node in nodes:
        name = getattr(node, "id", getattr(node, "attr", None))
        if name in _BY_STRING:
            used.add(name)
        if not isinstance(node, _Import):
            continue
        for parts, level in _sources(node):
            own = _own_file(parts, level, file, root)
            if own is not None and own not in seen:
                seen.add(own)
                used |= _packages(ast.walk(_parse(own)), own, root, seen)
            elif own is None and parts[0] not in sys.stdlib_module_names:
                used.add(parts[0])
    return used


def _sources(node: _Import) -> Iterator[tuple[list[str], int]]:
    """The modules that an import statement names: their dotted parts and their level."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.name.split("."), 0
    elif node.module:
        yield node.module.split("."), node.level
    else:
        for alias in node.names:
            yield [alias.name], node.level


def _own_file(parts: list[str], level: int, file: Path, root: Path) -> Path | None:
    """The file of a module that belongs to the function's own code."""
    if level:
        folder = file.parents[level - 1]
    elif file.parent == root or file.relative_to(root).parts[0] == parts[0]:
        folder = root
    else:
        return None
    module = folder.joinpath(*parts)
    candidates = (module.with_suffix(".py"), module / "__init__.py")
    return next((candidate for candidate in candidates if candidate.is_file()), None)
