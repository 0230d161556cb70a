"""How a verifier of siblings or of a tree is called, and how its output is read.

=========== ==================================================== ===============================
Contract    Call                                                 Returns
=========== ==================================================== ===============================
siblings    f(siblings [K], q [V], p [V], rng)                   the token of this place
tree        f(token_ids [N], parents [N], q [N+1, V], p [N+1, V], the tokens of the accepted path
            rng)                                                 and the one after them
tree-logits f(token_ids [N], parents [N], draft_logits [N+1, V], the same
            target_logits [N+1, V], params, draft_params,
            history, rng)
=========== ==================================================== ===============================

A parent is an earlier node, or -1 for the root; row 0 of q and p belongs to the root, row n + 1 to
node n, and rows of q whose context has no children are NaN. Siblings are numbered in draw order.
``params`` and ``draft_params`` are `SamplingParams`, a grammar's masks in them with a row for each
context; ``history`` is the list of tokens that the request has emitted so far.
How they were drawn is what the subject asks for: the attribute ``draws`` of the callable, a
`draftproof.Draws` or its value; without replacement if it has none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.logits.params import SamplingParams
from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.subjects.emission import ContractBroken, read_row
from draftproof.proof.subjects.subject import Subject
from draftproof.proof.worlds.law import Text
from draftproof.trees.draft_tree import Draws

__all__ = ["DrawnTree", "call_subject", "draws_of"]

Array = npt.NDArray[Any]


class DrawnTree:
    """A whole tree in arrays, as a subject gets it.

    Attributes:
        token_ids, parents: int64 [N].
        q, p: float64 [N+1, V], laws or logits.
        request: of logits: the parameters of the target and of the drafter, and the history.
    """

    def __init__(
        self,
        token_ids: Text,
        parents: Text,
        q: Array,
        p: Array,
        request: tuple[SamplingParams, SamplingParams, Text] | None = None,
    ) -> None:
        self.token_ids = np.array(token_ids, dtype=np.int64)
        self.parents = np.array(parents, dtype=np.int64)
        self.q, self.p, self.request = q, p, request

    @property
    def depth(self) -> int:
        """Nodes of the longest path."""
        depths = [0]
        for parent in self.parents.tolist():
            depths.append(depths[parent + 1] + 1)
        return max(depths)


def draws_of(subject: Subject) -> Draws:
    """Return how the subject asks siblings to be drawn.

    Raises:
        ContractBroken: it asks for what there is not.
    """
    wanted = getattr(subject.call, "draws", Draws.WITHOUT_REPLACEMENT)
    try:
        return Draws(wanted)
    except ValueError:
        raise ContractBroken(
            f"its attribute draws is {wanted!r}; wanted one of {', '.join(Draws)}"
        ) from None


def call_subject(subject: Subject, tree: DrawnTree, rng: np.random.Generator) -> Text:
    """Call the subject on copies of one tree, and return the tokens that it emits.

    Raises:
        ContractBroken: it returned what its contract forbids, or wrote to an input.
    """
    given: tuple[Array, ...] = (tree.token_ids, tree.parents, tree.q, tree.p)
    if subject.contract is Contract.SIBLINGS:
        given = (tree.token_ids, tree.q[0], tree.p[0])
    copies = [array.copy() for array in given]
    more: list[Any] = []
    if subject.contract is Contract.TREE_LOGITS:
        assert tree.request is not None, "a tree of logits"
        more = [*tree.request[:2], list(tree.request[2])]
    with np.errstate(all="ignore"):
        result = subject.call(*copies, *more, rng)
    if any(not np.array_equal(a, b, equal_nan=True) for a, b in zip(given, copies, strict=True)):
        raise ContractBroken("wrote to an input; wanted inputs unchanged")
    vocabulary = tree.p.shape[1]
    if subject.contract is Contract.SIBLINGS:
        return tuple(read_row([result], 0, 0, vocabulary))
    return tuple(read_row(result, 0, tree.depth, vocabulary))
