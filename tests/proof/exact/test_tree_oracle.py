# mypy: no-check-untyped-defs
import numpy as np
import pytest

from draftproof.proof.exact.generator import NotDrivable
from draftproof.proof.exact.tree_law import tree_law
from draftproof.proof.exact.tree_oracle import draw_tree, oracle_tree_law
from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.subjects.emission import ContractBroken
from draftproof.proof.subjects.subject import Subject, as_subject, load
from draftproof.proof.trees.call import call_subject, draws_of
from draftproof.proof.worlds.catalogue import WORLDS
from draftproof.proof.worlds.tree_world import TREE_WORLDS, TreeWorld
from draftproof.trees import TREE_RULES, Draws

TREE = TREE_WORLDS["toy, 2 x 1, without-replacement"]


@pytest.mark.parametrize("rule", TREE_RULES)
def test_our_own_rules_have_the_law_of_their_references(rule):
    draws = TREE_RULES[rule].draws[0]
    world = next(w for w in TREE_WORLDS.values() if w.draws is draws)
    black_box, reference = oracle_tree_law(load(f"tree:{rule}"), world), tree_law(rule, world)
    assert black_box.law.total_variation(reference.law) <= black_box.law.error
    assert float(black_box.emitted) == pytest.approx(float(reference.emitted), abs=1e-12)


def likeliest(law):
    return max(range(len(law)), key=law.__getitem__)


def test_a_whole_tree_in_arrays():
    tree = draw_tree(TREE, (), likeliest)
    assert tree.token_ids.tolist() == [0, 1, 0, 0]
    assert tree.parents.tolist() == [-1, -1, 0, 1]
    assert tree.depth == 2
    assert np.isnan(tree.q).all(axis=1).tolist() == [False, False, False, True, True]
    assert not np.isnan(tree.p).any()


def plain(siblings, q, p, rng):
    """The target's own token, whatever the siblings."""
    return int((np.cumsum(p) <= rng.random()).sum())


def test_siblings_have_a_contract_of_their_own():
    subject = as_subject(plain)
    assert subject.contract is Contract.SIBLINGS
    assert draws_of(subject) is Draws.WITHOUT_REPLACEMENT
    world = TREE_WORLDS["L4, 2, without-replacement"]
    assert oracle_tree_law(subject, world).law == world.world.target_law(1)
    two = oracle_tree_law(subject, *[TreeWorld(WORLDS["equal"], (1,), Draws.IID)] * 2)
    assert two.law == WORLDS["equal"].target_law(2)


def tree_of(call, **attributes):
    for name, value in attributes.items():
        setattr(call, name, value)
    return Subject("test", Contract.TREE, call)


def test_a_tree_is_told_from_a_batch():
    def verify(token_ids, parents, draft_probs, target_probs, rng):
        return [0]

    assert as_subject(verify).contract is Contract.TREE
    assert draws_of(tree_of(verify, draws="iid")) is Draws.IID
    with pytest.raises(ContractBroken, match="draws is 'sorted'; wanted one of iid, without-"):
        draws_of(tree_of(verify, draws="sorted"))
    with pytest.raises(TypeError, match="the contract 'tree' has no batches of rows"):
        as_subject(verify).verify(*[np.zeros((1, 1))] * 4, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda x, parents, q, p, rng: [], "returned 0 tokens; wanted 1..3"),
        (lambda x, parents, q, p, rng: [0, 0, 0, 0], "returned 4 tokens; wanted 1..3"),
        (lambda x, parents, q, p, rng: [2], "token 0 of the list is 2"),
        (lambda x, parents, q, p, rng: x.fill(0) or [0], "wrote to an input"),
    ],
)
def test_what_the_contract_forbids(call, reason):
    with pytest.raises(ContractBroken, match=reason):
        oracle_tree_law(tree_of(call), TREE)


def test_uniforms_that_become_numbers_are_not_drivable():
    with pytest.raises(NotDrivable):
        oracle_tree_law(tree_of(lambda x, parents, q, p, rng: [int(2 * rng.random())]), TREE)


def test_an_exception_on_intervals_says_nothing_about_the_law():
    with pytest.raises(NotDrivable, match="raises IndexError"):
        oracle_tree_law(tree_of(lambda x, parents, q, p, rng: [x[9]]), TREE)


def test_inputs_are_copies():
    tree = draw_tree(TREE, (), likeliest)
    call_subject(load("tree:rrsw"), tree, np.random.default_rng(0))
    assert tree.parents.tolist() == [-1, -1, 0, 1]
