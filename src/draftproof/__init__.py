"""Lossless verification for speculative decoding, with the proof that it is lossless.

`verify` takes a ragged batch of drafts with their laws and the target's, and returns text
distributed exactly as the target would have sampled it token by token.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from draftproof.backends import available_backends
from draftproof.errors import BackendUnavailableError, BadRowError
from draftproof.foreign import bfloat16_of_words
from draftproof.rules import RULES, Rule
from draftproof.state import GreedyBlockState
from draftproof.types import (
    DraftLogits,
    Logprobs,
    RowStatus,
    SparseProbs,
    Trace,
    VerifyResult,
)
from draftproof.verify import sample_rows, verify, verify_greedy, verify_packed

if TYPE_CHECKING:
    from draftproof.acceptance import AcceptanceRecord, cut_at_eos
    from draftproof.gumbel import sample_gumbel
    from draftproof.logits.order import Order, Ties
    from draftproof.logits.params import SamplingParams
    from draftproof.logits.params_batch import ParamsBatch
    from draftproof.logits.processing import process
    from draftproof.logits.sampling import sample
    from draftproof.logits.verify import verify_logits, verify_logits_packed
    from draftproof.logits.verify_tree import verify_tree_logits
    from draftproof.practice import verify_speculative_tokens
    from draftproof.trees import DraftTree, Draws, TreeResult
    from draftproof.trees.verify import verify_tree

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

_WHEN_ASKED = {
    "AcceptanceRecord": "acceptance",
    "DraftTree": "trees",
    "Draws": "trees",
    "Order": "logits.order",
    "ParamsBatch": "logits.params_batch",
    "SamplingParams": "logits.params",
    "Ties": "logits.order",
    "TreeResult": "trees",
    "cut_at_eos": "acceptance",
    "process": "logits.processing",
    "sample": "logits.sampling",
    "sample_gumbel": "gumbel",
    "verify_logits": "logits.verify",
    "verify_logits_packed": "logits.verify",
    "verify_speculative_tokens": "practice",
    "verify_tree": "trees.verify",
    "verify_tree_logits": "logits.verify_tree",
}
"""Where the names live that are loaded at their first use, lest the import take twice as long."""

_ROOMS = ("efficiency", "logits", "lossy", "trees")
"""Packages and modules that users name, loaded in the same way."""


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _WHEN_ASKED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_WHEN_ASKED[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ROOMS})
