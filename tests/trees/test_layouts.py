import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftproof import DraftTree
from draftproof.trees import (
    attention_mask,
    from_retrieve_indices,
    from_retrieve_links,
    position_ids,
    to_retrieve_indices,
    to_retrieve_links,
)

#     root ─┬─ 0 ─┬─ 2
#           │     └─ 3 ─── 4
#           └─ 1
TREE = DraftTree([[10, 11, 12, 13, 14]], [[-1, -1, 0, 0, 3]])


@st.composite
def trees(draw):
    B, N = draw(st.integers(1, 3)), draw(st.integers(0, 7))
    parents = [[draw(st.integers(-1, node - 1)) for node in range(N)] for _ in range(B)]
    order = [draw(st.permutations(range(N))) for _ in range(B)]
    counts = [draw(st.integers(0, N)) for _ in range(B)]
    ids = np.arange(B * N).reshape(B, N)
    return DraftTree(
        ids, np.array(parents, int).reshape(B, N), None, "iid", counts, np.reshape(order, (B, N))
    )


def test_links():
    links = to_retrieve_links(TREE)
    assert links.retrieve_index.tolist() == [[0, 1, 2, 3, 4, 5]]
    assert links.retrieve_next_token.tolist() == [[1, 3, -1, -1, 5, -1]]
    assert links.retrieve_next_sibling.tolist() == [[-1, 2, -1, 4, -1, -1]]


def test_a_place_in_the_flat_batch_counts_the_rows_before():
    tree = DraftTree([[1, 2], [3, 4]], [[-1, 0], [-1, -1]])
    assert to_retrieve_links(tree).retrieve_index.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_links_whose_first_child_is_not_the_lowest_slot():
    # As SGLang's own example has them: slot 4 is the root's first child, slot 1 its sibling.
    tree = from_retrieve_links(
        [[7, 8, 9, 10, 11, 12]], [[4, 2, 3, -1, 5, -1]], [[-1, -1, -1, -1, 1, -1]]
    )
    assert tree.children(0) == [[3, 0], [1], [2], [], [4], []]
    assert tree.token_ids.tolist() == [[8, 9, 10, 11, 12]]


@given(trees())
def test_links_and_back(tree):
    links = to_retrieve_links(tree)
    tokens = np.pad(tree.token_ids, ((0, 0), (1, 0)))
    back = from_retrieve_links(tokens, links.retrieve_next_token, links.retrieve_next_sibling)
    assert back.num_nodes.tolist() == tree.num_nodes.tolist()
    for row in range(tree.size):
        assert back.children(row) == tree.children(row)


@pytest.mark.parametrize(
    ("children", "siblings", "message"),
    [
        ([3, -1, -1], [-1, -1, -1], "children of slot 0: found 3; wanted slots in 1..2"),
        ([1, 1, -1], [-1, -1, -1], "children of slot 1: found slot 1; wanted"),
        ([1, 2, -1], [-1, 2, -1], "children of slot 1: found slot 2; wanted"),
        ([2, -1, -1], [-1, -1, 2], "children of slot 0: found slot 2; wanted"),
        ([1, 0, -1], [-1, -1, -1], "children of slot 1: found 0; wanted"),
        ([2, -1, -1], [-1, -1, -1], "slot 1, which no link leads to, before one that has"),
    ],
)
def test_links_that_make_no_tree(children, siblings, message):
    with pytest.raises(ValueError, match=message):
        from_retrieve_links([[1, 2, 3]], [children], [siblings])


def test_indices():
    assert to_retrieve_indices(TREE)[0].tolist() == [[0, 2, -1, -1], [0, 1, 3, -1], [0, 1, 4, 5]]


@given(trees())
def test_indices_and_back(tree):
    indices = to_retrieve_indices(tree)
    for row in range(tree.size):
        n = int(tree.num_nodes[row])
        chains = indices[row][(indices[row] >= 0).any(axis=1)]
        back = from_retrieve_indices(np.arange(n + 1), chains)
        assert back.parents[0].tolist() == tree.parents[row, :n].tolist()


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ([[0, 3]], "leaf 0: found slot 3 below slot 0; wanted slots in 0..2"),
        ([[0, 1], [1, 2], [0, 2]], "leaf 2: found slot 2 below slot 0"),
        ([[0, 2, 1]], "leaf 0: found slot 1 below slot 2"),
        ([[0, 1]], "found no path to slot 2"),
    ],
)
def test_indices_that_make_no_tree(indices, message):
    with pytest.raises(ValueError, match=message):
        from_retrieve_indices([1, 2, 3], indices)


@given(trees())
def test_a_slot_attends_to_its_ancestors_and_itself(tree):
    mask, depths = attention_mask(tree), position_ids(tree)
    for row in range(tree.size):
        for slot in range(tree.max_nodes + 1):
            ancestors, at = {slot}, slot
            while 0 < at <= tree.num_nodes[row]:
                at = int(tree.parents[row, at - 1]) + 1
                ancestors.add(at)
            assert set(np.flatnonzero(mask[row, slot])) == ancestors
            assert depths[row, slot] == len(ancestors) - 1


def test_positions_count_from_the_root():
    assert position_ids(TREE).tolist() == [[0, 1, 1, 2, 2, 3]]
    assert position_ids(TREE, [40]).tolist() == [[40, 41, 41, 42, 42, 43]]
