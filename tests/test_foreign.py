"""What callers pass for arrays: read as NumPy would, or refused by name in our own words."""

# mypy: no-check-untyped-defs
from __future__ import annotations

import array
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from draftproof import (
    AcceptanceRecord,
    SparseProbs,
    cut_at_eos,
    sample_rows,
    verify,
    verify_greedy,
    verify_packed,
)
from draftproof.foreign import read_array

B, K, V = 3, 2, 4
P, Q, IDS = np.full((B, K + 1, V), 0.25), np.full((B, K, V), 0.25), np.zeros((B, K), int)
PACKED = {"cu_num_draft": [0, 2, 4, 6]}
SPARSE = np.broadcast_to(np.arange(V), (B, K, V)).copy()
COINS = (np.zeros((B, K)), np.zeros(B))
FLAT = (np.zeros(B * K), np.zeros(B))
EVERY = np.ones(B, dtype=bool)
RESULT = verify(IDS, Q, P, uniforms=COINS)

ARGUMENTS = {
    "draft_token_ids": (IDS, lambda a: verify(a, Q, P, uniforms=COINS)),
    "draft_probs": (Q, lambda a: verify(IDS, a, P, uniforms=COINS)),
    "draft_probs.ids": (SPARSE, lambda a: verify(IDS, SparseProbs(a, Q), P, uniforms=COINS)),
    "draft_probs.probs": (Q, lambda a: verify(IDS, SparseProbs(SPARSE, a), P, uniforms=COINS)),
    "target_probs": (P, lambda a: verify(IDS, Q, a, uniforms=COINS)),
    "num_draft": (np.full(B, K), lambda a: verify(IDS, Q, P, a, uniforms=COINS)),
    "uniforms[0]": (COINS[0], lambda a: verify(IDS, Q, P, uniforms=(a, COINS[1]))),
    "uniforms[1]": (COINS[1], lambda a: verify(IDS, Q, P, uniforms=(COINS[0], a))),
    "seeds": (np.arange(B), lambda a: verify(IDS, Q, P, seeds=a, positions=[0] * B)),
    "positions": (np.arange(B), lambda a: verify(IDS, Q, P, seeds=[0] * B, positions=a)),
    "greedy": (EVERY, lambda a: verify(IDS, Q, P, greedy=a, uniforms=COINS)),
    "draft_to_target": (
        np.arange(V),
        lambda a: verify(IDS, Q, P, draft_to_target=a, uniforms=COINS),
    ),
    "cu_num_draft": (
        np.array([0, 2, 4, 6]),
        lambda a: verify_packed(IDS.ravel(), None, P.reshape(-1, V), cu_num_draft=a, uniforms=FLAT),
    ),
    "cu_num_draft_tokens": (
        np.array([2, 4, 6]),
        lambda a: verify_packed(
            IDS.ravel(), None, P.reshape(-1, V), cu_num_draft_tokens=a, uniforms=FLAT
        ),
    ),
    "target_argmax": (np.zeros((B, K + 1), int), lambda a: verify_greedy(IDS, target_argmax=a)),
    "dist": (P[0], lambda a: sample_rows(a, uniforms=COINS[1])),
    "rows": (np.arange(B), lambda a: AcceptanceRecord.from_result(RESULT, rows=a)),
    "eos_token_ids": (np.arange(2), lambda a: cut_at_eos(RESULT, a)),
    "result[0]": (RESULT[0], lambda a: cut_at_eos((a, RESULT[1]), 3)),
    "result[1]": (RESULT[1], lambda a: cut_at_eos((RESULT[0], a), 3)),
}


@pytest.fixture(params=ARGUMENTS)
def argument(request):
    """The name of an argument, a good value, and a call with that value in its place."""
    return request.param, *ARGUMENTS[request.param]


def spoken(error, name):
    """The message names the argument, what was found, what was wanted, and the fix."""
    message = str(error.value)
    assert message.startswith(name), message
    assert "found" in message
    assert "wanted" in message
    assert "Fix: " in message
    return message


def test_the_good_values_are_good(argument):
    _, good, call = argument
    call(good)
    call(good.tolist())


@pytest.mark.parametrize("mask", [False, True])
def test_a_masked_array_is_refused(argument, mask):
    name, good, call = argument
    masked = np.ma.masked_array(good, mask=np.full(good.shape, mask))
    for value in (masked, [masked], [np.ma.masked], np.ma.masked):
        with pytest.raises(TypeError) as error:
            call(value)
        assert "a masked array" in spoken(error, name)


@pytest.mark.parametrize(
    "ragged",
    [
        [[1], [1, 2]],
        [[1, 2], 3],
        [1, [2, 3]],
        [[[1, 2]], [[1, 2], [3, 4]]],
        [np.zeros(2), np.zeros(3)],
        [np.zeros((2, 3)), np.zeros((2, 2))],
    ],
)
def test_lists_of_differing_lengths_are_refused(argument, ragged):
    name, _, call = argument
    with pytest.raises(ValueError, match="index") as error:
        call(ragged)
    message = spoken(error, name)
    assert "inhomogeneous" not in message
    assert "where index [0" in message or "where index [0, 0" in message


def test_the_place_of_a_ragged_row_is_named():
    rows = [[[0.5, 0.5], [0.5, 0.5]], [[0.5, 0.5], [1.0]]]
    message = r"index \[1, 1\]: found length 1, where index \[0, 0\] has length 2; wanted proba"
    with pytest.raises(ValueError, match=message):
        verify([[0], [0]], None, rows, uniforms=([[0.5]] * 2, [0.5] * 2))


def endless():
    value = []
    value += [value, value]
    return value


@pytest.mark.parametrize("lists", [endless(), eval("[" * 70 + "1" + "]" * 70)])
def test_lists_without_end_are_refused(argument, lists):
    name, _, call = argument
    with pytest.raises(ValueError, match="found lists") as error:
        call(lists)
    spoken(error, name)


class Unreadable:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("on another planet")


ODD = {
    "objects": lambda good: good.astype(object),
    "complex numbers": lambda good: good.astype(complex),
    "strings": lambda good: good.astype(str),
    "bytes": lambda good: good.astype(bytes),
    "records": lambda good: np.zeros(good.shape, [("x", "f8")]),
    "dates": lambda good: np.zeros(good.shape, "M8[s]"),
    "void": lambda good: np.zeros(good.shape, "V8"),
    "an object": lambda good: object(),
    "a function": lambda good: len,
    "a string": lambda good: "abc",
    "None in a list": lambda good: [None],
    "a Fraction in a list": lambda good: [Fraction(1, 2)],
    "a list of another planet": lambda good: [Unreadable()],
    "another planet": lambda good: Unreadable(),
}


@pytest.mark.parametrize("odd", ODD)
def test_what_is_no_array_of_numbers_is_refused(argument, odd):
    name, good, call = argument
    with pytest.raises(TypeError) as error:
        call(ODD[odd](good))
    message = spoken(error, name)
    assert ("on another planet" in message) == ("planet" in odd)


def test_what_stands_in_a_list_is_named_with_its_place():
    with pytest.raises(TypeError, match=r"seeds at index \[1\]: found a NoneType"):
        verify(IDS, Q, P, seeds=[1, None, 2], positions=[0] * B)


@pytest.mark.parametrize("dtype", [np.longdouble, ">f8", ">f4", ">f2", bool, int, "c8"])
def test_a_law_of_another_dtype_is_refused(dtype):
    for name in ("draft_probs", "target_probs", "dist", "draft_probs.probs"):
        good, call = ARGUMENTS[name]
        with pytest.raises(TypeError, match="float64, float32, float16 or bfloat16") as error:
            call(good.astype(dtype))
        assert str(np.dtype(dtype)) in spoken(error, name)


def test_a_byte_swapped_bfloat16_is_no_bfloat16():
    swapped = P.astype(ml_dtypes.bfloat16).astype(np.dtype(ml_dtypes.bfloat16).newbyteorder())
    if swapped.dtype.isnative:  # ml_dtypes knows one byte order alone
        return
    with pytest.raises(TypeError, match="byte order"):
        verify(IDS, Q, swapped, uniforms=COINS)


class Foreign:
    """An array of another library that NumPy can read."""

    def __init__(self, numbers):
        self.numbers = numbers

    def __array__(self, dtype=None, copy=None):
        return np.array(self.numbers, dtype=dtype)


class Subclass(np.ndarray):
    """Arithmetic of its own, which must play no part."""

    def __array_ufunc__(self, *_arguments, **_keywords):
        raise AssertionError("a subclass' arithmetic was asked")


SAME = {
    "tuples": lambda a: tuple(map(tuple, a)) if a.ndim > 1 else tuple(a),
    "a list of arrays": list,
    "lists of NumPy scalars": lambda a: [list(row) if a.ndim > 1 else row for row in a],
    "a list of foreign arrays": lambda a: [Foreign(row) for row in a],
    "foreign": Foreign,
    "subclass": lambda a: a.view(Subclass),
    "recarray": lambda a: a.view(np.recarray),
    "memoryview": lambda a: memoryview(np.ascontiguousarray(a)),  # type: ignore[arg-type]
    "byte-swapped integers": lambda a: a.astype(a.dtype.newbyteorder()) if a.dtype == int else a,
}


def same_tokens(case, backend, form):
    expected = verify(*case, uniforms=case.uniforms(), backend=backend)
    uniforms = tuple(form(u) for u in case.uniforms())
    result = verify(*map(form, case), uniforms=uniforms, backend=backend)
    np.testing.assert_array_equal(result.token_ids, expected.token_ids)


@pytest.mark.parametrize("form", SAME)
def test_the_same_numbers_in_another_form_give_the_same_tokens(backend, case_of, form):
    same_tokens(case_of(6, 3, 5), backend, SAME[form])


def test_a_matrix_is_two_dimensional(backend):
    rows = np.eye(2)[::-1].view(np.matrix)
    assert sample_rows(rows, uniforms=[0.5, 0.5], backend=backend).tolist() == [1, 0]
    with pytest.raises(ValueError, match=r"num_draft: found shape \[1, 3\]"):
        verify(IDS, Q, P, np.array([[2, 2, 2]]).view(np.matrix), uniforms=COINS)


def test_other_buffers_are_read():
    assert sample_rows(np.eye(2), seeds=array.array("Q", [7, 8]), positions=range(2)).size == 2


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16])
def test_a_list_of_rows_keeps_their_dtype(dtype):
    rows = np.eye(3, dtype=dtype)
    assert read_array("rows", [*rows]).dtype == rows.dtype


def test_an_array_is_handed_on_as_it_is():
    assert read_array("dist", P) is P
    assert np.shares_memory(read_array("dist", P.view(Subclass)), P)


class Odd(np.random.Generator):
    """Hands out what it pleases."""

    def __init__(self, answer):
        super().__init__(np.random.PCG64(0))
        self.answer = answer

    def random(self, size=None, *_arguments, **_keywords):
        return self.answer(size)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda size: None, "found dtype object"),
        (lambda size: np.full(size, "0.5"), "found dtype <U3"),
        (lambda size: np.full(size, "x", object), "found dtype object"),
        (lambda size: np.zeros(size, complex), "found dtype complex128"),
        (lambda size: np.ma.masked_all(size), "found a masked array"),
        (lambda size: np.zeros(7), r"found shape \[7\]; wanted shape \[3"),
        (lambda size: [[0.0], [0.0, 0.5]], "found length 2"),
    ],
)
@pytest.mark.parametrize("greedy", [None, [False] * B])
def test_a_generator_that_hands_out_no_uniforms_is_refused(backend, answer, message, greedy):
    with pytest.raises((TypeError, ValueError), match=f"^rng.*{message}"):
        verify(IDS, Q, P, None, Odd(answer), backend=backend, greedy=greedy)


@pytest.mark.parametrize(
    "answer",
    [
        lambda size: np.full(size, 0.5).tolist(),
        lambda size: np.full(size, 0.5, np.float32),
        lambda size: np.full(size, 0.5, ">f8"),
        lambda size: np.broadcast_to(0.5, size),
        lambda size: np.full(size, Fraction(1, 2)),
    ],
)
def test_a_generators_uniforms_may_come_in_any_form(backend, answer):
    expected = verify(IDS, Q, P, uniforms=(np.full((B, K), 0.5), [0.5] * B), backend=backend)
    result = verify(IDS, Q, P, None, Odd(answer), backend=backend)
    np.testing.assert_array_equal(result.token_ids, expected.token_ids)
