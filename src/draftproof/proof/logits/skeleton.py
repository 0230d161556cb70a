"""A right verifier from logits, in steps that a wrong one replaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.logits.params import SamplingParams
from draftproof.proof.worlds.logits_world import law_at
from draftproof.reference.chain import accepts, recover, residual
from draftproof.reference.draw import inverse_cdf

__all__ = ["LogitsVerifier", "PromptedVerifier", "Rows"]

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Rows:
    """What a verifier knows of one request.

    Attributes:
        drafts: g token ids.
        draft_logits, target_logits: [K, V] and [K+1, V].
        params, draft_params: of the request.
        history: its emitted tokens.
        prompt: what they follow, for a verifier that is told.
    """

    drafts: list[int]
    draft_logits: Floats
    target_logits: Floats
    params: SamplingParams
    draft_params: SamplingParams
    history: list[int]
    prompt: Sequence[int] = ()


class LogitsVerifier:
    """Token by token, in the contract ``logits``: every row by the definition of its law."""

    def __call__(self, *call: Any) -> tuple[Any, ...]:
        """Verify a batch, row by row; arguments are those of the contract."""
        draft, rng = call[0], call[7]
        out, n_out = np.full((len(draft), draft.shape[1] + 1), -1), np.zeros(len(draft), np.int64)
        accept, final = self._uniforms(draft.shape, rng)
        for b in range(len(draft)):
            emitted = self._verify(self._rows(call, b), accept[b], final[b])
            out[b, : len(emitted)], n_out[b] = emitted, len(emitted)
        return out, n_out

    def _rows(self, call: Sequence[Any], b: int) -> Rows:
        """What a call holds of one request."""
        draft, draft_logits, target_logits, num_draft, params, draft_params, history, _ = call
        return Rows(
            draft[b, : num_draft[b]].tolist(), draft_logits[b], target_logits[b],
            params[b], draft_params[b], list(history[b]),
        )  # fmt: skip

    def _uniforms(self, shape: tuple[int, ...], rng: np.random.Generator) -> tuple[Any, Any]:
        """One for each draft, and one for each row's last token."""
        return rng.random(shape), rng.random(shape[0])

    def _verify(self, rows: Rows, accept: Any, final: Any) -> list[int]:
        """Return the accepted drafts and one token after them."""
        for i, x in enumerate(rows.drafts):
            q = self._q(rows, i)
            if not accepts(self._tested(rows, i)[x], q[x], accept[i]):
                p = self._recovered(rows, i)
                return [*rows.drafts[:i], _token(recover(i, residual(p, q), p, final).last_token)]
        return [*rows.drafts, _token(inverse_cdf(self._bonus(rows), final))]

    def _seen(self, rows: Rows, i: int) -> list[int]:
        """The output that position i looks back at."""
        return rows.history + rows.drafts[:i]

    def _law(
        self, logits: Floats, params: SamplingParams, output: list[int], position: int
    ) -> Floats:
        """The law that a row of logits makes."""
        return law_at(logits, params, output, position)

    def _q(self, rows: Rows, i: int) -> Floats:
        """The law that draft i was drawn from."""
        return self._law(rows.draft_logits[i], rows.draft_params, self._seen(rows, i), i)

    def _p(self, rows: Rows, i: int) -> Floats:
        """The target's law at position i."""
        return self._law(rows.target_logits[i], rows.params, self._seen(rows, i), i)

    def _tested(self, rows: Rows, i: int) -> Floats:
        """The target's law in the accept test of draft i."""
        return self._p(rows, i)

    def _recovered(self, rows: Rows, i: int) -> Floats:
        """The target's law in the residual at draft i."""
        return self._p(rows, i)

    def _bonus(self, rows: Rows) -> Floats:
        """The target's law behind all drafts."""
        return self._p(rows, len(rows.drafts))


class PromptedVerifier(LogitsVerifier):
    """The same for requests with prompts."""

    prompts: Sequence[Sequence[int]] = ()

    def __call__(self, *call: Any, prompts: Sequence[Sequence[int]] = ()) -> tuple[Any, ...]:
        """Verify a batch."""
        self.prompts = prompts
        return super().__call__(*call)

    def _rows(self, call: Sequence[Any], b: int) -> Rows:
        return replace(super()._rows(call, b), prompt=list(self.prompts[b]))

    def _q(self, rows: Rows, i: int) -> Floats:
        return self._prompted(rows.draft_logits[i], rows.draft_params, rows, i)

    def _p(self, rows: Rows, i: int) -> Floats:
        return self._prompted(rows.target_logits[i], rows.params, rows, i)

    def _prompted(self, logits: Floats, params: SamplingParams, rows: Rows, i: int) -> Floats:
        return law_at(logits, params, self._seen(rows, i), i, rows.prompt)


def _token(token: int | None) -> int:
    assert token is not None, "laws of a world have mass"
    return token
