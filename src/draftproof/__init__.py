"""Lossless verification for speculative decoding, with the proof that it is lossless.

`verify` takes a ragged batch of drafts with their laws and the target's, and returns text
distributed exactly as the target would have sampled it token by token.
"""

from __future__ import annotations

from draftproof.acceptance import AcceptanceRecord, cut_at_eos
from draftproof.backends import available_backends
from draftproof.errors import BackendUnavailableError, BadRowError
from draftproof.foreign import bfloat16_of_words
from draftproof.gumbel import sample_gumbel
from draftproof.logprobs import Logprobs
from draftproof.params_batch import ParamsBatch
from draftproof.practice import verify_speculative_tokens
from draftproof.processing import process
from draftproof.rules import RULES, Rule
from draftproof.sample import sample
from draftproof.sampling_order import Order, Ties
from draftproof.sampling_params import SamplingParams
from draftproof.state import GreedyBlockState
from draftproof.trees import DraftTree, Draws, TreeResult
from draftproof.types import DraftLogits, RowStatus, SparseProbs, Trace, VerifyResult
from draftproof.verify import sample_rows, verify, verify_greedy, verify_packed
from draftproof.verify_logits import verify_logits, verify_logits_packed
from draftproof.verify_tree import verify_tree
from draftproof.verify_tree_logits import verify_tree_logits

__all__ = [
    "RULES",
    "AcceptanceRecord",
    "BackendUnavailableError",
    "BadRowError",
    "DraftLogits",
    "DraftTree",
    "Draws",
    "GreedyBlockState",
    "Logprobs",
    "Order",
    "ParamsBatch",
    "RowStatus",
    "Rule",
    "SamplingParams",
    "SparseProbs",
    "Ties",
    "Trace",
    "TreeResult",
    "VerifyResult",
    "available_backends",
    "bfloat16_of_words",
    "cut_at_eos",
    "process",
    "sample",
    "sample_gumbel",
    "sample_rows",
    "verify",
    "verify_greedy",
    "verify_logits",
    "verify_logits_packed",
    "verify_packed",
    "verify_speculative_tokens",
    "verify_tree",
    "verify_tree_logits",
]
