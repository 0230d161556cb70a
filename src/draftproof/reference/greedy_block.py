"""Greedy block verification: the most drafts that one round can keep, paid for by a state.

Read it beside Sun et al. (ICLR 2025, arXiv 2403.10444), the appendix on greedy block verification.
Names are those of `draftproof.reference.block`, but the joint ratio is never capped:

    r_i = P[0](x_1) ... P[i-1](x_i) / Q[0](x_1) ... Q[i-1](x_i)

A round keeps i drafts with probability min(1, r_i), more than any rule without state can, and in
return emits too little of other texts: until its drafts' positions are filled, the target is what
it has left over. That is lossless if the drafter's law depends on nothing but the text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from draftproof.reference.block import keeps
from draftproof.reference.chain import Emission, Row, recover, residual
from draftproof.reference.draw import inverse_cdf, mass

__all__ = [
    "Discount",
    "State",
    "advance",
    "along",
    "discounted",
    "greedy_block",
    "joint_residual",
    "ratio_after",
    "state_after",
    "target_row",
]


class Discount(NamedTuple):
    """What an earlier round has left over: norm (P - d Q)+ for the next ``remaining`` tokens.

    ``factor`` is d = Q(z) / P(z) for the text z since that round began, under that round's laws.
    """

    remaining: int
    factor: Any


State = tuple[Discount, ...]
"""A text's discounts, that of its earliest round first; a new text has none."""


def discounted(p: Row, q: Row, d: Any) -> Row:
    """Return norm (p - d q)+, whose mass before the division is 1 - d at least.

    The target never writes a text with d >= 1, and any row will do for it.
    """
    left = residual(p, d * q)
    total = mass(left)
    return left / total if d < 1 and total > 0 else p


def target_row(state: State, q: Row, p: Row) -> Row:
    """Return the target's row with all discounts taken off."""
    for _, d in state:
        p = discounted(p, q, d)
    return p


def advance(state: State, token: int, q: Row, p: Row) -> State:
    """Return the state after one more token: d becomes d q/p, with p below its own discount.

    A discount of 0, behind a token with q = 0, is none.
    """
    moved = []
    for remaining, d in state:
        after = d * q[token] / p[token] if p[token] > 0 else 1
        if remaining > 1 and after > 0:
            moved.append(Discount(remaining - 1, after))
        p = discounted(p, q, d)
    return tuple(moved)


def ratio_after(r: Any, p: Any, q: Any) -> Any:
    """r_i = r_{i-1} p/q; 0 for ever after a draft with p = 0."""
    if r == 0 or p == 0:
        return 0
    return r * (p / q) if q > 0 else math.inf


def joint_residual(r: Any, p: Row, q: Row) -> Row:
    """(r p - q)+ up to a factor: with r >= 1 it is (p - q/r)+, which cannot overflow."""
    return residual(p, q / r) if r >= 1 else residual(r * p, q)


def along(
    drafts: Sequence[int], q_rows: Sequence[Row], p_rows: Sequence[Row], state: State
) -> tuple[list[Row], list[Any], list[State]]:
    """Return, along the drafts, the target's discounted rows, r_0..r_g, and the g + 1 states."""
    rows: list[Row] = []
    r: list[Any] = [1]
    states = [state]
    for i, x in enumerate(drafts):
        rows.append(target_row(states[i], q_rows[i], p_rows[i]))
        r.append(ratio_after(r[i], rows[i][x], q_rows[i][x]))
        states.append(advance(states[i], x, q_rows[i], p_rows[i]))
    return rows, r, states


def greedy_block(
    drafts: Sequence[int],
    q_rows: Sequence[Row],
    p_rows: Sequence[Row],
    accept: Sequence[Any],
    final: Any,
    state: State = (),
) -> Emission:
    """Keep the longest block of drafts whose uncapped joint ratio passes its test.

    ::

        P[i] <- norm (P[i] - d Q[i])+ for each discount of the state that reaches as far
        r_0 = 1, r_i = r_{i-1} P[i-1](x_i) / Q[i-1](x_i)
        h_i = S+ / max(S+, S-) for 0 < i < g, with S+ and S- the masses of
              (r_i P[i] - Q[i])+ and (Q[i] - r_i P[i])+
        h_g = r_g
        tau = the largest i with u_i < h_i, or 0
        last token ~ (r_tau P[tau] - Q[tau])+ if tau < g, else P[g]

    Since S- = S+ + 1 - r_i, h_i is block's with r_i for w_i, and 1 where r_i >= 1.

    Args:
        drafts: g token ids; g is at least what remains of each discount.
        q_rows: g rows [V].
        p_rows: g + 1 rows [V] of the model's own.
        accept: g uniforms, one for each draft; consumed from the last down to the one kept.
        final: the uniform of the last token.
        state: what `state_after` returned for the round before.
    """
    g = len(drafts)
    rows, r, _ = along(drafts, q_rows, p_rows, state)
    if g == 0 or accept[g - 1] < r[g]:
        return Emission(g, inverse_cdf(p_rows[g], final))
    tau = g - 1
    left = joint_residual(r[tau], rows[tau], q_rows[tau])
    while tau > 0 and not keeps(r[tau], mass(left), accept[tau - 1]):
        tau -= 1
        left = joint_residual(r[tau], rows[tau], q_rows[tau])
    return recover(tau, left, rows[tau], final)


def state_after(
    drafts: Sequence[int],
    q_rows: Sequence[Row],
    p_rows: Sequence[Row],
    state: State,
    emission: Emission,
) -> State:
    """Return the state that the next round has to be given; arguments as for `greedy_block`.

    The kept drafts and the last token y move the old discounts on. If drafts were rejected, a new
    one with d = Q[tau](y) / (r_tau P[tau](y)) covers the g - tau - 1 positions behind y.
    """
    g, tau, y = len(drafts), emission.num_accepted, emission.last_token
    if tau == g or y is None:
        return ()
    rows, r, states = along(drafts[: tau + 1], q_rows, p_rows, state)
    new = Discount(g - tau - 1, q_rows[tau][y] / (r[tau] * rows[tau][y]))
    moved = advance(states[tau], y, q_rows[tau], p_rows[tau])
    return (*moved, new) if new.remaining and new.factor > 0 else moved
