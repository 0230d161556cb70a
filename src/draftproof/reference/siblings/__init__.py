"""Rules for several drafts at one node: which child to enter, or which token to stop with.

Each is ``rule(siblings, q, p, accept, final) -> Choice``. They differ in what they ask of the
siblings' draw; `draftproof.trees.rules` declares it.
"""

from draftproof.reference.siblings.choice import Choice
from draftproof.reference.siblings.hu_greedy import hu_greedy
from draftproof.reference.siblings.k_seq import k_seq, k_seq_rho
from draftproof.reference.siblings.naive_tree import naive_tree
from draftproof.reference.siblings.nss import nss
from draftproof.reference.siblings.rrs import rrs, rrsw
from draftproof.reference.siblings.target_only import target_only

__all__ = [
    "Choice",
    "hu_greedy",
    "k_seq",
    "k_seq_rho",
    "naive_tree",
    "nss",
    "rrs",
    "rrsw",
    "target_only",
]
