import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import draftproof
from draftproof.proof.mutants import get
from draftproof.proof.sampled.joint_test import DRAFT, LENGTH, TARGET, joint_test

correct = get("token").build()

V = len(TARGET)
RESAMPLE, SHARED = "resample p on a rejection", "one uniform for all"


def round_law(state, num_draft, rule):
    """The exact law of what one call emits, by enumeration: (text, probability) pairs."""
    for drafts in itertools.product(range(V), repeat=num_draft):
        states = (state, *drafts)
        drafted = math.prod((DRAFT[s][x] for s, x in itertools.pairwise(states)), start=Fraction(1))
        survived = Fraction(1)
        for i, x in enumerate(drafts):
            p, q = TARGET[states[i]], DRAFT[states[i]]
            ratio = min(Fraction(1), p[x] / q[x])
            accepted = min(survived, ratio) if rule == SHARED else survived * ratio
            left = [max(Fraction(0), a - b) for a, b in zip(p, q, strict=True)]
            weights = p if rule == RESAMPLE else left
            for y, weight in enumerate(weights):
                if accepted < survived and weight > 0:
                    share = (survived - accepted) * weight / sum(weights)
                    yield (*drafts[:i], y), drafted * share
            survived = accepted
        for y, weight in enumerate(TARGET[states[-1]]):
            yield (*drafts, y), drafted * survived * weight


def text_law(rule):
    """The exact law of the texts that the joint test makes with a rule."""
    law = np.full((V,) * LENGTH, Fraction(0), dtype=object)

    def extend(text, probability):
        if len(text) >= LENGTH:
            law[text[:LENGTH]] += probability
            return
        state, num_draft = (text[-1], LENGTH - 1 - len(text)) if text else (0, LENGTH)
        for emitted, share in round_law(state, num_draft, rule):
            extend(text + emitted, probability * share)

    extend((), Fraction(1))
    return law


def exact_target_law():
    law = np.empty((V,) * LENGTH, dtype=object)
    for a, b, c in np.ndindex(law.shape):
        law[a, b, c] = TARGET[0][a] * TARGET[a][b] * TARGET[b][c]
    return law


def test_the_chains_are_laws_and_every_text_is_expected_often():
    assert all(sum(row) == 1 for row in (*TARGET, *DRAFT))
    law = exact_target_law()
    assert law.sum() == 1
    assert law.min() * 300_000 > 100


def test_the_way_texts_are_made_is_lossless_for_a_lossless_rule():
    assert (text_law("token") == exact_target_law()).all()


def test_a_correct_verifier_passes():
    result = joint_test(correct)
    assert result.passed
    assert result.degrees_of_freedom == 63
    assert result.threshold == pytest.approx(103.4, abs=0.05)
    assert result.counts.sum() == 300_000


@pytest.mark.parametrize(("name", "total_variation"), [(RESAMPLE, 0.1848), (SHARED, 0.0736)])
def test_a_control_fails_by_its_exact_total_variation(name, total_variation):
    exact = np.abs(text_law(name) - exact_target_law()).sum() / 2
    assert float(exact) == pytest.approx(total_variation, abs=5e-5)
    result = joint_test(get(name).build())
    assert not result.passed
    assert result.statistic > 4 * 300_000 * float(exact) ** 2
    noise = np.sqrt(V**LENGTH / 300_000) / 2  # E |counts/n - law| <= sqrt(law/n), summed by Cauchy
    assert result.total_variation == pytest.approx(float(exact), abs=noise)


def test_the_bonus_token_counts():
    def bonus_from_the_last_draft_row(ids, q, p, num_draft, rng):
        rows = np.flatnonzero(num_draft > 0)
        p[rows, num_draft[rows]] = p[rows, num_draft[rows] - 1]
        return correct(ids, q, p, num_draft, rng)

    assert not joint_test(bonus_from_the_last_draft_row).passed


def test_ragged_lengths_count():
    def ignores_num_draft(ids, q, p, num_draft, rng):
        lengths = np.full_like(num_draft, ids.shape[1])
        token_ids, num_emitted = correct(ids, q, p, lengths, rng)
        return token_ids, np.minimum(num_emitted, num_draft + 1)

    assert not joint_test(ignores_num_draft).passed


def test_every_call_has_rows_that_must_not_be_read():
    seen = []

    def watch(ids, q, p, num_draft, rng):
        past = np.arange(LENGTH) >= num_draft[:, None]
        assert (ids[past] == -1).all()
        np.testing.assert_array_equal(np.isnan(q).any(axis=2), past)
        np.testing.assert_array_equal(np.isnan(p[:, 1:]).any(axis=2), past)
        seen.append(set(num_draft.tolist()))
        return correct(ids, q, p, num_draft, rng)

    joint_test(watch, sequences=3_000)
    assert seen == [{3}, {0, 1}, {0}]


def test_a_subject_may_spoil_its_arguments():
    def spoil(ids, q, p, num_draft, rng):
        result = correct(ids, q, p, num_draft, rng)
        for array in (ids, q, p):
            array[...] = 0
        return result

    expected = joint_test(correct, sequences=3_000)
    np.testing.assert_array_equal(joint_test(spoil, sequences=3_000).counts, expected.counts)


def test_the_seed_decides():
    first, again, other = (joint_test(correct, sequences=3_000, seed=s).counts for s in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


def test_the_power_is_what_it_says():
    result = joint_test(correct)
    noncentrality = 4 * 300_000 * result.detectable_total_variation**2
    assert stats.ncx2.sf(result.threshold, 63, noncentrality) == pytest.approx(0.99)
    assert result.p_value == pytest.approx(stats.chi2.sf(result.statistic, 63))
    assert stats.chi2.sf(result.threshold, 63) == pytest.approx(1e-3)


def test_an_impossible_text_that_is_seen_fails_at_once():
    never_one = [[Fraction(1, 2), Fraction(0), Fraction(1, 2)]] * 3
    uniform = [[Fraction(1, 3)] * 3] * 3
    honest = joint_test(correct, sequences=1_000, target=never_one, draft=uniform)
    assert honest.passed
    assert honest.degrees_of_freedom == 7

    def slips_once(ids, q, p, num_draft, rng):
        token_ids, num_emitted = correct(ids, q, p, num_draft, rng)
        token_ids[0, 0] = 1
        return token_ids, num_emitted

    result = joint_test(slips_once, sequences=1_000, target=never_one, draft=uniform)
    assert (result.statistic, result.p_value, result.passed) == (np.inf, 0, False)


def test_too_few_sequences_are_refused():
    with pytest.raises(ValueError, match="sequences: found 1929; wanted at least 1930"):
        joint_test(correct, sequences=1_929)


@pytest.mark.parametrize(
    ("result", "complaint"),
    [
        (lambda B: (np.zeros((B, 4), int), np.zeros(B, int)), "found 0 tokens emitted"),
        (lambda B: (np.zeros((B, 4), int), np.full(B, 5)), "found 5 tokens emitted"),
        (
            lambda B: (np.full((B, 4), -1), np.ones(B, int)),
            r"row \[-1, -1, -1, -1\]; wanted 1\.\.4",
        ),
        (lambda B: (np.full((B, 4), 4), np.ones(B, int)), r"row \[4, 4, 4, 4\]; .* in 0\.\.3"),
        (lambda B: (np.zeros((B, 3), int), np.ones(B, int)), r"found shapes \(2000, 3\)"),
        (lambda B: (np.zeros((B, 4), int), np.ones((B, 1), int)), r"and \(2000, 1\)"),
    ],
)
def test_what_is_no_emission_is_refused(result, complaint):
    with pytest.raises(ValueError, match=complaint):
        joint_test(lambda ids, *_: result(len(ids)), sequences=2_000)


def test_p_values_are_uniform_over_seeds():
    p_values = [joint_test(correct, sequences=3_000, seed=seed).p_value for seed in range(200)]
    assert stats.kstest(p_values, "uniform").pvalue > 1e-3


@pytest.mark.slow
def test_p_values_of_the_verifier_are_uniform_over_a_thousand_seeds():
    p_values = [
        joint_test(draftproof.verify, sequences=30_000, seed=seed).p_value for seed in range(1_000)
    ]
    assert stats.kstest(p_values, "uniform").pvalue > 1e-3
