"""q-honesty: are the drafts of a decoder's rounds drawn from the rows that it tells?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from draftproof.proof.anytime.honesty import judge_drafts
from draftproof.proof.checks.oracle import law_finding
from draftproof.proof.decoders.models import Models
from draftproof.proof.decoders.recital import prompt_for
from draftproof.proof.decoders.round_law import draft_laws
from draftproof.proof.exact.generator import NotDrivable
from draftproof.proof.sampled.budget import DECODER_SHARES, share
from draftproof.proof.sampled.sampling import streams
from draftproof.proof.subjects.decoder import Decoder
from draftproof.proof.subjects.subject import Subject
from draftproof.proof.trial.plan import Plan
from draftproof.proof.verdicts.finding import Finding, Grade, Outcome
from draftproof.proof.worlds.catalogue import WORLDS

__all__ = ["check_honesty"]

CHECK = "honesty"
DRAFTS = 2
ROUNDS = 2_000
UNTOLD = "its rounds do not tell their drafts and rows: whether they are honest was not examined"


def check_honesty(subject: Subject, plan: Plan) -> Iterator[Finding]:
    """The law of the drafts beside the rows told for them: exact, or by the e-process of drafts."""
    for name in plan.worlds:
        try:
            laws = draft_laws(subject, WORLDS[name], DRAFTS, 4 * plan.max_paths)
        except NotDrivable:
            yield from _sampled(subject, plan)
            return
        if laws is None:
            yield from _sampled(subject, plan)
            return
        found, told = laws
        what = f"the exact law of {DRAFTS} drafts"
        yield law_finding(CHECK, name, (DRAFTS, DRAFTS), what, found, told, "the rows'")


def _sampled(subject: Subject, plan: Plan) -> Iterator[Finding]:
    decoder = Decoder(subject, Models(WORLDS["L4"]))
    _, rng = streams(plan.seed, CHECK)
    drafts: list[int] = []
    rows = []
    for r in range(ROUNDS):
        made = decoder.round(prompt_for(r % 4, r), DRAFTS, rng)
        if made.rows is not None and made.drafts is not None:
            drafts += made.drafts
            rows.append(made.rows)
    if not drafts:
        yield Finding(CHECK, Outcome.NOTE, Grade.BEHAVIOUR, UNTOLD)
        return
    size = share(plan.false_alarm, CHECK, DECODER_SHARES)
    said = judge_drafts(drafts, np.vstack(rows), false_alarm=size, seed=plan.seed)
    if said.is_honest:
        message = f"{said.drafts:,} drafts look like the rows told for them"
        yield Finding(CHECK, Outcome.PASSED, Grade.SAMPLED, message, size=said.drafts)
        return
    message = (
        f"after {said.decided_after:,} drafts: they are not drawn from the rows told for them, "
        f"but look like {said.suspect} (false alarm at most {said.false_alarm:.1g})"
    )
    yield Finding(CHECK, Outcome.LOSSY, Grade.SAMPLED, message, "L4", size=said.drafts)
