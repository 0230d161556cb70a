"""Trees of drafts: acceptance by rank against the closed forms, shapes against all shapes."""

# mypy: no-check-untyped-defs
from __future__ import annotations

import itertools

import numpy as np
import pytest

from draftproof import DraftTree, verify_tree
from draftproof.efficiency import siblings
from draftproof.efficiency.tree import (
    TreeShape,
    acceptance_by_rank,
    best_shape,
    mean_by_rank,
    ranks_accepted,
)
from draftproof.reference.siblings.draws import draw_without_replacement

RANKS = np.array([[0.6, 0.2, 0.1], [0.5, 0.3, 0.05], [0.7, 0.1, 0.1]])


@pytest.fixture
def laws():
    rng = np.random.default_rng(3)
    return rng.dirichlet(np.full(6, 0.5), size=(2, 40))


def test_ranks_of_rrs_add_up_to_its_closed_form(laws):
    ranks = acceptance_by_rank(*laws, 4, rule="rrs")
    for K in range(1, 5):
        assert ranks[:, :K].sum(axis=-1) == pytest.approx(siblings.rrs(*laws, K))


def test_ranks_of_rrsw_are_without_bias(laws):
    p, q = laws[:, :1].repeat(4000, axis=1)
    ranks = acceptance_by_rank(p, q, 3, rng=np.random.default_rng(1))
    assert ranks[:, 0] == pytest.approx(siblings.rrsw(p, q, 1))
    error = ranks[:, 1].std() / np.sqrt(len(p))
    wanted = siblings.rrsw(p[0], q[0], 2) - siblings.rrsw(p[0], q[0], 1)
    assert abs(ranks[:, 1].mean() - wanted) < 5 * error
    assert (ranks.sum(axis=1) <= 1 + 1e-12).all()


def test_the_likeliest_siblings_are_accepted_by_the_target_alone():
    ranks = acceptance_by_rank([0.1, 0.2, 0.7], [0.3, 0.6, 0.1], 4, rule="target-only")
    assert ranks.tolist() == [0.2, 0.1, 0.7, 0.0]


def test_a_law_that_runs_out_of_tokens():
    assert acceptance_by_rank([0.0, 1.0], [1.0, 0.0], 3).tolist() == [0, 0, 0]
    assert acceptance_by_rank([0.5, 0.5], [0.5, 0.5], 2, rule="rrs").tolist() == [1, 0]


def test_a_rule_that_has_no_ranks_is_refused():
    with pytest.raises(ValueError, match="traversal keeps at least as much"):
        acceptance_by_rank([1.0], [1.0], 2, rule="traversal")


def value(parents):
    """E[tokens] of a tree, from its definition."""
    products, ranks, levels = [], [], []
    for node, parent in enumerate(parents):
        rank = parents[:node].count(parent)
        level = levels[parent] + 1 if parent >= 0 else 0
        if level >= 3 or rank >= 3:
            return None
        levels.append(level)
        ranks.append(rank)
        products.append((products[parent] if parent >= 0 else 1) * RANKS[level, rank])
    return 1 + sum(products)


@pytest.mark.parametrize("n", range(6))
def test_no_tree_of_its_size_is_better(n):
    shapes = itertools.product(*(range(-1, node) for node in range(n)))
    best = max(v for v in map(value, shapes) if v is not None)
    shape = best_shape(RANKS, n)
    assert shape.expected_tokens == pytest.approx(best)
    assert value(shape.parents) == pytest.approx(best)
    assert sum(shape.levels) == len(shape.parents) == n


def test_a_shape_is_as_deep_and_as_large_as_it_may_be():
    assert best_shape(RANKS, 30, depth=1) == TreeShape((-1, -1, -1), pytest.approx(1.9))
    assert best_shape([[0.5, 0.0]], 9).parents == (-1,)
    assert best_shape(RANKS, 10**6).levels == (3, 9, 27)


def test_verified_trees_emit_what_was_expected_of_them():
    """Where every context has the same laws, rank decides alone."""
    p, q = np.random.default_rng(5).dirichlet(np.ones(5), size=(2,))
    by_rank = mean_by_rank([(np.tile(p, (1000, 1)), np.tile(q, (1000, 1)))] * 2, 3, "rrsw")
    shape = best_shape(by_rank, 8)
    rng, B, n = np.random.default_rng(0), 1000, 8
    ids = np.empty((B, n), dtype=np.int64)
    for context in range(-1, n):
        nodes = [node for node in range(n) if shape.parents[node] == context]
        for b in range(B if nodes else 0):
            ids[b, nodes] = draw_without_replacement(q, rng.random(len(nodes)))
    tree = DraftTree(ids, np.tile(shape.parents, (B, 1)), np.broadcast_to(q, (B, n + 1, 5)))
    result = verify_tree(tree, np.broadcast_to(p, (B, n + 1, 5)), rng, rule="rrsw")
    error = result.num_emitted.std() / np.sqrt(B)
    assert abs(result.num_emitted.mean() - shape.expected_tokens) < 5 * error
    counted = ranks_accepted(tree, result, 2, 3)
    assert counted[0, :2] == pytest.approx(by_rank[0, :2], abs=5 / np.sqrt(B) / 2)


def test_ranks_are_counted_where_a_sibling_was_offered():
    tree = DraftTree([[5, 7, 9]], [[-1, -1, 1]], draws="deterministic")
    target = np.eye(10)[[[7, 0, 9, 3]]]
    result = verify_tree(tree, target, np.random.default_rng(0), rule="target-only")
    assert ranks_accepted(tree, result, 2, 3).tolist() == [[0, 1, 0], [1, 0, 0]]
