"""`verify_tree_logits` on every backend: the definition's tokens, paths, status and messages."""

# mypy: no-check-untyped-defs
from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draftproof import (
    BadRowError,
    DraftTree,
    SamplingParams,
    SparseProbs,
    verify_tree,
    verify_tree_logits,
)
from draftproof.backends import native_import_error
from draftproof.trees import TREE_RULES
from tests.logits.requests import requests

pytestmark = pytest.mark.skipif(native_import_error() is not None, reason="no native kernel")

B, N = 3, 6
DTYPES = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16]


def softmax(z):
    weights = np.exp(z - z.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def grown(rng, q, differ):
    """Trees whose tokens are drawn from q, and siblings differ if they are to."""
    parents = np.array([[rng.integers(max(-1, n - 4), n) for n in range(N)] for _ in range(B)])
    tokens = np.zeros((B, N), dtype=np.int64)
    for b, n in np.ndindex(B, N):
        law = q[b, parents[b, n] + 1] + 1e-9
        law[tokens[b, :n][parents[b, :n] == parents[b, n]]] *= not differ
        law += law.sum() == 0
        tokens[b, n] = rng.choice(len(law), p=law / law.sum())
    return tokens, parents


def spoil(rng, logits):
    b, context, token = (rng.integers(size) for size in logits.shape)
    logits[b, context, token] = rng.choice([np.nan, np.inf, -np.inf])
    logits[rng.integers(B), rng.integers(N + 1)] = -np.inf


def draft_side(data, rng, z, rows):
    """The drafter's laws: as logits with parameters of their own, dense, or sparse."""
    V = z.shape[-1]
    kind = data.draw(st.sampled_from(["logits", "own", "dense", "sparse"]))
    if kind == "dense":
        return softmax(z).astype(np.float32), {}
    if kind == "sparse":
        ids = np.argsort(-z, axis=-1)[..., : V // 2 + 1]
        return SparseProbs(ids, softmax(np.take_along_axis(z, ids, axis=-1))), {}
    logits = z.astype(data.draw(st.sampled_from(DTYPES)))
    if data.draw(st.booleans()):
        spoil(rng, logits)
    own = {"draft_params": [data.draw(rows) for _ in range(B)]} if kind == "own" else {}
    return None, {"draft_logits": logits, **own}


def tree_case(data):
    rule = data.draw(st.sampled_from(list(TREE_RULES)))
    draws = data.draw(st.sampled_from(TREE_RULES[rule].draws))
    V = data.draw(st.sampled_from([3, 8, 33, 64, 600, 1100]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    z = rng.normal(size=(B, N + 1, V)) * data.draw(st.sampled_from([0.5, 2.0, 5.0]))
    if data.draw(st.booleans()):
        z = np.round(z)  # ties
    rows = requests(V)
    q, options = draft_side(data, rng, 0.7 * z + rng.normal(size=z.shape), rows)
    tokens, parents = grown(rng, softmax(0.7 * z), draws in ("without-replacement", "top-and-one"))
    target = z.astype(data.draw(st.sampled_from(DTYPES)))
    if data.draw(st.booleans()):
        spoil(rng, target)
    if data.draw(st.booleans()):
        mask = rng.random((B, N + 1, -(-V // 32) * 32)) < 0.8
        words = np.packbits(mask, axis=-1, bitorder="little").view(np.uint32)
        options["token_mask"] = words if data.draw(st.booleans()) else mask[..., :V]
    options |= {
        "params": [data.draw(rows) for _ in range(B)],
        "history": [rng.integers(0, V, rng.integers(5)).tolist() for _ in range(B)],
        "prompts": [rng.integers(0, V, rng.integers(5)).tolist() for _ in range(B)],
        "uniforms": (rng.random((B, N)), rng.random(B)),
        "validate": data.draw(st.sampled_from(["touched", "full", "off"])),
        "greedy": rng.random(B) < 0.2,
        "rule": rule,
    }
    return DraftTree(tokens, parents, q, draws, rng.integers(N + 1, size=B)), target, options


@settings(max_examples=60)
@given(st.data())
def test_every_backend_equals_the_definition(data):
    tree, target, options = tree_case(data)
    backend = data.draw(st.sampled_from(["native", "native", "numpy"]))
    result, expected = (
        verify_tree_logits(tree, target, on_bad_row="status", backend=name, **options)
        for name in (backend, "reference")
    )
    assert result.backend == backend
    for field in ("path", "token_ids", "num_emitted", "status"):
        np.testing.assert_array_equal(getattr(result, field), getattr(expected, field), field)


@pytest.mark.parametrize(
    ("rule", "side", "number"),
    [
        (rule.name, side, number)
        for rule in TREE_RULES.values()
        for side, number in (("target", np.nan), ("target", -np.inf), ("draft", np.inf))
        if side == "target" or rule.needs_draft_probs
    ],
)
def test_a_bad_row_is_named_as_the_definition_names_it(rule, side, number):
    logits = dict.fromkeys(("target", "draft"), np.zeros((1, 3, 4)))
    logits[side] = np.full((1, 3, 4), number)
    call = {"rule": rule, "uniforms": ([[0.9, 0.9]], [0.5]), "draft_logits": logits["draft"]}
    tree = DraftTree([[0, 1]], [[-1, -1]], draws=TREE_RULES[rule].draws[0])
    messages = []
    for backend in ("native", "numpy", "reference"):
        with pytest.raises(BadRowError, match=f"^{side}_logits at row 0, the root") as caught:
            verify_tree_logits(tree, logits["target"], backend=backend, **call)
        messages.append((str(caught.value), caught.value.status))
    assert messages[0] == messages[1] == messages[2]


WIDE = 20_000
"""Laws of more than a block, and of more kept tokens than are listed."""


@pytest.mark.parametrize("rule", ["rrsw", "traversal", "nss"])
@pytest.mark.parametrize("params", [None, SamplingParams(top_p=0.9), SamplingParams(top_k=3)])
def test_wide_laws_are_the_processed_ones(rule, params):
    rng = np.random.default_rng(3)
    z = (rng.normal(size=(B, N + 1, WIDE)) * 2).astype(np.float32)
    z[0, :, :4] += 20
    tokens, parents = grown(rng, softmax(z), differ=True)
    draft = (z + rng.normal(size=z.shape)).astype(np.float16)
    call = {"rule": rule, "uniforms": (rng.random((B, N)), rng.random(B)), "params": params}
    results = [
        verify_tree_logits(
            DraftTree(tokens, parents, None, "without-replacement"), z.astype(dtype),
            draft_logits=draft, backend=backend, **call,
        )
        for dtype, backend in (("float32", "native"), ("float64", "native"), ("float32", "numpy"))
    ]  # fmt: skip
    for result in results[:2]:
        np.testing.assert_array_equal(result.token_ids, results[2].token_ids)
        np.testing.assert_array_equal(result.path, results[2].path)


def test_the_native_kernel_reads_the_rows_on_the_path_alone(monkeypatch):
    """Logits off the path are NaN, texts are long, and Python makes no law."""
    from draftproof.logits.rows import LogitRows

    monkeypatch.setattr(LogitRows, "__getitem__", None)
    tree = DraftTree([[0, 1, 1, 0]], [[-1, -1, 0, 0]], draws="deterministic")
    logits = np.full((1, 5, 4), np.nan)
    logits[0, [0, 1]] = 0.0
    logits[0, 0, 0] = 50.0
    params = SamplingParams(presence_penalty=1.0, frequency_penalty=0.5)
    result = verify_tree_logits(
        tree, logits, params=params, history=[[1] * 500], rule="target-only", backend="native",
        uniforms=([[0.5, 0.5, 0.7, 0.9]], [0.999]),
    )  # fmt: skip
    assert result.path.tolist() == [[0, -1]]
    assert result.to_lists() == [[0, 3]]


def test_numbers_that_other_threads_may_see_are_those_of_one_thread():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(64, 5, 40_000)).astype(np.float32)
    tree = DraftTree(
        np.tile([0, 1, 2, 3], (64, 1)), np.tile([-1, -1, 0, 1], (64, 1)), draws="deterministic"
    )
    call = {"rule": "nss", "uniforms": (rng.random((64, 4)), rng.random(64)), "backend": "native"}
    alone, together = (
        verify_tree_logits(tree, z, params=SamplingParams(top_p=0.8), num_threads=n, **call)
        for n in (1, 2)
    )
    np.testing.assert_array_equal(alone.token_ids, together.token_ids)


def test_greedy_requests_take_the_largest_logit_as_it_is_stored():
    z = np.random.default_rng(1).normal(size=(B, N + 1, 900)).astype(np.float16)
    tokens = np.tile(np.arange(N), (B, 1))
    parents = np.tile(np.arange(N) - 1, (B, 1))
    tree = DraftTree(tokens, parents, draws="deterministic")
    call = {"rule": "nss", "uniforms": (np.zeros((B, N)), np.zeros(B))}
    expected = verify_tree(tree, z, greedy=[True] * B, **call)
    result = verify_tree_logits(tree, z, params=SamplingParams(temperature=0), **call)
    np.testing.assert_array_equal(result.token_ids, expected.token_ids)


@pytest.mark.parametrize("backend", ["native", "numpy", "reference"])
def test_greedy_rows_are_no_laws_to_be_judged(backend):
    """Even where every number is: of each only one has to exceed -inf."""
    tree = DraftTree([[1, 0]] * 2, [[-1, -1]] * 2, draws="deterministic")
    logits = np.array([[[0.0, 9.0], [np.nan, 2.0], [5.0, -np.inf]]] * 2)
    logits[1, 2] = -np.inf
    result = verify_tree_logits(
        tree, logits, params=SamplingParams(temperature=0), rule="nss", validate="full",
        uniforms=(np.zeros((2, 2)), np.zeros(2)), on_bad_row="status", backend=backend,
    )  # fmt: skip
    assert result.to_lists() == [[1, 1], []]
    assert result.status.tolist() == [0, 16]
