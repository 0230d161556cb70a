"""What all tests of the verifier share: backends, hostile batches, and an independent oracle."""

# mypy: no-check-untyped-defs
from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

import draftproof

SLOW_LANE = "slow"

settings.register_profile(
    "fast",
    max_examples=50,
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(SLOW_LANE, settings.get_profile("fast"), max_examples=400)
settings.load_profile("fast")


def pytest_configure(config):
    if config.option.markexpr == SLOW_LANE:
        settings.load_profile(SLOW_LANE)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """The slow lane runs every Hypothesis test again, with the slow profile's examples."""
    if config.option.markexpr == SLOW_LANE:
        for item in items:
            if is_hypothesis_test(getattr(item, "obj", None)):
                item.add_marker(SLOW_LANE)


@pytest.fixture(scope="session", params=draftproof.available_backends())
def backend(request):
    return request.param


class Case(NamedTuple):
    """The first four arguments of `verify`, every one a NumPy array."""

    ids: Any
    q: Any
    p: Any
    num_draft: Any

    @property
    def shape(self):
        return self.ids.shape

    def uniforms(self, seed=0):
        """What ``rng=default_rng(seed)`` draws for this case."""
        rng = np.random.default_rng(seed)
        return rng.random(self.shape), rng.random((self.shape[0], 1))[:, 0]

    def packed(self):
        """The first four arguments of `verify_packed`."""
        lengths = self.num_draft
        valid = np.arange(self.shape[1]) < lengths[:, None]
        read = np.arange(self.shape[1] + 1) <= lengths[:, None]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        return self.ids[valid], self.q[valid], self.p[read], offsets


def laws(rng, *shape, zeros=0.2):
    """Laws over the last axis, peaked, some of their entries zero."""
    weights = rng.exponential(size=shape) ** 3 * (rng.random(shape) >= zeros)
    weights[..., -1] += (weights.sum(axis=-1) == 0) * 1.0
    return weights / weights.sum(axis=-1, keepdims=True)


def make_case(B, K, V, seed=0, *, ragged=True, near=0.5):
    """Honest drafts: each is drawn from its own row of q; rows never read hold NaN, ids -1."""
    rng = np.random.default_rng([seed, B, K, V])
    p, q = laws(rng, B, K + 1, V), laws(rng, B, K, V)
    q = (1 - near) * q + near * p[:, :K]
    ids = (np.cumsum(q, axis=-1) <= rng.random((B, K, 1))).sum(axis=-1).clip(max=V - 1)
    lengths = rng.integers(0, K + 1, size=B) if ragged else np.full(B, K)
    never = np.arange(K) >= lengths[:, None]
    ids[never], q[never], p[:, 1:][never] = -1, np.nan, np.nan
    return Case(ids, q, p, lengths)


@pytest.fixture(scope="session")
def case_of() -> Callable[..., Case]:
    return make_case


class Expected(NamedTuple):
    token_ids: Any
    num_emitted: Any
    clear: Any
    """[B] bool: no decision lay within rounding of its threshold."""


def straightforward(ids, q, p, num_draft, rng):
    """The token rule as a reader of the papers would write it in float64, one line an equation."""
    ids, num_draft = np.asarray(ids), np.asarray(num_draft)
    B, K = ids.shape
    V = p.shape[-1]
    ulp = 2.0**-52
    accept, final = rng.random((B, K)), rng.random((B, 1))
    token_ids, clear = np.full((B, K + 1), -1), np.ones(B, dtype=bool)
    for b, g in enumerate(num_draft):
        p_b, q_b = p[b].astype(np.float64), q[b].astype(np.float64)
        steps = np.arange(g)
        px, qx = p_b[steps, ids[b, :g]], q_b[steps, ids[b, :g]]
        scaled = accept[b, :g] * qx
        tau = int(np.cumprod(scaled < px).sum())
        dist = p_b[g] if tau == g else np.maximum(0, p_b[tau] - q_b[tau])
        sums, threshold = np.cumsum(dist), final[b, 0] * dist.sum()
        last = min(int((sums < threshold).sum()), V - 1)
        token_ids[b, : tau + 1] = [*ids[b, :tau], last]
        judged = slice(0, tau + 1)
        clear[b] = (np.abs(scaled - px)[judged] > 2 * ulp * px[judged]).all()
        clear[b] &= dist.sum() > 0 and (np.abs(sums - threshold) > 2 * V * ulp * dist.sum()).all()
    return Expected(token_ids, (token_ids >= 0).sum(axis=1), clear)


@pytest.fixture(scope="session")
def oracle() -> Callable[..., Expected]:
    return straightforward


class World(NamedTuple):
    """A Markov target and drafter over V tokens, started in state 0, in sixteenths.

    For the token rule every accept threshold is a multiple of 1/4 and every threshold of a last
    draw one of 1/8, and every number is exact in every dtype.
    """

    P: list[list[Fraction]]
    Q: list[list[Fraction]]


def _sixteenths(*rows):
    return [[Fraction(entry, 16) for entry in row] for row in rows]


@pytest.fixture(scope="session")
def l4() -> World:
    return World(
        _sixteenths((6, 4, 4, 2), (6, 6, 2, 2), (2, 6, 4, 4), (2, 8, 2, 4)),
        _sixteenths((8, 3, 1, 4), (8, 6, 1, 1), (4, 5, 3, 4), (4, 2, 8, 2)),
    )


def chain_law(rows, length):
    """The law of the first tokens of a Markov chain started in state 0, as {text: Fraction}."""
    law = {(): Fraction(1)}
    for _ in range(length):
        law = {
            (*text, token): probability * share
            for text, probability in law.items()
            for token, share in enumerate(rows[text[-1] if text else 0])
            if share
        }
    return law


class Integral(NamedTuple):
    law: dict[tuple[int, ...], Fraction]
    """Of the g + 1 tokens: what one call emits, continued by the target."""
    mean_accepted: Fraction


def integrate(call, world, g, accept_cells, final_cells, draft=None):
    """Integrate a verifier over all drafts and over the midpoints of a lattice of uniforms.

    `call(ids, q, p, uniforms)` verifies float64 arrays; `draft` is the Markov law that the drafts
    come from, if it is not the declared `world.Q`. `accept_cells` may differ from draft to draft.
    """
    draft = world.Q if draft is None else draft
    cells = [*np.broadcast_to(accept_cells, g).tolist(), final_cells]
    midpoints = [(np.arange(n) + 0.5) / n for n in cells]
    lattice = np.stack([axis.ravel() for axis in np.meshgrid(*midpoints, indexing="ij")], axis=1)
    texts = list(chain_law(draft, g).items())
    drafts = np.array([text for text, _ in texts], dtype=np.int64).reshape(len(texts), g)
    ids = np.repeat(drafts, len(lattice), axis=0)
    states = np.concatenate([np.zeros((len(ids), 1), dtype=np.int64), ids], axis=1)
    P, Q = (np.array(rows, dtype=np.float64) for rows in world)
    u = np.tile(lattice, (len(texts), 1))
    result = call(ids, Q[states[:, :g]], P[states], (u[:, :g], u[:, g]))
    law = dict.fromkeys(itertools.product(range(len(P[0])), repeat=g + 1), Fraction(0))
    mean = Fraction(0)
    emitted = np.concatenate([result.token_ids, result.num_emitted[:, None]], axis=1)
    for (_, weight), rows in zip(texts, np.split(emitted, len(texts)), strict=True):
        outcomes, counts = np.unique(rows, axis=0, return_counts=True)
        for outcome, count in zip(outcomes.tolist(), counts.tolist(), strict=True):
            text, share = tuple(outcome[: outcome[-1]]), weight * count / len(lattice)
            mean += share * (len(text) - 1)
            for more in itertools.product(range(len(P[0])), repeat=g + 1 - len(text)):
                probability = share
                for state, token in itertools.pairwise((text[-1], *more)):
                    probability *= world.P[state][token]
                law[(*text, *more)] += probability
    return Integral({text: p for text, p in law.items() if p}, mean)


@pytest.fixture(scope="session")
def joint_law() -> Callable[..., Integral]:
    return integrate


@pytest.fixture(scope="session")
def target_law() -> Callable[..., dict[tuple[int, ...], Fraction]]:
    return chain_law
