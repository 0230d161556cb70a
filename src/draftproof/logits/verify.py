"""The public calls that take logits: docstrings, checks, choice of backend; no mathematics."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.backends import load_logits_backend, load_short_way_from_logits
from draftproof.batch import Batch, packed_batch, padded_batch
from draftproof.errors import BadRowError, complaint
from draftproof.logits.batch import logits_batch, unwrapped
from draftproof.logits.logprobs import LOGPROBS_MODES, expected_acceptance, make_logprobs
from draftproof.logits.params import SamplingParams
from draftproof.logits.params_batch import ParamsBatch
from draftproof.logits.rows import LogitRows
from draftproof.logits.seeded import seeded_uniforms
from draftproof.trace import make_trace
from draftproof.types import DraftLogits, RowStatus, SparseProbs, VerifyResult
from draftproof.validation import Fault, first_fault
from draftproof.verify import check_options, checked_state

__all__ = ["explained", "verify_logits", "verify_logits_packed"]


def verify_logits(
    draft_token_ids: npt.ArrayLike,
    draft: DraftLogits | npt.ArrayLike | SparseProbs | None,
    target_logits: npt.ArrayLike,
    num_draft: npt.ArrayLike | None = None,
    rng: np.random.Generator | None = None,
    *,
    params: SamplingParams | Any = None,
    draft_params: SamplingParams | Any = None,
    history: Any = None,
    prompts: Any = None,
    token_mask: Any = None,
    draft_token_mask: Any = None,
    uniforms: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    seeds: npt.ArrayLike | None = None,
    positions: npt.ArrayLike | None = None,
    rule: str = "token",
    greedy: npt.ArrayLike | None = None,
    draft_to_target: npt.ArrayLike | None = None,
    allow_narrow_draft: bool = False,
    state: object = None,
    validate: str = "touched",
    on_bad_row: str = "raise",
    backend: str = "auto",
    num_threads: int | None = None,
    return_trace: bool = False,
    logprobs: int | None = None,
    logprobs_mode: str = "processed",
    return_acceptance: bool = False,
) -> VerifyResult:
    """Verify drafts against logits: the text is distributed as `sample` would have sampled it.

    ::

        p_i = process(target_logits[b, i], params[b], history[b] + drafts 0..i-1)
        q_i = process(draft.logits[b, i], draft_params[b], history[b] + drafts 0..i-1)
        verify(draft_token_ids, q, p, ...)

    Rows at temperature 0 are greedy, and a batch may mix. A row of logits is processed when the
    rule reads it: with ``rule="token"`` none behind the first rejection.

    Args:
        draft_token_ids: [B, K] integers. What lies at or past ``num_draft[b]`` is never read.
        draft: the law that each token was really sampled from: a `DraftLogits` of [B, K, V], or
            probabilities [B, K, V], or `SparseProbs`, or None for a deterministic drafter.
        target_logits: [B, K+1, V] floats: float32, float64, float16, or bfloat16 (ml_dtypes or
            PyTorch). -inf bans a token. Rows past ``num_draft[b]`` are never read.
        num_draft, rng: as for `verify`.
        params: one `SamplingParams` for all rows, B of them, or a `ParamsBatch`; left out: the
            softmax of the logits.
        draft_params: the same for a `DraftLogits`; left out: the drafter sampled as the target
            does, by ``params`` and ``token_mask``.
        history: B sequences of token ids, what each request has emitted so far: needed by
            penalties and ``min_tokens``.
        prompts: B sequences of token ids, which penalties count where their order says so.
        token_mask: the tokens that each position allows, beside the requests' own masks: bool
            [B, K+1, V], or [B, K+1, ceil(V / 32)] uint32 or int32 words of packed bits as grammar
            engines fill them. The bonus row has its own.
        draft_token_mask: the same over [B, K], where ``draft_params`` are given.
        uniforms, seeds, positions: as for `verify`. Requests whose params have a ``seed`` use it,
            with ``positions``; the others then use ``rng``.
        rule, draft_to_target, allow_narrow_draft, state, validate, num_threads: as for `verify`.
        greedy: [B] booleans, rows that are greedy whatever their temperature.
        on_bad_row: as for `verify`. A row of logits is bad if among its tokens that are not banned
            one is NaN or +inf, or if no token is left; greedy rows only if no token is left.
        backend: ``"auto"``, ``"native"``, ``"numpy"`` or ``"reference"``.
        return_trace: fill ``result.trace``.
        logprobs: fill ``result.logprobs`` with the log-probabilities of the emitted tokens and of
            this many likeliest ones; 0 for the emitted tokens alone.
        logprobs_mode: ``"processed"``, or ``"raw"`` for the softmax of the logits as given.
        return_acceptance: fill ``result.acceptance`` with sum min(p, q) at the positions read.

    Returns:
        A `VerifyResult`.

    Exactness:
        Logits are taken as exact numbers, the law is made in float64. Backends return the same
        tokens for the same uniforms, but where a uniform or a filter's edge lies within rounding.

    Uniforms consumed:
        Those of `verify`.

    Raises:
        As `verify` does; also for parameters out of range, and for what a call cannot honour.

    >>> import numpy as np
    >>> from draftproof import SamplingParams
    >>> logits = np.log([[[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]]])
    >>> result = verify_logits([[0]], None, logits, params=SamplingParams(top_k=2),
    ...                        uniforms=([[0.5]], [0.5]), logprobs=1)
    >>> result.to_lists(), result.logprobs.top_token_ids.tolist()
    ([[0, 3]], [[[0], [3]]])
    """
    if (
        type(rng) is np.random.Generator
        and (draft is None or type(draft) is DraftLogits)
        and (params is None or type(params) is SamplingParams)
        and draft_params is history is prompts is token_mask is draft_token_mask is uniforms is None
        and seeds is positions is greedy is draft_to_target is state is logprobs is None
        and return_trace is return_acceptance is False
    ):
        short = load_short_way_from_logits()(
            draft_token_ids, draft, target_logits, num_draft, rng, params, rule, validate,
            on_bad_row, backend, num_threads,
        )  # fmt: skip
        if type(short) is VerifyResult:
            return short
        if short is not None:
            rng, uniforms = None, short
    law, names = unwrapped(draft)
    batch = padded_batch(
        draft_token_ids, law, target_logits, num_draft, None, draft_to_target,
        allow_narrow_draft, names,
    )  # fmt: skip
    return _verify(
        batch, draft, params, draft_params, history, prompts, token_mask, draft_token_mask,
        rng, uniforms, seeds, positions, rule, greedy, state, validate, on_bad_row, backend,
        num_threads, return_trace, logprobs, logprobs_mode, return_acceptance,
    )  # fmt: skip


def verify_logits_packed(
    draft_token_ids: npt.ArrayLike,
    draft: DraftLogits | npt.ArrayLike | SparseProbs | None,
    target_logits: npt.ArrayLike,
    cu_num_draft: npt.ArrayLike | None = None,
    rng: np.random.Generator | None = None,
    *,
    cu_num_draft_tokens: npt.ArrayLike | None = None,
    params: SamplingParams | Any = None,
    draft_params: SamplingParams | Any = None,
    history: Any = None,
    prompts: Any = None,
    token_mask: Any = None,
    draft_token_mask: Any = None,
    uniforms: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    seeds: npt.ArrayLike | None = None,
    positions: npt.ArrayLike | None = None,
    rule: str = "token",
    greedy: npt.ArrayLike | None = None,
    draft_to_target: npt.ArrayLike | None = None,
    allow_narrow_draft: bool = False,
    state: object = None,
    validate: str = "touched",
    on_bad_row: str = "raise",
    backend: str = "auto",
    num_threads: int | None = None,
    return_trace: bool = False,
    logprobs: int | None = None,
    logprobs_mode: str = "processed",
    return_acceptance: bool = False,
) -> VerifyResult:
    """Verify drafts that lie one behind the other, as in `verify_packed`; else `verify_logits`.

    Args:
        draft_token_ids: [N] integers.
        draft: `DraftLogits` or probabilities of [N, V], `SparseProbs` of [N, M], or None.
        target_logits: [N+B, V] floats, each row's bonus row behind its drafts' rows.
        cu_num_draft, cu_num_draft_tokens, rng, uniforms: as for `verify_packed`.
        token_mask: bool [N+B, V], or [N+B, ceil(V / 32)] words; ``draft_token_mask`` over [N].
        params, draft_params, history, prompts, seeds, positions, rule, greedy, draft_to_target,
        allow_narrow_draft, state, validate, on_bad_row, backend, num_threads, return_trace,
        logprobs, logprobs_mode, return_acceptance: as for `verify_logits`.

    Returns:
        A `VerifyResult` padded to K, the longest row.

    Exactness, uniforms and errors are `verify_logits`'s.

    >>> logits = [[0.0, 9.0], [9.0, 0.0], [2.0, 1.0]]
    >>> verify_logits_packed([1], None, logits, [0, 1, 1], params=SamplingParams(temperature=0),
    ...                      uniforms=([0.9], [0.2, 0.7])).to_lists()
    [[1, 0], [0]]
    """
    law, names = unwrapped(draft)
    batch = packed_batch(
        draft_token_ids,
        law,
        target_logits,
        cu_num_draft,
        cu_num_draft_tokens=cu_num_draft_tokens,
        draft_to_target=draft_to_target,
        allow_narrow_draft=allow_narrow_draft,
        names=names,
    )
    return _verify(
        batch, draft, params, draft_params, history, prompts, token_mask, draft_token_mask,
        rng, uniforms, seeds, positions, rule, greedy, state, validate, on_bad_row, backend,
        num_threads, return_trace, logprobs, logprobs_mode, return_acceptance,
    )  # fmt: skip


def _verify(
    batch: Batch,
    draft: Any,
    params: SamplingParams | ParamsBatch | Any,
    draft_params: Any,
    history: Any,
    prompts: Any,
    token_mask: Any,
    draft_token_mask: Any,
    rng: np.random.Generator | None,
    uniforms: Any,
    seeds: Any,
    positions: Any,
    rule: str,
    greedy: Any,
    state: object,
    validate: str,
    on_bad_row: str,
    backend: str,
    num_threads: int | None,
    return_trace: bool,
    logprobs: int | None,
    logprobs_mode: str,
    return_acceptance: bool,
) -> VerifyResult:
    check_options(rule, validate, on_bad_row, backend, num_threads, return_trace)
    _check_logprobs(logprobs, logprobs_mode, return_acceptance)
    backend, implementation = load_logits_backend(backend, rule)
    batch = logits_batch(
        batch, draft, params, draft_params, history, prompts, token_mask, draft_token_mask,
        greedy, definition=backend == "reference",
    )  # fmt: skip
    if state is not None:
        batch = batch._replace(state=checked_state(state, rule, batch.size))
    rows: Any = batch.target_probs
    accept, final = seeded_uniforms(
        batch, rows.params, rule, rng, uniforms, seeds, positions, implementation.uniform
    )
    token_ids, num_emitted, status, *kept = implementation.verify_chain(
        batch, rule, accept, final, validate=validate, num_threads=num_threads
    )
    if on_bad_row == "raise" and np.count_nonzero(status):
        bad = np.flatnonzero(status > RowStatus.ZERO_RESIDUAL)
        if len(bad):
            row = int(bad[0])
            # A kernel may stop where no law can be made, even if nothing is judged.
            fault = first_fault(batch, rule, accept, final, row, validate) or first_fault(
                batch, rule, accept, final, row, "full"
            )
            assert fault is not None, f"a backend reports a status in row {row}"
            raise explained(fault, (rows, batch.draft_probs), row, int(status[row]))
    result = VerifyResult(
        token_ids, num_emitted, batch.num_draft, status, backend, None, *kept or (None,)
    )
    if return_trace:
        trace = make_trace(batch, rule, accept, final, num_emitted)
        result = result._replace(trace=trace)
    if logprobs is not None:
        fill = getattr(implementation, "list_logprobs", None)
        listed = make_logprobs(
            batch, rows, token_ids, num_emitted, logprobs, logprobs_mode,
            fill and functools.partial(fill, num_threads=num_threads),
        )  # fmt: skip
        result = result._replace(logprobs=listed)
    if return_acceptance:
        result = result._replace(acceptance=expected_acceptance(batch, num_emitted))
    return result


def explained(fault: Fault, laws: tuple[Any, ...], row: int, status: int) -> BadRowError:
    """Speak of the logits where a law could not be made of them."""
    place, found, wanted, fix = fault.place, fault.found, fault.wanted, fault.fix
    for rows in laws:
        side = (RowStatus.TARGET_NOT_FINITE, RowStatus.DRAFT_NOT_FINITE)[rows is not laws[0]]
        reason = rows.unusable(place) if isinstance(rows, LogitRows) else None
        if reason is not None and fault.status == side:
            place, found, wanted, fix = reason
    message = complaint(fault.argument, place, found=found, wanted=wanted, fix=fix)
    return BadRowError(message, row, status)


def _check_logprobs(logprobs: Any, mode: Any, return_acceptance: Any) -> None:
    integer = isinstance(logprobs, int | np.integer) and not isinstance(logprobs, bool)
    for name, value, well, wanted in (
        ("logprobs", logprobs, logprobs is None or (integer and logprobs >= 0),
         "a number of alternatives >= 0, or None"),
        ("logprobs_mode", mode, isinstance(mode, str) and mode in LOGPROBS_MODES,
         "'processed' or 'raw'"),
        ("return_acceptance", return_acceptance, isinstance(return_acceptance, bool | np.bool_),
         "True or False"),
    ):  # fmt: skip
        if not well:
            fix = "choose one of these"
            raise ValueError(complaint(name, "", found=repr(value), wanted=wanted, fix=fix))
