# ruff: noqa: D102
"""Whole decoders: rows that meet in a batch, texts that end, seeds."""

from __future__ import annotations

from typing import Any

import numpy as np

from draftproof.proof.mutants.rounds import Resampling
from draftproof.proof.mutants.speculator import Speculator, Writer, decoder, draw
from draftproof.proof.subjects.contracts import Contract

TEXTS: Any = {"contract": Contract.GENERATE, "drivable": False}


decoder("text: token", kind="equivalent", **TEXTS)(Writer)


@decoder("text: plain sampling", kind="equivalent", note="does not speculate", **TEXTS)
class Plain(Writer):
    """Samples the target token by token, without any drafts."""

    drafts = 0


@decoder("text: all wait for the slowest", kind="equivalent", note="cuts to the shortest", **TEXTS)
class InStep(Writer):
    """Keeps of each row's round as many tokens as the shortest round of the batch has."""

    def step(self, prompts: Any, texts: Any, active: Any, rng: Any) -> None:
        made = [self.rounds([*prompts[b], *texts[b]], self.drafts, rng)[0] for b in active]
        shortest = min(map(len, made))
        for b, tokens in zip(active, made, strict=True):
            texts[b] += tokens[:shortest]


@decoder("text: resample p on a rejection", caught_by="anytime", **TEXTS)
class ResamplingWriter(Writer):
    """Draws the token after a rejection from p."""

    speculator = Resampling


@decoder("text: rows mixed up when one leaves", caught_by="anytime", **TEXTS)
class MixedUp(Writer):
    """After a row has left the batch, judges the rows behind it once by the text of another."""

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self.places: list[int] = []

    def __call__(self, prompts: Any, num_tokens: int, seed: int) -> Any:
        self.places = list(range(len(prompts)))
        return super().__call__(prompts, num_tokens, seed)

    def step(self, prompts: Any, texts: Any, active: Any, rng: Any) -> None:
        contexts = [[*prompts[b], *texts[b]] for b in self.places]
        self.places = active
        for i, b in enumerate(active):
            texts[b] += self.rounds(contexts[i], self.drafts, rng)[0]


@decoder(
    "text: goes on behind its end",
    public="transformers #47912, sglang #31599",
    caught_by="ends",
    **TEXTS,
)
class Endless(Writer):
    """Sees the end of a text only where it is the last token of a round."""

    def is_done(self, text: Any, num_tokens: int) -> bool:
        return len(text) >= num_tokens or text[-1:] == [self.world.eos]

    def finish(self, text: Any, num_tokens: int) -> Any:
        return text[:num_tokens]


@decoder("text: rejected tokens stay", public="lucidrains #3", caught_by="anytime", **TEXTS)
class Ragged(Writer):
    """Fills each row's round up to the longest of the batch with its rejected drafts."""

    def step(self, prompts: Any, texts: Any, active: Any, rng: Any) -> None:
        made = [self.rounds([*prompts[b], *texts[b]], self.drafts, rng) for b in active]
        longest = max(len(tokens) for tokens, _, _ in made)
        for b, (tokens, drafts, _) in zip(active, made, strict=True):
            texts[b] += [*tokens, *drafts[len(tokens) : longest]]


@decoder("text: same noise in all rows", caught_by="anytime", **TEXTS)
class SharedNoise(Writer):
    """Starts every row's generator from the one seed."""

    def __call__(self, prompts: Any, num_tokens: int, seed: int) -> Any:
        call = super().__call__
        return [call([prompt], num_tokens, seed)[0] for prompt in prompts]


@decoder("text: seed ignored", public="vllm #6038", caught_by="different-seeds", **TEXTS)
class Seedless(Writer):
    """Starts from one seed of its own."""

    def generator(self, seed: int) -> np.random.Generator:
        return np.random.default_rng(0)


@decoder("text: seeded in each round", caught_by="anytime", **TEXTS)
class SeededRounds(Writer):
    """Starts its generator from the seed again in every round."""

    def __call__(self, prompts: Any, num_tokens: int, seed: int) -> Any:
        self.seed = seed
        return super().__call__(prompts, num_tokens, seed)

    def step(self, prompts: Any, texts: Any, active: Any, rng: Any) -> None:
        super().step(prompts, texts, active, np.random.default_rng(self.seed))


@decoder("text: rows in pairs share noise", caught_by="rows", **TEXTS)
class SharedByPairs(Writer):
    """Gives the rows 2i and 2i + 1 of a batch the same noise in their first round."""

    def step(self, prompts: Any, texts: Any, active: Any, rng: Any) -> None:
        if any(texts):
            super().step(prompts, texts, active, rng)
            return
        for b in active:
            if b % 2 == 0:
                state = rng.bit_generator.state
            after = rng.bit_generator.state
            rng.bit_generator.state = state
            texts[b] += self.rounds([*prompts[b]], self.drafts, rng)[0]
            if b % 2:
                rng.bit_generator.state = after


@decoder("text: noise kept between calls", caught_by="anytime", **TEXTS)
class KeptNoise(Writer):
    """Takes the seed of the call before in every second call."""

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self.last: int | None = None

    def generator(self, seed: int) -> np.random.Generator:
        kept, self.last = self.last, None if self.last is not None else seed
        return super().generator(seed if kept is None else kept)


@decoder("text: first token greedy", caught_by="anytime", **TEXTS)
class GreedyStart(Writer):
    """Takes the first token of each text, which no round verifies, by argmax."""

    def step(self, prompts: Any, texts: Any, active: Any, rng: Any) -> None:
        for b in active:
            if not texts[b]:
                texts[b].append(int(self.world.target_row(list(prompts[b])).argmax()))
        super().step(prompts, texts, active, rng)


@decoder("text: last token from the drafter", caught_by="anytime", **TEXTS)
class DraftedEnd(Writer):
    """Draws the last token, for which no round is left, from the drafter."""

    def step(self, prompts: Any, texts: Any, active: Any, rng: Any) -> None:
        super().step(prompts, texts, active, rng)
        for b in active:
            if len(texts[b]) == self.wanted - 1:
                row = self.world.draft_row([*prompts[b], *texts[b]])
                texts[b].append(draw(row, rng.random()))

    def __call__(self, prompts: Any, num_tokens: int, seed: int) -> Any:
        self.wanted = num_tokens
        return super().__call__(prompts, num_tokens, seed)


@decoder("text: cache of another row", caught_by="anytime", **TEXTS)
class CrossedCache(Writer):
    """Keeps one cache for the batch, which holds the row that was verified before."""

    class Cached(Speculator):
        """Judges the first draft by the row that the round before ended with."""

        row: Any = None

        def target(self, text: Any, drafts: Any) -> Any:
            row = super().target(text, drafts)
            first, self.row = self.row if not drafts and self.row is not None else row, row
            return first

    speculator = Cached
