"""Greedy block verification over rounds: its state as callers see it."""

# mypy: no-check-untyped-defs
from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest

from draftproof import (
    GreedyBlockState,
    RowStatus,
    SparseProbs,
    available_backends,
    verify,
    verify_packed,
)
from draftproof.proof.exact.rule_law import RULES, rule_law
from draftproof.proof.worlds.catalogue import WORLDS


@pytest.fixture(params=available_backends())
def backend(request):
    return request.param


TOY = WORLDS["toy"]
P = np.array([[1, 2]] * 3) / 3
Q = np.array([[2, 1]] * 2) / 3
REJECTED = {"uniforms": ([[0.9, 0.9]], [0.5]), "rule": "greedy-block"}


def test_a_rejection_leaves_a_state(backend):
    result = verify([[0, 0]], [Q], [P], **REJECTED, backend=backend)
    assert result.to_lists() == [[1]]
    assert result.state.num_open.tolist() == [1]
    assert result.state.factor.tolist() == [[0.5]]  # q(y) / p(y)
    kept = verify([[1, 0]], [Q], [P], **REJECTED, backend=backend)
    assert kept.num_accepted.tolist() == [2]
    assert kept.state.num_open.tolist() == [0]


def test_the_next_round_has_another_target(backend):
    state = verify([[0, 0]], [Q], [P], **REJECTED, backend=backend).state
    # norm (p - q/2)+ = (0, 1): token 0 is impossible, token 1 certain.
    options = {"uniforms": ([[0.0, 0.0]], [0.0]), "rule": "greedy-block", "backend": backend}
    assert verify([[0, 0]], [Q], [P], state=state, **options).to_lists() == [[1]]
    assert verify([[0, 0]], [Q], [P], **options).to_lists() == [[0, 0, 0]]


def test_a_drafter_that_could_not_have_written_the_token_leaves_no_state(backend):
    """A deterministic one never could: its target is the model's own in every round."""
    options = {"uniforms": ([[0.9, 0.9]], [0.5]), "rule": "greedy-block", "backend": backend}
    result = verify([[0, 0]], None, [P], **options)
    assert result.to_lists() == [[1]]
    assert result.state.num_open.tolist() == [0]
    sparse = SparseProbs(np.array([[[0], [0]]]), np.ones((1, 2, 1)))
    assert verify([[0, 0]], sparse, [P], **options).state.num_open.tolist() == [0]


def assert_same(result, expected):
    assert result.to_lists() == expected.to_lists()
    np.testing.assert_array_equal(result.status, expected.status)
    np.testing.assert_array_equal(result.state.remaining, expected.state.remaining)
    np.testing.assert_array_equal(result.state.factor, expected.state.factor)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("V", [65, 511, 1025, 32_000])
def test_texts_over_large_vocabularies_are_the_same_on_every_backend(V, dtype):
    """The kernel sums by blocks where it can; what a round leaves is in the definition's order."""
    rng, size, longest = np.random.default_rng(V), 1 + 400 // V, 4
    state = None
    discounts = 0
    for _ in range(4):
        p = rng.random((size, longest + 1, V)) ** 4
        q = rng.random((size, longest, V)) ** 4 + p[:, :-1]
        p, q = p / p.sum(-1, keepdims=True), q / q.sum(-1, keepdims=True)
        cumulative = np.cumsum(q, axis=-1)
        drafts = (cumulative < rng.random((size, longest, 1)) * cumulative[..., -1:]).sum(-1)
        uniforms = np.sqrt(rng.random((size, longest))), rng.random(size)
        arguments = drafts, q.astype(dtype), p.astype(dtype)
        options = {"uniforms": uniforms, "rule": "greedy-block", "state": state}
        results = [verify(*arguments, backend=b, **options) for b in available_backends()]
        for result in results:
            assert_same(result, results[-1])
        state = results[-1].state
        discounts += state.num_open.sum()
    assert discounts > 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_edges_of_tokens_behind_a_ratio_above_one(dtype):
    """Uniforms next to both ends of a token: r p - q rounds in another way than p - q/r does."""
    B, V, below_one = 60, 300, np.nextafter(1.0, 0.0)
    rng = np.random.default_rng(5)
    p, q = (rng.dirichlet(np.ones(V), size=(B, n)).astype(dtype) for n in (3, 2))
    ratios = p[:, :2].astype(float) / q
    ids = np.stack([abs(ratios[:, 0] - 2).argmin(axis=1), ratios[:, 1].argmin(axis=1)], axis=1)
    r = ratios[np.arange(B), 0, ids[:, 0]]
    assert (r > 1).all()
    left = np.cumsum(np.maximum(p[:, 1].astype(float) - q[:, 1] / r[:, None], 0), axis=1)
    edges = left[np.arange(B), rng.integers(V, size=B)] / left[:, -1]
    for nudge in (-1, 0, 1):
        final = np.clip(edges + nudge * np.spacing(edges), 0, below_one)
        texts = [
            verify(
                ids, q, p, uniforms=(np.full((B, 2), below_one), final),
                rule="greedy-block", backend=backend,
            ).to_lists()
            for backend in available_backends()
        ]  # fmt: skip
        assert texts[0] == texts[-1]
        assert all(len(text) == 2 for text in texts[0])


def test_threads_share_no_state():
    """Rows that two threads verify, beside the same rows alone and packed."""
    rng, size, V = np.random.default_rng(0), 48, 12_000
    state = None
    for _ in range(2):
        p, q = rng.dirichlet(np.ones(V), (size, 3)), rng.dirichlet(np.ones(V), (size, 2))
        drafts = rng.integers(V, size=(size, 2))
        uniforms = rng.random((size, 2)), rng.random(size)
        options = {"uniforms": uniforms, "rule": "greedy-block", "state": state}
        results = [verify(drafts, q, p, num_threads=n, **options) for n in (1, 2)]
        assert_same(*results)
        state = results[0].state
    assert state.num_open.any()
    options["uniforms"] = uniforms[0].reshape(-1), uniforms[1]
    cuts = np.arange(size + 1) * 2
    packed = verify_packed(drafts.reshape(-1), q.reshape(-1, V), p.reshape(-1, V), cuts, **options)
    assert_same(packed, results[0])


@pytest.mark.slow
@pytest.mark.parametrize("keep", [True, False])
def test_texts_of_three_rounds_have_the_targets_law(keep):
    """Sampled, on the kernel: four tokens of the toy, with the state and without."""
    rows, rng = 300_000, np.random.default_rng(0)
    text, length = np.full((rows, 12), -1), np.zeros(rows, dtype=int)
    state = None
    q, p = np.broadcast_to(Q, (rows, 2, 2)), np.broadcast_to(P, (rows, 3, 2))
    for _ in range(4):
        drafts = (rng.random((rows, 2)) >= 2 / 3).astype(int)
        result = verify(drafts, q, p, None, rng, rule="greedy-block", state=state)
        state = result.state if keep else None
        for place in range(3):
            emits = place < result.num_emitted
            text[emits, length[emits] + place] = result.token_ids[emits, place]
        length += result.num_emitted
    assert length.min() >= 4
    law = np.bincount(text[:, :4] @ [8, 4, 2, 1], minlength=16) / rows
    exact = [float(x) for x in TOY.target_law(4).values()]
    statistic = rows * ((law - exact) ** 2 / exact).sum()
    # 15 degrees of freedom: above 60 with probability 2e-7.
    assert (statistic < 60) == keep


def test_the_exact_law_needs_the_state():
    assert rule_law(RULES["greedy-block"], TOY, 2, 2).law == TOY.target_law(6)
    assert rule_law(RULES["greedy-block"], TOY, 2).emitted == 1 + Fraction(4, 3)


# The state as an object


@pytest.fixture
def state():
    return GreedyBlockState(
        np.array([[2, 0], [1, 3], [0, 0]]), np.array([[0.5, 0], [0.25, 0.75], [0, 0]])
    )


def test_rows_leave_and_join(state):
    taken = state.take([1, -1, 0, 1])
    assert taken.num_open.tolist() == [3, 0, 2, 3]
    assert [taken.row(b) for b in range(4)] == [state.row(1), (), state.row(0), state.row(1)]
    assert state.take([2, 0]).remaining.shape == (2, 1)
    assert len(state.take([])) == 0
    assert GreedyBlockState.of_rows([]).take([-1, -1]).num_open.tolist() == [0, 0]
    with pytest.raises(ValueError, match="rows at entry 1: found 3"):
        state.take([0, 3])


def test_it_cannot_be_changed_and_can_be_sent(state):
    with pytest.raises(ValueError, match="read-only"):
        state.remaining[0, 0] = 7
    sent = pickle.loads(pickle.dumps(state))
    np.testing.assert_array_equal(sent.factor, state.factor)
    result = verify([[0, 0]], [Q], [P], **REJECTED)
    assert pickle.loads(pickle.dumps(result)).state.row(0) == result.state.row(0)


def test_a_row_needs_the_drafts_that_its_state_speaks_of(backend):
    state = GreedyBlockState(np.array([[2], [1], [0]]), np.array([[0.5], [0.5], [0.0]]))
    laws = np.tile(Q, (3, 1, 1)), np.tile(P, (3, 1, 1))
    options = {"rule": "greedy-block", "state": state, "backend": backend}
    options["uniforms"] = np.full((3, 2), 0.5), np.full(3, 0.5)
    result = verify(np.zeros((3, 2), int), *laws, [1, 1, 0], on_bad_row="status", **options)
    assert result.status.tolist() == [RowStatus.LENGTH_OUT_OF_RANGE, 0, 0]
    assert result.state.row(0) == state.row(0), "a row that was not decided keeps its state"
    with pytest.raises(ValueError, match=r"num_draft at row 0: found 1; wanted a length in 2\.\.2"):
        verify(np.zeros((3, 2), int), *laws, [1, 1, 0], **options)
    greedy = verify(np.zeros((3, 2), int), *laws, [1, 1, 0], greedy=[True] * 3, **options)
    assert greedy.state.num_open.tolist() == [0, 0, 0]


@pytest.mark.parametrize("wrong", [object(), GreedyBlockState.of_rows([(), ()]), "state"])
def test_another_state_is_refused(wrong):
    with pytest.raises(ValueError, match="state"):
        verify([[0, 0]], [Q], [P], **REJECTED, state=wrong)


def test_its_arrays_have_one_shape():
    """A kernel reads one by the shape of the other."""
    for remaining, factor in ((np.ones((1, 2)), np.ones((1, 1))), (np.ones(2), np.ones(2))):
        with pytest.raises(ValueError, match=r"factor: found shape .* \[B, L\]"):
            GreedyBlockState(remaining.astype(np.int64), factor)


def test_a_rule_without_state_refuses_one():
    state = GreedyBlockState.of_rows([()])
    for rule in ("token", "block", "exact-match"):
        with pytest.raises(ValueError, match=f"rule '{rule}' keeps no state"):
            verify([[0, 0]], [Q], [P], uniforms=([[0.5] * 2], [0.5]), rule=rule, state=state)
