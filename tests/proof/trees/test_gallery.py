# mypy: no-check-untyped-defs
import json
from fractions import Fraction

import pytest

from draftproof.proof.exact.tree_law import tree_law
from draftproof.proof.mutants import table
from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.subjects.loading import SubjectNotFound
from draftproof.proof.subjects.subject import load
from draftproof.proof.trees.gallery import sibling_rule, tree_gallery, tree_table
from draftproof.proof.trees.matrix import KEY_TREE_CONTROLS, judge_tree_gallery, tree_killers
from draftproof.proof.trial.plan import make_plan
from draftproof.proof.worlds.tree_world import TREE_WORLDS
from draftproof.reference.siblings import rrs
from draftproof.trees import TREE_RULES, Draws

GALLERY = tree_gallery()
WRONG = [m for m in GALLERY.values() if m.kind != "equivalent"]
RIGHT = [m for m in GALLERY.values() if m.kind == "equivalent"]
PLAN = make_plan("quick", 0)
KEY = KEY_TREE_CONTROLS[Contract.TREE]

# Of one round; where a mutant rounds, the nearest fraction of its rule.
PUBLISHED = {
    "no update": Fraction(1, 8),
    "no update without replacement": Fraction(1, 36),
    "re-sorted siblings": Fraction(123, 520),
    "iid siblings, re-sorted": Fraction(3, 32),
    "iid repeats counted as rejections": Fraction(3, 128),
    "deduplicated with q fixed": Fraction(1, 64),
    "original p at the end": Fraction(1, 8),
    "rejected siblings masked": Fraction(73, 560),
    "k-seq with rho = 1": Fraction(1, 8),
    "fixed siblings tested by p / q": Fraction(3, 8),
    "duplicates in a fixed set": Fraction(1, 2),
    "hu-greedy, q as it is": Fraction(3, 8),
}


def by_name(mutants):
    return pytest.mark.parametrize("mutant", mutants, ids=[m.identifier for m in mutants])


@by_name(list(GALLERY.values()))
def test_one_line_says_what_it_does(mutant):
    assert 10 < len(mutant.does) < 100
    assert mutant.does[0].isupper() or mutant.kind == "equivalent"
    assert mutant.world in TREE_WORLDS
    assert TREE_WORLDS[mutant.world].draws is mutant.draws
    assert mutant.note == "" or mutant.kind == "equivalent"


def test_names_are_unique():
    assert len({m.identifier for m in GALLERY.values()}) == len(GALLERY)
    with pytest.raises(ValueError, match="'no update' twice"):
        sibling_rule("no update", Draws.IID)(rrs)


@by_name(WRONG)
def test_every_wrong_one_dies_of_exact_evidence(mutant):
    assert tree_killers(mutant.name, PLAN) == (mutant.caught_by,)


@by_name([m for m in RIGHT if m.world.startswith("L4, 2,")])
def test_every_right_one_lives(mutant):
    assert mutant.total_variation == 0


@pytest.mark.slow
@by_name(RIGHT)
def test_no_check_rejects_a_right_one(mutant):
    assert tree_killers(mutant.name, PLAN) == ()


@pytest.mark.parametrize("name", PUBLISHED)
def test_how_far_each_is_off(name):
    assert abs(GALLERY[name].total_variation - PUBLISHED[name]) < Fraction(1, 10**15)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("traversal, p not updated", 0.1849),
        ("traversal, q not updated", 1 / 36),
        ("traversal, w not updated", 1 / 8),
        ("bonus from the row before", 0.1255),
        ("raw bonus", 0.0748),
        ("one uniform for all siblings", 0.0045),
    ],
)
def test_how_far_off_where_it_takes_two_levels_or_three_siblings(name, expected):
    assert float(GALLERY[name].total_variation) == pytest.approx(expected, abs=5e-5)


def test_a_row_has_what_the_table_of_the_others_has():
    row = GALLERY["no update"].to_row()
    assert json.loads(json.dumps(row)) == row
    assert (row["total_variation"], row["caught_by"]) == (0.125, "tree-oracle")
    assert row["spec"] == "tree-mutant:no_update"


@pytest.mark.slow
def test_the_table_has_the_columns_of_the_others():
    assert {tuple(row) for row in tree_table()} == {tuple(row) for row in table()}


def test_a_fault_between_calls_is_right_in_each():
    world = TREE_WORLDS["L4, 2, without-replacement"]
    mutant = load("tree-mutant:noise_kept_between_calls")
    assert mutant.call.rule.func.__name__ == "walk"
    assert tree_law("rrsw", world).law == world.world.target_law(2)
    assert GALLERY["noise kept between calls"].total_variation > Fraction(1, 3)


def test_subjects_by_name():
    assert load("tree-mutant:no_update").contract is Contract.TREE
    for rule in TREE_RULES:
        assert load(f"tree:{rule}").call.draws is TREE_RULES[rule].draws[0]
    with pytest.raises(SubjectNotFound, match="found 'tree:token'; wanted tree: and one of nss"):
        load("tree:token")
    with pytest.raises(SubjectNotFound, match="found 'tree-mutant:none'; wanted tree-mutant:"):
        load("tree-mutant:none")


def test_the_key_controls_die():
    steps = []
    matrix = judge_tree_gallery(PLAN, KEY, lambda *step: steps.append(step))
    assert matrix.killed == matrix.total == len(KEY)
    assert matrix.survivors == matrix.casualties == ()
    assert steps[-1] == (7, 7, "control: noise kept between calls")


def test_a_right_one_among_the_controls_is_no_casualty():
    matrix = judge_tree_gallery(PLAN, ["target-only"])
    assert (matrix.total, matrix.casualties) == (0, ())
