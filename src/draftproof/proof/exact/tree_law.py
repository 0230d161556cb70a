"""The exact law of a rule for trees, and of a verifier of trees whose uniforms can be driven."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from draftproof.proof.exact.exact_law import Enumeration
from draftproof.proof.exact.interval import OracleGenerator, Path, explore
from draftproof.proof.worlds.law import Text, complete
from draftproof.proof.worlds.tree_world import TreeWorld
from draftproof.proof.worlds.world import Row
from draftproof.trees.rules import TREE_RULES, TreeReference

__all__ = ["tree_law"]

MAX_PATHS = 100_000


def tree_law(rule: str | TreeReference, world: TreeWorld, rounds: int = 1) -> Enumeration:
    """Enumerate a rule for trees in rationals, over one round or more.

    A node's children are drawn when the rule first looks at them, so subtrees that it never enters
    cost nothing: their law cannot matter to it.

    Args:
        rule: a name in `draftproof.trees.TREE_RULES`, or a reference like them.
        world: where trees grow.
        rounds: each goes on where the one before ended, with a tree and uniforms of its own.

    Returns:
        The law of ``rounds * (depth + 1)`` tokens, completed from the target; ``emitted`` counts
        the tokens of all rounds.

    >>> from draftproof.proof.worlds.tree_world import TREE_WORLDS
    >>> run = tree_law("rrs", TREE_WORLDS["L4, 2, iid"])
    >>> run.law == TREE_WORLDS["L4, 2, iid"].world.target_law(2), float(run.emitted - 1)
    (True, 0.8125)
    """
    verify = TREE_RULES[rule].verify if isinstance(rule, str) else rule

    def program(path: Path) -> tuple[Text, int]:
        text: Text = ()
        for _ in range(rounds):
            tree = _GrowingTree(path, world, text)
            path_nodes, last, _ = verify(
                tree.tokens,
                _Lazy(tree.children),
                _Lazy(tree.draft_row),
                _Lazy(tree.target_row),
                _Lazy(tree.coin),
                tree.rng.random(),
            )
            assert last is not None, "rows of a world have mass"
            text = (*text, *(tree.tokens[node] for node in path_nodes), last)
        return text, len(text)

    masses: dict[Text, Fraction] = {}
    paths, emitted = 0, Fraction(0)
    for result, weight in explore(program, MAX_PATHS):
        if isinstance(result, Exception):
            raise result
        text, length = result
        masses[text] = masses.get(text, Fraction(0)) + weight
        emitted += length * weight
        paths += 1
    law = complete(masses.items(), world.world, rounds * (world.depth + 1))
    return Enumeration(law, emitted, paths)


class _GrowingTree:
    """A tree whose nodes come into being when their parent's children are asked for."""

    def __init__(self, path: Path, world: TreeWorld, text: Text) -> None:
        self.tokens: list[int] = []
        self.rng = OracleGenerator()
        self._path, self._world, self._text = path, world, text
        self._prefixes: list[Text] = [()]
        self._children: dict[int, list[int]] = {}
        self._coins: dict[int, Any] = {}

    def children(self, context: int) -> list[int]:
        if context not in self._children:
            prefix = self._prefixes[context]
            drawn = self._world.siblings(self._text + prefix, len(prefix), self._path.choose)
            first = len(self.tokens)
            self.tokens += drawn
            self._prefixes += [(*prefix, token) for token in drawn]
            self._children[context] = list(range(first, first + len(drawn)))
        return self._children[context]

    def coin(self, node: int) -> Any:
        if node not in self._coins:
            self._coins[node] = self.rng.random()
        return self._coins[node]

    def target_row(self, context: int) -> Any:
        return self._row(self._world.world.target, context)

    def draft_row(self, context: int) -> Any:
        return self._row(self._world.world.draft, context)

    def _row(self, rows: Sequence[Row], context: int) -> Any:
        row = rows[self._world.world.row(self._text + self._prefixes[context])]
        array = np.empty(len(row), dtype=object)
        array[:] = row
        return array


class _Lazy(Sequence[Any]):
    """A sequence whose entries are worked out when they are read."""

    def __init__(self, entry: Callable[[int], Any]) -> None:
        self._entry = entry

    def __getitem__(self, index: Any) -> Any:
        return self._entry(index)

    def __len__(self) -> int:
        raise NotImplementedError("a growing tree has no size yet")
