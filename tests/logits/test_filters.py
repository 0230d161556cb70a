"""Every backend's filters against a plain sort in float64, up to the largest vocabularies."""

# mypy: no-check-untyped-defs
from __future__ import annotations

import functools

import numpy as np
import pytest

from draftproof import SamplingParams, available_backends, process, verify_logits

KINDS = ("ties", "plateau", "peaked", "flat", "one-hot", "normal")
PARAMS = {
    "top-k": {"top_k": 50},
    "top-k, all ties": {"top_k": 50, "ties": "keep"},
    "top-p": {"top_p": 0.9},
    "top-p, all ties": {"top_p": 0.6, "ties": "keep"},
    "min-p": {"min_p": 0.05},
    "typical": {"typical_p": 0.7},
    "one after the other": {"temperature": 0.7, "top_k": 1000, "top_p": 0.8, "min_p": 0.01},
    "of one law": {"temperature": 1.5, "top_k": 1000, "top_p": 0.8, "order": "sglang"},
    "min-p first": {"top_p": 0.8, "min_p": 0.02, "order": "vllm"},
    "temperature last": {"temperature": 0.5, "top_p": 0.8, "top_k": 300, "order": "llama.cpp"},
}


@functools.cache
def row(kind, V):
    """Logits of one kind, in float32 as engines have them."""
    rng = np.random.default_rng([KINDS.index(kind), V])
    z = rng.normal(size=V)
    if kind == "ties":
        z = np.round(z * 4) / 4
    elif kind == "plateau":
        z = np.where(rng.random(V) < 0.01, 6.0, 0.0)
    elif kind == "peaked":
        z = z * 6
    elif kind == "flat":
        z = np.zeros(V)
    elif kind == "one-hot":
        z = np.where(np.arange(V) == V // 3, 200.0, z)
    return z.astype(np.float32)


def by_sorting(z, params):
    """The law as the documentation of `SamplingParams` says it, each filter by a sort of all."""
    z, order = z.astype(np.float64), params.order
    keep_k, keep_p = params.tie_policy.at_top_k, params.tie_policy.at_mass
    T = 1.0 if order == "llama.cpp" else params.temperature
    kept = np.ones(len(z), dtype=bool)

    def first(key, enough, ties):
        """Tokens by key, then id, until `enough(mass before, number before)`."""
        ids = np.lexsort((np.arange(len(z)), key))
        ids = ids[kept[ids]]
        w = np.exp((z[ids] - z.max()) / T)
        before = np.concatenate([[0.0], np.cumsum(w)[:-1]]) / w.sum()
        taken = ids[~enough(before, np.arange(len(ids)))]
        chosen = np.isin(np.arange(len(z)), taken)
        return chosen | (kept & (key == key[taken[-1]])) if ties else chosen

    def top_k():
        done = params.top_k == 0
        return kept if done else first(-z, lambda _, n: n >= params.top_k, keep_k)

    def top_p():
        done = params.top_p == 1
        return kept if done else first(-z, lambda before, _: before >= params.top_p, keep_p)

    def min_p():
        return kept & (np.exp((z - z.max()) / T) >= params.min_p)

    def typical():
        if params.typical_p == 1:
            return kept
        p = np.where(kept, np.exp((z - z.max()) / T), 0)
        p = p / p.sum()
        with np.errstate(divide="ignore"):
            surprise = -np.log(p)
        entropy = (p[p > 0] * surprise[p > 0]).sum()
        key = np.abs(surprise - entropy)
        return first(key, lambda before, _: before >= params.typical_p, keep_p)

    steps = {
        "vllm": (min_p, top_k, top_p), "llama.cpp": (top_k, typical, top_p, min_p),
    }.get(order, (top_k, top_p, min_p, typical))  # fmt: skip
    if order == "sglang":
        kept = top_k() & top_p()
        steps = (min_p,)
    for step in steps:
        kept = step()
    w = np.where(kept, np.exp((z - z.max()) / params.temperature), 0)
    return w / w.sum()


def assert_filters(kind, V, name, backend):
    """The law is the sorted one, or draws where its tokens lie: the first, the last, and others."""
    z, params = row(kind, V), SamplingParams(**PARAMS[name])
    law = by_sorting(z, params)
    if backend == "process":
        np.testing.assert_allclose(process(z[None], params)[0], law, rtol=1e-9)
        return
    kept = np.flatnonzero(law)
    some = np.random.default_rng(V).choice(kept, 24)
    rarest = kept[np.argsort(law[kept])[:4]]
    tokens = np.unique([kept[0], kept[-1], *some, *rarest])
    tokens = tokens[law[tokens] > 1e-9]
    edges = np.cumsum(law)
    u = edges[tokens] - law[tokens] / 2
    B = len(tokens)
    result = verify_logits(
        np.zeros((B, 0), np.int64), None, np.broadcast_to(z, (B, 1, V)), params=params,
        uniforms=(np.zeros((B, 0)), u), backend=backend,
    )  # fmt: skip
    np.testing.assert_array_equal(result.token_ids[:, 0], tokens)


BACKENDS = ["process", *(name for name in available_backends() if name != "reference")]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", PARAMS)
@pytest.mark.parametrize("kind", KINDS)
def test_filters_are_those_of_a_plain_sort(kind, name, backend):
    assert_filters(kind, 5_003, name, backend)


@pytest.mark.parametrize("kind", KINDS)
def test_the_fastest_backend_at_the_largest_vocabulary(kind):
    assert_filters(kind, 262_144, "one after the other", "auto")


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", PARAMS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("V", [32_000, 262_144])
def test_filters_of_large_vocabularies(kind, name, backend, V):
    assert_filters(kind, V, name, backend)
