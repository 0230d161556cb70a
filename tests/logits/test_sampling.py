"""`sample`: plain sampling, keyed or not, which speculation must equal in law."""

# mypy: no-check-untyped-defs
from __future__ import annotations

import numpy as np
import pytest

from draftproof import (
    BadRowError,
    SamplingParams,
    bfloat16_of_words,
    process,
    sample,
    sample_rows,
    verify_logits,
)

BACKENDS = ["auto", "numpy", "reference"]
PARAMS = SamplingParams(temperature=0.6, top_p=0.9, presence_penalty=0.5)


@pytest.fixture(params=BACKENDS)
def how(request):
    return request.param


@pytest.fixture
def logits():
    return np.random.default_rng(0).normal(size=(5, 30)) * 2


def test_it_draws_from_the_processed_law(how, logits):
    history = [[1], [2, 2], [], [3], [4]]
    keys = {"seeds": np.arange(5), "positions": np.arange(5) + 7}
    expected = sample_rows(process(logits, PARAMS, history), **keys)
    tokens = sample(logits, PARAMS, keys["seeds"], keys["positions"], history, backend=how)
    np.testing.assert_array_equal(tokens, expected)
    u = np.linspace(0, 0.99, 5)
    tokens = sample(logits, PARAMS, history=history, uniforms=u, backend=how)
    np.testing.assert_array_equal(tokens, sample_rows(process(logits, PARAMS, history), uniforms=u))


def test_greedy_is_the_argmax_bit_for_bit(how, logits):
    cold = SamplingParams(temperature=0)
    tied = np.round(logits.astype(np.float32), 0)
    tokens = sample(tied, cold, uniforms=np.zeros(5), backend=how)
    assert tokens.tolist() == tied.argmax(axis=1).tolist()


def test_a_token_depends_on_its_seed_and_position_alone(how, logits):
    rows = [SamplingParams(seed=b, top_k=9) for b in range(5)]
    together = sample(logits, rows, positions=np.arange(5), backend=how)
    for b in range(5):
        alone = sample(logits[b : b + 1], rows[b], positions=[b], backend=how)
        assert alone[0] == together[b]


def test_a_round_without_drafts_draws_the_same(how, logits):
    keys = {"seeds": np.arange(5), "positions": np.arange(5)}
    round_ = verify_logits(
        np.zeros((5, 0), int), None, logits[:, None], params=SamplingParams(top_k=4), **keys
    )
    tokens = sample(logits, SamplingParams(top_k=4), *keys.values(), backend=how)
    np.testing.assert_array_equal(tokens, round_.token_ids[:, 0])


def test_masks_and_words_of_bfloat16(how, logits):
    words = (logits.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    mask = np.zeros((5, 30), dtype=bool)
    mask[np.arange(5), np.arange(5) * 3] = True
    tokens = sample(
        bfloat16_of_words(words), uniforms=np.full(5, 0.5), token_mask=mask, backend=how
    )
    assert tokens.tolist() == [0, 3, 6, 9, 12]


def test_a_bad_row(how, logits):
    logits[2] = -np.inf
    call = {"uniforms": np.full(5, 0.5), "backend": how}
    tokens = sample(logits, on_bad_row="status", **call)
    assert (tokens == -1).tolist() == [False, False, True, False, False]
    with pytest.raises(BadRowError, match="row 2, position 0: found no token left"):
        sample(logits, **call)
