"""Texts that decoders write by themselves, in the form in which verifiers' texts are sampled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.proof.decoders.models import Models
from draftproof.proof.sampled.sampling import Experiment, Verify
from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.subjects.decoder import Decoder, Text
from draftproof.proof.subjects.subject import Subject
from draftproof.proof.worlds.world import World

__all__ = ["Recital", "fill", "prompt_for", "recital", "write_texts"]

Array = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Recital(Experiment):
    """An experiment whose texts a decoder writes, row b behind the prompt of world b modulo W.

    Attributes:
        decoder: made with the models that all the worlds share; they differ in their start.
        eos: the token behind which texts end; the worlds' targets repeat it for ever.
    """

    decoder: Decoder
    eos: int | None = None

    def make(
        self,
        verify: Verify,
        rows: int,
        draft_rng: np.random.Generator,
        subject_rng: np.random.Generator,
        emitted: Array | None = None,
    ) -> npt.NDArray[np.int64]:
        """Make one text in each row; see `draftproof.proof.sampled.sampling.Experiment.make`.

        ``verify`` is not called. The lengths of rounds come from ``draft_rng``, and everything
        else from ``subject_rng``: by itself, or through one seed a call.
        """
        starts = [self.worlds[b % len(self.worlds)].start for b in range(rows)]
        prompts = [prompt_for(start, b) for b, start in enumerate(starts)]
        texts = write_texts(
            self.decoder, prompts, self.length, self.longest, draft_rng, subject_rng, emitted
        )
        powers = self.vocabulary ** np.arange(self.length)[::-1]
        cells: npt.NDArray[np.int64] = fill(texts, self.length, self.eos) @ powers
        return cells


def recital(
    subject: Subject,
    world: World,
    *,
    starts: Sequence[int] | None = None,
    eos: int | None = None,
    length: int = 3,
    longest: int = 3,
) -> Recital:
    """Make a decoder with a world, and an experiment of the texts that it writes.

    Args:
        subject: of the contract ``round`` or ``generate``.
        world: gives both models; its name is the tables'.
        starts: the last tokens of the prompts; the world's own if left out.
        eos: the token behind which texts end.
        length, longest: of texts, and of the drafts of a round.
    """
    starts = (world.start,) if starts is None else starts
    truth = world if eos is None else _ending(world, eos)
    names = [world.name if s == world.start else f"{world.name} from {s}" for s in starts]
    return Recital(
        worlds=tuple(replace(truth, start=s, name=n) for s, n in zip(starts, names, strict=True)),
        length=length,
        longest=longest if subject.contract is Contract.ROUND else 0,
        decoder=Decoder(subject, Models(world, eos)),
        eos=eos,
    )


def prompt_for(start: int, b: int) -> Text:
    """A prompt that ends with a token: rows of one call have prompts of unequal length."""
    return (start,) * (1 + b % 3)


def write_texts(
    decoder: Decoder,
    prompts: Sequence[Text],
    length: int,
    longest: int,
    length_rng: np.random.Generator,
    rng: np.random.Generator,
    emitted: Array | None = None,
) -> list[Text]:
    """Let a decoder write a text behind each prompt.

    ::

        generate   one call, with a seed drawn from rng
        round      rounds of 0..longest drafts with the one rng, the texts taking turns, so that
                   what is kept from the round before belongs to another text

    Args:
        decoder: what writes.
        prompts: by row.
        length: tokens of a text; what the last round emits beyond is cut.
        longest: the longest draft.
        length_rng: how many drafts a round may have.
        rng: the decoder's.
        emitted: a tally [longest+1, longest+2] of (drafts, tokens emitted) to add to.
    """
    if decoder.contract is Contract.GENERATE:
        return decoder.generate(prompts, length, int(rng.integers(1 << 31)))
    texts: list[Text] = [()] * len(prompts)
    unfinished = list(range(len(prompts)))
    while unfinished:
        drafts = length_rng.integers(0, longest + 1, len(unfinished)).tolist()
        for b, k in zip(unfinished, drafts, strict=True):
            k = longest if not texts[b] else k
            tokens = decoder.round(prompts[b] + texts[b], k, rng).tokens
            texts[b] += tokens
            if emitted is not None:
                emitted[k, len(tokens)] += 1
        unfinished = [b for b in unfinished if len(texts[b]) < length]
    return [text[:length] for text in texts]


def fill(texts: Sequence[Text], length: int, eos: int | None) -> npt.NDArray[np.int64]:
    """Lay texts out as [B, length]; behind one that has ended stands its last token for ever."""
    end = -1 if eos is None else eos
    return np.array([(*text, *(end,) * (length - len(text))) for text in texts], dtype=np.int64)


def _ending(world: World, eos: int) -> World:
    """The world whose target, once it has written ``eos``, writes nothing else."""
    V = world.vocabulary
    certain = tuple(Fraction(token == eos) for token in range(V))
    rows = tuple(certain if s == eos else row for s, row in enumerate(world.target))
    return replace(world, target=rows, name=f"{world.name}, ended by {eos}")
