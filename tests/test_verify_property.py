"""The token rule over everything a caller may pass: one answer, the right one, on every backend."""

# mypy: no-check-untyped-defs
from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftproof import RowStatus, SparseProbs, available_backends, verify

BACKENDS = available_backends()
DTYPES = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16]
BELOW_ONE = np.nextafter(1.0, 0.0)

small_vocabularies = st.integers(1, 70)
block_edges = st.sampled_from([127, 128, 129, 255, 256, 257, 1023, 1024, 1025, 2047, 2048, 2049])
vocabularies = small_vocabularies | block_edges


def normalised(weights):
    return weights / weights.sum(axis=-1, keepdims=True)


def smooth(rng, shape):
    return normalised(rng.exponential(size=shape))


def peaked(rng, shape):
    return normalised(rng.exponential(size=shape) ** 8 + 1e-30)


def holey(rng, shape):
    weights = rng.exponential(size=shape) * (rng.random(shape) < 0.3)
    np.put_along_axis(weights, rng.integers(shape[-1], size=(*shape[:-1], 1)), 1.0, axis=-1)
    return normalised(weights)


def tied(rng, shape):
    return normalised(rng.integers(1, 3, size=shape).astype(np.float64))


def one_hot(rng, shape):
    return np.eye(shape[-1])[rng.integers(shape[-1], size=shape[:-1])]


def denormal(rng, shape):
    tiny = rng.choice([5e-324, 2.5e-310, 1e-45, 1e-40, 6e-8, 0.0], size=shape)
    np.put_along_axis(tiny, rng.integers(shape[-1], size=(*shape[:-1], 1)), 1.0, axis=-1)
    return normalised(tiny)


FLAVOURS = [smooth, peaked, holey, tied, one_hot, denormal]


def close_to(p, dtype, rng):
    """q equal to p but for one unit in the last place, here and there."""
    nudged = np.nextafter(p, p.dtype.type(rng.integers(2) * 2))
    return np.where(rng.random(p.shape) < 0.3, nudged, p).astype(dtype)


def thresholds(ids, q, p, accept, final, rng):
    """Uniforms that sit on the edges: p/q for the accept tests, C(v)/C(V-1) for the last draw."""
    B, K = ids.shape
    p64, q64 = p.astype(np.float64), q.astype(np.float64)
    with np.errstate(all="ignore"):
        at = (np.arange(B)[:, None], np.arange(K), ids)
        ratio = p64[at] / q64[at]
        usable = np.isfinite(ratio) & (ratio < 1)
        accept[:] = np.where(usable, ratio, accept)
        for b in range(B):
            row = rng.integers(K + 1)
            weights = p64[b, row] if row == K else np.maximum(0, p64[b, row] - q64[b, row])
            edges = np.cumsum(weights) / weights.sum()
            edges = edges[edges < 1]
            final[b] = rng.choice(edges) if len(edges) else final[b]
    return accept, final


@st.composite
def batches(draw, vocabulary=vocabularies):
    """(ids, q, p, num_draft, uniforms): dense laws in one dtype, honest and dishonest drafts."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    B, K, V = draw(st.integers(0, 4)), draw(st.integers(0, 17)), draw(vocabulary)
    dtype = draw(st.sampled_from(DTYPES))
    p = draw(st.sampled_from(FLAVOURS))(rng, (B, K + 1, V)).astype(dtype)
    kind = draw(st.sampled_from(["near", "equal", *FLAVOURS]))
    if kind == "equal":
        q = p[:, :K].copy()
    elif kind == "near":
        q = close_to(p[:, :K], dtype, rng)
    else:
        q = kind(rng, (B, K, V)).astype(dtype)
    ids = rng.integers(V, size=(B, K))
    if draw(st.booleans()):  # drafts the two laws like, so that rows go deep
        ids = np.where(rng.random((B, K)) < 0.9, np.argmax(p[:, :K], axis=-1), ids)
    lengths = rng.integers(0, K + 1, size=B) if draw(st.booleans()) else np.full(B, K)
    accept, final = rng.random((B, K)), rng.random(B)
    match draw(st.sampled_from(["random", "zero", "below one", "edges"])):
        case "zero":
            accept[:], final[:] = 0, 0
        case "below one":
            final[:] = BELOW_ONE
            accept[rng.random((B, K)) < 0.5] = BELOW_ONE
        case "edges":
            accept, final = thresholds(ids, q, p, accept, final, rng)
    return ids, q, p, lengths, (accept, final)


def run(batch, backend, **options):
    ids, q, p, lengths, uniforms = batch
    options = {"on_bad_row": "status", **options}
    return verify(ids, q, p, lengths, uniforms=uniforms, backend=backend, **options)


def assert_equal(results):
    first, *others = results
    for other in others:
        np.testing.assert_array_equal(other.token_ids, first.token_ids)
        np.testing.assert_array_equal(other.num_emitted, first.num_emitted)
        np.testing.assert_array_equal(other.status, first.status)


class Replay:
    """What a straightforward verifier asks of its generator, from explicit uniforms."""

    def __init__(self, uniforms):
        self.numbers = [uniforms[0], uniforms[1][:, None]]

    def random(self, shape):
        numbers = self.numbers.pop(0)
        assert numbers.shape == shape
        return numbers


@given(batch=batches(), validate=st.sampled_from(["touched", "full", "off"]))
def test_every_backend_says_the_same(batch, validate):
    assert_equal([run(batch, backend, validate=validate) for backend in BACKENDS])


@given(batch=batches(), validate=st.sampled_from(["touched", "full", "off"]))
def test_every_backend_says_the_same_by_exact_match(batch, validate):
    options = {"validate": validate, "rule": "exact-match"}
    assert_equal([run(batch, backend, **options) for backend in BACKENDS])


@given(batch=batches())
def test_it_equals_a_straightforward_verifier(backend, oracle, batch):
    ids, q, p, lengths, uniforms = batch
    result = run(batch, backend)
    expected = oracle(ids, q, p, lengths, Replay(uniforms))
    compared = expected.clear & (result.status == 0)
    np.testing.assert_array_equal(result.token_ids[compared], expected.token_ids[compared])
    np.testing.assert_array_equal(result.num_emitted[compared], expected.num_emitted[compared])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("V", [2, 33, 1025, 50_257])
def test_it_equals_a_straightforward_verifier_on_nearly_every_row(
    backend, oracle, case_of, dtype, V
):
    """The comparison above would be empty if its rows were bad or unclear: here none may be."""
    case = case_of(40, 3, V)
    p, q = case.p.astype(dtype), case.q.astype(dtype)
    result = verify(case.ids, q, p, case.num_draft, np.random.default_rng(5), backend=backend)
    expected = oracle(case.ids, q, p, case.num_draft, np.random.default_rng(5))
    assert expected.clear.sum() >= 38
    np.testing.assert_array_equal(
        result.token_ids[expected.clear], expected.token_ids[expected.clear]
    )


@given(batch=batches())
def test_no_impossible_token_comes_out(backend, batch):
    """Also at u = 0, at the largest u below 1 and exactly on the thresholds."""
    ids, q, p, lengths, _ = batch
    result = run(batch, backend)
    p, q = p.astype(np.float64), q.astype(np.float64)
    for b in np.flatnonzero(result.num_emitted):
        g, tau = lengths[b], result.num_accepted[b]
        tokens = result.token_ids[b, : tau + 1]
        assert (result.token_ids[b, tau + 1 :] == -1).all()
        np.testing.assert_array_equal(tokens[:tau], ids[b, :tau])
        assert ((tokens >= 0) & (tokens < p.shape[-1])).all()
        assert (p[b, np.arange(tau), tokens[:tau]] > 0).all()
        residual = np.maximum(0, p[b, tau] - q[b, tau]) if tau < g else p[b, tau]
        without_mass = residual.sum() == 0
        assert (result.status[b] == RowStatus.ZERO_RESIDUAL) == without_mass
        assert (p[b, tau] if without_mass else residual)[tokens[tau]] > 0


@given(batch=batches())
def test_where_p_is_at_least_q_the_draft_is_accepted_whatever_the_uniform(backend, batch):
    ids, _, p, lengths, (accept, final) = batch
    p_at_drafts = np.take_along_axis(p[:, :-1].astype(np.float64), ids[..., None], axis=-1)
    possible = (p_at_drafts[..., 0] > 0).cumprod(axis=1).astype(bool)
    valid = np.arange(ids.shape[1]) < lengths[:, None]
    accept = np.full_like(accept, BELOW_ONE)
    result = run((ids, p[:, :-1], p, lengths, (accept, final)), backend)
    decided = result.num_emitted > 0
    np.testing.assert_array_equal(result.num_accepted[decided], (possible & valid).sum(1)[decided])


sparse_widths = st.integers(1, 6)


@given(batch=batches(small_vocabularies), M=sparse_widths, data=st.data())
def test_a_sparse_law_is_the_dense_law_it_lists(backend, batch, M, data):
    """Also with its ids unsorted, padded with -1 in the middle, and listed twice."""
    ids, q, p, lengths, uniforms = batch
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    V = p.shape[-1]
    listed = rng.integers(-1, V, size=(*ids.shape, M))
    listed[..., 0] = ids  # the drafted token has some mass
    probs = rng.exponential(size=listed.shape) * (listed >= 0)
    probs = normalised(probs).astype(q.dtype)
    dense = np.zeros((*ids.shape, V))
    where = np.indices(listed.shape)
    kept = listed >= 0
    np.add.at(dense, (where[0][kept], where[1][kept], listed[kept]), probs[kept].astype(np.float64))
    garbage = np.where(kept, probs, np.array(np.nan, dtype=q.dtype))
    result = run((ids, SparseProbs(listed, garbage), p, lengths, uniforms), backend)
    exact = run((ids, dense, p, lengths, uniforms), backend, validate="off")
    decided = result.num_emitted > 0
    np.testing.assert_array_equal(result.token_ids[decided], exact.token_ids[decided])
    assert_equal(
        run((ids, SparseProbs(listed, garbage), p, lengths, uniforms), name) for name in BACKENDS
    )


@given(batch=batches(small_vocabularies))
def test_no_draft_law_is_a_point_mass_on_the_draft(backend, batch):
    ids, _, p, lengths, uniforms = batch
    point = np.eye(p.shape[-1])[ids]
    assert_equal(
        [
            run((ids, None, p, lengths, uniforms), backend),
            run((ids, point, p, lengths, uniforms), backend),
        ]
    )


@given(batch=batches(small_vocabularies), extra=st.integers(1, 40))
def test_a_narrow_law_is_a_wide_law_with_zeros(backend, batch, extra):
    ids, q, p, lengths, uniforms = batch
    wide_p = np.concatenate([p / 2, p[..., :1].repeat(extra, axis=-1) * 0], axis=-1)
    wide_p[..., -1] = 0.5  # an id that the drafter does not know holds half of the mass
    wide_p = wide_p.astype(p.dtype)
    wide_q = np.concatenate([q, np.zeros((*ids.shape, extra), dtype=q.dtype)], axis=-1)
    result = run((ids, q, wide_p, lengths, uniforms), backend, allow_narrow_draft=True)
    wide = run((ids, wide_q, wide_p, lengths, uniforms), backend)
    # A longer row may be further from mass 1, so a bad row need not be bad in both.
    decided = (result.num_emitted > 0) & (wide.num_emitted > 0)
    np.testing.assert_array_equal(result.token_ids[decided], wide.token_ids[decided])
    narrow = (ids, q, wide_p, lengths, uniforms)
    assert_equal(run(narrow, name, allow_narrow_draft=True) for name in BACKENDS)


@given(batch=batches(small_vocabularies), data=st.data())
def test_a_mapped_law_is_the_law_with_its_columns_moved(backend, batch, data):
    ids, q, p, lengths, uniforms = batch
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    V = p.shape[-1]
    id_map = rng.permutation(V)
    W = data.draw(st.integers(1, V))
    drafter_ids, drafter_q = ids % W, np.array(q[..., :W], dtype=np.float64)
    drafter_q[..., 0] += 1 - drafter_q.sum(axis=-1)
    moved = np.zeros((*ids.shape, V))
    moved[..., id_map[:W]] = drafter_q
    mapped = (drafter_ids, drafter_q, p, lengths, uniforms)
    result = run(mapped, backend, draft_to_target=id_map[:W])
    plain = run((id_map[drafter_ids], moved, p, lengths, uniforms), backend)
    decided = (result.num_emitted > 0) & (plain.num_emitted > 0)
    np.testing.assert_array_equal(result.token_ids[decided], plain.token_ids[decided])
    assert_equal(run(mapped, name, draft_to_target=id_map[:W]) for name in BACKENDS)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("g", "mean_accepted"), [(0, "0"), (1, "3/4"), (2, "21/16")])
def test_the_joint_law_is_exactly_the_targets(
    backend, l4, joint_law, target_law, dtype, g, mean_accepted
):
    """4 x 4 x 8 midpoints integrate the token rule on this world without error."""

    def call(ids, q, p, uniforms):
        return verify(ids, q.astype(dtype), p.astype(dtype), uniforms=uniforms, backend=backend)

    integral = joint_law(call, l4, g, 4, 8)
    assert integral.law == target_law(l4.P, g + 1)
    assert str(integral.mean_accepted) == mean_accepted


def test_the_joint_law_is_exact_in_a_ragged_batch_of_two_worlds(backend, l4, joint_law, target_law):
    """Every second row belongs to another world and has one draft; its law is right as well."""
    other = type(l4)(l4.P[::-1], l4.Q[::-1])

    def call(ids, q, p, uniforms):
        B, K, V = q.shape
        start = np.array(other.P[0], dtype=float), np.array(other.Q[0], dtype=float)
        p2, q2 = np.full((2 * B, K + 1, V), np.nan), np.full((2 * B, K, V), np.nan)
        ids2 = np.full((2 * B, K), -1)
        ids2[::2], q2[::2], p2[::2] = ids, q, p
        ids2[1::2, 0], q2[1::2, 0], p2[1::2, 0] = ids[:, 0], start[1], start[0]
        p2[1::2, 1] = np.array(other.P, dtype=float)[ids[:, 0]]
        lengths = np.tile([K, 1], B)
        doubled = [np.repeat(u, 2, axis=0) for u in uniforms]
        result = verify(ids2, q2, p2, lengths, uniforms=doubled, backend=backend)
        everything.append(result)
        return type(result)(
            result.token_ids[::2], result.num_emitted[::2], result.num_draft[::2],
            result.status[::2], result.backend,
        )  # fmt: skip

    everything = []
    assert joint_law(call, l4, 2, 4, 8).law == target_law(l4.P, 3)
    (both,) = everything
    assert (both.num_emitted[1::2] <= 2).all()
    assert (both.token_ids[1::2, 2] == -1).all()


def test_the_joint_law_by_exact_match_is_the_targets_whatever_the_drafts(
    backend, l4, joint_law, target_law
):
    def call(ids, q, p, uniforms):
        return verify(ids, None, p, uniforms=uniforms, rule="exact-match", backend=backend)

    integral = joint_law(call, l4, 2, 8, 8)
    assert integral.law == target_law(l4.P, 3)
    first = sum(p * q for p, q in zip(l4.P[0], l4.Q[0], strict=True))
    assert integral.mean_accepted > first  # the second draft counts too


@pytest.mark.parametrize("drafted", range(4))
def test_the_joint_law_of_a_deterministic_draft_is_the_targets(
    backend, l4, joint_law, target_law, drafted
):
    """draft_probs=None: accepted with probability P(x); the residual is P without x."""
    always = [[int(token == drafted) for token in range(4)]] * 4

    def call(ids, q, p, uniforms):
        return verify(ids, None, p, uniforms=uniforms, backend=backend)

    residual_eighths = int(8 * (1 - l4.P[0][drafted]))
    integral = joint_law(call, l4, 1, 8, math.lcm(8, residual_eighths), draft=always)
    assert integral.law == target_law(l4.P, 2)
    assert integral.mean_accepted == l4.P[0][drafted]


def test_thirds_integrate_too(backend, joint_law, target_law, l4):
    """No number of this world is exact in binary."""
    third = Fraction(1, 3)
    toy = type(l4)([[third, 2 * third]] * 2, [[2 * third, third]] * 2)

    def call(ids, q, p, uniforms):
        return verify(ids, q, p, uniforms=uniforms, backend=backend)

    integral = joint_law(call, toy, 2, 2, 3)
    assert integral.law == target_law(toy.P, 3)
    assert integral.mean_accepted == Fraction(10, 9)


def test_an_exact_threshold_rejects_and_the_next_number_below_accepts(backend):
    """u * q < p is strict: u = p / q belongs to the rejections."""
    p, q = np.array([0.25, 0.75]), np.array([0.5, 0.5])
    coins = [0.5, np.nextafter(0.5, 0), np.nextafter(0.5, 1)]
    result = verify(
        [[0]] * 3, [[q]] * 3, [[p, p]] * 3, uniforms=([[u] for u in coins], [0.9] * 3),
        backend=backend,
    )  # fmt: skip
    assert result.num_accepted.tolist() == [0, 1, 0]


def test_a_lattice_of_edges_gives_each_token_its_own_cell(backend):
    """u just above C(v-1) and just below C(v) give v, where the sums are exact."""
    p = np.array([2, 0, 3, 1, 0, 2, 0]) / 8
    cells = {0: (0, 0.25), 2: (0.25, 0.625), 3: (0.625, 0.75), 5: (0.75, 1)}
    for token, (low, high) in cells.items():
        inside = [np.nextafter(low, 1), (low + high) / 2, np.nextafter(high, 0)]
        uniforms = (np.zeros((3, 0)), inside)
        result = verify(np.zeros((3, 0), int), None, [[p]] * 3, uniforms=uniforms, backend=backend)
        assert result.token_ids[:, 0].tolist() == [token] * 3


# Other vocabularies


def test_a_narrow_law_needs_permission(case_of):
    case = case_of(3, 2, 8, ragged=False)
    p = np.pad(case.p, ((0, 0), (0, 0), (0, 3)))
    with pytest.raises(ValueError, match=r"draft_probs.*8.*11.*allow_narrow_draft"):
        verify(case.ids, case.q, p, None, np.random.default_rng(0))


@pytest.mark.parametrize("permission", [{}, {"allow_narrow_draft": True}])
def test_a_wide_law_is_refused(case_of, permission):
    case = case_of(3, 2, 8, ragged=False)
    with pytest.raises(ValueError, match="draft_probs"):
        verify(case.ids, case.q, case.p[..., :5], None, np.random.default_rng(0), **permission)


def test_a_draft_outside_a_narrow_law_has_q_zero(backend):
    """It cannot have come from q: accepted iff p(x) > 0, and refused by validate="full"."""
    q, p = [0.5, 0.5], [0.25, 0.5, 0.25, 0.0]
    arguments = ([[2], [3]], [[q]] * 2, [[p, p]] * 2)
    options = {"allow_narrow_draft": True, "backend": backend, "on_bad_row": "status"}
    uniforms = ([[0.99]] * 2, [0.5] * 2)
    result = verify(*arguments, uniforms=uniforms, **options)
    assert result.num_accepted.tolist() == [1, 0]
    full = verify(*arguments, uniforms=uniforms, validate="full", **options)
    assert full.num_emitted.tolist() == [0, 0]
    assert full.status.tolist() == [RowStatus.DRAFT_ZERO] * 2


def test_the_targets_mass_on_absent_ids_stays_reachable(backend):
    q, p = [0.5, 0.5], [0.25, 0.25, 0.0, 0.5]
    arguments = ([[0]], [[q]], [[p, p]], None)
    options = {"allow_narrow_draft": True, "backend": backend}
    for u in (0.0, 0.5, np.nextafter(1, 0)):
        result = verify(*arguments, uniforms=([[0.75]], [u]), **options)
        assert result.to_lists() == [[3]]


def test_a_map_translates_drafts_and_columns_together(backend):
    id_map = [4, 0, 3]
    q, p = [0.5, 0.25, 0.25], [0.25, 0.25, 0.0, 0.25, 0.25]
    arguments = ([[0], [1], [2]], [[q]] * 3, [[p, p]] * 3)
    options = {"draft_to_target": id_map, "backend": backend}
    result = verify(*arguments, uniforms=([[0.75], [0.75], [0.75]], [0.3] * 3), **options)
    # Draft id 0 is token 4, with ratio 1/2: rejected, and only token 1 is left in the residual.
    assert result.to_lists() == [[1], [0, 1], [3, 1]]


@pytest.mark.parametrize(
    ("id_map", "complaint"),
    [
        ([0, 1, 5], "draft id 2: found 5"),
        ([0, -1, 2], "draft id 1: found -1"),
        ([0, 1, 1], "target id 1"),
        ([0, 1], "draft_probs"),
        ([0, 1, 2, 3], "draft_probs"),
    ],
)
def test_a_map_that_is_none_is_refused(id_map, complaint):
    p = np.full((1, 2, 5), 0.2)
    q = np.full((1, 1, 3), 1 / 3)
    with pytest.raises(ValueError, match=complaint):
        verify([[0]], q, p, None, np.random.default_rng(0), draft_to_target=id_map)
