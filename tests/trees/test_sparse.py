"""Trees with sparse draft laws: what the same laws emit when they are dense."""

# mypy: no-check-untyped-defs
from __future__ import annotations

import numpy as np
import pytest

from draftproof import DraftTree, RowStatus, SparseProbs, verify_tree
from draftproof.backends import native_import_error
from draftproof.trees import TREE_RULES

BACKENDS = ["reference", *(["native"] if native_import_error() is None else [])]
PARENTS = np.array([-1, -1, 0, 0, 0, 1, 4])
TAKES_Q = [rule for rule, known in TREE_RULES.items() if known.needs_draft_probs]


@pytest.fixture(params=BACKENDS)
def backend(request):
    return request.param


def make(rng, draws, V, M, dtype, duplicates):
    """A tree of seven nodes over V tokens whose laws list M of them, and the target's laws."""
    contexts = len(PARENTS) + 1
    ids = np.stack([rng.permutation(V)[:M] for _ in range(contexts)])
    probs = rng.exponential(size=ids.shape).astype(dtype)
    probs = (probs / probs.sum(axis=1, keepdims=True)).astype(dtype)
    if duplicates:  # half of an entry's mass in a place of its own, beside some padding
        ids = np.concatenate([ids, ids[:, :1], np.full_like(ids[:, :1], -1)], axis=1)
        half = probs[:, :1] / 2
        probs = np.concatenate([half, probs[:, 1:], half, np.full_like(half, np.nan)], axis=1)
    dense = np.zeros((contexts, V), dtype=np.float64 if duplicates else dtype)
    listed = ids >= 0
    np.add.at(dense, (np.nonzero(listed)[0], ids[listed]), probs[listed])
    tokens = np.zeros(len(PARENTS), dtype=int)
    for context in range(contexts):
        children = np.flatnonzero(context - 1 == PARENTS)
        law = dense[context].astype(np.float64)
        if draws == "top-and-one":
            top = np.argsort(-law, kind="stable")[: len(children)]
            tokens[children] = top
            continue
        for child in children:
            tokens[child] = rng.choice(V, p=law / law.sum())
            if draws != "iid":
                law[tokens[child]] = 0
    p = (dense + rng.exponential(size=dense.shape) / V).astype(dtype)
    p = (p / p.sum(axis=1, keepdims=True)).astype(dtype)
    pair = DraftTree([tokens], [PARENTS], SparseProbs(ids[None], probs[None]), draws)
    return pair, DraftTree([tokens], [PARENTS], dense[None], draws), p[None]


@pytest.mark.parametrize("duplicates", [False, True])
@pytest.mark.parametrize("rule", TAKES_Q)
def test_a_sparse_law_is_the_dense_one_that_it_lists(rule, duplicates, backend):
    rng = np.random.default_rng(len(rule) + 100 * duplicates)
    for V, M, dtype in [(5, 4, np.float64), (100, 20, np.float32), (700, 30, np.float64),
                        (700, 300, np.float32)] * 6:  # fmt: skip
        draws = TREE_RULES[rule].draws[0]
        sparse, dense, p = make(rng, draws, V, M, dtype, duplicates)
        uniforms = rng.random((1, 7)), rng.random(1)
        one, other = (
            verify_tree(tree, p, uniforms=uniforms, rule=rule, backend=where, validate=validate)
            for tree, where, validate in (
                (sparse, backend, "touched"),
                (dense, "reference", "off"),  # sums of float32 numbers, held in float64
            )
        )
        assert one.path.tolist() == other.path.tolist()
        assert one.token_ids.tolist() == other.token_ids.tolist()
        assert one.status.tolist() == other.status.tolist()


@pytest.mark.parametrize("rule", ["rrsw", "traversal"])
def test_bad_sparse_laws(rule, backend):
    p = np.full((1, 3, 4), 0.25)
    uniforms = np.full((1, 2), 0.999), np.array([0.5])

    def status(ids, probs, validate="touched"):
        laws = SparseProbs(np.tile(ids, (1, 3, 1)), np.tile(probs, (1, 3, 1)))
        tree = DraftTree([[0, 1]], [[-1, -1]], laws)
        result = verify_tree(
            tree, p, uniforms=uniforms, rule=rule, backend=backend,
            validate=validate, on_bad_row="status",
        )  # fmt: skip
        return int(result.status[0])

    assert status([0, 1], [0.5, 0.5]) == RowStatus.OK
    assert status([0, 1, 4], [0.5, 0.5, 0.0]) == RowStatus.SPARSE_ID_OUT_OF_RANGE
    assert status([0, 1, -1], [0.5, 0.5, np.nan]) == RowStatus.OK
    assert status([0, 1, 2], [0.5, 0.5, np.nan]) == RowStatus.DRAFT_NOT_FINITE
    assert status([0, 1, 2], [0.5, 0.7, -0.2]) == RowStatus.DRAFT_NEGATIVE
    assert status([0, 1], [0.5, 0.9]) == RowStatus.DRAFT_MASS
    assert status([0, 2], [0.5, 0.5], "full") == RowStatus.DRAFT_ZERO
    assert status([0, 1, 4], [0.5, 0.5, 0.0], "off") == RowStatus.OK


def test_a_bad_sparse_law_is_named(backend):
    laws = SparseProbs(np.full((1, 2, 2), 9), np.full((1, 2, 2), 0.5))
    tree = DraftTree([[0]], [[-1]], laws)
    with pytest.raises(ValueError, match=r"tree\.draft_probs\.ids at row 0, the root, entry 0"):
        verify_tree(
            tree, np.full((1, 2, 4), 0.25), uniforms=([[0.5]], [0.5]), backend=backend,
            validate="full",
        )  # fmt: skip


def test_stacked_sparse_laws(backend):
    rng = np.random.default_rng(5)
    trees = [make(rng, "iid", 40, M, np.float64, M == 7) for M in (7, 12)]
    uniforms = rng.random((2, 7)), rng.random(2)
    tree = DraftTree.stack([sparse for sparse, _, _ in trees])
    p = np.concatenate([each[2] for each in trees])
    rows = verify_tree(tree, p, uniforms=uniforms, rule="rrs", backend=backend).to_lists()
    assert rows == [
        verify_tree(
            dense, p[[b]], uniforms=(uniforms[0][[b]], uniforms[1][[b]]), rule="rrs"
        ).to_lists()[0]
        for b, (_, dense, _) in enumerate(trees)
    ]
    with pytest.raises(ValueError, match="all dense or all sparse"):
        DraftTree.stack([trees[0][0], trees[1][1]])
