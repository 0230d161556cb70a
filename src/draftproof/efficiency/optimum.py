"""The most that any lossless rule can accept at one node, for the drafts' law.

A rule accepts if the target's token is among the siblings, so it cannot do better than

    1 + min over sets H of tokens of [P(H) - Pr(all siblings lie in H)],

and by duality of linear programs some rule does as well (Hu et al., arXiv 2502.18779). For the
draws below Pr(all in H) grows the faster the larger H is already, so the best H takes the tokens
with the smallest P/Q, and V + 1 sets are enough.
"""

from __future__ import annotations

import numpy as np

from draftproof.efficiency.one_draft import Array, shares

__all__ = ["iid", "without_replacement"]


def iid(p: Array, q: Array, num_siblings: int) -> Array:
    """Return the optimum for K independent draws from q: Pr(all in H) = Q(H)^K."""
    p, q = _by_ratio(p, q)
    return _best(p, np.cumsum(q, axis=-1) ** num_siblings)


def without_replacement(p: Array, q: Array) -> Array:
    """Return the optimum for two draws from q without replacement.

    Pr(both in H) is the sum over x before y in H of Q(x) Q(y) (1/(1 - Q(x)) + 1/(1 - Q(y))). If q
    is certain of a token there is no second draw.
    """
    p, q = _by_ratio(p, q)
    odds = q / np.where(q < 1, 1 - q, 1)
    added = odds * (np.cumsum(q, axis=-1) - q) + q * (np.cumsum(odds, axis=-1) - odds)
    return _best(p, np.cumsum(np.where(q < 1, added, 1), axis=-1))


def _by_ratio(p: Array, q: Array) -> tuple[Array, Array]:
    order = np.argsort(shares(p, q), axis=-1, kind="stable")
    return np.take_along_axis(p, order, axis=-1), np.take_along_axis(q, order, axis=-1)


def _best(p: Array, all_inside: Array) -> Array:
    """1 + the least of P(H) - Pr(all in H) over the prefixes H, the empty one too."""
    return 1 + np.minimum((np.cumsum(p, axis=-1) - all_inside).min(axis=-1), 0)
