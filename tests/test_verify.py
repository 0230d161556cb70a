"""The calls: arguments, layouts, the order in which randomness is consumed, results."""

# mypy: no-check-untyped-defs
from __future__ import annotations

import copy
import inspect
import pickle
import re
from typing import Any

import numpy as np
import pytest

from draftproof import (
    RULES,
    BackendUnavailableError,
    SparseProbs,
    VerifyResult,
    available_backends,
    backends,
    sample_rows,
    verify,
    verify_packed,
)
from draftproof.rules import PLAIN_RULES

SHAPES = [(0, 3, 5), (3, 0, 5), (0, 0, 5), (1, 1, 1), (7, 4, 5), (5, 17, 130)]


def assert_same(result, expected):
    np.testing.assert_array_equal(result.token_ids, expected.token_ids)
    np.testing.assert_array_equal(result.num_emitted, expected.num_emitted)
    np.testing.assert_array_equal(result.status, expected.status)


@pytest.fixture
def case(case_of):
    return case_of(9, 4, 11)


# Where randomness comes from


class Recorder(np.random.Generator):
    """Replays fixed numbers, and remembers what it was asked for."""

    def __init__(self, numbers=(0.25,)):
        super().__init__(np.random.PCG64(0))
        self.asked = []
        self.numbers = np.resize(numbers, 10_000)

    def random(self, size=None, *args, **kwargs):
        self.asked.append(size)
        count = int(np.prod(size))
        taken, self.numbers = self.numbers[:count], self.numbers[count:]
        return taken.reshape(size)


@pytest.mark.parametrize("rule", PLAIN_RULES)
@pytest.mark.parametrize(("B", "K", "V"), SHAPES)
def test_a_generator_gives_the_accept_uniforms_then_the_final_ones(backend, case_of, rule, B, K, V):
    case = case_of(B, K, V)
    rng = np.random.default_rng(3)
    result = verify(*case, rng, rule=rule, backend=backend)
    twin = np.random.default_rng(3)
    accept, final = twin.random((B, K)), twin.random((B, 1))
    assert rng.bit_generator.state == twin.bit_generator.state
    uniforms = (accept, final[:, 0])
    assert_same(result, verify(*case, uniforms=uniforms, rule=rule, backend=backend))


@pytest.mark.parametrize(("B", "K", "V"), SHAPES)
def test_packed_a_generator_gives_one_uniform_for_each_draft_then_for_each_row(
    backend, case_of, B, K, V
):
    packed = case_of(B, K, V).packed()
    rng, twin = np.random.default_rng(3), np.random.default_rng(3)
    result = verify_packed(*packed, rng, backend=backend)
    uniforms = twin.random(len(packed[0])), twin.random(B)
    assert rng.bit_generator.state == twin.bit_generator.state
    assert_same(result, verify_packed(*packed, uniforms=uniforms, backend=backend))


def test_a_generator_of_ones_own_is_asked_with_the_documented_shapes(backend, case):
    rng = Recorder()
    verify(*case, rng, backend=backend)
    assert rng.asked == [(9, 4), (9, 1)]


def test_a_replaying_generator_decides(backend):
    p, q = [0.25, 0.75], [0.5, 0.5]
    arguments = ([[0, 0]], [[q, q]], [[p, p, p]], None)
    emitted = {
        (0.4, 0.6, 0.0): [0, 1],
        (0.4, 0.4, 0.2): [0, 0, 0],
        (0.4, 0.4, 0.3): [0, 0, 1],
        (0.6, 0.4, 0.0): [1],
    }
    for numbers, tokens in emitted.items():
        assert verify(*arguments, Recorder(numbers), backend=backend).to_lists() == [tokens]


@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.MT19937, np.random.Philox])
def test_any_bit_generator_will_do(backend, case, bits):
    twin = np.random.Generator(bits(1))
    uniforms = twin.random((9, 4)), twin.random((9, 1))[:, 0]
    result = verify(*case, np.random.Generator(bits(1)), backend=backend)
    assert_same(result, verify(*case, uniforms=uniforms, backend=backend))


SOURCES: dict[str, Any] = {
    "rng": np.random.default_rng(0),
    "uniforms": (np.zeros((9, 4)), np.zeros(9)),
    "seeds": np.zeros(9, dtype=np.uint64),
}


@pytest.mark.parametrize("given", [(), ("rng", "uniforms"), ("rng", "seeds"), tuple(SOURCES)])
def test_exactly_one_source_of_randomness(case, given):
    positions = {"positions": np.zeros(9, dtype=np.int64)} if "seeds" in given else {}
    with pytest.raises(ValueError, match="exactly one"):
        verify(*case, **{name: SOURCES[name] for name in given}, **positions)


def test_seeds_without_positions_are_refused(case):
    with pytest.raises(ValueError, match="positions"):
        verify(*case, seeds=SOURCES["seeds"])


@pytest.mark.parametrize("rng", [np.random.RandomState(0), 7, np.random])
def test_only_a_generator_is_a_generator(case, rng):
    with pytest.raises(TypeError, match=r"numpy\.random\.Generator"):
        verify(*case, rng)


def test_no_global_generator_is_read_or_moved(backend, case):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first = verify(*case, np.random.default_rng(0), backend=backend)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    assert_same(verify(*case, np.random.default_rng(0), backend=backend), first)


# Names and options


def test_the_first_five_arguments_are_positional_and_named():
    names = [*inspect.signature(verify).parameters]
    assert names[:5] == ["draft_token_ids", "draft_probs", "target_probs", "num_draft", "rng"]
    packed = [*inspect.signature(verify_packed).parameters]
    assert packed[:5] == ["draft_token_ids", "draft_probs", "target_probs", "cu_num_draft", "rng"]
    options = {
        name
        for name, parameter in inspect.signature(verify).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    }
    assert {*names[5:]} == options
    assert {*packed[5:]} == options | {"cu_num_draft_tokens"}


@pytest.mark.parametrize(
    ("option", "known"),
    [
        ("rule", RULES),
        ("validate", ("touched", "full", "off")),
        ("on_bad_row", ("raise", "status")),
        ("backend", ("auto", "native", "numpy", "reference")),
    ],
)
def test_an_unknown_option_lists_the_known_ones(case, option, known):
    with pytest.raises(ValueError, match=option) as caught:
        verify(*case, np.random.default_rng(0), **{option: "nonesuch"})
    assert "'nonesuch'" in str(caught.value)
    for name in known:
        assert repr(name) in str(caught.value)


@pytest.mark.parametrize("option", ["rule", "validate", "on_bad_row", "backend", "return_trace"])
@pytest.mark.parametrize("value", [np.zeros(3), np.array(["token", "raise"]), ["token"], {}, 7])
def test_an_option_that_is_no_option_at_all_is_refused_by_name(case, option, value):
    with pytest.raises(ValueError, match=f"{option}: found .*; wanted one of"):
        verify(*case, np.random.default_rng(0), **{option: value})


def test_a_rule_that_keeps_no_state_takes_none(case):
    with pytest.raises(ValueError, match="state"):
        verify(*case, np.random.default_rng(0), state=object())


@pytest.mark.parametrize("num_threads", [0, -1, 1.5, "2"])
def test_a_bad_number_of_threads_is_refused(case, num_threads):
    with pytest.raises(ValueError, match="num_threads"):
        verify(*case, np.random.default_rng(0), num_threads=num_threads)


@pytest.mark.parametrize("num_threads", [1, 1 << 31, 1 << 63, 10**30])
def test_no_number_of_threads_is_too_large(case, num_threads):
    assert_same(
        verify(*case, np.random.default_rng(0), num_threads=num_threads),
        verify(*case, np.random.default_rng(0)),
    )


def test_a_named_backend_runs_and_auto_says_which_one_it_took(case, backend):
    assert verify(*case, np.random.default_rng(0), backend=backend).backend == backend
    fastest = available_backends()[0]
    assert verify(*case, np.random.default_rng(0)).backend == fastest


def test_a_missing_backend_that_was_named_raises(case, monkeypatch):
    monkeypatch.setattr(backends, "native_import_error", lambda: "it was not built")
    for cached in (backends.load_backend, backends.load_short_way):
        cached.cache_clear()
    with pytest.raises(BackendUnavailableError, match="it was not built") as caught:
        verify(*case, np.random.default_rng(0), backend="native")
    assert isinstance(caught.value, ValueError)
    assert verify(*case, np.random.default_rng(0)).backend == "numpy"
    for cached in (backends.load_backend, backends.load_short_way):
        cached.cache_clear()


# Results


@pytest.mark.parametrize("rule", PLAIN_RULES)
@pytest.mark.parametrize("law", ["dense", "sparse", "none"])
@pytest.mark.parametrize(("B", "K", "V"), SHAPES)
def test_shapes_and_dtypes_of_a_result(backend, case_of, rule, law, B, K, V):
    case = case_of(B, K, V, ragged=False)
    every_id = np.broadcast_to(np.arange(V), case.q.shape)
    q = {"dense": case.q, "sparse": SparseProbs(every_id, case.q), "none": None}[law]
    rng = np.random.default_rng(0)
    result = verify(case.ids, q, case.p, None, rng, rule=rule, backend=backend)
    assert result.token_ids.shape == (B, K + 1)
    for counts in (result.num_emitted, result.num_accepted, result.status, result.num_draft):
        assert counts.shape == (B,)
        assert counts.dtype == np.int64
    assert result.token_ids.dtype == np.int64
    assert ((result.num_emitted >= 1) & (result.num_emitted <= K + 1)).all()
    np.testing.assert_array_equal(result.num_accepted, result.num_emitted - 1)
    emitted = np.arange(K + 1) < result.num_emitted[:, None]
    np.testing.assert_array_equal(result.token_ids >= 0, emitted)
    assert (result.token_ids[~emitted] == -1).all()


def test_a_result_is_a_named_tuple_of_two(case):
    result = verify(*case, np.random.default_rng(0))
    token_ids, num_emitted = result
    assert isinstance(result, tuple)
    assert (len(result), result._fields) == (2, ("token_ids", "num_emitted"))
    assert result[0] is token_ids is result.token_ids
    assert result[1] is num_emitted is result.num_emitted
    assert result.trace is None


@pytest.mark.parametrize(
    "duplicate",
    [copy.copy, copy.deepcopy, *(
        lambda result, protocol=protocol: pickle.loads(pickle.dumps(result, protocol))
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
    )],
)  # fmt: skip
def test_copies_and_pickles_keep_everything(case, duplicate):
    result = verify(*case, np.random.default_rng(0), return_trace=True)
    again = duplicate(result)
    assert type(again) is VerifyResult
    assert_same(again, result)
    np.testing.assert_array_equal(again.num_draft, result.num_draft)
    np.testing.assert_array_equal(again.trace.accept_mask, result.trace.accept_mask)
    assert again.backend == result.backend


def test_a_result_is_the_callers_to_change(backend, case):
    result = verify(*case, np.random.default_rng(0), backend=backend)
    for array in (result.token_ids, result.num_emitted, result.status):
        array[...] = 0
        assert not any(np.may_share_memory(array, argument) for argument in case)


def test_the_trace_says_what_decided(backend):
    p, q = [0.5, 0.25, 0.25], [0.25, 0.5, 0.25]
    ids = [[1, 0, -1], [0, 1, 1], [0, 2, 0], [1, 1, 1]]
    accept = [[0.6, 0.1, 0.2], [0.9, 0.7, 0.3], [0.9, 0.9, 0.9], [0.2, 0.1, 0.8]]
    result = verify(
        ids, [[q] * 3] * 4, [[p] * 4] * 4, [2, 3, 3, 2],
        uniforms=(accept, [0.5, 0.0, 0.9, 0.7]), return_trace=True, backend=backend,
    )  # fmt: skip
    trace, nan = result.trace, np.nan
    assert result.to_lists() == [[0], [0, 0], [0, 2, 0, 2], [1, 1, 1]]
    assert trace.accept_mask.tolist() == [
        [False] * 3, [True, False, False], [True] * 3, [True, True, False]
    ]  # fmt: skip
    assert trace.is_bonus.tolist() == [False, False, True, True]
    np.testing.assert_array_equal(
        trace.ratios, [[0.5, nan, nan], [2, 0.5, nan], [2, 1, 2], [0.5, 0.5, nan]]
    )
    past = np.arange(3) >= result.num_draft[:, None]
    np.testing.assert_array_equal(trace.accept_uniforms, np.where(past, nan, accept))
    np.testing.assert_array_equal(trace.final_uniforms, [0.5, 0.0, 0.9, 0.7])
    np.testing.assert_array_equal(trace.residual_mass, [0.25, 0.25, nan, nan])
    np.testing.assert_array_equal(trace.expected_acceptance, [0.75, 0.75, nan, nan])


@pytest.mark.parametrize("rule", PLAIN_RULES)
def test_the_trace_is_the_same_on_every_backend_and_in_every_layout(backend, case, rule):
    uniforms = case.uniforms()
    expected = verify(*case, uniforms=uniforms, rule=rule, return_trace=True, backend="reference")
    valid = np.arange(4) < case.num_draft[:, None]
    packed = (uniforms[0][valid], uniforms[1])
    options = {"rule": rule, "return_trace": True, "backend": backend}
    for result in (
        verify(*case, uniforms=uniforms, **options),
        verify_packed(*case.packed(), uniforms=packed, **options),
    ):
        K = result.trace.ratios.shape[1]
        for name, found in vars(result.trace).items():
            wanted = vars(expected.trace)[name]
            np.testing.assert_array_equal(found, wanted[:, :K] if wanted.ndim == 2 else wanted)


# What is never read


@pytest.mark.parametrize("validate", ["touched", "full", "off"])
@pytest.mark.parametrize("rule", PLAIN_RULES)
@pytest.mark.parametrize("garbage", [-1, 11, 2**40, -(2**62)])
def test_what_lies_past_num_draft_is_never_read(backend, case_of, garbage, rule, validate):
    clean = case_of(12, 4, 11, ragged=False)
    lengths = np.arange(12) % 5
    accept, final = clean.uniforms()
    options = {"rule": rule, "validate": validate, "backend": backend}
    expected = verify(*clean[:3], lengths, uniforms=(accept, final), **options)
    past = np.arange(4) >= lengths[:, None]
    clean.ids[past], clean.q[past], clean.p[:, 1:][past] = garbage, np.nan, np.inf
    accept[past] = np.nan
    assert_same(verify(*clean[:3], lengths, uniforms=(accept, final), **options), expected)


@pytest.mark.parametrize("garbage", [-1, 11, 2**40])
def test_sparse_rows_past_num_draft_are_never_read(backend, case, garbage):
    past = np.arange(4) >= case.num_draft[:, None]
    ids = np.broadcast_to(np.arange(11), case.q.shape).copy()
    ids[past] = garbage
    result = verify(
        case.ids, SparseProbs(ids, case.q), case.p, case.num_draft,
        uniforms=case.uniforms(), backend=backend, validate="full",
    )  # fmt: skip
    assert_same(result, verify(*case, uniforms=case.uniforms(), backend=backend))


def test_exact_match_reads_no_draft_law(backend, case):
    options = {"uniforms": case.uniforms(), "rule": "exact-match", "backend": backend}
    expected = verify(case.ids, None, case.p, case.num_draft, **options)
    for law in (case.q, np.full_like(case.q, np.nan)):
        assert_same(verify(case.ids, law, case.p, case.num_draft, **options), expected)


def test_exact_match_emits_what_the_target_samples(backend, case_of):
    case = case_of(40, 3, 5, near=1.0)
    accept, final = case.uniforms()
    u = np.where(np.arange(4) < case.num_draft[:, None], np.c_[accept, final], final[:, None])
    result = verify(*case, uniforms=(accept, final), rule="exact-match", backend=backend)
    assert len(set(result.num_accepted)) == 4
    for b, tokens in enumerate(result.to_lists()):
        rows = case.p[b, : len(tokens)]
        assert tokens == sample_rows(rows, uniforms=u[b, : len(tokens)]).tolist()
        matches = [x == y for x, y in zip(case.ids[b, : case.num_draft[b]], tokens, strict=False)]
        assert sum(np.cumprod(matches)) == len(tokens) - 1


# Layouts


@pytest.mark.parametrize("rule", PLAIN_RULES)
@pytest.mark.parametrize("law", ["dense", "sparse", "none", "mapped", "greedy"])
@pytest.mark.parametrize(("B", "K", "V"), SHAPES)
def test_packed_and_padded_are_one(backend, case_of, rule, law, B, K, V):
    case = case_of(B, K, V)
    valid = np.arange(K) < case.num_draft[:, None]
    uniforms = case.uniforms()
    options = {"rule": rule, "backend": backend, "on_bad_row": "status"}
    q, packed_q = case.q, case.q[valid]
    if law == "sparse":
        listed = np.broadcast_to(np.arange(V), q.shape)
        q, packed_q = SparseProbs(listed, q), SparseProbs(listed[valid], packed_q)
    elif law == "none":
        q = packed_q = None
    elif law == "mapped":
        options["draft_to_target"] = np.random.default_rng(0).permutation(V)
    elif law == "greedy":
        options["greedy"] = np.arange(B) % 2 == 0
    padded = verify(case.ids, q, case.p, case.num_draft, uniforms=uniforms, **options)
    ids, _, p, offsets = case.packed()
    packed_uniforms = uniforms[0][valid], uniforms[1]
    packed = verify_packed(ids, packed_q, p, offsets, uniforms=packed_uniforms, **options)
    longest = int(case.num_draft.max(initial=0))
    assert packed.token_ids.shape == (B, longest + 1)
    np.testing.assert_array_equal(packed.token_ids, padded.token_ids[:, : longest + 1])
    assert (padded.token_ids[:, longest + 1 :] == -1).all()
    for name in ("num_emitted", "num_accepted", "status", "num_draft"):
        np.testing.assert_array_equal(getattr(packed, name), getattr(padded, name))


def test_vllms_offsets_lack_the_leading_zero(backend, case):
    ids, q, p, offsets = case.packed()
    rng = np.random.default_rng
    expected = verify_packed(ids, q, p, offsets, rng(0), backend=backend)
    result = verify_packed(ids, q, p, cu_num_draft_tokens=offsets[1:], rng=rng(0), backend=backend)
    assert_same(result, expected)


def test_packed_without_rows(backend):
    p = np.zeros((0, 5))
    for offsets in ({"cu_num_draft": [0]}, {"cu_num_draft_tokens": np.zeros(0, int)}):
        rng = np.random.default_rng(0)
        result = verify_packed(np.zeros(0, int), None, p, rng=rng, backend=backend, **offsets)
        assert (result.token_ids.shape, result.num_emitted.shape) == ((0, 1), (0,))


@pytest.mark.parametrize(
    ("offsets", "complaint"),
    [
        ({}, "neither"),
        ({"cu_num_draft": [0, 2, 3], "cu_num_draft_tokens": [2, 3]}, "both"),
        ({"cu_num_draft": [2, 3]}, "entry 0: found 2; wanted 0"),
        ({"cu_num_draft": []}, "entry 0"),
        ({"cu_num_draft": [0, 3, 2, 3]}, "row 1: found 2 after 3"),
        ({"cu_num_draft": [0, -1, 3]}, "row 0: found -1 after 0"),
        ({"cu_num_draft_tokens": [-1, 3]}, "row 0: found -1 after 0"),
        ({"cu_num_draft": [0, 2, 4]}, "found 4; wanted 3"),
        ({"cu_num_draft": [0, 2]}, "found 2; wanted 3"),
        ({"cu_num_draft": [0, 1, 2, 3]}, "target_probs"),
    ],
)
def test_offsets_that_do_not_fit_are_refused(offsets, complaint):
    p = np.full((5, 4), 0.25)
    with pytest.raises(ValueError, match=re.escape(complaint)):
        verify_packed([0, 1, 2], None, p, rng=np.random.default_rng(0), **offsets)


def test_a_sparse_law_is_mapped_as_well(backend, case):
    id_map = np.random.default_rng(0).permutation(11)
    listed = np.broadcast_to(np.arange(11), case.q.shape)
    options = {"uniforms": case.uniforms(), "draft_to_target": id_map, "backend": backend}
    expected = verify(*case, **options)
    sparse = SparseProbs(listed, case.q)
    assert_same(verify(case.ids, sparse, case.p, case.num_draft, **options), expected)


def test_the_usual_result_survives_a_copy_and_a_pickle(case, backend):
    result = verify(*case, np.random.default_rng(0), backend=backend)
    for twin in (copy.copy(result), pickle.loads(pickle.dumps(result)), result._replace()):
        assert type(twin) is type(result)
        assert twin.backend == backend
        assert (twin.trace, twin.state, twin.logprobs, twin.acceptance) == (None,) * 4
        for name in ("token_ids", "num_emitted", "num_draft", "status"):
            np.testing.assert_array_equal(getattr(twin, name), getattr(result, name))
