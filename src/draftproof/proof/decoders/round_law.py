"""The exact law of rounds: a decoder's own drafts, tests and draws, driven by interval uniforms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from draftproof.proof.decoders.models import Models
from draftproof.proof.decoders.recital import prompt_for
from draftproof.proof.exact.exact_law import Enumeration, enumerate_rounded, rounding_error
from draftproof.proof.exact.interval import MAX_PATHS, OracleGenerator, Path
from draftproof.proof.subjects.decoder import Decoder, Text
from draftproof.proof.subjects.subject import Subject
from draftproof.proof.worlds.law import Law
from draftproof.proof.worlds.world import World

__all__ = ["draft_laws", "round_law"]


def round_law(
    subject: Subject, world: World, rounds: Sequence[int], max_paths: int = MAX_PATHS
) -> Enumeration:
    """Enumerate rounds of one text, of these numbers of drafts, by a decoder made anew for each.

    Args:
        subject: of the contract ``round``.
        world: where the text is made, behind a prompt that ends with its start.
        rounds: k of each round; the decoder and its generator are the same in all of them.
        max_paths: runs that this may take.

    Returns:
        The law of as many tokens as the rounds can emit, completed from the target.

    Raises:
        NotDrivable: the decoder does more with its uniforms than compare them, or draws elsewhere.
        ContractBroken: it returns what its contract forbids.
    """
    prompt = prompt_for(world.start, 1)

    def program(path: Path) -> tuple[Text, ...]:
        decoder, rng = Decoder(subject, Models(world)), OracleGenerator()
        text: Text = ()
        for k in rounds:
            text += decoder.round(prompt + text, k, rng).tokens
        return (text,)

    return enumerate_rounded(program, (world,), (sum(rounds) + len(rounds),), max_paths)


def draft_laws(
    subject: Subject, world: World, k: int, max_paths: int = MAX_PATHS
) -> tuple[Enumeration, Law] | None:
    """Enumerate the k drafts of a round, and return the law that was declared for them beside.

    None for a decoder that does not tell its drafts and rows, or does not always draft k.

    Args:
        subject, world, max_paths: see `round_law`.
        k: drafts of the round.

    Returns:
        The drafts by the branches of the decoder's comparisons, and the product of the rows that
        it declares along them.

    Raises:
        NotDrivable, ContractBroken: as `round_law`.
    """
    prompt, models = prompt_for(world.start, 1), Models(world)
    rows: dict[Text, Sequence[float]] = {}

    def program(path: Path) -> tuple[Text, ...]:
        made = Decoder(subject, models).round(prompt, k, OracleGenerator())
        if made.drafts is None or made.rows is None:
            return ((),)
        for i, row in enumerate(made.rows):
            rows.setdefault(made.drafts[:i], row.tolist())
        return (made.drafts,)

    drafter = World(world.draft, world.draft, world.start, world.name)
    run = enumerate_rounded(program, (drafter,), (k,), max_paths)
    if run.emitted != k:
        return None
    declared: dict[Text, Fraction] = {(): Fraction(1)}
    for _ in range(k):
        declared = {
            (*text, token): mass * Fraction(q)
            for text, mass in declared.items()
            if text in rows  # else it has no mass, or the drafts never come here
            for token, q in enumerate(rows[text])
            if q
        }
    told = Law(declared, k)
    if run.law != told:
        run = replace(run, law=run.law.with_error(rounding_error(world, k)))
    return run, told
