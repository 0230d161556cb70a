import functools
from fractions import Fraction

import numpy as np
import pytest

from draftproof.proof.exact.exact_law import rule_law
from draftproof.proof.exact.tree_law import tree_law
from draftproof.proof.worlds.catalogue import WORLDS, random_rational
from draftproof.proof.worlds.tree_world import TREE_WORLDS, TreeWorld
from draftproof.proof.worlds.world import World
from draftproof.reference import siblings
from draftproof.reference.block import block
from draftproof.reference.chain import token
from draftproof.reference.tree import walk
from draftproof.trees import TREE_RULES, Draws

CASES = [
    (rule.name, world)
    for world in TREE_WORLDS.values()
    for rule in TREE_RULES.values()
    if world.draws in rule.draws
]
SLOW = {
    (rule, name)
    for name, rules in {
        "L357, 3, iid": ("nss", "target-only", "naive-tree", "rrsw", "k-seq"),
        "L357, 3, without-replacement": ("nss", "target-only", "naive-tree"),
        "toy, 2 x 2, iid": ("k-seq",),
        "L4, 2 x 1, without-replacement": ("nss", "target-only", "naive-tree", "rrsw"),
    }.items()
    for rule in rules
}


def case(rule, world):
    marks = [pytest.mark.slow] if (rule, world.name) in SLOW else []
    return pytest.param(rule, world, id=f"{rule}: {world.name}", marks=marks)


def assert_lossless(rule, world, rounds=1):
    run = tree_law(rule, world, rounds)
    assert run.law == world.world.target_law(rounds * (world.depth + 1))


@pytest.mark.parametrize(("rule", "world"), [case(*pair) for pair in CASES])
def test_every_rule_is_lossless(rule, world):
    assert_lossless(rule, world)


@pytest.mark.parametrize("rule", TREE_RULES)
def test_two_rounds_are_lossless(rule):
    assert_lossless(rule, TreeWorld(WORLDS["toy"], (2,), TREE_RULES[rule].draws[0]), rounds=2)


def test_two_rounds_of_traversal_are_lossless_behind_two_levels():
    assert_lossless("traversal", TREE_WORLDS["toy, 2 x 1, without-replacement"], rounds=2)


def random_cases(seed):
    world = random_rational(seed, vocabulary=2 + seed % 3)
    branching = ((2,), (2, 1), (3,), (1, 2))[seed % 4]
    if world.vocabulary == 4 and len(branching) == 2:
        branching = branching[:1]
    return [(rule.name, TreeWorld(world, branching, rule.draws[0])) for rule in TREE_RULES.values()]


def test_random_worlds():
    for rule, world in random_cases(0):
        assert_lossless(rule, world)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
def test_many_random_worlds(seed):
    for rule, world in random_cases(seed):
        assert_lossless(rule, world)


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["rrs", "rrsw", "hu-greedy", "traversal", "target-only"])
def test_three_levels_and_three_siblings(rule):
    draws = TREE_RULES[rule].draws[0]
    assert_lossless(rule, TreeWorld(WORLDS["toy"], (2, 2, 1), draws))
    assert_lossless(rule, TreeWorld(random_rational(3, vocabulary=3), (3, 1, 1), draws))
    assert_lossless(rule, TreeWorld(WORLDS["toy"], (1, 2), draws), rounds=2)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("nss", Fraction(231, 512)),
        ("naive-tree", Fraction(99, 128)),
        ("rrs", Fraction(13, 16)),
        ("hu-greedy", Fraction(7, 8)),
    ],
)
def test_acceptance_of_two_siblings(rule, expected):
    draws = Draws.TOP_AND_ONE if rule == "hu-greedy" else Draws.IID
    assert tree_law(rule, TreeWorld(WORLDS["L4"], (2,), draws)).emitted - 1 == expected


def test_acceptance_of_k_seq():
    accepted = tree_law("k-seq", TREE_WORLDS["L4, 2, iid"]).emitted - 1
    assert float(accepted) == pytest.approx(0.83768, abs=5e-6)
    assert accepted < Fraction(223, 256), "the optimum for iid siblings"


def test_acceptance_of_traversal():
    world = World.chain([(3, 4, 3)] * 3, [(6, 3, 1)] * 3)
    run = tree_law("traversal", TreeWorld(world, (2,), Draws.WITHOUT_REPLACEMENT))
    assert run.emitted - 1 == Fraction(7, 8)


@pytest.mark.parametrize("name", ["L4", "L357"])
def test_one_sibling_is_the_token_rule(name):
    accepted = rule_law(token, WORLDS[name], 1).emitted
    for rule in ("naive-tree", "rrs", "rrsw", "k-seq", "hu-greedy", "traversal"):
        world = TreeWorld(WORLDS[name], (1,), TREE_RULES[rule].draws[0])
        assert tree_law(rule, world).emitted == accepted


def test_traversal_of_one_path_accepts_as_block_does():
    world = TreeWorld(WORLDS["L4"], (1, 1), Draws.WITHOUT_REPLACEMENT)
    assert tree_law("traversal", world).emitted == rule_law(block, world.world, 2).emitted


def test_traversal_accepts_more_than_rrsw():
    world = TREE_WORLDS["toy, 2 x 1, without-replacement"]
    assert tree_law("traversal", world).emitted > tree_law("rrsw", world).emitted


def k_seq_with(rho):
    return functools.partial(walk, functools.partial(siblings.k_seq, rho=rho))


@pytest.mark.parametrize("rho", [Fraction(11, 7), Fraction(9, 5), 2])
def test_k_seq_is_lossless_above_its_root(rho):
    assert_lossless(k_seq_with(rho), TREE_WORLDS["L4, 2, iid"])


def test_k_seq_is_lossy_below_its_root():
    world = TREE_WORLDS["L4, 2, iid"]
    run = tree_law(k_seq_with(Fraction(1)), world)
    assert run.law.total_variation(world.world.target_law(2)) > 0


def test_the_root_of_k_seq_lies_between():
    p, q = (np.array(rows[0]) for rows in (WORLDS["L4"].target, WORLDS["L4"].draft))
    rho = siblings.k_seq_rho(p, q, 2)
    assert 1 < rho < Fraction(11, 7)
    assert_lossless(k_seq_with(rho), TreeWorld(WORLDS["L4"], (2,), Draws.IID))
