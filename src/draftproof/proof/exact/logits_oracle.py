"""The exact law of a verifier from logits, by the interval oracle."""

from __future__ import annotations

from collections.abc import Sequence

from draftproof.proof.exact.exact_law import Enumeration, enumerate_rounded
from draftproof.proof.exact.interval import MAX_PATHS, OracleGenerator, Path
from draftproof.proof.exact.rule_law import draw_drafts
from draftproof.proof.logits.call import Request, call_subject
from draftproof.proof.sampled.sampling import Padding
from draftproof.proof.subjects.subject import Subject
from draftproof.proof.worlds.law import Text
from draftproof.proof.worlds.logits_world import LogitsWorld

__all__ = ["oracle_logits_law"]


def oracle_logits_law(
    subject: Subject,
    worlds: Sequence[LogitsWorld],
    rounds: Sequence[Sequence[int]],
    max_draft: int,
    max_paths: int = MAX_PATHS,
    padding: Padding = Padding.POISON,
) -> Enumeration:
    """Enumerate a batch of requests, over one call or more with one generator.

    Args:
        subject: see `draftproof.proof.logits.call`.
        worlds: one for each row of the batch, of one vocabulary.
        rounds: the rows' drafts in each call; the next one goes on where it ended.
        max_draft: K of all calls.
        max_paths: runs that this may take.
        padding: what lies past the drafts.

    Returns:
        The joint law of the rows' texts, one behind the other, each completed from its target.
        `Law.error` is 0 if it equals the targets', else a bound on what rounding explains.

    Raises:
        NotDrivable: the subject does more with its uniforms than compare them.
        ContractBroken: it returns what its contract forbids.
    """
    lengths = [sum(row) + len(rounds) for row in zip(*rounds, strict=True)]

    def program(path: Path) -> tuple[Text, ...]:
        rng = OracleGenerator()
        texts: list[Text] = [() for _ in worlds]
        for num_draft in rounds:
            requests = [
                Request(world, text, draw_drafts(path, world.draft, world, text, g))
                for world, text, g in zip(worlds, texts, num_draft, strict=True)
            ]
            emitted = call_subject(subject, requests, max_draft, rng, padding)
            texts = [text + new for text, new in zip(texts, emitted, strict=True)]
        return tuple(texts)

    return enumerate_rounded(program, worlds, lengths, max_paths)
