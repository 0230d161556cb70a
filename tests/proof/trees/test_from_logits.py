# mypy: no-check-untyped-defs
import numpy as np
import pytest

from draftproof.proof.checks import checks_for
from draftproof.proof.checks.trees import LOGITS_TREES, check_tree_calls, check_tree_oracle
from draftproof.proof.exact.tree_oracle import draw_tree, oracle_tree_law
from draftproof.proof.subjects.contracts import Contract, guess_contract
from draftproof.proof.subjects.loading import SubjectNotFound
from draftproof.proof.subjects.subject import Subject, load
from draftproof.proof.trees.gallery import tree_gallery
from draftproof.proof.trees.matrix import KEY_TREE_CONTROLS, judge_tree_gallery, tree_killers
from draftproof.proof.trees.skeleton import LogitsTreeVerifier
from draftproof.proof.trial.plan import make_plan
from draftproof.proof.verdicts.finding import Outcome
from draftproof.proof.worlds.logits_world import logits_world
from draftproof.proof.worlds.tree_world import TreeWorld
from draftproof.trees.draft_tree import Draws

PLAN = make_plan("quick", 0)
GALLERY = tree_gallery(Contract.TREE_LOGITS)
WRONG = [m for m in GALLERY.values() if m.kind != "equivalent"]
RIGHT = [m for m in GALLERY.values() if m.kind == "equivalent"]


def by_name(mutants):
    return pytest.mark.parametrize("mutant", mutants, ids=[m.identifier for m in mutants])


def outcomes(findings):
    return [finding.outcome for finding in findings]


def test_the_contract_is_told_by_its_parameters():
    assert guess_contract(LogitsTreeVerifier()) is Contract.TREE_LOGITS
    assert checks_for(Contract.TREE_LOGITS) == checks_for(Contract.TREE)


def test_a_tree_has_the_logits_and_the_masks_of_its_contexts():
    world = logits_world("grammar")
    tree = draw_tree(
        TreeWorld(world, (2, 1), Draws.WITHOUT_REPLACEMENT), (3,), lambda law: int(np.argmax(law))
    )
    states = [3, *tree.token_ids]
    np.testing.assert_array_equal(tree.p, world.target_logits[states])
    np.testing.assert_array_equal(np.isnan(tree.q[:, 0]), [False, False, False, True, True])
    params, _, history = tree.request
    np.testing.assert_array_equal(params.allowed_tokens, world.grammar[states])
    assert history == (*world.history, 3)


def test_a_right_one_passes_in_every_world_and_over_two_rounds():
    subject = Subject("test", Contract.TREE_LOGITS, LogitsTreeVerifier())
    assert outcomes(check_tree_oracle(subject, PLAN)) == [Outcome.PASSED] * len(LOGITS_TREES)
    findings = list(check_tree_calls(subject, PLAN))
    assert outcomes(findings) == [Outcome.PASSED]
    assert findings[0].message.startswith("the exact law of 2 rounds")


def test_the_second_round_has_the_history_that_the_first_has_left():
    told = []

    class Told(LogitsTreeVerifier):
        def __call__(self, *call):
            emitted = super().__call__(*call)
            told.append((tuple(call[6]), tuple(emitted)))
            return emitted

    next(check_tree_calls(Subject("test", Contract.TREE_LOGITS, Told()), PLAN))
    start = logits_world("two rounds").history
    first = {(*start, *emitted) for history, emitted in told if history == start}
    assert {history for history, _ in told} == {start, *first}


@pytest.mark.parametrize("rule", ["rrsw", "traversal", "target-only", "k-seq"])
def test_our_own_call_is_lossless(rule):
    subject = load(f"tree-logits:{rule}")
    world = TreeWorld(logits_world("penalties"), (2,), subject.call.draws)
    law = oracle_tree_law(subject, world).law
    assert law.total_variation(world.world.target_law(2)) <= law.error


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["rrsw", "traversal", "target-only"])
def test_our_own_call_is_lossless_in_deeper_trees(rule):
    subject = load(f"tree-logits:{rule}")
    findings = outcomes(check_tree_oracle(subject, make_plan("standard", 0)))
    assert findings == [Outcome.PASSED] * 2 * len(LOGITS_TREES)


@pytest.mark.parametrize("rule", ["rrsw", "traversal", "target-only"])
def test_our_own_call_is_lossless_over_two_rounds(rule):
    assert outcomes(check_tree_calls(load(f"tree-logits:{rule}"), PLAN)) == [Outcome.PASSED]


@by_name(WRONG)
def test_every_wrong_one_dies_of_the_check_that_its_row_names(mutant):
    assert tree_killers(mutant.name, PLAN, Contract.TREE_LOGITS) == (mutant.caught_by,)


@by_name(RIGHT)
def test_every_right_one_lives(mutant):
    assert tree_killers(mutant.name, PLAN, Contract.TREE_LOGITS) == ()


def test_a_row_has_what_the_table_of_the_others_has():
    row = GALLERY["ends by number"].to_row()
    assert row.keys() == tree_gallery()["no update"].to_row().keys()
    assert (row["family"], row["caught_by"]) == ("trees from logits", "tree-oracle")
    assert row["spec"] == "tree-logits-mutant:ends_by_number"
    assert row["total_variation"] > 0.01


def test_the_key_controls_are_of_the_gallery():
    key = KEY_TREE_CONTROLS[Contract.TREE_LOGITS]
    matrix = judge_tree_gallery(PLAN, [key[-1], "traversal"], contract=Contract.TREE_LOGITS)
    assert (matrix.killed, matrix.total, matrix.casualties) == (1, 1, ())
    assert set(key) <= {mutant.name for mutant in WRONG}


def test_subjects_by_name():
    assert load("tree-logits-mutant:the_sibling_s_text").contract is Contract.TREE_LOGITS
    with pytest.raises(SubjectNotFound, match="wanted tree-logits: and one of nss"):
        load("tree-logits:none")
    with pytest.raises(SubjectNotFound, match="wanted tree-logits-mutant: and one of the_sibling"):
        load("tree-logits-mutant:none")
