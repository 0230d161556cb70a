"""Right subjects of every contract, and some that break theirs in a quiet way."""

import numpy as np

from draftproof import verify, verify_greedy
from draftproof.proof.mutants import get

correct = get("token").build()


class Namespace:
    @staticmethod
    def right(draft, q, p, num_draft, rng):
        return correct(draft, q, p, num_draft, rng)


right = Namespace.right
number = 3


def uniforms(draft, q, p, num_draft, accept, final):
    return verify(draft, q, p, num_draft, uniforms=(accept, final))


def single(draft, q, p, rng):
    for i, x in enumerate(draft):
        if rng.random() * q[i, x] >= p[i, x]:
            residual = np.maximum(p[i] - q[i], 0)
            return [*draft[:i], rng.choice(len(residual), p=residual / residual.sum())]
    return [*draft, rng.choice(p.shape[1], p=p[len(draft)])]


def greedy(draft, p, num_draft):
    return verify_greedy(draft, p, num_draft)


def closure():
    return lambda draft, q, p, num_draft, rng: correct(draft, q, p, num_draft, rng)
