"""How a verifier from logits is called, and how its output is read.

::

    f(draft [B, K], draft_logits [B, K, V], target_logits [B, K+1, V], num_draft [B],
      params, draft_params, history, rng) -> (out [B, K+1], n_out [B])

``params`` and ``draft_params`` are lists of B `SamplingParams`: how the target is to be sampled,
and how the drafts were. A grammar's masks are in them, bool [K+1, V]; no request has a seed of its
own. ``history`` is a list of B lists, the tokens that each request has emitted so far; prompts are
empty. Past ``num_draft[b]`` a draft is -1 and logits are NaN. ``out`` is padded with -1.

A third result, logprobs [B, K+1], is judged too: the logarithm of each emitted token's probability
in the row that it was drawn from.

An engine says what it is by attributes of the callable: ``order``, a value of
`draftproof.logits.order.Order`, "standard" if it has none; ``lacks``, names of the parameters
that it does not have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from draftproof.logits.order import Order
from draftproof.logits.params import SamplingParams
from draftproof.proof.subjects.emission import ContractBroken, read_batch
from draftproof.proof.subjects.subject import Subject
from draftproof.proof.worlds.law import Text
from draftproof.proof.worlds.logits_world import LogitsWorld, adapted

__all__ = ["Request", "call_subject", "engine_of"]

Array = npt.NDArray[Any]

LOGPROB_ERROR = 2.0**-12
"""What a log-probability may be off by, relative to 1 and itself: float32 does better."""


class Request(NamedTuple):
    """One row of a call: a world, its text so far, and drafts behind it."""

    world: LogitsWorld
    text: Text
    drafts: Text


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


def call_subject(
    subject: Subject, requests: Sequence[Request], max_draft: int, rng: np.random.Generator
) -> tuple[Text, ...]:
    """Call the subject on copies of a batch, and return the tokens that each row emits.

    Raises:
        ContractBroken: it returned what its contract forbids, or wrote to an input.
    """
    logits = [world.arrays(drafts, max_draft, text) for world, text, drafts in requests]
    params = [world.requests(drafts, max_draft, text) for world, text, drafts in requests]
    padded = [[*drafts, *[-1] * (max_draft - len(drafts))] for _, _, drafts in requests]
    lengths = np.array([len(drafts) for _, _, drafts in requests])
    given: tuple[Any, ...] = (
        np.array(padded, dtype=np.int64).reshape(len(requests), max_draft),
        np.stack([q for q, _ in logits]),
        np.stack([p for _, p in logits]),
        lengths,
        [target for target, _ in params],
        [draft for _, draft in params],
        [[*world.history, *text] for world, text, _ in requests],
    )
    copies = [array.copy() for array in given[:4]]
    copies += [list(given[4]), list(given[5]), [list(tokens) for tokens in given[6]]]
    with np.errstate(all="ignore"):
        result = subject.call(*copies, rng)
    if not all(map(_same, given, copies)):
        raise ContractBroken("wrote to an input; wanted inputs unchanged")
    logprobs = None
    if isinstance(result, tuple | list) and len(result) == 3:
        *result, logprobs = result
    out, n_out = read_batch(result, lengths, max_draft, requests[0].world.vocabulary)
    texts = tuple(tuple(row[:n]) for row, n in zip(out.tolist(), n_out.tolist(), strict=True))
    if logprobs is not None:
        _judge_logprobs(logprobs, requests, texts, max_draft)
    return texts


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
    for b, ((world, text, _), emitted) in enumerate(zip(requests, texts, strict=True)):
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
