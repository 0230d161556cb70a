"""The inverse-CDF draw by itself: its law, its edges, large vocabularies, its randomness."""

# mypy: no-check-untyped-defs
from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftproof import BadRowError, available_backends, sample_rows, verify

BELOW_ONE = np.nextafter(1.0, 0.0)
DTYPES = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16]


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_law_is_exact_on_a_lattice(backend, dtype):
    p = np.array([2, 0, 3, 0, 1, 2], dtype=dtype) / dtype(8)
    u = (np.arange(64) + 0.5) / 64
    tokens = sample_rows(np.tile(p, (64, 1)), uniforms=u, backend=backend)
    assert np.bincount(tokens, minlength=6).tolist() == [16, 0, 24, 0, 8, 16]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("V", [2, 3, 31, 32, 33, 64, 127, 128, 129, 1_023, 1_024, 1_025, 50_257])
def test_a_token_of_weight_zero_never_comes_out_at_the_ends(backend, dtype, V):
    """Not token 0 at u = 0, not a padding slot at u near 1, in no dtype."""
    u = np.array([0.0, 2.0**-53, 2.0**-24, 0.5, 1 - 2.0**-24, BELOW_ONE])
    for place in sorted({0, V // 2, V - 1}):
        rows = np.zeros((len(u), V), dtype=dtype)
        rows[:, place] = 1
        assert sample_rows(rows, uniforms=u, backend=backend).tolist() == [place] * len(u)


@given(seed=st.integers(0, 2**32 - 1), V=st.integers(2, 300), ends=st.booleans())
def test_a_token_of_weight_zero_never_comes_out_anywhere(backend, seed, V, ends):
    rng = np.random.default_rng(seed)
    rows = rng.exponential(size=(8, V)) ** 4 * (rng.random((8, V)) < 0.2)
    rows[:, V // 2] += 1e-3
    rows /= rows.sum(axis=1, keepdims=True)
    sums = np.cumsum(rows, axis=1) / rows.sum(axis=1, keepdims=True)
    edges = np.minimum(sums[np.arange(8), rng.integers(V, size=8)], BELOW_ONE)
    u = rng.choice([0.0, BELOW_ONE], size=8) if ends else edges
    for nudged in (u, np.nextafter(u, 0), np.minimum(np.nextafter(u, 1), BELOW_ONE)):
        tokens = sample_rows(rows, uniforms=nudged, backend=backend)
        assert (rows[np.arange(8), tokens] > 0).all()
        reference = sample_rows(rows, uniforms=nudged, backend="reference")
        np.testing.assert_array_equal(tokens, reference)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("V", [32_000, 262_144])
def test_large_vocabularies_are_unbiased(backend, dtype, V):
    """A running sum in float32 would err by hundreds of tokens here; the true one is float64's."""
    rng = np.random.default_rng(V)
    weights = rng.exponential(size=V)
    row = (weights / weights.sum()).astype(dtype)
    exact = np.cumsum(row.astype(np.longdouble))
    u = np.concatenate([(np.arange(30) + 0.5) / 30, [0.999, 0.99999]])
    tokens = sample_rows(np.broadcast_to(row, (len(u), V)), uniforms=u, backend=backend)
    expected = np.searchsorted(exact, u.astype(np.longdouble) * exact[-1], side="right")
    np.testing.assert_array_equal(tokens, expected)


def test_a_large_vocabulary_is_unbiased_after_a_rejection(backend):
    """The residual of two close float32 rows, summed in float64."""
    V = 262_144
    rng = np.random.default_rng(0)
    p = rng.exponential(size=V)
    q = p * (1 + 0.01 * rng.standard_normal(V))
    p, q = ((row / row.sum()).astype(np.float32) for row in (p, q))
    u = (np.arange(20) + 0.5) / 20
    drafted = int(np.argmin(p / q))
    result = verify(
        np.full((20, 1), drafted), np.broadcast_to(q, (20, 1, V)), np.broadcast_to(p, (20, 2, V)),
        uniforms=(np.full((20, 1), BELOW_ONE), u), backend=backend,
    )  # fmt: skip
    weights = np.maximum(0, p.astype(np.longdouble) - q.astype(np.longdouble))
    exact = np.cumsum(weights)
    assert (result.num_accepted == 0).all()
    expected = np.searchsorted(exact, u.astype(np.longdouble) * exact[-1], side="right")
    np.testing.assert_array_equal(result.token_ids[:, 0], expected)


def test_a_row_of_mass_not_quite_one_is_normalised_by_its_own_sum(backend):
    row = np.array([[0.25, 0.25, 0.5 - 2.0**-30]], dtype=np.float32)
    assert sample_rows(row, uniforms=[BELOW_ONE], backend=backend).tolist() == [2]


def test_a_generator_gives_one_uniform_a_row(backend):
    rows = np.full((7, 16), 1 / 16)
    rng, twin = np.random.default_rng(5), np.random.default_rng(5)
    tokens = sample_rows(rows, rng, backend=backend)
    u = twin.random(7)
    assert rng.bit_generator.state == twin.bit_generator.state
    np.testing.assert_array_equal(tokens, np.floor(16 * u))


def test_the_result_is_int64_and_empty_batches_are_legal(backend):
    tokens = sample_rows(np.zeros((0, 5)), np.random.default_rng(0), backend=backend)
    assert (tokens.shape, tokens.dtype) == ((0,), np.int64)


def test_one_source_of_randomness_is_wanted():
    with pytest.raises(ValueError, match="exactly one"):
        sample_rows([[1.0]])
    with pytest.raises(ValueError, match="positions"):
        sample_rows([[1.0]], seeds=[1])


def test_a_bad_row_is_named_or_gets_minus_one(backend):
    rows = np.full((3, 4), 0.25)
    rows[1, 2] = np.nan
    u = [0.3, 0.3, 0.9]
    with pytest.raises(BadRowError, match=r"^dist at row 1.*token 2: found nan"):
        sample_rows(rows, uniforms=u, backend=backend)
    tokens = sample_rows(rows, uniforms=u, on_bad_row="status", backend=backend)
    assert tokens.tolist() == [1, -1, 3]


@pytest.mark.parametrize("dist", [np.zeros(3), np.zeros((2, 2, 2)), np.zeros((2, 0))])
def test_a_wrong_shape_is_refused(dist):
    with pytest.raises(ValueError, match=r"^dist"):
        sample_rows(dist, np.random.default_rng(0))


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_gives_the_same_tokens_on_every_backend(dtype):
    rng = np.random.default_rng(0)
    rows = rng.exponential(size=(60, 301)) ** 2
    rows = (rows / rows.sum(axis=1, keepdims=True)).astype(dtype)
    u = rng.random(60)
    first, *others = [sample_rows(rows, uniforms=u, backend=b) for b in available_backends()]
    for other in others:
        np.testing.assert_array_equal(other, first)
