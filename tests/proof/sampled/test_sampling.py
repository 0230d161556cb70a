import time
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import draftproof
from draftproof.proof.mutants.skeleton import Verifier
from draftproof.proof.sampled.pairs import PairSampler, consecutive, halves, neighbours
from draftproof.proof.sampled.sampling import (
    Experiment,
    Padding,
    Sampler,
    always,
    as_needed,
    ragged,
    streams,
)
from draftproof.proof.sampled.statistics import compare
from draftproof.proof.worlds.catalogue import WORLDS
from draftproof.proof.worlds.world import World

L4, L357, TOY = WORLDS["L4"], WORLDS["L357"], WORLDS["toy"]
FROM_2 = replace(L4, start=2)
correct = Verifier()


def watching(seen):
    def verify(draft, q, p, num_draft, rng):
        seen.append((draft.copy(), q.copy(), p.copy(), num_draft.copy()))
        return correct(draft, q, p, num_draft, rng)

    return verify


def sample(experiment, texts=20_000, subject=draftproof.verify, seed=0):
    sampler = Sampler(subject, experiment, seed)
    sampler.extend(texts)
    return sampler


@pytest.mark.parametrize("name", ["L4", "L357", "toy", "zeros", "near-equal"])
def test_the_law_is_the_worlds(name):
    experiment = Experiment((WORLDS[name],))
    V = experiment.vocabulary
    law = WORLDS[name].target_law(3)
    for text, probability in np.ndenumerate(experiment.laws[0].reshape(V, V, V)):
        assert probability == float(law[text])


@pytest.mark.parametrize(
    "experiment",
    [
        Experiment((L4,)),
        Experiment((L4,), lengths=ragged),
        Experiment((L4, L357, FROM_2, TOY), lengths=ragged, extra=2),
        Experiment((L4, L357), lengths=ragged, padding=Padding.ZERO),
        Experiment((L4, L357), lengths=ragged, padding=Padding.STALE, extra=1),
        Experiment((L357,), longest=1, lengths=always, in_place=True),
        Experiment((L4,), length=2, longest=0, extra=3),
        Experiment((L4,), length=4, longest=2),
        Experiment((L4, L357, TOY), length=4, lengths=ragged, rounds=1),
        Experiment((L4,), sampled_law=lambda row: [Fraction(1, 4)] * 4, longest=0),
    ],
)
def test_a_right_verifier_gives_every_world_its_law(experiment):
    for table in sample(experiment).tables:
        assert table.size == 20_000
        assert compare(table.counts, table.law).p_value > 1e-4


def test_drafts_come_from_the_sampled_law_and_q_is_the_declared_one():
    seen: list[Any] = []
    experiment = Experiment(
        (L4,), sampled_law=lambda row: [Fraction(0), Fraction(1, 2), Fraction(1, 2), Fraction(0)]
    )
    sample(experiment, 300, watching(seen))
    draft, q, _, _ = seen[0]
    assert set(draft.ravel()) == {1, 2}
    assert q[0, 0].tolist() == [float(x) for x in L4.draft[0]]


def test_drafts_have_the_drafters_law():
    seen: list[Any] = []
    sample(Experiment((L357,), longest=2), 30_000, watching(seen))
    first = [draft for draft, _, _, num_draft in seen if (num_draft == 2).all()]
    cells = np.concatenate([draft[:, 0] * 4 + draft[:, 1] for draft in first])
    law = np.array([[float(a * b) for b in L357.draft[x]] for x, a in enumerate(L357.draft[0])])
    assert compare(np.bincount(cells, minlength=16), law).p_value > 1e-4


def test_the_target_writes_on_after_the_last_round():
    seen: list[Any] = []
    sampler = sample(Experiment((L4,), longest=1, rounds=1), 5_000, watching(seen))
    assert sum(len(num_draft) for *_, num_draft in seen) == 5_000
    assert int(sampler.emitted.sum()) == 5_000


@pytest.mark.parametrize("padding", Padding)
def test_the_rows_follow_the_drafts_and_padding_is_what_it_says(padding):
    seen: list[Any] = []
    experiment = Experiment((L4, L357), lengths=ragged, extra=2, padding=padding)
    sample(experiment, 500, watching(seen))
    worlds = [np.array(world.target, dtype=float) for world in (L4, L357)]
    for call, (draft, q, p, num_draft) in enumerate(seen):
        assert draft.shape[1] == 5
        assert q.shape[1:] == (5, 4)
        assert p.shape[1:] == (6, 4)
        past = np.arange(5) >= num_draft[:, None]
        if padding is Padding.POISON:
            assert (draft[past] == -1).all()
            assert np.isnan(q[past]).all()
            assert np.isnan(p[:, 1:][past]).all()
        elif padding is Padding.ZERO:
            assert not draft[past].any()
            assert not q[past].any()
            assert not p[:, 1:][past].any()
        else:
            np.testing.assert_allclose(q.sum(axis=2), 1)
            np.testing.assert_allclose(p.sum(axis=2), 1)
            assert len(set(draft[past])) == 4
        if call == 0:
            for row in range(20):
                for i in range(num_draft[row]):
                    expected = worlds[row % 2][draft[row, i]]
                    assert p[row, i + 1].tolist() == expected.tolist()


def test_the_drafts_of_a_batch_do_not_depend_on_its_padding():
    num_draft = np.array([0, 1, 3, 2])
    plain = Experiment((L4,)).batch(num_draft, np.random.default_rng(0))
    wide = Experiment((L4,), extra=2, padding=Padding.STALE).batch(
        num_draft, np.random.default_rng(0)
    )
    for narrow, broad in zip(plain, wide, strict=True):
        for row, g in enumerate(num_draft):
            np.testing.assert_array_equal(narrow[row, :g], broad[row, :g])


def test_rows_in_place_stay_in_the_call():
    seen: list[Any] = []
    sample(Experiment((L4,), longest=1, lengths=always, in_place=True), 200, watching(seen))
    assert {len(draft) for draft, *_ in seen} == {200}
    assert {tuple(num_draft) for *_, num_draft in seen} == {(1,) * 200}


def test_no_draft_is_made_that_the_text_cannot_use():
    made = np.array([0, 1, 2, 3])
    assert as_needed(made, 4, 3, np.random.default_rng(0)).tolist() == [3, 2, 1, 0]


def test_two_samplers_of_one_seed_agree_and_labels_tell_streams_apart():
    first, again, other = (sample(Experiment((L4,)), 2_000, seed=s) for s in (1, 1, 2))
    assert (first.counts == again.counts).all()
    assert (first.counts != other.counts).any()
    assert streams(1, "a")[0].random() != streams(1, "b")[0].random()


def test_counts_grow_to_what_was_asked():
    sampler = Sampler(draftproof.verify, Experiment((L4, L357)), 0)
    for texts in (10, 11, 5_000, 5_000):
        assert sampler.extend(texts)
        assert sampler.counts.sum(axis=1).tolist() == [texts, texts]


def test_a_deadline_stops_it():
    sampler = Sampler(draftproof.verify, Experiment((L4,)), 0)
    assert not sampler.extend(1_000, time.monotonic() - 1)
    assert not sampler.counts.any()


def test_the_tokens_of_a_call_are_tallied():
    sampler = sample(Experiment((L4,), longest=2, length=3), 100_000)
    assert sampler.emitted_per_call == pytest.approx(1 + 21 / 16, abs=0.02)
    assert sampler.emitted[2].sum() == 100_000


@pytest.mark.parametrize("pairing", [neighbours, halves, consecutive])
def test_no_text_is_in_two_pairs(pairing):
    a, b = pairing(np.arange(16).reshape(2, 8))
    assert sorted([*a.ravel(), *b.ravel()]) == list(range(16))


def test_pairs_of_a_right_verifier_are_independent():
    experiment = Experiment((L4,), length=1, longest=1, lengths=always, in_place=True)
    pairings = {"near": neighbours, "far": halves, "next": consecutive}
    sampler = PairSampler(draftproof.verify, experiment, pairings, 64, 0, "")
    assert sampler.extend(20_000)
    assert len(sampler.tables) == 3
    for table in sampler.tables:
        assert table.size == sampler.pairs >= 20_000
        assert compare(table.counts, table.law).p_value > 1e-4
        assert table.shape == (4, 4)
    assert sampler.by_call.sum() == 2 * sampler.pairs


def test_every_batch_may_have_a_seed_of_its_own():
    drawn = []

    def verify(draft, q, p, num_draft, rng):
        drawn.append(rng.random())
        return correct(draft, q, p, num_draft, rng)

    experiment = Experiment((L4,), length=1, longest=1, lengths=always, in_place=True)
    sampler = PairSampler(verify, experiment, {"next": consecutive}, 8, 7, "", reseed=True)
    sampler.extend(16)
    assert drawn == [np.random.default_rng(seed).random() for seed in (7, 8, 9, 10)]


def test_worlds_of_any_vocabulary():
    one = World.chain([[1]], [[1]])
    assert sample(Experiment((one,)), 100).counts.tolist() == [[100]]
