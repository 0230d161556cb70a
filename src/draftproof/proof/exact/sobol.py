"""Sobol's points, the fallback for replayed subjects without thresholds of their own."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from draftproof.proof.exact.exact_law import rounding_error
from draftproof.proof.exact.replay import Replay
from draftproof.proof.exact.rule_law import Enumeration
from draftproof.proof.worlds.law import Text, complete

__all__ = ["sobol_law"]

Floats = npt.NDArray[np.float64]


def sobol_law(replay: Replay, log2_points: int = 13) -> Enumeration:
    """Return a subject's law on unscrambled Sobol points, for any decisions whatever.

    Returns:
        The law's error is an estimate, no bound: four times what the last doubling of the points
        has changed.
    """
    from scipy.stats import qmc

    sampler = qmc.Sobol(max(replay.columns, 1), scramble=False)
    # Each point is the corner of its own cell of the net; its middle treats 0 and 1 alike.
    uniforms = sampler.random_base2(log2_points)[:, : replay.columns] + 0.5 ** (log2_points + 1)
    half, whole = (_sobol_masses(replay, uniforms[:n]) for n in (len(uniforms) // 2, None))
    coarse, fine = (_enumeration(replay, masses, 0.0) for masses in (half, whole))
    return _enumeration(replay, whole, 4 * float(fine.law.total_variation(coarse.law)))


def _sobol_masses(replay: Replay, uniforms: Floats) -> dict[Text | None, Fraction]:
    masses: dict[Text | None, Fraction] = {}
    for chain, weight in enumerate(replay.weights):
        codes = replay.emit(np.full(len(uniforms), chain), uniforms)
        for code, count in zip(*np.unique(codes, return_counts=True), strict=True):
            text = replay.text(int(code))
            mass = weight * Fraction(int(count), len(uniforms))
            masses[text] = masses.get(text, Fraction(0)) + mass
    return masses


def _enumeration(
    replay: Replay, masses: dict[Text | None, Fraction], integration: float
) -> Enumeration:
    length = replay.num_draft + 1
    emitted = [(text, mass) for text, mass in masses.items() if text is not None]
    law = complete(emitted, replay.world, length)
    if law != replay.world.target_law(length):
        law = law.with_error(rounding_error(replay.world, length) + integration)
    mean = sum((len(text) * mass for text, mass in emitted), Fraction(0))
    return Enumeration(law, mean, replay.calls, masses.get(None, Fraction(0)))
