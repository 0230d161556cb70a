# mypy: no-check-untyped-defs
import numpy as np
import pytest

from draftproof.proof.logits.call import Request, call_subject, engine_of
from draftproof.proof.logits.skeleton import LogitsVerifier
from draftproof.proof.subjects.contracts import Contract, guess_contract
from draftproof.proof.subjects.emission import ContractBroken
from draftproof.proof.subjects.raised import is_the_subjects
from draftproof.proof.subjects.subject import Subject
from draftproof.proof.worlds.logits_world import logits_world

REQUESTS = [
    Request(logits_world("temperatures"), (), (1,)),
    Request(logits_world("penalties"), (2,), ()),
]


def call(verify, requests=REQUESTS, seed=0):
    subject = Subject("test", Contract.LOGITS, verify)
    return call_subject(subject, requests, 2, np.random.default_rng(seed))


def plain(draft, draft_logits, target_logits, num_draft, params, draft_params, history, rng):
    """Keeps no draft, and takes the argmax."""
    out = np.full((len(draft), draft.shape[1] + 1), -1)
    out[:, 0] = np.nanargmax(target_logits[:, 0], axis=1)
    return out, np.ones(len(draft), dtype=int)


def test_the_contract_is_told_by_its_parameters():
    assert guess_contract(plain) is Contract.LOGITS
    assert Contract.LOGITS.shape.startswith("f(draft, draft_logits, target_logits, num_draft, ")


def test_a_subject_gets_what_the_contract_says():
    seen = {}

    def verify(draft, draft_logits, target_logits, num_draft, params, draft_params, history, rng):
        seen.update(draft=draft.tolist(), num_draft=num_draft.tolist(), history=history)
        seen.update(shapes=(draft_logits.shape, target_logits.shape))
        seen.update(temperatures=[p.temperature for p in params])
        return plain(
            draft, draft_logits, target_logits, num_draft, params, draft_params, history, rng
        )

    assert [len(text) for text in call(verify)] == [1, 1]
    assert seen == {
        "draft": [[1, -1], [-1, -1]],
        "num_draft": [1, 0],
        "history": [[], [0, 1, 1, 2]],
        "shapes": ((2, 2, 4), (2, 3, 4)),
        "temperatures": [0.6, 1.0],
    }


def test_writing_to_an_input_breaks_the_contract():
    def verify(*arguments):
        arguments[6][0].append(3)
        return plain(*arguments)

    with pytest.raises(ContractBroken, match="wrote to an input"):
        call(verify)


class WithLogprobs(LogitsVerifier):
    def __init__(self, shift):
        self.shift = shift

    def __call__(self, *arguments):
        out, n_out = super().__call__(*arguments)
        law = REQUESTS[0].world.tables[0][0]
        return out, n_out, np.full(out.shape, np.log(law[out[0, 0]]) + self.shift)


@pytest.mark.parametrize("shift", [0, 1e-5])
def test_log_probabilities_may_come_along(shift):
    request = Request(REQUESTS[0].world, (), ())
    assert len(call(WithLogprobs(shift), [request])[0]) == 1


@pytest.mark.parametrize("shift", [0.01, np.nan])
def test_log_probabilities_have_to_be_right(shift):
    request = Request(REQUESTS[0].world, (), ())
    with pytest.raises(ContractBroken, match="logprobs of row 0 at position 0 is"):
        call(WithLogprobs(shift), [request])


def test_an_engine_says_what_it_is():
    verify = LogitsVerifier()
    subject = Subject("test", Contract.LOGITS, verify)
    assert engine_of(subject) == ("standard", frozenset())
    verify.order, verify.lacks = "sglang", "min_p"
    assert engine_of(subject) == ("sglang", {"min_p"})
    verify.lacks = ("beams",)
    with pytest.raises(ContractBroken, match="lacks names 'beams'"):
        engine_of(subject)
    verify.order = "own"
    with pytest.raises(ContractBroken, match="order is 'own'; wanted one of standard"):
        engine_of(subject)


def test_what_it_raises_is_its_own_fault():
    def verify(*arguments):
        raise RuntimeError("not yet")

    with pytest.raises(RuntimeError) as raised:
        call(verify)
    assert is_the_subjects(raised.value)
