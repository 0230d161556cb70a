"""Adapters call what they say, where the package is: a token the laws are certain of, and seeds."""

from __future__ import annotations

import numpy as np
import pytest

from draftproof.integrations.public.table import ADAPTERS, installed_version
from draftproof.proof.decoders.models import Models
from draftproof.proof.subjects.subject import load
from draftproof.proof.worlds.world import World

pytestmark = pytest.mark.filterwarnings("default")  # other people's code may warn

CERTAIN = np.eye(3)[[[2, 0, 1], [0, 1, 2]]]
"""p [B, K+1, V] of two rows."""
FLAT = np.full((2, 2, 3), 1 / 3)
NUM_DRAFT = np.array([2, 1])
DECODERS = [
    a for a in ADAPTERS.values() if a.contract in ("round", "generate") and a.name != "capped-hsd"
]
"""Capped hierarchical verification makes impossible tokens: see the audit."""
VERIFIERS = [a for a in ADAPTERS.values() if a.contract in ("single", "ragged")]


@pytest.fixture
def subject(adapter):
    if installed_version(adapter) is None:
        pytest.skip(f"{adapter.package} is not installed")
    return load(adapter.spec, adapter.contract)


@pytest.mark.parametrize("adapter", VERIFIERS, ids=lambda adapter: adapter.name)
def test_a_certain_target_decides_every_token(adapter, subject):
    if not adapter.claims_lossless:
        pytest.skip("by its own rule")
    draft = np.array([[2, 1], [0, -1]])
    q, p = FLAT.copy(), CERTAIN.copy()
    q[1, 1] = p[1, 2] = np.nan
    out, n_out = subject.verify(draft, q, p, NUM_DRAFT, np.random.default_rng(0))
    assert out.tolist() == [[2, 0, -1], [0, 1, -1]]
    assert n_out.tolist() == [2, 2]


@pytest.mark.parametrize("adapter", VERIFIERS, ids=lambda adapter: adapter.name)
def test_its_randomness_is_ours(adapter, subject):
    draft = np.zeros((64, 2), dtype=np.int64)
    laws = np.full((64, 2, 3), 1 / 3), np.full((64, 3, 3), 1 / 3)
    lengths = np.arange(64) % 3
    first, other, again = (
        subject.verify(draft, *laws, lengths, np.random.default_rng(seed)) for seed in (1, 2, 1)
    )
    assert np.array_equal(first[0], again[0])
    assert not np.array_equal(first[0], other[0])


@pytest.mark.parametrize("adapter", DECODERS, ids=lambda adapter: adapter.name)
def test_a_decoder_asks_its_world_for_the_rows_of_its_own_text(adapter, subject):
    """Each token is certain: one more than the one before it, modulo 3."""
    world = World.chain(np.eye(3, dtype=int)[[1, 2, 0]].tolist(), [[1, 1, 1]] * 3, start=2)
    decode = subject.call(Models(world))
    if adapter.contract == "generate":
        assert decode([(), (1,), (0, 2)], 4, 7) == [[0, 1, 2, 0], [2, 0, 1, 2], [0, 1, 2, 0]]
        return
    rng = np.random.default_rng(0)
    for context, text in (((), [0, 1, 2, 0]), ((0, 1), [2, 0, 1, 2])):
        for k in range(4):
            tokens = decode(context, k, rng)
            assert tokens == text[: len(tokens)]


def test_assisted_decoding_stops_where_the_world_says_so():
    """Though the token that ends a text was drafted, accepted, and others behind it."""
    adapter = ADAPTERS["transformers-assisted"]
    if installed_version(adapter) is None:
        pytest.skip(f"{adapter.package} is not installed")
    certain = np.eye(3, dtype=int)[[1, 2, 0]].tolist()
    world = World.chain(certain, certain, start=2)
    decode = load(adapter.spec, adapter.contract).call(Models(world, eos=1))
    assert decode([(), (1,), (0, 2)], 6, 7) == [[0, 1], [2, 0, 1], [0, 1]]
