"""From a finding to a command and a script that show its smallest failing case again."""

from __future__ import annotations

import math
import shlex
import textwrap
from typing import Any

from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.verdicts.finding import Cell, Finding, Outcome
from draftproof.proof.verdicts.verdict import Reproducer
from draftproof.proof.worlds.catalogue import WORLDS

__all__ = ["find_reproducer"]

SIGMAS = 6
"""The script draws so many texts that the difference is this many standard errors."""
MOST_TEXTS = 1_000_000
"""More than this takes too long: the script then asks the judge for the exact law."""

_SIMULATE = """\
# Text {tokens} has probability {expected:.6f}; this verifier makes it with {observed:.6f}.
import numpy as np
from draftproof.proof.subjects.subject import load
from draftproof.proof.worlds.catalogue import WORLDS

subject, world, g, K, n = load({spec!r}, {contract!r}), WORLDS[{world!r}], {g}, {K}, {n:_}
P, Q = (np.vstack([np.array(rows, float), [np.nan] * len(rows)])
        for rows in (world.target, world.draft))
rng = np.random.default_rng(0)
draw = lambda rows: (rows[:, :-1].cumsum(axis=1) <= rng.random((n, 1))).sum(axis=1)
state = np.full((n, K + 1), -1)  # the text so far, and the drafts; -1 is padding
state[:, 0] = world.start
for i in range(g):
    state[:, i + 1] = draw(Q[state[:, i]])
text, made = subject.verify(state[:, 1:], Q[state[:, :-1]], P[state], np.full(n, g), rng)
for i in range(1, g + 1):  # what was not emitted is drawn from the target
    text[:, i] = np.where(i < made, text[:, i], draw(P[text[:, i - 1]]))
print((text[:, : g + 1] == {tokens}).all(axis=1).mean(), "wanted: {expected:.6f}")
"""

_EXACT = """\
# Text {tokens} has probability {expected!r}; this verifier makes it with {observed!r}.
from draftproof.proof.exact.exact_law import exact_law
from draftproof.proof.worlds.catalogue import WORLDS

world = WORLDS[{world!r}]
print(exact_law({spec!r}, world, {g}, {contract!r})[{tokens}], world.target_law({length})[{tokens}])
"""

_CALL = """\
# {message}
import numpy as np
from draftproof.proof.subjects.subject import load

nan, inf = np.nan, np.inf
draft = np.array({draft}, dtype=np.int64).reshape({draft_shape})
q = np.array({q}, dtype=float).reshape({q_shape})
p = np.array({p}, dtype=float).reshape({p_shape})
print(load({spec!r}, {contract!r}).verify(draft, q, p, {num_draft}, np.random.default_rng(0)))
"""

_PRACTICE = """\
# {message}
from draftproof.proof.subjects.subject import load

print(load({spec!r}, "practice").call{arguments})
"""

_CHECK = """\
# {message}
from draftproof.proof.checks import CHECKS
from draftproof.proof.trial.plan import make_plan
from draftproof.proof.subjects.subject import load

for finding in CHECKS[{check!r}](load({spec!r}, {contract!r}), make_plan({profile!r}, {seed})):
    print(finding.outcome, finding.message)
"""


def find_reproducer(
    spec: str, contract: Contract | str, profile: str, seed: int, finding: Finding
) -> Reproducer:
    """Return the command that repeats the verdict, and a script for the finding's own case.

    Args:
        spec: what `draftproof.proof.subjects.subject.load` makes the subject from.
        contract: its contract.
        profile: of the verdict.
        seed: of the verdict.
        finding: the one to show again: the smallest.

    ::

        one wrong text of one round  -> draw texts and count it; if it is too rare, its exact law
        a call that broke            -> that call
        anything else                -> the check by itself
    """
    name = str(contract)
    command = f"draftproof check {shlex.quote(spec)} --contract {name} --profile {profile}"
    values: dict[str, Any] = {
        "spec": spec, "contract": name, "profile": profile, "seed": seed, "check": finding.check,
        "message": textwrap.fill(finding.message, 90).replace("\n", "\n# "),
        "world": finding.world,
        "g": finding.num_draft, "K": finding.max_draft,
    }  # fmt: skip
    return Reproducer(f"{command} --seed {seed}", _script(finding, name, values))


def _script(finding: Finding, contract: str, values: dict[str, Any]) -> str:
    case = finding.case
    if Contract(contract).is_decoder:
        return _CHECK.format(**values)
    if contract == Contract.PRACTICE and len(case) == 4:
        return _PRACTICE.format(**values, arguments=tuple(case.values()))
    if set(case) | {"q"} == {"draft", "q", "p", "num_draft"}:
        return _CALL.format(**values, **_arrays(case))
    cell = finding.cells[0] if finding.cells else None
    if cell and _is_one_round(finding, cell):
        values |= {
            "tokens": tuple(map(int, cell.tokens)), "expected": float(cell.expected),
            "observed": float(cell.observed), "length": len(cell.tokens),
        }  # fmt: skip
        texts = _texts_needed(cell)
        if texts <= MOST_TEXTS:
            return _SIMULATE.format(**values, n=texts)
        if finding.num_draft == finding.max_draft:
            return _EXACT.format(**values)
    return _CHECK.format(**values)


def _is_one_round(finding: Finding, cell: Cell) -> bool:
    return (
        finding.outcome is Outcome.LOSSY
        and finding.world in WORLDS
        and len(cell.tokens) == finding.num_draft + 1
        and cell.expected != cell.observed
    )


def _texts_needed(cell: Cell) -> int:
    """So many that the difference is `SIGMAS` standard errors of either frequency."""
    spread = max(x * (1 - x) for x in (cell.expected, cell.observed))
    needed = SIGMAS**2 * spread / (cell.expected - cell.observed) ** 2
    return max(10_000, 1_000 * math.ceil(needed / 1_000))


def _arrays(case: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call, with the shapes that empty lists do not tell.

    A greedy case has no q: the point masses on its drafts are as good as any.
    """
    B = len(case["num_draft"])
    K = len(case["p"][0]) - 1 if B else 0
    V = len(case["p"][0][0]) if B else 1
    q = case.get("q", [[[float(v == x) for v in range(V)] for x in row] for row in case["draft"]])
    return {
        "draft": case["draft"], "draft_shape": (B, K),
        "q": q, "q_shape": (B, K, V),
        "p": case["p"], "p_shape": (B, K + 1, V),
        "num_draft": f"np.array({case['num_draft']}, dtype=np.int64)",
    }  # fmt: skip
