"""Laws made of logits when a kernel reads them, and not before."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from draftproof.arrays import widen
from draftproof.kernels.call_numpy import chunks
from draftproof.logits.edits import logit_edits
from draftproof.logits.masks import Mask, packed_bits, unpacked
from draftproof.logits.nucleus import quick_law
from draftproof.logits.params_batch import ParamsBatch
from draftproof.logits.texts import Texts
from draftproof.reference import processing
from draftproof.types import IntArray

__all__ = ["Contexts", "LogitRows", "Unusable"]

Floats = npt.NDArray[np.float64]


class Contexts(NamedTuple):
    """Where each row of logits stands: in which request, and behind which drafts.

    Attributes:
        place: (index of a row) -> (request, context).
        drafted: (request, context) -> the drafts before it.
        exists: (request, context) -> whether the request has it.
        spell: (request, context) -> its place, for messages.
    """

    place: Callable[[tuple[Any, ...]], tuple[Any, Any]]
    drafted: Callable[[int, int], IntArray]
    exists: Callable[[int, int], bool]
    spell: Callable[[int, int], str]


class Unusable(NamedTuple):
    """Why no law can be made of a row of logits, in the parts of a `complaint`."""

    place: str
    found: str
    wanted: str
    fix: str


class LogitRows:
    """Stands in for an array of probabilities, float64 [..., V]: each row is made when it is read.

    Indexed like the array by the leading axes, and one more for single entries. A row of which no
    law can be made reads as NaN, and `unusable` says why. Greedy requests' rows are their edited
    logits if `greedy_logits` (of which the argmax is taken), else point masses.

    Args:
        logits: [..., V], any accepted dtype; bfloat16 as its words.
        params, texts: of the requests.
        contexts: what the leading axes mean.
        greedy: [B], requests at temperature 0.
        token_mask: [..., V] or its packed bits, beside the requests' own masks.
        definition: make each row by `draftproof.reference.processing` alone.
    """

    dtype = np.dtype(np.float64)

    def __init__(
        self,
        logits: npt.NDArray[Any],
        params: ParamsBatch,
        texts: Texts,
        contexts: Contexts,
        greedy: npt.NDArray[np.bool_],
        *,
        token_mask: Mask | None = None,
        greedy_logits: bool = False,
        definition: bool = False,
    ) -> None:
        self.logits, self.params, self.texts, self.contexts = logits, params, texts, contexts
        self.greedy, self.token_mask = greedy, token_mask
        self._greedy_logits, self._definition = greedy_logits, definition
        self._unusable: dict[str, Unusable] = {}
        self._last: tuple[IntArray, IntArray, Floats] | None = None
        self._last_request: tuple[int, dict[int, Floats]] = (-1, {})

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the logits."""
        return self.logits.shape

    @property
    def ndim(self) -> int:
        """That of the logits."""
        return self.logits.ndim

    def __len__(self) -> int:
        return len(self.logits)

    def __getitem__(self, index: Any) -> Any:
        index = index if isinstance(index, tuple) else (index,)
        at, tokens = index[: self.ndim - 1], index[self.ndim - 1 :]
        requests, positions = self.contexts.place(at)
        if np.ndim(requests) == 0 and np.ndim(positions) == 0:
            law = self._row(at, int(requests), int(positions))
            return law[tokens[0]] if tokens else law
        requests, positions = np.broadcast_arrays(requests, positions)
        at = tuple(np.broadcast_to(axis, requests.shape) for axis in at)
        if not tokens:
            return self._remembered(at, requests, positions)
        entries = np.empty(len(requests))
        for part in chunks(np.arange(len(requests)), self.shape[-1]):
            here = tuple(axis[part] for axis in at)
            laws = self._rows(here, requests[part], positions[part])
            entries[part] = laws[np.arange(len(part)), tokens[0][part]]
        return entries

    def _row(self, at: tuple[Any, ...], request: int, position: int) -> Floats:
        """Make one row, or return it if it is one of the request that was read last."""
        owner, rows = self._last_request
        if owner != request:
            rows = {}
            self._last_request = request, rows
        if position not in rows:
            rows[position] = self._rows(at, np.array([request]), np.array([position]))[0]
            rows[position].flags.writeable = False
        return rows[position]

    def _remembered(self, at: tuple[Any, ...], requests: IntArray, positions: IntArray) -> Floats:
        """Make the rows, or return those made last: kernels judge rows before they use them."""
        if self._last is not None:
            *asked, rows = self._last
            if np.array_equal(asked[0], requests) and np.array_equal(asked[1], positions):
                return rows
        rows = self._rows(at, requests, positions)
        rows.flags.writeable = False
        self._last = requests, positions, rows
        return rows

    def unusable(self, place: str) -> Unusable | None:
        """Return why no law could be made of the row that a message's place names."""
        return self._unusable.get(", ".join(place.split(", ")[:2]))

    def edited(self, at: tuple[Any, ...], request: int, position: int) -> Floats:
        """Return one row's edited logits."""
        stored, params = self.logits[at], self.params.requests[request]
        prompt, output = self._text(request, position)
        allowed = self._allowed(at, request, position)
        if self._definition:
            return processing.edit(widen(stored), params, prompt.tolist(), output.tolist(), allowed)
        z = widen(stored)
        if params.edits:
            tokens, numbers = logit_edits(z, params, prompt, output)
            z[tokens] = numbers
        if allowed is not None:
            z[~allowed] = -np.inf
        return z

    def logarithms(self, at: tuple[Any, ...], request: int, position: int, raw: bool) -> Floats:
        """Return one row's log-probabilities: of its law, or of the logits as given."""
        if raw:
            z, temperature = widen(self.logits[at]), 1.0
        else:
            z = self.edited(at, request, position)
            temperature = 1.0 if self.greedy[request] else float(self.params.temperature[request])
            filters = not self.greedy[request] and self.params.filters[request]
            if filters and np.isfinite(z.max()):  # else an unjudged row without a law
                z = np.where(processing.law(z, self.params.requests[request]) > 0, z, -np.inf)
        z = np.where(np.isnan(z), -np.inf, z)
        with np.errstate(over="ignore", invalid="ignore"):  # a greedy row may hold +inf
            scaled = (z - z.max()) / temperature
            return np.asarray(scaled - np.log(np.exp(scaled).sum()))

    @functools.cached_property
    def edit_table(self) -> tuple[IntArray, IntArray, Floats] | None:
        """Every row's edits, for kernels that make laws themselves.

        Returns:
            pointers [R+1] over the R rows in C order, and the tokens and their logits, one row's
            behind the other's; None if no request has any.
        """
        if not self.params.any_edits:
            return None
        lead = self.shape[:-1]
        tokens: list[IntArray] = []
        numbers: list[Floats] = []
        for at in np.ndindex(lead):
            request, position = (int(index) for index in self.contexts.place(at))
            row = (np.zeros(0, dtype=np.int64), np.zeros(0))
            if self.params.edits[request] and self.contexts.exists(request, position):
                prompt, output = self._text(request, position)
                drafts = output[len(self.texts.outputs[request]) :]
                if ((drafts >= 0) & (drafts < self.shape[-1])).all():  # else the row is refused
                    params = self.params.requests[request]
                    row = logit_edits(self.logits[at], params, prompt, output)
            tokens.append(row[0])
            numbers.append(row[1])
        pointers = np.zeros(len(tokens) + 1, dtype=np.int64)
        np.cumsum([len(row) for row in tokens], out=pointers[1:])
        empty = not tokens
        return (
            pointers,
            np.zeros(0, dtype=np.int64) if empty else np.concatenate(tokens),
            np.zeros(0) if empty else np.concatenate(numbers),
        )

    @functools.cached_property
    def mask_words(self) -> npt.NDArray[np.uint32] | None:
        """The tokens that each row allows, bits [R, ceil(V / 32)]; None without masks."""
        if self.token_mask is None and not self.params.any_masks:
            return None
        lead, words = self.shape[:-1], -(-self.shape[-1] // 32)
        if self.token_mask is None:
            table = np.full((*lead, words), 2**32 - 1, dtype=np.uint32)
        else:
            table = packed_bits(self.token_mask).copy()
        for at in np.ndindex(lead if self.params.any_masks else (0,)):
            request, position = (int(index) for index in self.contexts.place(at))
            params = self.params.requests[request]
            if self.params.masks[request] and self.contexts.exists(request, position):
                for mask, flip in ((params.allowed_tokens, 0), (params.banned_tokens, 2**32 - 1)):
                    if mask is not None:
                        row = packed_bits(mask if mask.ndim == 1 else mask[position])
                        table[at] &= row ^ np.uint32(flip)
        return table.reshape(-1, words)

    def _text(self, request: int, position: int) -> tuple[IntArray, IntArray]:
        output = self.texts.outputs[request]
        if self.params.edits[request]:
            output = np.concatenate([output, self.contexts.drafted(request, position)])
        return self.texts.prompts[request], output

    def _allowed(
        self, at: tuple[Any, ...], request: int, position: int
    ) -> npt.NDArray[np.bool_] | None:
        """The tokens that every mask allows, None without a mask."""
        allowed = None
        if self.token_mask is not None:
            allowed = unpacked(self.token_mask[at], self.shape[-1])
        if self.params.masks[request]:
            params = self.params.requests[request]
            for mask, polarity in ((params.allowed_tokens, True), (params.banned_tokens, False)):
                if mask is not None:
                    row = unpacked(mask if mask.ndim == 1 else mask[position], self.shape[-1])
                    row = row if polarity else ~row
                    allowed = row if allowed is None else allowed & row
        return allowed

    def _rows(self, at: tuple[Any, ...], requests: IntArray, positions: IntArray) -> Floats:
        """Make the law of each row, [R, V]."""
        plain = self.token_mask is None and not self._definition
        if plain and not (self.params.edits[requests] | self.params.masks[requests]).any():
            z = widen(self.logits[at]).reshape(len(requests), self.shape[-1])
        else:
            z = np.empty((len(requests), self.shape[-1]))
            for row, (request, position) in enumerate(zip(requests, positions, strict=True)):
                here = tuple(axis if np.ndim(axis) == 0 else axis[row] for axis in at)
                z[row] = self.edited(here, int(request), int(position))
        best = z.max(axis=1, initial=-np.inf)  # NaN where there is one
        greedy = self.greedy[requests]
        well = np.isfinite(best)
        for row in np.flatnonzero(~well).tolist():
            if not greedy[row] or not (z[row] > -np.inf).any():
                self._note(int(requests[row]), int(positions[row]), z[row])
                z[row] = np.nan
        simple = well & ~greedy & ~self.params.filters[requests] & (not self._definition)
        if simple.any():
            z[simple] = self._softmax(z[simple], requests[simple], best[simple])
        for row in np.flatnonzero(~simple).tolist():
            params = self.params.requests[int(requests[row])]
            if greedy[row]:
                usable = not np.isnan(z[row]).all()
                if usable and not self._greedy_logits:
                    z[row] = processing.greedy_law(z[row])
            elif well[row]:
                make = processing.law if self._definition else quick_law
                z[row] = make(z[row], params)
        return z

    def _softmax(self, z: Floats, requests: IntArray, best: Floats) -> Floats:
        """The law of rows without filters: `processing.law` of many at once."""
        with np.errstate(over="ignore"):
            w = np.exp((z - best[:, None]) / self.params.temperature[requests, None])
        return np.asarray(w / w.sum(axis=1, keepdims=True))

    def _note(self, request: int, position: int, z: Floats) -> None:
        place = self.contexts.spell(request, position)
        bad = np.isnan(z) | (z == np.inf)
        fix = "check the model's output, and masks and biases, at this position"
        self._unusable[place] = Unusable(
            place, "no token left: every logit is -inf or banned",
            "at least one token that may come", fix,
        )  # fmt: skip
        if bad.any() and not self.greedy[request]:
            token = int(np.argmax(bad))
            self._unusable[place] = Unusable(
                f"{place}, token {token}", str(z[token]), "a number, or -inf for a banned token",
                fix,
            )  # fmt: skip
