# mypy: no-check-untyped-defs
import json

import pytest

from draftproof.proof.checks import checks_for
from draftproof.proof.logits.gallery import (
    load_logits_mutant,
    load_own,
    logits_gallery,
    logits_table,
    verifier,
)
from draftproof.proof.logits.matrix import (
    KEY_LOGITS_CONTROLS,
    judge_logits_gallery,
    logits_killers,
)
from draftproof.proof.logits.skeleton import LogitsVerifier
from draftproof.proof.mutants import table
from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.subjects.loading import SubjectNotFound
from draftproof.proof.subjects.subject import load
from draftproof.proof.trial.plan import make_plan
from draftproof.proof.worlds.logits_world import LOGITS_WORLDS

GALLERY = logits_gallery()
WRONG = [m for m in GALLERY.values() if m.kind != "equivalent"]
RIGHT = [m for m in GALLERY.values() if m.kind == "equivalent"]
PLAN = make_plan("quick", 0)


def by_name(mutants):
    return pytest.mark.parametrize("mutant", mutants, ids=[m.identifier for m in mutants])


@by_name(list(GALLERY.values()))
def test_one_line_says_what_it_does(mutant):
    assert 10 < len(mutant.does) < 100
    assert set(mutant.worlds) <= set(LOGITS_WORLDS)
    assert len(mutant.worlds) == (2 if mutant.kind == "rows" else 1)
    assert mutant.note == "" or mutant.kind == "equivalent"


def test_names_are_unique():
    assert len({m.identifier for m in GALLERY.values()}) == len(GALLERY)
    with pytest.raises(ValueError, match="'raw bonus' twice"):
        verifier("raw bonus", "penalties")(LogitsVerifier)


def test_what_issue_and_public_faults_name_is_there():
    assert {m.public.partition(" #")[0].partition(",")[0] for m in WRONG} >= {
        "vllm", "transformers", "transformers up to 4.34", "sglang", "TensorRT-LLM",
        "text-generation-inference",
    }  # fmt: skip
    assert {m.caught_by for m in WRONG} == set(checks_for(Contract.LOGITS)) - {
        "logits-engine", "logits-lacks",
    }  # fmt: skip


@by_name([m for m in WRONG if m.kind != "broken"])
def test_a_wrong_law_is_seen_in_its_world(mutant):
    assert mutant.total_variation > 0.001


@by_name([m for m in RIGHT if m.note != "rounds to float32"])
def test_a_right_one_has_the_targets_law(mutant):
    assert mutant.total_variation == 0


def test_one_in_float32_is_off_by_no_more_than_that():
    assert 0 < GALLERY["laws in float32"].total_variation < 1e-6


@pytest.mark.slow
@by_name(WRONG)
def test_every_wrong_one_dies_of_the_check_that_is_for_it(mutant):
    assert logits_killers(mutant.name, PLAN) == (mutant.caught_by,)


@pytest.mark.slow
@by_name(RIGHT)
def test_no_check_rejects_a_right_one(mutant):
    assert logits_killers(mutant.name, PLAN) == ()


@pytest.mark.slow
def test_the_key_controls_die():
    steps = []
    matrix = judge_logits_gallery(PLAN, KEY_LOGITS_CONTROLS, lambda *step: steps.append(step))
    assert matrix.killed == matrix.total == len(KEY_LOGITS_CONTROLS)
    assert matrix.survivors == matrix.casualties == ()
    assert steps[-1] == (8, 8, "control: log-probabilities of the row before")


def test_a_control_dies_within_the_matrix():
    matrix = judge_logits_gallery(PLAN, ["raw accept"])
    assert [(c.name, c.killed_by) for c in matrix.controls] == [("raw accept", ("logits-oracle",))]


def test_a_row_has_what_the_table_of_the_others_has():
    row = GALLERY["the neighbour's parameters"].to_row()
    assert json.loads(json.dumps(row)) == row
    assert (row["kind"], row["seen"], row["caught_by"]) == ("lossy", "pairs", "logits-pairs")
    assert row["world"] == "temperatures and top-k, top-p"


@pytest.mark.slow
def test_the_table_has_the_columns_of_the_others():
    assert {tuple(row) for row in logits_table()} == {tuple(row) for row in table()}


def test_subjects_by_name():
    assert load("logits-mutant:raw_bonus").contract is Contract.LOGITS
    assert load("own:logits").call.backend == "auto"
    assert load("own:logits:reference").spec == "own:logits:reference"
    with pytest.raises(SubjectNotFound, match="found 'own:logits:cuda'; wanted own:logits, or"):
        load_own("cuda")
    with pytest.raises(SubjectNotFound, match="found 'logits-mutant:none'; wanted logits-mutant:"):
        load_logits_mutant("none")
