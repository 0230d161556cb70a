# mypy: no-check-untyped-defs
import numpy as np
import pytest

from draftproof import DraftTree, Draws, SparseProbs


def test_depths_and_children_of_a_ragged_batch():
    tree = DraftTree(
        [[5, 6, 7, 8], [5, -1, -1, -1]], [[-1, 0, -1, 1], [-1, 9, 9, 9]], num_nodes=[4, 1]
    )
    assert tree.depths.tolist() == [[1, 2, 1, 3], [1, 0, 0, 0]]
    assert tree.children(0) == [[0, 2], [1], [3], [], []]
    assert tree.children(1) == [[0], []]
    assert tree.exists.tolist() == [[True] * 4, [True, False, False, False]]
    assert (tree.size, tree.max_nodes) == (2, 4)


def test_draw_order_rules_over_numbers():
    tree = DraftTree([[1, 2, 3]], [[-1, -1, -1]], draw_order=[[30, 10, 20]])
    assert tree.children(0)[0] == [1, 2, 0]


def test_it_keeps_its_structure_whatever_becomes_of_the_callers_arrays():
    parents, counts = np.array([[-1, 0]]), np.array([2])
    tree = DraftTree([[1, 2]], parents, num_nodes=counts)
    parents[:], counts[:] = 7, 7
    assert tree.children(0) == [[0], [1], []]


@pytest.mark.parametrize("sparse", [False, True])
def test_its_arrays_are_read_only_and_the_callers_stay_as_they_were(sparse):
    ids, parents, counts, order = np.array([[1, 2]]), np.array([[-1, 0]]), [2], np.array([[0, 1]])
    laws = np.full((1, 3, 4), 0.25)
    law = SparseProbs(np.zeros((1, 3, 4), np.int64), laws) if sparse else laws
    tree = DraftTree(ids, parents, law, num_nodes=counts, draw_order=order)
    held = [tree.token_ids, tree.parents, tree.num_nodes, tree.draw_order]
    held += [tree.draft_probs.ids, tree.draft_probs.probs] if sparse else [tree.draft_probs]
    for array in held:
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0
    assert all(array.flags.writeable for array in (ids, parents, order, laws))
    assert np.shares_memory(tree.token_ids, ids)


def test_an_empty_batch_and_empty_trees():
    assert DraftTree(np.empty((0, 3), int), np.empty((0, 3), int)).depths.shape == (0, 3)
    tree = DraftTree(np.empty((2, 0), int), np.empty((2, 0), int))
    assert tree.children(1) == [[]]


@pytest.mark.parametrize("parent", [1, 2, -2])
def test_a_parent_is_an_earlier_node(parent):
    with pytest.raises(ValueError, match=rf"parents at row 1, node 1: found {parent}; wanted"):
        DraftTree([[1, 1], [1, 1]], [[-1, 0], [-1, parent]])


def test_the_first_node_hangs_on_the_root():
    with pytest.raises(ValueError, match="row 0, node 0: found 0; wanted -1, the root"):
        DraftTree([[1]], [[0]])


@pytest.mark.parametrize("count", [-1, 3])
def test_a_count_is_within_the_array(count):
    with pytest.raises(ValueError, match=rf"num_nodes at row 0: found {count}; wanted a count"):
        DraftTree([[1, 1]], [[-1, -1]], num_nodes=[count])


def test_places_in_the_draw_order_differ_among_siblings_only():
    DraftTree([[1, 1, 1]], [[-1, 0, 0]], draw_order=[[0, 0, 1]])
    with pytest.raises(ValueError, match="draw_order at row 0, node 2: found 4, which an earlier"):
        DraftTree([[1, 1, 1]], [[-1, 0, 0]], draw_order=[[0, 4, 4]])


def test_shapes_and_options():
    with pytest.raises(ValueError, match=r"draft_probs: found shape \[1, 2, 3\]; wanted"):
        DraftTree([[1, 1]], [[-1, -1]], np.ones((1, 2, 3)))
    with pytest.raises(ValueError, match=r"parents: found shape \[1, 1\]; wanted shape \[1, 2\]"):
        DraftTree([[1, 1]], [[-1]])
    with pytest.raises(ValueError, match="draws: found 'sorted'; wanted one of 'iid'"):
        DraftTree([[1]], [[-1]], draws="sorted")
    with pytest.raises(TypeError, match="token_ids: found dtype float64; wanted integers"):
        DraftTree([[0.5]], [[-1]])


def test_stack_pads_to_the_largest():
    small = DraftTree([[1]], [[-1]], [[[0.5, 0.5]] * 2])
    large = DraftTree([[1, 0]], [[-1, -1]], [[[0.5, 0.5]] * 3], draw_order=[[1, 0]])
    both = DraftTree.stack([small, large])
    assert both.num_nodes.tolist() == [1, 2]
    assert [both.children(row) for row in (0, 1)] == [[[0], []], [[1, 0], [], []]]
    assert both.draft_probs is not None
    assert np.isnan(both.draft_probs[0, 2]).all()
    assert both.draws is Draws.WITHOUT_REPLACEMENT


def test_stack_refuses_trees_of_two_kinds():
    one, other = DraftTree([[1]], [[-1]], draws="iid"), DraftTree([[1]], [[-1]])
    with pytest.raises(ValueError, match="of draws iid, without-replacement; wanted"):
        DraftTree.stack([one, other])
    with pytest.raises(ValueError, match="found 0 trees, of draws none"):
        DraftTree.stack([])
