"""The exact law of a rule, of a reference, or of a verifier whose uniforms the oracle can drive."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from draftproof.efficiency.chain import survival_in
from draftproof.proof.exact.generator import NotDrivable
from draftproof.proof.exact.interval import MAX_PATHS, OracleGenerator, Path, explore
from draftproof.proof.exact.rule_law import RULES, Enumeration, draw_drafts, rule_law
from draftproof.proof.subjects.emission import ContractBroken
from draftproof.proof.subjects.raised import phrase
from draftproof.proof.subjects.subject import Contract, Subject, as_subject
from draftproof.proof.worlds.law import Law, Text, complete
from draftproof.proof.worlds.world import Row, World
from draftproof.reference.chain import exact_match

__all__ = [
    "BOUNDARY",
    "RULES",
    "Enumeration",
    "enumerate_rounded",
    "exact_law",
    "expected_accepted",
    "oracle_calls_law",
    "oracle_law",
    "oracle_pair_law",
    "rounding_error",
    "rule_law",
    "sampled_rows",
]

BOUNDARY = Fraction(1, 2**40)
"""What happens with less probability than this lies at the edge of a float's grid."""
ROUNDINGS = 64
"""Rounded operations that a subject is granted for each entry of a row, beside its running sum."""


def exact_law(
    subject: Any, world: World, num_draft: int, contract: Contract | str | None = None
) -> Law:
    """Return the joint law of ``num_draft + 1`` tokens, completed from the target.

    Args:
        subject: a rule's name ("token", "exact-match", "block", "greedy-block"), a function of
            `draftproof.reference`, a `Subject`, a callable, or what names one.
        world: where texts are made.
        num_draft: g; also K, so that no row is padded.
        contract: how a callable is called; guessed from its signature if left out.

    Returns:
        For a rule or a reference its law in rationals. A black box is run on float64 rows, and
        its floats are taken as the exact numbers they are; see `Law.error`, which is 0 if the law
        equals the target's.

    Raises:
        NotDrivable: the subject does more with its uniforms than compare them.
        ContractBroken: it returns what its contract forbids.

    >>> from draftproof.proof.worlds.catalogue import WORLDS
    >>> toy = WORLDS["toy"]
    >>> exact_law("token", toy, 2) == toy.target_law(3)
    True
    """
    return _enumerate(subject, world, num_draft, contract).law


def expected_accepted(subject: Any, world: World, num_draft: int) -> Fraction:
    """Return the expected number of kept drafts, E[tau], of a round of ``num_draft`` drafts.

    Subject and errors are those of `exact_law`, and "gumbel", whose noise no fractions can follow,
    by its closed form.

    >>> from draftproof.proof.worlds.catalogue import WORLDS
    >>> expected_accepted("token", WORLDS["toy"], 2), expected_accepted("block", WORLDS["toy"], 2)
    (Fraction(10, 9), Fraction(11, 9))
    """
    if isinstance(subject, str) and subject == "gumbel":
        target, draft = (np.array(rows, dtype=object) for rows in (world.target, world.draft))
        kept = survival_in(target, draft, num_draft, rule=subject, start=world.start)
        return sum(kept, Fraction(0))
    return _enumerate(subject, world, num_draft, None).emitted - 1


def _enumerate(
    subject: Any, world: World, num_draft: int, contract: Contract | str | None
) -> Enumeration:
    if isinstance(subject, str) and subject in RULES:
        return rule_law(RULES[subject], world, num_draft)
    if subject is exact_match:
        return rule_law(RULES["exact-match"], world, num_draft)
    if any(subject is rule for rule in RULES.values()):
        return rule_law(subject, world, num_draft)
    return oracle_law(as_subject(subject, contract), world, num_draft)


def oracle_law(
    subject: Subject,
    world: World,
    num_draft: int,
    max_draft: int | None = None,
    max_paths: int = MAX_PATHS,
) -> Enumeration:
    """Enumerate one call with a single row.

    Args:
        subject: see `Subject`; drafts come from its `sampled_law` where it has one.
        world: where texts are made.
        num_draft: g.
        max_draft: K, g if left out. Padding is token -1 and rows of NaN.
        max_paths: runs that this may take.

    Raises:
        NotDrivable, ContractBroken: see `exact_law`.
    """
    K = num_draft if max_draft is None else max_draft
    draft = sampled_rows(subject, world)

    def program(path: Path) -> tuple[Text, ...]:
        drafts = draw_drafts(path, draft, world, (), num_draft)
        return _call(subject, OracleGenerator(), [(world, (), drafts)], K)

    return enumerate_rounded(program, (world,), (num_draft + 1,), max_paths)


def oracle_pair_law(
    subject: Subject,
    worlds: tuple[World, World],
    num_draft: tuple[int, int],
    max_draft: int | None = None,
    max_paths: int = MAX_PATHS,
) -> Enumeration:
    """Enumerate one call with two rows, each of a world of its own.

    Returns:
        The law of the first row's text followed by the second's. Rows that do not influence each
        other give the product of their laws.
    """
    K = max(num_draft) if max_draft is None else max_draft
    laws = [sampled_rows(subject, world) for world in worlds]

    def program(path: Path) -> tuple[Text, ...]:
        rows = [
            (world, (), draw_drafts(path, law, world, (), g))
            for world, law, g in zip(worlds, laws, num_draft, strict=True)
        ]
        return _call(subject, OracleGenerator(), rows, K)

    return enumerate_rounded(program, worlds, [g + 1 for g in num_draft], max_paths)


def oracle_calls_law(
    subject: Subject,
    world: World,
    num_draft: int | tuple[int, ...],
    max_draft: int | None = None,
    max_paths: int = MAX_PATHS,
) -> Enumeration:
    """Enumerate rounds of one text: each call goes on where the one before ended.

    All get the same generator. A subject that reuses uniforms of an earlier call is right in each
    call and wrong in the law of all.

    Args:
        subject, world, max_paths: see `oracle_law`.
        num_draft: g of each round; a single number stands for two rounds of it.
        max_draft: K of all calls, the longest g if left out.

    Returns:
        The law of as many tokens as the rounds can emit.
    """
    rounds = (num_draft, num_draft) if isinstance(num_draft, int) else num_draft
    K = max(rounds) if max_draft is None else max_draft
    draft = sampled_rows(subject, world)

    def program(path: Path) -> tuple[Text, ...]:
        rng = OracleGenerator()
        text: Text = ()
        for g in rounds:
            drafts = draw_drafts(path, draft, world, text, g)
            text += _call(subject, rng, [(world, text, drafts)], K)[0]
        return (text,)

    return enumerate_rounded(program, (world,), (sum(rounds) + len(rounds),), max_paths)


def rounding_error(world: World, length: int) -> float:
    """Bound on the total variation that float64 arithmetic adds to the law of a text.

    One token's law has V entries. A subject rounds each of them and its threshold by at most
    2^-53 of the row's mass in each operation, `ROUNDINGS` of them, and once more for each term of
    a running sum. A residual is smaller than a row, and is drawn from with the probability of its
    mass: relative to the text the bound stays that of a row. It holds for every token.
    """
    V = world.vocabulary
    return length * V * (V + ROUNDINGS) * 2.0**-53


def sampled_rows(subject: Subject, world: World) -> Sequence[Row]:
    """Return the laws that drafts are really drawn from, by state."""
    if subject.sampled_law is None:
        return world.draft
    return [tuple(map(Fraction, subject.sampled_law(row))) for row in world.draft]


def _call(
    subject: Subject,
    rng: OracleGenerator,
    rows: Sequence[tuple[World, Text, Text]],
    K: int,
) -> tuple[Text, ...]:
    """Call the subject with rows of (world, context, drafts), and return what each row emits."""
    tokens = np.array([[*drafts, *[-1] * (K - len(drafts))] for _, _, drafts in rows], np.int64)
    laws = [world.arrays(drafts, K, context) for world, context, drafts in rows]
    with np.errstate(all="ignore"):  # a vectorised subject may look at the NaN of padding
        out, n_out = subject.verify(
            tokens.reshape(len(rows), K),
            np.stack([q for q, _ in laws]),
            np.stack([p for _, p in laws]),
            np.array([len(drafts) for _, _, drafts in rows]),
            rng,
        )
    return tuple(tuple(row[:n]) for row, n in zip(out.tolist(), n_out.tolist(), strict=True))


def _collect(
    program: Callable[[Path], tuple[Text, ...]],
    worlds: Sequence[World],
    lengths: Sequence[int],
    max_paths: int,
) -> Enumeration:
    """Add up the runs of a program that returns the emitted tokens of each row."""
    masses: dict[tuple[Text, ...], Fraction] = {}
    paths, boundary = 0, Fraction(0)
    for result, weight in explore(program, max_paths):
        paths += 1
        if not isinstance(result, Exception):
            masses[result] = masses.get(result, Fraction(0)) + weight
            continue
        boundary += weight
        if boundary >= BOUNDARY:
            if isinstance(result, ContractBroken):
                raise result
            raise NotDrivable(f"The subject raises {phrase(result)} on intervals.") from result
    emitted = sum((sum(map(len, texts)) * weight for texts, weight in masses.items()), Fraction(0))
    return Enumeration(_completed(masses, worlds, lengths), emitted, paths, boundary)


def _completed(
    masses: Mapping[tuple[Text, ...], Fraction], worlds: Sequence[World], lengths: Sequence[int]
) -> Law:
    """The joint law of the rows' texts, one behind the other, each completed in its own world."""
    if len(worlds) == 1:
        return complete(((text, weight) for (text,), weight in masses.items()), worlds[0], *lengths)
    joint: dict[Text, Fraction] = {}
    for texts, weight in masses.items():
        rows = zip(texts, worlds, lengths, strict=True)
        law = reduce(Law.product, (complete([(t, Fraction(1))], w, n) for t, w, n in rows))
        for text, probability in law.items():
            joint[text] = joint.get(text, Fraction(0)) + weight * probability
    return Law(joint, sum(lengths))


def enumerate_rounded(
    program: Callable[[Path], tuple[Text, ...]],
    worlds: Sequence[World],
    lengths: Sequence[int],
    max_paths: int,
) -> Enumeration:
    """Add up runs in float64: a law that is not the target's may owe that to rounding."""
    run = _collect(program, worlds, lengths, max_paths)
    rows = list(zip(worlds, lengths, strict=True))
    if run.law == reduce(Law.product, (world.target_law(length) for world, length in rows)):
        return run
    error = sum(rounding_error(world, length) for world, length in rows)
    return replace(run, law=run.law.with_error(error))
