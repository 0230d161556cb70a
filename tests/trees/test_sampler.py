import numpy as np
import pytest

from draftproof import Draws
from draftproof.trees import grow_tree, sample_siblings

LAW = [0.5, 0.3, 0.2, 0.0]


def test_siblings_come_with_the_law_that_they_were_drawn_from():
    rng = np.random.default_rng(0)
    tree = sample_siblings([LAW, [0.0, 0.0, 1.0, 0.0]], 2, rng)
    assert tree.draft_probs is not None
    assert tree.draft_probs[:, 0].tolist() == [LAW, [0.0, 0.0, 1.0, 0.0]]
    assert np.isnan(tree.draft_probs[:, 1:]).all()
    assert tree.num_nodes.tolist() == [2, 1], "the second law has one token only"
    assert tree.token_ids[1].tolist() == [2, -1]
    assert rng.random() == np.random.default_rng(0).random(5)[4]


@pytest.mark.parametrize(
    ("draws", "expected"),
    [
        (Draws.IID, [0, 0, 2]),
        (Draws.WITHOUT_REPLACEMENT, [0, 1, 2]),
        (Draws.DETERMINISTIC, [0, 1, 2]),
        (Draws.TOP_AND_ONE, [0, 1, 2]),
    ],
)
def test_how_siblings_are_drawn(draws, expected):
    tree = sample_siblings([LAW], 3, draws=draws, uniforms=[[0.1, 0.1, 0.9]])
    assert tree.token_ids.tolist() == [expected]
    assert tree.draws is draws


def test_a_tree_is_drawn_level_by_level():
    seen = []

    def law(path):
        seen.append(path)
        return LAW

    tree = grow_tree(law, (2, 1), np.random.default_rng(1), draws="iid")
    a, b = tree.token_ids[0, :2].tolist()
    assert seen == [(), (a,), (b,)]
    assert tree.parents.tolist() == [[-1, -1, 0, 1]]
    assert tree.draft_probs is not None
    assert np.isnan(tree.draft_probs[0, 3:]).all()


def test_no_level_is_a_tree_without_nodes():
    tree = grow_tree(lambda path: LAW, (), np.random.default_rng(0))
    assert tree.token_ids.shape == (1, 0)
    assert tree.draft_probs is not None
    assert tree.draft_probs.shape == (1, 1, 4)


def test_one_source_of_randomness():
    with pytest.raises(ValueError, match="rng, uniforms: found neither; wanted exactly one"):
        sample_siblings([LAW], 2)
    with pytest.raises(ValueError, match=r"uniforms: found shape \[1, 3\]; wanted shape \[1, 2\]"):
        sample_siblings([LAW], 2, uniforms=[[0.1, 0.2, 0.3]])
    with pytest.raises(TypeError, match="uniforms: found a masked array"):
        sample_siblings([LAW], 2, uniforms=np.ma.masked_less([[0.1, 0.9]], 0.5))
