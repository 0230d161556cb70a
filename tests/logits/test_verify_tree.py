"""`verify_tree_logits`: `verify_tree` on rows that are processed behind their own paths."""

# mypy: no-check-untyped-defs
from __future__ import annotations

import numpy as np
import pytest

from draftproof import (
    BadRowError,
    DraftLogits,
    DraftTree,
    SamplingParams,
    SparseProbs,
    process,
    verify_tree,
    verify_tree_logits,
)

B, N, V = 2, 4, 5
PARAMS = [
    SamplingParams(temperature=0.7, top_p=0.8, repetition_penalty=1.4, presence_penalty=0.5),
    SamplingParams(top_k=3, logit_bias={2: 1.0}, min_tokens=3, eos_token_ids=(4,)),
]
HISTORY = [[1], [2, 2]]


def case(seed):
    rng = np.random.default_rng(seed)
    parents = np.array([[-1, -1, rng.integers(-1, 2), rng.integers(-1, 3)] for _ in range(B)])
    ids = np.stack([rng.permutation(V)[:N] for _ in range(B)])
    counts = rng.integers(0, N + 1, B)
    target, draft = rng.normal(size=(2, B, N + 1, V)) * 2
    beyond = np.arange(N + 1) > counts[:, None]
    target[beyond] = draft[beyond] = np.nan
    return ids, parents, counts, target, draft, (rng.random((B, N)), rng.random(B))


def paths(ids, parents, row, context):
    node, tokens = context - 1, []
    while node >= 0:
        tokens.insert(0, int(ids[row, node]))
        node = parents[row, node]
    return tokens


def by_hand(logits, params, ids, parents, counts):
    laws = np.full(logits.shape, np.nan)
    for b in range(B):
        for c in range(counts[b] + 1):
            text = [*HISTORY[b], *paths(ids, parents, b, c)]
            laws[b, c] = process(logits[b : b + 1, c], params[b], [text])[0]
    return laws


@pytest.mark.parametrize(
    ("rule", "draws"),
    [
        ("rrsw", "without-replacement"),
        ("traversal", "without-replacement"),
        ("k-seq", "iid"),
        ("nss", "deterministic"),
    ],
)
@pytest.mark.parametrize("backend", ["auto", "native", "reference"])
def test_each_node_sees_its_own_path(rule, draws, backend):
    for seed in range(8):
        ids, parents, counts, target, draft, uniforms = case(seed)
        needs = rule != "nss"
        p = by_hand(target, PARAMS, ids, parents, counts)
        q = by_hand(draft, PARAMS, ids, parents, counts) if needs else None
        expected = verify_tree(
            DraftTree(ids, parents, q, draws, counts), p, rule=rule, uniforms=uniforms
        )
        result = verify_tree_logits(
            DraftTree(ids, parents, None, draws, counts), target, params=PARAMS, history=HISTORY,
            draft_logits=DraftLogits(draft) if needs else None, rule=rule, uniforms=uniforms,
            backend=backend,
        )  # fmt: skip
        np.testing.assert_array_equal(result.token_ids, expected.token_ids)
        np.testing.assert_array_equal(result.path, expected.path)


@pytest.mark.parametrize("backend", ["auto", "native", "reference"])
@pytest.mark.parametrize(
    ("rule", "draws"),
    [("rrsw", "without-replacement"), ("k-seq", "iid"), ("traversal", "without-replacement")],
)
def test_sparse_draft_laws_are_the_dense_ones_that_they_list(rule, draws, backend):
    for seed in range(8):
        ids, parents, counts, target, _, uniforms = case(seed)
        rng = np.random.default_rng(seed)
        listed = np.stack([rng.permutation(V) for _ in range(B * (N + 1))]).reshape(B, N + 1, V)
        probs = rng.dirichlet(np.ones(V), (B, N + 1))
        listed[..., 0], probs[..., 0] = -1, np.nan  # padding: a token that no law has
        probs[..., 1:] /= probs[..., 1:].sum(axis=-1, keepdims=True)
        dense = np.zeros((B, N + 1, V))
        np.put_along_axis(dense, listed[..., 1:], probs[..., 1:], axis=-1)
        sparse, same = (
            verify_tree_logits(
                DraftTree(ids, parents, laws, draws, counts), target, params=PARAMS,
                history=HISTORY, rule=rule, uniforms=uniforms, backend=backend,
            )
            for laws in (SparseProbs(listed, probs), dense)
        )  # fmt: skip
        np.testing.assert_array_equal(sparse.token_ids, same.token_ids)
        np.testing.assert_array_equal(sparse.path, same.path)


def test_a_mask_for_each_node_and_probabilities_in_the_tree():
    tree = DraftTree([[0, 1, 2]], [[-1, -1, 0]], np.full((1, 4, 3), 1 / 3))
    mask = np.zeros((1, 4, 3), dtype=bool)
    mask[0, [0, 1, 2, 3], [0, 2, 1, 1]] = True
    options = {"uniforms": ([[0.5] * 3], [0.5]), "token_mask": mask}
    assert verify_tree_logits(tree, np.zeros((1, 4, 3)), **options).to_lists() == [[0, 2, 1]]
    own = {"params": SamplingParams(allowed_tokens=mask[0]), "uniforms": options["uniforms"]}
    assert verify_tree_logits(tree, np.zeros((1, 4, 3)), **own).to_lists() == [[0, 2, 1]]


def test_rows_off_the_path_need_not_be_logits_and_bad_ones_are_named():
    tree = DraftTree([[0, 1]], [[-1, -1]], draws="deterministic")
    logits = np.zeros((1, 3, 2))
    logits[0, 0, 1] = -np.inf
    logits[0, 2] = np.nan
    call = {"rule": "target-only", "uniforms": ([[0.5, 0.5]], [0.5])}
    assert verify_tree_logits(tree, logits, **call).num_emitted.tolist() == [2]
    logits[0, 1, 1] = np.nan
    with pytest.raises(BadRowError, match=r"^target_logits at row 0, node 0, token 1: found nan"):
        verify_tree_logits(tree, logits, **call)
    logits[0, 0] = -np.inf
    with pytest.raises(BadRowError, match="row 0, the root: found no token left"):
        verify_tree_logits(tree, logits, **call)
    assert verify_tree_logits(tree, logits, on_bad_row="status", **call).to_lists() == [[]]


def test_a_request_with_a_seed_has_its_tokens_in_any_batch():
    ids, parents, counts, target, draft, _ = case(3)
    rows = [SamplingParams(seed=5), SamplingParams(seed=6)]

    def verified(which):
        tree = DraftTree(ids[which], parents[which], None, "without-replacement", counts[which])
        return verify_tree_logits(
            tree, target[which], draft_logits=draft[which], params=rows[which],
            positions=np.zeros(len(ids[which]), int),
        ).to_lists()  # fmt: skip

    assert verified(slice(0, 2)) == verified(slice(0, 1)) + verified(slice(1, 2))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"draft_logits": np.zeros((1, 2, 2))}, "^draft_logits: .*one of them"),
        ({"params": SamplingParams(presence_penalty=1)}, "^history"),
        ({"draft_params": SamplingParams()}, "^draft_params"),
        ({"backend": "cuda"}, "^backend"),
        ({"rule": "rrs"}, "^tree.draws"),
    ],
)
def test_what_cannot_be_honoured_is_refused(options, message):
    tree = DraftTree([[0]], [[-1]], np.full((1, 2, 2), 0.5))
    with pytest.raises(ValueError, match=message):
        verify_tree_logits(tree, np.zeros((1, 2, 2)), uniforms=([[0.5]], [0.5]), **options)
