# ruff: noqa: D102
"""Wrong accept tests."""

from __future__ import annotations

import numpy as np

from draftproof.proof.mutants.matching import ExactMatch
from draftproof.proof.mutants.registry import equivalent, mutant
from draftproof.proof.mutants.skeleton import Array, Call, Verifier, inverse_cdf

EPSILON = 1e-6


@mutant("accept always")
class AcceptAlways(Verifier):
    """Accepts every draft."""

    def test(self, p: Array, q: Array, u: Array) -> Array:
        return np.ones(p.shape, dtype=np.bool_)


@mutant("accept if p >= q")
class AcceptIfLikelier(Verifier):
    """Accepts a draft iff p >= q, without a uniform."""

    def test(self, p: Array, q: Array, u: Array) -> Array:
        return p >= q


@mutant("inverted ratio")
class InvertedRatio(Verifier):
    """Accepts with probability min(1, q / p)."""

    def test(self, p: Array, q: Array, u: Array) -> Array:
        return u * p < q


@mutant("accept with probability p")
class AcceptWithP(Verifier):
    """Accepts with probability p, as for deterministic drafts, yet recovers from (p - q)+."""

    def test(self, p: Array, q: Array, u: Array) -> Array:
        return u < p


class Lenient(Verifier):
    """Accepts with probability min(1, leniency * p / q)."""

    leniency = 1.0

    def test(self, p: Array, q: Array, u: Array) -> Array:
        return u * q < self.leniency * p


@mutant("lenience 1.1", public="Leviathan et al., lenience")
class LenientByTenPercent(Lenient):
    """Accepts with probability min(1, 1.1 p / q)."""

    leniency = 1.1


@mutant("lenience 1.04", public="Leviathan et al., lenience")
class LenientByFourPercent(Lenient):
    """Accepts with probability min(1, 1.04 p / q): a 4 x 4 x 8 lattice on L4 is blind to it."""

    leniency = 1.04


@mutant("threshold on p")
class ThresholdOnP(Verifier):
    """Accepts a draft iff p >= 0.4."""

    def test(self, p: Array, q: Array, u: Array) -> Array:
        return p >= 0.4


@mutant("typical acceptance", public="Medusa, arXiv 2401.10774")
class TypicalAcceptance(Verifier):
    """Accepts a draft iff p > min(0.3, exp(-entropy of p))."""

    def accept(self, call: Call, u: Array) -> Array:
        valid = call.valid
        p = call.p[:, :-1][valid]
        entropy = -np.where(p > 0, p * np.log(np.where(p > 0, p, 1)), 0).sum(axis=1)
        accepts = np.zeros(valid.shape, dtype=np.bool_)
        accepts[valid] = self.tested(call)[0][valid] > np.minimum(0.3, np.exp(-entropy))
        return accepts


@mutant("top-k membership")
class TopKMembership(Verifier):
    """Accepts a draft iff it is among the two likeliest tokens of p."""

    def accept(self, call: Call, u: Array) -> Array:
        valid = call.valid
        p = call.p[:, :-1][valid]
        likelier = (p > self.tested(call)[0][valid][:, None]).sum(axis=1)
        accepts = np.zeros(valid.shape, dtype=np.bool_)
        accepts[valid] = likelier < 2
        return accepts


@mutant("test on the next row")
class TestOnNextRow(Verifier):
    """Tests each draft against p of the row behind it."""

    def tested(self, call: Call) -> tuple[Array, Array]:
        _, q = call.drafted()
        valid = call.valid
        rows, positions = np.nonzero(valid)
        p = np.zeros(valid.shape)
        p[valid] = call.p[rows, positions + 1, call.draft[valid]]
        return p, q


@mutant("target sample or ratio", public="rtp-llm #521")
class TargetSampleOrRatio(Verifier):
    """Accepts a draft that equals a sample of p, or else passes the ratio test."""

    def accept(self, call: Call, u: Array) -> Array:
        uniforms = call.rng.random((call.B, call.K))
        accepts = super().accept(call, u)
        failed = call.valid & ~accepts
        samples = inverse_cdf(call.p[:, :-1][failed], uniforms[failed])
        accepts[failed] = samples == call.draft[failed]
        return accepts


@mutant("exact match with redraw")
class ExactMatchWithRedraw(ExactMatch):
    """Keeps drafts while they equal samples of p, then draws anew, not the sample that differs."""

    def draws_last(self, call: Call, tau: Array) -> Array:
        return np.ones(call.B, dtype=np.bool_)


@mutant("epsilon in the ratio")
class EpsilonInRatio(Verifier):
    """Accepts with probability p / (q + 1e-6)."""

    def test(self, p: Array, q: Array, u: Array) -> Array:
        return u < p / (q + EPSILON)


@equivalent(
    "0/0 accepted",
    public="TensorRT-LLM, two-model path",
    note="accepts a draft of p = q = 0, which no honest drafter sends",
)
class ZeroOverZeroAccepted(Verifier):
    """Rejects iff u >= p / q, which no draft with p = q = 0 fulfils: 0/0 is not a number."""

    def test(self, p: Array, q: Array, u: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return ~(u >= p / q)
