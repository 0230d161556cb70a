"""Verifiers of known worth: a right one in vectorised NumPy, and wrong ones the judge must reject.

All share one skeleton, `verifier`, and differ in one of its two choices, so that a control fails
for the fault in its name and for nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["CONTROLS", "correct", "verifier"]

Array = npt.NDArray[Any]
AcceptUniforms = Callable[[np.random.Generator, int, int], Array]
"""(rng, B, K) -> [B, K], the uniforms of the accept tests."""
RecoveryLaw = Callable[[Array, Array], Array]
"""(p [B, V], q [B, V]) -> [B, V], the unnormalised law of the token after a rejection."""
Verifier = Callable[[Array, Array, Array, Array, np.random.Generator], tuple[Array, Array]]


def independent_uniforms(rng: np.random.Generator, B: int, K: int) -> Array:
    """One uniform for each position, as the proof of losslessness needs."""
    return rng.random((B, K))


def shared_uniform(rng: np.random.Generator, B: int, K: int) -> Array:
    """One uniform for all positions of a row: an accepted draft then favours the next one."""
    return np.broadcast_to(rng.random((B, 1)), (B, K))


def residual(p: Array, q: Array) -> Array:
    """max(0, p - q): what accepted drafts have left of p."""
    return np.asarray(np.maximum(p - q, 0))


def target_row(p: Array, q: Array) -> Array:
    """P itself: drafts that q proposes too rarely stay too rare."""
    return p


def verifier(
    accept_uniforms: AcceptUniforms = independent_uniforms,
    recovery_law: RecoveryLaw = residual,
) -> Verifier:
    """Build a verifier by its choice of uniforms and of recovery law; the defaults are lossless.

    Returns:
        A subject for `draftproof.proof.joint_test`. It consumes its accept uniforms, then
        ``rng.random((B, 1))`` for the last tokens.
    """

    def verify(
        draft_token_ids: Array,
        draft_probs: Array,
        target_probs: Array,
        num_draft: Array,
        rng: np.random.Generator,
    ) -> tuple[Array, Array]:
        B, K = draft_token_ids.shape
        rows, positions = np.arange(B), np.arange(K)
        u = accept_uniforms(rng, B, K)
        p = target_probs[rows[:, None], positions, draft_token_ids]
        q = draft_probs[rows[:, None], positions, draft_token_ids]
        accept = (positions < num_draft[:, None]) & (p > 0) & (u * q < p)
        tau = np.logical_and.accumulate(accept, axis=1).sum(axis=1)

        last_law = target_probs[rows, tau]
        rejected = np.flatnonzero(tau < num_draft)
        at = tau[rejected]
        last_law[rejected] = recovery_law(last_law[rejected], draft_probs[rejected, at])
        cumulative = last_law.cumsum(axis=1)
        threshold = rng.random((B, 1)) * cumulative[:, -1:]

        token_ids = np.full((B, K + 1), -1, dtype=np.int64)
        token_ids[:, :K] = np.where(positions < tau[:, None], draft_token_ids, -1)
        token_ids[rows, tau] = (cumulative <= threshold).sum(axis=1)
        return token_ids, tau + 1

    return verify


correct: Verifier = verifier()

CONTROLS: Mapping[str, Verifier] = MappingProxyType(
    {
        "resample p on a rejection": verifier(recovery_law=target_row),
        "one uniform for all": verifier(accept_uniforms=shared_uniform),
    }
)
"""Wrong on purpose, by what each does: a test that does not reject them all has no power.

On the joint test's chains their exact total variation is 0.1848 and 0.0736."""
