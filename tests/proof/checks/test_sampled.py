import time
from dataclasses import replace

import numpy as np
import pytest

import draftproof
from draftproof.proof.checks import sampled
from draftproof.proof.mutants.skeleton import Verifier, inverse_cdf
from draftproof.proof.sampled.budget import share
from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.subjects.subject import Subject
from draftproof.proof.trial.plan import make_plan
from draftproof.proof.verdicts.finding import Finding, Grade, Outcome

PLAN = make_plan("quick", 0)
CHECKS = {
    "joint": sampled.check_joint,
    "ragged": sampled.check_ragged,
    "rounds": sampled.check_rounds,
    "rows": sampled.check_rows,
    "few-rows": sampled.check_few_rows,
    "seeds": sampled.check_seeds,
}


def subject(call, **more):
    return Subject("it", Contract.RAGGED, call, **more)


def outcomes(check, call, plan=PLAN):
    return {finding.outcome for finding in CHECKS[check](subject(call), plan)}


class FromP(Verifier):
    def recovery_law(self, call, rows, at):
        return call.p[rows, at]


class StaleBonus(Verifier):
    """Draws the token behind the last draft from that draft's row."""

    def bonus_law(self, call, rows, at):
        return call.p[rows, np.maximum(at - 1, 0)]


class OneNoise(Verifier):
    """Each row's law is right."""

    def accept_uniforms(self, call):
        return np.broadcast_to(call.rng.random((1, call.K)), (call.B, call.K))

    def final_uniform(self, call, u, tau):
        return np.broadcast_to(call.rng.random(1), call.B)


class ReadsPads(Verifier):
    """Tests as if every row were as long as the batch is wide."""

    def __call__(self, draft, q, p, num_draft, rng):
        p, q, draft = np.nan_to_num(p), np.nan_to_num(q), np.maximum(draft, 0)
        full = np.full_like(num_draft, draft.shape[1])
        out, n = super().__call__(draft, q, p, full, rng)
        n = np.minimum(n, num_draft + 1)
        return np.where(np.arange(out.shape[1]) < n[:, None], out, -1), n


class KeepsNoise(Verifier):
    """Uses the first call's noise in every call of that shape."""

    def __init__(self):
        self.kept = {}

    def accept_uniforms(self, call):
        return self.kept.setdefault((call.B, call.K), call.rng.random((call.B, call.K)))

    def final_uniform(self, call, u, tau):
        return self.kept.setdefault(call.B, call.rng.random(call.B))


class FixedSeed(Verifier):
    def __call__(self, draft, q, p, num_draft, rng):
        return super().__call__(draft, q, p, num_draft, np.random.default_rng(0))


class NeighboursQ(Verifier):
    """Takes each row's residual from the draft law of the row below it."""

    def residual(self, call, rows, at):
        other = np.nan_to_num(call.q[(rows + 1) % call.B, at])
        return np.maximum(call.p[rows, at] - other, 0)


class FirstCoinUnset(Verifier):
    """Draws the last token of a batch's first row with 0: hidden among a thousand rows."""

    def final_uniform(self, call, u, tau):
        uniforms = super().final_uniform(call, u, tau)
        uniforms[:1] = 0
        return uniforms


class Stratified(Verifier):
    """Rows share one shuffled grid of uniforms: counts vary too little from call to call."""

    def accept_uniforms(self, call):
        return np.stack([self.final_uniform(call, None, None) for _ in range(call.K)], axis=1)

    def final_uniform(self, call, u, tau):
        return (call.rng.permutation(call.B) + call.rng.random(call.B)) / call.B


class SlipsOnce(Verifier):
    """Emits a token of probability zero, some once in ten thousand rows."""

    def draw(self, weights, u):
        tokens = inverse_cdf(weights, u)
        slips = (u > 0.999) & (weights[:, 1] == 0)
        return np.where(slips, 1, tokens)


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("call", [Verifier(), draftproof.verify])
def test_a_right_verifier_passes(check, call):
    findings = list(CHECKS[check](subject(call), PLAN))
    assert {finding.outcome for finding in findings} == {Outcome.PASSED}
    assert {finding.check for finding in findings} == {check}
    assert {finding.grade for finding in findings} == {Grade.SAMPLED}


def test_a_finding_has_all_that_a_verdict_needs():
    finding, _ = CHECKS["joint"](subject(FromP()), PLAN)
    assert finding.outcome is Outcome.LOSSY
    assert (finding.world, finding.num_draft, finding.max_draft) == ("L4", 2, 2)
    assert finding.total_variation is not None
    assert finding.error is not None
    assert finding.total_variation > 0.1
    assert finding.error > finding.total_variation - 0.03
    assert len(finding.residuals) == 64
    assert sum(finding.residuals) == pytest.approx(0)
    assert sum(map(abs, finding.residuals)) / 2 == pytest.approx(finding.total_variation)
    differences = [abs(cell.observed - cell.expected) for cell in finding.cells]
    assert differences == sorted(differences, reverse=True)
    assert differences[0] == pytest.approx(max(map(abs, finding.residuals)))
    assert "false alarm at most" in finding.message
    assert Finding.from_dict(finding.to_dict()) == finding


def test_a_plainly_wrong_rule_is_stopped_early():
    wrong, _ = CHECKS["joint"](subject(FromP()), PLAN)
    right, _ = CHECKS["joint"](subject(Verifier()), PLAN)
    assert wrong.size < right.size / 10


@pytest.mark.parametrize(
    ("check", "call"),
    [
        ("joint", FromP()),
        ("joint", StaleBonus()),
        ("ragged", FromP()),
        ("ragged", ReadsPads()),
        ("ragged", NeighboursQ()),
        ("rounds", KeepsNoise()),
        ("rows", OneNoise()),
        ("few-rows", NeighboursQ()),
        ("few-rows", FirstCoinUnset()),
        ("seeds", FixedSeed()),
    ],
)
def test_a_wrong_one_is_caught(check, call):
    assert Outcome.LOSSY in outcomes(check, call)


def test_a_large_batch_hides_its_first_row():
    assert outcomes("joint", FirstCoinUnset()) == {Outcome.PASSED}


def test_too_much_dispersion_is_seen():
    *_, dispersion = CHECKS["rows"](subject(OneNoise()), PLAN)
    assert dispersion.outcome is Outcome.LOSSY
    assert "too much" in dispersion.message


def test_too_little_dispersion_is_seen():
    *_, dispersion = CHECKS["rows"](subject(Stratified()), make_plan("standard", 0))
    assert dispersion.outcome is Outcome.LOSSY
    assert "too little" in dispersion.message


def test_an_impossible_text_is_enough():
    plan = replace(PLAN, worlds=("zeros",))
    (finding,) = CHECKS["joint"](subject(SlipsOnce()), plan)
    assert finding.outcome is Outcome.LOSSY
    assert "that the target cannot write" in finding.message


def test_drafts_come_from_the_subjects_own_drafter():
    def top(row):
        return [x == max(row) for x in row]

    undeclared = subject(Verifier(), sampled_law=lambda row: [int(x) for x in top(row)])
    assert Outcome.LOSSY in {f.outcome for f in CHECKS["joint"](undeclared, PLAN)}


@pytest.mark.parametrize("check", CHECKS)
def test_a_check_without_time_is_inconclusive(check):
    plan = replace(PLAN, timeout=0.0)
    findings = list(CHECKS[check](subject(Verifier()), plan))
    assert Outcome.INCONCLUSIVE in {finding.outcome for finding in findings}
    assert "no time" in findings[0].message


def test_a_slow_subject_has_no_long_calls_and_its_true_power_said():
    rows, clock = [], time.monotonic

    class Slow(Verifier):
        def __call__(self, draft, q, p, num_draft, rng):
            rows.append(len(draft))
            end = clock() + 0.002 * len(draft)
            while clock() < end:
                time.sleep(0.01)
            return super().__call__(draft, q, p, num_draft, rng)

    plan = replace(PLAN, timeout=2.0)
    first, *_ = CHECKS["joint"](subject(Slow()), plan)
    assert first.outcome is Outcome.INCONCLUSIVE
    assert 0.002 * max(rows) < 0.5 * plan.timeout  # where a call would count as a hang
    assert plan.visible < first.case["visible"] <= 1
    assert f"above {first.case['visible']:.3f} would have been seen" in first.message
    assert f"no time for the wanted {plan.visible:g}, which takes " in first.message
    assert first.message.endswith(f" times as many: raise --timeout, {plan.timeout:g} s now")


@pytest.mark.parametrize("check", CHECKS)
def test_the_sizes_of_a_check_add_up_to_its_share(check, monkeypatch):
    spent = []
    compare, dispersion = sampled.Trial._judge, sampled._dispersion

    def judge(trial, growing, table, size, *rest):
        spent.append(size)
        return compare(trial, growing, table, size, *rest)

    def disperse(name, sampler, size):
        spent.append(size)
        return dispersion(name, sampler, size)

    monkeypatch.setattr(sampled.Trial, "_judge", judge)
    monkeypatch.setattr(sampled, "_dispersion", disperse)
    assert outcomes(check, draftproof.verify) == {Outcome.PASSED}
    assert sum(spent) == pytest.approx(share(PLAN.false_alarm, check))


@pytest.mark.slow
def test_two_hundred_seeds_raise_no_alarm():
    for seed in range(200):
        for check in CHECKS:
            plan = make_plan("quick", seed, timeout=3_600.0)  # how busy the machine is is no matter
            assert outcomes(check, draftproof.verify, plan) == {Outcome.PASSED}
