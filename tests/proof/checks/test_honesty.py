import numpy as np
import pytest

from draftproof.proof.checks.honesty import check_honesty
from draftproof.proof.subjects.subject import as_subject, load
from draftproof.proof.trial.plan import make_plan
from draftproof.proof.verdicts.finding import Grade, Outcome
from tests.proof.subjects import decoders

PLAN = make_plan("quick", 0)


def look(subject):
    return list(check_honesty(as_subject(subject), PLAN))


@pytest.mark.parametrize("name", ["round_token", "round_lagging_drafter", "round_exact_match"])
def test_honest_drafts_pass_exactly(name):
    findings = look(load(f"mutant:{name}"))
    assert {(f.outcome, f.grade) for f in findings} == {(Outcome.PASSED, Grade.EXACT)}


@pytest.mark.parametrize(
    "name",
    ["round_top_2_drafts_full_q", "round_drafts_at_temperature_1_2", "round_argmax_drafts_soft_q",
     "round_drafts_from_q_in_bf16"],
)  # fmt: skip
def test_dishonest_drafts_are_found_exactly(name):
    findings = look(load(f"mutant:{name}"))
    assert Outcome.LOSSY in {f.outcome for f in findings}


def test_rows_of_another_request_are_found_by_sampling_where_they_cannot_be_driven():
    from draftproof.proof.mutants.rounds import OtherRows

    def make(world):
        decode = OtherRows(world)
        return lambda context, k, rng: decode(
            context, k, np.random.default_rng(rng.integers(2**31))
        )

    (finding,) = look(make)
    assert (finding.outcome, finding.grade) == (Outcome.LOSSY, Grade.SAMPLED)
    assert "not drawn from the rows" in finding.message


def test_what_is_not_told_cannot_be_looked_at():
    assert [f.outcome for f in look(decoders.make_round)] == [Outcome.NOTE]
