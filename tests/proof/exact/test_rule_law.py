from fractions import Fraction

import pytest

from draftproof.proof.exact.interval import OracleGenerator, explore
from draftproof.proof.exact.rule_law import RULES, draw_drafts, rule_law
from draftproof.proof.worlds.catalogue import WORLDS, random_rational
from draftproof.proof.worlds.law import complete
from draftproof.reference.greedy_block import greedy_block

L4, TOY = WORLDS["L4"], WORLDS["toy"]


def small_worlds(count, vocabularies=(2, 3, 4)):
    return [random_rational(seed, vocabularies[seed % len(vocabularies)]) for seed in range(count)]


def target_law(world, num_draft):
    return world.target_law(sum(num_draft) + len(num_draft))


@pytest.mark.parametrize("rule", RULES)
def test_one_round_has_the_targets_law_in_random_worlds(rule):
    for world in small_worlds(6):
        assert rule_law(RULES[rule], world, 2).law == target_law(world, [2])
    for world in small_worlds(2, vocabularies=(2, 3)):
        assert rule_law(RULES[rule], world, 3).law == target_law(world, [3])


@pytest.mark.parametrize("rule", RULES)
def test_two_rounds_have_the_targets_law(rule):
    for world in (TOY, random_rational(7, 3)):
        assert rule_law(RULES[rule], world, 2, 1).law == target_law(world, [2, 1])


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(200))
def test_rules_have_the_targets_law_in_200_random_worlds(rule, seed):
    world = random_rational(1_000 + seed, 2 + seed % 3)
    rounds = [[1], [2], [1, 1]] if world.vocabulary == 4 else [[1], [2], [3], [1, 1], [2, 1]]
    for num_draft in rounds:
        assert rule_law(RULES[rule], world, *num_draft).law == target_law(world, num_draft)


@pytest.mark.parametrize("num_draft", [(3, 2), (2, 2, 1)])
def test_greedy_block_carries_several_discounts_at_once(num_draft):
    assert rule_law(greedy_block, TOY, *num_draft).law == target_law(TOY, num_draft)


@pytest.mark.parametrize(
    ("world", "num_draft", "distance"),
    [
        (TOY, [1], 0),
        (TOY, [2], Fraction(1, 9)),
        (L4, [2], Fraction(1, 32)),
        (TOY, [2, 2], Fraction(37, 243)),
    ],
)
def test_greedy_block_without_its_state_is_lossy(world, num_draft, distance):
    def forgetful(*arguments):
        return greedy_block(*arguments)

    law = rule_law(forgetful, world, *num_draft).law
    assert law.total_variation(target_law(world, num_draft)) == distance


def two_rounds_keyed_by_position(rule, world, g):
    """The law of two tokens where place t of the text owns one accept uniform, whoever asks."""

    def program(path):
        by_position = OracleGenerator().random(2 * g)
        text: tuple[int, ...] = ()
        for _ in range(2):
            drafts = draw_drafts(path, world.draft, world, text, g)
            q, p = world.rows(drafts, text)
            accept = by_position[len(text) : len(text) + g]
            emission = rule(drafts, q, p, accept, OracleGenerator().random())
            text = (*text, *drafts[: emission.num_accepted], emission.last_token)
            if len(text) >= 2:
                break
        return text[:2]

    runs = [(text, weight) for text, weight in explore(program) if isinstance(text, tuple)]
    return complete(runs, world, 2)


@pytest.mark.parametrize(("rule", "distance"), [("token", 0), ("block", Fraction(29, 5120))])
def test_block_must_not_key_its_noise_by_the_absolute_position(rule, distance):
    law = two_rounds_keyed_by_position(RULES[rule], L4, 2)
    assert law.total_variation(L4.target_law(2)) == distance
