"""Lossless verification for speculative decoding, with the proof that it is lossless.

`verify` takes a ragged batch of drafts with their laws and the target's, and returns text
distributed exactly as the target would have sampled it token by token.
"""

from __future__ import annotations

from draftproof.acceptance import AcceptanceRecord, cut_at_eos
from draftproof.backends import available_backends
from draftproof.errors import BackendUnavailableError, BadRowError
from draftproof.gumbel import sample_gumbel
from draftproof.practice import verify_speculative_tokens
from draftproof.rules import RULES, Rule
from draftproof.state import GreedyBlockState
from draftproof.trees import DraftTree, Draws, TreeResult
from draftproof.types import RowStatus, SparseProbs, Trace, VerifyResult
from draftproof.verify import sample_rows, verify, verify_greedy, verify_packed
from draftproof.verify_tree import verify_tree

__all__ = [
    "RULES",
    "AcceptanceRecord",
    "BackendUnavailableError",
    "BadRowError",
    "DraftTree",
    "Draws",
    "GreedyBlockState",
    "RowStatus",
    "Rule",
    "SparseProbs",
    "Trace",
    "TreeResult",
    "VerifyResult",
    "available_backends",
    "cut_at_eos",
    "sample_gumbel",
    "sample_rows",
    "verify",
    "verify_greedy",
    "verify_packed",
    "verify_speculative_tokens",
    "verify_tree",
]
