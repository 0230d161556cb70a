"""Rules for siblings that are wrong: each is a right one with one step changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from draftproof.proof.trees.gallery import sibling_rule
from draftproof.reference.chain import accepts, residual
from draftproof.reference.siblings import Choice, k_seq, rrs, rrsw
from draftproof.reference.siblings.choice import Row, normalised, stop, without
from draftproof.reference.tree import SiblingRule
from draftproof.trees.draft_tree import Draws

IID, ORDERED = Draws.IID, Draws.WITHOUT_REPLACEMENT


@sibling_rule("no update", IID)
def no_update(siblings: Sequence[int], q: Row, p: Row, accept: Sequence[Any], final: Any) -> Choice:
    """Tests every sibling against the first target, not the residual."""
    for i, x in enumerate(siblings):
        if accepts(p[x], q[x], accept[i]):
            return Choice(i, x)
    return stop(residual(p, q) if siblings else p, p, final)


@sibling_rule("no update without replacement", ORDERED)
def no_update_of_q(
    siblings: Sequence[int], q: Row, p: Row, accept: Sequence[Any], final: Any
) -> Choice:
    """Leaves a rejected sibling in q, though the next one was drawn without it."""
    for i, x in enumerate(siblings):
        if accepts(p[x], q[x], accept[i]):
            return Choice(i, x)
        p = normalised(residual(p, q))
    return stop(p, p, final)


@sibling_rule("re-sorted siblings", ORDERED)
def resorted(siblings: Sequence[int], q: Row, p: Row, accept: Sequence[Any], final: Any) -> Choice:
    """Tries siblings that were drawn without replacement from the likeliest down."""
    ranked = sorted(range(len(siblings)), key=lambda i: (-q[siblings[i]], siblings[i]))
    return _by_rank(rrsw, ranked, siblings, q, p, accept, final)


@sibling_rule("iid siblings, re-sorted", IID)
def resorted_iid(
    siblings: Sequence[int], q: Row, p: Row, accept: Sequence[Any], final: Any
) -> Choice:
    """Tries iid siblings from the largest p / q down."""
    ranked = sorted(range(len(siblings)), key=lambda i: (-p[siblings[i]] / q[siblings[i]], i))
    return _by_rank(rrs, ranked, siblings, q, p, accept, final)


@sibling_rule("iid repeats counted as rejections", IID)
def repeats_counted(
    siblings: Sequence[int], q: Row, p: Row, accept: Sequence[Any], final: Any
) -> Choice:
    """Takes q's rejected tokens out, and rejects a sibling that comes again once more."""
    for i, x in enumerate(siblings):
        if accepts(p[x], q[x], accept[i]):
            return Choice(i, x)
        p, q = normalised(residual(p, q)), normalised(without(q, x))
    return stop(p, p, final)


@sibling_rule("deduplicated with q fixed", IID)
def deduplicated(
    siblings: Sequence[int], q: Row, p: Row, accept: Sequence[Any], final: Any
) -> Choice:
    """Drops repeated iid siblings, and tests those that are left as though they were iid."""
    for i, x in enumerate(siblings):
        if x in siblings[:i]:
            continue
        if accepts(p[x], q[x], accept[i]):
            return Choice(i, x)
        p = normalised(residual(p, q))
    return stop(p, p, final)


@sibling_rule("original p at the end", IID)
def original_at_the_end(
    siblings: Sequence[int], q: Row, p: Row, accept: Sequence[Any], final: Any
) -> Choice:
    """Draws the last token from the target, not from what the siblings have left of it."""
    left = p
    for i, x in enumerate(siblings):
        if accepts(left[x], q[x], accept[i]):
            return Choice(i, x)
        left = normalised(residual(left, q))
    return stop(p, p, final)


@sibling_rule("rejected siblings masked", IID)
def masked(siblings: Sequence[int], q: Row, p: Row, accept: Sequence[Any], final: Any) -> Choice:
    """Takes a rejected sibling out of p, as one may where siblings are fixed, and no more."""
    for i, x in enumerate(siblings):
        if accepts(p[x], q[x], accept[i]):
            return Choice(i, x)
        p = normalised(without(p, x))
    return stop(p, p, final)


@sibling_rule("one uniform for all siblings", IID, world="L357, 3, iid")
def shared_uniform(
    siblings: Sequence[int], q: Row, p: Row, accept: Sequence[Any], final: Any
) -> Choice:
    """Tests all siblings of a node with one uniform."""
    for i, x in enumerate(siblings):
        if accepts(p[x], q[x], accept[0]):
            return Choice(i, x)
        p = normalised(residual(p, q))
    return stop(p, p, final)


@sibling_rule("k-seq with rho = 1", IID)
def k_seq_at_one(
    siblings: Sequence[int], q: Row, p: Row, accept: Sequence[Any], final: Any
) -> Choice:
    """Accepts each sibling as token would; what is left of p is negative in places."""
    return k_seq(siblings, q, p, accept, final, rho=1)


@sibling_rule("k-seq, token's residual", IID)
def k_seq_plain_residual(
    siblings: Sequence[int], q: Row, p: Row, accept: Sequence[Any], final: Any
) -> Choice:
    """Recovers from (p - q)+ after the tests of k-seq."""
    choice = k_seq(siblings, q, p, accept, final)
    if choice.sibling is None and siblings:
        return stop(residual(p, q), p, final)
    return choice


@sibling_rule("fixed siblings tested by p / q", Draws.DETERMINISTIC, public="TensorRT-LLM #15098")
def fixed_by_ratio(
    siblings: Sequence[int], q: Row, p: Row, accept: Sequence[Any], final: Any
) -> Choice:
    """Tests the likeliest tokens of q as though they had been drawn from it."""
    return rrsw(siblings, q, p, accept, final)


@sibling_rule("duplicates in a fixed set", Draws.DETERMINISTIC)
def duplicates(
    siblings: Sequence[int], q: Row, p: Row, accept: Sequence[Any], final: Any
) -> Choice:
    """Counts a fixed sibling that the set holds twice two times."""
    twice = [x for x in siblings for _ in range(2)]
    reached: Any = 0
    for x in twice:
        reached += p[x]
        if accept[0] < reached:
            return Choice(siblings.index(x), x)
    return stop(without(p, list(siblings)), p, final)


@sibling_rule("hu-greedy, q as it is", Draws.TOP_AND_ONE)
def hu_full_q(siblings: Sequence[int], q: Row, p: Row, accept: Sequence[Any], final: Any) -> Choice:
    """Tests the drawn sibling against q, though it was drawn beside the certain ones."""
    if not siblings:
        return stop(p, p, final)
    *certain, x = siblings
    if accepts(p[x], q[x], accept[-1]):
        return Choice(len(certain), x)
    choice = stop(residual(p, q), p, accept[0])
    hit = certain.index(choice.token) if choice.token in certain else None
    return choice._replace(sibling=hit)


@sibling_rule("raw bonus", ORDERED)
def raw_bonus(siblings: Sequence[int], q: Row, p: Row, accept: Sequence[Any], final: Any) -> Choice:
    """Draws at a leaf as though no temperature of 1/2 were set: from the square root of p."""
    if not siblings:
        raw = np.sqrt(p)
        return stop(raw, raw, final)
    return rrsw(siblings, q, p, accept, final)


def _by_rank(
    rule: SiblingRule,
    ranked: Sequence[int],
    siblings: Sequence[int],
    q: Row,
    p: Row,
    accept: Sequence[Any],
    final: Any,
) -> Choice:
    choice = rule([siblings[i] for i in ranked], q, p, accept, final)
    if choice.sibling is None:
        return choice
    return choice._replace(sibling=ranked[choice.sibling])
