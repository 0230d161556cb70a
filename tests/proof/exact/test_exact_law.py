import contextlib
import time
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from draftproof.proof import WORLDS, exact_law, expected_accepted
from draftproof.proof.exact.exact_law import (
    BOUNDARY,
    RULES,
    oracle_calls_law,
    oracle_law,
    oracle_pair_law,
    rounding_error,
    rule_law,
)
from draftproof.proof.exact.generator import NotDrivable
from draftproof.proof.mutants import get
from draftproof.proof.subjects.emission import ContractBroken
from draftproof.proof.subjects.subject import as_subject
from draftproof.reference.chain import Emission, exact_match, token
from draftproof.reference.draw import inverse_cdf

correct = get("token").build()

L4, L357 = WORLDS["L4"], WORLDS["L357"]


def plain(accepts=None, recovery=None, bonus=None, accept_uniform=None):
    """A verifier of one row in plain Python; each choice can be made wrong."""

    def draw(weights, u):
        for x, weight in enumerate(weights):
            u = u - weight / sum(weights)
            if u < 0:
                return x
        return int(np.flatnonzero(weights)[-1])

    def verify(draft, q, p, rng):
        u = [rng.random() for _ in draft] if accept_uniform is None else accept_uniform(rng, draft)
        for i, x in enumerate(draft):
            accepted = u[i] * q[i][x] < p[i][x] if accepts is None else accepts(u[i], p, q, i, x)
            if not accepted:
                weights = np.maximum(p[i] - q[i], 0) if recovery is None else recovery(p[i], q[i])
                return [*draft[:i], draw(weights, rng.random())]
        last = p[len(draft)] if bonus is None or not len(draft) else bonus(p, q)
        return [*draft, draw(last, rng.random())]

    return verify


WRONG = {
    "resample p": (plain(recovery=lambda p, q: p), 0.1660),
    "|p - q|": (plain(recovery=lambda p, q: abs(p - q)), 0.1445),
    "inverted": (plain(accepts=lambda u, p, q, i, x: u * p[i][x] < q[i][x]), 0.3438),
    "accept always": (plain(accepts=lambda u, p, q, i, x: True), 0.3438),
    "p >= q": (plain(accepts=lambda u, p, q, i, x: p[i][x] >= q[i][x]), 0.5234),
    "one uniform": (plain(accept_uniform=lambda rng, d: [rng.random()] * len(d)), 0.0938),
    "draft bonus": (plain(bonus=lambda p, q: q[-1]), 0.1472),
    "bonus of the last draft": (plain(bonus=lambda p, q: p[-2]), 0.0674),
    "lenience": (plain(accepts=lambda u, p, q, i, x: u * q[i][x] < 1.1 * p[i][x]), 0.0584),
}


@pytest.mark.parametrize("world", WORLDS.values(), ids=str)
@pytest.mark.parametrize("rule", RULES)
def test_every_rule_has_the_targets_law(rule, world):
    for num_draft in (0, 1, 2):
        law = exact_law(rule, world, num_draft)
        assert law == world.target_law(num_draft + 1)
        assert law.error == 0


def test_a_reference_is_a_rule():
    assert exact_law(token, L4, 1) == L4.target_law(2)
    assert exact_law(exact_match, L357, 1) == L357.target_law(2)
    assert expected_accepted(token, L4, 2) == Fraction(21, 16)


@pytest.mark.parametrize(
    ("rule", "world", "num_draft", "expected"),
    [
        ("token", "L4", 0, 0),
        ("token", "L4", 1, Fraction(3, 4)),
        ("token", "L4", 2, Fraction(21, 16)),
        ("token", "toy", 2, Fraction(10, 9)),
        ("block", "toy", 2, Fraction(11, 9)),
        ("greedy-block", "toy", 2, Fraction(4, 3)),
        ("gumbel", "toy", 2, Fraction(10, 9)),
        ("gumbel", "L4", 1, Fraction(577, 816)),
        ("exact-match", "L4", 1, Fraction(9, 32)),
        ("token", "equal", 2, 2),
    ],
)
def test_expected_accepted(rule, world, num_draft, expected):
    assert expected_accepted(rule, WORLDS[world], num_draft) == expected


def test_a_wrong_rule_is_wrong_in_rationals():
    def redraws(drafts, q, p, accept, final):
        for i, x in enumerate(drafts):
            if inverse_cdf(p[i], accept[i]) != x:
                return Emission(i, inverse_cdf(p[i], final))
        return Emission(len(drafts), inverse_cdf(p[-1], final))

    law = rule_law(redraws, L4, 2).law
    assert float(law.total_variation(L4.target_law(3))) == pytest.approx(0.0828, abs=5e-5)
    assert law.error == 0


@pytest.mark.parametrize("subject", [correct, plain()], ids=["vectorised", "plain"])
def test_a_right_black_box_is_exact_on_dyadic_worlds(subject):
    assert expected_accepted(subject, L4, 2) == Fraction(21, 16)
    for name in ("L4", "zeros", "one-hot", "equal", "ties", "padded"):
        world = WORLDS[name]
        law = exact_law(subject, world, 2)
        assert law == world.target_law(3), name
        assert law.error == 0


@pytest.mark.parametrize("name", ["L357", "near-equal", "rational-1", "dyadic-1"])
def test_rounding_stays_within_its_budget(name):
    world = WORLDS[name]
    for subject in (correct, plain()):
        law = exact_law(subject, world, 2)
        assert law.total_variation(world.target_law(3)) <= law.error <= rounding_error(world, 3)
    assert 0 < rounding_error(world, 3) < 1e-12


@pytest.mark.parametrize(("subject", "expected"), WRONG.values(), ids=WRONG)
def test_wrong_rules_have_their_known_distance(subject, expected):
    law = exact_law(subject, L4, 2)
    assert float(law.total_variation(L4.target_law(3))) == pytest.approx(expected, abs=6e-5)
    assert 0 < law.error < 1e-12


def test_controls_have_their_known_distance():
    wrong = [get(name).build() for name in ("resample p on a rejection", "one uniform for all")]
    distances = [exact_law(c, L4, 2).total_variation(L4.target_law(3)) for c in wrong]
    assert distances == [Fraction(85, 512), Fraction(3, 32)]


def test_padding_reaches_the_subject():
    def bonus_of_the_padded_length(draft, q, p, num_draft, rng):
        out, n = correct(draft, q, p, num_draft, rng)
        rows = np.flatnonzero(n == num_draft + 1)
        out[rows, num_draft[rows]] = np.nanargmax(np.nan_to_num(p[rows, -1], nan=-1), axis=1)
        return out, n

    subject = as_subject(bonus_of_the_padded_length)
    assert oracle_law(as_subject(correct), L4, 1, 3).law == L4.target_law(2)
    assert oracle_law(subject, L4, 1, 2).law.total_variation(L4.target_law(2)) > 0.3


class Handing(np.random.Generator):
    """Hands out what it was given."""

    def __init__(self, arrays):
        super().__init__(np.random.PCG64(0))
        self.arrays = iter(arrays)

    def random(self, *args, **kwargs):
        return next(self.arrays)


def test_contracts():
    def uniforms(draft, q, p, num_draft, accept, final):
        return correct(draft, q, p, num_draft, Handing([accept, final[:, None]]))

    assert exact_law(uniforms, L4, 1, contract="uniforms") == L4.target_law(2)
    assert exact_law(plain(), L4, 1, contract="single") == L4.target_law(2)
    assert exact_law(correct, L4, 1, contract="ragged") == L4.target_law(2)


def shared(draft, q, p, num_draft, rng):
    B, K = draft.shape
    rows = [np.broadcast_to(rng.random((1, n)), (B, n)) for n in (K, 1)]
    return correct(draft, q, p, num_draft, Handing(rows))


def test_rows_that_share_noise_are_seen_in_pairs():
    product = L4.target_law(2).product(L357.target_law(2))
    right = oracle_pair_law(as_subject(correct), (L4, L357), (1, 1))
    assert right.law.total_variation(product) <= right.law.error
    assert exact_law(shared, L4, 1) == L4.target_law(2)
    assert (
        oracle_pair_law(as_subject(shared), (L4, L357), (1, 1)).law.total_variation(product) > 0.2
    )
    mixed = oracle_pair_law(as_subject(correct), (L4, L4), (0, 1), max_draft=2).law
    assert mixed == L4.target_law(1).product(L4.target_law(2))


def test_noise_kept_between_calls_is_seen_in_two_calls():
    class Keeping:
        kept: Any = None

        def __call__(self, draft, q, p, num_draft, rng):
            self.kept = self.kept or [rng.random(draft.shape), rng.random((len(draft), 1))]
            return correct(draft, q, p, num_draft, Handing(self.kept))

    target = L4.target_law(4)
    assert oracle_calls_law(as_subject(correct), L4, 1).law == target
    assert oracle_law(as_subject(Keeping()), L4, 1).law == L4.target_law(2)
    assert oracle_calls_law(as_subject(Keeping()), L4, 1).law.total_variation(target) > 0.05
    assert oracle_calls_law(as_subject(correct), L4, (1, 0)).law == L4.target_law(3)


def test_exceptions_on_intervals_mean_nothing_but_broken_outputs_do():
    def raising(draft, q, p, num_draft, rng):
        raise KeyError

    def out_of_range(draft, q, p, num_draft, rng):
        out, n = correct(draft, q, p, num_draft, rng)
        return np.where(out == 3, 4, out), n

    with pytest.raises(NotDrivable, match="KeyError"):
        exact_law(raising, L4, 1)
    with pytest.raises(ContractBroken, match="4"):
        exact_law(out_of_range, L4, 1)


def test_an_edge_of_the_grid_is_no_broken_contract():
    def unscaled(draft, q, p, rng):
        """The last running sum may round to 1 - 2^-53; above it searchsorted returns V."""
        for i, x in enumerate(draft):
            if rng.random() * q[i][x] >= p[i][x]:
                weights = np.maximum(p[i] - q[i], 0)
                return [
                    *draft[:i],
                    int(np.searchsorted(np.cumsum(weights / weights.sum()), rng.random())),
                ]
        return [*draft, int(np.searchsorted(np.cumsum(p[-1]) * (1 - 2.0**-45), rng.random()))]

    run = oracle_law(as_subject(unscaled), L4, 1)
    assert 0 < run.boundary < BOUNDARY
    assert run.law.total_variation(L4.target_law(2)) < BOUNDARY


def test_a_swallowed_refusal_is_noticed():
    def careless(draft, q, p, num_draft, rng):
        with contextlib.suppress(Exception):
            rng.exponential(size=4)
        return correct(draft, q, p, num_draft, rng)

    with pytest.raises(NotDrivable, match="exponential"):
        exact_law(careless, L4, 1)


def test_enumeration_is_quick():
    subject = as_subject(correct)
    start = time.process_time()
    assert oracle_law(subject, L4, 2).paths == 100
    assert time.process_time() - start < 1
