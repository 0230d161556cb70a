"""How one request is sampled."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from draftproof.errors import complaint
from draftproof.logits.masks import Mask, read_mask
from draftproof.logits.order import ORDERS, Order, Recipe, Ties

__all__ = ["SamplingParams"]

_ALLOWED, _BANNED = "allowed_tokens", "banned_tokens"


@dataclass(frozen=True, eq=False, kw_only=True)
class SamplingParams:
    """How one request is sampled. What is left out, or None, has no effect.

    The law of a token is made of its logits by `draftproof.process`, in the order that ``order``
    names; see `draftproof.logits.order`. Nothing is dropped silently: what is out of range, or
    what the engine named by ``order`` does not have, raises.

    Attributes:
        temperature: logits are divided by it; 0 is greedy: the argmax of the edited logits, ties to
            the lowest id, filters without effect; else 1e-300 to 1e300.
        top_k: keep the k likeliest tokens; 0 and -1 keep all.
        top_p: keep the likeliest tokens, as few as have this mass; a token is kept iff the mass
            before it is less.
        min_p: keep tokens at least this many times as likely as the likeliest.
        typical_p: keep the tokens whose surprise is nearest to the law's entropy, as few as have
            this mass.
        repetition_penalty: the logits of tokens already in the text are divided by it if positive,
            else multiplied.
        presence_penalty: taken off the logits of tokens already in the output.
        frequency_penalty: taken off them once for each time that they occur in the output.
        penalty_window: penalties look at the last so many tokens of the text only (llama.cpp's
            ``penalty_last_n``); None for all.
        logit_bias: added to the logits of these tokens; -inf bans one.
        allowed_tokens: bool [V], or uint32 words of packed bits; or one such row for each position
            of a draft, [K+1, ...], since what a grammar allows depends on the drafts before.
        banned_tokens: the same, of the tokens that may not come.
        min_tokens: how many tokens the output has before one of ``eos_token_ids`` may come.
        eos_token_ids: the tokens that end a text.
        seed: of this request's keyed randomness, a 64-bit integer.
        order: whose order of operations.
        ties: which tokens a filter keeps of those that tie at its edge; None as the engine does.

    Raises:
        ValueError, TypeError: a value out of range, of another type, or beyond what ``order`` has.

    >>> SamplingParams(temperature=0.7, top_p=0.9)
    SamplingParams(temperature=0.7, top_p=0.9)
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    typical_p: float = 1.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    penalty_window: int | None = None
    logit_bias: Mapping[int, float] | None = None
    allowed_tokens: Mask | None = None
    banned_tokens: Mask | None = None
    min_tokens: int = 0
    eos_token_ids: tuple[int, ...] = ()
    seed: int | None = None
    order: str = Order.STANDARD
    ties: str | None = None

    def __post_init__(self) -> None:
        for name, unset in _UNSET.items():
            if getattr(self, name) is None:
                self._put(name, unset)
        self._check_law()
        self._check_edits()
        self._put("order", _member("order", self.order, Order))
        if self.ties is not None:
            self._put("ties", _member("ties", self.ties, Ties))
        for name in sorted(self.recipe.lacks):
            if getattr(self, name) != _UNSET[name]:
                raise ValueError(
                    complaint(
                        name,
                        "",
                        found=f"{getattr(self, name)} with order={str(self.order)!r}",
                        wanted=f"{_UNSET[name]}: this engine does not have it",
                        fix="leave it out, or choose an order that has it, such as 'standard'",
                    )
                )

    @property
    def recipe(self) -> Recipe:
        """What ``order`` means."""
        return ORDERS[Order(self.order)]

    @property
    def tie_policy(self) -> Ties:
        """``ties``, or what the engine does."""
        return self.recipe.ties if self.ties is None else Ties(self.ties)

    @property
    def penalises(self) -> bool:
        """Whether a penalty has an effect."""
        return bool(self.repetition_penalty != 1 or self.presence_penalty or self.frequency_penalty)

    @property
    def reads_history(self) -> str | None:
        """The name of a parameter that needs the text so far, None if none does."""
        names = ("repetition_penalty", "presence_penalty", "frequency_penalty", "min_tokens")
        return next((name for name in names if getattr(self, name) != _UNSET[name]), None)

    @property
    def edits(self) -> bool:
        """Whether single logits are changed before the law is made."""
        return bool(self.reads_history or self.logit_bias)

    @property
    def filters(self) -> bool:
        """Whether a filter has an effect."""
        return bool(self.top_k or self.top_p < 1 or self.min_p or self.typical_p < 1)

    def __repr__(self) -> str:
        """Name what has an effect."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        values = {name: value for name, value in values.items() if value is not _UNSET.get(name)}
        given = [
            f"{name}={str(value)!r}" if isinstance(value, str) else f"{name}={value!r}"
            for name, value in values.items()
            if isinstance(value, np.ndarray) or (value is not None and value != _UNSET.get(name))
        ]
        return f"SamplingParams({', '.join(given)})"

    def _put(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _check_law(self) -> None:
        wanted = "0 (greedy), or a number in 1e-300..1e300, whose reciprocal float64 holds well"
        self._number("temperature", wanted, lambda x: x == 0 or 1e-300 <= float(x) <= 1e300)
        self._integer("top_k", -1, "an integer >= 1, or 0 for all tokens")
        self._put("top_k", max(self.top_k, 0))
        for name in ("top_p", "typical_p"):
            self._number(name, "a number in (0, 1], 1 for all tokens", lambda x: 0 < x <= 1)
        self._number("min_p", "a number in [0, 1], 0 for all tokens", lambda x: 0 <= x <= 1)

    def _check_edits(self) -> None:
        self._number("repetition_penalty", "a finite number > 0, 1 for none", lambda x: x > 0)
        for name in ("presence_penalty", "frequency_penalty"):
            self._number(name, "a finite number, 0 for none", lambda x: True)
        if self.penalty_window is not None:
            self._integer("penalty_window", 0, "a number of tokens >= 0, or None for all")
        if self.logit_bias is not None:
            self._put("logit_bias", _bias(self.logit_bias))
        for name in (_ALLOWED, _BANNED):
            if getattr(self, name) is not None:
                self._put(name, _mask(name, getattr(self, name)))
        self._integer("min_tokens", 0, "a number of tokens >= 0")
        self._put("eos_token_ids", _ids(self.eos_token_ids))
        if self.min_tokens and not self.eos_token_ids:
            raise ValueError(
                complaint(
                    "min_tokens",
                    "",
                    found=f"{self.min_tokens} without eos_token_ids",
                    wanted="the tokens that may not come before",
                    fix="pass eos_token_ids=[...]",
                )
            )
        if self.seed is not None:
            self._integer("seed", -(2**63), "a 64-bit integer", most=2**64 - 1)

    def _number(self, name: str, wanted: str, admits: Any) -> None:
        value = getattr(self, name)
        if not _is_a(value, numbers.Real):
            found = f"{value!r}, a {type(value).__name__}"
            raise TypeError(complaint(name, "", found=found, wanted=wanted, fix="pass a float"))
        if not math.isfinite(value) or not admits(value):
            fix = "leave it out for no effect"
            if name == "top_p":
                fix += "; for greedy sampling pass temperature=0"
            raise ValueError(complaint(name, "", found=value, wanted=wanted, fix=fix))
        self._put(name, float(value))

    def _integer(self, name: str, least: int, wanted: str, most: int = 2**63 - 1) -> None:
        value = getattr(self, name)
        if not _is_a(value, numbers.Integral):
            found = f"{value!r}, a {type(value).__name__}"
            raise TypeError(complaint(name, "", found=found, wanted=wanted, fix="pass an int"))
        if not least <= value <= most:
            fix = "leave it out for no effect"
            raise ValueError(complaint(name, "", found=value, wanted=wanted, fix=fix))
        self._put(name, int(value))


_UNSET: dict[str, Any] = {
    name: field.default
    for name, field in SamplingParams.__dataclass_fields__.items()
    if field.default is not None
}


def _is_a(value: Any, kind: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool | np.bool_)


def _bias(value: Any) -> dict[int, float]:
    wanted = "a mapping of token ids >= 0 to finite numbers, or to -inf"
    fix = "pass {token: bias}"
    if not isinstance(value, Mapping):
        found = f"a {type(value).__name__}"
        raise TypeError(complaint("logit_bias", "", found=found, wanted=wanted, fix=fix))
    bias: dict[int, float] = {}
    for token, number in value.items():
        if not _is_a(token, numbers.Integral) or not _is_a(number, numbers.Real):
            found = f"{token!r}: {number!r}"
            raise TypeError(complaint("logit_bias", "", found=found, wanted=wanted, fix=fix))
        if token < 0 or not number < math.inf:
            place = f"token {token}"
            raise ValueError(complaint("logit_bias", place, found=number, wanted=wanted, fix=fix))
        bias[int(token)] = float(number)
    return bias


def _mask(name: str, value: Any) -> Mask:
    mask = read_mask(name, value)
    if mask.ndim > 2:
        found, wanted = f"shape {list(mask.shape)}", "[V], or [K+1, V] with a row for each position"
        fix = "pass each request's own mask, or token_mask for the whole batch"
        raise ValueError(complaint(name, "", found=found, wanted=wanted, fix=fix))
    return mask


def _ids(value: Any) -> tuple[int, ...]:
    if _is_a(value, numbers.Integral):
        value = (value,)
    wanted, fix = "token ids >= 0", "pass a list of ints"
    if not isinstance(value, Iterable):
        found = f"a {type(value).__name__}"
        raise TypeError(complaint("eos_token_ids", "", found=found, wanted=wanted, fix=fix))
    ids: tuple[Any, ...] = tuple(value)
    for token in ids:
        integer = _is_a(token, numbers.Integral)
        if not integer or token < 0:
            error = ValueError if integer else TypeError
            raise error(complaint("eos_token_ids", "", found=repr(token), wanted=wanted, fix=fix))
    return tuple(sorted({int(token) for token in ids}))


def _member(name: str, value: Any, kind: Any) -> Any:
    try:
        return kind(value)
    except ValueError:
        options = ", ".join(repr(member.value) for member in kind)
        found, fix = repr(value), "choose one of these"
        wanted = f"one of {options}"
        raise ValueError(complaint(name, "", found=found, wanted=wanted, fix=fix)) from None
