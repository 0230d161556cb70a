"""Randomness by counter: published words, the documented keys, and what they make invariant."""

# mypy: no-check-untyped-defs
from __future__ import annotations

import numpy as np
import pytest

from draftproof import (
    SparseProbs,
    available_backends,
    noise,
    sample_rows,
    verify,
    verify_packed,
)
from draftproof.noise import Stream
from draftproof.rules import PLAIN_RULES

SEEDS = [0, 1, 2**32 - 1, 2**32, 2**63, 2**64 - 1, 0xDEADBEEF_0BADF00D]
POSITIONS = [0, 1, 2**32 - 1, 2**32, 2**63 - 1, 77, 123_456_789_012]


def implementations():
    yield noise
    if "native" in available_backends():
        from draftproof.kernels import noise_native

        yield noise_native


@pytest.fixture(params=list(implementations()), ids=lambda module: module.__name__)
def module(request):
    return request.param


# Words


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [
        ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        (
            [0xFFFFFFFF] * 4,
            [0xFFFFFFFF] * 2,
            [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD],
        ),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
)
def test_the_published_vectors_of_random123(module, counter, key, words):
    assert module.philox4x32(counter, key).tolist() == words


def by_hand(seed, position, stream, index, pair=0):
    """The documented key and counter, in Python's integers."""
    low = 0xFFFFFFFF
    counter = [position & low, position >> 32, stream, index]
    words = noise.philox4x32(counter, [seed & low, seed >> 32]).tolist()
    high, low_bits = words[2 * pair : 2 * pair + 2]
    return ((high >> 5) * 2**26 + (low_bits >> 6)) / 2**53


@pytest.mark.parametrize("stream", Stream)
def test_a_uniform_is_keyed_as_documented(module, stream):
    for seed in SEEDS:
        for position, index in zip(POSITIONS, [0, 1, 2**32 - 1, 5, 6, 7, 8], strict=True):
            found = module.uniform(np.uint64(seed), np.int64(position), stream, index)
            assert float(found) == by_hand(seed, position, stream, index)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ([0, 0, 0, 2**32], ValueError),
        ([0, 0, 0, 2**63], ValueError),
        ([0, 0, 0, 2**64], ValueError),
        ([0, 0, 0, -1], ValueError),
        (np.array([0, 0, 0, -1]), ValueError),
        ([0.0, 0.0, 0.0, 0.5], TypeError),
        (np.zeros(4), TypeError),
        ([0, 0, 0, None], TypeError),
        ([False] * 4, TypeError),
        (["0"] * 4, TypeError),
        ([0, 0, 0], ValueError),
        ([0] * 5, ValueError),
        ([], ValueError),
        (0, ValueError),
        ([[0] * 4, [0] * 3], ValueError),
    ],
)
def test_words_that_philox_would_bend_are_refused(words, error):
    with pytest.raises(error, match=r"^counter.*found.*wanted.*Fix: "):
        noise.philox4x32(words, [0, 0])
    key = words[-2:] if isinstance(words, list | np.ndarray) and len(words) == 4 else words
    with pytest.raises(error, match=r"^key.*found.*wanted.*Fix: "):
        noise.philox4x32([0] * 4, key)


def test_a_word_beyond_32_bits_is_named():
    with pytest.raises(
        ValueError, match=r"counter at index \[1, 2\]: found 4294967296; wanted .*32"
    ):
        noise.philox4x32([[0] * 4, [0, 0, 2**32, 0]], [0, 0])


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"seeds": -1}, ValueError, "seeds: found -1"),
        ({"seeds": np.int64(-1)}, ValueError, "seeds: found -1"),
        ({"seeds": 2**64}, ValueError, "seeds: found 18446744073709551616"),
        ({"seeds": [2**64]}, ValueError, r"seeds at index \[0\]: found 18446744073709551616"),
        ({"seeds": 1.5}, TypeError, "seeds: found dtype float64"),
        ({"positions": -1}, ValueError, "positions: found -1"),
        ({"positions": 2**63}, ValueError, "positions: found 9223372036854775808"),
        ({"positions": [0, 0.5]}, TypeError, "positions: found dtype float64"),
        ({"index": -1}, ValueError, "index: found -1"),
        ({"index": [0, 2**32]}, ValueError, r"index at index \[1\]: found 4294967296"),
        ({"index": 0.5}, TypeError, "index: found dtype float64"),
        ({"stream": 4}, ValueError, "4 is not a valid Stream"),
        ({"stream": 0.5}, ValueError, "0.5 is not a valid Stream"),
    ],
)
def test_keys_and_counters_out_of_range_are_refused(change, error, message):
    good = {"seeds": 1, "positions": 0, "stream": Stream.DRAFT, "index": 0}
    with pytest.raises(error, match=message):
        noise.uniform(**good | change)


@pytest.mark.parametrize("num_tokens", [-1, 2**40, 2.0, None, [3]])
def test_a_vocabulary_that_is_none_is_refused(num_tokens):
    with pytest.raises((TypeError, ValueError), match="num_tokens"):
        noise.token_uniforms(1, 2, num_tokens)


def test_the_tags_of_the_streams():
    tags = {stream.name: int(stream) for stream in Stream}
    assert tags == {"DRAFT": 0, "ACCEPT": 1, "FINAL": 2, "NOISE": 3}


@pytest.mark.parametrize("V", [1, 2, 3, 64, 65])
def test_noise_of_a_token_takes_both_pairs_of_words(module, V):
    seeds, positions = np.array(SEEDS, dtype=np.uint64), np.array(POSITIONS)
    found = module.token_uniforms(seeds, positions, V)
    expected = [
        [by_hand(seed, position, Stream.NOISE, v >> 1, v & 1) for v in range(V)]
        for seed, position in zip(SEEDS, POSITIONS, strict=True)
    ]
    np.testing.assert_array_equal(found, expected)


def test_numpy_and_cpp_are_equal_bit_for_bit():
    rng = np.random.default_rng(0)
    seeds = rng.integers(2**64, size=(50, 1), dtype=np.uint64)
    positions = rng.integers(2**63 - 1, size=(50, 1))
    index = rng.integers(2**32, size=(1, 40))
    for stream in Stream:
        first, *others = [m.uniform(seeds, positions, stream, index) for m in implementations()]
        assert first.shape == (50, 40)
        for other in others:
            np.testing.assert_array_equal(other, first)


def test_uniforms_are_even_and_have_53_bits():
    u = noise.uniform(np.uint64(1), np.arange(200_000), Stream.ACCEPT, 0)
    assert ((u >= 0) & (u < 1)).all()
    assert (np.ldexp(u, 53) % 1 == 0).all()
    assert (np.ldexp(u, 53) % 2 == 1).mean() == pytest.approx(0.5, abs=6 * 0.5 / 200_000**0.5)
    counts = np.bincount((u * 256).astype(int), minlength=256)
    # 255 degrees of freedom: beyond 400 with probability 1e-8; the input is fixed.
    assert ((counts - 200_000 / 256) ** 2).sum() * 256 / 200_000 < 400


# Keys of a call


@pytest.fixture
def keyed(case_of):
    case = case_of(12, 5, 40)
    rng = np.random.default_rng(0)
    seeds = rng.integers(2**64, size=12, dtype=np.uint64)
    return case, seeds, rng.integers(2**40, size=12)


def assert_same(result, expected):
    np.testing.assert_array_equal(result.token_ids, expected.token_ids)
    np.testing.assert_array_equal(result.num_emitted, expected.num_emitted)


def test_the_token_rule_is_keyed_by_the_round(backend, keyed):
    case, seeds, positions = keyed
    accept = noise.uniform(seeds[:, None], positions[:, None], Stream.ACCEPT, np.arange(5))
    final = noise.uniform(seeds, positions, Stream.FINAL, 0)
    result = verify(*case, seeds=seeds, positions=positions, backend=backend)
    assert_same(result, verify(*case, uniforms=(accept, final), backend=backend))


def test_exact_match_is_keyed_by_absolute_position(backend, keyed):
    case, seeds, positions = keyed
    depth = np.arange(5)
    accept = noise.uniform(seeds[:, None], positions[:, None] + depth, Stream.FINAL, 0)
    final = noise.uniform(seeds, positions + case.num_draft, Stream.FINAL, 0)
    options = {"rule": "exact-match", "backend": backend}
    result = verify(*case, seeds=seeds, positions=positions, **options)
    assert_same(result, verify(*case, uniforms=(accept, final), **options))


@pytest.mark.parametrize("rule", PLAIN_RULES)
def test_a_row_without_drafts_is_plain_keyed_sampling(backend, keyed, rule):
    case, seeds, positions = keyed
    keys = {"seeds": seeds, "positions": positions, "backend": backend}
    none = np.zeros(12, dtype=int)
    result = verify(*case[:3], none, rule=rule, **keys)
    plain = sample_rows(case.p[:, 0], **keys)
    np.testing.assert_array_equal(result.token_ids[:, 0], plain)
    uniforms = noise.uniform(seeds, positions, Stream.FINAL, 0)
    np.testing.assert_array_equal(plain, sample_rows(case.p[:, 0], uniforms=uniforms))


@pytest.mark.parametrize("rule", PLAIN_RULES)
def test_negative_seeds_are_their_twos_complement(backend, keyed, rule):
    case, seeds, positions = keyed
    keys = {"positions": positions, "rule": rule, "backend": backend}
    result = verify(*case, seeds=seeds.view(np.int64), **keys)
    assert_same(result, verify(*case, seeds=seeds, **keys))


def test_negative_positions_are_refused(keyed):
    case, seeds, positions = keyed
    positions[4] = -1
    with pytest.raises(ValueError, match=r"positions at row 4: found -1"):
        verify(*case, seeds=seeds, positions=positions)


# What a row's tokens do not depend on


@pytest.fixture(params=PLAIN_RULES)
def plain(request, keyed):
    case, seeds, positions = keyed
    lists = verify(
        *case, seeds=seeds, positions=positions, rule=request.param, backend="reference"
    ).to_lists()
    assert len({len(tokens) for tokens in lists}) > 2
    return request.param, lists


def test_on_no_backend_and_number_of_threads(backend, keyed, plain):
    case, seeds, positions = keyed
    rule, lists = plain
    for num_threads in (None, 1, 2, 7):
        result = verify(
            *case, seeds=seeds, positions=positions, rule=rule,
            backend=backend, num_threads=num_threads,
        )  # fmt: skip
        assert result.to_lists() == lists


def test_on_no_place_in_the_batch(backend, keyed, plain):
    case, seeds, positions = keyed
    rule, lists = plain
    order = np.random.default_rng(1).permutation(12)
    moved = [argument[order] for argument in case]
    options = {"rule": rule, "backend": backend}
    result = verify(*moved, seeds=seeds[order], positions=positions[order], **options)
    assert result.to_lists() == [lists[b] for b in order]


def test_on_no_other_row(backend, keyed, plain):
    case, seeds, positions = keyed
    rule, lists = plain
    for b in range(12):
        one = slice(b, b + 1)
        alone = verify(
            *(argument[one] for argument in case),
            seeds=seeds[one], positions=positions[one], rule=rule, backend=backend,
        )  # fmt: skip
        assert alone.to_lists() == [lists[b]]


def test_on_no_padding(backend, keyed, plain):
    case, seeds, positions = keyed
    rule, lists = plain
    more = ((0, 0), (0, 3))
    ids = np.pad(case.ids, more, constant_values=-1)
    q, p = (np.pad(law, (*more, (0, 0)), constant_values=np.nan) for law in (case.q, case.p))
    options = {"rule": rule, "backend": backend}
    result = verify(ids, q, p, case.num_draft, seeds=seeds, positions=positions, **options)
    assert result.to_lists() == lists
    assert result.token_ids.shape == (12, 9)


def test_on_no_layout(backend, keyed, plain):
    case, seeds, positions = keyed
    rule, lists = plain
    keys = {"seeds": seeds, "positions": positions, "rule": rule, "backend": backend}
    assert verify_packed(*case.packed(), **keys).to_lists() == lists
    listed = np.broadcast_to(np.arange(40), case.q.shape)
    sparse = SparseProbs(listed, case.q)
    assert verify(case.ids, sparse, case.p, case.num_draft, **keys).to_lists() == lists


def test_on_no_global_generator_and_no_call_before(backend, keyed, plain):
    case, seeds, positions = keyed
    rule, lists = plain
    for state in range(3):
        np.random.seed(state)  # noqa: NPY002
        verify(*case, np.random.default_rng(state), backend=backend)
        result = verify(*case, seeds=seeds, positions=positions, rule=rule, backend=backend)
        assert result.to_lists() == lists


def test_but_on_seed_and_position(backend, keyed, plain):
    case, seeds, positions = keyed
    rule, lists = plain
    options = {"rule": rule, "backend": backend}
    for keys in ((seeds + np.uint64(1), positions), (seeds, positions + 1)):
        assert verify(*case, seeds=keys[0], positions=keys[1], **options).to_lists() != lists


# Several rounds

V = 16


@pytest.fixture
def target(case_of):
    """A law for the next token after each token."""
    return case_of(V, 0, V).p[:, 0]


def sampled_drafts(rng, state, g, target):
    drafts = []
    for _ in range(g):
        state = int(rng.choice(V, p=target[state]))
        drafts.append(state)
    return drafts


def random_drafts(rng, state, g, target):
    return rng.integers(V, size=g).tolist()


def likeliest_drafts(rng, state, g, target):
    drafts = []
    for _ in range(g):
        state = int(target[state].argmax())
        drafts.append(state)
    return drafts


def no_drafts(rng, state, g, target):
    return []


DRAFTERS = [sampled_drafts, random_drafts, likeliest_drafts, no_drafts]


def rounds(target, drafter, seed, length, **options):
    """Decode by rounds of up to 4 drafts; yield (position, drafts, result) of each."""
    rng = np.random.default_rng(9)
    text = [0]
    while len(text) <= length:
        drafts = drafter(rng, text[-1], int(rng.integers(5)), target)
        p = target[np.array([text[-1], *drafts])][None]
        ids = np.array(drafts, dtype=int).reshape(1, -1)
        position = len(text) - 1
        result = verify(
            ids, None, p, seeds=[seed], positions=[position], return_trace=True, **options
        )
        yield position, drafts, result
        text += result.to_lists()[0]


@pytest.mark.parametrize("drafter", DRAFTERS)
def test_exact_matchs_text_is_plain_keyed_sampling_whoever_drafts(backend, target, drafter):
    seed, length = 11, 60
    state, expected = 0, []
    for position in range(length):
        state = int(sample_rows(target[[state]], seeds=[seed], positions=[position])[0])
        expected.append(state)
    played = rounds(target, drafter, seed, length, rule="exact-match", backend=backend)
    text = [token for _, _, result in played for token in result.to_lists()[0]]
    assert text[:length] == expected


@pytest.mark.parametrize("drafter", DRAFTERS)
def test_no_uniform_of_the_token_rule_is_used_twice(backend, target, drafter):
    used = []
    for position, drafts, result in rounds(target, drafter, 11, 60, backend=backend):
        depths = np.arange(len(drafts))
        trace = result.trace
        keyed = noise.uniform(np.uint64(11), position, Stream.ACCEPT, depths)
        np.testing.assert_array_equal(trace.accept_uniforms[0], keyed)
        assert trace.final_uniforms[0] == by_hand(11, position, Stream.FINAL, 0)
        used += [*trace.accept_uniforms[0], trace.final_uniforms[0]]
    assert len(used) >= 16
    assert len(set(used)) == len(used)


def test_verifying_a_round_again_after_a_preemption_repeats_it(backend, keyed, plain):
    case, seeds, positions = keyed
    rule, lists = plain
    keys = {"seeds": seeds, "positions": positions, "rule": rule, "backend": backend}
    verify(*case, **keys)
    verify(*case, seeds=seeds, positions=positions + 5, rule=rule, backend=backend)
    assert verify(*case, **keys).to_lists() == lists
