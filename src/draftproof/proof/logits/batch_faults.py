"""Verifiers from logits whose fault lies beyond the law of one request, or is hard to follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from draftproof.logits.params import SamplingParams
from draftproof.proof.logits.gallery import verifier
from draftproof.proof.logits.skeleton import Floats, LogitsVerifier, PromptedVerifier, Rows
from draftproof.proof.worlds.logits_world import law_at


@verifier("the prompt forgotten", "prompt")
class PromptForgotten(PromptedVerifier):
    """Penalises by the output alone, where the order counts the prompt too."""

    def _prompted(self, logits: Floats, params: SamplingParams, rows: Rows, i: int) -> Floats:
        return law_at(logits, params, self._seen(rows, i), i)


@verifier("the prompt counted as output", "prompt")
class PromptCounted(PromptedVerifier):
    """Takes off the frequency penalty for tokens of the prompt."""

    def _prompted(self, logits: Floats, params: SamplingParams, rows: Rows, i: int) -> Floats:
        return law_at(logits, params, [*rows.prompt, *self._seen(rows, i)], i)


@verifier("drafts left behind taken for its own", "penalties", kind="broken",
          caught_by="logits-padding")  # fmt: skip
class LeftBehind(LogitsVerifier):
    """Tells a row's drafts by tokens that are not negative, and not by their number."""

    def __call__(self, *call: Any) -> tuple[Any, ...]:
        """Verify a batch."""
        draft, q, p, _, *rest = call
        return super().__call__(draft, q, p, (draft >= 0).sum(axis=1), *rest)


@verifier("every row greedy beside a NaN", "temperatures", kind="broken",
          public="vllm #45060", caught_by="logits-bad-rows")  # fmt: skip
class SpoiltBatch(LogitsVerifier):
    """Subtracts the largest logit of the batch: one that is no number leaves none to any row."""

    def __call__(self, *call: Any) -> tuple[Any, ...]:
        """Verify a batch."""
        draft, target, num_draft = call[0], call[2], call[3]
        read = np.arange(target.shape[1]) <= num_draft[:, None]
        if np.isfinite(target[read].max()):
            return super().__call__(*call)
        out = np.full((len(draft), draft.shape[1] + 1), -1)
        out[:, 0] = 0  # the argmax of NaN
        return out, np.ones(len(draft), np.int64)


class Seeded(LogitsVerifier):
    """Keys a request's noise by its seed and by how much it has emitted."""

    takes_seeds = True

    def __call__(self, *call: Any) -> tuple[Any, ...]:
        """Verify a batch."""
        self.call = call
        return super().__call__(*call)

    def _uniforms(self, shape: tuple[int, ...], rng: np.random.Generator) -> tuple[Any, Any]:
        accept, final = super()._uniforms(shape, rng)
        for b, params in enumerate(self.call[4]):
            if params.seed is not None:
                keyed = np.random.default_rng(self._key(b, params.seed, self.call[6][b]))
                accept[b], final[b] = keyed.random(shape[1]), keyed.random()
        return accept, final

    def _key(self, b: int, seed: int, history: Sequence[int]) -> list[int]:
        return [seed, len(history)]


verifier("keyed by seed and place", "temperatures", kind="equivalent")(Seeded)


@verifier("a seed ignored", "temperatures", kind="broken", public="vllm #6038, #13196",
          caught_by="logits-seeds")  # fmt: skip
class SeedIgnored(LogitsVerifier):
    """Takes a request's seed and draws from the generator."""

    takes_seeds = True


@verifier("noise by the row of the batch", "temperatures", kind="broken",
          caught_by="logits-seeds")  # fmt: skip
class SeedOfTheRow(Seeded):
    """Keys a request's noise by its seed and by its row in the batch."""

    def _key(self, b: int, seed: int, history: Sequence[int]) -> list[int]:
        return [seed, b, len(history)]


@verifier("a seed's noise used again", "temperatures", kind="broken",
          caught_by="logits-seeds")  # fmt: skip
class SeedUsedAgain(Seeded):
    """Keys a request's noise by its seed alone, in every round."""

    def _key(self, b: int, seed: int, history: Sequence[int]) -> list[int]:
        return [seed]


class _OfFloats(LogitsVerifier):
    """Turns its uniforms into numbers, where no oracle can follow."""

    def _uniforms(self, shape: tuple[int, ...], rng: np.random.Generator) -> tuple[Any, Any]:
        accept, final = super()._uniforms(shape, rng)
        return accept.astype(np.float64), final.astype(np.float64)


@verifier("the neighbour's temperature, of floats", "temperatures", kind="broken",
          caught_by="logits-bisection")  # fmt: skip
class NeighboursTemperature(_OfFloats):
    """Samples each row at a temperature that leans to that of the row before."""

    def __call__(self, *call: Any) -> tuple[Any, ...]:
        """Verify a batch."""
        *arrays, params, draft_params, history, rng = call
        before = [params[-1], *params[:-1]]
        leaning = [
            replace(mine, temperature=0.9 * mine.temperature + 0.1 * other.temperature)
            for mine, other in zip(params, before, strict=True)
        ]
        return super().__call__(*arrays, leaning, draft_params, history, rng)


@verifier("bonus a little hotter, by a race", "temperatures", kind="broken",
          caught_by="logits-joint")  # fmt: skip
class HotBonus(_OfFloats):
    """Draws the token behind all drafts 1.5 times as hot, by a race that takes no uniform."""

    def __call__(self, *call: Any) -> tuple[Any, ...]:
        """Verify a batch."""
        self.rng = call[-1]
        return super().__call__(*call)

    def _bonus(self, rows: Rows) -> Floats:
        law = super()._bonus(rows) ** (1 / 1.5)
        race = law / self.rng.exponential(size=len(law))
        return np.where(race == race.max(), 1.0, 0.0)
