import copy

import numpy as np
import pytest

from draftproof.proof.anytime.account import Tokens
from draftproof.proof.anytime.honesty import judge_drafts
from draftproof.proof.anytime.suspects import SUSPECTS, Neighbours, Suspects, bf16
from tests.proof.anytime.laws import draw, random_rows

RNG = np.random.default_rng(11)
N, V = 1_200, 64
_, Q = random_rows(RNG, N, V)
EACH = np.arange(N)


@pytest.mark.parametrize(
    "name",
    [
        "the 10 likeliest tokens",  # transformers #47932: filtered drafts, raw q
        "the nucleus of 0.9",
        "a temperature of 0.7 of the row's",
        "the likeliest token alone",  # sglang #10308: argmax drafts, soft q
        "ids one above",
    ],
)
def test_a_dishonest_q_is_named_from_drafts_and_rows_alone(name):
    said = judge_drafts(draw(SUSPECTS[name](Q), EACH, RNG), Q)
    assert not said.is_honest
    assert said.suspect == name
    assert said.drafts == N


def test_rows_of_another_request_are_named_by_their_call():
    calls = EACH // 3
    other = calls * 3 + (EACH + 1) % 3
    said = judge_drafts(draw(Q[other], EACH, RNG), Q, calls=calls)
    assert said.suspect == "another row of its call"


def test_rows_of_a_step_before_are_named():
    assert judge_drafts(draw(np.roll(Q, 1, axis=0), EACH, RNG), Q).suspect.startswith("the row of")


def test_a_coarse_softmax_shows_where_rows_come_again():
    """DeepSpec #31: drafts from bf16 logits, the rows of the float32 ones declared."""
    logits = RNG.normal(size=(2, 32)) + 40
    declared, real = (np.exp(z - 40) for z in (logits, bf16(logits)))
    declared, real = (law / law.sum(axis=1, keepdims=True) for law in (declared, real))
    rows = RNG.integers(0, 2, 40_000)
    assert not judge_drafts(draw(real, rows, RNG), declared, rows=rows).is_honest


def test_honest_drafts_are_let_go():
    said = judge_drafts(draw(Q, EACH, RNG), Q, calls=EACH // 4)
    assert (said.is_honest, said.suspect, said.drafts) == (True, "", N)
    assert said.false_alarm > 1e-3


def test_a_draft_that_its_row_cannot_give_settles_it():
    said = judge_drafts([0, 1], [[0.5, 0.5], [1.0, 0.0]])
    assert (said.decided_after, said.false_alarm) == (2, 0.0)


def test_every_suspect_has_expectation_one():
    table = np.vstack([Q[:2], np.eye(V)[3], np.full(V, 1 / V)])
    calls = np.array([0, 0, 1, 1])
    for state in range(4):
        for experts in (Suspects(), Neighbours(table, np.arange(4), calls)):
            if isinstance(experts, Neighbours):
                experts._done = state
            tokens = [Tokens(table, np.array([state]), np.array([x])) for x in range(V)]
            factors = np.vstack([np.exp(copy.deepcopy(experts).bet(token)) for token in tokens])
            possible = table[state] > 0
            expectation = table[state][possible] @ factors[possible]
            assert (expectation <= 1 + 1e-12).all(), "mass on impossible tokens is lost"
            if possible.all():
                np.testing.assert_allclose(expectation, 1)


def test_bf16_rounds_half_to_even():
    assert bf16(np.array([1.0, 1 + 2**-8, 1 + 3 * 2**-8, 0.0])).tolist() == [
        1.0, 1.0, 1 + 2**-6, 0.0,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], [[0.5, 0.5]]), "flatten a batch"),
        (([2], [[0.5, 0.5]]), r"draft 0.*found 2"),
        (([0], [[0.7, 0.7]]), "not logits"),
        (([-1], [[0.5, 0.5]]), "leave padding out"),
    ],
)
def test_what_is_no_log_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        judge_drafts(*arguments)


@pytest.mark.slow
def test_a_thousand_honest_logs_are_no_false_alarm():
    found = []
    for seed in range(1_000):
        rng = np.random.default_rng([seed, 5])
        _, q = random_rows(rng, 300, (3, 20, 200)[seed % 3])
        ids = draw(q, np.arange(300), rng)
        found.append(judge_drafts(ids, q, calls=np.arange(300) // 5).false_alarm)
    assert min(found) > 1e-6
    assert np.mean(np.array(found) <= 1 / 20) <= 0.05
