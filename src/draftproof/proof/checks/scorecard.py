"""The scorecard: what a reviewer would grade, row by row, beside the verdict.

It explains and never decides: a lossless verifier may fail a row (it emits no bonus, say), and a
row that passes has looked at its own question only.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from draftproof.proof.checks.probes import MOST_LINES, P, Probe, Q, Tally, one_hot
from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.subjects.emission import ContractBroken
from draftproof.proof.subjects.raised import is_the_subjects, phrase
from draftproof.proof.subjects.subject import Subject
from draftproof.proof.trial.plan import Plan
from draftproof.proof.verdicts.finding import Finding, Grade, Outcome

__all__ = ["Result", "ScoreRow", "check_scorecard", "scorecard"]

TIMED = (1, 4096)
"""Batches whose time for a row is stated."""


class Result(enum.StrEnum):
    """The grade of one row."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True)
class ScoreRow:
    """One row of the scorecard."""

    name: str
    result: Result
    message: str

    @classmethod
    def from_finding(cls, finding: Finding) -> ScoreRow:
        """Read the row back from the finding that carried it."""
        return cls(finding.case["row"], Result(finding.case["result"]), finding.message)


_Grade = tuple[Result, str]


def check_scorecard(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """Yield the scorecard as findings: each passed, or a note that holds its row in ``case``.

    A last one holds the measured ``row_seconds``, the only thing here that a clock decides.
    """
    for row in _rows(subject, plan):
        outcome = Outcome.PASSED if row.result is Result.PASSED else Outcome.NOTE
        case = {"row": row.name, "result": row.result.value}
        yield Finding("scorecard", outcome, Grade.BEHAVIOUR, row.message, case=case)
    times = {"row_seconds": _row_seconds(subject, plan)}
    yield Finding("scorecard", Outcome.NOTE, Grade.BEHAVIOUR, "the time for a row", case=times)


def scorecard(subject: Subject, plan: Plan) -> list[ScoreRow]:
    """Grade a verifier of the contracts ragged, uniforms or single.

    Every statistical comparison has a false-alarm rate of 1e-9. A subject of another contract has
    no scorecard: the list is empty.
    """
    return list(_rows(subject, plan))


def _row_seconds(subject: Subject, plan: Plan) -> dict[str, float]:
    """Measure the time for a row, by the size of its batch; nothing of a subject that fails."""
    batches = TIMED[:1] if subject.contract is Contract.SINGLE else TIMED
    probe = Probe(subject, plan.seed)
    try:
        return {str(B): probe.seconds_per_row(B) for B in batches}
    except Exception as error:
        if not isinstance(error, ContractBroken) and not is_the_subjects(error):
            raise
        return {}


def _rows(subject: Subject, plan: Plan) -> Iterator[ScoreRow]:
    if not subject.contract.is_sampler:
        return
    probe = Probe(subject, plan.seed)
    for name, grade in _ROWS.items():
        try:
            result, message = grade(probe)
        except ContractBroken as broken:
            result, message = Result.FAILED, broken.reason
        except Exception as error:
            if not is_the_subjects(error):
                raise
            result, message = Result.FAILED, f"raised {phrase(error)}"
        yield ScoreRow(name, result, message)


def _passed(message: str) -> _Grade:
    return Result.PASSED, message


def _failed(message: str) -> _Grade:
    return Result.FAILED, message


def _not_applicable(message: str) -> _Grade:
    return Result.NOT_APPLICABLE, message


def _fit(tallies: list[Tally], passed: str, failed: str) -> _Grade:
    wrong = next((tally for tally in tallies if not tally.fits), None)
    return _passed(passed) if wrong is None else _failed(f"{failed}: {wrong}")


def _is_another_rule(probe: Probe) -> bool:
    """Whether it is lossless at one place by a rule that is neither p/q nor exact match."""
    return not probe.rule and probe.first_token(Q, P).fits


def _accept_rule(probe: Probe) -> _Grade:
    if probe.rule == "exact-match":
        return _passed("accepts with probability p(x), as exact match does: lossless too")
    if _is_another_rule(probe):
        return _not_applicable("accepts neither by p/q nor by p, yet its first token follows p")
    for ratio, tally in zip(P / Q, probe.acceptance(np.minimum(1, P / Q)), strict=True):
        if not tally.fits:
            seen = tally.counts[0] / probe.size
            return _failed(
                f"p/q = {ratio:g}: accepts {seen:.3f} of {probe.size:,} drafts; "
                f"wanted {tally.law[0]:g}"
            )
    return _passed(
        f"accepts with probability min(1, p/q): {probe.size:,} rows for each of 4 ratios"
    )


def _residual(probe: Probe) -> _Grade:
    if _is_another_rule(probe):
        return _not_applicable("its accept rule is another one, and the first token follows p")
    exact_match = probe.rule == "exact-match"
    tallies = probe.recovered(exact_match)
    if not tallies:
        return _failed("nothing was ever rejected")
    law = "p without the draft, as exact match needs" if exact_match else "max(0, p - q)"
    return _fit(tallies, f"after a rejection draws from {law}", "after a rejection emits")


def _bonus_token(probe: Probe) -> _Grade:
    if not probe.has_bonus:
        return _not_applicable("emits none")
    return _fit(
        [probe.bonus(1), probe.bonus(3)],
        "drawn from the target's row after the last draft, in padded rows too",
        "after its last draft emits",
    )


def _first_rejection(probe: Probe) -> _Grade:
    p = one_hot([0, 3, 2, 1])
    out, n_out = probe.ask("rejection", [0, 1, 2], one_hot([0, 1, 2]), p, rows=64)
    wrong = np.flatnonzero((n_out != 2) | (out[:, :2] != [0, 3]).any(axis=1))
    if len(wrong):
        emitted = out[wrong[0], : n_out[wrong[0]]].tolist()
        return _failed(f"the second of three drafts is impossible: emits {emitted}; wanted [0, 3]")
    return _passed("stops at the first rejected draft and recovers there")


def _ragged_counts(probe: Probe) -> _Grade:
    K, B = 3, 64
    lengths = np.arange(B) % (K + 1)
    valid = np.arange(K) < lengths[:, None]
    for padding in ("plausible", "NaN and -1"):
        draft = np.tile([0, 1, 2], (B, 1))
        q, p = np.tile(one_hot([0, 1, 2]), (B, 1, 1)), np.tile(one_hot([0, 1, 2, 0]), (B, 1, 1))
        p[np.arange(B), lengths] = one_hot([3])  # the bonus, whatever the length
        if padding != "plausible":
            draft[~valid], q[~valid] = -1, np.nan
            p[np.arange(K + 1) > lengths[:, None]] = np.nan
        out, n_out = probe.subject.verify(draft, q, p, lengths, probe.rng("ragged"))
        for b, g in enumerate(lengths.tolist()):
            wanted = [*[0, 1, 2][:g], *[3] * (probe.has_bonus or g == 0)]
            emitted = out[b, : n_out[b]].tolist()
            if emitted != wanted:
                return _failed(
                    f"a row of {g} drafts padded to {K} with {padding} emits {emitted}; "
                    f"wanted {wanted}"
                )
    return _passed(f"rows of 0 to {K} drafts in one batch emit what is theirs, and -1 after it")


def _equal_laws(probe: Probe) -> _Grade:
    if probe.rule == "exact-match":
        return _not_applicable("exact match rejects drafts even where p = q")
    if _is_another_rule(probe):
        return _not_applicable("its accept rule is another one, and the first token follows p")
    B, K, V = 2_000, 4, 8
    rng = probe.rng("equal")
    p = rng.dirichlet(np.ones(V), (B, K + 1))
    uniforms = rng.random((B, K, 1))
    draft = (p[:, :K].cumsum(axis=2) <= uniforms).sum(axis=2).clip(max=V - 1)
    out, n_out = probe.subject.verify(draft, p[:, :K], p, np.full(B, K), probe.rng("p = q"))
    short = int(((n_out < K + probe.has_bonus) | (out[:, :K] != draft).any(axis=1)).sum())
    if short:
        return _failed(f"of {B:,} rows {short:,} reject a draft though p = q")
    return _passed(f"accepts every draft in {B:,} rows with p = q")


def _no_draft(probe: Probe) -> _Grade:
    return _fit(
        [probe.no_draft(0), probe.no_draft(2)],
        "a row without drafts draws from the target, at K = 0 and at K = 2",
        "a row without drafts emits",
    )


def _empty_batch(probe: Probe) -> _Grade:
    if probe.subject.contract is Contract.SINGLE:
        return _not_applicable("the contract has no batch")
    for K in (2, 0):
        no_rows = np.empty((0, K), np.int64), np.empty((0, K, 4)), np.empty((0, K + 1, 4))
        probe.subject.verify(*no_rows, np.empty(0, np.int64), probe.rng("empty"))
    return _passed("no rows in, no rows out, of the right shapes")


def _vectorised(probe: Probe) -> _Grade:
    if probe.subject.contract is Contract.SINGLE:
        return _not_applicable("the contract has no batch")
    lines = probe.lines_per_row
    if lines > MOST_LINES:
        return _failed(f"runs {lines:.0f} lines of Python for each further row: a loop, it seems")
    return _passed("runs no line of Python for each further row of a batch")


def _counting(probe: Probe) -> _Grade:
    p = one_hot([3, 1, 2, 0])
    _, n_out = probe.ask("counting", [0, 1, 2], one_hot([0, 1, 2]), p, rows=64)
    if (n_out > 1).any():
        return _failed(f"the first of three drafts is impossible, yet {n_out.max()} tokens come")
    return _passed("not made: what follows a rejection does not count")


def _lacking_bonus(probe: Probe) -> _Grade:
    if probe.has_bonus:
        return _passed("not made: a token follows drafts that were all accepted")
    return _failed("no token follows drafts that were all accepted: lossless, but a token is lost")


def _unprocessed(probe: Probe) -> _Grade:
    tallies = [probe.first_token(Q, P)]
    if probe.subject.sampled_law is None:
        truncated = np.array([3, 1, 0, 0]) / 4, np.array([0, 1, 1, 0]) / 2
        tallies.append(probe.first_token(*truncated))
    return _fit(
        tallies,
        "not made by the verifier: with truncated laws too the first token follows p. "
        "Whether its caller passes the laws that were sampled from, it cannot show",
        "the first token does not follow the p that was passed",
    )


def _joint_law(probe: Probe) -> _Grade:
    tally = probe.joint()
    n = f"{int(tally.counts.sum()):,} texts of three tokens"
    if tally.fits:
        return _passed(
            f"not seen in the joint law of {n}; see the verdict for how small is excluded"
        )
    seen = tally.counts / tally.counts.sum()
    distance = np.abs(seen - tally.law).sum() / 2
    return _failed(f"the joint law of {n} is off by a total variation of {distance:.3f}")


_ROWS: dict[str, Callable[[Probe], _Grade]] = {
    "accept rule": _accept_rule,
    "residual": _residual,
    "bonus token": _bonus_token,
    "first rejection": _first_rejection,
    "ragged counts": _ragged_counts,
    "p = q": _equal_laws,
    "no draft": _no_draft,
    "empty batch": _empty_batch,
    "vectorised": _vectorised,
    "mistake: counting drafts after the first rejection": _counting,
    "mistake: no bonus": _lacking_bonus,
    "mistake: unprocessed probabilities against processed drafts": _unprocessed,
    "mistake: errors that only a joint law shows": _joint_law,
}
