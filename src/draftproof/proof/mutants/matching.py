# ruff: noqa: D102
"""Sample and match: draw from the target at each position, and keep drafts while they match."""

from __future__ import annotations

import numpy as np

from draftproof.proof.mutants.registry import equivalent
from draftproof.proof.mutants.skeleton import Array, Call, Verifier

__all__ = ["ExactMatch"]


@equivalent("exact match")
class ExactMatch(Verifier):
    """Keeps drafts while they equal samples of p, and emits the first sample that differs."""

    def __call__(
        self, draft: Array, q: Array, p: Array, num_draft: Array, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        call = Call(draft, q, p, num_draft, rng)
        u, valid = self.accept_uniforms(call), call.valid
        samples = np.full(valid.shape, -1)
        samples[valid] = self.draw(p[:, :-1][valid], u[valid])
        tau = self.count(call, valid & (samples == draft))
        final, drawn = self.final_uniform(call, u, tau), self.draws_last(call, tau)
        last = np.empty(call.B, dtype=np.int64)
        last[drawn] = self.draw(p[drawn, tau[drawn]], final[drawn])
        last[~drawn] = samples[~drawn, tau[~drawn]]
        return self.emit(call, tau, last)

    def draws_last(self, call: Call, tau: Array) -> Array:
        """Which rows [B] draw their last token; the others emit the sample they stopped at."""
        return tau == call.num_draft
