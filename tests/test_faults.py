"""Faults that users of other projects have met: each test is named after project and number."""

# mypy: no-check-untyped-defs
from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from draftproof import (
    BadRowError,
    RowStatus,
    available_backends,
    noise,
    sample_rows,
    verify,
    verify_greedy,
)

BELOW_ONE = np.nextafter(1.0, 0.0)
MANY = 1_000_000
FAST = [name for name in available_backends() if name != "reference"]
"""The backends that take a million rows."""


def fractions(*numbers):
    return [Fraction(number) for number in numbers]


def laws(l4, p, q):
    """The same target and draft law after every token."""
    return type(l4)([fractions(*p)] * len(p), [fractions(*q)] * len(q))


def verified(backend, one_hot=False, **options):
    def call(ids, q, p, uniforms):
        law = None if one_hot else q
        return verify(ids, law, p, uniforms=uniforms, backend=backend, **options)

    return call


def point(token, V):
    return [int(v == token) for v in range(V)]


def first_token(law):
    V = 1 + max(text[0] for text in law)
    return [sum(p for text, p in law.items() if text[0] == v) for v in range(V)]


# Randomness


def test_vllm_54282_drafts_and_residual_share_their_noise(backend):
    """Drafts from the keyed stream of the same seed and position, from a law opposed to p."""
    V, rows = 16, 4_000 if backend == "reference" else 20_000
    logits = np.linspace(-1.5, 1.5, V)
    p, q = (np.exp(sign * logits) / np.exp(sign * logits).sum() for sign in (1, -1))
    seeds, positions = np.arange(rows, dtype=np.uint64), np.full(rows, 3)
    u = noise.uniform(seeds, positions, noise.Stream.DRAFT, 0)
    ids = sample_rows(np.tile(q, (rows, 1)), uniforms=u)[:, None]
    result = verify(
        ids, np.broadcast_to(q, (rows, 1, V)), np.broadcast_to(p, (rows, 2, V)),
        seeds=seeds, positions=positions, backend=backend,
    )  # fmt: skip
    counts = np.bincount(result.token_ids[:, 0], minlength=V)
    # The seeds are fixed; a right verifier passes at one set of seeds in 100,000.
    assert stats.chisquare(counts, rows * p).pvalue > 1e-5
    assert 0 < result.num_accepted.mean() < 0.7


@pytest.mark.parametrize(
    "p", [("1/4", "1/4", "1/4", "1/4"), ("1/4", "1/4", "1/2")], ids=["16920", "7231"]
)
def test_vllm_ascend_16920_and_sglang_7231_the_coin_decides_the_last_token_too(
    backend, l4, joint_law, target_law, p
):
    world = laws(l4, p, point(1, len(p)))
    integral = joint_law(verified(backend, one_hot=True), world, 1, 4, 12)
    assert integral.law == target_law(world.P, 2)


def test_sglang_35771_vllm_13933_a_coin_of_zero(backend):
    p, q = [0.0, 1.0, 0.0], [0.5, 0.25, 0.25]
    for u in (0.0, BELOW_ONE):
        result = verify([[0]], [[q]], [[p, p]], uniforms=([[0.0]], [u]), backend=backend)
        assert result.to_lists() == [[1]]


def test_vllm_9441_a_seed_for_some_rows_only():
    """A row without a seed is refused, not fed with what lies in memory."""
    p = np.full((3, 2, 4), 0.25)
    with pytest.raises(TypeError, match="seeds"):
        verify([[0]] * 3, None, p, seeds=[1, None, 2], positions=[0, 0, 0])


@pytest.fixture
def requests(case_of):
    case = case_of(5, 4, 30)
    return case, {"seeds": np.arange(5) + 100, "positions": np.full(5, 5)}


def test_vllm_6038_13196_a_requests_seed_counts_alone_and_as_the_fourth_of_five(backend, requests):
    case, keys = requests
    together = verify(*case, **keys, backend=backend).to_lists()
    alone = verify(*(a[3:4] for a in case), seeds=[103], positions=[5], backend=backend)
    assert alone.to_lists() == [together[3]]


def test_vllm_52522_the_same_text_after_a_preemption(backend, requests):
    case, keys = requests
    discarded = verify(*case, **keys, backend=backend)
    assert verify(*case, **keys, backend=backend).to_lists() == discarded.to_lists()


def test_vllm_17498_two_ranks_agree_whatever_their_global_generators(backend, requests):
    case, keys = requests
    ranks = []
    for rank in range(2):
        np.random.seed(rank)  # noqa: NPY002
        ranks.append(verify(*case, **keys, backend=backend).to_lists())
    assert ranks[0] == ranks[1]


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("name", FAST)
def test_gpt_fast_uniforms_on_a_coarse_grid(name, keyed):
    """p/q = 2^-10 is accepted once in 1,024, not once in 256 or never."""
    p, q = [2.0**-11, 1 - 2.0**-11], [0.5, 0.5]
    source = {"rng": np.random.default_rng(0)}
    if keyed:
        source = {"seeds": np.arange(MANY), "positions": np.zeros(MANY, dtype=int)}
    result = verify(
        np.zeros((MANY, 1), int), np.broadcast_to(q, (MANY, 1, 2)),
        np.broadcast_to(p, (MANY, 2, 2)), **source, backend=name,
    )  # fmt: skip
    # Five standard errors, at fixed seeds.
    assert result.num_accepted.mean() == pytest.approx(2.0**-10, abs=5 * (2.0**-10 / MANY) ** 0.5)


# The rule


@pytest.mark.parametrize(("rule", "cells"), [("token", 7), ("exact-match", 10)])
def test_rtp_llm_521_either_of_two_tests_will_do(backend, l4, joint_law, target_law, rule, cells):
    world = laws(l4, ("3/10", "7/10"), ("7/10", "3/10"))
    integral = joint_law(verified(backend, rule=rule), world, 1, cells, 10)
    assert integral.law == target_law(world.P, 2)


def test_eagle_20_xllm_2175_the_residual_subtracts_all_of_q(backend, l4, joint_law, target_law):
    world = laws(l4, ("1/2", "3/10", "1/5"), ("1/5", "1/2", "3/10"))
    integral = joint_law(verified(backend), world, 1, 15, 10)
    assert integral.law == target_law(world.P, 2)


def test_eagle_47_the_bonus_comes_from_its_own_row(backend):
    a, b = 2, 3
    p = [[point(a, 4), point(b, 4)]]
    result = verify([[a]], [[[0.25] * 4]], p, None, np.random.default_rng(0), backend=backend)
    assert result.to_lists() == [[a, b]]


@pytest.mark.parametrize("validate", ["touched", "off"])
def test_tensorrt_llm_two_model_path_zero_over_zero(backend, validate):
    p, q = [0.0, 0.75, 0.25], [0.0, 0.25, 0.75]
    result = verify(
        [[0]], [[q]], [[p, p]], uniforms=([[0.0]], [0.5]), backend=backend, validate=validate
    )
    assert result.to_lists() == [[1]]


@pytest.mark.parametrize("p", [[0.5, 0.5, 0.0, 0.0], [0.1, 0.2, 0.3, 0.4], [0.0, 1.0, 0.0, 0.0]])
def test_flashinfer_the_last_valid_id_when_p_equals_q(backend, p):
    result = verify([[1]], [[p]], [[p, p]], uniforms=([[BELOW_ONE]], [BELOW_ONE]), backend=backend)
    assert result.to_lists() == [[1, np.flatnonzero(p)[-1]]]


def test_jaymody_3_llama_cpp_a_greedy_user_gets_the_argmax(backend):
    p = [0.3, 0.5, 0.2]
    for call in (
        verify_greedy([[0]], [[p, p]], backend=backend),
        verify(
            [[0]], None, [[p, p]], None, np.random.default_rng(0), greedy=[True], backend=backend
        ),
    ):
        assert call.to_lists() == [[1]]


def test_vllm_2658_nothing_counts_past_the_first_rejection(backend):
    p, q = [0.25, 0.75], [0.5, 0.5]
    accept = [[0.1, 0.9, 0.1, 0.1]]
    result = verify([[0] * 4], [[q] * 4], [[p] * 5], uniforms=(accept, [0.5]), backend=backend)
    assert result.num_accepted.tolist() == [1]
    assert result.token_ids.tolist() == [[0, 1, -1, -1, -1]]


@pytest.mark.parametrize("name", FAST)
def test_naive_speculate_an_epsilon_in_the_residual(name):
    p, q = [0.0, 0.5, 0.5], [0.5, 0.25, 0.25]
    result = verify(
        np.zeros((MANY, 1), int), np.broadcast_to(q, (MANY, 1, 3)),
        np.broadcast_to(p, (MANY, 2, 3)), None, np.random.default_rng(0), backend=name,
    )  # fmt: skip
    assert (result.num_emitted == 1).all()
    assert (result.token_ids[:, 0] != 0).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_transformers_5_jaymody_5_a_rejection_where_p_equals_q(backend, dtype):
    """q(x) is above p(x) by one unit in the last place and nothing is left: p decides."""
    half = dtype(0.5)
    p = np.array([half, half])
    q = np.array([np.nextafter(half, dtype(1)), half])
    result = verify(
        [[0]], q[None, None], np.array([[p, p]]), uniforms=([[BELOW_ONE]], [0.75]), backend=backend
    )
    assert result.to_lists() == [[1]]
    assert result.status.tolist() == [RowStatus.ZERO_RESIDUAL]


# The declared law


@pytest.mark.parametrize("name", FAST)
def test_vllm_40149_sampled_drafts_declared_deterministic_are_slower_and_not_lossy(
    name, l4, joint_law, target_law
):
    final_cells = 840  # eighths for the bonus; fifths, sixths and sevenths for P without a token
    integral = joint_law(verified(name, one_hot=True), l4, 1, 8, final_cells)
    assert integral.law == target_law(l4.P, 2)
    assert integral.mean_accepted == sum(p * q for p, q in zip(l4.P[0], l4.Q[0], strict=True))
    assert integral.mean_accepted < Fraction(3, 4)


def test_sglang_10308_eagle_110_argmax_drafts_with_a_soft_law_are_the_callers_fault(
    backend, l4, joint_law
):
    """No verifier can see it: what it makes of the wrong q is documented here."""
    world = laws(l4, ("1/2", "3/10", "1/5"), ("3/5", "3/10", "1/10"))
    always_zero = [fractions(1, 0, 0)] * 3
    integral = joint_law(verified(backend), world, 1, 6, 10, draft=always_zero)
    assert first_token(integral.law) == fractions("5/6", 0, "1/6")
    honest = joint_law(verified(backend, one_hot=True), world, 1, 10, 10, draft=always_zero)
    assert first_token(honest.law) == world.P[0]


# Shapes, padding, bad numbers


def test_flashinfer_879_3551_padding_drafts_are_not_read(backend):
    p = np.full((1, 4, 8), 1 / 8)
    for u in (0.0, BELOW_ONE):
        result = verify([[5, -1, -1]], None, p, [1], uniforms=([[u] * 3], [u]), backend=backend)
        assert result.num_accepted[0] <= 1
        assert (result.token_ids[0, 2:] == -1).all()


@pytest.mark.parametrize("token", [-1, 4, 2**31, -(2**31)])
def test_vllm_40768_no_id_outside_the_vocabulary_goes_on(backend, token):
    p = np.full((2, 2, 4), 0.25)
    uniforms = ([[0.0]] * 2, [BELOW_ONE] * 2)
    with pytest.raises(BadRowError, match=f"found {token}"):
        verify([[token], [3]], None, p, uniforms=uniforms, backend=backend)
    result = verify(
        [[token], [3]], None, p, uniforms=uniforms, backend=backend, on_bad_row="status"
    )
    assert result.token_ids.tolist() == [[-1, -1], [3, 3]]
    assert result.status.tolist() == [RowStatus.TOKEN_OUT_OF_RANGE, RowStatus.OK]


@pytest.mark.parametrize("bad", [np.nan, -np.inf, np.inf, 0.0])
@pytest.mark.parametrize("greedy", [False, True])
def test_vllm_45060_53029_a_target_row_of_nan_or_minus_infinity(backend, bad, greedy):
    p = np.full((3, 2, 4), 0.25)
    p[1] = bad
    result = verify(
        [[0]] * 3, None, p, None, np.random.default_rng(0),
        greedy=[greedy] * 3, on_bad_row="status", backend=backend,
    )  # fmt: skip
    comparable = greedy and bad in (0.0, np.inf)
    assert (result.status != 0).tolist() == [False, not comparable, False]
    assert (result.num_emitted[[0, 2]] > 0).all()
    if not comparable:
        assert result.token_ids[1].tolist() == [-1, -1]


def test_lucidrains_3_transformers_26875_one_row_accepts_nothing_and_the_other_all(backend):
    p = np.zeros((2, 4, 5))
    p[:, np.arange(4), [1, 2, 3, 4]] = 1
    ids = [[0, 2, 3], [1, 2, 3]]
    result = verify(ids, None, p, None, np.random.default_rng(0), backend=backend)
    assert result.num_accepted.tolist() == [0, 3]
    assert result.token_ids.tolist() == [[1, -1, -1, -1], [1, 2, 3, 4]]


def test_transformers_45307_vllm_10913_vocabularies_padded_to_different_widths(backend):
    """151,936 draft columns and 152,064 target columns; the last target id is real here."""
    narrow, wide = 151_936, 152_064
    q, p = np.zeros((1, 1, narrow), np.float32), np.zeros((1, 2, wide), np.float32)
    q[0, 0, 7] = 1
    p[0, :, 7], p[0, :, -1] = 0.25, 0.75
    with pytest.raises(ValueError, match=f"{narrow}.*{wide}"):
        verify([[7]], q, p, None, np.random.default_rng(0), backend=backend)
    options = {"allow_narrow_draft": True, "backend": backend}
    rejected = verify([[7]], q, p, uniforms=([[0.5]], [0.0]), **options)
    accepted = verify([[7]], q, p, uniforms=([[0.2]], [0.2]), **options)
    assert (rejected.to_lists(), accepted.to_lists()) == ([[wide - 1]], [[7, 7]])


@pytest.mark.parametrize("K", range(18))
def test_dascript_3931_wrong_only_at_certain_lengths_and_sizes(backend, oracle, case_of, K):
    for V in (1, 2, 31, 32, 33, 127, 128, 129, 1023, 1024, 1025):
        case = case_of(3, K, V, ragged=False, near=0.9)
        result = verify(*case, np.random.default_rng(K), backend=backend)
        expected = oracle(*case, np.random.default_rng(K))
        clear = expected.clear
        np.testing.assert_array_equal(result.token_ids[clear], expected.token_ids[clear])


# What comes out


def test_vllm_50518_sglang_11572_counts_honour_each_rows_own_length(backend, case_of):
    case = case_of(20, 6, 9, near=1.0)
    result = verify(case.ids, case.p[:, :-1], case.p, case.num_draft,
                    np.random.default_rng(0), backend=backend)  # fmt: skip
    np.testing.assert_array_equal(result.num_accepted, case.num_draft)
    np.testing.assert_array_equal(result.num_emitted, case.num_draft + 1)
    np.testing.assert_array_equal((result.token_ids >= 0).sum(axis=1), result.num_emitted)


@pytest.mark.parametrize("drafted", ["argmax", "random"])
def test_mlx_lm_1423_vllm_7627_greedy_text_is_the_plain_one(backend, drafted):
    rng = np.random.default_rng(0)
    logits = rng.integers(6, size=(12, 12)).astype(np.float32)  # with ties
    plain = [0]
    for _ in range(40):
        plain.append(int(logits[plain[-1]].argmax()))
    text = [0]
    while len(text) <= 40:
        drafts = text[-1:]
        for _ in range(3):
            best = int(logits[drafts[-1]].argmax())
            drafts.append(best if drafted == "argmax" else int(rng.integers(12)))
        result = verify_greedy([drafts[1:]], logits[drafts][None], backend=backend)
        text += result.to_lists()[0]
    assert text[:41] == plain
