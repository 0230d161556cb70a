"""The interval oracle: uniforms that are whole intervals, which comparisons split.

A subject is run once for every way in which its comparisons can turn out. Each run knows its exact
probability, so the law of whatever it returns is exact: no sampling, no grid.

    u = [0, 1)                        a uniform of which nothing is known
    u < 1/4                           -> True, u = [0, 1/4), with probability 1/4
                                      -> False, u = [1/4, 1), with probability 3/4
    u < 1/8, in the second run        -> False: it is known already
"""

from __future__ import annotations

import itertools
import math
import numbers
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn, TypeVar

import numpy as np

from draftproof.proof.exact.generator import DrivenGenerator, NotDrivable, Shape

__all__ = ["MAX_PATHS", "OracleGenerator", "Path", "Uniform", "explore"]

MAX_PATHS = 5_000
"""Runs that one exploration may take."""
RUN_TWICE = 16
"""First runs that are repeated: a subject with entropy of its own does not repeat itself."""
RUN_OFTEN = 40
"""Repetitions of a run that looked at no uniform: entropy of its own may be all it uses, and two
runs of it agree by chance."""

Result = TypeVar("Result")


Ratio = tuple[int, int]
"""Numerator and denominator > 0, not reduced: much faster than a Fraction."""


@dataclass
class _Decision:
    question: Hashable
    shares: Sequence[Fraction]
    option: int = -1

    def advance(self) -> bool:
        """Go to the next option that can happen."""
        later = range(self.option + 1, len(self.shares))
        self.option = next((i for i in later if self.shares[i]), -1)
        return self.option >= 0


@dataclass
class _Interval:
    number: int
    low: Ratio = (0, 1)
    high: Ratio = (1, 1)


class Path:
    """One run: the decisions so far, and what they say about each uniform.

    Attributes:
        refusal: why a uniform could not do what it was asked, or None.
    """

    def __init__(self, decisions: list[_Decision]) -> None:
        self.refusal: str | None = None
        self._decisions = decisions
        self._step = 0
        self._intervals: dict[int, _Interval] = {}

    @property
    def weight(self) -> Fraction:
        """The probability of the decisions so far."""
        taken = self._decisions[: self._step]
        return math.prod((d.shares[d.option] for d in taken), start=Fraction(1))

    @property
    def looked(self) -> bool:
        """Whether any uniform was compared with anything."""
        return bool(self._intervals)

    def choose(self, law: Sequence[Fraction]) -> int:
        """Draw from a law: each outcome of positive probability has runs of its own."""
        return self._decide(tuple(law), lambda: law)

    def below(self, key: int, threshold: Ratio) -> bool:
        """Whether the uniform lies below a threshold.

        A uniform that another run has left behind (a cache) is unknown again in this one.
        """
        known = self._intervals.get(key)
        if known is None:
            known = self._intervals[key] = _Interval(len(self._intervals))
        (t, d), (low, low_d), (high, high_d) = threshold, known.low, known.high
        if t * low_d <= low * d:
            return False
        if t * high_d >= high * d:
            return True

        def shares() -> Sequence[Fraction]:
            bottom = Fraction(low, low_d)
            share = (Fraction(t, d) - bottom) / (Fraction(high, high_d) - bottom)
            return share, 1 - share

        if self._decide((known.number, t, d), shares) == 0:
            known.high = threshold
            return True
        known.low = threshold
        return False

    def interval(self, uniform: Uniform) -> tuple[Fraction, Fraction]:
        """What is known of a uniform by now: that it lies in [low, high)."""
        known = self._intervals.get(uniform.key, _Interval(0))
        return Fraction(*known.low), Fraction(*known.high)

    def refuse(self, what: str) -> NotDrivable:
        """Remember the refusal, and return the exception to raise."""
        self.refusal = self.refusal or what
        return NotDrivable(what)

    def _decide(self, question: Hashable, shares: Callable[[], Sequence[Fraction]]) -> int:
        if self._step == len(self._decisions):
            self._decisions.append(_Decision(question, shares()))
            self._decisions[-1].advance()
        decision = self._decisions[self._step]
        if decision.question != question:
            raise self.refuse("The subject does not repeat itself for equal uniforms.")
        self._step += 1
        return decision.option


_active: list[Path] = []
"""The run in progress, last: a uniform asks it, whoever has kept the uniform."""
_keys = itertools.count()


def explore(
    program: Callable[[Path], Result], max_paths: int = MAX_PATHS
) -> Iterator[tuple[Result | Exception, Fraction]]:
    """Run a program once for every way in which its decisions can turn out.

    Depth first: after each run the last decision that has another option takes it, and the
    program is run again from its start.

    Args:
        program: takes a `Path`, draws from it or from an `OracleGenerator`, and is a function of
            what it drew.
        max_paths: how many runs it may take.

    Yields:
        (result, weight): what a run returned, or the exception it raised, and its probability.
        The weights sum to 1.

    Raises:
        NotDrivable: a uniform was asked for more than comparisons, even if the program swallowed
            the refusal; equal uniforms gave different results; or there are too many runs.
    """
    decisions: list[_Decision] = []
    for number in range(max_paths):
        result, path = _run(program, decisions)
        for _ in range((number < RUN_TWICE) if path.looked else RUN_OFTEN):
            if not _same(result, _run(program, decisions)[0]):
                raise NotDrivable("The subject gives different results for equal uniforms.")
        yield result, path.weight
        while decisions and not decisions[-1].advance():
            decisions.pop()
        if not decisions:
            return
    raise NotDrivable(f"The subject has more than {max_paths} paths.")


def _run(
    program: Callable[[Path], Result], decisions: list[_Decision]
) -> tuple[Result | Exception, Path]:
    path = Path(decisions)
    _active.append(path)
    result: Result | Exception
    try:
        result = program(path)
    except NotDrivable:
        raise
    except Exception as error:
        result = error
    finally:
        _active.pop()
    if path.refusal is not None:
        raise NotDrivable(path.refusal)
    return result, path


def _same(first: Any, second: Any) -> bool:
    if isinstance(first, Exception):
        return type(first) is type(second)
    return bool(first == second)


def _path() -> Path:
    if not _active:
        raise NotDrivable("A uniform was used after its call had returned.")
    return _active[-1]


class Uniform:
    """``(offset + scale * u) / unit`` for a uniform u in [0, 1): what a subject gets for a float.

    It can be multiplied, divided, added to and subtracted from numbers, and compared with a number
    or with another form of the same u. The events u = t have probability 0 and never happen. All
    else is refused, above all becoming a float.
    """

    __slots__ = ("key", "offset", "scale", "unit")

    def __init__(self, key: int, offset: int = 0, scale: int = 1, unit: int = 1) -> None:
        self.key = key
        self.offset = offset
        self.scale = scale
        self.unit = unit

    def __repr__(self) -> str:
        return f"Uniform(({self.offset} + {self.scale} * u{self.key}) / {self.unit})"

    def _sign(self, other: Any) -> int | None:
        """-1 if this is below the other, 1 if above, 0 if equal, None beside a NaN."""
        if isinstance(other, Uniform):
            difference: Uniform = self - other
            return difference._sign(0)
        if isinstance(other, float) and not math.isfinite(other):
            return None if math.isnan(other) else (-1 if other > 0 else 1)
        n, d = _ratio(other)
        rest, slope = n * self.unit - self.offset * d, self.scale * d
        if slope == 0:
            return (rest < 0) - (rest > 0)
        if slope > 0:
            return -1 if _path().below(self.key, (rest, slope)) else 1
        return 1 if _path().below(self.key, (-rest, -slope)) else -1

    def __lt__(self, other: Any) -> Any:
        return self._sign(other) == -1 if _is_operand(other) else NotImplemented

    def __le__(self, other: Any) -> Any:
        return self._sign(other) in (-1, 0) if _is_operand(other) else NotImplemented

    def __gt__(self, other: Any) -> Any:
        return self._sign(other) == 1 if _is_operand(other) else NotImplemented

    def __ge__(self, other: Any) -> Any:
        return self._sign(other) in (0, 1) if _is_operand(other) else NotImplemented

    def __neg__(self) -> Uniform:
        return Uniform(self.key, -self.offset, -self.scale, self.unit)

    def __add__(self, other: Any) -> Any:
        if not _is_operand(other):
            return NotImplemented
        if isinstance(other, Uniform):
            if self.key != other.key:
                raise _path().refuse("The subject compares or adds different uniforms.")
            n, slope, d = other.offset, other.scale, other.unit
        elif isinstance(other, float) and not math.isfinite(other):
            return other
        else:
            (n, d), slope = _ratio(other), 0
        return Uniform(
            self.key,
            self.offset * d + n * self.unit,
            self.scale * d + slope * self.unit,
            self.unit * d,
        )

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + -other if _is_operand(other) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return -self + other if _is_operand(other) else NotImplemented

    def __mul__(self, other: Any) -> Any:
        if not _is_operand(other):
            return NotImplemented
        if isinstance(other, float) and math.isnan(other):
            return other
        if isinstance(other, Uniform) or (isinstance(other, float) and math.isinf(other)):
            raise _path().refuse("The subject multiplies a uniform by infinity or by a uniform.")
        n, d = _ratio(other)
        return Uniform(self.key, self.offset * n, self.scale * n, self.unit * d)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if not _is_operand(other):
            return NotImplemented
        if isinstance(other, float) and not math.isfinite(other):
            return self * (1 / other)
        if isinstance(other, Uniform) or other == 0:
            raise _path().refuse("The subject divides a uniform by zero or by a uniform.")
        n, d = _ratio(other)
        return self * Fraction(d, n)

    def __abs__(self) -> Uniform:
        return -self if self < 0 else self

    def _refuse_number(self) -> NoReturn:
        raise _path().refuse("The subject turns a uniform into a plain number.")

    __float__ = __int__ = __index__ = __bool__ = __hash__ = _refuse_number

    def __eq__(self, other: object) -> bool:
        """Never, almost surely."""
        return False


def _is_operand(x: Any) -> bool:
    """Whether x is a single number or uniform: an array does elementwise what it does to us."""
    return isinstance(x, (float, Uniform, int, Fraction, np.number, np.bool_))


def _ratio(x: Any) -> Ratio:
    """Return a finite number exactly."""
    if isinstance(x, (int, Fraction)):
        return x.numerator, x.denominator
    return float(x).as_integer_ratio()


numbers.Real.register(Uniform)


class OracleGenerator(DrivenGenerator):
    """A generator that hands out `Uniform` objects, in object arrays of the asked shape."""

    def draw(self, shape: Shape) -> Any:
        """Return uniforms of which nothing is known."""
        count = math.prod(shape)
        uniforms = np.empty(count, dtype=object)
        uniforms[:] = [Uniform(next(_keys)) for _ in range(count)]
        return uniforms.reshape(shape)

    def refuse(self, what: str) -> NotDrivable:
        """Remember the refusal in the run too."""
        _path().refuse(f"The subject asks for {what}.")
        return super().refuse(what)
