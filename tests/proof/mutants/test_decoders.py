from dataclasses import replace

import pytest

from draftproof.proof.checks import CHECKS, checks_for
from draftproof.proof.decoders.matrix import KEY_DECODER_CONTROLS, decoder_killers
from draftproof.proof.mutants import DECODERS, get
from draftproof.proof.mutants.speculator import Speculator, decoder
from draftproof.proof.subjects.subject import load
from draftproof.proof.trial.examination import examine
from draftproof.proof.trial.plan import make_plan
from draftproof.proof.verdicts.finding import Outcome

WRONG = [mutant for mutant in DECODERS.values() if mutant.kind != "equivalent"]
RIGHT = [mutant for mutant in DECODERS.values() if mutant.kind == "equivalent"]


def by_name(mutants):
    return pytest.mark.parametrize("mutant", mutants, ids=lambda mutant: mutant.name)


def test_there_are_enough_of_them_and_each_is_found_by_its_name():
    assert len(WRONG) >= 20
    assert len(RIGHT) >= 8
    assert all(get(m.name) is get(m.identifier) is m for m in DECODERS.values())
    assert all(
        m.name in DECODERS for names in KEY_DECODER_CONTROLS.values() for m in map(get, names)
    )


def test_a_name_is_taken_once():
    with pytest.raises(ValueError, match="'round: token' twice"):
        decoder("round: token")(Speculator)


@by_name(DECODERS.values())
def test_one_line_says_what_it_does(mutant):
    assert 10 < len(mutant.does) < 100
    assert mutant.does[0].isupper()
    assert not mutant.does.endswith(".")
    assert mutant.family in ("rounds", "texts", "speculator")


@by_name([mutant for mutant in WRONG if mutant.caught_by != "rows"])
def test_a_wrong_one_is_caught_by_the_check_that_its_entry_names(mutant):
    assert decoder_killers(mutant.name, make_plan("quick", 1)) == (mutant.caught_by,)


@by_name([mutant for mutant in WRONG if mutant.caught_by == "rows"])
def test_rows_that_share_noise_show_in_pairs_only(mutant):
    plan = replace(make_plan("quick", 1), visible=0.3)
    assert decoder_killers(mutant.name, plan) == ("rows",)


@by_name([mutant for mutant in RIGHT if mutant.name.startswith("round")])
def test_a_right_round_has_the_target_s_law(mutant):
    assert mutant.total_variation == 0


@pytest.mark.slow
@by_name(RIGHT)
def test_a_right_one_lives(mutant):
    plan, subject = make_plan("quick", 2), load(mutant.spec)
    for name in checks_for(mutant.contract):
        for finding in examine(name, CHECKS[name], subject, plan):
            assert finding.outcome in (Outcome.PASSED, Outcome.NOTE), finding.message
