"""Laws of large vocabularies, and wrong ones beside them."""

import numpy as np


def random_rows(rng, S, V):
    """Peaked targets [S, V], and drafts that differ from them by noise in the logits."""
    logits = 2 * rng.normal(size=(S, V))
    return softmax(logits), softmax(logits + 1.5 * rng.normal(size=(S, V)))


def softmax(logits):
    weights = np.exp(logits)
    return weights / weights.sum(axis=1, keepdims=True)


def resampling(p, q):
    """What comes of drawing from p after a rejection."""
    kept = np.minimum(p, q)
    return kept + (1 - kept.sum(axis=1, keepdims=True)) * p


def lenient(p, q, by=1.2):
    """What comes of accepting with probability min(1, by * p / q)."""
    kept = np.minimum(q, by * p)
    residual = np.maximum(p - q, 0)
    residual /= residual.sum(axis=1, keepdims=True)
    return kept + (1 - kept.sum(axis=1, keepdims=True)) * residual


def at_distance(p, law, total_variation):
    """Mix p and a law so that each row is this far from p."""
    distance = np.abs(law - p).sum(axis=1, keepdims=True) / 2
    return p + (law - p) * total_variation / distance


def draw(law, states, rng):
    """One token for each state."""
    edges = law.cumsum(axis=1)
    edges[:, -1] = np.inf
    ids = np.empty(len(states), dtype=np.int64)
    for s in range(len(law)):
        rows = np.flatnonzero(states == s)
        ids[rows] = np.searchsorted(edges[s], rng.random(len(rows)), side="right")
    return ids
