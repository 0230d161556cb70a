import itertools
import json
from fractions import Fraction

import pytest

from draftproof.proof.exact.exact_law import oracle_law, oracle_pair_law
from draftproof.proof.exact.generator import NotDrivable
from draftproof.proof.mutants import DECODERS, EQUIVALENTS, MUTANTS, get, table
from draftproof.proof.mutants.registry import GALLERY, mutant
from draftproof.proof.mutants.skeleton import Verifier
from draftproof.proof.subjects.subject import load
from draftproof.proof.worlds.catalogue import WORLDS
from draftproof.proof.worlds.wide import WIDE_WORLDS

ALL = list(GALLERY.values())

# Computed by hand or by other programs, from the definition of each fault, before this gallery.
PUBLISHED = {
    "resample p on a rejection": 0.1660,
    "residual |p - q|": 0.1445,
    "one-hot residual": 0.1348,
    "inverted ratio": 0.3438,
    "accept if p >= q": 0.5234,
    "accept always": 0.3438,
    "bonus from the last draft's row": 0.0674,
    "lenience 1.1": 0.0584,
    "lenience 1.04": 0.0230,
    "one uniform for all": 0.0938,
    "exact match with redraw": 0.0828,
    "top-2 drafts, full q": 0.2222,
    "argmax drafts, soft q": 0.4688,
}
UNSEEN = {"uniforms rounded to float32", "0/0 accepted"}  # by intervals, or by drafts of q


def names(mutants):
    return [m.name for m in mutants]


def by_name(predicate):
    chosen = [m for m in ALL if predicate(m)]
    return pytest.mark.parametrize("mutant", chosen, ids=names(chosen))


def test_there_are_enough_of_them():
    assert sum(m.kind in ("lossy", "broken") for m in MUTANTS.values()) >= 45
    assert len(EQUIVALENTS) >= 20
    assert len(MUTANTS) + len(EQUIVALENTS) == len(GALLERY)


def test_names_and_identifiers_are_unique():
    assert len({m.identifier for m in ALL}) == len({m.spec for m in ALL}) == len(GALLERY)
    assert all(get(m.identifier) is get(m.name) is m for m in ALL)


def test_a_name_is_taken_once():
    with pytest.raises(ValueError, match="'accept always' twice"):
        mutant("accept always")(Verifier)


def test_an_unknown_name_gets_the_closest():
    with pytest.raises(KeyError, match="the closest names are accept always"):
        get("accept alway")


@by_name(lambda m: True)
def test_one_line_says_what_it_does(mutant):
    assert 10 < len(mutant.does) < 100
    assert mutant.does[0].isupper()
    assert not mutant.does.endswith(".")
    assert mutant.world in WORLDS or mutant.world in WIDE_WORLDS
    assert mutant.note == "" or mutant.kind == "equivalent"


@pytest.mark.parametrize("name", PUBLISHED)
def test_total_variation_is_the_published_one(name):
    distance = get(name).total_variation
    assert get(name).world == "L4"
    assert distance is not None
    assert float(distance) == pytest.approx(PUBLISHED[name], abs=5e-5)


def test_total_variation_is_exact_where_floats_are():
    assert get("accept always").total_variation == Fraction(11, 32)
    assert get("one uniform for all").total_variation == Fraction(3, 32)


@by_name(
    lambda m: (
        m.kind in ("lossy", "float") and m.seen in ("row", "padding", "support") and m.drivable
    )
)
def test_a_lossy_law_differs_from_the_target(mutant):
    if mutant.name in UNSEEN:
        assert not mutant.total_variation
    else:
        assert mutant.total_variation > 1e-9


@by_name(lambda m: m.seen == "padding" and m.kind == "lossy")
def test_a_fault_of_padding_needs_padding(mutant):
    world = WORLDS["L4"]
    assert oracle_law(load(mutant.spec), world, 2, 2).law == world.target_law(3)


@by_name(lambda m: m.kind == "equivalent")
def test_an_equivalent_has_the_law_of_the_target(mutant):
    for world, g, K in [("L4", 2, 2), ("L357", 1, 2), ("zeros", 1, 1), ("equal", 2, 2)]:
        target = WORLDS[world].target_law(g + 1)
        try:
            law = oracle_law(load(mutant.spec), WORLDS[world], g, K).law
        except NotDrivable:
            assert not mutant.drivable or mutant.name == "token, in logarithms"
            return
        assert law.total_variation(target) <= law.error


PAIR = (WORLDS["L4"], WORLDS["dyadic-1"])


@by_name(lambda m: m.seen == "rows")
def test_a_fault_between_rows_shows_in_pairs_only(mutant):
    subject = load(mutant.spec)
    assert oracle_law(subject, WORLDS["L4"], 1).law == WORLDS["L4"].target_law(2)
    law = oracle_pair_law(subject, PAIR, (1, 1)).law
    target = PAIR[0].target_law(2).product(PAIR[1].target_law(2))
    assert law.total_variation(target) > 0.01


@pytest.mark.parametrize("name", ["token", "exact match", "block"])
def test_rows_of_an_equivalent_are_independent(name):
    law = oracle_pair_law(load(get(name).spec), PAIR, (1, 1)).law
    target = PAIR[0].target_law(2).product(PAIR[1].target_law(2))
    assert law.total_variation(target) <= law.error


def test_no_two_faults_have_one_law():
    """Else the nearest known fault of a rejected verifier would be a toss-up."""
    rows = [m for m in ALL if m.kind == "lossy" and m.seen == "row" and m.total_variation]
    for a, b in itertools.combinations(rows, 2):
        distances = [float(m.total_variation or 0) for m in (a, b)]
        if a.world == b.world and distances == pytest.approx(distances[::-1], abs=1e-9):
            laws = [
                [oracle_law(load(m.spec), WORLDS[world], 2).law for world in ("L4", "L357")]
                for m in (a, b)
            ]
            assert laws[0] != laws[1], f"{a.name} and {b.name}"


def test_the_table_is_json():
    rows = json.loads(json.dumps(table()))
    assert [row["name"] for row in rows] == [*names(ALL), *DECODERS]
    accept_always = next(row for row in rows if row["name"] == "accept always")
    assert accept_always["total_variation"] == 11 / 32
    assert accept_always["spec"] == "mutant:accept_always"
