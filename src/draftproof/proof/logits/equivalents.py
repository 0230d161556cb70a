"""Verifiers from logits that are lossless, plain or unusual: they must live."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from draftproof.logits.order import Filters
from draftproof.logits.params import SamplingParams
from draftproof.proof.logits.gallery import verifier
from draftproof.proof.logits.skeleton import Floats, LogitsVerifier, Rows
from draftproof.proof.worlds.logits_world import allowed_at, law_at
from draftproof.reference import processing
from draftproof.reference.block import block
from draftproof.reference.chain import Emission, exact_match, greedy

RIGHT: dict[str, Any] = {"kind": "equivalent"}

verifier("token by token", "penalties", **RIGHT)(LogitsVerifier)


class _Whole(LogitsVerifier):
    """Makes every row before it looks at a draft, and hands all of them to a rule."""

    def _rule(self, *call: Any) -> Emission:
        raise NotImplementedError

    def _verify(self, rows: Rows, accept: Any, final: Any) -> list[int]:
        g = len(rows.drafts)
        q, p = [self._q(rows, i) for i in range(g)], [self._p(rows, i) for i in range(g + 1)]
        kept, token, _ = self._rule(rows.drafts, q, p, accept[:g], final)
        assert token is not None, "laws of a world have mass"
        return [*rows.drafts[:kept], token]


@verifier("block", "penalties", public="arXiv 2403.10444", **RIGHT)
class Block(_Whole):
    """Keeps the longest block of drafts, on laws made beforehand."""

    def _rule(self, *call: Any) -> Emission:
        return block(*call)


@verifier("exact match", "penalties", note="accepts less than it could", **RIGHT)
class ExactMatch(_Whole):
    """Samples the target, and keeps the drafts while they match."""

    def _rule(self, drafts: Sequence[int], q: Any, p: Any, accept: Any, final: Any) -> Emission:
        return exact_match(drafts, p, accept, final)


@verifier("greedy by argmax", "greedy", **RIGHT)
class ByArgmax(_Whole):
    """Compares greedy requests' drafts with the argmax, and takes no uniform for them."""

    def _rule(self, drafts: Sequence[int], q: Any, p: Any, accept: Any, final: Any) -> Emission:
        if all(row.max() == 1 for row in p):
            return greedy(drafts, p)
        return block(drafts, q, p, accept, final)


@verifier("masks as a bias", "grammar", **RIGHT)
class MasksAsBias(LogitsVerifier):
    """Bans what a mask forbids by adding -inf to its logit."""

    def _law(
        self, logits: Floats, params: SamplingParams, output: list[int], position: int
    ) -> Floats:
        allowed = allowed_at(params, position)
        if allowed is None:
            return law_at(logits, params, output, position)
        bare = replace(params, allowed_tokens=None, banned_tokens=None)
        return law_at(np.where(allowed, logits, -np.inf), bare, output, position)


@verifier("penalties by counting", "penalties", **RIGHT)
class ByCounting(LogitsVerifier):
    """Penalises the whole vocabulary by an array of counts, and the bias by another."""

    def _law(
        self, logits: Floats, params: SamplingParams, output: list[int], position: int
    ) -> Floats:
        usual = params.recipe.edits == ("bias", "repetition", "additive")
        if not usual or params.penalty_window is not None:
            return law_at(logits, params, output, position)
        counts = np.bincount(output, minlength=len(logits))
        bias = np.array([(params.logit_bias or {}).get(v, 0) for v in range(len(logits))])
        z = logits + bias
        r = params.repetition_penalty
        z = np.where(counts > 0, np.where(z > 0, z / r, z * r), z)
        z = z - params.presence_penalty * np.minimum(counts, 1) - params.frequency_penalty * counts
        rest = replace(
            params, logit_bias=None, repetition_penalty=1, presence_penalty=0, frequency_penalty=0
        )
        return law_at(z, rest, output, position)


@verifier("top-k before temperature", "top-k, top-p", **RIGHT)
class TopKFirst(LogitsVerifier):
    """Takes the k largest logits first: no temperature changes which they are."""

    def _law(
        self, logits: Floats, params: SamplingParams, output: list[int], position: int
    ) -> Floats:
        plain = params.top_k and params.recipe.filters == Filters.SEQUENTIAL
        if not plain or params.temperature == 0:
            return law_at(logits, params, output, position)
        z = processing.edit(logits, params, (), output, allowed_at(params, position))
        kept = processing.top_k(z, z > -np.inf, params.top_k, params.tie_policy.at_top_k)
        return processing.law(np.where(kept, z, -np.inf), replace(params, top_k=0))


@verifier("laws in float32", "top-k, top-p", note="rounds to float32", **RIGHT)
class SinglePrecision(LogitsVerifier):
    """Keeps its laws in float32."""

    def _law(
        self, logits: Floats, params: SamplingParams, output: list[int], position: int
    ) -> Floats:
        law = law_at(logits, params, output, position)
        return np.asarray(law, dtype=np.float32)
