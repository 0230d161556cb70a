"""A world of logits: one request with its sampling parameters, and the law that they make."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.logits.order import ORDERS, Order
from draftproof.logits.params import SamplingParams
from draftproof.proof.worlds.law import Text
from draftproof.proof.worlds.world import Row, World
from draftproof.reference import processing

__all__ = [
    "FOCUSED",
    "HABITS",
    "LOGITS_WORLDS",
    "LONGEST",
    "PROMPTED",
    "TWO_ROUNDS",
    "LogitsWorld",
    "adapted",
    "allowed_at",
    "law_at",
    "logits_world",
    "of_other_params",
    "random_world",
]

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

RANDOM_WORLDS = 12
"""Worlds 2i and 2i + 1 have one vocabulary, so that they can share a batch."""
GRID = 64
"""Logits are multiples of 1 / 64 up to 3 / 2: exact in bfloat16, and no two of a row are equal."""
LONGEST = 3
"""Tokens of the longest text whose law can be told, in most worlds."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LogitsWorld(World):
    """Where a request is sampled: `World` whose rows are the laws after each whole text.

    Attributes:
        target_logits, draft_logits: [V, V], row s holds the logits after token s.
        params, draft_params: how the target and the drafter sample; masks aside that change with
            the text.
        history: what the request has emitted before the text begins; its last token is the first
            state.
        prompt: what it began with.
        longest: tokens of the longest text whose law can be told.
        grammar: [V, V], the tokens that may come after each; None without a grammar.
        draft_grammar: whether the drafter minds the grammar too.
    """

    target_logits: Floats
    draft_logits: Floats
    params: SamplingParams
    draft_params: SamplingParams
    history: Text
    grammar: Mask | None
    draft_grammar: bool
    prompt: Text = ()
    longest: int = LONGEST

    @property
    def vocabulary(self) -> int:
        """V."""
        return len(self.target_logits)

    def row(self, context: Sequence[int]) -> int:
        """Which law governs the token after this text: one for each text, shorter ones first."""
        index = 0
        for token in context:
            index = index * self.vocabulary + token + 1
        return index

    def arrays(
        self, drafts: Sequence[int], max_draft: int | None = None, context: Sequence[int] = ()
    ) -> tuple[Floats, Floats]:
        """Return the LOGITS of the drafter [K, V] and of the target [K+1, V]; padding is NaN."""
        g, K = len(drafts), len(drafts) if max_draft is None else max_draft
        states, nan = self._states(drafts, context), np.full((K - g, self.vocabulary), np.nan)
        return (
            np.concatenate([self.draft_logits[states[:g]], nan]),
            np.concatenate([self.target_logits[states], nan]),
        )

    def requests(
        self, drafts: Sequence[int], max_draft: int, context: Sequence[int] = ()
    ) -> tuple[SamplingParams, SamplingParams]:
        """Return the parameters of one call, the grammar's masks [K+1, V] among them."""
        if self.grammar is None:
            return self.params, self.draft_params
        mask = np.zeros((max_draft + 1, self.vocabulary), dtype=np.bool_)
        mask[: len(drafts) + 1] = self.grammar[self._states(drafts, context)]
        masked = replace(self.params, allowed_tokens=mask)
        if not self.draft_grammar:
            return masked, self.draft_params
        return masked, replace(self.draft_params, allowed_tokens=mask)

    def contexts(
        self, text: Text, prefixes: Sequence[Text]
    ) -> tuple[Floats, Floats, tuple[SamplingParams, SamplingParams, Text]]:
        """Return the logits of the drafter and of the target behind each prefix, and the request.

        Its masks have a row for each prefix.
        """
        states = [self._states((), (*text, *prefix))[0] for prefix in prefixes]
        params, draft_params = self.params, self.draft_params
        if self.grammar is not None:
            params = replace(params, allowed_tokens=self.grammar[states])
            if self.draft_grammar:
                draft_params = replace(draft_params, allowed_tokens=self.grammar[states])
        request = params, draft_params, (*self.history, *text)
        return self.draft_logits[states], self.target_logits[states], request

    @cached_property
    def tables(self) -> tuple[Floats, Floats]:
        """The laws of the target and of the drafter by `row`, in float64."""
        target, draft = (np.array(rows, dtype=np.float64) for rows in (self.target, self.draft))
        return target, draft

    def to_row(self) -> dict[str, Any]:
        """Describe it for `draftproof worlds`, in JSON types."""
        return {
            "name": self.name,
            "tokens": self.vocabulary,
            "params": repr(self.params),
            "draft_params": repr(self.draft_params),
            "prompt": list(self.prompt),
            "history": list(self.history),
            "target_logits": self.target_logits.tolist(),
            "draft_logits": self.draft_logits.tolist(),
            "grammar": None if self.grammar is None else self.grammar.tolist(),
            "why": f"logits: {self.why}",
        }

    def _states(self, drafts: Sequence[int], context: Sequence[int]) -> list[int]:
        return [(0, *self.history, *context)[-1], *drafts]


def allowed_at(params: SamplingParams, position: int) -> Mask | None:
    """Return the tokens [V] that a request's own masks allow at a position of its draft.

    Its masks are booleans, one row for all positions or one for each.
    """
    allowed: Mask | None = None
    for mask, says in ((params.allowed_tokens, True), (params.banned_tokens, False)):
        if mask is not None:
            row = (mask if mask.ndim == 1 else mask[position]) == says
            allowed = row if allowed is None else allowed & row
    return allowed


def law_at(
    logits: Floats,
    params: SamplingParams,
    output: Sequence[int],
    position: int,
    prompt: Sequence[int] = (),
) -> Floats:
    """Return the law [V] that plain sampling draws from, by `draftproof.reference.processing`.

    Args:
        logits: [V], of one context.
        params: of the request.
        output: its emitted tokens, and the drafts before this position.
        position: of a draft; masks may differ from one to the next.
        prompt: what its text began with.
    """
    z = processing.edit(logits, params, prompt, list(output), allowed_at(params, position))
    return processing.law(z, params) if params.temperature else processing.greedy_law(z)


def adapted(params: SamplingParams, order: str, lacks: Collection[str]) -> SamplingParams:
    """Return a request as an engine can have it: in its order, without what it does not have."""
    absent = {*lacks, *ORDERS[Order(order)].lacks}
    fields = SamplingParams.__dataclass_fields__
    unset: dict[str, Any] = {name: fields[name].default for name in absent}
    return replace(params, **unset, order=order)


def _world(
    name: str,
    why: str,
    rng: np.random.Generator,
    params: SamplingParams,
    draft_params: SamplingParams | None = None,
    history: Text = (),
    *,
    prompt: Text = (),
    vocabulary: int = 4,
    grammar: bool = False,
    draft_grammar: bool = False,
    ties: bool = False,
    longest: int = LONGEST,
) -> LogitsWorld:
    V = vocabulary
    target_logits, draft_logits = (
        np.array([_distinct(rng, V) for _ in range(V)]) for _ in range(2)
    )
    draft_logits = np.round((target_logits + draft_logits) * GRID / 2) / GRID
    if ties:
        target_logits = np.array([np.roll([1.0, *[0.0] * (V - 2), -1.0], v) for v in range(V)])
    mask = np.ones((V, V), dtype=np.bool_)
    mask[np.arange(V), rng.integers(0, V, V)] = False  # each token forbids one
    world = LogitsWorld(
        (), (), 0, name, why,
        target_logits=target_logits, draft_logits=draft_logits,
        params=params, draft_params=draft_params or params, history=history, prompt=prompt,
        longest=longest, grammar=mask if grammar else None, draft_grammar=draft_grammar,
    )  # fmt: skip
    return _with_laws(world)


def _distinct(rng: np.random.Generator, V: int) -> Floats:
    levels = np.arange(-3 * GRID // 2, 3 * GRID // 2 + 1)
    return rng.choice(levels, V, replace=False) / GRID


def _with_laws(world: LogitsWorld) -> LogitsWorld:
    """Make the laws after every text that is shorter than the longest one."""
    texts: list[Text] = [()]
    for text in texts:
        if len(text) + 1 < world.longest:
            texts += [(*text, token) for token in range(world.vocabulary)]
    target: list[Row] = []
    draft: list[Row] = []
    for text in texts:
        state, output = world._states((), text)[0], (*world.history, *text)
        params, draft_params = world.requests((), 0, text)
        for rows, logits, side in (
            (target, world.target_logits, params), (draft, world.draft_logits, draft_params),
        ):  # fmt: skip
            rows.append(_exactly(law_at(logits[state], side, output, 0, world.prompt)))
    return replace(world, target=tuple(target), draft=tuple(draft))


def _exactly(law: Floats) -> Row:
    """The floats as the numbers they are, over their exact sum."""
    row = [Fraction(x) for x in law.tolist()]
    total = sum(row)
    return tuple(x / total for x in row)


def _focused() -> dict[str, tuple[str, dict[str, Any], dict[str, Any] | None, Text, bool]]:
    """name: (why, params, the drafter's if they are others, history, grammar)."""
    end = {"min_tokens": 4, "eos_token_ids": (3,)}
    penalties = {
        "repetition_penalty": 1.75, "presence_penalty": 0.5, "frequency_penalty": 0.75,
    }  # fmt: skip
    return {
        "temperatures": ("the drafter's is another", {"temperature": 0.6}, {}, (), False),
        "top-k, top-p": (
            "one after the other", {"temperature": 1.4, "top_k": 3, "top_p": 0.8}, None, (), False,
        ),
        "min-p": ("a filter of few engines", {"temperature": 1.2, "min_p": 0.3}, {}, (), False),
        "penalties": ("they see the drafts before", penalties, None, (0, 1, 1), False),
        "bias and ban": (
            "tokens that may not come",
            {"logit_bias": {0: -math.inf, 1: 1.5}, "top_k": 3}, {"top_k": 3}, (2,), False,
        ),
        "grammar": ("a mask for each position", {"temperature": 0.9}, {}, (1,), True),
        "ends": ("none before its time", end, {}, (0, 2), False),
        "greedy": (
            "beside drafts that are sampled", {"temperature": 0, "presence_penalty": 1.25},
            {"temperature": 1.0}, (1,), False,
        ),
        "typical": (
            "neither the likeliest nor the rarest", {"temperature": 1.3, "typical_p": 0.8}, {}, (),
            False,
        ),
    }  # fmt: skip


def _focused_world(number: int, name: str) -> LogitsWorld:
    why, params, draft_params, history, grammar = _focused()[name]
    drafter = None if draft_params is None else SamplingParams(**draft_params)
    rng = np.random.default_rng([6, number])
    return _world(name, why, rng, SamplingParams(**params), drafter, history, grammar=grammar)


def random_world(number: int, seed: int = 0) -> LogitsWorld:
    """Draw parameters, logits and a history at random."""
    rng, V = np.random.default_rng([66, seed, number]), 4 + number // 2 % 4
    params = _random_params(rng, V)
    alike = rng.random() < 0.4
    drafter = None if alike else _random_params(rng, V)
    history = tuple(rng.integers(0, V, rng.integers(0, 4)).tolist())
    grammar = params.banned_tokens is None and rng.random() < 0.4
    draft_grammar = bool(
        alike or (drafter and drafter.banned_tokens is None and rng.random() < 0.5)
    )
    return _world(
        f"random {number}", "any parameters", rng, params, drafter, history,
        vocabulary=V, grammar=grammar, draft_grammar=draft_grammar,
    )  # fmt: skip


def _random_params(rng: np.random.Generator, V: int) -> SamplingParams:
    """Each parameter is set by a chance of its own; at most three tokens are banned."""

    def uniform(low: float, high: float) -> float:
        return round(float(rng.uniform(low, high)), 3)

    def token() -> int:
        return int(rng.integers(0, V))

    banned, cold = rng.random() < 0.3, rng.random() < 0.25
    drawn: dict[str, tuple[float, Any]] = {
        "temperature": (0.6, 0.0 if cold else uniform(0.5, 2)),
        "top_k": (0.35, int(rng.integers(2, V))),
        "top_p": (0.35, uniform(0.5, 0.95)),
        "min_p": (0.3, uniform(0.05, 0.3)),
        "typical_p": (0.15, uniform(0.6, 0.95)),
        "repetition_penalty": (0.4, uniform(1.1, 2.5)),
        "presence_penalty": (0.4, uniform(-0.8, 0.8)),
        "frequency_penalty": (0.4, uniform(-0.5, 0.8)),
        "logit_bias": (0.4, {token(): -math.inf if banned else uniform(-2, 2)}),
        "banned_tokens": (0.25, np.arange(V) == token()),
        "min_tokens": (0.4, int(rng.integers(1, 5))),
    }
    given = {name: value for name, (chance, value) in drawn.items() if rng.random() < chance}
    return SamplingParams(**given, eos_token_ids=(token(),))


def _special() -> dict[str, tuple[str, dict[str, Any], dict[str, Any]]]:
    """name: (why, params, more of the world)."""
    counted: dict[str, Any] = {"repetition_penalty": 1.6, "frequency_penalty": 0.7}
    return {
        "ties at top-k": ("which are kept at its edge", {"top_k": 2}, {"ties": True}),
        "ties at top-p": ("which are kept at its edge", {"top_p": 0.6}, {"ties": True}),
        "window": (
            "penalties that forget", {"penalty_window": 2, "presence_penalty": 1.0},
            {"history": (0, 3, 1)},
        ),
        "prompt": (
            "what counts it and what does not", counted, {"prompt": (2, 2, 0), "history": (0, 1)},
        ),
        "two rounds": (
            "what one leaves to the next", {**counted, "min_tokens": 4, "eos_token_ids": (2,)},
            {
                "draft_params": SamplingParams(top_k=2),
                "history": (0, 1), "vocabulary": 3, "longest": 4,
            },
        ),
    }  # fmt: skip


def _special_world(number: int, name: str) -> LogitsWorld:
    why, params, more = _special()[name]
    rng = np.random.default_rng([6, 100 + number])
    beside = {"draft_params": SamplingParams(), **more}
    return _world(name, why, rng, SamplingParams(**params), **beside)


FOCUSED = tuple(_focused())
"""Worlds of four tokens, each about one kind of parameter."""
HABITS = ("ties at top-k", "ties at top-p", "window")
"""Those about what engines do each in their own way, or do not have."""
PROMPTED = ("prompt",)
"""Those for verifiers that are told the prompts."""
TWO_ROUNDS = "two rounds"
"""The one for two rounds of trees: it tells longer texts."""


def _makers() -> dict[str, Callable[[], LogitsWorld]]:
    makers: dict[str, Callable[[], LogitsWorld]] = {}
    for number, name in enumerate(FOCUSED):
        makers[name] = lambda number=number, name=name: _focused_world(number, name)  # type: ignore[misc]
    for number in range(RANDOM_WORLDS):
        makers[f"random {number}"] = lambda number=number: random_world(number)  # type: ignore[misc]
    for number, name in enumerate(_special()):
        makers[name] = lambda number=number, name=name: _special_world(number, name)  # type: ignore[misc]
    return makers


LOGITS_WORLDS = MappingProxyType(_makers())
"""What makes each world, by name: making one takes a hundredth of a second."""


@cache
def logits_world(
    name: str, order: str = Order.STANDARD, lacks: frozenset[str] = frozenset()
) -> LogitsWorld:
    """Return a world by name, with its requests as an engine can have them."""
    world = LOGITS_WORLDS[name]()
    if order == Order.STANDARD and not lacks:
        return world
    sides = (adapted(params, order, lacks) for params in (world.params, world.draft_params))
    return of_other_params(world, *sides)


def of_other_params(
    world: LogitsWorld, params: SamplingParams, draft_params: SamplingParams
) -> LogitsWorld:
    """Return a world of the same logits in which requests have other parameters."""
    return _with_laws(replace(world, params=params, draft_params=draft_params))
