"""The whole judge on subjects of known worth, in every contract."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from draftproof.proof.judge import check
from draftproof.proof.mutants import get
from draftproof.proof.verdicts.verdict import TIMES, Conclusion, Verdict


def judge(subject, **options):
    return check(subject, profile="quick", **options)


@cache
def judge_own(backend):
    return judge(f"own:{backend}")


def single(draft, q, p, rng):
    """Token-level speculative sampling of one row, with a cumulative draw."""
    for i, x in enumerate(draft):
        if rng.random() * q[i][x] >= p[i][x]:
            rest = np.maximum(p[i] - q[i], 0)
            return [*draft[:i], int((rest.cumsum() <= rng.random() * rest.sum()).sum())]
    last = p[len(draft)]
    return [*draft, int((last.cumsum() <= rng.random() * last.sum()).sum())]


def single_that_resamples_p(draft, q, p, rng):
    for i, x in enumerate(draft):
        if rng.random() * q[i][x] >= p[i][x]:
            return [*draft[:i], int((p[i].cumsum() <= rng.random() * p[i].sum()).sum())]
    last = p[len(draft)]
    return [*draft, int((last.cumsum() <= rng.random() * last.sum()).sum())]


def with_uniforms(draft, q, p, num_draft, accept, final):
    from draftproof import verify

    return verify(draft, q, p, num_draft, uniforms=(accept, final))


def greedy(draft, p, num_draft):
    from draftproof import verify_greedy

    return verify_greedy(draft, p, num_draft)


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_our_own_verifier_is_not_rejected(backend):
    verdict = judge_own(backend)
    assert verdict.outcome is Conclusion.NOT_REJECTED
    assert verdict.exit_code == 0
    assert verdict.power.survivors == ()
    assert all(row.result == "passed" for row in verdict.scorecard)
    assert sum(verdict.false_alarm_budget.values()) == pytest.approx(1e-6)
    assert "V up to 4, drafts of up to 2 tokens padded to 2" in verdict.not_covered[0]
    assert Verdict.from_dict(verdict.to_dict()) == verdict


def test_the_oracle_proves_what_it_can_follow():
    verdict = judge_own("numpy")
    assert verdict.total_variation_bound < 1e-12
    assert verdict.efficiency["L4, g = 2"] == 21 / 16
    assert judge_own("native").efficiency == {}


@pytest.mark.parametrize(
    ("subject", "contract"),
    [(single, "single"), (with_uniforms, "uniforms"), (greedy, "greedy")],
)
def test_a_right_subject_of_every_contract_is_not_rejected(subject, contract):
    verdict = judge(subject, contract=contract)
    assert (verdict.outcome, verdict.contract) == (Conclusion.NOT_REJECTED, contract)


def test_our_practice_function_solves_its_problem():
    verdict = judge("draftproof.practice:verify_speculative_tokens")
    assert (verdict.outcome, verdict.contract) == (Conclusion.NOT_REJECTED, "practice")
    assert "not lossless" in verdict.not_covered[0]


@pytest.mark.parametrize(
    "name",
    [
        "resample p on a rejection",
        "lenience 1.04",
        "bonus from row K",
        "rows in pairs share noise",
        "noise kept between calls",
        "uniforms rounded to float32",
        "coin is a token's noise",
    ],
)
def test_a_wrong_verifier_is_rejected_and_recognised(name):
    verdict = judge(get(name).spec)
    assert verdict.outcome is Conclusion.REJECTED
    assert verdict.exit_code == 1
    assert verdict.decisive
    assert verdict.reproducer is not None
    if get(name).drivable and get(name).kind == "lossy":
        assert verdict.nearest_fault is not None
        assert verdict.nearest_fault.name == name


def test_a_rejection_names_the_fault_of_a_subject_it_has_never_seen():
    verdict = judge(single_that_resamples_p, contract="single", fail_fast=True)
    assert verdict.outcome is Conclusion.REJECTED
    assert verdict.nearest_fault.name == "resample p on a rejection"


def test_a_broken_contract_is_no_wrong_law():
    verdict = judge("mutant:id_v")
    assert (verdict.outcome, verdict.exit_code) == (Conclusion.BROKEN, 3)


def test_one_seed_gives_one_verdict_and_progress_is_reported():
    seen = []
    first, second = (
        judge("mutant:token", seed=5, on_progress=on_progress).to_dict()
        for on_progress in (None, lambda *step: seen.append(step))
    )
    assert seen
    assert all(0 < done <= total and what for done, total, what in seen)
    for verdict in (first, second):
        assert verdict["row_seconds"].keys() == {"1", "4096"}
        for name in TIMES:
            del verdict[name]
    assert first == second


def test_what_it_printed_stands_in_the_verdict():
    hostile = Path(__file__).with_name("subjects") / "hostile.py"
    verdict = judge(f"{hostile}:exits_at_once", fail_fast=True)
    assert verdict.outcome is Conclusion.BROKEN
    assert verdict.captured_output == "good bye\n"


@pytest.mark.parametrize(
    ("subject", "options"),
    [("nowhere:verify", {}), ("os:nothing", {}), (single, {"contract": "raged"})],
)
def test_what_cannot_be_understood_is_refused(subject, options):
    with pytest.raises(ValueError, match=r"subject|contract"):
        judge(subject, **options)
