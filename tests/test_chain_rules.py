"""Block, greedy block and Gumbel verification: what the facade promises, on each backend."""

# mypy: no-check-untyped-defs
from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftproof import (
    RULES,
    BackendUnavailableError,
    RowStatus,
    SparseProbs,
    available_backends,
    noise,
    verify,
    verify_greedy,
    verify_logits,
    verify_packed,
)
from draftproof.reference.block import block
from draftproof.reference.greedy_block import greedy_block, state_after
from tests.test_verify_property import assert_equal, batches, small_vocabularies

NEW = [rule for rule in RULES if rule not in ("token", "exact-match")]
LEVELS = ["touched", "full", "off"]


@pytest.fixture(params=available_backends())
def backend(request):
    return request.param


@pytest.fixture(params=NEW)
def rule(request):
    return request.param


def backends_of(rule):
    return [backend for backend in RULES[rule].kernels if backend in available_backends()]


def noise_of(rule, uniforms):
    """The call's randomness: its uniforms, or seeds made of them."""
    if RULES[rule].noise != "keys":
        return {"uniforms": uniforms}
    bits = np.nan_to_num(uniforms[1]) * 2.0**52
    return {"seeds": np.abs(bits).astype(np.uint64), "positions": np.arange(len(bits)) * 3}


def assert_same(result, expected):
    assert_equal([result, expected])
    if expected.state is not None:
        np.testing.assert_array_equal(result.state.remaining, expected.state.remaining)
        np.testing.assert_array_equal(result.state.factor, expected.state.factor)


def run(rule, batch, backend, **options):
    ids, q, p, lengths, uniforms = batch
    options = {"on_bad_row": "status", **options}
    return verify(
        ids, q, p, lengths, **noise_of(rule, uniforms), rule=rule, backend=backend, **options
    )


# Backends


@given(batch=batches(), validate=st.sampled_from(LEVELS), rule=st.sampled_from(NEW))
def test_every_backend_says_the_same(batch, validate, rule):
    results = [run(rule, batch, backend, validate=validate) for backend in backends_of(rule)]
    for result in results:
        assert_same(result, results[-1])


@given(batch=batches(), data=st.data())
def test_every_backend_says_the_same_in_later_rounds(batch, data):
    """Also with more drafts than the state asks for, and other laws than the round before had."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    ids, q, p, lengths, uniforms = batch
    state = run("greedy-block", batch, "numpy").state
    for _ in range(2):
        lengths = rng.integers(state.num_open, ids.shape[1] + 1)
        order = rng.permutation(ids.shape[1])
        ids, q, p = ids[:, order], q[:, order], p[:, [*order, ids.shape[1]]]
        later = ids, q, p, lengths, (rng.random(ids.shape), uniforms[1])
        results = [run("greedy-block", later, b, state=state) for b in backends_of("greedy-block")]
        for result in results:
            assert_same(result, results[-1])
        state = results[-1].state


def test_auto_takes_the_fastest_that_there_is(rule, case_of):
    case = case_of(3, 2, 5)
    result = verify(*case, **noise_of(rule, case.uniforms()), rule=rule)
    assert result.backend == backends_of(rule)[0]


def test_a_backend_without_a_kernel_names_those_that_have_one(case_of):
    case = case_of(3, 2, 5)
    options = {"uniforms": case.uniforms(), "rule": "greedy-block", "backend": "native"}
    with pytest.raises(BackendUnavailableError, match="'auto', 'numpy', 'reference'") as caught:
        verify_logits(case.ids, None, np.zeros_like(case.p), case.num_draft, **options)
    assert "no kernel for rule 'greedy-block'" in str(caught.value)


def test_the_reference_is_what_runs(case_of):
    """The facade against the formula itself, row by row."""
    case = case_of(40, 4, 9)
    accept, final = case.uniforms()
    blocks = verify(*case, uniforms=(accept, final), rule="block")
    greedy = verify(*case, uniforms=(accept, final), rule="greedy-block")
    for b, g in enumerate(case.num_draft):
        arguments = case.ids[b, :g].tolist(), [*case.q[b, :g]], [*case.p[b, : g + 1]]
        for rule, result in ((block, blocks), (greedy_block, greedy)):
            tau, last, _ = rule(*arguments, accept[b, :g], final[b])
            expected = [*case.ids[b, :tau], last]
            assert result.token_ids[b, : result.num_emitted[b]].tolist() == expected
        emitted = greedy_block(*arguments, accept[b, :g], final[b])
        assert greedy.state.row(b) == state_after(*arguments, (), emitted)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize(
    ("g", "cells", "mean_accepted"), [(0, [], 0), (1, [4], "3/4"), (2, [15, 16], "11/8")]
)
def test_the_joint_law_of_block_is_exactly_the_targets(
    l4, joint_law, target_law, dtype, g, cells, mean_accepted
):
    """On L4 the tests' thresholds are multiples of 1/15 and 1/16, those of last draws of 1/8."""

    def call(ids, q, p, uniforms):
        q, p = q.astype(dtype), p.astype(dtype)
        return verify(ids, q, p, uniforms=uniforms, rule="block", backend="numpy")

    integral = joint_law(call, l4, g, cells, 8)
    assert integral.law == target_law(l4.P, g + 1)
    assert integral.mean_accepted == Fraction(mean_accepted)


# Layouts and laws


def test_the_packed_layout_is_the_padded_one(rule, backend, case_of):
    case = case_of(30, 5, 12)
    accept, final = case.uniforms()
    valid = np.arange(5) < case.num_draft[:, None]
    options = {"rule": rule, "backend": backend}
    expected = verify(*case, **noise_of(rule, (accept, final)), **options)
    packed = verify_packed(*case.packed(), **noise_of(rule, (accept[valid], final)), **options)
    longest = case.num_draft.max()
    assert (expected.token_ids[:, longest + 1 :] == -1).all()
    assert_same(packed, expected._replace(token_ids=expected.token_ids[:, : longest + 1]))


@given(batch=batches(small_vocabularies), rule=st.sampled_from(NEW), data=st.data())
def test_other_spellings_of_a_draft_law(batch, rule, data):
    ids, q, p, lengths, uniforms = batch
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    V = p.shape[-1]
    dense = run(rule, batch, "numpy")
    every_id = np.broadcast_to(rng.permutation(V), q.shape)
    listed = SparseProbs(every_id, np.take_along_axis(q, every_id, axis=-1))
    sparse = run(rule, (ids, listed, p, lengths, uniforms), "numpy", validate="off")
    decided = dense.num_emitted > 0
    np.testing.assert_array_equal(sparse.token_ids[decided], dense.token_ids[decided])

    order = rng.permutation(V)
    place = np.argsort(order)
    mapped = ids % V, q[..., order], p, lengths, uniforms
    result = run(rule, (place[mapped[0]], *mapped[1:]), "numpy", draft_to_target=order,
                 validate="off")  # fmt: skip
    np.testing.assert_array_equal(result.token_ids[decided], dense.token_ids[decided])

    point = np.eye(V)[ids]
    one_hot = [run(rule, (ids, law, p, lengths, uniforms), "numpy") for law in (None, point)]
    assert_same(*one_hot)


def test_a_narrow_law_is_a_wide_one_with_zeros(rule, backend, case_of):
    case = case_of(30, 3, 8, near=0.0)
    wide_p = np.concatenate([case.p / 2, case.p / 2], axis=-1)
    wide_q = np.concatenate([case.q, case.q * 0], axis=-1)
    options = {"rule": rule, "backend": backend, **noise_of(rule, case.uniforms())}
    narrow = verify(case.ids, case.q, wide_p, case.num_draft, allow_narrow_draft=True, **options)
    assert_same(narrow, verify(case.ids, wide_q, wide_p, case.num_draft, **options))
    assert (narrow.token_ids >= 8).any()


def test_greedy_rows_read_no_randomness_and_leave_no_state(rule, backend, case_of):
    case = case_of(40, 4, 9)
    greedy = np.arange(40) % 2 == 0
    options = {"rule": rule, "backend": backend, "greedy": greedy}
    result = verify(*case, **noise_of(rule, case.uniforms()), **options)
    again = verify(*case, **noise_of(rule, case.uniforms(seed=1)), **options)
    expected = verify_greedy(case.ids, case.p, case.num_draft)
    np.testing.assert_array_equal(result.token_ids[greedy], expected.token_ids[greedy])
    np.testing.assert_array_equal(again.token_ids[greedy], expected.token_ids[greedy])
    if result.state is not None:
        assert result.state.num_open[~greedy].any()
        assert not result.state.num_open[greedy].any()


def test_a_row_is_the_same_alone_and_among_others(rule, backend, case_of):
    case = case_of(12, 5, 40)
    seeds, positions = np.arange(12) + 50, np.arange(12) * 7
    options = {"rule": rule, "backend": backend}
    together = verify(*case, seeds=seeds, positions=positions, **options)
    for b, g in enumerate(case.num_draft):
        one = case.ids[b : b + 1, :g], case.q[b : b + 1, :g], case.p[b : b + 1, : g + 1], [g]
        alone = verify(*one, seeds=[seeds[b]], positions=[positions[b]], **options)
        assert alone.to_lists() == [together.to_lists()[b]]


@pytest.mark.parametrize("name", ["block", "greedy-block"])
def test_the_noise_of_a_round_is_keyed_by_the_round(backend, case_of, name):
    """By the absolute position it would be lossy: a rejected round has looked at later noise."""
    case = case_of(12, 5, 40)
    seeds, positions = np.arange(12, dtype=np.uint64) + 50, np.arange(12) * 7
    accept = noise.uniform(seeds[:, None], positions[:, None], noise.Stream.ACCEPT, np.arange(5))
    final = noise.uniform(seeds, positions, noise.Stream.FINAL, 0)
    keyed = verify(*case, seeds=seeds, positions=positions, rule=name, backend=backend)
    assert_same(keyed, verify(*case, uniforms=(accept, final), rule=name, backend=backend))


# Bad input


@pytest.mark.parametrize("kind", ["dense", "sparse", "mapped", "packed"])
@pytest.mark.parametrize("level", LEVELS)
def test_the_status_of_random_damage_is_the_same_on_every_backend(case_of, rule, kind, level):
    rng = np.random.default_rng(0)
    case = case_of(150, 3, 7)
    damage = [np.nan, np.inf, -np.inf, -0.5, 0.75, 0.0, -0.0, 1e-320, 1e300]
    for law in (case.p, case.q):
        at = rng.random(law.shape) < 0.04
        law[at] = rng.choice(damage, size=at.sum())
    case.num_draft[rng.random(150) < 0.03] = rng.choice([-1, 4, 2**40])
    case.ids[rng.random((150, 3)) < 0.01] = rng.choice([-1, 7, 2**40])
    accept, final = case.uniforms()
    accept[rng.random((150, 3)) < 0.01] = rng.choice([1.0, -0.1, np.nan])
    final[rng.random(150) < 0.01] = 1.5
    options = {"rule": rule, "validate": level, "on_bad_row": "status"}
    arguments, uniforms, function = list(case), (accept, final), verify
    if kind == "sparse":
        arguments[1] = SparseProbs(rng.integers(-1, 8, size=case.q.shape), case.q)
    elif kind == "mapped":
        options["draft_to_target"] = rng.permutation(7)
    elif kind == "packed":
        case = case._replace(num_draft=np.clip(case.num_draft, 0, 3))
        arguments, function = list(case.packed()), verify_packed
        uniforms = accept[np.arange(3) < case.num_draft[:, None]], final
    noise = noise_of(rule, uniforms)
    results = [function(*arguments, **noise, backend=b, **options) for b in backends_of(rule)]
    assert len(set(results[0].status.tolist())) > (1 if level == "off" else 3)
    for result in results:
        if level != "off":
            assert_same(result, results[0])
        undecided = result.status > RowStatus.ZERO_RESIDUAL
        np.testing.assert_array_equal(result.num_emitted == 0, undecided)
        assert (result.token_ids[undecided] == -1).all()
        assert (result.token_ids < 7).all()


K, V, G = 4, 4, 3
LAW = np.array([0.25, 0.25, 0.125, 0.375])


def rows_that_keep(tau):
    """A row of 3 drafts, 4 of room: p/q = 1 at the first tau, then 1/2. Token 3 is not drafted."""
    ids = np.array([1] * tau + [2] * (K - tau))
    return ids, np.tile(LAW[[2, 1, 0, 3]], (K, 1)), np.tile(LAW, (K + 1, 1)), np.full(K, 0.9)


@pytest.mark.parametrize("name", ["block", "greedy-block"])
@pytest.mark.parametrize("tau", range(G + 1))
@pytest.mark.parametrize("argument", ["p", "q"])
def test_touched_judges_exactly_what_block_reads(backend, name, tau, argument):
    """All drafts' own numbers, and the rows from the last draft down to the last token's."""
    ids, q, p, accept = rows_that_keep(tau)
    laws = {"p": p, "q": q}
    size = laws[argument].size
    copies = {key: np.repeat(law[None], size + 1, axis=0) for key, law in laws.items()}
    copies[argument].reshape(size + 1, -1)[np.arange(size), np.arange(size)] = np.nan
    result = verify(
        np.tile(ids, (size + 1, 1)), copies["q"], copies["p"], np.full(size + 1, G),
        uniforms=(np.tile(accept, (size + 1, 1)), np.full(size + 1, 0.1)),
        rule=name, backend=backend, on_bad_row="status",
    )  # fmt: skip
    assert (result.num_accepted[-1], result.status[-1]) == (tau, 0)
    judged = np.zeros(laws[argument].shape, dtype=bool)
    judged[np.arange(G), ids[:G]] = True
    if tau < G:
        judged[tau:G] = True
    elif argument == "p":
        judged[G] = True
    np.testing.assert_array_equal(result.status[:-1].reshape(judged.shape) != 0, judged)


def test_rows_behind_an_impossible_draft_are_not_read(backend):
    p = np.array([[0.5, 0.5, 0.0], [np.nan] * 3, [np.nan] * 3, [np.nan] * 3])
    p[1, 1] = p[2, 1] = 0.5
    q = np.full((3, 3), np.nan)
    q[0], q[1, 1], q[2, 1] = 1 / 3, 0.5, 0.5
    for rule in ("block", "greedy-block"):
        result = verify([[2, 1, 1]], [q], [p], uniforms=([[0.5] * 3], [0.9]), rule=rule,
                        backend=backend)  # fmt: skip
        assert result.to_lists() == [[1]]


# Traces


def test_a_trace_weighs_the_residual_by_the_joint_ratio(backend):
    q = [[[0.5, 0.5], [0.5, 0.5]]]
    p = [[[0.25, 0.75], [1.0, 0.0], [0.5, 0.5]]]
    uniforms = [[0.1, 0.9]], [0.0]
    for rule in ("block", "greedy-block"):
        trace = verify([[0, 1]], q, p, uniforms=uniforms, rule=rule, backend=backend,
                       return_trace=True).trace  # fmt: skip
        assert trace.ratios.tolist() == [[0.5, 0.0]]
        assert trace.residual_mass.tolist() == [0.25]  # tau = 0: (.25 - .5, .75 - .5)+
        assert trace.accept_mask.tolist() == [[False, False]]
    weighed = verify([[0, 0]], q, p, uniforms=([[0.0, 0.99], [0.0]][:1], [0.0]), rule="block",
                     backend=backend, return_trace=True)  # fmt: skip
    assert weighed.num_accepted.tolist() == [2]  # w = 1/2, then 1


def test_a_trace_of_gumbel_has_no_uniforms(backend, case_of):
    case = case_of(6, 3, 5)
    trace = verify(*case, seeds=np.arange(6), positions=np.zeros(6, dtype=int), rule="gumbel",
                   backend=backend, return_trace=True).trace  # fmt: skip
    for numbers in (trace.ratios, trace.accept_uniforms, trace.final_uniforms):
        assert np.isnan(numbers).all()
