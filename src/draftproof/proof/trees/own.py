"""Our own verifiers of trees, as subjects: ``tree:RULE`` and ``tree-logits:RULE``.

The public calls take numbers for uniforms; these run the references behind them on what the
judge's instruments hand out, for siblings as each rule likes them best.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.logits.params import SamplingParams
from draftproof.logits.verify_tree import tree_logits_batch
from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.subjects.loading import SubjectNotFound
from draftproof.proof.subjects.subject import Subject
from draftproof.reference.forest import verify_forest
from draftproof.trees.batch import TreeBatch, tree_batch
from draftproof.trees.draft_tree import DraftTree
from draftproof.trees.rules import TREE_RULES

__all__ = ["load_own"]

Array = npt.NDArray[Any]


class _Own:
    """The reference behind `draftproof.verify_tree`."""

    public = "verify_tree"

    def __init__(self, rule: str) -> None:
        self.rule, self.draws = TREE_RULES[rule], TREE_RULES[rule].draws[0]

    def __call__(
        self, token_ids: Array, parents: Array, q: Array, p: Array, rng: np.random.Generator
    ) -> list[int]:
        """Return the tokens of the accepted path and the one after them."""
        tree = DraftTree(token_ids[None], parents[None], q[None], self.draws)
        return self._walk(tree_batch(tree, p[None]), rng)

    def _walk(self, batch: TreeBatch, rng: np.random.Generator) -> list[int]:
        accept, final = rng.random((1, batch.tree.max_nodes)), rng.random(1)
        _, tokens, num_emitted, _ = verify_forest(
            batch, self.rule, accept, final, validate="touched"
        )
        emitted: list[int] = tokens[0, : num_emitted[0]].tolist()
        return emitted


class _OwnFromLogits(_Own):
    """The reference behind `draftproof.verify_tree_logits`."""

    public = "verify_tree_logits"

    def __call__(  # type: ignore[override]
        self,
        token_ids: Array,
        parents: Array,
        draft_logits: Array,
        target_logits: Array,
        params: SamplingParams,
        draft_params: SamplingParams,
        history: list[int],
        rng: np.random.Generator,
    ) -> list[int]:
        """Return the tokens of the accepted path and the one after them."""
        tree = DraftTree(token_ids[None], parents[None], None, self.draws)
        batch = tree_logits_batch(
            tree, target_logits[None], draft_logits[None], params, draft_params, [history],
            None, None, None, None, definition=False,
        )  # fmt: skip
        return self._walk(batch, rng)


def load_own(rule: str, contract: Contract = Contract.TREE) -> Subject:
    """Make a subject of our own rule, see `draftproof.trees.TREE_RULES`."""
    spec = f"{contract}:{rule}"
    if rule not in TREE_RULES:
        known = ", ".join(TREE_RULES)
        raise SubjectNotFound(f"subject: found {spec!r}; wanted {contract}: and one of {known}.")
    call = (_Own if contract is Contract.TREE else _OwnFromLogits)(rule)
    return Subject(f"draftproof.{call.public}, {rule}", contract, call, spec)
