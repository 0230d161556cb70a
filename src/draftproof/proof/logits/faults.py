"""Verifiers from logits that are wrong: each is the right one with one step changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from draftproof.logits.params import SamplingParams
from draftproof.proof.logits.gallery import verifier
from draftproof.proof.logits.skeleton import Floats, LogitsVerifier, Rows
from draftproof.proof.worlds.logits_world import allowed_at, law_at
from draftproof.reference import processing

RAW = SamplingParams()


@verifier("raw bonus", "top-k, top-p", public="transformers up to 4.34, EAGLE up to 2025-04")
class RawBonus(LogitsVerifier):
    """Draws the token behind all drafts from the softmax of the logits."""

    def _bonus(self, rows: Rows) -> Floats:
        return law_at(rows.target_logits[len(rows.drafts)], RAW, [], 0)


@verifier("raw accept", "temperatures", public="vllm #9834")
class RawAccept(LogitsVerifier):
    """Tests drafts against the softmax of the logits."""

    def _tested(self, rows: Rows, i: int) -> Floats:
        return law_at(rows.target_logits[i], RAW, [], 0)


@verifier("raw residual", "temperatures")
class RawResidual(LogitsVerifier):
    """Recovers from the softmax of the logits."""

    def _recovered(self, rows: Rows, i: int) -> Floats:
        return law_at(rows.target_logits[i], RAW, [], 0)


@verifier("raw q", "top-k, top-p", public="transformers #47932")
class RawQ(LogitsVerifier):
    """Takes the softmax of its logits for the law that a draft was drawn from."""

    def _q(self, rows: Rows, i: int) -> Floats:
        return law_at(rows.draft_logits[i], RAW, [], 0)


@verifier("the target's parameters for q", "temperatures")
class TargetsParameters(LogitsVerifier):
    """Takes it that the drafter samples by the parameters of the target."""

    def _q(self, rows: Rows, i: int) -> Floats:
        return self._law(rows.draft_logits[i], rows.params, self._seen(rows, i), i)


@verifier("stale penalty", "penalties", public="text-generation-inference")
class StalePenalty(LogitsVerifier):
    """Penalises by the text before the drafts at every position."""

    def _seen(self, rows: Rows, i: int) -> list[int]:
        return rows.history


@verifier("penalty missing on the bonus row", "penalties")
class NoPenaltyAtLast(LogitsVerifier):
    """Penalises every row but the one behind all drafts."""

    def _bonus(self, rows: Rows) -> Floats:
        free = replace(rows.params, repetition_penalty=1, presence_penalty=0, frequency_penalty=0)
        g = len(rows.drafts)
        return self._law(rows.target_logits[g], free, self._seen(rows, g), g)


@verifier("frequency counts one less", "penalties")
class OneLess(LogitsVerifier):
    """Takes the frequency penalty off for each time but the first."""

    def _law(
        self, logits: Floats, params: SamplingParams, output: list[int], position: int
    ) -> Floats:
        lenient = params.presence_penalty - params.frequency_penalty
        return law_at(logits, replace(params, presence_penalty=lenient), output, position)


@verifier("penalty counts all drafts", "penalties")
class AllDrafts(LogitsVerifier):
    """Penalises by all drafts at every position, those not accepted yet among them."""

    def _seen(self, rows: Rows, i: int) -> list[int]:
        return rows.history + rows.drafts


@verifier("penalty counts the rejected draft", "penalties")
class RejectedDraft(LogitsVerifier):
    """Counts a draft before its test, and draws the token in its place with that count."""

    def _recovered(self, rows: Rows, i: int) -> Floats:
        return self._law(rows.target_logits[i], rows.params, self._seen(rows, i + 1), i)


@verifier("rejected drafts stay counted", "penalties", kind="rounds")
class RejectedStay(LogitsVerifier):
    """Keeps counts of its own, in which drafts of earlier calls stay though they were rejected."""

    def __init__(self) -> None:
        self.rng: np.random.Generator | None = None
        self.drafted: list[int] = []

    def __call__(self, draft: Any, *rest: Any) -> tuple[Any, ...]:
        """Verify a batch."""
        *_, history, rng = rest
        if rng is not self.rng:
            self.rng, self.drafted = rng, []
        output = super().__call__(draft, *rest[:-2], [[*self.drafted, *h] for h in history], rng)
        self.drafted = [*self.drafted, *draft[draft >= 0].tolist()]
        return output


@verifier("temperature last", "top-k, top-p")
class TemperatureLast(LogitsVerifier):
    """Filters at temperature 1, where the request's order has temperature first."""

    def _law(
        self, logits: Floats, params: SamplingParams, output: list[int], position: int
    ) -> Floats:
        return law_at(logits, replace(params, order="llama.cpp"), output, position)


@verifier("both filters of one law", "top-k, top-p")
class BothOfOneLaw(LogitsVerifier):
    """Takes top-p's mass before top-k, where the request's order has top-k first."""

    def _law(
        self, logits: Floats, params: SamplingParams, output: list[int], position: int
    ) -> Floats:
        if not params.top_k:
            return law_at(logits, params, output, position)
        wide = law_at(logits, replace(params, top_k=0), output, position)
        narrow = law_at(logits, replace(params, top_p=1), output, position)
        both = np.where(wide > 0, narrow, 0)
        return np.asarray(both / both.sum())


@verifier("top-p keeps one token more", "top-k, top-p", public="vllm #48928")
class OneMore(LogitsVerifier):
    """Keeps the first token that top-p drops."""

    def _law(
        self, logits: Floats, params: SamplingParams, output: list[int], position: int
    ) -> Floats:
        law = law_at(logits, params, output, position)
        if params.top_p == 1:
            return law
        wide = law_at(logits, replace(params, top_p=1), output, position)
        rest = np.where(law > 0, 0, wide)
        kept = (law > 0) | ((rest > 0) & (rest == rest.max()))
        return np.asarray(np.where(kept, wide, 0) / wide[kept].sum())


@verifier("the neighbour's parameters", "temperatures", "top-k, top-p", kind="rows")
class Neighbours(LogitsVerifier):
    """Samples each row by the parameters of the row before."""

    def __call__(self, *call: Any) -> tuple[Any, ...]:
        """Verify a batch."""
        *arrays, params, draft_params, history, rng = call
        return super().__call__(*arrays, [params[-1], *params[:-1]], draft_params, history, rng)


@verifier("the first row's parameters", "temperatures", "top-k, top-p", kind="rows")
class FirstRows(LogitsVerifier):
    """Samples every row by the parameters of the first."""

    def __call__(self, *call: Any) -> tuple[Any, ...]:
        """Verify a batch."""
        *arrays, params, draft_params, history, rng = call
        return super().__call__(*arrays, params[:1] * len(params), draft_params, history, rng)


@verifier("one generator's noise for all rows", "temperatures", "top-k, top-p", kind="rows")
class SharedNoise(LogitsVerifier):
    """Gives every row the uniforms of the first."""

    def _uniforms(self, shape: tuple[int, ...], rng: np.random.Generator) -> tuple[Any, Any]:
        accept, final = super()._uniforms((1, *shape[1:]), rng)
        return np.repeat(accept, shape[0], axis=0), np.repeat(final, shape[0])


@verifier("noise kept between calls", "temperatures", kind="rounds")
class KeptNoise(LogitsVerifier):
    """Draws the last token of every call by the uniform of the first."""

    def __init__(self) -> None:
        self.rng: np.random.Generator | None = None
        self.kept: Any = None

    def _uniforms(self, shape: tuple[int, ...], rng: np.random.Generator) -> tuple[Any, Any]:
        accept, final = super()._uniforms(shape, rng)
        if rng is not self.rng or len(self.kept) != len(final):
            self.rng, self.kept = rng, final
        return accept, self.kept


@verifier("silent greedy", "top-k, top-p", public="sglang #31214")
class SilentGreedy(LogitsVerifier):
    """Takes a request with a filter for a greedy one."""

    def _p(self, rows: Rows, i: int) -> Floats:
        law = super()._p(rows, i)
        return processing.greedy_law(law) if rows.params.filters else law


@verifier("temperature 0 taken for unset", "greedy")
class GreedyIgnored(LogitsVerifier):
    """Samples greedy requests at temperature 1."""

    def _law(
        self, logits: Floats, params: SamplingParams, output: list[int], position: int
    ) -> Floats:
        return law_at(
            logits, replace(params, temperature=params.temperature or 1), output, position
        )


@verifier("min-p dropped", "min-p", public="TensorRT-LLM #17701, #17955, #19390")
class MinPDropped(LogitsVerifier):
    """Has no min-p, and does not say so."""

    def _law(
        self, logits: Floats, params: SamplingParams, output: list[int], position: int
    ) -> Floats:
        return law_at(logits, replace(params, min_p=0), output, position)


@verifier("min-p on the bonus row only", "min-p", public="vllm #42744")
class MinPAtLast(LogitsVerifier):
    """Has min-p where no draft was made, and nowhere else."""

    def _p(self, rows: Rows, i: int) -> Floats:
        last = i == len(rows.drafts)
        params = rows.params if last else replace(rows.params, min_p=0)
        return self._law(rows.target_logits[i], params, self._seen(rows, i), i)


@verifier("min-p slack on the bonus row", "min-p", public="vllm #42744")
class MinPSlack(LogitsVerifier):
    """Has half of min-p behind all drafts."""

    def _bonus(self, rows: Rows) -> Floats:
        g, slack = len(rows.drafts), replace(rows.params, min_p=rows.params.min_p / 2)
        return self._law(rows.target_logits[g], slack, self._seen(rows, g), g)


@verifier("typical dropped", "typical")
class TypicalDropped(LogitsVerifier):
    """Has no typical filter, and does not say so."""

    def _law(
        self, logits: Floats, params: SamplingParams, output: list[int], position: int
    ) -> Floats:
        return law_at(logits, replace(params, typical_p=1), output, position)


@verifier("ties at top-k dropped", "ties at top-k", caught_by="logits-habits")
class TiesDropped(LogitsVerifier):
    """Keeps what is larger than the k-th logit, and the k-th only if it has no equal."""

    def _law(
        self, logits: Floats, params: SamplingParams, output: list[int], position: int
    ) -> Floats:
        every, few = (
            law_at(logits, replace(params, ties=ties), output, position)
            for ties in ("keep-top-k", "lowest-id")
        )
        if np.array_equal(every, few) or not params.top_k:
            return few
        kept = every > every[every > 0].min()
        return np.asarray(np.where(kept, every, 0) / every[kept].sum())


@verifier("bias on the bonus row only", "bias and ban", public="vllm #42744")
class BiasAtLast(LogitsVerifier):
    """Adds the bias where no draft was made, and nowhere else."""

    def _p(self, rows: Rows, i: int) -> Floats:
        last = i == len(rows.drafts)
        params = rows.params if last else replace(rows.params, logit_bias=None)
        return self._law(rows.target_logits[i], params, self._seen(rows, i), i)


@verifier("mask missing on the bonus row", "grammar", public="vllm #44006")
class MaskMissing(LogitsVerifier):
    """Draws the token behind all drafts without the masks."""

    def _bonus(self, rows: Rows) -> Floats:
        g, bare = len(rows.drafts), replace(rows.params, allowed_tokens=None, banned_tokens=None)
        return self._law(rows.target_logits[g], bare, self._seen(rows, g), g)


@verifier("mask of the first position", "grammar", public="text-generation-inference")
class MaskOfTheFirst(LogitsVerifier):
    """Keeps the mask of the text before the drafts at every position."""

    def _law(
        self, logits: Floats, params: SamplingParams, output: list[int], position: int
    ) -> Floats:
        first = replace(params, allowed_tokens=allowed_at(params, 0), banned_tokens=None)
        return law_at(logits, first, output, position)


@verifier("ends allowed in the residual", "ends")
class EndsAllowed(LogitsVerifier):
    """Forgets min_tokens after a rejection."""

    def _recovered(self, rows: Rows, i: int) -> Floats:
        free = replace(rows.params, min_tokens=0)
        return self._law(rows.target_logits[i], free, self._seen(rows, i), i)


@verifier(
    "log-probabilities of the row before", "temperatures", kind="broken", public="vllm #17876"
)
class WrongRowLogprobs(LogitsVerifier):
    """Reports each token's log-probability in the row before its own."""

    def __call__(self, *call: Any) -> tuple[Any, ...]:
        """Verify a batch."""
        out, n_out = super().__call__(*call)
        logprobs = np.full(out.shape, np.nan)
        for b in range(len(out)):
            rows = self._rows(call, b)
            for i, token in enumerate(out[b, : n_out[b]].tolist()):
                logprobs[b, i] = np.log(self._p(rows, max(i - 1, 0))[token])
        return out, n_out, logprobs
