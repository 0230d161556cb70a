"""What a decoder with models of its own is held against: a law, or its plain twin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from draftproof.proof.decoders.stream import LawFunction
from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.subjects.decoder import Text
from draftproof.proof.subjects.loading import find_callable, importable_name
from draftproof.proof.subjects.subject import Subject
from draftproof.proof.trial.plan import Plan, visible_by_decoders
from draftproof.proof.verdicts.finding import Finding, Outcome

__all__ = ["beside", "law_of", "not_covered", "plain_of", "prompts_of", "require_source"]

PROMPTS: tuple[Text, ...] = ((1,), (2, 1), (3, 0, 2))
"""For decoders that nobody gave prompts for: short ones, of unequal length."""


def beside(
    plan: Plan,
    *,
    law: str | Callable[..., Any] | None = None,
    plain: str | Callable[..., Any] | None = None,
    prompts: Sequence[Sequence[int]] = (),
    eos: int | None = None,
) -> Plan:
    """Add to a plan what a decoder with models of its own is held against.

    Raises:
        ValueError: a callable that no other process can find.
    """
    return replace(
        plan,
        law=_named("law", law),
        plain=_named("plain", plain),
        prompts=tuple(tuple(int(token) for token in prompt) for prompt in prompts),
        eos=eos,
    )


def _named(argument: str, call: str | Callable[..., Any] | None) -> str:
    if call is None or isinstance(call, str):
        return call or ""
    spec = importable_name(call)
    if spec is None:
        raise ValueError(
            f"{argument}: found {call!r}, which no other process can find; wanted a function of a "
            "module or of a file. Fix: define it there, and name it, as in my_engine.py:law."
        )
    return spec


def not_covered(findings: Sequence[Finding], plan: Plan) -> tuple[str, ...]:
    """Sentences for the verdict on a decoder: what was not examined."""
    if plan.plain:
        return (
            "Its law is not known: what it does alike with and without speculation, right or "
            "wrong, no comparison of the two can show.",
            "The e-process has no power that could be stated beforehand: what changes rare tokens "
            "only, or all contexts differently, needs longer streams, or the target's law.",
        )
    sentences = [
        "Texts were examined up to 8 tokens, rounds up to 3 drafts, in float64; longer texts, "
        "larger batches than 128 rows and the models themselves were not."
    ]
    if plan.law:
        return (*sentences, "The law is taken at its word, and for the prompts that were given.")
    exact = [f for f in findings if f.check == "oracle"]
    if not exact or any(f.outcome is not Outcome.PASSED for f in exact):
        sentences.append(
            "Its uniforms could not be driven: its law was sampled. A total variation above "
            f"{visible_by_decoders(plan):.2g} of three tokens would have been seen with "
            f"probability {plan.power:g}; a smaller bias is not excluded."
        )
    return tuple(sentences)


def prompts_of(plan: Plan) -> list[Text]:
    """The prompts of a decoder with models of its own."""
    return [tuple(prompt) for prompt in plan.prompts] or list(PROMPTS)


def law_of(plan: Plan) -> LawFunction | None:
    """The law that the plan names, if it does."""
    return find_callable(plan.law) if plan.law else None


def plain_of(plan: Plan) -> Subject | None:
    """The decoder without speculation that the plan names, if it does."""
    if not plan.plain:
        return None
    call: Callable[..., Any] = find_callable(plan.plain)
    return Subject(plan.plain, Contract.GENERATE, call, plan.plain)


def require_source(subject: Subject, plan: Plan) -> None:
    """Refuse a decoder whose law comes from nowhere, and a law that nobody asks for.

    Raises:
        ValueError: saying which option is missing or too much.
    """
    beside = [option for option in ("law", "plain") if getattr(plan, option)]
    if subject.has_own_models and len(beside) != 1:
        raise ValueError(
            f"law, plain: found {' and '.join(beside) or 'neither'} for {subject.name}, a decoder "
            "with models of its own; wanted one of them. Fix: name its target's law, "
            "law(prompt, prefix) -> row, or the same decoder without speculation; or wrap it as "
            "make(world) -> f(prompts, num_tokens, seed)."
        )
    if beside and not subject.has_own_models:
        raise ValueError(
            f"{beside[0]}: found {getattr(plan, beside[0])!r}; {subject.name} has no use for it. "
            "Fix: leave it out; it is for decoders f(prompts, num_tokens, seed) of the contract "
            "'generate'."
        )
