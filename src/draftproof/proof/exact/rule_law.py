"""The exact law of a rule that is written like `draftproof.reference.chain.token`, in rationals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from draftproof.proof.exact.interval import OracleGenerator, Path, explore
from draftproof.proof.worlds.law import Law, Text, complete
from draftproof.proof.worlds.world import Row, World
from draftproof.reference.block import block
from draftproof.reference.chain import Emission, exact_match, token
from draftproof.reference.greedy_block import State, advance, greedy_block, state_after, target_row

__all__ = ["RULES", "Enumeration", "Rule", "draw_drafts", "rule_law"]

Rule = Callable[..., Emission]

MAX_RULE_PATHS = 1_000_000
"""Runs that the rounds of one rule may take: a rule of ours ends, so this only stops a slip."""


def _exact_match(
    drafts: Sequence[int], q_rows: Sequence[Any], p_rows: Sequence[Any], accept: Any, final: Any
) -> Emission:
    return exact_match(drafts, p_rows, accept, final)


RULES: Mapping[str, Rule] = MappingProxyType(
    {"token": token, "exact-match": _exact_match, "block": block, "greedy-block": greedy_block}
)
"""The references, by their rules' names: f(drafts, q_rows, p_rows, accept, final)."""


@dataclass(frozen=True)
class Enumeration:
    """All that a subject can do in a world.

    Attributes:
        law: of the text, completed from the target.
        emitted: the expected number of tokens that it emits, of all rows and calls together.
        paths: runs of the subject behind it.
        boundary: probability of the runs that end in an exception or a broken contract; below
            2^-40, or the enumeration would have raised. The law lacks this mass.
    """

    law: Law
    emitted: Fraction
    paths: int
    boundary: Fraction = Fraction(0)


def rule_law(rule: Rule, world: World, *num_draft: int) -> Enumeration:
    """Enumerate the first rounds of a text.

    Args:
        rule: f(drafts, q_rows, p_rows, accept, final). `greedy_block` is also given its state, and
            its text is completed from the target that the state leaves behind; a function around
            it that drops the state is a rule without one.
        world: where texts are made.
        num_draft: g of each round.

    Returns:
        The law of as many tokens as these rounds can emit.
    """

    def program(path: Path) -> tuple[int, Text]:
        rng = OracleGenerator()
        text: Text = ()
        state: State = ()
        for g in num_draft:
            drafts = draw_drafts(path, world.draft, world, text, g)
            q, p = map(list, world.rows(drafts, text))
            if rule is greedy_block:
                emission = rule(drafts, q, p, rng.random(g), rng.random(), state)
                state = state_after(drafts, q, p, state, emission)
            else:
                emission = rule(drafts, q, p, rng.random(g), rng.random())
            assert emission.last_token is not None, "rows of a world have mass"
            text = (*text, *drafts[: emission.num_accepted], emission.last_token)
        return len(text), _filled(path, world, text, state)

    masses: dict[Text, Fraction] = {}
    paths, emitted = 0, Fraction(0)
    for result, weight in explore(program, MAX_RULE_PATHS):
        if isinstance(result, Exception):
            raise result
        length, text = result
        masses[text] = masses.get(text, Fraction(0)) + weight
        emitted += length * weight
        paths += 1
    law = complete(masses.items(), world, sum(num_draft) + len(num_draft))
    return Enumeration(law, emitted, paths)


def draw_drafts(
    path: Path, draft: Sequence[Row], world: World, context: Text, num_draft: int
) -> Text:
    """Draw a chain of drafts behind a context, from rows of the drafter by state."""
    text = context
    for _ in range(num_draft):
        text = (*text, path.choose(draft[world.row(text)]))
    return text[len(context) :]


def _filled(path: Path, world: World, text: Text, state: State) -> Text:
    """Write on from the discounted target until the state has run out."""
    while state:
        (q,), (p, _) = world.rows((0,), text)
        token = path.choose(tuple(target_row(state, q, p)))
        state = advance(state, token, q, p)
        text = (*text, token)
    return text
