"""Keyed races: one seed gives one text, whoever drafts, and mostly the drafter's own."""

# mypy: no-check-untyped-defs
from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from draftproof import available_backends, sample_gumbel, verify

P = np.array([[4, 3, 2, 1], [1, 2, 3, 4], [2.5, 2.5, 5, 0], [7, 1, 1, 1]]) / 10
Q = np.array([[1, 2, 3, 4], [3, 2, 3, 2], [5, 2.5, 0, 2.5], [7, 1, 1, 1]]) / 10
"""A Markov target and drafter, by the token before."""


@pytest.fixture(params=available_backends())
def backend(request):
    return request.param


def keyed(law, seed, position):
    return int(sample_gumbel(law, [seed], [position])[0])


def plain_text(seed, length, first=0):
    text = [first]
    for position in range(length):
        text.append(keyed(P[text[-1:]], seed, position))
    return text[1:]


DRAFTERS = {
    "same noise": lambda state, seed, position: keyed(Q[[state]], seed, position),
    "other noise": lambda state, seed, position: keyed(Q[[state]], seed + 1, position),
    "always 2": lambda state, seed, position: 2,
    "the target": lambda state, seed, position: keyed(P[[state]], seed, position),
}


def speculative_text(drafter, seed, length, backend):
    text, accepted, drafted, rounds = [0], 0, 0, 0
    while len(text) <= length:
        position = len(text) - 1
        drafts, state = [], text[-1]
        for i in range(1 + rounds % 4):  # rounds of unequal length
            state = drafter(state, seed, position + i)
            drafts.append(state)
        states = [text[-1], *drafts]
        result = verify(
            [drafts], Q[states[:-1]][None], P[states][None], rule="gumbel",
            seeds=[seed], positions=[position], backend=backend,
        )  # fmt: skip
        text += result.to_lists()[0]
        accepted, drafted = accepted + result.num_accepted[0], drafted + len(drafts)
        rounds += 1
    return text[1 : length + 1], accepted / drafted


@pytest.mark.parametrize("name", DRAFTERS)
def test_the_text_is_that_of_plain_keyed_sampling_whoever_drafts(backend, name):
    for seed in (3, 2**64 - 2):
        text, rate = speculative_text(DRAFTERS[name], seed, 20, backend)
        assert text == plain_text(seed, 20)
        assert (rate == 1) == (name == "the target")


def test_each_race_has_the_law_of_its_row():
    rows = 40_000
    p = np.array([0.05, 0.5, 0.15, 0.3])
    tokens = sample_gumbel(np.tile(p, (rows, 1)), np.arange(rows), np.full(rows, 9))
    assert stats.chisquare(np.bincount(tokens), rows * p).pvalue > 1e-6


def test_drafts_on_the_same_noise_match_as_often_as_the_formula_says():
    rows = 40_000
    p, q = P[0], Q[0]
    seeds, positions = np.arange(rows), np.zeros(rows, dtype=int)
    drafts = sample_gumbel(np.tile(q, (rows, 1)), seeds, positions)
    result = verify(
        drafts[:, None], np.tile(q, (rows, 1, 1)), np.tile(p, (rows, 2, 1)),
        rule="gumbel", seeds=seeds, positions=positions,
    )  # fmt: skip
    matches = sum(1 / np.maximum(p / p[j], q / q[j]).sum() for j in range(4))
    error = (matches * (1 - matches) / rows) ** 0.5
    assert abs(result.num_accepted.mean() - matches) < 4.9 * error
    assert matches > (p * q).sum() + 0.2, "independent samples match less"


def test_races_of_different_positions_and_seeds_are_independent():
    rows = 20_000
    even = np.full((rows, 4), 0.25)
    rounds = [
        sample_gumbel(even, np.arange(rows) + shift, np.full(rows, position))
        for shift, position in ((0, 0), (0, 1), (1, 0))
    ]
    for other in rounds[1:]:
        table = np.zeros((4, 4))
        np.add.at(table, (rounds[0], other), 1)
        assert stats.chi2_contingency(table).pvalue > 1e-6


def test_a_mapped_drafter_takes_the_noise_of_its_target_ids(backend):
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.ones(5), 60)
    id_map = np.array([8, 2, 6, 0, 3])
    wide = np.zeros((60, 9))
    wide[:, id_map] = q
    keys = {"seeds": np.arange(60), "positions": np.full(60, 4), "backend": backend}
    columns = sample_gumbel(q, draft_to_target=id_map, **keys)
    np.testing.assert_array_equal(id_map[columns], sample_gumbel(wide, **keys))


def test_a_narrow_law_races_on_the_first_tokens_noise():
    law = np.array([[0.25, 0.75]] * 50)
    wide = np.pad(law, ((0, 0), (0, 7)))
    keys = {"seeds": np.arange(50), "positions": np.zeros(50, dtype=int)}
    np.testing.assert_array_equal(sample_gumbel(law, **keys), sample_gumbel(wide, **keys))


@pytest.mark.parametrize("id_map", [[0, 1, 1, 2], [0, 1, 2, -1]])
def test_a_bad_map_is_refused(id_map):
    with pytest.raises(ValueError, match="draft_to_target"):
        sample_gumbel(P, [1] * 4, [0] * 4, draft_to_target=id_map)


@pytest.mark.parametrize(
    "source", [{"rng": np.random.default_rng(0)}, {"uniforms": ([[0.5]], [0.5])}, {}]
)
def test_it_needs_seeds(source):
    with pytest.raises(ValueError, match="seeds") as caught:
        verify([[0]], None, P[None, :2], rule="gumbel", **source)
    assert "sample_gumbel" in str(caught.value)
    with pytest.raises(ValueError, match="positions"):
        verify([[0]], None, P[None, :2], rule="gumbel", seeds=[1])


def test_positions_leave_room_for_the_drafts():
    verify([[0]], None, P[None, :2], rule="gumbel", seeds=[1], positions=[2**63 - 2])
    with pytest.raises(ValueError, match="positions"):
        verify([[0]], None, P[None, :2], rule="gumbel", seeds=[1], positions=[2**63 - 1])


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("vocabulary", [1, 2, 255, 256, 257, 1001])
def test_every_backend_runs_the_same_race(vocabulary, dtype):
    rng = np.random.default_rng(vocabulary)
    laws = rng.dirichlet(np.full(vocabulary, 0.3), size=40)
    laws[:, rng.random(vocabulary) < 0.3] = 0
    laws[:, 0] += 1e-3
    laws = (laws / laws.sum(axis=1, keepdims=True)).astype(dtype)
    keys = {"seeds": np.arange(40) * 7919, "positions": np.arange(40) + 2**40}
    tokens = [sample_gumbel(laws, **keys, backend=backend) for backend in available_backends()]
    assert all((each == tokens[-1]).all() for each in tokens)


def test_tokens_that_never_arrive(backend):
    """Weights so small that every arrival overflows: the lowest id of those that run."""
    keys = {"seeds": [3], "positions": [0], "backend": backend, "validate": "off"}
    assert sample_gumbel([[0.0, 5e-324, 1e-320]], **keys).tolist() == [1]
    with pytest.raises(ValueError, match="dist at row 0"):
        sample_gumbel([[0.0, np.inf]], **keys)


def test_bad_rows(backend):
    laws = np.array([[0.5, 0.5], [np.nan, 0.5], [0.0, 0.0], [1.5, -0.5]])
    keys = {"seeds": np.arange(4), "positions": np.zeros(4, dtype=int), "backend": backend}
    tokens = sample_gumbel(laws, on_bad_row="status", **keys)
    assert (tokens[0] >= 0, *tokens[1:]) == (True, -1, -1, -1)
    with pytest.raises(ValueError, match="dist at row 1"):
        sample_gumbel(laws, **keys)
