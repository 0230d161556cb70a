"""The short way to the kernel from logits, which takes no other turn than the long one."""

# mypy: no-check-untyped-defs
import importlib

import numpy as np
import pytest

from draftproof import BadRowError, DraftLogits, SamplingParams, available_backends
from draftproof.logits.verify import verify_logits

pytestmark = pytest.mark.skipif(
    "native" not in available_backends(), reason="the native kernel is not built"
)

B, K, V = 5, 3, 70


def arrays(dtype=np.float32):
    rng = np.random.default_rng(1)
    z, q = rng.normal(size=(B, K + 1, V)) * 2, rng.normal(size=(B, K, V)) * 2
    ids = np.argmax(q + rng.gumbel(size=q.shape), axis=-1)
    return ids, DraftLogits(q.astype(dtype)), z.astype(dtype)


def long_way(*arguments, **keywords):
    """What a call with a history takes."""
    return verify_logits(*arguments, history=[[]] * B, **keywords)


@pytest.mark.parametrize("rule", ["token", "exact-match", "block"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("temperature", [0, 0.7])
def test_both_ways_return_and_consume_the_same(rule, dtype, temperature):
    ids, draft, z = arrays(dtype)
    params = SamplingParams(temperature=temperature, top_p=0.9)
    num_draft = np.array([3, 0, 2, 1, 3])
    first, second = np.random.default_rng(7), np.random.default_rng(7)
    options = {"params": params, "rule": rule}
    short = verify_logits(ids, draft, z, num_draft, first, **options)
    long = long_way(ids, draft, z, num_draft, second, **options)
    np.testing.assert_array_equal(short.token_ids, long.token_ids)
    np.testing.assert_array_equal(short.num_draft, long.num_draft)
    assert first.random() == second.random()
    num_draft[:] = 0
    assert short.num_draft.tolist() == [3, 0, 2, 1, 3]


def test_a_bad_row_raises_as_the_long_way_does():
    ids, draft, z = arrays()
    z[2, 0, 5] = np.nan
    messages = []
    for call in (verify_logits, long_way):
        with pytest.raises(BadRowError) as caught:
            call(ids, draft, z, None, np.random.default_rng(3))
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    lenient = verify_logits(ids, draft, z, None, np.random.default_rng(3), on_bad_row="status")
    assert lenient.status.tolist() == [0, 0, 16, 0, 0]


@pytest.mark.parametrize(
    "options",
    [
        {"params": SamplingParams(logit_bias={3: 1.0})},
        {"params": SamplingParams(seed=4), "positions": [0] * B},
        {"params": SamplingParams(banned_tokens=np.eye(1, V, 5, dtype=bool)[0])},
        {"return_trace": True},
        {"logprobs": 0},
        {"backend": "reference"},
    ],
    ids=lambda options: next(reversed(options)),
)
def test_what_asks_for_more_takes_the_long_way(options, monkeypatch):
    """Were the short way to serve such a call, it would drop what was asked for."""
    ids, draft, z = arrays()
    served = []
    kernel = importlib.import_module("draftproof._native")
    plain = kernel.verify_logits_plain

    def watched(*arguments):
        served.append(plain(*arguments))
        return served[-1]

    monkeypatch.setattr(kernel, "verify_logits_plain", watched)
    verify_logits(ids, draft, z, None, np.random.default_rng(3), **options)
    assert served in ([], [None])


def test_lists_and_other_integers_take_the_long_way():
    ids, draft, z = arrays()
    plain = verify_logits(ids, draft, z, None, np.random.default_rng(3))
    for other in (
        (ids.tolist(), draft, z),
        (ids.astype(np.int32), draft, z),
        (ids, DraftLogits(draft.logits.tolist()), z),
        (np.asfortranarray(ids), draft, z),
    ):
        result = verify_logits(*other, None, np.random.default_rng(3))
        np.testing.assert_array_equal(result.token_ids, plain.token_ids)
