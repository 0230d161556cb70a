"""The layouts in which engines hold trees, to and from `DraftTree`; masks and position ids.

Engines number the *slots* of a tree: slot 0 is the root (the last token that is already in the
text), slot n + 1 is node n. So slots are the contexts of `DraftTree`, and rows of laws [B, N+1, V]
mean the same in both.

================= =================================================================================
Engine            Holds
================= =================================================================================
SGLang            ``retrieve_index``, ``retrieve_next_token``, ``retrieve_next_sibling``, each
                  [B, N+1]: a slot's place in the flat batch, its first child, its next sibling
EAGLE             ``retrieve_indices`` [leaves, D+1]: the slots from the root to each leaf
================= =================================================================================

-1 stands for "none" in both.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from draftproof.arrays import as_integers
from draftproof.errors import complaint
from draftproof.trees.draft_tree import DraftTree, Draws
from draftproof.types import IntArray

__all__ = [
    "RetrieveLinks",
    "attention_mask",
    "from_retrieve_indices",
    "from_retrieve_links",
    "position_ids",
    "to_retrieve_indices",
    "to_retrieve_links",
]


class RetrieveLinks(NamedTuple):
    """SGLang's links between slots, each int64 [B, N+1]."""

    retrieve_index: IntArray
    retrieve_next_token: IntArray
    retrieve_next_sibling: IntArray


def to_retrieve_links(tree: DraftTree) -> RetrieveLinks:
    """Link the slots as SGLang does: first child, next sibling, in draw order.

    Slots without a node are linked from nowhere.

    >>> tree = DraftTree([[5, 7, 9]], [[-1, -1, 1]], draws="deterministic")
    >>> links = to_retrieve_links(tree)
    >>> links.retrieve_next_token.tolist(), links.retrieve_next_sibling.tolist()
    ([[1, -1, 3, -1]], [[-1, 2, -1, -1]])
    """
    shape = tree.size, tree.max_nodes + 1
    index = np.arange(shape[0] * shape[1]).reshape(shape)
    next_token, next_sibling = np.full(shape, -1), np.full(shape, -1)
    for row in range(tree.size):
        for slot, nodes in enumerate(tree.children(row)):
            slots = [node + 1 for node in nodes]
            next_token[row, slot] = slots[0] if slots else -1
            next_sibling[row, slots[:-1]] = slots[1:]
    return RetrieveLinks(index, next_token, next_sibling)


def from_retrieve_links(
    candidates: npt.ArrayLike,
    retrieve_next_token: npt.ArrayLike,
    retrieve_next_sibling: npt.ArrayLike,
    draft_probs: npt.ArrayLike | None = None,
    draws: Draws | str = Draws.WITHOUT_REPLACEMENT,
) -> DraftTree:
    """Read SGLang's links; slots that nothing leads to are padding, and must come last.

    Args:
        candidates: integers [B, N+1], the token of each slot, the root's first.
        retrieve_next_token, retrieve_next_sibling: integers [B, N+1].
        draft_probs: [B, N+1, V], a row for each slot.
        draws: how siblings were drawn. SGLang's EAGLE keeps the likeliest ones: deterministic.

    Raises:
        ValueError: a link to no slot, to a slot that has one already, or to an earlier slot.
    """
    tokens = as_integers("candidates", candidates, (), "B", "N+1")
    shape = tokens.shape
    children = as_integers("retrieve_next_token", retrieve_next_token, shape)
    siblings = as_integers("retrieve_next_sibling", retrieve_next_sibling, shape)
    parents, order = np.full(shape, -2), np.zeros(shape, dtype=np.int64)
    for row in range(shape[0]):
        for slot in range(shape[1]):
            if slot and parents[row, slot] == -2:
                continue  # not reached from the slots before it
            child, place = int(children[row, slot]), 0
            while child != -1:
                if not slot < child < shape[1] or parents[row, child] != -2:
                    raise ValueError(_bad_link(row, slot, child, shape[1]))
                parents[row, child], order[row, child] = slot - 1, place
                child, place = int(siblings[row, child]), place + 1
    reached = parents[:, 1:] != -2
    counts = reached.sum(axis=1)
    holes = reached != (np.arange(shape[1] - 1) < counts[:, None])
    for spoilt in np.flatnonzero(holes.any(axis=1))[:1]:
        raise ValueError(
            complaint(
                "retrieve_next_token",
                f"row {spoilt}",
                found=f"slot {1 + int(np.argmin(reached[spoilt]))}, which no link leads to, "
                "before one that has a link",
                wanted="padding behind all nodes, and children behind their parents",
                fix="number the slots from the root down",
            )
        )
    return DraftTree(
        tokens[:, 1:],
        parents[:, 1:],
        draft_probs,
        draws,
        counts,
        order[:, 1:],
    )


def to_retrieve_indices(tree: DraftTree) -> IntArray:
    """Return the slots from the root to each leaf, int64 [B, leaves, D+1], padded with -1.

    EAGLE's own array has no batch axis: take ``[0]``. Leaves come in the order of their numbers.

    >>> tree = DraftTree([[5, 7, 9]], [[-1, -1, 1]], draws="deterministic")
    >>> to_retrieve_indices(tree)[0].tolist()
    [[0, 1, -1], [0, 2, 3]]
    """
    chains = [
        [
            _chain(tree.parents[row], leaf)
            for leaf, nodes in enumerate(tree.children(row))
            if not nodes
        ]
        for row in range(tree.size)
    ]
    leaves = max(map(len, chains), default=0)
    indices = np.full((tree.size, leaves, int(tree.depths.max(initial=0)) + 1), -1)
    for row, slots in enumerate(chains):
        for leaf, chain in enumerate(slots):
            indices[row, leaf, : len(chain)] = chain
    return indices


def from_retrieve_indices(
    draft_tokens: npt.ArrayLike,
    retrieve_indices: npt.ArrayLike,
    draft_probs: npt.ArrayLike | None = None,
    draws: Draws | str = Draws.DETERMINISTIC,
) -> DraftTree:
    """Read EAGLE's ``draft_tokens`` and ``retrieve_indices`` of one request.

    They do not say in which order siblings were drawn: it is taken for that of the slots, which is
    right for EAGLE's deterministic trees.

    Args:
        draft_tokens: integers [N+1], the token of each slot, the root's first.
        retrieve_indices: integers [leaves, D+1].
        draft_probs: [1, N+1, V].
        draws: how siblings were drawn.

    Raises:
        ValueError: a slot beyond the tokens, with two parents, or with none.
    """
    tokens = as_integers("draft_tokens", draft_tokens, (), "N+1")
    chains = as_integers("retrieve_indices", retrieve_indices, (), "leaves", "D+1")
    parents = np.full(len(tokens), -2)
    for leaf, chain in enumerate(chains.tolist()):
        for above, slot in itertools.pairwise(chain):
            if slot == -1:
                break
            if not 0 <= above < slot < len(tokens) or parents[slot] not in (-2, above - 1):
                raise ValueError(
                    complaint(
                        "retrieve_indices",
                        f"leaf {leaf}",
                        found=f"slot {slot} below slot {above}",
                        wanted=f"slots in 0..{len(tokens) - 1}, each below one earlier slot",
                        fix="pass the slots from the root to each leaf, padded with -1",
                    )
                )
            parents[slot] = above - 1
    for lonely in np.flatnonzero(parents[1:] == -2)[:1] + 1:
        raise ValueError(
            complaint(
                "retrieve_indices",
                "",
                found=f"no path to slot {lonely}",
                wanted="every slot on a path",
                fix="drop the tokens that are not in the tree",
            )
        )
    return DraftTree(tokens[None, 1:], parents[None, 1:], draft_probs, draws)


def attention_mask(tree: DraftTree) -> npt.NDArray[np.bool_]:
    """Return which slots each slot attends to, bool [B, N+1, N+1]: its ancestors and itself.

    The text before the root is not in it: every slot attends to all of that. A slot without a node
    attends to itself alone.

    >>> tree = DraftTree([[5, 7, 9]], [[-1, -1, 1]], draws="deterministic")
    >>> attention_mask(tree)[0].astype(int).tolist()
    [[1, 0, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 1, 1]]
    """
    n = tree.max_nodes + 1
    mask = np.broadcast_to(np.eye(n, dtype=np.bool_), (tree.size, n, n)).copy()
    for node in range(tree.max_nodes):
        here = np.flatnonzero(node < tree.num_nodes)
        mask[here, node + 1] |= mask[here, tree.parents[here, node] + 1]
    return mask


def position_ids(tree: DraftTree, positions: npt.ArrayLike | None = None) -> IntArray:
    """Return the place in the text of each slot's token, int64 [B, N+1].

    Args:
        tree: N nodes a row; slots without a node have the root's place.
        positions: integers [B], the place of the root's token in its text; 0 if left out, which
            gives depths.
    """
    depths = np.pad(tree.depths, ((0, 0), (1, 0)))
    if positions is None:
        return depths
    return depths + as_integers("positions", positions, (tree.size,))[:, None]


def _chain(parents: IntArray, slot: int) -> list[int]:
    slots = [slot]
    while slot:
        slot = int(parents[slot - 1]) + 1
        slots.append(slot)
    return slots[::-1]


def _bad_link(row: int, slot: int, child: int, slots: int) -> str:
    found: Any = f"slot {child}" if 0 < child < slots else child
    return complaint(
        "retrieve_next_token, retrieve_next_sibling",
        f"row {row}, the children of slot {slot}",
        found=found,
        wanted=f"slots in {slot + 1}..{slots - 1}, each with one link to it, then -1",
        fix="number the slots from the root down",
    )
