# mypy: no-check-untyped-defs
import numpy as np
import pytest

from draftproof.proof.checks import checks_for
from draftproof.proof.checks.trees import LOGITS_TREES, check_tree_calls, check_tree_oracle
from draftproof.proof.exact.tree_oracle import draw_tree, oracle_tree_law
from draftproof.proof.subjects.contracts import Contract, guess_contract
from draftproof.proof.subjects.loading import SubjectNotFound
from draftproof.proof.subjects.subject import Subject, load
from draftproof.proof.trees.from_logits import (
    FROM_LOGITS,
    LogitsTreeVerifier,
    judge_trees_from_logits,
)
from draftproof.proof.trial.plan import make_plan
from draftproof.proof.verdicts.finding import Outcome
from draftproof.proof.worlds.logits_world import logits_world
from draftproof.proof.worlds.tree_world import TreeWorld
from draftproof.trees.draft_tree import Draws

PLAN = make_plan("quick", 0)


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


def test_a_right_one_passes_and_a_law_of_two_rounds_is_not_told():
    subject = Subject("test", Contract.TREE_LOGITS, LogitsTreeVerifier())
    assert outcomes(check_tree_oracle(subject, PLAN)) == [Outcome.PASSED] * len(LOGITS_TREES)
    assert outcomes(check_tree_calls(subject, PLAN)) == []


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


def test_every_wrong_one_dies():
    matrix = judge_trees_from_logits(PLAN)
    assert matrix.total == len(FROM_LOGITS) == 6
    assert matrix.survivors == ()


def test_subjects_by_name():
    assert load("tree-logits-mutant:the_sibling_s_text").contract is Contract.TREE_LOGITS
    with pytest.raises(SubjectNotFound, match="wanted tree-logits: and one of nss"):
        load("tree-logits:none")
    with pytest.raises(SubjectNotFound, match="wanted tree-logits-mutant: and one of the_sibling"):
        load("tree-logits-mutant:none")
