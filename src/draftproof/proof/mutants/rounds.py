# ruff: noqa: D102
"""Rounds of decoders: what one round leaves to the next, and drafts that are not what they say."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from draftproof.proof.mutants.law import argmax, in_bf16, sharpened, top_two
from draftproof.proof.mutants.speculator import Array, Speculator, Tokens, decoder, draw

decoder("round: token", kind="equivalent")(Speculator)


@decoder("round: fewer drafts than asked", kind="equivalent", note="drafts one token at most")
class Timid(Speculator):
    """Drafts one token where more were asked for."""

    def draft(self, text: Tokens, k: int, rng: Any) -> tuple[Tokens, list[Array]]:
        return super().draft(text, min(k, 1), rng)


@decoder("round: lagging drafter", kind="equivalent", note="drafts for a text that lacks its end")
class Lagging(Speculator):
    """Drafts without knowing the last token, and says so in its rows."""

    def draft(self, text: Tokens, k: int, rng: Any) -> tuple[Tokens, list[Array]]:
        return super().draft(text[:-1], k, rng)


@decoder("round: exact match", kind="equivalent")
class Matching(Speculator):
    """Samples the target at each place, and keeps drafts as long as they are what it samples."""

    def __call__(self, context: Any, k: int, rng: Any) -> Any:
        text = list(context)
        drafts, rows = self.draft(text, k, rng)
        tokens: Tokens = []
        for x in (*drafts, -1):
            tokens.append(draw(self.target(text, tokens), rng.random()))
            if tokens[-1] != x:
                break
        return tokens, drafts, rows


@decoder("round: resample p on a rejection")
class Resampling(Speculator):
    """Draws the token after a rejection from p."""

    def emit(self, text: Any, drafts: Any, rows: Any, targets: Any, accepted: int, rng: Any) -> Any:
        return [*drafts[:accepted], draw(targets[accepted], rng.random())]


@decoder("round: noise reused", rounds=(1, 1))
class NoiseReused(Speculator):
    """Tests the drafts of every round with the uniforms of the first one."""

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self.coins: dict[int, Any] = {}
        self.rng: Any = None

    def coin(self, i: int, rng: Any) -> Any:
        if rng is not self.rng:
            self.rng, self.coins = rng, {}
        return self.coins.setdefault(i, rng.random())


@decoder("round: cache not rolled back", rounds=(1, 1))
class StaleCache(Speculator):
    """Takes what stands in the target's cache for the text, rejected drafts and all."""

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self.text: Tokens = []
        self.cached: Tokens = []

    def __call__(self, context: Any, k: int, rng: Any) -> Any:
        text = list(context)
        goes_on = len(self.text) < len(text) and text[: len(self.text)] == self.text
        self.cached = self.cached[: len(text)] if goes_on and self.text else []
        self.text = text
        result = super().__call__(text, k, rng)
        self.cached = [*text, *result[1]]
        return result

    def target(self, text: Tokens, drafts: Tokens) -> Array:
        seen = [*text, *drafts]
        return super().target([*self.cached, *seen[len(self.cached) :]], [])


@decoder("round: bonus off by one")
class EarlyBonus(Speculator):
    """Draws the token behind accepted drafts from the row of the last of them."""

    def emit(self, text: Any, drafts: Any, rows: Any, targets: Any, accepted: int, rng: Any) -> Any:
        if accepted == len(drafts) > 0:
            return [*drafts, draw(targets[-2], rng.random())]
        return super().emit(text, drafts, rows, targets, accepted, rng)


@decoder("round: all accepted, one lost")
class LosesOne(Speculator):
    """Leaves out the last draft when all are accepted, and keeps the token behind it."""

    def emit(self, text: Any, drafts: Any, rows: Any, targets: Any, accepted: int, rng: Any) -> Any:
        tokens = super().emit(text, drafts, rows, targets, accepted, rng)
        if accepted == len(drafts) > 0:
            del tokens[-2]
        return tokens


@decoder("round: bonus from the drafter")
class DraftedBonus(Speculator):
    """Draws the token behind accepted drafts from the drafter's row."""

    def emit(self, text: Any, drafts: Any, rows: Any, targets: Any, accepted: int, rng: Any) -> Any:
        if accepted == len(drafts) > 0:
            return [*drafts, draw(self.world.draft_row([*text, *drafts]), rng.random())]
        return super().emit(text, drafts, rows, targets, accepted, rng)


@decoder("round: skips rejected places")
class Skipping(Speculator):
    """Keeps the drafts that pass behind one that did not, in its place the recovered token."""

    def __call__(self, context: Any, k: int, rng: Any) -> Any:
        text = list(context)
        drafts, rows = self.draft(text, k, rng)
        tokens: Tokens = []
        for i, x in enumerate(drafts):
            p = self.target(text, drafts[:i])
            kept = self.coin(i, rng) * rows[i][x] < p[x]
            tokens.append(x if kept else draw(np.maximum(p - rows[i], 0), rng.random()))
        return tokens or [draw(self.target(text, []), rng.random())], drafts, rows


class Undeclared(Speculator):
    """Declares the drafter's row whatever it drew the draft from."""

    law: ClassVar[Any]

    def sample(self, row: Array, rng: Any) -> int:
        really = type(self).law([Fraction(float(x)) for x in row])
        return super().sample(np.array([float(x) for x in really]), rng)


@decoder("round: top-2 drafts, full q", public="transformers #47932")
class TopTwo(Undeclared):
    """Drafts from the two likeliest tokens, and declares the full row."""

    law = staticmethod(top_two)


@decoder("round: top-2 drafts, top-2 q", kind="equivalent")
class TopTwoDeclared(Speculator):
    """Drafts from the two likeliest tokens, and declares that law."""

    def draft(self, text: Tokens, k: int, rng: Any) -> tuple[Tokens, list[Array]]:
        drafts: Tokens = []
        rows: list[Array] = []
        for _ in range(k):
            row = self.world.draft_row(text + drafts)
            row[np.argsort(-row, kind="stable")[2:]] = 0
            rows.append(row / row.sum())
            drafts.append(draw(rows[-1], rng.random()))
        return drafts, rows


@decoder("round: drafts at temperature 1/2")
class Sharpened(Undeclared):
    """Drafts at a temperature of 1/2, and declares the plain row."""

    law = staticmethod(sharpened)


@decoder("round: argmax drafts, soft q", public="sglang #10308, EAGLE #110")
class Greedy(Undeclared):
    """Drafts the likeliest token, and declares the soft row."""

    law = staticmethod(argmax)


@decoder("round: drafts from q in bf16", public="DeepSpec #31", world="L357")
class Bfloat16(Undeclared):
    """Drafts from q rounded to 8 significant bits, and declares q."""

    law = staticmethod(in_bf16)


@decoder("round: another request's rows", public="1Cat-vLLM #656", rounds=(1, 1))
class OtherRows(Speculator):
    """Declares the rows that the round before it, often another request's, has declared."""

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self.before: list[Array] = []

    def draft(self, text: Tokens, k: int, rng: Any) -> tuple[Tokens, list[Array]]:
        drafts, rows = super().draft(text, k, rng)
        declared = [*self.before[:k], *rows[len(self.before) :]]
        self.before = rows
        return drafts, declared
