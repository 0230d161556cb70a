"""Checks for tests of the machinery: the registry that a child process is told to use."""

import json

import numpy as np

from draftproof.proof.exact.generator import NotDrivable
from draftproof.proof.verdicts.finding import Cell, Finding, Grade, Outcome

NAN = float("nan")
Q = np.array([[[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]]])
P = np.array([[[0.25, 0.5, 0.25], [0.25, 0.25, 0.5], [0.5, 0.25, 0.25]]])


def call(subject, rng, rows=1, K=2):
    return subject.verify(
        np.zeros((rows, K), np.int64),
        np.repeat(Q[:, :K], rows, axis=0),
        np.repeat(P[:, : K + 1], rows, axis=0),
        np.full(rows, K),
        rng,
    )


def small(subject, plan):
    """One call."""
    out, n_out = call(subject, np.random.default_rng(plan.seed))
    message = json.dumps([out.tolist(), n_out.tolist()])
    yield Finding("small", Outcome.PASSED, Grade.EXACT, message, cells=(Cell((0, 1), 0.5, NAN),))


def many(subject, plan):
    """Forty calls, and a finding of NumPy scalars every ten."""
    rng = np.random.default_rng(plan.seed)
    for i in range(40):
        call(subject, rng)
        if i % 10 == 9:
            yield Finding("many", Outcome.PASSED, Grade.SAMPLED, f"{i + 1} calls", size=np.int64(i))  # type: ignore[arg-type]


def endless(subject, plan):
    """Calls for ever, each of them short."""
    rng = np.random.default_rng(plan.seed)
    while call(subject, rng):
        pass
    yield


def faulty(subject, plan):
    raise ZeroDivisionError("ours")


def undrivable(subject, plan):
    raise NotDrivable("no uniforms")


CHECKS = {check.__name__: check for check in (small, many, endless, faulty, undrivable)}
