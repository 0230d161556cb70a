"""The best that any rule can do, by brute force: one linear program over all couplings."""

# mypy: no-check-untyped-defs
from __future__ import annotations

import itertools

import numpy as np
from scipy.optimize import linprog


def best_acceptance(p, joint):
    """The largest Pr(Y in the siblings) over couplings of Y ~ p with siblings ~ joint.

    Args:
        p: [V].
        joint: {siblings: probability}.
    """
    V, draws = len(p), list(joint)
    hit = -np.array([[float(y in draw) for y in range(V)] for draw in draws]).ravel()
    of_draw = np.kron(np.eye(len(draws)), np.ones(V))
    of_token = np.kron(np.ones(len(draws)), np.eye(V))
    return _solve(hit, np.vstack([of_draw, of_token]), [*map(joint.get, draws), *p])


def best_of_chain(target, draft, num_draft):
    """The largest E[tau] of one round of a lossless rule without state, for Markov chains."""
    V, start = len(target), 0
    texts = list(itertools.product(range(V), repeat=num_draft + 1))
    variables = [
        (drafts, tau, y)
        for drafts in itertools.product(range(V), repeat=num_draft)
        for tau in range(num_draft + 1)
        for y in range(V)
    ]
    index = {drafts: i for i, drafts in enumerate(itertools.product(range(V), repeat=num_draft))}
    equations = np.zeros((len(index) + len(texts), len(variables)))
    for column, (drafts, tau, y) in enumerate(variables):
        equations[index[drafts], column] = 1
        emitted = (*drafts[:tau], y)
        for row, text in enumerate(texts, start=len(index)):
            if text[: tau + 1] == emitted:
                equations[row, column] = _probability(target, text[tau + 1 :], y)
    wanted = [_probability(draft, drafts, start) for drafts in index]
    wanted += [_probability(target, text, start) for text in texts]
    return _solve(np.array([-tau for _, tau, _ in variables]), equations, wanted)


def _probability(chain, text, state):
    product = 1.0
    for token in text:
        product, state = product * chain[state][token], token
    return product


def _solve(cost, equations, wanted):
    result = linprog(cost, A_eq=equations, b_eq=np.array(wanted, dtype=float), method="highs")
    assert result.success, result.message
    return -result.fun
