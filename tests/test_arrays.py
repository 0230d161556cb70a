"""Integers of any size, and where those that an argument cannot hold are named."""

# mypy: no-check-untyped-defs
from __future__ import annotations

import itertools

import numpy as np
import pytest

from draftproof import BadRowError, RowStatus, SparseProbs, sample_rows, verify, verify_greedy
from draftproof.arrays import as_bounded_integers, as_integers, as_probabilities

P = np.full((2, 2, 4), 0.25)
SEEDS = [0, 1, 2**31, 2**32 + 5, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1]
"""Neighbours of the ends of int64 and uint64, and what float64 cannot hold."""


def keyed(seeds, **options):
    laws = np.full((len(seeds), 4096), 1 / 4096)
    return sample_rows(laws, seeds=seeds, positions=[3] * len(seeds), **options).tolist()


@pytest.mark.parametrize("pair", [*itertools.product(SEEDS, repeat=2)])
def test_seeds_of_any_size_may_stand_in_one_list(pair):
    expected = keyed(np.array(pair, dtype=np.uint64))
    for seeds in (list(pair), tuple(pair), [np.uint64(pair[0]), pair[1]], [*map(np.uint64, pair)]):
        assert keyed(seeds) == expected


def test_seeds_in_a_list_are_read_alike_on_every_backend(backend):
    assert keyed(SEEDS, backend=backend) == keyed(np.array(SEEDS, dtype=np.uint64))


@pytest.mark.parametrize("negative", [-1, -5, -(2**63)])
def test_a_negative_seed_is_its_twos_complement_beside_any_other(negative):
    expected = keyed(np.array([negative % 2**64, 2**63 + 1], dtype=np.uint64))
    assert keyed([negative, 2**63 + 1]) == expected
    assert keyed(np.array([negative, 2**63 + 1 - 2**64])) == expected


@pytest.mark.parametrize(
    "outside", [2**64, 2**64 + 1, -(2**63) - 1, 10**400, pytest.param(10**5000, id="unprintable")]
)
def test_a_seed_beyond_64_bits_is_named_with_its_row(outside):
    with pytest.raises(ValueError, match=r"^seeds at row 1: found .*0\.\.2\*\*64 - 1") as error:
        keyed([7, outside, outside])
    if outside < 10**300:
        assert f"found {outside};" in str(error.value)
    assert len(str(error.value)) < 600


@pytest.mark.parametrize("seeds", [[1.0, 2], [2**63, 0.5], [2**64, 0.5], [True, False], ["1", 2]])
def test_seeds_that_are_no_integers_are_refused(seeds):
    with pytest.raises(TypeError, match=r"^seeds"):
        keyed(seeds)


@pytest.mark.parametrize("dtype", [np.uint64, None])
@pytest.mark.parametrize("outside", [2**63, 2**64 - 1])
def test_a_position_beyond_63_bits_is_named_with_its_row(dtype, outside):
    positions = [5, outside] if dtype is None else np.array([5, outside], dtype)
    with pytest.raises(ValueError, match=f"^positions at row 1: found {outside};"):
        sample_rows(P[0], seeds=[1, 2], positions=positions)


def test_the_last_position_is_a_position_and_exact_match_looks_ahead(backend):
    last = 2**63 - 1
    options = {"seeds": [1, 2], "backend": backend}
    verify([[0], [0]], None, P, positions=[last, last], **options)
    with pytest.raises(ValueError, match=f"row 0: found {last}; wanted .* below 2.*63 - 1"):
        verify([[0], [0]], None, P, positions=[last, 0], rule="exact-match", **options)
    verify([[0], [0]], None, P, positions=[last - 1, 0], rule="exact-match", **options)


@pytest.mark.parametrize("garbage", [2**63, 2**64 - 1, 2**64 + 1, -(2**70)])
def test_a_drafted_id_beyond_int64_is_out_of_range_where_it_is_read(backend, garbage):
    options = {"uniforms": ([[0.0]] * 2, [0.5] * 2), "backend": backend}
    ids = [[0], [garbage]]
    assert verify(ids, None, P, [1, 0], **options).num_emitted.tolist() == [2, 1]
    with pytest.raises(BadRowError, match="row 1, position 0: found an integer beyond int64"):
        verify(ids, None, P, **options)
    if 0 <= garbage < 2**64:
        with pytest.raises(BadRowError, match="row 1, position 0"):
            verify(np.array(ids, dtype=np.uint64), None, P, **options)


@pytest.mark.parametrize("dtype", [np.uint64, None])
def test_a_length_beyond_int64_is_out_of_range(backend, dtype):
    lengths = [2**63, 1] if dtype is None else np.array([2**63, 1], dtype)
    options = {"uniforms": ([[0.0]] * 2, [0.5] * 2), "backend": backend, "on_bad_row": "status"}
    status = verify([[0], [0]], None, P, lengths, **options).status
    assert status.tolist() == [RowStatus.LENGTH_OUT_OF_RANGE, 0]


@pytest.mark.parametrize("dtype", [np.uint64, None])
@pytest.mark.parametrize("garbage", [2**63, 2**64 - 1])
def test_a_sparse_id_beyond_int64_is_no_padding(backend, dtype, garbage):
    """Read as its two's complement it would be negative, its probability unread."""
    ids = [[[0, garbage]]] if dtype is None else np.array([[[0, garbage]]], dtype)
    law = SparseProbs(ids, np.array([[[0.5, 0.5]]]))
    result = verify(
        [[0]], law, [[[0.25, 0.75], [0.5, 0.5]]],
        uniforms=([[0.9]], [0.5]), backend=backend, on_bad_row="status",
    )  # fmt: skip
    assert result.status.tolist() == [RowStatus.SPARSE_ID_OUT_OF_RANGE]


def test_an_argmax_beyond_int64_is_never_emitted():
    with pytest.raises(BadRowError, match="target_argmax at row 0, position 0"):
        verify_greedy([[0]], target_argmax=np.array([[2**63 + 5, 0]], np.uint64))


def test_bounded_integers_name_the_index_where_rows_mean_nothing():
    options = {"least": 0, "largest": 9, "dtype": np.uint64, "wanted": "a digit", "fix": "look"}
    assert as_bounded_integers("digits", [[1, 9]], None, **options).tolist() == [[1, 9]]
    with pytest.raises(ValueError, match=r"digits at index \[0, 1\]: found 10; wanted a digit"):
        as_bounded_integers("digits", [[1, 10]], None, **options)
    with pytest.raises(ValueError, match="digits: found -1"):
        as_bounded_integers("digits", -1, None, **options)


def test_int64_is_handed_on_and_all_else_becomes_int64():
    ids = np.arange(6).reshape(2, 3)
    assert as_integers("ids", ids, (2,), "K") is ids
    assert as_integers("ids", [], (), "N").dtype == np.int64
    for array in (ids[:, ::-1], ids.T, ids.astype(np.uint8), ids.astype(">i4")):
        found = as_integers("ids", array, array.shape)
        assert found.flags.c_contiguous
        assert found.dtype == np.int64
        assert found.dtype.isnative
        np.testing.assert_array_equal(found, array)


def test_probabilities_in_lists_may_be_whole_numbers():
    assert as_probabilities("dist", [[1, 0]], (1,), "V").dtype == np.float64
    with pytest.raises(TypeError, match="dtype int64"):
        as_probabilities("dist", np.array([[1, 0]]), (1,), "V")
