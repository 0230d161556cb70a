"""Verifiers of trees that are lossless, plain or unusual: they must live."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from draftproof.proof.trees.gallery import sibling_rule, tree_rule
from draftproof.proof.trees.skeleton import TreeVerifier
from draftproof.reference.siblings import (
    Choice,
    hu_greedy,
    k_seq,
    naive_tree,
    nss,
    rrs,
    rrsw,
    target_only,
)
from draftproof.reference.siblings.choice import Row
from draftproof.reference.traversal import traversal
from draftproof.reference.tree import TreeEmission, walk
from draftproof.trees.draft_tree import Draws

RIGHT: dict[str, Any] = {"kind": "equivalent"}
ORDERED = Draws.WITHOUT_REPLACEMENT

sibling_rule("nss", Draws.IID, **RIGHT)(nss)
sibling_rule("nss, fixed siblings", Draws.DETERMINISTIC, public="EAGLE", **RIGHT)(nss)
sibling_rule("target-only", Draws.DETERMINISTIC, public="SGLang", **RIGHT)(target_only)
sibling_rule("naive tree", ORDERED, **RIGHT)(naive_tree)
sibling_rule("rrs", Draws.IID, public="arXiv 2305.09781", **RIGHT)(rrs)
sibling_rule("rrsw", ORDERED, public="arXiv 2402.14160", **RIGHT)(rrsw)
sibling_rule("rrsw, iid repeats skipped", Draws.IID, **RIGHT)(rrsw)
sibling_rule("k-seq", Draws.IID, public="arXiv 2310.15141", **RIGHT)(k_seq)
sibling_rule("hu-greedy", Draws.TOP_AND_ONE, public="arXiv 2502.18779", **RIGHT)(hu_greedy)
tree_rule("traversal", ORDERED, public="arXiv 2505.12398", **RIGHT)(traversal)


@sibling_rule("k-seq with rho = K", Draws.IID, note="accepts less than it could", **RIGHT)
def k_seq_at_most(
    siblings: Sequence[int], q: Row, p: Row, accept: Sequence[Any], final: Any
) -> Choice:
    """Takes the largest rho that can be needed, without a search for the root."""
    return k_seq(siblings, q, p, accept, final, rho=len(siblings))


@sibling_rule("rrs, the last sibling first", Draws.IID, **RIGHT)
def rrs_backward(
    siblings: Sequence[int], q: Row, p: Row, accept: Sequence[Any], final: Any
) -> Choice:
    """Tries iid siblings in another order, chosen without a look at them."""
    choice = rrs(siblings[::-1], q, p, accept, final)
    if choice.sibling is None:
        return choice
    return choice._replace(sibling=len(siblings) - 1 - choice.sibling)


@sibling_rule("the first sibling only", ORDERED, note="uses no other sibling", **RIGHT)
def first_only(
    siblings: Sequence[int], q: Row, p: Row, accept: Sequence[Any], final: Any
) -> Choice:
    """Decides to look at one sibling before it looks at any."""
    return rrsw(siblings[:1], q, p, accept, final)


@tree_rule("no bonus at a leaf", ORDERED, note="a token less at a leaf", **RIGHT)
class NoBonus(TreeVerifier):
    """Emits no token after a leaf, unless it has nothing else to emit."""

    def __init__(self) -> None:
        super().__init__(partial(walk, rrsw), ORDERED)
        self.leaves: set[int] = set()

    def __call__(self, token_ids: Any, parents: Any, q: Any, p: Any, rng: Any) -> list[int]:
        """Return the tokens of the accepted path, and the one after them if it ends early."""
        self.leaves = set(range(len(token_ids))) - set(parents.tolist())
        return super().__call__(token_ids, parents, q, p, rng)

    def emit(self, tokens: list[int], emitted: TreeEmission) -> list[int]:
        """Cut the token behind a leaf off."""
        all_tokens = super().emit(tokens, emitted)
        return all_tokens[:-1] if emitted.path and emitted.path[-1] in self.leaves else all_tokens
