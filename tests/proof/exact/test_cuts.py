import ml_dtypes
import numpy as np
import pytest

from draftproof.proof.exact.cuts import FINE, Draw, find_cuts
from draftproof.proof.exact.generator import NotDrivable
from draftproof.proof.mutants import get
from draftproof.proof.mutants.skeleton import Verifier, inverse_cdf
from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.subjects.subject import Subject, load
from draftproof.proof.worlds.wide import WIDE_WORLDS, cumulative

V = 3_001
FLAT = np.random.default_rng(0).uniform(0.5, 1.5, V)
GAPS = np.where(np.arange(V) % 3 == 1, 0, 1 / (1.0 + np.random.default_rng(1).permutation(V)))
LAWS = {"flat": FLAT / FLAT.sum(), "gaps": GAPS / GAPS.sum()}


def subject(call, contract=Contract.RAGGED):
    return Subject("it", contract, call)


def cuts_of(call, law, sample=8, contract=Contract.RAGGED):
    it = call if isinstance(call, Subject) else subject(call, contract)
    return find_cuts(Draw(it, law), sample, np.random.default_rng(0))


class ByProbability(Verifier):
    def draw(self, weights, u):
        order = np.argsort(-weights, axis=1, kind="stable")
        place = inverse_cdf(np.take_along_axis(weights, order, 1), u)
        return np.take_along_axis(order, place[:, None], 1)[:, 0]


class Mirrored(Verifier):
    def draw(self, weights, u):
        return inverse_cdf(weights, 1 - u - 2.0**-53)


class Backwards(Verifier):
    def draw(self, weights, u):
        return weights.shape[1] - 1 - inverse_cdf(weights[:, ::-1], u)


class Shuffled(Verifier):
    def draw(self, weights, u):
        order = np.random.default_rng(3).permutation(weights.shape[1])
        return order[inverse_cdf(weights[:, order], u)]


def one_by_one(draft, q, p, rng):
    return [int(np.searchsorted(p[0].cumsum(), rng.random() * p[0].sum(), side="right"))]


@pytest.mark.parametrize("law", LAWS.values(), ids=list(LAWS))
@pytest.mark.parametrize(
    ("call", "contract"),
    [
        (Verifier(), Contract.RAGGED),
        (ByProbability(), Contract.RAGGED),
        (Mirrored(), Contract.RAGGED),
        (Backwards(), Contract.RAGGED),
        (get("token, last uniform first").build(), Contract.RAGGED),
        (get("token, a loop over rows").build(), Contract.RAGGED),
        (get("exact match").build(), Contract.RAGGED),
        (one_by_one, Contract.SINGLE),
    ],
)
def test_a_right_draw_is_exact_in_whatever_order_it_lays_out_the_tokens(call, contract, law):
    cuts = cuts_of(call, law, contract=contract)
    assert cuts.is_exact
    assert cuts.total_variation + cuts.error < 1e-9


@pytest.mark.parametrize(
    "call",
    [
        Shuffled(),
        get("token, exponential race").build(),
        get("token, own entropy").build(),
        get("fixed seed in each call").build(),
    ],
)
def test_what_does_not_rise_with_a_uniform_of_its_own_is_not_drivable(call):
    with pytest.raises(NotDrivable):
        cuts_of(call, LAWS["gaps"])


def test_rows_that_share_their_noise_are_measured_alone():
    assert cuts_of(get("same last uniform for all rows").build(), LAWS["gaps"]).is_exact


class Coarse(Verifier):
    """Draws with uniforms of so many bits: cuts lie on a grid."""

    bits = 24

    def draw(self, weights, u):
        return super().draw(weights, np.floor(u * 2**self.bits) / 2**self.bits)

    def drawn(self, weights):
        edges = np.ceil(cumulative(weights) * 2**self.bits) / 2**self.bits
        return np.diff(edges, prepend=0.0)


class NarrowUniform(Coarse):
    """Asks NumPy for uniforms in float32, which have 24 bits."""

    def final_uniform(self, call, u, tau):
        return call.rng.random((call.B, 1), dtype=np.float32)[:, 0].astype(np.float64)

    def draw(self, weights, u):
        return inverse_cdf(weights, u)


class NarrowLaw(Verifier):
    """Rounds the law to bfloat16 before it draws."""

    def draw(self, weights, u):
        return super().draw(weights.astype(ml_dtypes.bfloat16).astype(np.float64), u)

    def drawn(self, weights):
        narrow = weights.astype(ml_dtypes.bfloat16).astype(np.float64)
        return narrow / narrow.sum()


class NarrowSum(Verifier):
    """Sums in float32."""

    def draw(self, weights, u):
        edges = weights.cumsum(axis=1, dtype=np.float32).astype(np.float64)
        return (edges <= u[:, None] * edges[:, -1:]).sum(axis=1)

    def drawn(self, weights):
        edges = weights.cumsum(dtype=np.float32).astype(np.float64)
        return np.diff(edges / edges[-1], prepend=0.0)


NARROW = [Coarse(), NarrowUniform(), NarrowLaw(), NarrowSum()]


def true_distance(call, law):
    return float(np.abs(call.drawn(law) - law).sum() / 2)


@pytest.mark.parametrize("law", LAWS.values(), ids=list(LAWS))
@pytest.mark.parametrize("call", NARROW, ids=lambda call: type(call).__name__)
def test_narrow_numbers_are_measured(call, law):
    cuts, truth = cuts_of(call, law, sample=50), true_distance(call, law)
    assert cuts.rounding < cuts.least <= truth
    assert cuts.total_variation == pytest.approx(truth, abs=4 * cuts.error)
    known_to = 2 * FINE * cuts.expected
    assert cuts.observed == pytest.approx(call.drawn(law)[cuts.token], abs=known_to)
    assert not cuts.is_exact


def test_a_float32_sum_costs_1e_4_at_32k_and_1e_3_at_262k():
    for name, expected in (("flat-32768", 1e-4), ("flat-262144", 1e-3)):
        distance = true_distance(NarrowSum(), WIDE_WORLDS[name].tables[0][0])
        assert expected < distance < 2 * expected
    cuts = cuts_of(NarrowSum(), WIDE_WORLDS["flat-32768"].tables[0][0], sample=12)
    truth = true_distance(NarrowSum(), WIDE_WORLDS["flat-32768"].tables[0][0])
    assert cuts.total_variation == pytest.approx(truth, abs=4 * cuts.error)


def test_our_native_verifier_is_exact_on_float32_rows_of_262144_tokens():
    row = WIDE_WORLDS["flat-262144"].tables[0][0].astype(np.float32)
    cuts = cuts_of(load("own:native", Contract.RAGGED), row, sample=4)
    assert cuts.is_exact
    assert cuts.total_variation + cuts.error < 1e-6


class Reaches(Verifier):
    """Gives the uniforms behind a sum that came out too small to the last id."""

    def draw(self, weights, u):
        edges = weights.cumsum(axis=1) * (1 - 1e-7)
        return np.minimum((edges <= u[:, None]).sum(axis=1), weights.shape[1] - 1)


def test_padding_that_can_be_drawn_is_found():
    cuts = cuts_of(Reaches(), np.append(LAWS["flat"], np.zeros(50)))
    assert cuts.least == pytest.approx(1e-7, rel=1e-3)


def test_a_certain_row_has_a_law_too():
    law = np.zeros(500)
    law[77] = 1
    assert cuts_of(Verifier(), law).is_exact
