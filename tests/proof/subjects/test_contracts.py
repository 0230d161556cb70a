import functools

import pytest

import draftproof
from draftproof.proof.mutants import get
from draftproof.proof.subjects.contracts import Contract, call_shape, guess_contract

correct = get("token").build()


def takes(names):
    """A function of these parameters."""
    return eval(f"lambda {names}: None")


@pytest.mark.parametrize(
    ("names", "contract"),
    [
        ("draft, q, p, num_draft, rng", "ragged"),
        ("draft_token_ids, draft_probs, target_probs, num_draft, generator", "ragged"),
        ("x, q, p, lens, rng", "ragged"),
        ("draft_ids, draft_p, target_p, n_draft, rng, eps=0.0", "ragged"),
        ("draft, q, p, num_draft=None, rng=None", "ragged"),
        ("draft, q, p, num_draft, accept, final", "uniforms"),
        ("draft, q, p, num_draft, accept_u, final_u", "uniforms"),
        ("draft, q, p, rng", "single"),
        ("tokens, draft_p, target_p, random_state", "single"),
        ("draft, p, num_draft", "greedy"),
        ("draft, q, p, num_draft", "greedy"),
        ("draft_tokens, draft_probs, target_probs, random_samples", "practice"),
        ("draft, q, p, u", "practice"),
    ],
)
def test_guess(names, contract):
    assert guess_contract(takes(names)) is Contract(contract)


@pytest.mark.parametrize(
    ("call", "contract"),
    [
        (draftproof.verify, "ragged"),
        (functools.partial(draftproof.verify, backend="numpy"), "ragged"),
        (draftproof.verify_greedy, "greedy"),
        (draftproof.verify_speculative_tokens, "practice"),
        (correct, "ragged"),
    ],
)
def test_guess_of_known_functions(call, contract):
    assert guess_contract(call) is Contract(contract)


@pytest.mark.parametrize(
    ("names", "closest"),
    [
        ("a, b, c, d, e", "ragged"),
        ("a, b, c, d, e, f", "uniforms"),
        ("draft, p, q, num_draft, rng", "ragged"),  # p and q the wrong way round
        ("draft, q, p, x", "single"),
        ("draft, q", "greedy"),
        ("draft, q, p, cu_num_draft, rng", "ragged"),  # packed
        ("*arguments", "greedy"),
    ],
)
def test_what_is_unclear_is_refused_with_the_closest(names, closest):
    with pytest.raises(ValueError, match=f"the closest is '{closest}', f\\(") as refusal:
        guess_contract(takes(names))
    names_all = "Fix: name the contract (ragged, uniforms, single, greedy, practice, "
    assert names_all in str(refusal.value)


def test_a_signature_that_cannot_be_read_is_refused():
    with pytest.raises(ValueError, match="whose signature cannot be read"):
        guess_contract(max)


def test_the_call_shape_of_a_greedy_subject_is_its_own():
    assert call_shape(takes("draft, p, num_draft"), Contract.GREEDY) == ("draft", "p", "num_draft")
    assert call_shape(takes("draft, q, p, num_draft"), Contract.GREEDY)[1] == "q"
    assert call_shape(takes("a, b, c, d, e"), Contract.GREEDY)[-1] == "rng"


def test_the_wrong_number_of_arguments_is_refused():
    with pytest.raises(ValueError, match="take 5 positional arguments"):
        call_shape(takes("draft, q"), Contract.RAGGED)
    assert call_shape(takes("*arguments"), Contract.RAGGED)[-1] == "rng"


def test_a_contract_shows_its_call():
    assert Contract.SINGLE.shape == "f(draft, q, p, rng)"
    assert [contract for contract in Contract if contract.is_sampler] == [
        "ragged",
        "uniforms",
        "single",
    ]
