import functools

import numpy as np
import pytest

from draftproof.proof.decoders.models import Models
from draftproof.proof.subjects.contracts import Contract, guess_contract
from draftproof.proof.subjects.decoder import Decoder
from draftproof.proof.subjects.emission import ContractBroken
from draftproof.proof.subjects.subject import as_subject
from draftproof.proof.worlds.catalogue import WORLDS
from tests.proof.subjects import decoders

MODELS = Models(WORLDS["L4"], eos=3)


def makes(names):
    """A maker of what takes these parameters."""
    return lambda world: eval(f"lambda {names}: None")


def decoder(result, contract):
    made = lambda *arguments: result(*arguments) if callable(result) else result  # noqa: E731
    return Decoder(as_subject(lambda world: made, contract), MODELS)


@pytest.mark.parametrize(
    ("call", "contract"),
    [
        (decoders.make_round, "round"),
        (decoders.make_generate, "generate"),
        (decoders.engine, "generate"),
        (makes("context, k, rng"), "round"),
        (makes("prefix, num_draft, generator"), "round"),
        (makes("prompts, n, seed"), "generate"),
        (makes("prompt_ids, max_new_tokens, seed=0"), "generate"),
        (lambda world, drafts=2: lambda context, k, rng: None, "round"),
        (functools.partial(decoders.make_round), "round"),
    ],
)
def test_the_contract_is_told_by_what_is_made(call, contract):
    assert guess_contract(call) is Contract(contract)


@pytest.mark.parametrize(
    ("names", "closest"), [("a, b, c", "round"), ("prompts, seed, n", "generate"), ("x", "round")]
)
def test_an_unclear_decoder_gets_the_closest_contract(names, closest):
    with pytest.raises(ValueError, match=f"closest is '{closest}'"):
        guess_contract(makes(names))


def test_what_makes_nothing_to_call_is_broken():
    with pytest.raises(ContractBroken, match="returned a int; wanted a decoder"):
        guess_contract(lambda world: 3)


@pytest.mark.parametrize(
    ("result", "tokens", "drafts"),
    [
        ([0, 1], (0, 1), None),
        ((0, 1), (0, 1), None),  # two tokens, no drafts
        (np.array([2]), (2,), None),
        (([0], [1, 1]), (0,), (1, 1)),
        (([0], []), (0,), ()),
        (([0], [1], [np.full(4, 0.25)]), (0,), (1,)),
    ],
)
def test_rounds_are_read(result, tokens, drafts):
    made = decoder(result, "round").round([0], 2, np.random.default_rng())
    assert (made.tokens, made.drafts) == (tokens, drafts)
    assert made.rows is None or made.rows.shape == (1, 4)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ([], "returned 0 tokens"),
        ([0, 1, 2, 3], "returned 4 tokens"),
        ([4], "token 0 of the list is 4"),
        ([0.5], "wanted integers"),
        (([0], [1, 1, 1]), "drafted 3 tokens; wanted at most k = 2"),
        (([0], [9]), "drafts: token 0 is 9"),
        (([0], [1], [np.full(3, 1 / 3)]), r"shape \(1, 3\); wanted \(1, 4\)"),
        (lambda context, k, rng: context.append(0) or [0], "wrote to its input context"),
    ],
)
def test_rounds_that_break_the_contract(result, message):
    with pytest.raises(ContractBroken, match=message):
        decoder(result, "round").round([0], 2, np.random.default_rng())


def test_texts_are_read_and_cut_where_they_end():
    reader = decoder([[0, 1, 2], [0, 3, -1], [3, 0, 0], [0, 1, 3]], "generate")
    assert reader.generate([(0,)] * 4, 3, 1) == [(0, 1, 2), (0, 3), (3,), (0, 1, 3)]
    assert (reader.stopped, reader.overran) == (1, 1)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (None, "returned a NoneType"),
        ([[0, 1, 2]] * 3, "returned 3 texts; wanted 2"),
        ([[0, 1, 2], [0, 1]], "text 1 has 2 tokens; wanted 3, or fewer that end with token 3"),
        ([[0, 1, 2, 0], [0, 1, 2]], "text 0 has 4 tokens; wanted at most 3"),
        ([[2, 2, 0, 1, 2], [0, 1, 2]], "text 0 begins with its prompt"),
        ([[0, 1, 4], [0, 1, 2]], "text 0: token 2 is 4"),
        (np.full((2, 3), 0.5), "wanted integers"),
    ],
)
def test_texts_that_break_the_contract(result, message):
    with pytest.raises(ContractBroken, match=message):
        decoder(result, "generate").generate([(2, 2), (2, 2)], 3, 1)
