"""The calls read numbers of every dtype and memory of every layout, and write to none."""

# mypy: no-check-untyped-defs
from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from draftproof import SparseProbs, sample_rows, verify, verify_packed
from draftproof.rules import PLAIN_RULES

DTYPES = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16]


def assert_same(result, expected):
    np.testing.assert_array_equal(result.token_ids, expected.token_ids)
    np.testing.assert_array_equal(result.num_emitted, expected.num_emitted)
    np.testing.assert_array_equal(result.status, expected.status)


@pytest.fixture
def case(case_of):
    return case_of(9, 4, 11)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("draft_dtype", DTYPES)
def test_every_pair_of_dtypes_is_taken_as_exact_numbers(backend, case_of, dtype, draft_dtype):
    case = case_of(30, 3, 70)
    p, q = case.p.astype(dtype), case.q.astype(draft_dtype)
    options = {"uniforms": case.uniforms(), "backend": backend, "validate": "off"}
    wide = [array.astype(np.float64) for array in (q, p)]
    expected = verify(case.ids, *wide, case.num_draft, **options)
    assert_same(verify(case.ids, q, p, case.num_draft, **options), expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_sparse_law_may_have_every_dtype(backend, case, dtype):
    probs = case.q.astype(dtype)
    every_id = np.broadcast_to(np.arange(11, dtype=np.int32), probs.shape)
    options = {"uniforms": case.uniforms(), "backend": backend, "validate": "off"}
    expected = verify(case.ids, probs, case.p, case.num_draft, **options)
    sparse = SparseProbs(every_id, probs)
    assert_same(verify(case.ids, sparse, case.p, case.num_draft, **options), expected)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint64])
def test_every_integer_dtype_counts(backend, case_of, dtype):
    case = case_of(9, 4, 11, ragged=False)
    expected = verify(*case, uniforms=case.uniforms(), backend=backend)
    ids, lengths = case.ids.astype(dtype), case.num_draft.astype(dtype)
    result = verify(ids, case.q, case.p, lengths, uniforms=case.uniforms(), backend=backend)
    assert_same(result, expected)


def test_lists_are_arrays(backend, case):
    expected = verify(*case, uniforms=case.uniforms(), backend=backend)
    lists = [argument.tolist() for argument in case]
    uniforms = tuple(u.tolist() for u in case.uniforms())
    assert_same(verify(*lists, uniforms=uniforms, backend=backend), expected)


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def strided(array):
    wide = np.full((*array.shape[:-1], 2 * array.shape[-1] + 1), array.flat[0], dtype=array.dtype)
    wide[..., 1::2] = array
    return wide[..., 1::2]


def sliced_in_front(array):
    return np.stack([array[::-1], array], axis=1)[:, 1]


def backwards(array):
    return np.flip(np.flip(array).copy())


def misaligned(array):
    raw = b"x" + np.ascontiguousarray(array).tobytes()
    return np.frombuffer(raw, dtype=array.dtype, offset=1).reshape(array.shape)


MEMORY = [read_only, strided, sliced_in_front, backwards, np.asfortranarray, misaligned]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", MEMORY)
def test_memory_of_every_layout_is_read_right(backend, case, layout, dtype):
    p, q = case.p.astype(dtype), case.q.astype(dtype)
    lengths, uniforms = case.num_draft, case.uniforms()
    options = {"backend": backend, "on_bad_row": "status"}
    expected = verify(case.ids, q, p, lengths, uniforms=uniforms, **options)
    result = verify(
        layout(case.ids), layout(q), layout(p), layout(lengths),
        uniforms=tuple(layout(u) for u in uniforms), **options,
    )  # fmt: skip
    assert_same(result, expected)


@pytest.mark.parametrize("layout", MEMORY)
def test_memory_of_every_layout_is_read_right_packed(backend, case, layout):
    ids, q, p, offsets = case.packed()
    uniforms = np.random.default_rng(0).random(len(ids)), np.random.default_rng(1).random(9)
    expected = verify_packed(ids, q, p, offsets, uniforms=uniforms, backend=backend)
    ids, offsets, *uniforms = map(layout, (ids, offsets, *uniforms))
    result = verify_packed(ids, layout(q), layout(p), offsets, uniforms=uniforms, backend=backend)
    assert_same(result, expected)


def test_inputs_are_never_written_to(backend, case):
    sparse = SparseProbs(np.broadcast_to(np.arange(11), case.q.shape).copy(), case.q)
    greedy, uniforms = np.arange(9) % 3 == 0, case.uniforms()
    id_map = np.random.default_rng(0).permutation(11)
    watched = [*case, sparse.ids, greedy, *uniforms, id_map]
    before = [array.tobytes() for array in watched]
    for law in (case.q, sparse, None):
        for rule in PLAIN_RULES:
            options = {"greedy": greedy, "rule": rule, "backend": backend, "validate": "full"}
            options |= {"on_bad_row": "status", "draft_to_target": id_map, "return_trace": True}
            verify(case.ids, law, case.p, case.num_draft, uniforms=uniforms, **options)
    assert [array.tobytes() for array in watched] == before


def test_more_than_two_to_the_31_numbers_by_strides(backend):
    """Zero strides over rows and positions: B*(K+1)*V passes 2^31 and takes a megabyte."""
    B, K, V = 2_200, 1_023, 1_000
    assert B * K * V > 2**31
    law = np.arange(1, V + 1) / np.arange(1, V + 1).sum()
    p = np.lib.stride_tricks.as_strided(law, (B, K + 1, V), (0, 0, 8))
    q = np.lib.stride_tricks.as_strided(law, (B, K, V), (0, 0, 8))
    ids = np.full((B, K), 7)
    lengths, uniforms = np.ones(B, dtype=int), (np.zeros((B, K)), np.linspace(0, 1, B, False))
    result = verify(ids, q, p, lengths, uniforms=uniforms, backend=backend)
    assert (result.num_emitted == 2).all()
    expected = sample_rows(np.broadcast_to(law, (B, V)), uniforms=uniforms[1], backend=backend)
    np.testing.assert_array_equal(result.token_ids[:, 1], expected)


def sparse_file(path, *shape):
    return np.memmap(path, np.float16, "w+", shape=shape)


def test_rows_that_lie_beyond_two_to_the_31_numbers_are_found(backend, tmp_path):
    """Contiguous laws in sparse files, of which a dozen rows are touched."""
    B, K, V = 3, 2_047, 2**19 + 999
    p, q = sparse_file(tmp_path / "p", B, K + 1, V), sparse_file(tmp_path / "q", B, K, V)
    assert 2 * K * V > 2**31
    p[0, 0, 9] = p[1, 0, 8] = q[0, 0, 5] = q[1, 0, 5] = 1  # rows 0 and 1 reject their draft
    p[2, 0, 5] = q[2, 0, 5] = p[2, 1, V - 2] = 1
    ids, rng = np.full((B, K), 5), np.random.default_rng(0)
    assert verify(ids, q, p, [1, 1, 1], rng, backend=backend).to_lists() == [[9], [8], [5, V - 2]]


def test_packed_rows_that_lie_beyond_two_to_the_31_numbers_are_found(tmp_path):
    """On the fastest backend: the others read all entries of a row, here a file of 6 GB."""
    K, V = 2_047, 2**19 + 999
    p, q = sparse_file(tmp_path / "p", 2 * K + 4, V), sparse_file(tmp_path / "q", 2 * K + 1, V)
    p[0, 9] = p[K + 1, 8] = q[0, 5] = q[K, 5] = 1
    p[2 * (K + 1), 5] = q[2 * K, 5] = p[2 * (K + 1) + 1, V - 2] = 1
    ids, rng = np.full(2 * K + 1, 5), np.random.default_rng(0)
    result = verify_packed(ids, q, p, [0, K, 2 * K, 2 * K + 1], rng)
    assert result.to_lists() == [[9], [8], [5, V - 2]]
