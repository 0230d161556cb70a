import numpy as np
import pytest

from draftproof.proof.decoders.round_law import draft_laws, round_law
from draftproof.proof.exact.generator import NotDrivable
from draftproof.proof.mutants import DECODERS
from draftproof.proof.subjects.subject import as_subject, load
from draftproof.proof.worlds.catalogue import WORLDS
from tests.proof.subjects import decoders

L4 = WORLDS["L4"]


def subject(name):
    return load(DECODERS[name].spec)


def test_a_right_decoder_has_the_target_s_law_exactly():
    found = round_law(as_subject(decoders.make_round), L4, (1, 1))
    assert found.law == L4.target_law(4)
    assert round_law(as_subject(decoders.make_round), L4, (2,)).emitted == 1 + 21 / 16


def test_what_one_round_leaves_to_the_next_shows_in_two():
    for name in ("round: noise reused", "round: cache not rolled back"):
        assert round_law(subject(name), L4, (1,)).law == L4.target_law(2)
        assert round_law(subject(name), L4, (1, 1)).law.total_variation(L4.target_law(4)) > 0.03


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("round: token", 0, 1e-13),
        ("round: lagging drafter", 0, 1e-13),
        ("round: top-2 drafts, top-2 q", 0, 1e-13),
        ("round: drafts from q in bf16", 1e-4, 1e-2),
        ("round: argmax drafts, soft q", 0.3, 1),
    ],
)
def test_the_law_of_drafts_is_compared_with_what_is_declared(name, least, most):
    laws = draft_laws(subject(name), WORLDS["L357"], 2)
    assert laws is not None
    found, told = laws
    assert least <= float(found.law.total_variation(told)) <= most


def test_drafts_that_nobody_tells_have_no_law():
    assert draft_laws(as_subject(decoders.make_round), L4, 1) is None


def test_a_decoder_with_a_generator_of_its_own_cannot_be_driven():
    def make(world):
        return lambda context, k, rng: [int(np.random.default_rng(rng.integers(9)).integers(4))]

    with pytest.raises(NotDrivable):
        round_law(as_subject(make, "round"), L4, (1,))
