import functools
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import draftproof
from draftproof.proof.mutants import get
from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.subjects.subject import (
    ContractBroken,
    Subject,
    SubjectNotFound,
    as_subject,
    load,
)

correct = get("token").build()

FOLDER = Path(__file__).parent
B, K, V = 5, 3, 4


def batch(seed=0) -> tuple[Any, Any, Any, Any]:
    rng = np.random.default_rng(seed)
    q, p = rng.dirichlet(np.ones(V), (B, K)), rng.dirichlet(np.ones(V), (B, K + 1))
    return rng.integers(0, V, (B, K)), q, p, np.array([3, 0, 1, 2, 3])


def verify(call, contract="ragged", arguments=None):
    subject = Subject("mine", Contract(contract), call)
    draft, q, p, num_draft = batch() if arguments is None else arguments
    return subject.verify(draft, q, p, num_draft, np.random.default_rng(1))


def broken(call, contract="ragged"):
    with pytest.raises(ContractBroken) as failure:
        verify(call, contract)
    return failure.value


def returning(change):
    """A ragged subject whose right output is changed."""

    def call(draft, q, p, num_draft, rng):
        return change(*correct(draft, q, p, num_draft, rng))

    return call


RAGGED = [np.asarray(a).tolist() for a in correct(*batch(), np.random.default_rng(1))]


@pytest.mark.parametrize(
    ("name", "contract"), [("right", "ragged"), ("uniforms", "uniforms"), ("single", "single")]
)
def test_every_contract_has_the_ragged_form(name, contract):
    subject = load(f"{FOLDER}/gallery.py:{name}")
    assert subject.contract == contract
    out, n_out = subject.verify(*batch(), np.random.default_rng(1))
    assert out.dtype == n_out.dtype == np.int64
    assert (out.shape, n_out.shape) == ((B, K + 1), (B,))
    assert ((out == -1) == (np.arange(K + 1) >= n_out[:, None])).all()
    if contract != "single":  # which draws in another order
        assert [out.tolist(), n_out.tolist()] == RAGGED


def test_a_single_subject_gets_each_row_cut_to_its_drafts():
    shapes = []

    def call(draft, q, p, rng):
        shapes.append((draft.shape, q.shape, p.shape))
        return [0]

    verify(call, "single")
    assert shapes == [((g,), (g, V), (g + 1, V)) for g in batch()[3]]


def test_a_greedy_subject_is_given_what_it_takes():
    draft, _, p, num_draft = batch()
    want = draftproof.verify_greedy(draft, p, num_draft)
    for call in (
        lambda draft, p, num_draft: draftproof.verify_greedy(draft, p, num_draft),
        lambda draft, q, p, num_draft: draftproof.verify_greedy(draft, p, num_draft),
        lambda draft, q, p, num_draft, rng: draftproof.verify_greedy(draft, p, num_draft),
    ):
        out, _ = verify(call, "greedy")
        assert out.tolist() == want.token_ids.tolist()


def test_a_practice_subject_has_no_batches():
    with pytest.raises(TypeError, match="no batches"):
        verify(lambda a, b, c, d: None, "practice")


class Pair(NamedTuple):
    out: object
    n_out: object


@pytest.mark.parametrize(
    "change",
    [
        lambda out, n: [out, n],
        lambda out, n: Pair(out, n),
        lambda out, n: (out.tolist(), n.tolist()),
        lambda out, n: (out.astype(np.int8), n.astype(np.uint16)),
        lambda out, n: (out.astype(object), tuple(map(int, n))),
        lambda out, n: (np.asfortranarray(out), n[::1]),
    ],
)
def test_what_is_as_good_as_arrays_of_integers_is_read(change):
    out, n_out = verify(returning(change))
    assert [out.tolist(), n_out.tolist()] == RAGGED


class Tensor:
    """What a tensor on a GPU offers."""

    def __init__(self, values, on_device=True):
        self.values, self.on_device = values, on_device

    def detach(self):
        return self

    def cpu(self):
        return Tensor(self.values, on_device=False)

    def __array__(self, dtype=None, copy=None):
        assert not self.on_device
        return self.values


def test_tensors_are_brought_home():
    out, _ = verify(returning(lambda out, n: (Tensor(out), Tensor(n))))
    assert out.tolist() == RAGGED[0]


def put(place, value):
    """Change one entry of ``out``."""

    def change(out, n):
        out[place] = value
        return out, n

    return change


@pytest.mark.parametrize(
    ("change", "reason", "row"),
    [
        (lambda out, n: None, "returned None; wanted the pair", None),
        (lambda out, n: out, "returned one array of shape", None),
        (lambda out, n: (out, n, n), "returned a tuple of 3 entries", None),
        (lambda out, n: {"out": out, "n_out": n}, "returned a dict with the keys 'out'", None),
        (lambda out, n: (out[:, :-1], n), r"out has shape \(5, 3\); wanted \(5, 4\)", None),
        (lambda out, n: (out, n[:, None]), r"n_out has shape \(5, 1\)", None),
        (lambda out, n: (out * 1.0, n), "out has dtype float64; wanted integers", None),
        (lambda out, n: (out * np.nan, n), "out has dtype float64, with NaN in it", None),
        (lambda out, n: (out, n > 0), "n_out has dtype bool", None),
        (lambda out, n: (out.astype(str), n), "out has dtype <U", None),
        (lambda out, n: ([[1], [2, 3]], n), "out is no array", None),
        (lambda out, n: (out, n - 1), "n_out of row 1 is 0; wanted 1..1", 1),
        (lambda out, n: (out, n + (np.arange(B) == 1)), "n_out of row 1 is 2; wanted 1..1", 1),
        (put((2, 0), V), "out of row 2 at position 0 is 4; wanted a token in 0..3", 2),
        (put((2, 0), -1), "out of row 2 at position 0 is -1; wanted a token in 0..3", 2),
        (put((1, 3), 0), "out of row 1 at position 3, past its 1 tokens, is 0; wanted the", 1),
        (put((1, 2), -2), "is -2; wanted the padding -1", 1),
        (lambda out, n: (out.astype(np.uint64), n), "out holds 18446744073709551615", None),
        (lambda out, n: (out.astype(object) + 2**70, n), "more than 64 bits", None),
    ],
)
def test_an_output_that_breaks_the_contract(change, reason, row):
    failure = broken(returning(change))
    assert re.search(reason, failure.reason)
    if row is not None:
        assert failure.row == row


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ([], "row 0: returned 0 tokens; wanted 1..4"),
        ([0] * 5, "row 0: returned 5 tokens"),
        ([V], "row 0: token 0 of the list is 4"),
        ([0, -1], "row 0: token 1 of the list is -1"),
        ([0.0], "row 0: the list of tokens has dtype float64"),
        ([[0]], r"row 0: the list of tokens has shape \(1, 1\); wanted one axis"),
        (None, "row 0: the list of tokens has shape"),
    ],
)
def test_a_row_that_breaks_the_contract(result, reason):
    assert re.search(reason, broken(lambda draft, q, p, rng: result, "single").reason)


def test_the_failing_call_is_kept():
    failure = broken(returning(put((2, 0), V)))
    assert set(failure.case) == {"draft", "q", "p", "num_draft"}
    assert failure.case["num_draft"] == [3, 0, 1, 2, 3]


def test_of_a_large_call_the_failing_row_is_kept():
    draft, q, p, num_draft = (np.repeat(a, 200, axis=0) for a in batch())
    subject = Subject("mine", Contract.RAGGED, returning(put((402, 0), V)))
    with pytest.raises(ContractBroken) as failure:
        subject.verify(draft, q, p, num_draft, np.random.default_rng(1))
    assert failure.value.case["num_draft"] == [num_draft[402]]


@pytest.mark.parametrize("name", ["draft", "q", "p", "num_draft"])
def test_writing_to_an_input_breaks_the_contract(name):
    def call(draft, q, p, num_draft, rng):
        result = correct(draft, q, p, num_draft, rng)
        locals()[name].flat[0] *= 0.5 if name in "qp" else 2
        locals()[name].flat[0] += 1
        return result

    assert broken(call).reason == f"wrote to its input {name}; wanted inputs unchanged"


def test_writing_one_uniform_breaks_the_contract():
    def call(draft, q, p, num_draft, accept, final):
        final[:] = 0.5
        return correct(draft, q, p, num_draft, np.random.default_rng(1))

    assert broken(call, "uniforms").reason.startswith("wrote to its input final")


def test_nan_in_an_input_is_no_change():
    draft, q, p, num_draft = batch()
    p[1, 2] = np.nan
    out, _ = verify(correct, arguments=(draft, q, p, num_draft))
    assert out.tolist() == RAGGED[0]


def test_the_subject_has_copies_and_we_have_ours():
    given = batch()
    kept: list[Any] = []

    def call(draft, q, p, num_draft, rng):
        out, n_out = correct(draft, q, p, num_draft, rng)
        kept[:] = draft, q, p, num_draft, out, n_out
        return out, n_out

    out, n_out = verify(call, arguments=given)
    for array in kept:
        array[...] = 7
    assert [out.tolist(), n_out.tolist()] == RAGGED
    assert [a.tolist() for a in given] == [a.tolist() for a in batch()]


def test_views_of_the_inputs_are_a_legal_result():
    def call(draft, q, p, num_draft, rng):
        return np.where(np.arange(K + 1) < 1, p.argmax(axis=2), -1), num_draft // 9 + 1

    verify(call)
    failure = broken(lambda draft, q, p, num_draft, rng: (p.argmax(axis=2), num_draft))
    assert failure.reason.startswith("n_out of row 1 is 0")


@pytest.mark.parametrize("K", [0, 2])
def test_an_empty_batch(K):
    nothing = np.empty((0, K), int), np.empty((0, K, V)), np.empty((0, K + 1, V)), np.empty(0, int)
    out, n_out = verify(correct, arguments=nothing)
    assert (out.shape, n_out.shape) == ((0, K + 1), (0,))
    verify(lambda *_: ([], []), arguments=nothing)
    with pytest.raises(ContractBroken, match="out has shape"):
        verify(lambda *_: (np.empty((0, 9), int), []), arguments=nothing)


def test_what_the_subject_raises_passes_through():
    def call(draft, q, p, num_draft, rng):
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        verify(call)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_that_returns_from_the_call_ends_there():
    def call(draft, q, p, num_draft, rng):
        if os.fork() == 0:
            raise RuntimeError("in the fork")
        return correct(draft, q, p, num_draft, rng)

    out, _ = verify(call)
    assert out.tolist() == RAGGED[0]
    assert os.waitstatus_to_exitcode(os.wait()[1]) == 0


def test_own_backends_are_named():
    subject = load("own:numpy")
    assert (subject.name, subject.spec) == ("draftproof.verify, numpy", "own:numpy")
    assert subject.contract is Contract.RAGGED
    with pytest.raises(SubjectNotFound, match=r"wanted own: and one of .*reference"):
        load("own:cuda")


def test_own_rules_are_named():
    subject = load("own:numpy:block")
    assert (subject.name, subject.spec) == ("draftproof.verify, numpy, block", "own:numpy:block")
    assert isinstance(subject.call, functools.partial)
    assert subject.call.keywords == {"backend": "numpy", "rule": "block"}
    for rule in ("gumbel", "greedy-block", "blok"):
        with pytest.raises(SubjectNotFound, match="own:numpy: and one of token, exact-match, bloc"):
            load(f"own:numpy:{rule}")


def test_mutants_are_named():
    subject = load("mutant:accept always")
    assert subject.spec == "mutant:accept always"
    _, n_out = subject.verify(*batch(), np.random.default_rng(0))
    assert (n_out == batch()[3] + 1).all()
    with pytest.raises(SubjectNotFound, match=r"the closest names are .*accept always"):
        load("mutant:accept allways")


def test_drafts_that_are_not_what_they_are_said_to_be_come_with_their_mutant():
    assert load("mutant:top-2 drafts, full q").sampled_law is not None
    assert load("own:numpy").sampled_law is None


def test_a_callable_another_process_can_find_has_a_spec():
    assert as_subject(draftproof.verify).spec == "draftproof.verify:verify"
    assert as_subject(functools.partial(draftproof.verify, backend="numpy")).spec is None
    assert as_subject(lambda draft, q, p, num_draft, rng: None, name="mine").name == "mine"
    subject = load("own:numpy")
    assert as_subject(subject) is subject
    assert as_subject("own:numpy").spec == "own:numpy"
    with pytest.raises(TypeError, match="found a int"):
        as_subject(3)  # type: ignore[arg-type]


def test_a_contract_that_is_unknown_or_does_not_fit():
    with pytest.raises(ValueError, match="wanted one of ragged"):
        as_subject(correct, "raged")
    with pytest.raises(ValueError, match="take 4 positional arguments"):
        as_subject(lambda a: None, "single")
