"""What goes into and comes out of the verifier, and the glossary of its symbols.

========  ==========================================================================
Symbol    Meaning
========  ==========================================================================
``B``     rows of a batch (requests)
``K``     longest draft in the batch
``V``     vocabulary of the target
``N``     sum of the rows' draft lengths
``M``     entries of a sparse draft law
``g``     one row's draft length, ``num_draft[b]``
``p``     target law (public name: ``target_probs``)
``q``     draft law (public name: ``draft_probs``)
``tau``   accepted drafts (public name: ``num_accepted``)
========  ==========================================================================

A row emits its ``tau`` accepted drafts and one last token: *recovered* from the residual after
a rejection, or the *bonus* when every draft was accepted.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from draftproof.arrays import IntArray
from draftproof.state import GreedyBlockState

__all__ = [
    "DraftLogits",
    "FloatArray",
    "IntArray",
    "Logprobs",
    "RowStatus",
    "SparseProbs",
    "Trace",
    "VerifyResult",
]

FloatArray = npt.NDArray[np.floating[Any]]


class RowStatus(enum.IntFlag):
    """Bits of ``VerifyResult.status``.

    Every bit but `ZERO_RESIDUAL` means that the row could not be decided and emitted nothing.
    A row carries the bit of the first fault met in the order in which the rule reads its numbers.
    """

    OK = 0
    ZERO_RESIDUAL = 1
    """After a rejection p equalled q but for rounding; the last token was drawn from p."""
    LENGTH_OUT_OF_RANGE = 2
    """``num_draft`` lies outside 0..K, or below what the row's state needs."""
    TOKEN_OUT_OF_RANGE = 4
    """A drafted id within ``num_draft`` lies outside the vocabulary."""
    UNIFORM_OUT_OF_RANGE = 8
    """A uniform lies outside [0, 1)."""
    TARGET_NOT_FINITE = 16
    """NaN or infinity among the target's numbers; a greedy row or logits with none above -inf."""
    TARGET_NEGATIVE = 32
    """A negative target probability."""
    TARGET_MASS = 64
    """A target row whose sum is not 1 within `draftproof.validation.mass_tolerance`."""
    DRAFT_NOT_FINITE = 128
    """NaN or infinity among the draft law's numbers; logits without an entry above -inf."""
    DRAFT_NEGATIVE = 256
    """A negative draft probability."""
    DRAFT_MASS = 512
    """A draft row whose sum is not 1 within `draftproof.validation.mass_tolerance`."""
    DRAFT_ZERO = 1024
    """``validate="full"``: a drafted token whose own law gives it probability 0."""
    SPARSE_ID_OUT_OF_RANGE = 2048
    """An id of `SparseProbs` beyond the vocabulary (-1 is padding)."""
    SIBLING_REPEATED = 4096
    """Two children of one node with one token, in a tree whose draws exclude it."""


@dataclass(frozen=True, eq=False)
class SparseProbs:
    """A draft law with few entries per row: the drafter sampled from a truncated, renormalised law.

    Attributes:
        ids: integers [B, K, M] (packed: [N, M]). A negative id is padding: its probability is not
            read. An id that occurs twice in a row has the sum of its probabilities.
        probs: floats of the same shape, each row of mass 1. Tokens that are not listed have q = 0.

    Truncating a law *after* the token was sampled from the full one is lossy: hand over the law
    that was sampled.
    """

    ids: npt.NDArray[np.integer[Any]]
    probs: FloatArray


@dataclass(frozen=True, eq=False)
class DraftLogits:
    """The logits that drafts were sampled from, by `draftproof.sample` or the same law.

    Attributes:
        logits: floats [B, K, V] (packed: [N, V]); rows at or past ``num_draft[b]`` are never read.
    """

    logits: FloatArray


@dataclass(frozen=True, eq=False)
class Trace:
    """What decided each row, on request (``return_trace=True``). All arrays are padded to K.

    Attributes:
        accept_mask: bool [B, K], which drafts were accepted.
        ratios: float64 [B, K], p(x) / q(x) at the positions the rule looked at, else NaN. Greedy
            rows, ``exact-match`` and ``gumbel`` compare tokens and have no ratios.
        accept_uniforms: float64 [B, K], the uniforms of the accept tests; NaN where a row has no
            draft, on greedy rows and for ``gumbel``.
        final_uniforms: float64 [B], the uniform of the last token; NaN on greedy rows and for
            ``gumbel``.
        residual_mass: float64 [B], the mass of max(0, p - q) at the rejected position of a
            rejection rule, else NaN. ``block`` and ``greedy-block`` weigh p by their joint ratio.
        expected_acceptance: float64 [B], sum_x min(p, q) at that position, else NaN: it tells a
            bad draft from a bad verifier.
        is_bonus: bool [B], whether the last token is the bonus (else it is recovered).
    """

    accept_mask: npt.NDArray[np.bool_]
    ratios: npt.NDArray[np.float64]
    accept_uniforms: npt.NDArray[np.float64]
    final_uniforms: npt.NDArray[np.float64]
    residual_mass: npt.NDArray[np.float64]
    expected_acceptance: npt.NDArray[np.float64]
    is_bonus: npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Logprobs:
    """Natural logarithms of the target's probabilities, row i of a request at its i-th token.

    Attributes:
        token_logprobs: float64 [B, K+1], of each emitted token; NaN where none was.
        token_ranks: int64 [B, K+1], 1 for the likeliest token of its row; 0 where none was emitted.
        top_token_ids: int64 [B, K+1, n], the likeliest tokens of each row, lowest ids first among
            equals; -1 behind the last token that the row's law has.
        top_logprobs: float64 [B, K+1, n], theirs; NaN behind the last.
    """

    token_logprobs: npt.NDArray[np.float64]
    token_ranks: IntArray
    top_token_ids: IntArray
    top_logprobs: npt.NDArray[np.float64]


class _Emitted(NamedTuple):
    token_ids: IntArray
    num_emitted: IntArray


class VerifyResult(_Emitted):
    """The emitted tokens: a named tuple ``(token_ids, num_emitted)`` that carries more.

    Attributes:
        token_ids: int64 [B, K+1], each row's emitted tokens, padded with -1.
        num_emitted: int64 [B], accepted drafts + 1; 0 for a row that could not be decided.
        num_draft: int64 [B], the drafts each row was given.
        status: int64 [B] of `RowStatus` bits, 0 where all is well.
        backend: which implementation ran: ``"native"``, ``"numpy"`` or ``"reference"``.
        trace: a `Trace` if it was asked for, else None.
        state: what the next round has to be given, of a rule that keeps a state, else None.
        logprobs: of the emitted tokens, a `Logprobs` if `verify_logits` was asked for them.
        acceptance: float64 [B, K], sum_x min(p, q) at the positions that decided a row, else NaN,
            if `verify_logits` was asked for it.

    >>> import numpy as np
    >>> from draftproof import verify
    >>> token_ids, num_emitted = verify(
    ...     [[1]], None, [[[0.0, 1.0], [1.0, 0.0]]], rng=np.random.default_rng(0))
    >>> token_ids.tolist(), num_emitted.tolist()
    ([[1, 0]], [2])
    """

    num_draft: IntArray
    status: IntArray
    backend: str
    trace: Trace | None = None
    state: GreedyBlockState | None = None
    logprobs: Logprobs | None = None
    acceptance: FloatArray | None = None

    def __new__(
        cls,
        token_ids: IntArray,
        num_emitted: IntArray,
        num_draft: IntArray,
        status: IntArray,
        backend: str,
        trace: Trace | None = None,
        state: GreedyBlockState | None = None,
        logprobs: Logprobs | None = None,
        acceptance: FloatArray | None = None,
    ) -> VerifyResult:
        """Bind the two tuple fields and the attributes beside them."""
        self = tuple.__new__(cls, (token_ids, num_emitted))
        self.num_draft, self.status, self.backend = num_draft, status, backend
        self.trace, self.state = trace, state
        self.logprobs, self.acceptance = logprobs, acceptance
        return self

    def __getnewargs__(self) -> tuple[Any, ...]:
        """Let copies and pickles keep the attributes."""
        beside = self.num_draft, self.status, self.backend, self.trace, self.state
        return (*self, *beside, self.logprobs, self.acceptance)

    def _replace(self, **changes: Any) -> VerifyResult:
        """Return a copy with some fields or attributes changed."""
        return VerifyResult(
            **{"token_ids": self[0], "num_emitted": self[1], **vars(self), **changes}
        )

    @property
    def num_accepted(self) -> IntArray:
        """Accepted drafts, int64 [B] (0 for a row that could not be decided)."""
        return np.maximum(self.num_emitted - 1, 0)

    def to_lists(self) -> list[list[int]]:
        """Each row's emitted tokens, without padding.

        >>> import numpy as np
        >>> from draftproof import verify
        >>> p = [[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [1.0, 0.0]]]
        >>> verify([[1], [1]], None, p, rng=np.random.default_rng(0)).to_lists()
        [[1, 0], [0]]
        """
        pairs = zip(self.token_ids.tolist(), self.num_emitted.tolist(), strict=True)
        return [tokens[:count] for tokens, count in pairs]
