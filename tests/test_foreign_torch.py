"""PyTorch's CPU tensors: the tokens of NumPy arrays with the same numbers, and what is refused."""

# mypy: no-check-untyped-defs
from __future__ import annotations

import copy
import re

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

torch = pytest.importorskip("torch")

DTYPES = {
    "float64": np.float64,
    "float32": np.float32,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
}


@pytest.fixture(params=DTYPES)
def dtype(request):
    return request.param


@pytest.fixture
def twins(case_of, dtype):
    """A case in NumPy's arrays, and the same numbers in tensors."""
    case = case_of(7, 4, 9)
    tensors = [
        torch.tensor(law).to(getattr(torch, dtype)) if law.dtype == float else torch.tensor(law)
        for law in case
    ]
    arrays = case._replace(q=case.q.astype(DTYPES[dtype]), p=case.p.astype(DTYPES[dtype]))
    return arrays, case._make(tensors)


def strided(tensor):
    wide = torch.zeros((*tensor.shape, 2), dtype=tensor.dtype)
    wide[..., 1] = tensor
    return wide[..., 1]


FORMS = {
    "as it is": lambda tensor: tensor,
    "transposed": lambda tensor: tensor.transpose(0, -1).contiguous().transpose(0, -1),
    "strided": strided,
    "a leaf": lambda t: t.clone().requires_grad_() if t.is_floating_point() else t,
    "an inner node": lambda t: t.clone().requires_grad_() * 1 if t.is_floating_point() else t,
    "a parameter": lambda t: torch.nn.Parameter(t) if t.is_floating_point() else t,
    "negated in name": lambda t: torch._neg_view(-t) if t.is_floating_point() else t,
    "a list of tensors": list,
    "lists of tensors": lambda t: [list(row) if t.ndim > 1 else row for row in t],
}


def assert_same(result, expected):
    np.testing.assert_array_equal(result.token_ids, expected.token_ids)
    np.testing.assert_array_equal(result.num_emitted, expected.num_emitted)
    np.testing.assert_array_equal(result.status, expected.status)


@pytest.mark.parametrize("form", FORMS)
def test_verify_gives_the_tokens_of_the_same_numbers(backend, twins, form):
    arrays, tensors = twins
    uniforms = arrays.uniforms()
    options = {"backend": backend, "validate": "off"}
    expected = verify(*arrays, uniforms=uniforms, **options)
    uniforms = [FORMS[form](torch.tensor(u)) for u in uniforms]
    assert_same(verify(*map(FORMS[form], tensors), uniforms=uniforms, **options), expected)


@pytest.mark.parametrize("rule", ["token", "exact-match"])
def test_seeds_positions_greedy_and_maps_may_be_tensors(backend, twins, rule):
    arrays, tensors = twins
    seeds, positions = np.arange(7) - 3, np.arange(7) + 2**40
    others = {"greedy": np.arange(7) % 3 == 0, "draft_to_target": np.roll(np.arange(9), 2)}
    others |= {"seeds": seeds, "positions": positions}
    options = {"backend": backend, "validate": "off", "rule": rule}
    expected = verify(*arrays, **others, **options)
    others = {name: torch.tensor(value) for name, value in others.items()}
    assert_same(verify(*tensors, **others, **options), expected)
    others["seeds"] = torch.tensor(seeds.astype(np.uint64))
    assert_same(verify(*tensors, **others, **options), expected)


def test_a_sparse_law_may_be_of_tensors(backend, twins):
    arrays, tensors = twins
    options = {"uniforms": arrays.uniforms(), "backend": backend, "validate": "off"}
    listed = torch.arange(9, dtype=torch.int32).expand(7, 4, 9)
    law = SparseProbs(listed, tensors.q)
    result = verify(tensors.ids, law, tensors.p, tensors.num_draft, **options)
    assert_same(result, verify(*arrays, **options))


def test_verify_packed_gives_the_tokens_of_the_same_numbers(backend, case_of, dtype):
    ids, q, p, offsets = case_of(7, 4, 9).packed()
    uniforms = np.random.default_rng(0).random(len(ids)), np.random.default_rng(1).random(7)
    options = {"uniforms": uniforms, "backend": backend, "validate": "off"}
    narrow = [law.astype(DTYPES[dtype]) for law in (q, p)]
    expected = verify_packed(ids, *narrow, offsets, **options)
    narrow = [torch.tensor(law).to(getattr(torch, dtype)) for law in (q, p)]
    ids, offsets = torch.tensor(ids), torch.tensor(offsets, dtype=torch.int32)
    assert_same(verify_packed(ids, *narrow, offsets, **options), expected)
    ends = offsets[1:]
    assert_same(verify_packed(ids, *narrow, cu_num_draft_tokens=ends, **options), expected)


def test_verify_greedy_gives_the_tokens_of_the_same_numbers(backend, twins):
    arrays, tensors = twins
    expected = verify_greedy(arrays.ids, arrays.p, arrays.num_draft, backend=backend)
    p = tensors.p.clone().requires_grad_()
    result = verify_greedy(tensors.ids, p, tensors.num_draft, backend=backend)
    assert_same(result, expected)
    best = tensors.p.float().nan_to_num(-1).argmax(-1)
    assert_same(verify_greedy(tensors.ids, best, tensors.num_draft), expected)
    assert_same(verify_greedy(tensors.ids, None, tensors.num_draft, target_argmax=best), expected)


def test_sample_rows_gives_the_tokens_of_the_same_numbers(backend, twins):
    arrays, tensors = twins
    options = {"seeds": range(7), "positions": range(7), "backend": backend, "validate": "off"}
    tokens = sample_rows(tensors.p[:, 0].clone().requires_grad_(), **options)
    np.testing.assert_array_equal(tokens, sample_rows(arrays.p[:, 0], **options))


def test_tensors_are_never_written_to(backend, twins):
    _, tensors = twins
    before = copy.deepcopy(tensors)
    verify(*tensors, np.random.default_rng(0), backend=backend, validate="off")
    for tensor, other in zip(tensors, before, strict=True):
        assert torch.equal(tensor.nan_to_num(-1), other.nan_to_num(-1))


def test_records_read_tensors():
    result = verify([[1, 1]], None, [[[0.0, 1.0]] * 3], uniforms=([[0.5, 0.5]], [0.5]))
    for eos in (torch.tensor(1), torch.tensor([0, 1])):
        assert cut_at_eos(result, eos).tolist() == [1]
        assert cut_at_eos(map(torch.tensor, result), eos).tolist() == [1]
    for rows in (torch.tensor([True]), torch.tensor([0])):
        assert AcceptanceRecord.from_result(result, rows=rows).num_draft_tokens == 2


P = np.full((1, 2, 4), 0.25)
COINS = ([[0.5]], [0.5])
CALLS = {
    "draft_token_ids": (np.zeros((1, 1), int), lambda t: verify(t, None, P, uniforms=COINS)),
    "draft_probs": (P[:, :1], lambda t: verify([[0]], t, P, uniforms=COINS)),
    "target_probs": (P, lambda t: verify([[0]], None, t, uniforms=COINS)),
    "num_draft": (np.ones(1, int), lambda t: verify([[0]], None, P, t, uniforms=COINS)),
    "uniforms[0]": (np.zeros((1, 1)), lambda t: verify([[0]], None, P, uniforms=(t, [0]))),
    "uniforms[1]": (np.zeros(1), lambda t: verify([[0]], None, P, uniforms=([[0]], t))),
    "seeds": (np.ones(1, int), lambda t: verify([[0]], None, P, seeds=t, positions=[0])),
    "positions": (np.ones(1, int), lambda t: verify([[0]], None, P, seeds=[0], positions=t)),
    "greedy": (np.ones(1, bool), lambda t: verify([[0]], None, P, greedy=t, uniforms=COINS)),
    "dist": (P[0], lambda t: sample_rows(t, uniforms=[0.5, 0.5])),
    "eos_token_ids": (np.array(1), lambda t: cut_at_eos(([[0]], [1]), t)),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_tensor_off_the_cpu_is_refused(name):
    good, call = CALLS[name]
    call(torch.tensor(good))
    devices = {"meta": "pass one that holds numbers"}
    if torch.cuda.is_available():
        devices["cuda"] = r"move it with \.cpu\(\)"
    for device, fix in devices.items():
        tensor = torch.tensor(good).to(device)
        for value in (tensor, [tensor]):
            with pytest.raises(TypeError) as error:
                call(value)
            assert error.match(rf"^{re.escape(name)}: found a tensor on {device}.*{fix}")
            assert type(error.value) is TypeError


@pytest.mark.parametrize(
    ("odd", "found"),
    [
        (lambda t: t.to(torch.float8_e4m3fn), "Float8_e4m3fn"),
        (lambda t: t.to_sparse(), "Sparse layout"),
        (lambda t: t.to(torch.complex64), "dtype complex64"),
        (lambda t: t.to(torch.int32), "dtype int32"),
        (lambda t: t.to(torch.bool), "dtype bool"),
    ],
)
def test_a_tensor_that_holds_no_law_is_refused(odd, found):
    with pytest.raises(TypeError, match=f"^target_probs: found .*{found}.*wanted.*Fix: "):
        verify([[0]], None, odd(torch.tensor(P)), uniforms=COINS)


@pytest.mark.parametrize("name", ["draft_token_ids", "num_draft", "seeds", "positions"])
def test_bfloat16_is_no_integer_and_is_called_by_its_name(name):
    good, call = CALLS[name]
    with pytest.raises(TypeError, match=f"^{name}: found dtype bfloat16; wanted integers"):
        call(torch.tensor(good).bfloat16())


def test_a_uniform_of_eight_bits_is_refused():
    """It accepts what is impossible once in 256."""
    with pytest.raises(TypeError, match=r"uniforms\[1\]: found dtype bfloat16; wanted floats"):
        verify([[0]], None, P, uniforms=([[0.5]], torch.rand(1).bfloat16()))


def test_a_generator_of_another_library_is_refused_by_its_full_name():
    with pytest.raises(TypeError, match=r"found a torch.*\.Generator; wanted a numpy\.random\.Gen"):
        verify([[0]], None, P, rng=torch.Generator())
