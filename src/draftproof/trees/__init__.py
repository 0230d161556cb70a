"""Trees of drafts: their type, how they are drawn, and the layouts that engines hold them in."""

from draftproof.trees.draft_tree import DraftTree, Draws
from draftproof.trees.layouts import (
    RetrieveLinks,
    attention_mask,
    from_retrieve_indices,
    from_retrieve_links,
    position_ids,
    to_retrieve_indices,
    to_retrieve_links,
)
from draftproof.trees.result import TreeResult
from draftproof.trees.rules import TREE_RULES, TreeRule
from draftproof.trees.sampler import grow_tree, sample_siblings

__all__ = [
    "TREE_RULES",
    "DraftTree",
    "Draws",
    "RetrieveLinks",
    "TreeResult",
    "TreeRule",
    "attention_mask",
    "from_retrieve_indices",
    "from_retrieve_links",
    "grow_tree",
    "position_ids",
    "sample_siblings",
    "to_retrieve_indices",
    "to_retrieve_links",
]
