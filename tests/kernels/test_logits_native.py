"""The kernel from logits against the float64 definition, for equal uniforms."""

# mypy: no-check-untyped-defs
import numpy as np
import pytest

from draftproof import DraftLogits, SamplingParams, SparseProbs, available_backends
from draftproof.logits.verify import verify_logits, verify_logits_packed

pytestmark = pytest.mark.skipif(
    "native" not in available_backends(), reason="the native kernel is not built"
)

RULES = ("token", "exact-match", "block")
ORDERS = ("standard", "transformers", "vllm", "sglang", "llama.cpp")
SIZES = (2, 5, 63, 64, 65, 255, 257, 511, 512, 513, 1025, 2049)


def rows(rng, shape, kind):
    """Logits of one kind: each kind is a way in which a filter or a sum may go wrong."""
    z = rng.normal(size=shape) * rng.choice([0.01, 1, 4])
    if kind == "flat":
        z[:] = 0
    elif kind == "ties":
        z = np.round(z)
    elif kind == "plateau":
        z = np.where(rng.random(shape) < 0.5, 0.0, 1.0)
    elif kind == "peaked":
        z *= 8
    elif kind == "one-hot":
        z[..., rng.integers(shape[-1])] = 1e4
    elif kind == "banned":
        z[rng.random(shape) < 0.3] = -np.inf
        z[..., rng.integers(shape[-1])] = 1
    elif kind == "huge":
        z *= 1e4
    elif kind == "denormal":
        z = np.where(rng.random(shape) < 0.5, z - 740, z)
        z[..., 0] = 0
    return z


KINDS = ("normal", "flat", "ties", "plateau", "peaked", "one-hot", "banned", "huge", "denormal")


def parameters(rng, V):
    """Parameters at random, each off as often as not."""
    order = str(rng.choice(ORDERS))
    chosen = {
        "temperature": float(rng.choice([1, 0.7, 2, 0, 0.05])),
        "top_k": int(rng.integers(1, max(2, min(V, rng.choice([4, 60, V]))))),
        "top_p": float(rng.choice([0.9, 0.5, 0.1, 0.999])),
        "min_p": float(rng.choice([0.1, 0.01, 0.5, 1])),
        "typical_p": float(rng.choice([0.9, 0.3])),
        "logit_bias": {int(token): float(rng.normal() * 3) for token in rng.integers(0, V, 3)},
        "allowed_tokens": rng.random(V) < 0.7,
        "repetition_penalty": 1.3,
        "ties": str(rng.choice(["lowest-id", "keep-top-k", "keep"])),
    }
    if order in ("vllm", "sglang"):
        del chosen["typical_p"]
    kept = {name: value for name, value in chosen.items() if rng.random() < 0.4}
    return SamplingParams(order=order, **kept)


def cast(z, dtype):
    if dtype == "bfloat16":
        return z.astype(pytest.importorskip("ml_dtypes").bfloat16)
    largest = np.finfo(dtype).max
    return np.where(z > -np.inf, np.clip(z, -largest, largest), z).astype(dtype)


def softmax(z):
    w = np.exp(z - z.max(axis=-1, keepdims=True))
    return w / w.sum(axis=-1, keepdims=True)


def drafter(rng, q, kind):
    """The drafter's law of one kind, from logits in float64."""
    if kind == "none":
        return None
    if kind == "logits":
        return DraftLogits(q.astype(np.float32))
    law = softmax(q)
    if kind == "probabilities":
        return law.astype(rng.choice(["float32", "float64"]))
    M = min(q.shape[-1], 5)
    ids = np.argsort(-q, axis=-1)[..., :M]
    kept = np.take_along_axis(law, ids, axis=-1)
    return SparseProbs(ids, kept / kept.sum(axis=-1, keepdims=True))


def same(ours, reference):
    """Tokens, lengths and statuses."""
    np.testing.assert_array_equal(ours.status, reference.status)
    np.testing.assert_array_equal(ours.num_emitted, reference.num_emitted)
    np.testing.assert_array_equal(ours.token_ids, reference.token_ids)


def both(*arguments, call=verify_logits, **keywords):
    ours = call(*arguments, backend="native", **keywords)
    same(ours, call(*arguments, backend="reference", **keywords))
    return ours


@pytest.mark.parametrize("V", SIZES)
def test_tokens_are_the_definitions(V):
    rng = np.random.default_rng([V, 1])
    for turn in range(18):
        B, K = 2, int(rng.integers(0, 4))
        z = rows(rng, (B, K + 1, V), KINDS[turn % len(KINDS)])
        q = z[:, :K] + rng.normal(size=(B, K, V)) * rng.choice([0, 0.3, 1])
        q[np.isinf(q)] = -50
        ids = np.argmax(q + rng.gumbel(size=q.shape), axis=-1) if K else np.zeros((B, 0), int)
        plain = turn % 3 == 0
        params = [SamplingParams() if plain else parameters(rng, V) for _ in range(B)]
        draft = drafter(rng, q, rng.choice(["none", "logits", "probabilities", "sparse"]))
        own = [parameters(rng, V) for _ in range(B)]
        both(
            ids,
            draft,
            cast(z, rng.choice(["float32", "float64", "float16", "bfloat16"])),
            rng.integers(0, K + 1, B),
            params=params,
            draft_params=own if isinstance(draft, DraftLogits) else None,
            history=[[1], [0, 1, 1]],
            uniforms=(rng.random((B, K)), rng.random(B)),
            rule=RULES[turn % 3],
            on_bad_row="status",
        )


@pytest.mark.parametrize("V", [700, 4099])
def test_a_uniform_close_to_an_edge_is_settled_in_float64(V):
    """A draw by float32 sums alone would err here in one of two tokens."""
    rng = np.random.default_rng(V)
    z = rng.normal(size=(1, 1, V)).astype(np.float32)
    edges = np.cumsum(softmax(z[0, 0].astype(np.float64)))
    for edge in rng.choice(edges[:-1], 20):
        for u in (edge - 1e-11, edge + 1e-11):
            result = verify_logits(
                np.zeros((1, 0), int), None, z, uniforms=(np.zeros((1, 0)), [u]), backend="native"
            )
            assert result[0][0, 0] == np.searchsorted(edges, u, side="right")


@pytest.mark.parametrize("V", [64, 2000, 5000])
@pytest.mark.parametrize(("low", "high"), [(0.0, 5e-324), (-1.7e308, 1.7e308)])
def test_top_p_has_any_range(low, high, V):
    """A range without a reciprocal, or beyond float64's, has no bins."""
    z = np.where(np.arange(V) == V // 2, high, np.full((1, 1, V), low))
    result = both(
        np.zeros((1, 0), int), None, z, params=SamplingParams(top_p=0.25), uniforms=([[]], [0.61])
    )
    equally_likely = int(0.61 * V / 4)  # of tokens 0 to V / 4 - 2 and of V / 2
    assert result[0][0, 0] == (V // 2 if low < 0 else equally_likely)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_tiny_ratio_keeps_its_precision(dtype):
    """p / q = 1e-9 within 1e-6 of itself, which an absolute error of float32 sums would drown."""
    V = 1000
    z = np.zeros((1, 2, V), dtype=dtype)
    q = np.zeros((1, 1, V), dtype=dtype)
    z[0, 0, 7] = -20.0
    q[0, 0, 7] = np.log(1e9) - 20.0
    wide = z[0, 0].astype(np.float64), q[0, 0].astype(np.float64)
    ratio = softmax(wide[0])[7] / softmax(wide[1])[7]
    assert ratio < 1e-7
    for factor, accepted in ((1 - 1e-6, 1), (1 + 1e-6, 0)):
        result = verify_logits(
            [[7]], DraftLogits(q), z, uniforms=([[ratio * factor]], [0.5]), backend="native"
        )
        assert result.num_accepted[0] == accepted


@pytest.mark.parametrize("side", ["target", "draft"])
@pytest.mark.parametrize("fault", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("V", [9, 600])
def test_a_bad_row_has_a_status_and_spoils_no_other(V, fault, side):
    rng = np.random.default_rng(3)
    z, q = rng.normal(size=(3, 2, V)), rng.normal(size=(3, 1, V))
    spoilt = (z if side == "target" else q)[1, 0]
    spoilt[slice(None) if fault == -np.inf else V - 2] = fault
    ids = np.full((3, 1), 4)
    uniforms = (np.full((3, 1), 0.3), np.full(3, 0.4))
    result = both(ids, DraftLogits(q), z, uniforms=uniforms, on_bad_row="status")
    assert result.status.tolist() == [0, 16 if side == "target" else 128, 0]
    assert result.num_emitted[1] == 0


def test_no_row_behind_the_first_rejection_is_read():
    V = 700
    z, q = np.zeros((1, 4, V)), np.zeros((1, 3, V))
    z[0, 1, 5] = -np.inf
    z[0, 2:], q[0, 2:] = np.nan, np.nan
    result = verify_logits(
        [[3, 5, 9]], DraftLogits(q), z, uniforms=([[0.1, 0.0, 0.1]], [0.5]), backend="native"
    )
    assert result.num_accepted.tolist() == [1]


@pytest.mark.parametrize("rule", RULES)
def test_threads_change_nothing(rule):
    rng = np.random.default_rng(8)
    B, K, V = 24, 3, 5000
    z = rng.normal(size=(B, K + 1, V)).astype(np.float32) * 4
    q = z[:, :K] + rng.normal(size=(B, K, V)).astype(np.float32)
    ids = np.argmax(q + rng.gumbel(size=q.shape), axis=-1)
    params = [SamplingParams(top_p=0.9) if b % 3 else SamplingParams() for b in range(B)]
    keywords = {
        "params": params,
        "uniforms": (rng.random((B, K)), rng.random(B)),
        "rule": rule,
        "backend": "native",
    }
    one, two, three = (
        verify_logits(ids, DraftLogits(q), z, num_threads=n, **keywords) for n in (1, 2, 3)
    )
    same(two, one)
    same(three, one)


def test_layouts_and_strides_change_nothing():
    """Rows that lie apart, or backwards, or may not be written to."""
    rng = np.random.default_rng(9)
    B, K, V = 3, 2, 600
    z, q = rng.normal(size=(B, K + 1, V)), rng.normal(size=(B, K, V))
    ids, num_draft = rng.integers(0, V, (B, K)), np.array([2, 0, 1])
    uniforms = (rng.random((B, K)), rng.random(B))
    plain = verify_logits(ids, DraftLogits(q), z, num_draft, uniforms=uniforms, backend="native")
    apart = np.zeros((B, K + 1, 2 * V))
    apart[..., ::2] = z
    backwards = q[::-1].copy()[::-1]
    backwards.flags.writeable = False
    strided = verify_logits(
        ids, DraftLogits(backwards), apart[..., ::2], num_draft, uniforms=uniforms,
        backend="native",
    )  # fmt: skip
    same(strided, plain)
    valid, read = np.arange(K) < num_draft[:, None], np.arange(K + 1) <= num_draft[:, None]
    packed = verify_logits_packed(
        ids[valid], DraftLogits(q[valid]), z[read], [0, 2, 2, 3],
        uniforms=(uniforms[0][valid], uniforms[1]), backend="native",
    )  # fmt: skip
    same(packed, plain)


def test_a_drafter_with_ids_of_its_own():
    rng = np.random.default_rng(10)
    B, K, V = 20, 2, 1100
    ids_of = rng.permutation(V)[:700]
    z, q = rng.normal(size=(B, K + 1, V)), rng.normal(size=(B, K, 700)) * 2
    ids = np.argmax(q + rng.gumbel(size=q.shape), axis=-1)
    uniforms = (rng.random((B, K)), rng.random(B))
    for params in (SamplingParams(), SamplingParams(top_k=5), SamplingParams(top_p=0.5)):
        both(
            ids, DraftLogits(q), z, draft_to_target=ids_of, uniforms=uniforms,
            draft_params=params,
        )  # fmt: skip


def test_many_rows_of_few_tokens():
    rng = np.random.default_rng(11)
    B, K, V = 20_000, 2, 4
    z, q = rng.normal(size=(B, K + 1, V)) * 2, rng.normal(size=(B, K, V)) * 2
    ids = rng.integers(0, V, (B, K))
    arguments = ids, DraftLogits(q), z
    uniforms = (rng.random((B, K)), rng.random(B))
    ours, plain = (
        verify_logits(*arguments, uniforms=uniforms, backend=backend)
        for backend in ("native", "numpy")
    )
    same(ours, plain)


@pytest.mark.parametrize("V", [5, 65, 1025, 4099])
def test_logprobs_are_the_definitions(V):
    rng = np.random.default_rng([14, V])
    B, K = 3, 2
    for kind in KINDS:
        z = rows(rng, (B, K + 1, V), kind).astype(np.float32)
        z[0, :, rng.integers(V)] = np.nan  # of this row there is no law, but of its logits as given
        ids, params = rng.integers(0, V, (B, K)), [parameters(rng, V) for _ in range(B)]
        for n, mode in ((0, "processed"), (7, "processed"), (300, "raw")):
            definition, ours = (
                verify_logits(
                    ids, None, z, params=params, history=[[1], [0], [1, 1]], logprobs=n,
                    logprobs_mode=mode, uniforms=(np.full((B, K), 1e-3), np.full(B, 0.4)),
                    on_bad_row="status", backend=backend,
                ).logprobs
                for backend in ("reference", "native")
            )  # fmt: skip
            for name in ("token_ranks", "top_token_ids"):
                np.testing.assert_array_equal(getattr(ours, name), getattr(definition, name))
            for name in ("token_logprobs", "top_logprobs"):
                np.testing.assert_allclose(
                    getattr(ours, name), getattr(definition, name), rtol=1e-12, atol=1e-12
                )


@pytest.mark.parametrize("V", [30, 600])
@pytest.mark.parametrize("temperature", [1e-300, 1e300])
@pytest.mark.parametrize("scale", [1.0, 1e300])
def test_temperatures_go_to_the_ends_of_their_range(scale, temperature, V):
    z = np.random.default_rng(V).normal(size=(1, 1, V)) * scale
    for params in ({}, {"top_p": 0.7}, {"min_p": 0.3}, {"order": "vllm", "min_p": 1e-9}):
        both(
            np.zeros((1, 0), int), None, z, uniforms=([[]], [0.4567]),
            params=SamplingParams(temperature=temperature, **params),
        )  # fmt: skip


@pytest.mark.parametrize("V", [30, 600])
def test_what_a_filter_keeps_at_no_probability_is_no_alternative(V):
    z = np.full((1, 1, V), -800.0)  # exp(-800) underflows
    z[..., 3:5] = 0
    for params, alternatives in ((SamplingParams(top_k=9), 2), (SamplingParams(), 9)):
        for backend in ("reference", "native"):
            result = verify_logits(
                np.zeros((1, 0), int), None, z, params=params, uniforms=([[]], [0.5]), logprobs=9,
                backend=backend,
            )  # fmt: skip
            top = result.logprobs.top_token_ids[0, 0]
            assert top.tolist() == [3, 4, 0, 1, 2, 5, 6, 7, 8][:alternatives] + [-1] * (
                9 - alternatives
            )


@pytest.mark.parametrize("spread", [0.0, 1e-4, 1.0, 6.0])
@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(),
        SamplingParams(top_k=50),
        SamplingParams(top_p=0.9),
        SamplingParams(min_p=0.05),
        SamplingParams(top_p=0.9, min_p=0.01, order="vllm"),
    ],
    ids=["plain", "top-k", "top-p", "min-p", "min-p-top-p"],
)
def test_a_large_vocabulary(spread, params):
    V = 262_144
    rng = np.random.default_rng(12)
    z = (rng.normal(size=(1, 2, V)) * spread).astype(np.float32)
    q = z[:, :1] + rng.normal(size=(1, 1, V)).astype(np.float32)
    ids = np.argmax(q + rng.gumbel(size=q.shape), axis=-1)
    both(ids, DraftLogits(q), z, params=params, uniforms=([[0.999]], rng.random(1)))


@pytest.mark.parametrize("top_p", [0.05, 0.9, 0.999])
@pytest.mark.parametrize("order", ["standard", "llama.cpp"])
def test_a_nucleus_that_few_logits_do_not_show(top_p, order):
    V = 40_000
    rng = np.random.default_rng(13)
    flat = rng.normal(size=(6, V))
    flat[1, 16:48] += 9  # one place has nearly all the mass
    flat[2, : V // 2] -= 9  # two halves that differ
    flat[3] = np.where(np.arange(V) % 256 < 16, flat[3], 0.25)  # a plateau behind noise
    flat[4] = np.sort(flat[4])[::-1]
    flat[5, rng.integers(0, V, V // 2)] = -np.inf
    params = SamplingParams(temperature=0.8, top_p=top_p, order=order)
    for dtype in (np.float32, np.float64):
        for u in (0.5, 1 - 2.0**-20):
            both(
                np.zeros((6, 0), np.int64), None, flat[:, None].astype(dtype), params=params,
                uniforms=(np.zeros((6, 0)), np.full(6, u)),
            )  # fmt: skip


@pytest.mark.parametrize("top_p", [0.25, 0.5, 0.75])
@pytest.mark.parametrize(("value", "temperature"), [(0.3, 1.0), (999.6, 50.0), (-7.1, 0.3)])
def test_a_plateau_is_cut_at_an_exact_fraction(value, temperature, top_p):
    """Rounded weights of equal logits would keep a token too many or too few."""
    for V in (1100, 4000, 32_000):
        z = np.full((1, 1, V), value, np.float32)
        result = both(
            np.zeros((1, 0), int), None, z,
            params=SamplingParams(top_p=top_p, temperature=temperature),
            uniforms=([[]], [1 - 2.0**-40]),
        )  # fmt: skip
        assert result[0][0, 0] == V * top_p - 1


@pytest.mark.parametrize("V", SIZES)
def test_gumbel_races_as_the_definition(V):
    rng = np.random.default_rng([V, 15])
    for kind in KINDS:
        z = cast(rows(rng, (2, 3, V), kind), rng.choice(["float32", "float64", "bfloat16"]))
        params = [SamplingParams(), parameters(rng, V)]
        call = {
            "params": params, "rule": "gumbel", "seeds": rng.integers(0, 2**62, 2),
            "positions": rng.integers(0, 2**40, 2), "on_bad_row": "status", "history": [[], [0]],
        }  # fmt: skip
        first, _ = both(np.zeros((2, 0), int), None, z[:, :1], **call)
        ids = np.column_stack([np.maximum(first[:, 0], 0), rng.integers(0, V, 2)])
        both(ids, None, z, **call)
