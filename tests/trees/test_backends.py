"""The rules for trees on every backend: the reference's tokens and status, bit for bit."""

# mypy: no-check-untyped-defs
from __future__ import annotations

import sys
import threading

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftproof import BadRowError, DraftTree, RowStatus, verify_tree
from draftproof.backends import native_import_error
from draftproof.reference.siblings import k_seq_rho
from draftproof.trees import TREE_RULES

pytestmark = pytest.mark.skipif(native_import_error() is not None, reason="no native kernel")

RULES = list(TREE_RULES)
DTYPES = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16]
BELOW_ONE = np.nextafter(1.0, 0.0)
# Up to 64 tokens the kernel follows the reference step by step, then it certifies block sums.
vocabularies = st.sampled_from([1, 2, 3, 7, 64, 65, 66, 128, 255, 256, 257, 513, 1025])


def normalised(weights):
    return weights / weights.sum(axis=-1, keepdims=True)


def smooth(rng, shape):
    return normalised(rng.exponential(size=shape))


def peaked(rng, shape):
    return normalised(rng.exponential(size=shape) ** 8 + 1e-30)


def holey(rng, shape):
    return normalised(rng.exponential(size=shape) * (rng.random(shape) < 0.3) + 1e-300)


def tied(rng, shape):
    return normalised(rng.integers(1, 3, size=shape).astype(np.float64))


def one_hot(rng, shape):
    return np.eye(shape[-1])[rng.integers(shape[-1], size=shape[:-1])]


FLAVOURS = [smooth, peaked, holey, tied, one_hot]


def near(p, rng):
    """q that a draft model may have made of p, so that several siblings are tested."""
    return normalised(p.astype(np.float64) * np.exp(rng.normal(size=p.shape) / 2)).astype(p.dtype)


def nudged(p, rng):
    """q equal to p but for one unit in the last place, here and there."""
    return np.where(rng.random(p.shape) < 0.3, np.nextafter(p, p.dtype.type(1)), p).astype(p.dtype)


def draw_tokens(parents, q, distinct, rng):
    """Nodes drawn from their laws, and now and then from none."""
    tokens = np.empty(parents.shape, dtype=np.int64)
    for row, node in np.ndindex(parents.shape):
        weights = np.maximum(q[row, parents[row, node] + 1].astype(np.float64), 0)
        if distinct:
            siblings = tokens[row, :node][parents[row, :node] == parents[row, node]]
            weights[siblings] = 0
        lawful = weights.sum() > 0 and rng.random() < 0.97
        law = normalised(weights) if lawful else None
        tokens[row, node] = rng.choice(len(weights), p=law)
    return tokens


def thresholds(parents, tokens, q, p, rng):
    """Uniforms on the edges: p/q for the first test of a node, C(v)/C(V-1) for the last draw."""
    rows, nodes = np.arange(len(parents))[:, None], np.arange(parents.shape[1])
    at = (rows, parents + 1, tokens)
    with np.errstate(all="ignore"):
        ratio = p[at].astype(np.float64) / q[at].astype(np.float64)
        accept = np.where((ratio >= 0) & (ratio < 1), ratio, rng.random(nodes.size))
        sums = np.cumsum(np.maximum(0, p[:, 0].astype(float) - q[:, 0].astype(float)), axis=1)
        edges = (sums / sums[:, -1:])[:, rng.integers(p.shape[-1])]
    return accept, np.where((edges >= 0) & (edges < 1), edges, 0.5)


@st.composite
def forests(draw, rules=tuple(RULES)):
    """(tree, p, options): laws in one dtype, trees of all shapes, honest and dishonest drafts."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    B, N, V = draw(st.integers(1, 3)), draw(st.integers(0, 11)), draw(vocabularies)
    rule = draw(st.sampled_from(rules))
    draws = draw(st.sampled_from(TREE_RULES[rule].draws))
    p = draw(st.sampled_from(FLAVOURS))(rng, (B, N + 1, V)).astype(draw(st.sampled_from(DTYPES)))
    flavour = draw(st.sampled_from([near, near, nudged, *FLAVOURS]))
    q = flavour(p, rng) if flavour in (near, nudged) else flavour(rng, p.shape).astype(p.dtype)
    far = rng.random((B, N)) < draw(st.sampled_from([0.2, 0.7]))
    parents = np.where(far, -1, rng.integers(-1, np.maximum(np.arange(N), 0), size=(B, N)))
    tokens = draw_tokens(parents, q, draws.value != "iid", rng)
    order = rng.permuted(np.tile(np.arange(N), (B, 1)), axis=1) if draw(st.booleans()) else None
    counts = rng.integers(0, N + 1, size=B) if draw(st.booleans()) else None
    uniforms = rng.random((B, N)), rng.random(B)
    match draw(st.sampled_from(["random", "late", "zero", "below one", "edges"])):
        case "late":  # rejects more
            uniforms = 1 - rng.random((B, N)) / 100, rng.random(B)
        case "zero":
            uniforms = np.zeros((B, N)), np.zeros(B)
        case "below one":
            uniforms = np.full((B, N), BELOW_ONE), np.full(B, BELOW_ONE)
        case "edges":
            uniforms = thresholds(parents, tokens, q, p, rng)
    tree = DraftTree(tokens, parents, q, draws, counts, order)
    greedy = rng.random(B) < 0.3 if draw(st.booleans()) else None
    return tree, p, {"rule": rule, "uniforms": uniforms, "greedy": greedy}


def assert_backends_agree(tree, p, options):
    options = {"on_bad_row": "status", **options}
    native = verify_tree(tree, p, backend="native", **options)
    reference = verify_tree(tree, p, backend="reference", **options)
    assert (native.backend, reference.backend) == ("native", "reference")
    for mine, theirs in zip(native[:4], reference[:4], strict=True):
        np.testing.assert_array_equal(mine, theirs)
    return reference


@given(forest=forests(), validate=st.sampled_from(["touched", "full", "off"]))
def test_both_backends_say_the_same(forest, validate):
    tree, p, options = forest
    assert_backends_agree(tree, p, {**options, "validate": validate})


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("vocabulary", [5, 300])
def test_fixed_siblings_hide_no_bad_number_that_nobody_judges(vocabulary, bad):
    """The draw off the siblings takes their mass away by a difference, which drops NaN."""
    p = np.full((1, 3, vocabulary), 1 / vocabulary)
    p[0, 0, 0] = bad
    tree = DraftTree([[1, 2]], [[-1, -1]], None, "deterministic")
    options = {"rule": "target-only", "uniforms": (np.full((1, 2), 0.99), np.array([0.5]))}
    reference = assert_backends_agree(tree, p, {**options, "validate": "off"})
    assert reference.status[0] == RowStatus.TARGET_NOT_FINITE


@given(forest=forests(), data=st.data())
def test_both_backends_find_the_same_faults(forest, data):
    tree, p, options = forest
    p, q = p.copy(), tree.draft_probs.view(p.dtype).copy()
    bad = data.draw(st.sampled_from([np.nan, np.inf, -np.inf, -0.25, 3.0]))
    for _ in range(data.draw(st.integers(1, 3))):
        laws = data.draw(st.sampled_from([p, q]))
        at = [data.draw(st.integers(0, length - 1)) for length in laws.shape]
        laws[tuple(at)] = bad
    spoilt = DraftTree(tree.token_ids, tree.parents, q, tree.draws, tree.num_nodes, tree.draw_order)
    validate = data.draw(st.sampled_from(["touched", "full"]))
    assert_backends_agree(spoilt, p, {**options, "validate": validate})


def wide_forest(rule, V=3001, B=12, seed=0, dtype=np.float32):
    """Trees of three levels over laws that differ a little: most decisions are certified."""
    rng = np.random.default_rng(seed)
    parents = np.array([-1] * 4 + [0] * 4 + [1] * 3 + [4] * 3 + [2] * 2)
    p = peaked(rng, (B, len(parents) + 1, V)).astype(dtype)
    q = near(p, rng)
    draws = TREE_RULES[rule].draws[0]
    parents = np.tile(parents, (B, 1))
    return DraftTree(draw_tokens(parents, q, draws.value != "iid", rng), parents, q, draws), p


@pytest.mark.parametrize("rule", RULES)
def test_wide_rows_agree_and_reject_and_accept(rule):
    """The comparison above would be empty if nothing were accepted or nothing rejected."""
    tree, p = wide_forest(rule)
    rng = np.random.default_rng(1)
    accepted = set()
    for _ in range(3):
        uniforms = rng.random(tree.token_ids.shape), rng.random(tree.size)
        result = assert_backends_agree(tree, p, {"rule": rule, "uniforms": uniforms})
        assert not result.status.any()
        accepted |= set(result.num_accepted.tolist())
    assert accepted >= {0, 1, 2}


@pytest.mark.parametrize("rule", ["rrs", "rrsw", "traversal"])
def test_decisions_within_a_rounding_of_their_threshold(rule):
    """Uniforms next to p/q of later siblings, where block sums alone cannot decide."""
    tree, p = wide_forest(rule, V=300, B=2, seed=3, dtype=np.float64)
    p64, q64 = p[:, 0].astype(float), tree.draft_probs[:, 0].astype(float)
    for nudge in (-2, -1, 0, 1, 2):
        accept = np.full(tree.token_ids.shape, BELOW_ONE)
        for row in range(2):
            law, draft = p64[row], q64[row]
            for node in range(4):
                x = tree.token_ids[row, node]
                u = min(law[x] / draft[x], BELOW_ONE) if draft[x] > 0 else BELOW_ONE
                accept[row, node] = np.clip(u + nudge * np.spacing(u), 0, BELOW_ONE)
                rest = np.maximum(law - draft, 0)
                law = rest / np.cumsum(rest)[-1]
                if rule != "rrs":
                    draft = np.where(np.arange(300) == x, 0, draft)
                    draft = draft / np.cumsum(draft)[-1]
        assert_backends_agree(tree, p, {"rule": rule, "uniforms": (accept, np.full(2, 0.5))})


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("nudge", [-1, 0, 1])
def test_k_seq_bisects_to_the_same_number(nudge, dtype):
    """Uniforms next to p / (rho q): a rho that is off by a few roundings enters other siblings."""
    tree, p = wide_forest("k-seq", V=600, B=6, seed=4, dtype=dtype)
    q, accept = tree.draft_probs.view(dtype), np.full(tree.token_ids.shape, BELOW_ONE)
    for row in range(6):
        law, draft = p[row, 0].astype(float), q[row, 0].astype(float)
        x = tree.token_ids[row, :4]
        u = law[x] / (k_seq_rho(law, draft, 4) * draft[x])
        accept[row, :4] = np.clip(u + nudge * np.spacing(u), 0, BELOW_ONE)
    options = {"rule": "k-seq", "uniforms": (accept, np.full(6, 0.5)), "validate": "off"}
    assert_backends_agree(tree, p, options)


@pytest.mark.parametrize("num_siblings", [1, 2, 7])
@pytest.mark.parametrize("vocabulary", [64, 65, 700])
def test_k_seq_where_p_is_q(vocabulary, num_siblings):
    """beta is 1 but for rounding, and then rho hangs on the last bits of the sums."""
    rng = np.random.default_rng(vocabulary)
    p = smooth(rng, (4, num_siblings + 1, vocabulary)).astype(np.float32)
    parents = np.full((4, num_siblings), -1)
    tree = DraftTree(draw_tokens(parents, p, False, rng), parents, p, "iid")
    for u in (0.0, 1 - 1e-9, BELOW_ONE):
        uniforms = np.full(parents.shape, BELOW_ONE), np.full(4, u)
        assert_backends_agree(tree, p, {"rule": "k-seq", "uniforms": uniforms})


@pytest.mark.parametrize("rule", RULES)
def test_strided_and_misaligned_rows(rule):
    tree, p = wide_forest(rule, V=301, B=4)
    spread = np.zeros((*p.shape[:2], 2 * p.shape[2]), dtype=p.dtype)
    spread[..., ::2] = p
    q = tree.draft_probs
    buffer = np.zeros(q.nbytes + 1, dtype=np.uint8)
    askew = buffer[1:].view(q.dtype).reshape(q.shape)
    askew[:] = q
    odd = DraftTree(tree.token_ids, tree.parents, askew, tree.draws)
    rng = np.random.default_rng(0)
    uniforms = rng.random(tree.token_ids.shape), rng.random(4)
    plain = assert_backends_agree(tree, p, {"rule": rule, "uniforms": uniforms})
    strided = assert_backends_agree(odd, spread[..., ::2], {"rule": rule, "uniforms": uniforms})
    assert strided.to_lists() == plain.to_lists()


@pytest.mark.parametrize("rule", ["rrs", "rrsw", "k-seq", "nss"])
def test_rows_off_the_path_are_not_read(rule):
    tree, p = wide_forest(rule, V=300)
    uniforms = np.random.default_rng(2).random(tree.token_ids.shape), np.full(12, 0.5)
    result = verify_tree(tree, p, uniforms=uniforms, rule=rule, backend="native")
    q = tree.draft_probs.copy()
    for row in range(12):
        path = result.path[row, : result.num_accepted[row]]
        off = np.setdiff1d(np.arange(1, p.shape[1]), path + 1)
        p[row, off] = q[row, off] = np.nan
    spoilt = DraftTree(tree.token_ids, tree.parents, q, tree.draws)
    again = verify_tree(spoilt, p, uniforms=uniforms, rule=rule, backend="native")
    assert again.to_lists() == result.to_lists()


@pytest.mark.parametrize("num_threads", [1, 2, 5])
@pytest.mark.parametrize("rule", ["rrsw", "k-seq", "traversal"])
def test_threads_do_not_change_the_tokens(rule, num_threads):
    tree, p = wide_forest(rule)
    options = {"seeds": np.arange(12), "positions": np.zeros(12, int), "rule": rule}
    alone = verify_tree(tree, p, num_threads=1, **options)
    together = verify_tree(tree, p, num_threads=num_threads, **options)
    assert together.to_lists() == alone.to_lists()
    results = []
    callers = [
        threading.Thread(target=lambda: results.append(verify_tree(tree, p, **options).to_lists()))
        for _ in range(3)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert results == [alone.to_lists()] * 3


def test_auto_takes_the_native_kernel_where_there_is_one():
    for rule in RULES:
        tree, p = wide_forest(rule, V=30, B=2)
        assert verify_tree(tree, p, np.random.default_rng(0), rule=rule).backend == "native"


def test_a_bad_row_of_the_kernel_is_named():
    tree, p = wide_forest("nss", V=300, B=3)
    p[1, 0, 17] = np.nan
    uniforms = np.zeros(tree.token_ids.shape), np.zeros(3)
    with pytest.raises(BadRowError, match=r"target_probs at row 1, the root, token 17") as refusal:
        verify_tree(tree, p, uniforms=uniforms, rule="nss", backend="native")
    assert refusal.value.status == RowStatus.TARGET_NOT_FINITE


def test_a_tree_changed_behind_its_back_is_no_danger():
    """Parents are judged when a tree is made; who insists and writes into it stays in bounds."""
    tree, p = wide_forest("rrsw", V=70, B=1)
    tree.parents.flags.writeable = tree.num_nodes.flags.writeable = True
    options = {"uniforms": (np.zeros(tree.token_ids.shape), [0.5]), "on_bad_row": "status"}
    tree.parents[0, :3] = [sys.maxsize, -7, 2]
    tree.num_nodes[0] = sys.maxsize
    result = verify_tree(tree, p, backend="native", **options)
    assert result.num_emitted[0] >= 1
