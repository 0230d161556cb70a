"""The public calls: docstrings, checks of the arguments, choice of backend; no mathematics."""

from __future__ import annotations

from collections.abc import Container

import numpy as np
import numpy.typing as npt

from draftproof.arrays import as_integers
from draftproof.backends import BACKENDS, load_backend, load_short_way
from draftproof.batch import Batch, packed_batch, padded_batch, rows_batch
from draftproof.errors import BadRowError, complaint
from draftproof.foreign import read_array
from draftproof.kernels.argmax import match_argmax, refuse_bad_argmax
from draftproof.rules import RULES
from draftproof.state import GreedyBlockState
from draftproof.trace import make_trace
from draftproof.types import IntArray, RowStatus, SparseProbs, VerifyResult
from draftproof.uniforms import draw_uniforms
from draftproof.validation import VALIDATE, first_fault

__all__ = ["sample_rows", "verify", "verify_batch", "verify_greedy", "verify_packed"]

ON_BAD_ROW = ("raise", "status")


def verify(
    draft_token_ids: npt.ArrayLike,
    draft_probs: npt.ArrayLike | SparseProbs | None,
    target_probs: npt.ArrayLike,
    num_draft: npt.ArrayLike | None = None,
    rng: np.random.Generator | None = None,
    *,
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
) -> VerifyResult:
    """Verify a ragged batch of drafts, losslessly: the text is distributed as the target's own.

    ::

        for each row b, with g = num_draft[b]:
            for i in 0..g-1:                                  # rule="token"
                p, q = target_probs[b, i, x_i], draft_probs[b, i, x_i]
                accept x_i iff p > 0 and (p >= q or u_i * q < p), else stop
            last token ~ normalise(max(0, target_probs[b, tau] - draft_probs[b, tau]))  if stopped
                       ~ target_probs[b, g]                                             else

        rule="exact-match": draw y_i ~ target_probs[b, i]; stop at the first y_i != x_i and emit it;
                            the bonus is y_g
        rule="gumbel":      the same, y_i the winner of a race keyed by seed and position
        rule="block":       w_i = min(1, w_{i-1} p_i(x_i) / q_i(x_i)), w_0 = 1; tau is the largest i
                            that passes its test; last token ~ max(0, w_tau p - q) if tau < g
        rule="greedy-block": the same without the cap on w, and with a state for the next round

    Args:
        draft_token_ids: [B, K] integers. What lies at or past ``num_draft[b]`` is never read.
        draft_probs: the law each token was really sampled from: [B, K, V] floats, or
            `SparseProbs` of shape [B, K, M], or None for a deterministic drafter (a point mass on
            its token: n-gram, prompt lookup, argmax). Rows at or past ``num_draft[b]`` are never
            read. ``exact-match`` and ``gumbel`` read none.
        target_probs: [B, K+1, V] floats: the target law at each draft position and, at position
            ``num_draft[b]``, the law after all the row's drafts. Later rows are never read.
        num_draft: [B] integers in 0..K; K if it is left out.
        rng: consumes ``rng.random((B, K))`` for the accept tests, then ``rng.random((B, 1))`` for
            the last tokens.
        uniforms: ``(accept [B, K], final [B])`` in [0, 1) instead: the call is a pure function.
        seeds: [B] integers, a 64-bit key for each request (negative ones are their two's
            complement), instead; needs ``positions``. See `draftproof.noise`.
        positions: [B] integers, the index in its text of the first token each row can emit.
        rule: ``"token"``, ``"block"`` and ``"greedy-block"`` need q, ``"exact-match"`` and
            ``"gumbel"`` do not; ``"gumbel"`` needs seeds. All are lossless. See `draftproof.RULES`.
        greedy: [B] booleans, rows at temperature 0: accept while the draft is the target's argmax
            and emit the argmax; ties to the lowest id, NaN never wins, no randomness is read.
        draft_to_target: [V_draft] integers, the target id of each of the drafter's ids. Drafted
            ids and the draft law's columns (or sparse ids) are then in the drafter's vocabulary;
            the tokens of the result are always the target's.
        allow_narrow_draft: let a dense draft law have fewer columns than V: absent ids have q = 0.
        state: for ``greedy-block`` the ``state`` of the result of each row's round before, None
            where all texts begin. Each row needs at least ``state.num_open`` drafts, from the same
            drafter: its law must depend on the text alone.
        validate: ``"touched"``, ``"full"`` or ``"off"``; see `draftproof.validation`.
        on_bad_row: ``"raise"``, or ``"status"``: a row that cannot be decided emits nothing, its
            ``status`` says why, and every other row is as if it were not there.
        backend: ``"auto"``, ``"native"``, ``"numpy"`` or ``"reference"``.
        num_threads: the most that the native backend may use, by default the CPUs at hand. A
            small call uses fewer, since waking a thread would cost more than it saves.
        return_trace: fill ``result.trace``.

    Returns:
        A `VerifyResult`: ``token_ids, num_emitted = verify(...)`` works. ``B = 0`` gives shapes
        (0, K+1) and (0,); ``K = 0`` is legal.

    Exactness:
        Inputs are taken as exact numbers (float16, bfloat16 and float32 widen to float64), sums
        run in float64. Every backend returns the same tokens for the same uniforms: those of the
        running sum in token order, also at the edge of rounding.

    Uniforms consumed:
        One for each draft up to the first rejection, and one for the last token, of 53 bits.
        ``block`` and ``greedy-block`` read them from the last draft down to the one kept.
        With ``rng`` all B*K + B are drawn whether or not they are read.

    Raises:
        ValueError, TypeError: shapes, dtypes and options, always.
        BadRowError: a `ValueError` for the first bad row, under ``on_bad_row="raise"``.
        BackendUnavailableError: a `ValueError` for a named backend that is not installed.

    Source:
        token: Leviathan, Kalman and Matias, ICML 2023 (arXiv 2211.17192), algorithm 1; Chen et
        al. 2023 (arXiv 2302.01318), algorithm 2. block, greedy-block: Sun et al., ICLR 2025 (arXiv
        2403.10444). gumbel: Daliri, Musco and Suresh, 2024 (arXiv 2408.07978).

    >>> import numpy as np
    >>> q = np.array([[[0.7, 0.2, 0.1], [0.2, 0.6, 0.2]]])
    >>> p = np.array([[[0.1, 0.7, 0.2], [0.2, 0.6, 0.2], [0.3, 0.3, 0.4]]])
    >>> result = verify([[0, 1]], q, p, uniforms=([[0.5, 0.5]], [0.3]))
    >>> result.token_ids.tolist(), result.num_emitted.tolist()  # 0.5 * 0.7 >= 0.1: recovered
    ([[1, -1, -1]], [1])
    """
    short = load_short_way()(
        draft_token_ids,
        draft_probs,
        target_probs,
        num_draft,
        rng,
        uniforms,
        seeds,
        positions,
        rule,
        greedy,
        draft_to_target,
        state,
        validate,
        on_bad_row,
        backend,
        num_threads,
        return_trace,
    )
    if type(short) is VerifyResult:
        return short
    if short is not None:
        status, drawn = short
        batch = padded_batch(draft_token_ids, draft_probs, target_probs, num_draft)
        accept, final = np.split(drawn, [batch.size * batch.max_draft])
        accept = accept.reshape(batch.size, batch.max_draft)
        row = int(np.argmax(status > RowStatus.ZERO_RESIDUAL))
        raise bad_row(batch, rule, accept, final, row, int(status[row]), validate)
    batch = padded_batch(
        draft_token_ids,
        draft_probs,
        target_probs,
        num_draft,
        greedy,
        draft_to_target,
        allow_narrow_draft,
    )
    return verify_batch(
        batch,
        rng,
        uniforms,
        seeds,
        positions,
        rule,
        state,
        validate,
        on_bad_row,
        backend,
        num_threads,
        return_trace,
    )


def verify_packed(
    draft_token_ids: npt.ArrayLike,
    draft_probs: npt.ArrayLike | SparseProbs | None,
    target_probs: npt.ArrayLike,
    cu_num_draft: npt.ArrayLike | None = None,
    rng: np.random.Generator | None = None,
    *,
    cu_num_draft_tokens: npt.ArrayLike | None = None,
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
) -> VerifyResult:
    """Verify drafts that lie one behind the other, as engines hold them; else `verify`.

    Row b owns drafts ``cu[b] : cu[b+1]`` and target rows ``cu[b] + b : cu[b+1] + b + 1``.

    Args:
        draft_token_ids: [N] integers.
        draft_probs: [N, V] floats, `SparseProbs` of shape [N, M], or None.
        target_probs: [N+B, V] floats, each row's bonus row behind its drafts' rows.
        cu_num_draft: [B+1] integers that start with 0 and never decrease.
        rng: consumes ``rng.random(N)``, then ``rng.random(B)``.
        cu_num_draft_tokens: [B] integers, vLLM's spelling without the leading 0, in its place.
        uniforms: ``(accept [N], final [B])``.
        seeds, positions, rule, greedy, draft_to_target, allow_narrow_draft, state, validate,
        on_bad_row, backend, num_threads, return_trace: as for `verify`.

    Returns:
        A `VerifyResult` padded to K, the longest row.

    Exactness, uniforms for a seed, errors and source are `verify`'s.

    >>> import numpy as np
    >>> p = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
    >>> verify_packed([1], None, p, [0, 1, 1], uniforms=([0.9], [0.2, 0.7])).to_lists()
    [[1, 0], [1]]
    """
    batch = packed_batch(
        draft_token_ids,
        draft_probs,
        target_probs,
        cu_num_draft,
        cu_num_draft_tokens=cu_num_draft_tokens,
        greedy=greedy,
        draft_to_target=draft_to_target,
        allow_narrow_draft=allow_narrow_draft,
    )
    return verify_batch(
        batch,
        rng,
        uniforms,
        seeds,
        positions,
        rule,
        state,
        validate,
        on_bad_row,
        backend,
        num_threads,
        return_trace,
    )


def verify_greedy(
    draft_token_ids: npt.ArrayLike,
    target_probs: npt.ArrayLike | None = None,
    num_draft: npt.ArrayLike | None = None,
    *,
    target_argmax: npt.ArrayLike | None = None,
    on_bad_row: str = "raise",
    backend: str = "auto",
    num_threads: int | None = None,
) -> VerifyResult:
    """Verify at temperature 0: keep the drafts that equal the argmax, then emit the argmax.

    The result equals plain greedy decoding on the same rows bit for bit.

    Args:
        draft_token_ids: [B, K] integers; what lies at or past ``num_draft[b]`` is never read.
        target_probs: [B, K+1, V] floats: probabilities, or logits, whose argmax is the same. Ties
            go to the lowest id and NaN never wins; a row with nothing above -inf is bad. A
            [B, K+1] integer array is taken as ``target_argmax``.
        num_draft: [B] integers in 0..K; K if it is left out.
        target_argmax: [B, K+1] integers >= 0 in place of ``target_probs``.
        on_bad_row, backend, num_threads: as for `verify`.

    Consumes no uniforms. Raises as `verify` does.

    >>> verify_greedy([[1, 0]], [[[0.3, 0.5, 0.2], [0.1, 0.2, 0.7], [1, 0, 0]]]).to_lists()
    [[1, 2]]
    """
    if (target_probs is None) == (target_argmax is None):
        found = "neither" if target_probs is None else "both"
        raise ValueError(
            complaint(
                "target_probs",
                "",
                found=f"{found} of target_probs and target_argmax",
                wanted="exactly one",
                fix="pass target_probs [B, K+1, V] or target_argmax [B, K+1]",
            )
        )
    if not _is_option(on_bad_row, ON_BAD_ROW):
        raise _unknown_option("on_bad_row", on_bad_row, ON_BAD_ROW)
    if not _is_option(backend, ("auto", *BACKENDS)):
        raise _unknown_option("backend", backend, ("auto", *BACKENDS))
    load_backend(backend)
    check_num_threads(num_threads)
    ids = as_integers("draft_token_ids", draft_token_ids, (), "B", "K")
    if target_argmax is None and read_array("target_probs", target_probs).ndim == 2:
        target_argmax = target_probs
    if target_argmax is not None:
        best = as_integers("target_argmax", target_argmax, (len(ids), ids.shape[1] + 1))
        lengths = np.full(len(ids), ids.shape[1], dtype=np.int64)
        if num_draft is not None:
            lengths = as_integers("num_draft", num_draft, (len(ids),))
        if on_bad_row == "raise":
            refuse_bad_argmax(ids, best, lengths)
        return VerifyResult(*match_argmax(ids, best, lengths), "numpy")
    everywhere = np.ones(len(ids), dtype=np.bool_)
    batch = padded_batch(ids, None, target_probs, num_draft, greedy=everywhere)
    return verify_batch(
        batch,
        None,
        (np.zeros(ids.shape), np.zeros(len(ids))),
        None,
        None,
        on_bad_row=on_bad_row,
        backend=backend,
        num_threads=num_threads,
    )


def sample_rows(
    dist: npt.ArrayLike,
    rng: np.random.Generator | None = None,
    *,
    uniforms: npt.ArrayLike | None = None,
    seeds: npt.ArrayLike | None = None,
    positions: npt.ArrayLike | None = None,
    validate: str = "touched",
    on_bad_row: str = "raise",
    backend: str = "auto",
    num_threads: int | None = None,
) -> IntArray:
    """Draw one token from each row by its inverse CDF: what `verify` does for a row without drafts.

    Args:
        dist: [B, V] floats, one law for each row.
        rng: consumes ``rng.random(B)``.
        uniforms: [B] in [0, 1), instead.
        seeds, positions: [B], instead: plain keyed sampling, the text that ``exact-match`` equals.
        validate, on_bad_row, backend, num_threads: as for `verify`.

    Returns:
        int64 [B] tokens; -1 for a bad row under ``on_bad_row="status"``.

    Consumes one uniform a row. No u in [0, 1) returns a token of weight zero. Exact up to float64
    rounding of the running sum; raises as `verify` does.

    >>> sample_rows([[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]], uniforms=[0.5, 0.0]).tolist()
    [2, 1]
    """
    batch = rows_batch(dist)
    pair = None if uniforms is None else (np.zeros((batch.size, 0)), uniforms)
    result = verify_batch(
        batch,
        rng,
        pair,
        seeds,
        positions,
        validate=validate,
        on_bad_row=on_bad_row,
        backend=backend,
        num_threads=num_threads,
    )
    return result.token_ids[:, 0]


def verify_batch(
    batch: Batch,
    rng: np.random.Generator | None,
    uniforms: tuple[npt.ArrayLike, npt.ArrayLike] | None,
    seeds: npt.ArrayLike | None,
    positions: npt.ArrayLike | None,
    rule: str = "token",
    state: object = None,
    validate: str = "touched",
    on_bad_row: str = "raise",
    backend: str = "auto",
    num_threads: int | None = None,
    return_trace: bool = False,
) -> VerifyResult:
    """Check the options, draw the uniforms, run the backend, report the first bad row."""
    check_options(rule, validate, on_bad_row, backend, num_threads, return_trace)
    if state is not None:
        batch = batch._replace(state=checked_state(state, rule, batch.size))
    backend, implementation = load_backend(backend, rule)
    accept, final = draw_uniforms(
        batch, rule, rng, uniforms, seeds, positions, implementation.uniform
    )
    token_ids, num_emitted, status, *kept = implementation.verify_chain(
        batch, rule, accept, final, validate=validate, num_threads=num_threads
    )
    if on_bad_row == "raise" and np.count_nonzero(status):
        bad = np.flatnonzero(status > RowStatus.ZERO_RESIDUAL)
        if len(bad):
            row = int(bad[0])
            raise bad_row(batch, rule, accept, final, row, int(status[row]), validate)
    trace = None
    if return_trace:
        trace = make_trace(batch, rule, accept, final, num_emitted)
    return VerifyResult(token_ids, num_emitted, batch.num_draft, status, backend, trace, *kept)


def check_options(
    rule: object,
    validate: object,
    on_bad_row: object,
    backend: object,
    num_threads: object,
    return_trace: object,
) -> None:
    """Refuse an option that the calls for chains do not know."""
    if not _is_option(rule, RULES):
        raise _unknown_rule(rule)
    if not _is_option(validate, VALIDATE):
        raise _unknown_option("validate", validate, VALIDATE)
    if not _is_option(on_bad_row, ON_BAD_ROW):
        raise _unknown_option("on_bad_row", on_bad_row, ON_BAD_ROW)
    if not _is_option(backend, ("auto", *BACKENDS)):
        raise _unknown_option("backend", backend, ("auto", *BACKENDS))
    if not isinstance(return_trace, bool | np.bool_):
        raise _unknown_option("return_trace", return_trace, (True, False))
    check_num_threads(num_threads)


def checked_state(state: object, rule: str, size: int) -> GreedyBlockState:
    """Return the state of a batch's earlier rounds, if the rule keeps one and it fits."""
    wanted = f"None: rule {rule!r} keeps no state between rounds"
    fix = "drop it"
    if RULES[rule].keeps_state:
        if isinstance(state, GreedyBlockState) and len(state) == size:
            return state
        wanted = f"the GreedyBlockState of {size} rows, or None where all texts begin"
        fix = "pass result.state of the round before, or its take(rows) for other rows"
    found = f"a {type(state).__name__}"
    if isinstance(state, GreedyBlockState):
        found += f" of {len(state)} rows"
    raise ValueError(complaint("state", "", found=found, wanted=wanted, fix=fix))


def bad_row(
    batch: Batch,
    rule: str,
    accept: npt.NDArray[np.float64],
    final: npt.NDArray[np.float64],
    row: int,
    status: int,
    validate: str,
) -> BadRowError:
    """Say what is wrong with a row that a backend could not decide."""
    fault = first_fault(batch, rule, accept, final, row, validate)
    assert fault is not None, f"a backend reports {RowStatus(status)!r} in row {row}"
    message = complaint(
        fault.argument, fault.place, found=fault.found, wanted=fault.wanted, fix=fault.fix
    )
    return BadRowError(message, row, status)


def _is_option(value: object, options: Container[str]) -> bool:
    return isinstance(value, str) and value in options


def _is_thread_count(value: object) -> bool:
    return bool(isinstance(value, int | np.integer) and not isinstance(value, bool) and value > 0)


def check_num_threads(value: object) -> None:
    """Refuse what is neither None nor a number of threads."""
    if value is not None and not _is_thread_count(value):
        raise ValueError(
            complaint(
                "num_threads",
                "",
                found=repr(value),
                wanted="an int >= 1, or None",
                fix="leave it at None",
            )
        )


def _unknown_rule(rule: object) -> ValueError:
    """Refuse a lossy rule with the reason, and show the way from here to a rule for trees."""
    from draftproof.lossy import explain  # what only a refusal needs is loaded for a refusal
    from draftproof.trees.rules import TREE_RULES

    reason = explain(rule)
    if reason is None and _is_option(rule, TREE_RULES):
        reason = complaint(
            "rule",
            "",
            found=f"{rule!r}, a rule for trees",
            wanted=f"a rule for chains, one of {', '.join(map(repr, RULES))}",
            fix="pass a draftproof.DraftTree to draftproof.verify_tree",
        )
    return _unknown_option("rule", rule, tuple(RULES)) if reason is None else ValueError(reason)


def _unknown_option(name: str, value: object, options: tuple[object, ...]) -> ValueError:
    return ValueError(
        complaint(
            name,
            "",
            found=repr(value),
            wanted=f"one of {', '.join(map(repr, options))}",
            fix="choose one of these",
        )
    )
