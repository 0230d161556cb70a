"""How a verifier from logits is called, and how its output is read.

::

    f(draft [B, K], draft_logits [B, K, V], target_logits [B, K+1, V], num_draft [B],
      params, draft_params, history, rng) -> (out [B, K+1], n_out [B])

``params`` and ``draft_params`` are lists of B `SamplingParams`: how the target is to be sampled,
and how the drafts were. A grammar's masks are in them, bool [K+1, V]. ``history`` is a list of B
lists, the tokens that each request has emitted so far. Past ``num_draft[b]`` a draft is -1 and
logits are NaN, or what another engine leaves there. ``out`` is padded with -1.

A keyword ``prompts`` that it has is given a list of B lists; without it, all prompts are empty.

A third result, logprobs [B, K+1], is judged too: the logarithm of each emitted token's probability
in the row that it was drawn from.

An engine says what it is by attributes of the callable: ``order``, a value of
`draftproof.logits.order.Order`, "standard" if it has none; ``lacks``, names of the parameters
that it does not have; ``takes_seeds``, true if a request's own seed keys its randomness.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from draftproof.logits.order import Order
from draftproof.logits.params import SamplingParams
from draftproof.proof.sampled.sampling import Padding
from draftproof.proof.subjects.emission import ContractBroken, read_batch
from draftproof.proof.subjects.subject import Subject
from draftproof.proof.worlds.law import Text
from draftproof.proof.worlds.logits_world import LogitsWorld, adapted

__all__ = [
    "Request",
    "call_on_copies",
    "call_subject",
    "engine_of",
    "takes_prompts",
    "takes_seeds",
]

Array = npt.NDArray[Any]

LOGPROB_ERROR = 2.0**-12
"""What a log-probability may be off by, relative to 1 and itself: float32 does better."""


class Request(NamedTuple):
    """One row of a call.

    Attributes:
        world: where it is sampled.
        text: what it has emitted there so far.
        drafts: what follows.
        seed: its own, for a verifier that takes seeds.
    """

    world: LogitsWorld
    text: Text
    drafts: Text
    seed: int | None = None


def engine_of(subject: Subject) -> tuple[str, frozenset[str]]:
    """Return the subject's order of operations, and the parameters that it does not have.

    Raises:
        ContractBroken: it names what there is not.
    """
    order = getattr(subject.call, "order", Order.STANDARD)
    lacks = getattr(subject.call, "lacks", ())
    try:
        order = Order(order)
    except ValueError:
        wanted = ", ".join(Order)
        raise ContractBroken(f"its attribute order is {order!r}; wanted one of {wanted}") from None
    lacks = frozenset([lacks] if isinstance(lacks, str) else lacks)
    for name in sorted(map(str, lacks)):
        try:
            adapted(SamplingParams(), order, (name,))
        except KeyError:
            raise ContractBroken(
                f"its attribute lacks names {name!r}; wanted fields of SamplingParams"
            ) from None
    return order, lacks


def takes_seeds(subject: Subject) -> bool:
    """Whether a request's own seed keys its randomness."""
    return bool(getattr(subject.call, "takes_seeds", False))


def takes_prompts(subject: Subject) -> bool:
    """Whether the subject is told what its requests began with."""
    try:
        known = inspect.signature(subject.call).parameters
    except (TypeError, ValueError):
        return False
    return "prompts" in known


def call_subject(
    subject: Subject,
    requests: Sequence[Request],
    max_draft: int,
    rng: np.random.Generator,
    padding: Padding = Padding.POISON,
) -> tuple[Text, ...]:
    """Call the subject on copies of a batch, and return the tokens that each row emits.

    Raises:
        ContractBroken: it returned what its contract forbids, or wrote to an input.
    """
    rows = [_row(request, max_draft, padding) for request in requests]
    lengths = np.array([len(request.drafts) for request in requests])
    result = call_on_copies(
        subject,
        (
            np.array([row[0] for row in rows], dtype=np.int64).reshape(len(rows), max_draft),
            np.stack([row[1] for row in rows]),
            np.stack([row[2] for row in rows]),
            lengths,
            [row[3] for row in rows],
            [row[4] for row in rows],
            [[*request.world.history, *request.text] for request in requests],
        ),
        rng,
        [list(request.world.prompt) for request in requests],
    )
    logprobs = None
    if isinstance(result, tuple | list) and len(result) == 3:
        *result, logprobs = result
    out, n_out = read_batch(result, lengths, max_draft, requests[0].world.vocabulary)
    texts = tuple(tuple(row[:n]) for row, n in zip(out.tolist(), n_out.tolist(), strict=True))
    if logprobs is not None:
        _judge_logprobs(logprobs, requests, texts, max_draft)
    return texts


def call_on_copies(
    subject: Subject,
    given: tuple[Any, ...],
    rng: np.random.Generator,
    prompts: Sequence[Sequence[int]],
) -> Any:
    """Call the subject on copies of the contract's arguments, and return its result unread.

    Raises:
        ContractBroken: it wrote to one of them.
    """
    masks = [_masks(params) for side in given[4:6] for params in side]
    copies = [array.copy() for array in given[:4]]
    copies += [list(given[4]), list(given[5]), [list(tokens) for tokens in given[6]]]
    more = {"prompts": [list(prompt) for prompt in prompts]} if takes_prompts(subject) else {}
    with np.errstate(all="ignore"):
        result = subject.call(*copies, rng, **more)
    now = [_masks(params) for side in given[4:6] for params in side]
    if not all(map(_same, given, copies)) or masks != now:
        raise ContractBroken("wrote to an input; wanted inputs unchanged")
    return result


def _masks(params: SamplingParams) -> tuple[bytes | None, ...]:
    both = (params.allowed_tokens, params.banned_tokens)
    return tuple(None if mask is None else mask.tobytes() for mask in both)


def _row(request: Request, max_draft: int, padding: Padding) -> tuple[Any, ...]:
    """Drafts, logits and parameters of one row, padded."""
    world, text, drafts, seed = request
    if padding is Padding.STALE:
        drafts = _gone_on(world, text, drafts, max_draft)
    blank = 0 if padding is Padding.ZERO else -1
    ids = [*drafts, *[blank] * (max_draft - len(drafts))]
    q, p = world.arrays(drafts, max_draft, text)
    if padding is Padding.ZERO:
        q, p = (np.where(np.isnan(rows), 0.0, rows) for rows in (q, p))
    params, draft_params = world.requests(drafts, max_draft, text)
    return ids, q, p, params if seed is None else replace(params, seed=seed), draft_params


def _gone_on(world: LogitsWorld, text: Text, drafts: Text, length: int) -> Text:
    """Drafts and what a drafter may have left behind them: its likeliest tokens."""
    while len(drafts) < length:
        last = (0, *world.history, *text, *drafts)[-1]
        drafts = (*drafts, int(np.argmax(world.draft_logits[last])))
    return drafts


def _same(given: Any, kept: Any) -> bool:
    if isinstance(given, np.ndarray):
        return np.array_equal(given, kept, equal_nan=given.dtype.kind == "f")
    return bool(given == kept)


def _judge_logprobs(
    logprobs: Any, requests: Sequence[Request], texts: Sequence[Text], max_draft: int
) -> None:
    """Compare log-probabilities with the laws that the tokens were drawn from."""
    found = np.asarray(logprobs, dtype=np.float64)
    if found.shape != (len(requests), max_draft + 1):
        raise ContractBroken(
            f"logprobs has shape {found.shape}; wanted {(len(requests), max_draft + 1)}"
        )
    for b, ((world, text, *_), emitted) in enumerate(zip(requests, texts, strict=True)):
        if world.params.temperature == 0:
            continue  # engines disagree about what a point mass has
        for i, token in enumerate(emitted):
            law = world.tables[0][world.row((*text, *emitted[:i]))]
            if law[token] == 0:
                return  # the law of texts says so more clearly
            wanted = float(np.log(law[token]))
            if not abs(found[b, i] - wanted) <= LOGPROB_ERROR * (1 - wanted):
                raise ContractBroken(
                    f"logprobs of row {b} at position {i} is {found[b, i]:.6g}; wanted "
                    f"{wanted:.6g}, for its token has probability {law[token]:.6g} there",
                    row=b,
                )
