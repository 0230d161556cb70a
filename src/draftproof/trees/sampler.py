"""Drawing siblings and trees, as the rules ask for them: the drafter's side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.arrays import as_probabilities, widen
from draftproof.errors import complaint
from draftproof.reference.siblings.draws import (
    draw_iid,
    draw_top,
    draw_top_and_one,
    draw_without_replacement,
)
from draftproof.trees.draft_tree import DraftTree, Draws
from draftproof.uniforms import as_uniforms

__all__ = ["grow_tree", "sample_siblings"]

DraftLaw = Callable[[tuple[int, ...]], npt.ArrayLike]


def sample_siblings(
    draft_probs: npt.ArrayLike,
    num_siblings: int,
    rng: np.random.Generator | None = None,
    *,
    draws: Draws | str = Draws.WITHOUT_REPLACEMENT,
    uniforms: npt.ArrayLike | None = None,
) -> DraftTree:
    """Draw the children of one node for each row, and return the tree of one level that they make.

    Args:
        draft_probs: [B, V] floats, the law q of each row.
        num_siblings: K. A row gets fewer where its law has too few tokens to go on without
            repetition.
        rng: consumes ``rng.random((B, K))``.
        draws: how; deterministic siblings are the K likeliest tokens and use no uniform, and
            ``"top-and-one"`` uses the last of the K.
        uniforms: [B, K] in [0, 1), instead of rng.

    >>> tree = sample_siblings([[0.5, 0.3, 0.2]], 2, uniforms=[[0.1, 0.1]])
    >>> tree.token_ids.tolist()
    [[0, 1]]
    """
    laws = as_probabilities("draft_probs", draft_probs, (), "B", "V")
    B, K = len(laws), num_siblings
    if (rng is None) == (uniforms is None):
        raise ValueError(
            complaint(
                "rng, uniforms",
                "",
                found="neither" if rng is None else "both",
                wanted="exactly one source of randomness",
                fix="pass rng=numpy.random.default_rng(), or uniforms [B, K]",
            )
        )
    given = uniforms if rng is None else rng.random((B, K))
    coins = as_uniforms("uniforms", given, (B, K), fix="pass one uniform for each sibling")
    kind = Draws(draws)
    tokens = np.full((B, K), -1, dtype=np.int64)
    counts = np.zeros(B, dtype=np.int64)
    for row in range(B):
        drawn = _draw(widen(laws[row]), coins[row], kind)
        counts[row] = len(drawn)
        tokens[row, : len(drawn)] = drawn
    rows = np.full((B, K + 1, laws.shape[1]), np.nan)
    rows[:, 0] = widen(laws)
    return DraftTree(tokens, np.full((B, K), -1), rows, kind, counts)


def grow_tree(
    draft_law: DraftLaw,
    branching: Sequence[int],
    rng: np.random.Generator,
    *,
    draws: Draws | str = Draws.WITHOUT_REPLACEMENT,
) -> DraftTree:
    """Draw one whole tree, level by level, and return it as a batch of one row.

    Args:
        draft_law: the law q [V] after a path of tokens from the root.
        branching: children of each node, level by level: (4, 2, 1) has 4 + 8 + 8 nodes.
        rng: consumes ``rng.random(K)`` for each node that gets K children.
        draws: how siblings are drawn.

    >>> import numpy as np
    >>> tree = grow_tree(lambda path: [0.5, 0.3, 0.2], (2, 1), np.random.default_rng(0))
    >>> tree.parents.tolist()
    [[-1, -1, 0, 1]]
    """
    kind = Draws(draws)
    tokens: list[int] = []
    parents: list[int] = []
    paths: list[tuple[int, ...]] = [()]
    laws: list[npt.NDArray[np.float64]] = []
    for K in branching:
        for context in range(len(laws), len(paths)):
            law = widen(as_probabilities("draft_law", draft_law(paths[context]), (), "V"))
            drawn = _draw(law, rng.random(K), kind)
            laws.append(law)
            tokens += drawn
            parents += [context - 1] * len(drawn)
            paths += [(*paths[context], token) for token in drawn]
    rows = np.full((1, len(paths), np.size(laws[0] if laws else draft_law(()))), np.nan)
    for context, known in enumerate(laws):
        rows[0, context] = known
    return DraftTree(
        np.array([tokens], dtype=np.int64).reshape(1, -1),
        np.array([parents], dtype=np.int64).reshape(1, -1),
        rows,
        kind,
    )


def _draw(law: npt.NDArray[Any], uniforms: Any, draws: Draws) -> list[int]:
    K = len(uniforms)
    if draws is Draws.IID:
        return draw_iid(law, uniforms)
    if draws is Draws.WITHOUT_REPLACEMENT:
        return draw_without_replacement(law, uniforms)
    if draws is Draws.DETERMINISTIC:
        return draw_top(law, K)
    return draw_top_and_one(law, K, uniforms[-1]) if K else []
