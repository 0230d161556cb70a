"""The call shapes that a subject may have, and which one a signature speaks of."""

from __future__ import annotations

import enum
import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["Contract", "call_shape", "guess_contract"]


class Contract(enum.StrEnum):
    """How a subject is called, and what it is held to."""

    RAGGED = "ragged"
    """A batch of rows of unequal length, and a NumPy Generator."""
    UNIFORMS = "uniforms"
    """The same, with the uniforms made explicit in place of the generator."""
    SINGLE = "single"
    """One row at a time, a list of tokens back."""
    GREEDY = "greedy"
    """Temperature 0: no randomness; equal to plain greedy decoding."""
    PRACTICE = "practice"
    """The practice problem, `draftproof.verify_speculative_tokens`: not lossless by its rule."""
    ROUND = "round"
    """A decoder's round: it drafts and verifies by itself, behind one text."""
    GENERATE = "generate"
    """A whole decoder: a batch of prompts, texts of many rounds back."""
    SIBLINGS = "siblings"
    """Several drafts of one token, the token back."""
    TREE = "tree"
    """One tree of drafts, the tokens of its accepted path and the one after them back."""
    TREE_LOGITS = "tree-logits"
    """One tree of drafts, with logits and sampling parameters in place of laws."""
    LOGITS = "logits"
    """Logits and sampling parameters in place of laws."""

    @property
    def shape(self) -> str:
        """The call, as one writes it in Python."""
        if self.is_decoder:
            return f"make(world) -> f({', '.join(MADE[self])})"
        return f"f({', '.join(_SHAPES[self][0])})"

    @property
    def is_sampler(self) -> bool:
        """Whether it verifies given drafts of a chain, so that its law can be judged."""
        return self in (Contract.RAGGED, Contract.UNIFORMS, Contract.SINGLE)

    @property
    def is_decoder(self) -> bool:
        """Whether it drafts by itself: it is made with a world's models, or has its own."""
        return self in (Contract.ROUND, Contract.GENERATE)

    @property
    def is_tree(self) -> bool:
        """Whether it samples where a place has several drafts."""
        return self in (Contract.SIBLINGS, Contract.TREE, Contract.TREE_LOGITS)


_SHAPES: dict[Contract, tuple[tuple[str, ...], ...]] = {
    Contract.RAGGED: (("draft", "q", "p", "num_draft", "rng"),),
    Contract.UNIFORMS: (("draft", "q", "p", "num_draft", "accept", "final"),),
    Contract.SINGLE: (("draft", "q", "p", "rng"),),
    Contract.GREEDY: (
        ("draft", "p", "num_draft"),
        ("draft", "q", "p", "num_draft"),
        ("draft", "q", "p", "num_draft", "rng"),
    ),
    Contract.PRACTICE: (("draft_tokens", "draft_probs", "target_probs", "random_samples"),),
    Contract.SIBLINGS: (("siblings", "q", "p", "rng"),),
    Contract.TREE: (("token_ids", "parents", "q", "p", "rng"),),
    Contract.TREE_LOGITS: (
        (
            "token_ids",
            "parents",
            "draft_logits",
            "target_logits",
            "params",
            "draft_params",
            "history",
            "rng",
        ),
    ),
    Contract.LOGITS: (
        (
            "draft",
            "draft_logits",
            "target_logits",
            "num_draft",
            "params",
            "draft_params",
            "history",
            "rng",
        ),
    ),
    Contract.ROUND: (("world",),),
    Contract.GENERATE: (("world",), ("prompts", "num_tokens", "seed")),
}
"""The parameters of each contract. A greedy subject may take the draft law and a generator too,
as a drop-in for a ragged one does; it has no use for either."""

MADE: dict[Contract, tuple[str, ...]] = {
    Contract.ROUND: ("context", "k", "rng"),
    Contract.GENERATE: ("prompts", "num_tokens", "seed"),
}
"""The parameters of what a decoder's ``make(world)`` returns."""

_ROLES = {
    "draft": "draft",
    "q": "q",
    "p": "p",
    "num_draft": "lengths",
    "rng": "generator",
    "accept": "uniforms",
    "final": "uniforms",
    "draft_tokens": "draft",
    "draft_probs": "q",
    "target_probs": "p",
    "random_samples": "uniforms",
    "siblings": "siblings",
    "token_ids": "draft",
    "parents": "parents",
    "draft_logits": "logits",
    "target_logits": "logits",
    "params": "params",
    "draft_params": "params",
    "history": "text",
    "world": "world",
    "context": "text",
    "prompts": "text",
    "k": "lengths",
    "num_tokens": "lengths",
    "seed": "seed",
}

_NAMES = (  # the first that matches decides
    ("offsets", r"^cu|offset|indptr"),  # a packed batch: no contract has one
    ("parents", r"parent"),
    ("logits", r"logit"),
    ("params", r"param"),
    ("siblings", r"sibling|children"),
    ("generator", r"rng|generator|^gen$|random_state"),
    ("seed", r"^seeds?$|_seed$"),
    ("world", r"^world|_world$"),
    ("text", r"prompt|context|prefix|history"),
    ("lengths", r"num|len|count|size|^n$|^n_|^g$|^k$|gamma|max_new"),
    ("q", r"^qs?$|^q_|_q$|(draft|propos|small|approx).*(prob|law|dist|_p$)|^p_(draft|approx)"),
    ("p", r"^ps?$|^p_|_p$|target|large|big"),
    ("uniforms", r"accept|final|uniform|^us?$|^u_|rand|sample|^r$|noise|^eta"),
    ("draft", r"draft|token|id|^xs?$|propos|candidate"),
)


def call_shape(call: Callable[..., Any], contract: Contract) -> tuple[str, ...]:
    """Return the contract's parameters as this callable takes them.

    Raises:
        ValueError: it cannot be called so.
    """
    shapes = _SHAPES[contract]
    names = _positional_names(call)
    if names is None:
        return shapes[0]
    required, optional, unlimited = names
    fitting = [
        shape
        for shape in shapes
        if len(required) <= len(shape) and (unlimited or len(shape) <= len(required + optional))
    ]
    if not fitting:
        raise ValueError(
            f"contract: found {_describe(call)}; wanted {contract.shape} for {contract.value!r}. "
            f"Fix: take {len(shapes[0])} positional arguments, or name another contract."
        )
    return max(fitting, key=lambda shape: _agreement(shape, required + optional))


def guess_contract(call: Callable[..., Any]) -> Contract:
    """Tell a subject's contract from the names and the number of its parameters.

    Parameters with defaults may be left out. No name may speak against the contract, and one of
    those that tell it from its neighbours (lengths, generator, uniforms) must speak for it. What
    takes a ``world`` alone makes a decoder: it is asked for one, whose parameters tell.

    Raises:
        ValueError: no contract, or no single one, fits; the message names the closest.
    """
    names = _positional_names(call)
    if names is None:
        raise ValueError(
            f"contract: found {_describe(call)}, whose signature cannot be read; "
            f"wanted one that tells the contract. Fix: name it, one of {', '.join(Contract)}."
        )
    required, optional, _ = names
    parameters = required + optional
    if parameters and len(required) <= 1 and _role(parameters[0]) == "world":
        return _guess_decoder(call)
    fitting = {
        contract: len(shape)
        for contract, shapes in _SHAPES.items()
        for shape in shapes
        if len(required) <= len(shape) <= len(parameters) and _fits(shape, parameters)
    }
    # A ragged verifier is not taken for a greedy one that ignores its generator.
    if Contract.RAGGED in fitting:
        fitting.pop(Contract.GREEDY, None)
    longest = max(fitting.values(), default=0)
    best = [contract for contract, length in fitting.items() if length == longest]
    if len(best) == 1:
        return best[0]
    closest = max(Contract, key=lambda contract: _closeness(contract, required, optional))
    raise ValueError(
        f"contract: found {_describe(call)}, which fits none clearly; "
        f"the closest is {closest.value!r}, {closest.shape}. "
        f"Fix: name the contract ({', '.join(Contract)}), or name the parameters as it does."
    )


def _guess_decoder(make: Callable[..., Any]) -> Contract:
    """Tell a decoder's contract from the parameters of what is made with the smallest world."""
    from draftproof.proof.decoders.models import Models
    from draftproof.proof.subjects.decoder import made_by
    from draftproof.proof.worlds.catalogue import WORLDS

    decode = made_by(make, Models(WORLDS["toy"]))
    names = _positional_names(decode)
    required, optional, unlimited = names or ((), (), True)
    parameters = required + optional
    fitting = [
        contract
        for contract, shape in MADE.items()
        if (unlimited or len(required) <= len(shape) <= len(parameters))
        and False not in (agreements := _agreements(shape, parameters))
        and agreements[-1:] == [True]
    ]
    if len(fitting) == 1:
        return fitting[0]
    roles = {_role(name) for name in parameters}
    closest = max(MADE, key=lambda contract: sum(_ROLES[name] in roles for name in MADE[contract]))
    raise ValueError(
        f"contract: what {_describe(make)} makes is {_describe(decode)}, which fits none clearly; "
        f"the closest is {closest.value!r}, {closest.shape}. Fix: name the contract "
        f"({' or '.join(MADE)}), or name the parameters as it does."
    )


def _positional_names(
    call: Callable[..., Any],
) -> tuple[tuple[str, ...], tuple[str, ...], bool] | None:
    """Names without and with a default, and whether any number more is taken; None if unknown."""
    try:
        parameters = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):
        return None
    kinds = inspect.Parameter
    positional = [
        p for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
    ]
    required = tuple(p.name for p in positional if p.default is kinds.empty)
    optional = tuple(p.name for p in positional if p.default is not kinds.empty)
    return required, optional, any(p.kind is kinds.VAR_POSITIONAL for p in parameters)


def _role(name: str) -> str | None:
    """What a parameter's name says that it is; None if nothing."""
    name = name.lower()
    return next((role for role, pattern in _NAMES if re.search(pattern, name)), None)


def _agrees(wanted: str, name: str) -> bool | None:
    """Whether a name speaks for the parameter, against it (False), or not at all (None)."""
    role = _role(name)
    return None if role is None else role == _ROLES[wanted]


def _fits(shape: Sequence[str], names: Sequence[str]) -> bool:
    agreements = _agreements(shape, names)
    telling = (
        agreement
        for wanted, agreement in zip(shape, agreements, strict=True)
        if _ROLES[wanted] in ("lengths", "generator", "uniforms")
    )
    return False not in agreements and True in telling


def _agreements(shape: Sequence[str], names: Sequence[str]) -> list[bool | None]:
    return [_agrees(wanted, name) for wanted, name in zip(shape, names, strict=False)]


def _agreement(shape: Sequence[str], names: Sequence[str]) -> int:
    return _agreements(shape, names).count(True)


def _closeness(
    contract: Contract, required: tuple[str, ...], optional: tuple[str, ...]
) -> tuple[int, int]:
    """Fewest arguments too many or missing, then most names that agree."""
    names = required + optional

    def distance(shape: Sequence[str]) -> int:
        return max(len(required) - len(shape), len(shape) - len(names), 0)

    shapes = [shape for shape in _SHAPES[contract] if shape != ("world",)]  # nearly fits anything
    nearness = ((-distance(shape), _agreement(shape, names)) for shape in shapes)
    return max(nearness, default=(-len(_ROLES), 0))


def _describe(call: Callable[..., Any]) -> str:
    name = getattr(call, "__name__", type(call).__name__)
    try:
        return f"{name}{inspect.signature(call)}"
    except (TypeError, ValueError):
        return f"{name}(...)"
