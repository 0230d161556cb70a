"""A decoder: a subject that drafts by itself, called and read in one way whatever its contract.

::

    round      make(world) -> f(context, k, rng) -> tokens           drafts and verifies once
    generate   make(world) -> f(prompts, num_tokens, seed) -> texts  writes whole texts, in batches
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.subjects.emission import ContractBroken, read_row, read_tokens
from draftproof.proof.subjects.subject import Subject

__all__ = ["Decoder", "Round", "Text", "made_by"]

Text = tuple[int, ...]


@dataclass(frozen=True)
class Round:
    """What one round of a decoder gives.

    Attributes:
        tokens: those that it emits.
        drafts: those that it drafted, where it tells: the accepted ones and the others.
        rows: [drafts, V], the laws that it says it drew them from, where it tells.
    """

    tokens: Text
    drafts: Text | None = None
    rows: npt.NDArray[np.float64] | None = None


class Decoder:
    """One decoder that a subject made, with whatever state it keeps.

    Args:
        subject: of the contract ``round`` or ``generate``.
        models: what it is made with; None for a decoder that has models of its own.
        vocabulary: V; None if nobody knows.
        eos: the token behind which a text ends.

    Attributes:
        stopped: texts that ended with ``eos`` before they were as long as wanted.
        overran: texts that went on behind it.

    Raises:
        ContractBroken: by every call: what it returns is not what its contract wants.
    """

    def __init__(
        self,
        subject: Subject,
        models: Any = None,
        vocabulary: int | None = None,
        eos: int | None = None,
    ) -> None:
        self._decode = subject.call if models is None else made_by(subject.call, models)
        self._vocabulary = vocabulary if models is None else models.vocabulary
        self._eos = eos if models is None else models.eos
        self.contract = subject.contract
        self.stopped = self.overran = 0

    def round(self, context: Sequence[int], k: int, rng: np.random.Generator) -> Round:
        """Draft up to k tokens behind a text, verify them, and return the 1..k+1 that are emitted.

        A decoder may return ``(tokens, drafts)`` or ``(tokens, drafts, rows)`` too.
        """
        given = list(context)
        result = self._decode(given, k, rng)
        if given != list(context):
            raise ContractBroken("wrote to its input context; wanted inputs unchanged")
        V = self._vocabulary
        assert V is not None
        parts: tuple[Any, ...] = result if _has_parts(result) else (result,)
        tokens = tuple(read_row(parts[0], 0, k, V))
        if len(parts) == 1:
            return Round(tokens)
        drafts = tuple(read_tokens("drafts", parts[1], V))
        if len(drafts) > k:
            raise ContractBroken(f"drafted {len(drafts)} tokens; wanted at most k = {k}")
        if len(parts) == 2 or not drafts:
            return Round(tokens, drafts)
        rows = np.asarray(parts[2], dtype=np.float64)
        if rows.shape != (len(drafts), V):
            raise ContractBroken(
                f"rows have shape {rows.shape}; wanted {(len(drafts), V)}, a law for each draft"
            )
        return Round(tokens, drafts, rows)

    def generate(self, prompts: Sequence[Text], num_tokens: int, seed: int) -> list[Text]:
        """Write a text behind each prompt, of ``num_tokens`` tokens unless it ends before."""
        given = [list(prompt) for prompt in prompts]
        result = self._decode(given, num_tokens, seed)
        if given != [list(prompt) for prompt in prompts]:
            raise ContractBroken("wrote to its input prompts; wanted inputs unchanged")
        result = _as_rows(result)
        if len(result) != len(prompts):
            raise ContractBroken(f"returned {len(result)} texts; wanted {len(prompts)}")
        return [
            self._read_text(b, row, prompt, num_tokens)
            for b, (row, prompt) in enumerate(zip(result, prompts, strict=True))
        ]

    def _read_text(self, b: int, row: Any, prompt: Text, num_tokens: int) -> Text:
        text = tuple(read_tokens(f"text {b}", row, self._vocabulary, padded=True))
        if len(text) == len(prompt) + num_tokens and prompt and text[: len(prompt)] == prompt:
            raise ContractBroken(f"text {b} begins with its prompt; wanted the new tokens only")
        if len(text) > num_tokens:
            raise ContractBroken(f"text {b} has {len(text)} tokens; wanted at most {num_tokens}")
        if self._eos in text:
            end = text.index(self._eos) + 1
            self.overran += len(text) > end
            self.stopped += len(text) == end < num_tokens
            return text[:end]
        if len(text) < num_tokens:
            wanted = f"{num_tokens}, or fewer that end with token {self._eos}"
            wanted = str(num_tokens) if self._eos is None else wanted
            raise ContractBroken(f"text {b} has {len(text)} tokens; wanted {wanted}")
        return text


def made_by(make: Callable[..., Any], models: Any) -> Callable[..., Any]:
    """Return what ``make(world)`` makes.

    Raises:
        ContractBroken: no callable.
    """
    decode = make(models)
    if not callable(decode):
        raise ContractBroken(
            f"make(world) returned a {type(decode).__name__}; wanted a decoder to call, "
            f"{Contract.ROUND.shape} or {Contract.GENERATE.shape}"
        )
    return decode  # type: ignore[no-any-return]


def _has_parts(result: Any) -> bool:
    """Whether a round returned its drafts too; a bare tuple of tokens holds numbers."""
    return isinstance(result, tuple) and len(result) in (2, 3) and np.ndim(result[0]) == 1


def _as_rows(result: Any) -> Any:
    if hasattr(result, "detach"):  # a tensor of PyTorch
        result = result.detach().cpu().numpy()
    if isinstance(result, np.ndarray | list | tuple):
        return result
    raise ContractBroken(f"returned a {type(result).__name__}; wanted a text for each prompt")
