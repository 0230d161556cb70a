"""What no law shows: seeds, empty batches, corners.

Each check asks a question that a right verifier answers for certain, or but for a probability that
`draftproof.proof.sampled.budget` allots. Subjects are called through `Subject.verify`, which raises
ContractBroken for a malformed output or an input that was written to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.proof.checks.sampled import Trial, coarse, deadline_of, experiment_of
from draftproof.proof.sampled.budget import share
from draftproof.proof.sampled.sampling import Experiment, Sampler, streams
from draftproof.proof.subjects.fresh import first_call
from draftproof.proof.subjects.subject import Subject
from draftproof.proof.trial.examination import Check
from draftproof.proof.trial.plan import Plan
from draftproof.proof.verdicts.finding import Cell, Finding, Grade, Outcome
from draftproof.proof.worlds.catalogue import WORLDS

__all__ = [
    "BEHAVIOUR",
    "check_different_seeds",
    "check_empty_batch",
    "check_equal_laws",
    "check_no_drafts",
    "check_one_hot",
]

Array = npt.NDArray[Any]
Batch = tuple[Array, Array, Array, Array]
"""Draft, q, p, num_draft."""

ROWS = 96
LONGEST = 3
SWEEP = tuple(zip(range(18), (2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 65, 127, 129, 257, 1025),
                  strict=True))  # fmt: skip
"""(K, V): every length up to 17, and vocabularies around the sizes of blocks."""


def check_different_seeds(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """Generators of different seeds give different outputs, equal ones equal outputs.

    A third of the rows has no draft: there every lossless rule emits a sample of p, so that two
    independent calls agree on all of them with probability prod sum p^2, far below the share.
    A subject with entropy of its own is noted, unless a fresh start shows that its seed is fixed.
    """
    check, batch = "different-seeds", _mixed_batch(plan)
    _, _, p, num_draft = batch
    agree = float(np.prod((p[num_draft == 0, 0] ** 2).sum(axis=1)))
    assert agree < share(plan.false_alarm, check)
    seed = plan.seed
    first, other, again = (_call(subject, batch, s) for s in (seed, seed + 1, seed))
    if _same(first, other):
        yield _finding(
            check,
            Outcome.LOSSY,
            f"equal output for the seeds {seed} and {seed + 1} in all of {ROWS} rows; "
            f"by chance: {agree:.1g}",
            case=_case(batch, [0], seed),
        )
        return
    if _same(first, again):
        yield _finding(
            check, Outcome.PASSED, "other seeds, other output; equal seeds, equal output"
        )
        return
    try:
        fresh = [first_call(subject, batch, s, plan.timeout / 4) for s in (seed, seed + 1)]
    except TimeoutError as overdue:
        told = f"equal seeds give different output: entropy, or a seed of its own? {overdue}"
        yield _finding(check, Outcome.INCONCLUSIVE, told)
        return
    if fresh[0] is not None and fresh[1] is not None and _same(fresh[0], fresh[1]):
        yield _finding(
            check,
            Outcome.LOSSY,
            f"started anew, it gives equal output for the seeds {seed} and {seed + 1}: "
            f"it has a generator of its own, of a fixed seed; by chance: {agree:.1g}",
            case=_case(batch, [0], seed),
        )
        return
    yield _finding(
        check,
        Outcome.NOTE,
        "own entropy: equal seeds give different output, so no run can be repeated",
    )


def check_empty_batch(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """No rows: shapes (0, K+1) and (0,), and no crash."""
    for K in (LONGEST, 0):
        empty = (np.empty((0, K), np.int64), np.empty((0, K, 4)), np.empty((0, K + 1, 4)))
        subject.verify(*empty, np.empty(0, np.int64), np.random.default_rng(plan.seed))
    yield _finding(
        "empty-batch", Outcome.PASSED, "no rows: shapes (0, K+1) and (0,), at K = 3 and 0"
    )


def check_no_drafts(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """Without drafts a row is one sample of the target, whether K is 0 or all is padding."""
    size, visible = share(plan.false_alarm, "no-drafts") / 2, coarse(plan, 4)
    for extra, how in ((0, ", K = 0"), (LONGEST, ", no drafts but padding")):
        experiment = replace(experiment_of(subject, "L4"), length=2, longest=0, extra=extra)
        sampler = Sampler(subject, experiment, plan.seed, f"no-drafts {extra}")
        yield from Trial("no-drafts", plan, visible, size, deadline_of(plan), how).run(sampler)


def check_equal_laws(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """P = q: the law stays right; a rule that accepts every draft is as efficient as it can be."""
    sampler = Sampler(subject, experiment_of(subject, "equal"), plan.seed, "equal-laws")
    size = share(plan.false_alarm, "equal-laws")
    trial = Trial("equal-laws", plan, coarse(plan, 4), size, deadline_of(plan), " where p = q")
    yield from trial.run(sampler)
    tally = sampler.emitted
    drafted = int((tally.sum(axis=1) * np.arange(LONGEST + 1)).sum())
    emitted = int((tally.sum(axis=0) * np.arange(LONGEST + 2)).sum())
    accepted = emitted - int(tally.sum())
    if accepted < drafted:
        yield _finding(
            "equal-laws",
            Outcome.NOTE,
            f"efficiency: where p = q it keeps {accepted:,} of {drafted:,} drafts; "
            "token-level speculative sampling keeps all",
            world="equal",
        )


def check_one_hot(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """A target certain of one token: the text is known, whatever the noise.

    Any emitted token that is not the target's is impossible, so this is exact. It sweeps K and V:
    some faults show only around the size of a block.
    """
    rng, subject_rng = streams(plan.seed, "one-hot")
    kept = possible = rows = 0
    for K, V in SWEEP:
        batch, text = _certain_batch(rng, K, V)
        draft, _, _, num_draft = batch
        token_ids, num_emitted = subject.verify(*batch, subject_rng)
        emitted = np.arange(K + 1) < num_emitted[:, None]
        wrong = np.argwhere(emitted & (token_ids != text))
        if len(wrong):
            row, position = map(int, wrong[0])
            known = tuple(text[row, : position + 1].tolist())
            made = tuple(token_ids[row, : position + 1].tolist())
            yield _finding(
                "one-hot",
                Outcome.LOSSY,
                f"the target is certain of {known}, and {made} was emitted, at V = {V}",
                num_draft=int(num_draft[row]),
                max_draft=K,
                cells=(Cell(known, 1.0, 0.0), Cell(made, 0.0, 1.0)),
                size=1,
                case=_case(batch, [row], plan.seed) if V <= 17 else {},
            )
            return
        matches = (draft == text[:, :K]) & (np.arange(K) < num_draft[:, None])
        possible += int(np.logical_and.accumulate(matches, axis=1).sum()) + len(text)
        kept += int(num_emitted.sum())
        rows += len(text)
    yield _finding(
        "one-hot",
        Outcome.PASSED,
        f"{rows:,} rows with a target certain of one token, K = 0..17, V = 2..1025: "
        "every token is the argmax",
        size=rows,
    )
    if kept < possible:
        yield _finding(
            "one-hot",
            Outcome.NOTE,
            f"efficiency: {kept:,} tokens emitted where {possible:,} were certain",
        )


def _call(subject: Subject, batch: Batch, seed: int) -> tuple[Array, Array]:
    return subject.verify(*batch, np.random.default_rng(seed))


def _same(a: tuple[Array, Array], b: tuple[Array, Array]) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def _mixed_batch(plan: Plan) -> Batch:
    """Rows of L4 and L357 with 0, 2 or 3 drafts."""
    rng, _ = streams(plan.seed, "behaviour")
    num_draft = np.array([0, 2, 3])[np.arange(ROWS) % 3]
    experiment = Experiment((WORLDS["L4"], WORLDS["L357"]), longest=LONGEST)
    return (*experiment.batch(num_draft, rng), num_draft)


def _certain_batch(rng: np.random.Generator, K: int, V: int, rows: int = 32) -> tuple[Batch, Array]:
    """Ragged rows whose target is one-hot, with drafts that match it two times in three."""
    text = rng.integers(0, V, (rows, K + 1))
    text[0], text[1] = 0, V - 1
    p = np.zeros((rows, K + 1, V))
    np.put_along_axis(p, text[:, :, None], 1.0, axis=2)
    q = p[:, :K] / 2 + 0.5 / V
    others = rng.integers(0, V, (rows, K))
    draft = np.where(rng.random((rows, K)) < 0.5, text[:, :K], others)
    num_draft = rng.integers(0, K + 1, rows)
    num_draft[:2] = K
    past = np.arange(K) >= num_draft[:, None]
    draft[past], q[past] = -1, np.nan
    p[:, 1:][past] = np.nan
    return (draft, q, p, num_draft), text


def _case(batch: Batch, rows: list[int], seed: int) -> dict[str, Any]:
    """Some rows of a batch as arguments of a call, in JSON types."""
    draft, q, p, num_draft = (array[rows].tolist() for array in batch)
    return {"draft": draft, "q": q, "p": p, "num_draft": num_draft, "seed": seed}


def _finding(check: str, outcome: Outcome, message: str, **more: Any) -> Finding:
    return Finding(check, outcome, Grade.BEHAVIOUR, message, **more)


BEHAVIOUR: Mapping[str, Check] = MappingProxyType(
    {
        "empty-batch": check_empty_batch,
        "one-hot": check_one_hot,
        "different-seeds": check_different_seeds,
        "no-drafts": check_no_drafts,
        "equal-laws": check_equal_laws,
    }
)
"""By name, in the order in which they run."""
