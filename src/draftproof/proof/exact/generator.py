"""A generator whose uniforms the judge chooses; whatever else is asked of it, it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

__all__ = ["DrivenGenerator", "NotDrivable"]

Shape = tuple[int, ...]

_UNUSED = np.random.PCG64(0)
"""What NumPy asks for; nothing is ever drawn from it."""


class NotDrivable(Exception):  # noqa: N818 (no error: another instrument has to judge)
    """The instrument does not fit this subject, which says nothing about the subject's law."""


class DrivenGenerator(np.random.Generator):
    """Base of the generators that hand out chosen uniforms.

    `random` and `uniform` ask a subclass for uniforms, and so does `choice` with probabilities,
    which draws as NumPy does, by the inverse CDF. Every other method raises `NotDrivable`.

    Attributes:
        refusal: why the generator was of no use to its subject, or None. A careless subject may
            swallow the exception and go on without randomness: look here too.
    """

    refusal: str | None = None

    def __init__(self) -> None:
        super().__init__(_UNUSED)

    def draw(self, shape: Shape) -> Any:
        """Return an array of uniforms; a subclass's part."""
        raise NotImplementedError

    def narrow(self, uniforms: Any) -> Any:
        """Turn uniforms into those of ``dtype=float32``; a subclass's part."""
        raise self.refuse("float32 uniforms")

    def refuse(self, what: str) -> NotDrivable:
        """Remember the refusal, and return the exception to raise."""
        self.refusal = self.refusal or what
        return NotDrivable(f"The subject asks for {what}.")

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Hand out uniforms in [0, 1)."""
        if out is not None:
            raise self.refuse("rng.random(out=...)")
        uniforms = self.draw(_shape(size))
        if np.dtype(dtype) != np.float64:
            uniforms = self.narrow(uniforms)
        return uniforms[()] if size is None else uniforms

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """Hand out uniforms in [low, high)."""
        if size is None:
            size = np.broadcast_shapes(np.shape(low), np.shape(high)) or None
        uniforms = self.random(size)
        if np.ndim(low) == np.ndim(high) == 0 and low == 0 and high == 1:
            return uniforms
        return low + (high - low) * uniforms

    def choice(
        self,
        a: Any,
        size: Any = None,
        replace: bool = True,
        p: Any = None,
        axis: int = 0,
        shuffle: bool = True,
    ) -> Any:
        """Draw from a law of which every draw is independent of the others."""
        if p is None or not (replace or size is None) or axis != 0:
            raise self.refuse("rng.choice without probabilities, or without replacement")
        cumulative = np.cumsum(np.asarray(p, dtype=np.float64))
        if not abs(cumulative[-1] - 1) <= np.sqrt(np.finfo(np.float64).eps):
            raise ValueError("probabilities do not sum to 1")
        edges = cumulative / cumulative[-1]
        # Not by searchsorted, which compares its keys with each other.
        index = (edges <= np.expand_dims(self.random(size), -1)).sum(axis=-1)
        return index if np.ndim(a) == 0 else np.asarray(a)[index]


def _shape(size: Any) -> Shape:
    if size is None:
        return ()
    return tuple(int(n) for n in size) if np.iterable(size) else (int(size),)


def _refusing(name: str) -> Callable[..., NoReturn]:
    def method(self: DrivenGenerator, *args: Any, **kwargs: Any) -> NoReturn:
        raise self.refuse(f"rng.{name}")

    return method


for _name in dir(np.random.Generator):
    if not _name.startswith("_") and _name not in vars(DrivenGenerator):
        _method = _refusing(_name)
        setattr(DrivenGenerator, _name, property(_method) if _name == "bit_generator" else _method)
