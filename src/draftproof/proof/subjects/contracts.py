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

    @property
    def shape(self) -> str:
        """The call, as one writes it in Python."""
        return f"f({', '.join(_SHAPES[self][0])})"

    @property
    def is_sampler(self) -> bool:
        """Whether it draws from the target's law, so that its law can be judged."""
        return self in (Contract.RAGGED, Contract.UNIFORMS, Contract.SINGLE)


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
}
"""The parameters of each contract. A greedy subject may take the draft law and a generator too,
as a drop-in for a ragged one does; it has no use for either."""

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
}

_NAMES = (  # the first that matches decides
    ("offsets", r"^cu|offset|indptr"),  # a packed batch: no contract has one
    ("generator", r"rng|generator|^gen$|random_state"),
    ("lengths", r"num|len|count|size|^n$|^n_|^g$|gamma"),
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
    those that tell it from its neighbours (lengths, generator, uniforms) must speak for it.

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
    agreements = [_agrees(wanted, name) for wanted, name in zip(shape, names, strict=False)]
    telling = (
        agreement
        for wanted, agreement in zip(shape, agreements, strict=True)
        if _ROLES[wanted] in ("lengths", "generator", "uniforms")
    )
    return False not in agreements and True in telling


def _agreement(shape: Sequence[str], names: Sequence[str]) -> int:
    return sum(_agrees(wanted, name) is True for wanted, name in zip(shape, names, strict=False))


def _closeness(
    contract: Contract, required: tuple[str, ...], optional: tuple[str, ...]
) -> tuple[int, int]:
    """Fewest arguments too many or missing, then most names that agree."""
    names = required + optional

    def distance(shape: Sequence[str]) -> int:
        return max(len(required) - len(shape), len(shape) - len(names), 0)

    return max((-distance(shape), _agreement(shape, names)) for shape in _SHAPES[contract])


def _describe(call: Callable[..., Any]) -> str:
    name = getattr(call, "__name__", type(call).__name__)
    try:
        return f"{name}{inspect.signature(call)}"
    except (TypeError, ValueError):
        return f"{name}(...)"
