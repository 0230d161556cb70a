from fractions import Fraction

import numpy as np
import pytest

from draftproof.proof import WORLDS
from draftproof.proof.exact import bisection
from draftproof.proof.exact.bisection import ONE, bisected_law, impossible_measure
from draftproof.proof.exact.exact_law import BOUNDARY, oracle_law
from draftproof.proof.exact.generator import NotDrivable
from draftproof.proof.exact.replay import Replay
from draftproof.proof.mutants import get
from draftproof.proof.subjects.subject import as_subject

correct = get("token").build()

L4, L357, ZEROS = WORLDS["L4"], WORLDS["L357"], WORLDS["zeros"]


class Changed(np.random.Generator):
    """A generator that changes another one's uniforms."""

    def __init__(self, rng, change):
        super().__init__(np.random.PCG64(0))
        self.rng, self.change = rng, change

    def random(self, *args, **kwargs):
        return self.change(self.rng.random(*args, **kwargs))


def with_uniforms(change):
    def verify(draft, q, p, num_draft, rng):
        return correct(draft, q, p, num_draft, Changed(rng, change))

    return verify


def law(subject, world, num_draft, max_draft=None):
    return bisected_law(Replay(as_subject(subject), world, num_draft, max_draft))


def test_thresholds_are_found_to_the_last_bit():
    found: set[int] = set()
    bisected_law(Replay(as_subject(correct), L4, 1, max_draft=2), found)
    accept, residual, bonus = {12, 8}, {4}, {6, 10, 14} | {6, 12, 14} | {2, 8, 12} | {2, 10, 12}
    assert found == {ONE * n // 16 for n in accept | residual | bonus}


@pytest.mark.parametrize("size", [(0, 2), (1, 1), (1, 2), (2, 2)])
def test_a_right_verifier_is_exact(size):
    run = law(correct, L4, *size)
    assert run.law == L4.target_law(size[0] + 1)
    assert (run.law.error, run.boundary) == (0, 0)
    run = law(correct, L357, *size)
    target = L357.target_law(size[0] + 1)
    assert run.law.total_variation(target) <= run.law.error < 1e-12
    assert impossible_measure(run, L357) == 0


def test_it_emits_what_it_should():
    assert law(correct, L4, 2).emitted == Fraction(21, 16) + 1


def test_controls_have_their_known_distance():
    wrong = [get(name).build() for name in ("resample p on a rejection", "one uniform for all")]
    distances = [law(c, L4, 2).law.total_variation(L4.target_law(3)) for c in wrong]
    assert distances == [Fraction(85, 512), Fraction(3, 32)]


def test_a_threshold_that_few_outcomes_show_is_found():
    def dropping(draft, q, p, num_draft, rng):
        """Takes the last accepted draft back, so that one more or one less hardly shows."""
        out, n = correct(draft, q, p, num_draft, rng)
        rows = np.arange(len(out))
        last = out[rows, n - 1].copy()
        out[rows, n - 1] = -1
        out[rows, np.maximum(n - 2, 0)] = last
        return out, np.maximum(n - 1, 1)

    exact = oracle_law(as_subject(dropping), L4, 2).law
    assert law(dropping, L4, 2).law == exact


def test_a_shifted_threshold_is_seen_however_small():
    nudged = with_uniforms(lambda u: np.clip(u + 1e-9, 0, 1 - 2.0**-53))
    distance = law(nudged, L4, 1).law.total_variation(L4.target_law(2))
    assert 1e-10 < distance < 1e-8


def rounded(u):
    return u.astype(np.float32).astype(np.float64)


def test_rounded_uniforms_produce_impossible_tokens_with_their_measure():
    measure = impossible_measure(law(with_uniforms(rounded), ZEROS, 0), ZEROS)
    assert measure == Fraction(1, 2**25)  # what rounds up to 1
    assert measure >= BOUNDARY


def test_an_accept_test_that_lets_zero_pass_has_the_measure_of_zero():
    def at_most(draft, q, p, num_draft, rng):
        """Lets a draft of probability zero pass at u = 0, on a grid of 24 bits."""
        coarse = Changed(rng, lambda u: np.floor(u * 2**24) / 2**24)
        nudged = np.where(p[:, :-1] == 0, 1e-300, p[:, :-1])
        tilted = np.concatenate([nudged, p[:, -1:]], axis=1)
        return correct(draft, q, tilted, num_draft, coarse)

    measure = impossible_measure(law(at_most, ZEROS, 1), ZEROS)
    assert measure == Fraction(1, 2) / 2**24  # q = 1/2 on the token with p = 0


def test_the_edge_of_the_grid_is_below_the_bound():
    def strict(draft, q, p, num_draft, rng):
        """The plain inverse CDF with < : u = 0 picks the first token, of weight zero or not."""
        cumulative = np.cumsum(p[:, 0], axis=1)
        token = (cumulative < rng.random((len(p), 1)) * cumulative[:, -1:]).sum(axis=1)
        return token[:, None], np.ones(len(p), dtype=int)

    run = law(strict, WORLDS["one-hot"], 0)
    assert impossible_measure(run, WORLDS["one-hot"]) == Fraction(1, ONE)
    assert Fraction(1, ONE) < BOUNDARY


def test_exceptions_are_measured():
    def raising(draft, q, p, num_draft, rng):
        u = rng.random((len(p), 1))
        if (u >= 1 - 2.0**-20).any():
            raise IndexError
        cumulative = np.cumsum(p[:, 0], axis=1)
        return (cumulative <= u).sum(axis=1)[:, None], np.ones(len(p), dtype=int)

    subject = as_subject(raising)
    run = bisected_law(Replay(subject, L4, 0))
    assert run.boundary == impossible_measure(run, L4) == Fraction(1, 2**20)
    assert run.law.total_variation(L4.target_law(1)) == Fraction(1, 2**20)


def test_known_thresholds_save_calls_and_change_nothing():
    known: set[int] = set()
    first = bisected_law(Replay(as_subject(correct), L357, 1), known)
    assert known
    again = bisected_law(Replay(as_subject(correct), L357, 1), known)
    assert again.law == first.law
    assert again.paths < first.paths / 2


def test_a_fault_that_no_look_at_its_cell_has_met_is_met_by_random_texts(monkeypatch):
    monkeypatch.setattr(bisection, "RANDOM_POINTS", 0)

    def corner(draft, q, p, num_draft, rng):
        """Emits a 3 in a box of uniforms that holds neither a cell's middle nor a face's."""
        u, v = rng.random((len(p), 1)), rng.random((len(p), 1))
        token = (np.cumsum(p[:, 0], axis=1) <= u).sum(axis=1)
        wrong = ((u > 0.02) & (u < 0.15) & (v > 0.1) & (v < 0.3))[:, 0]
        return np.where(wrong, 3, token)[:, None], np.ones(len(p), dtype=int)

    distance = law(corner, L4, 0).law.total_variation(L4.target_law(1))
    assert float(distance) == pytest.approx(0.13 * 0.2)


def test_a_subject_of_single_rows_is_cut_along_what_it_asks_for():
    def single(draft, q, p, rng):
        """Draws its last uniform only where it needs one, as a float."""
        for i, x in enumerate(draft):
            if float(rng.random()) * q[i, x] >= p[i, x]:
                weights = np.maximum(p[i] - q[i], 0)
                break
        else:
            i, weights = len(draft), p[len(draft)]
        last = (np.cumsum(weights) <= float(rng.random()) * weights.sum()).sum()
        return [*draft[:i].tolist(), int(last)]

    replay = Replay(as_subject(single, "single"), L4, 2)
    run = bisected_law(replay)
    assert run.law == L4.target_law(3)
    assert run.emitted == Fraction(21, 16) + 1


def test_decisions_on_two_uniforms_at_once_are_refused():
    def sums(draft, q, p, num_draft, rng):
        u = (rng.random((len(p), 1)) + rng.random((len(p), 1))) % 1
        token = (np.cumsum(p[:, 0], axis=1) <= u).sum(axis=1)
        return token[:, None], np.ones(len(p), dtype=int)

    with pytest.raises(NotDrivable):
        law(sums, L4, 0)
