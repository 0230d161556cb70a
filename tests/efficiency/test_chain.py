# mypy: no-check-untyped-defs
from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from draftproof import SparseProbs, verify
from draftproof.efficiency.chain import CHAIN_RULES, survival_along, survival_in
from draftproof.proof.exact.rule_law import RULES, rule_law
from draftproof.proof.worlds.catalogue import WORLDS, random_rational
from draftproof.reference.block import weights
from tests.efficiency.linear_program import best_of_chain


def matrices(world):
    return np.array(world.target, dtype=object), np.array(world.draft, dtype=object)


@pytest.mark.parametrize(
    ("world", "num_draft", "expected"),
    [
        ("L4", 1, ["3/4", "3/4", "3/4", "9/32"]),
        ("L4", 2, ["21/16", "11/8", "45/32", None]),
        ("toy", 2, ["10/9", "11/9", "4/3", None]),
    ],
)
def test_expected_values(world, num_draft, expected):
    for rule, value in zip(CHAIN_RULES, expected, strict=False):
        if value is not None:
            total = sum(survival_in(*matrices(WORLDS[world]), num_draft, rule=rule))
            assert total == Fraction(value), rule


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", ["L4", "L357", "toy", "zeros", "one-hot", "near-equal"])
def test_the_closed_form_is_what_the_rule_keeps(rule, name):
    for g in (0, 1, 2):
        survival = survival_in(*matrices(WORLDS[name]), g, rule=rule)
        assert sum(survival) == rule_law(RULES[rule], WORLDS[name], g).emitted - 1


@pytest.mark.parametrize("seed", range(3))
def test_token_below_block_below_the_linear_program_below_greedy_block(seed):
    world = random_rational(seed, 2 + seed % 2)
    target, draft = matrices(world)
    token, block, greedy = (
        sum(survival_in(target, draft, 2, rule=rule)) for rule in CHAIN_RULES[:3]
    )
    assert token <= block <= greedy
    best = best_of_chain(target.astype(float), draft.astype(float), 2)
    assert float(block) == pytest.approx(best, abs=1e-9), "no rule without state keeps more"


def test_three_drafts_of_the_toy():
    target, draft = matrices(WORLDS["toy"])
    best = best_of_chain(target.astype(float), draft.astype(float), 3)
    assert float(sum(survival_in(target, draft, 3, rule="block"))) == pytest.approx(best, abs=1e-9)


def test_floats_and_long_chains():
    target, draft = (rows.astype(float) for rows in matrices(WORLDS["L4"]))
    exact = survival_in(*matrices(WORLDS["L4"]), 6, rule="block")
    measured = survival_in(target, draft, 6, rule="block")
    np.testing.assert_allclose(measured, [float(x) for x in exact], rtol=1e-14)
    assert len(survival_in(target, draft, 500, rule="token")) == 500
    with pytest.raises(ValueError, match="num_draft: found 12 drafts over 4 tokens"):
        survival_in(target, draft, 12, rule="block")


def test_an_unknown_rule_lists_the_known_ones():
    for call in (
        lambda: survival_in(np.eye(2), np.eye(2), 1, rule="rrs"),
        lambda: survival_along([[0]], None, [[[1.0]] * 2], rule="rrs"),
    ):
        with pytest.raises(ValueError, match="'token', 'block', 'greedy-block'"):
            call()


# Along recorded drafts


def test_along_drafts_the_weights_are_the_references(case_of):
    case = case_of(30, 5, 12)
    survival = {rule: survival_along(*case, rule=rule) for rule in CHAIN_RULES}
    for b, g in enumerate(case.num_draft):
        q, p, x = [*case.q[b, :g]], [*case.p[b, :g]], case.ids[b, :g].tolist()
        ratios = [p[i][x[i]] / q[i][x[i]] for i in range(g)]
        np.testing.assert_allclose(survival["block"][b, :g], weights(x, q, p)[1:], rtol=1e-14)
        np.testing.assert_allclose(survival["token"][b, :g], np.cumprod(np.minimum(ratios, 1)))
        joint = np.minimum(np.cumprod(ratios), 1)
        np.testing.assert_allclose(survival["greedy-block"][b, :g], joint, rtol=1e-12)
        for rule in CHAIN_RULES:
            assert np.isnan(survival[rule][b, g:]).all()
    assert (survival["token"] <= survival["block"])[~np.isnan(survival["token"])].all()


def test_the_mean_along_drafts_is_the_mean_over_verdicts(case_of):
    """Six thousand honest rounds: kept drafts, and their probabilities given the drafts."""
    rows, rng = 6_000, np.random.default_rng(0)
    p = np.broadcast_to(rng.dirichlet(np.ones(5), 4), (rows, 4, 5))
    q = np.broadcast_to(rng.dirichlet(np.ones(5), 3), (rows, 3, 5))
    ids = (np.cumsum(q, axis=-1) <= rng.random((rows, 3, 1))).sum(axis=-1).clip(max=4)
    for rule in ("token", "block", "greedy-block", "exact-match"):
        kept = verify(ids, q, p, None, rng, rule=rule).num_accepted
        given = survival_along(ids[:2_000], q[:2_000], p[:2_000], rule=rule).sum(axis=1)
        error = (kept.var() / rows + given.var() / 2_000) ** 0.5
        assert abs(kept.mean() - given.mean()) < 4.9 * error


def test_other_laws(case_of):
    case = case_of(6, 3, 5, ragged=False)
    every_id = np.broadcast_to(np.arange(5), case.q.shape)
    point = np.eye(5)[case.ids]
    for rule in CHAIN_RULES:
        dense = survival_along(case.ids, case.q, case.p, rule=rule)
        sparse = survival_along(case.ids, SparseProbs(every_id, case.q), case.p, rule=rule)
        np.testing.assert_array_equal(sparse, dense)
        one_hot = survival_along(case.ids, None, case.p, rule=rule)
        np.testing.assert_array_equal(one_hot, survival_along(case.ids, point, case.p, rule=rule))
        if rule != "greedy-block":  # all rules keep a deterministic drafter's draft with p(x)
            at_drafts = np.take_along_axis(case.p[:, :3], case.ids[..., None], axis=-1)[..., 0]
            np.testing.assert_allclose(one_hot, np.cumprod(at_drafts, axis=1), rtol=1e-12)
