from fractions import Fraction

import pytest

import draftproof
from draftproof.proof.figure import Figure
from draftproof.proof.mutants import get
from draftproof.proof.reproduce import accepted_by_siblings, reproduce

SMALL = {"sequences": 30_000, "rows": 20_000}


def test_every_value_is_met():
    figures = list(reproduce(**SMALL))
    assert [figure for figure in figures if not figure.met] == []
    names = [figure.name for figure in figures]
    assert len(set(names)) == len(names) == 72
    assert all(figure.source for figure in figures)


def test_the_derived_values_are_those_of_the_formulas():
    expected = {figure.name.partition(",")[0]: figure.expected for figure in reproduce(**SMALL)}
    assert expected["alpha: first drafts accepted"] == pytest.approx(1 - 0.5 * (0.25 + 0.05 + 0.3))
    assert expected["tokens that a call emits"] == pytest.approx((1 - 0.7**4) / 0.3, abs=5e-4)
    assert expected["the same without the bonus"] == pytest.approx((1 - 0.7**3) / 0.3, abs=5e-4)


def test_a_wrong_rule_for_siblings_misses(monkeypatch):
    right = draftproof.verify_tree

    def wrong(tree, p, rng, rule):
        return right(tree, p, rng, rule="nss")

    monkeypatch.setattr(draftproof, "verify_tree", wrong)
    missed = {f.name.split()[2].rstrip(",") for f in accepted_by_siblings(500, 0) if not f.met}
    assert missed == {"naive-tree", "rrs", "rrsw", "k-seq", "hu-greedy"}


@pytest.mark.parametrize("name", ["resample p on a rejection", "one uniform for all"])
def test_a_wrong_verifier_misses(monkeypatch, name):
    class Result:
        def __init__(self, token_ids, num_emitted):
            self.token_ids, self.num_emitted = token_ids, num_emitted
            self.num_accepted = num_emitted - 1

        def __iter__(self):
            return iter((self.token_ids, self.num_emitted))

    def wrong(ids, q, p, num_draft=None, rng=None):
        lengths = [ids.shape[1]] * len(ids) if num_draft is None else num_draft
        import numpy as np

        return Result(*get(name).build()(ids, q, np.array(p), np.asarray(lengths, dtype=int), rng))

    monkeypatch.setattr(draftproof, "verify", wrong)
    missed = [figure.name for figure in reproduce(**SMALL) if not figure.met]
    assert "chi-square of verify, 30,000 sequences" in missed


@pytest.mark.parametrize(
    ("figure", "met"),
    [
        (Figure("x", Fraction(1, 3), Fraction(1, 3), "s"), True),
        (Figure("x", Fraction(1, 3), Fraction(333_333, 1_000_000), "s"), False),
        (Figure("x", 0.5, 0.51, "s", tolerance=0.02), True),
        (Figure("x", 0.5, 0.53, "s", tolerance=0.02), False),
        (Figure("x", 103.4, 103.4, "s", relation="<"), False),
        (Figure("x", 103.4, 60.0, "s", relation="<"), True),
        (Figure("x", 103.4, 103.4, "s", relation=">="), True),
        (Figure("x", 103.4, 60.0, "s", relation=">="), False),
        (Figure("x", 0.5, float("nan"), "s", tolerance=0.02), False),
    ],
)
def test_a_figure_is_met_within_its_tolerance(figure, met):
    assert figure.met is met
    assert figure.to_dict()["met"] is met


def test_a_fraction_is_written_as_one():
    data = Figure("x", Fraction(21, 16), 1.3125, "s").to_dict()
    assert (data["expected"], data["measured"]) == ("21/16", 1.3125)
