"""Witnesses: what a few texts over a large vocabulary say about a law of too many cells.

Among 262,144 cells a thousand texts fill almost none twice, and no table of counts shows a thing.
A witness is a function of one token in its context whose law under the target is known. The battery
asks each of five, position by position; given the tokens before, the tokens of one position are
independent and their contexts fixed, so that every p-value below holds for every size:

    argmax rate         sum of Bernoulli variables, its law by convolution: exact
    rate of q > p       the same
    surprisal, -log p   sum of variables with known moment generating functions: Chernoff's bound
    log q / p           the same
    probability         U = C(v-1) + w p(v), w uniform: uniform and independent on [0, 1); cells of
    integral transform  [0, 1) are counted, two positions together: `statistics.compare`

Holm's procedure (Scandinavian Journal of Statistics 6, 1979) keeps the family to its size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.proof.sampled.statistics import compare, scipy_special
from draftproof.proof.worlds.wide import WideWorld

__all__ = ["Statement", "battery", "holm"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Array = npt.NDArray[Any]

FARTHEST = 30.0
"""|log q / p| is cut off here: a token that the drafter cannot write still has one."""
MOST_CELLS, TEXTS_PER_CELL = 64, 8
"""Of the integral transform's table: a power of 2, so that no cell is rare."""
TILTS = (4.0, 8.0, 16.0, 32.0)
"""Of Chernoff's bound, in inverse standard errors: each gives a bound, and so does the best."""


@dataclass(frozen=True)
class Statement:
    """What one witness says.

    Attributes:
        witness: its name.
        position: of the token in the text; -1 for all of them.
        observed, expected: its mean over the texts, and under the target.
        p_value: bound on the probability that a lossless subject's is as far off; 0 where an
            impossible token was seen.
    """

    witness: str
    position: int
    observed: float
    expected: float
    p_value: float

    def __str__(self) -> str:
        """The witness with its numbers, for a message."""
        place = f" of token {self.position}" if self.position >= 0 else ""
        return f"{self.witness}{place} {self.observed:.4g}, the target has {self.expected:.4g}"


def battery(
    world: WideWorld, contexts: Ints, tokens: Ints, rng: np.random.Generator
) -> list[Statement]:
    """Ask every witness about some texts.

    Args:
        world: gives the laws.
        contexts, tokens: [n, L]; the context of a token may depend on the ones before it.
        rng: randomises the integral transform: one uniform for each token.

    Returns:
        In a fixed order; an impossible token ends it, for it needs no other witness.
    """
    p, _ = world.tables
    impossible = p[contexts, tokens] == 0
    if impossible.any():
        rate = float(impossible.mean())
        return [Statement("rate of impossible tokens", -1, rate, 0.0, 0.0)]
    heard: list[Statement] = []
    for position, (context, token) in enumerate(zip(contexts.T, tokens.T, strict=True)):
        visits = np.bincount(context, minlength=world.contexts)
        for name, value in _values(world, context, token):
            if value.dtype == np.bool_:
                heard.append(_rate(world, name, position, visits, value))
            else:
                heard.append(_mean(world, name, position, visits, value))
    return [*heard, _transform(world, contexts, tokens, rng)]


def holm(statements: list[Statement], size: float) -> list[Statement]:
    """Return the witnesses to believe, strongest first, at a family-wise false-alarm rate.

    >>> heard = [Statement(name, 0, 1, 0, p) for name, p in (("a", 0.6), ("b", 0.04))]
    >>> [statement.witness for statement in holm(heard, 0.1)]
    ['b']
    """
    believed: list[Statement] = []
    for statement in sorted(statements, key=lambda each: each.p_value):
        if statement.p_value > size / (len(statements) - len(believed)):
            break
        believed.append(statement)
    return believed


def _values(world: WideWorld, context: Ints, token: Ints) -> Iterator[tuple[str, Array]]:
    p, q = (law[context, token] for law in world.tables)
    yield "argmax rate", world.tables[0].argmax(axis=1)[context] == token
    yield "rate of q > p", q > p
    yield "surprisal", -np.log(p)
    yield "log q/p", _log_ratio(p, q)


def _log_ratio(p: Floats, q: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.clip(np.log(q) - np.log(p), -FARTHEST, FARTHEST))


def _rate(world: WideWorld, name: str, position: int, visits: Ints, seen: Array) -> Statement:
    special, rates = scipy_special(), _rates(world)[name]
    law, n, count = np.ones(1), int(visits.sum()), int(seen.sum())
    for visit, rate in zip(visits.tolist(), rates, strict=True):
        k = np.arange(visit + 1)
        log_law = (
            special.gammaln(visit + 1) - special.gammaln(k + 1) - special.gammaln(visit - k + 1)
            + special.xlogy(k, rate) + special.xlog1py(visit - k, -rate)
        )  # fmt: skip
        law = np.convolve(law, np.exp(log_law))
    tail = min(law[: count + 1].sum(), law[count:].sum())
    return Statement(name, position, count / n, float(visits @ rates) / n, min(1.0, 2 * tail))


def _mean(world: WideWorld, name: str, position: int, visits: Ints, values: Floats) -> Statement:
    """Chernoff: P(S >= s) <= E exp(t S) / exp(t s) for each t > 0, and so for the best of some.

    A bound that falls as s grows holds for the s that was seen.
    """
    means, deviations, cumulants = _moments(world, name)
    n = int(visits.sum())
    centre, spread = float(visits @ means), float(np.sqrt(visits @ deviations**2))
    off = float(values.sum()) - centre
    if not spread:
        return Statement(name, position, off / n + centre / n, centre / n, float(off == 0))
    exponents = [
        float(visits @ cumulants(np.sign(off) * tilt / spread)) - tilt / spread * abs(off)
        for tilt in TILTS
    ]
    p_value = 2 * float(np.exp(min(0.0, *exponents)))
    return Statement(name, position, (centre + off) / n, centre / n, min(1.0, p_value))


def _transform(
    world: WideWorld, contexts: Ints, tokens: Ints, rng: np.random.Generator
) -> Statement:
    n, positions = tokens.shape
    above = world.edges[0][contexts, tokens]
    uniform = above - rng.random(tokens.shape) * world.tables[0][contexts, tokens]
    bits = int(np.log2(np.clip(n // TEXTS_PER_CELL, 1, MOST_CELLS))) // positions
    digits = np.clip((uniform * 2**bits).astype(np.int64), 0, 2**bits - 1)
    cells = 2 ** (bits * positions)
    counts = np.bincount(digits @ (2**bits) ** np.arange(positions), minlength=cells)
    false_alarm = compare(counts, np.full(cells, 1 / cells)).false_alarm
    return Statement("integral transform", -1, float(uniform.mean()), 0.5, false_alarm)


@cache
def _rates(world: WideWorld) -> dict[str, Floats]:
    p, q = world.tables
    return {"argmax rate": p.max(axis=1), "rate of q > p": (p * (q > p)).sum(axis=1)}


@cache
def _moments(world: WideWorld, name: str) -> tuple[Floats, Floats, Any]:
    """Means and standard deviations by context, and t -> log E exp(t (w - E w)) of each."""
    means, deviations, laws = [], [], []
    for p, q in zip(*world.tables, strict=True):
        law, q = p[p > 0], q[p > 0]
        values = -np.log(law) if name == "surprisal" else _log_ratio(law, q)
        means.append(law @ values)
        deviations.append(np.sqrt(law @ (values - means[-1]) ** 2))
        laws.append((law, values - means[-1]))

    @cache
    def cumulants(t: float) -> Floats:
        with np.errstate(over="ignore"):  # no bound, where it overflows
            return np.log([law @ np.exp(t * centred) for law, centred in laws])

    return np.array(means), np.array(deviations), cumulants
