"""Evidence at large vocabularies: cut points where uniforms can be chosen, witnesses elsewhere.

What a table of counts cannot hold shows here: sums in narrow numbers, tokens that lie behind the
last block or the last 16 bits, floors and thresholds that a small vocabulary never reaches.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from draftproof.proof.checks.sampled import deadline_of
from draftproof.proof.exact.cuts import Cuts, Draw, find_cuts
from draftproof.proof.exact.generator import NotDrivable
from draftproof.proof.sampled.budget import LOOKS, share
from draftproof.proof.sampled.statistics import scipy_special
from draftproof.proof.sampled.wide_texts import WideTexts
from draftproof.proof.sampled.witnesses import battery, holm
from draftproof.proof.subjects.subject import Subject
from draftproof.proof.trial.plan import PROVEN_VISIBLE, Plan
from draftproof.proof.verdicts.finding import Cell, Finding, Grade, Outcome
from draftproof.proof.worlds.wide import WIDE_WORLDS, WideWorld

__all__ = ["check_cuts", "check_witnesses"]

CUTS: dict[str, tuple[tuple[str, str, int], ...]] = {
    "quick": (("peaked-50304", "float64", 4),),
    "standard": (
        ("peaked-50304", "float64", 8),
        ("flat-32768", "float64", 8),
        ("flat-32768", "float32", 8),
        ("flat-262144", "float32", 8),
    ),
    "paper": tuple((name, dtype, 64) for name in WIDE_WORLDS for dtype in ("float64", "float32")),
}
"""By profile: (world, precision of the rows, tokens sampled)."""

TEXTS: dict[str, tuple[tuple[str, int, int, int], ...]] = {
    "quick": (("sparse-8192", 1, 384, 384), ("padded-152064", 0, 48, 48)),
    "standard": (
        ("padded-152064", 0, 256, 48),
        ("sparse-8192", 1, 8_192, 384),
        ("real-49152", 1, 2_048, 64),
    ),
    "paper": tuple((name, g, 8_192, 1_024) for name in WIDE_WORLDS for g in (0, 1)),
}
"""By profile: (world, g, texts, texts of a subject whose law is proven in the small worlds)."""

LEAST_TEXTS = 48
"""Fewer tell nothing, at the first look either."""


def check_cuts(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """Measure how the subject's own arithmetic moves the law of one draw from a wide row.

    On rows in float64 it must not: what a running sum in double precision cannot explain is a wrong
    law. On float32 rows the number is a grade, for whoever passes such rows.
    """
    for name, dtype, sample in CUTS[plan.profile]:
        world = WIDE_WORLDS[name]
        try:
            draw = Draw(subject, world.tables[0][0].astype(dtype))
            cuts = find_cuts(draw, sample, np.random.default_rng([plan.seed, len(draw.law)]))
        except NotDrivable as refusal:
            yield Finding("cuts", Outcome.NOT_DRIVABLE, Grade.EXACT, str(refusal), world.name)
            return
        yield _graded(world, dtype, cuts)


def check_witnesses(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """Five witnesses of texts in wide worlds: of single draws, and of rounds of one draft."""
    cases = TEXTS[plan.profile]
    size = share(plan.false_alarm, "witnesses") / len(cases)
    deadline = deadline_of(plan)
    for name, num_draft, texts, briefly in cases:
        wanted = texts if plan.visible < PROVEN_VISIBLE else briefly
        made = WideTexts(
            subject.verify, WIDE_WORLDS[name], num_draft, plan.seed, subject.sampled_law
        )
        yield _heard(made, wanted, size, plan, deadline)


def _graded(world: WideWorld, dtype: str, cuts: Cuts) -> Finding:
    wrong = not cuts.is_exact
    if wrong:
        outcome = Outcome.LOSSY if dtype == "float64" else Outcome.NOTE
        message = f"of a draw by a total variation of about {cuts.total_variation:.2g} "
        message += f"(within {cuts.error:.1g}, {cuts.sample} tokens sampled) and of at least "
        message += f"{cuts.least:.2g}; double precision explains {cuts.rounding:.1g}"
    else:
        outcome = Outcome.PASSED
        message = f"of {cuts.sample} sampled tokens by a total variation below {cuts.error:.1g}"
    return Finding(
        "cuts",
        outcome,
        Grade.EXACT,
        f"on {dtype} rows of {world.vocabulary:,} tokens its arithmetic moves the law {message} "
        f"({cuts.lanes:,} calls of one row)",
        world=world.name,
        total_variation=cuts.total_variation,
        error=cuts.error,
        cells=(Cell((cuts.token,), cuts.expected, cuts.observed),) if wrong else (),
        size=cuts.lanes,
        case={"dtype": dtype},
    )


def _heard(texts: WideTexts, wanted: int, size: float, plan: Plan, deadline: float) -> Finding:
    rng = np.random.default_rng([plan.seed, wanted])
    for fraction, part in LOOKS:
        complete = texts.extend(max(LEAST_TEXTS, round(fraction * wanted)), deadline)
        allowed = size * float(part)
        heard = battery(texts.world, texts.contexts, texts.tokens, rng) if len(texts.tokens) else []
        believed = holm(heard, allowed)
        if believed or not complete:
            break
    n, world = len(texts.tokens), texts.world
    made = f"{n:,} texts of {texts.num_draft + 1} of {world.vocabulary:,} tokens: "
    details: dict[str, Any] = {}
    if believed:
        outcome = Outcome.LOSSY
        made += "; ".join(map(str, believed))
        made += f"; false alarm at most {believed[0].p_value:.2g}, allowed {allowed:.2g}"
        impossible = world.tables[0][texts.contexts, texts.tokens] == 0
        if impossible.any():
            row = tuple(np.argwhere(impossible)[0])
            details["cells"] = (Cell((int(texts.tokens[row]),), 0.0, float(impossible.mean())),)
    else:
        outcome = Outcome.PASSED if complete else Outcome.INCONCLUSIVE
        made += f"{len(heard)} witnesses agree with the target"
        if heard:
            seen = _visible(n, allowed / len(heard), plan.power)
            made += f"; a rate off by more than {seen:.2g} would have been seen with probability "
            made += f"{plan.power:g}"
        if not complete:
            made += f"; there was no time for the wanted {wanted:,}: {plan.longer}"
    return Finding(
        "witnesses", outcome, Grade.SAMPLED, made, world.name, texts.num_draft, texts.num_draft,
        size=n, **details,
    )  # fmt: skip


def _visible(n: int, size: float, power: float) -> float:
    """How far off a rate near 1/2 must be to be seen, by the normal law: a description."""
    special = scipy_special()
    sigmas = -special.ndtri(size / 2) + special.ndtri(power)
    return min(1.0, float(sigmas) * float(Fraction(1, 2)) / float(np.sqrt(n)))
