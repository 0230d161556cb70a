import numpy as np
import pytest

from draftproof import lossy, verify, verify_packed, verify_tree
from draftproof.lossy import LOSSY
from draftproof.proof.exact.exact_law import rule_law
from draftproof.proof.worlds.catalogue import WORLDS
from draftproof.trees import sample_siblings

P = [[[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]]
Q = [[[0.2, 0.2, 0.6]]]


@pytest.mark.parametrize("name", LOSSY)
def test_it_says_how_lossy_it_is(name):
    law = rule_law(LOSSY[name], WORLDS["L4"], 2).law
    assert law.total_variation(WORLDS["L4"].target_law(3)) == LOSSY[name].total_variation > 0
    assert LOSSY[name].lossless is False


@pytest.mark.parametrize(
    ("name", "x", "u", "kept"),
    [
        ("typical", 2, 0.999, True),
        ("lenience", 2, 0.36, True),  # 1.1 * .2 against .6 u
        ("lenience", 2, 0.37, False),
        ("threshold", 0, 0.999, True),
        ("threshold", 1, 0.0, False),
        ("top-k", 1, 0.999, True),
        ("top-k", 2, 0.0, False),
        ("argmax-residual", 2, 0.33, True),
        ("argmax-residual", 2, 0.34, False),
    ],
)
def test_what_it_accepts(name, x, u, kept):
    result = lossy.verify([[x]], Q, P, uniforms=([[u]], [0.0]), rule=name)
    assert result.to_lists() == [[x, 0] if kept else [0]]


def test_argmax_of_the_residual_whatever_the_last_uniform():
    result = lossy.verify([[2]], Q, P, uniforms=([[0.99]], [0.999]), rule="argmax-residual")
    assert result.to_lists() == [[0]]


def test_typical_acceptance_looks_at_the_entropy():
    flat = [[[0.25] * 4] * 2]  # exp(-H) = 1/4: the bar is .075
    assert lossy.verify(
        [[3]], None, flat, rng=np.random.default_rng(0), rule="typical"
    ).num_accepted.tolist() == [1]
    peaked = [[[0.94, 0.03, 0.02, 0.01]] * 2]  # exp(-H) = .76: the bar is .09
    assert lossy.verify(
        [[1]], None, peaked, rng=np.random.default_rng(0), rule="typical"
    ).num_accepted.tolist() == [0]


def test_parameters_take_the_place_of_the_defaults():
    none = lossy.verify([[0]], Q, P, uniforms=([[0.0]], [0.0]), rule="threshold", threshold=0.6)
    assert none.num_accepted.tolist() == [0]
    with pytest.raises(ValueError, match="parameter of 'top-k': found 'm'; wanted one of 'k'"):
        lossy.verify([[0]], Q, P, np.zeros(1), rule="top-k", m=2)
    with pytest.raises(ValueError, match="parameter of 'argmax-residual': found 'm'; wanted none"):
        lossy.verify([[0]], Q, P, rule="argmax-residual", m=2)


def test_it_refuses_a_lossless_name_and_bad_rows():
    with pytest.raises(ValueError, match="rule: found 'token'; wanted one of 'typical'"):
        lossy.verify([[0]], Q, P, rule="token")
    with pytest.raises(ValueError, match="target_probs at row 0, position 1: found a row of mass"):
        lossy.verify(
            [[0]], Q, [[P[0][0], [0.2, 0.3, 0.4]]], rng=np.random.default_rng(0), rule="top-k"
        )


@pytest.mark.parametrize("name", [*LOSSY, "typical acceptance", "thresholds", "top_k", "argmax"])
def test_the_lossless_calls_refuse_its_name_with_the_reason_and_the_way_there(name):
    rng = np.random.default_rng(0)
    tree = sample_siblings([[0.5, 0.5]], 1, rng)
    for call in (
        lambda: verify([[0]], Q, P, rng=rng, rule=name),
        lambda: verify_packed([0], Q[0], P[0], [0, 1], rng=rng, rule=name),
        lambda: verify_tree(tree, [[[0.5, 0.5]] * 2], rng, rule=name),
    ):
        with pytest.raises(ValueError, match=r"which is lossy: it .* on the world L4") as refusal:
            call()
        assert "draftproof.lossy.verify(..., rule='" in str(refusal.value)


def test_the_call_for_chains_shows_the_way_to_trees():
    with pytest.raises(ValueError, match=r"found 'rrsw', a rule for trees; .*verify_tree"):
        verify([[0]], Q, P, rng=np.random.default_rng(0), rule="rrsw")
