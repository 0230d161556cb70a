"""Public faults 26-33 and 41: losslessness lost between the logits and the law."""

# mypy: no-check-untyped-defs
from __future__ import annotations

import math

import numpy as np
import pytest

from draftproof import DraftLogits, SamplingParams, process, verify_logits
from draftproof.logits.masks import packed_bits

BACKENDS = ["auto", "numpy", "reference"]
MIDPOINTS = (np.arange(64) + 0.5) / 64


@pytest.fixture(params=BACKENDS)
def how(request):
    return request.param


def outcomes(how, drafts, target, draft=None, **options):
    """What a request can emit: its drafts verified at a lattice of uniforms."""
    K = len(drafts)
    last = MIDPOINTS if K == 0 else MIDPOINTS[::8]
    grid = np.stack(np.meshgrid(*[MIDPOINTS[::32]] * K, last, indexing="ij"), axis=-1)
    grid = grid.reshape(-1, K + 1)
    B = len(grid)
    options = {
        name: value * B if name in ("history", "prompts") else value
        for name, value in options.items()
    }
    if "token_mask" in options:
        options["token_mask"] = np.broadcast_to(
            options["token_mask"], (B, *np.shape(options["token_mask"]))
        )
    return verify_logits(
        [drafts] * B,
        draft,
        np.broadcast_to(np.asarray(target, dtype=np.float64), (B, *np.shape(target))),
        uniforms=(grid[:, :K], grid[:, K]),
        backend=how,
        **options,
    )


def emitted(result, position):
    tokens = result.token_ids[:, position]
    return sorted(set(tokens[tokens >= 0].tolist()))


def test_26_the_target_is_judged_by_its_own_temperature_and_top_p(how):
    logits = np.log([[0.5, 0.3, 0.2]] * 3)
    result = outcomes(how, [0, 0], logits, params=SamplingParams(temperature=0.1, top_p=0.6))
    assert result.to_lists() == [[0, 0, 0]] * len(result.token_ids)


@pytest.mark.parametrize(("ties", "kept"), [("lowest-id", [0, 1, 2]), ("keep", list(range(103)))])
def test_27_top_p_on_a_peaked_row(how, ties, kept):
    logits = np.log([0.949] + [0.0005] * 102)
    params = SamplingParams(top_p=0.9497, ties=ties)
    assert np.flatnonzero(process([logits], params)[0]).tolist() == kept
    result = verify_logits(
        np.zeros((103, 0), int), None, np.broadcast_to(logits, (103, 1, 103)), params=params,
        uniforms=(np.zeros((103, 0)), np.linspace(0, 1 - 2.0**-53, 103)), backend=how,
    )  # fmt: skip
    assert set(emitted(result, 0)) <= set(kept)


def test_28_a_bias_and_min_p_hold_at_every_position(how):
    logits = np.log([[0.5, 0.4, 0.1]] * 3)
    bias = outcomes(how, [0, 1], logits, params=SamplingParams(logit_bias={0: -100.0}))
    assert bias.num_accepted.max() == 0
    assert 0 not in emitted(bias, 0)
    later = outcomes(how, [1, 1], logits, params=SamplingParams(logit_bias={0: -100.0}))
    assert all(0 not in emitted(later, position) for position in range(3))
    min_p = outcomes(how, [1, 1], logits, params=SamplingParams(min_p=0.5))
    assert all(2 not in emitted(min_p, position) for position in range(3))


def test_29_what_is_unset_is_no_greedy_and_nothing_is_dropped(how):
    logits = np.log([[0.5, 0.5]])
    assert emitted(outcomes(how, [], logits), 0) == [0, 1]
    unset = SamplingParams(temperature=None, top_k=None)
    assert emitted(outcomes(how, [], logits, params=unset), 0) == [0, 1]
    with pytest.raises(TypeError, match="xtc_probability"):
        SamplingParams(xtc_probability=0.5)
    with pytest.raises(TypeError, match="beam_width"):
        verify_logits([[0]], None, np.zeros((1, 2, 2)), beam_width=2)


def test_30_no_row_is_greedy_by_itself(how):
    for params in (SamplingParams(temperature=1e-3), SamplingParams(temperature=5.0, top_p=0.999)):
        tokens = outcomes(how, [], np.zeros((1, 8)), params=params).token_ids[:, 0]
        assert np.bincount(tokens, minlength=8).tolist() == [8] * 8  # 3 bits


def test_31_the_second_position_sees_the_first_draft(how):
    logits = np.array([[5.0, 1.0], [5.0, 1.0], [5.0, 1.0]])
    params = SamplingParams(repetition_penalty=10.0, temperature=0)
    assert outcomes(how, [0, 0], logits, params=params, history=[[]]).to_lists()[0] == [0, 1]
    warm = SamplingParams(repetition_penalty=10.0)
    second = process(logits[None], warm, [[]], draft_token_ids=[[0, 0]])[0]
    np.testing.assert_allclose(second[1], second[2])
    np.testing.assert_allclose(second[1, 0], 1 / (1 + math.exp(0.5)))


def test_31_only_emitted_tokens_count_after_the_round():
    logits = np.zeros((1, 2))
    params = SamplingParams(presence_penalty=1.0)
    rejected_draft, emitted_token = 0, 1
    law = process(logits, params, [[emitted_token]])[0]
    assert law[rejected_draft] > law[emitted_token]


@pytest.mark.parametrize("draft", [None, DraftLogits(np.zeros((16, 1, 4)))])
def test_32_the_bonus_row_is_processed(how, draft):
    logits = np.log([[0.4, 0.3, 0.2, 0.1]] * 2)
    result = outcomes(how, [0], logits, draft, params=SamplingParams(top_k=2))
    assert set(emitted(result, 0)) <= {0, 1}
    assert emitted(result, 1) == [0, 1]


@pytest.mark.parametrize("packed", [False, True])
def test_33_a_grammar_holds_on_every_row(how, packed):
    a, b = 0, 1
    mask = np.zeros((3, 40), dtype=bool)
    mask[[0, 1, 2], [a, b, a]] = True
    form = packed_bits(mask) if packed else mask
    logits = np.random.default_rng(0).normal(size=(3, 40))
    for drafts, texts in (([a, b], [[a, b, a]]), ([a, a], [[a, b]]), ([b, b], [[a]])):
        result = outcomes(how, drafts, logits, token_mask=form)
        assert result.to_lists() == texts * len(result.token_ids)
        own = outcomes(how, drafts, logits, params=SamplingParams(allowed_tokens=form))
        assert own.to_lists() == texts * len(own.token_ids)


def test_41_logprobs_are_of_the_row_that_emitted(how):
    target = np.log([[[0.5, 0.5], [0.25, 0.75], [0.125, 0.875]]])
    result = verify_logits(
        [[0, 1]], None, target, uniforms=([[0.0, 0.0]], [0.99]), logprobs=0, backend=how
    )
    assert result.to_lists() == [[0, 1, 1]]
    np.testing.assert_allclose(result.logprobs.token_logprobs, np.log([[0.5, 0.75, 0.875]]))
