"""Points for subjects that can be replayed: a known rule's own cells, their edges, and Sobol's.

For a rule that is known to be right, a point in each of its cells, weighted by the cell's width,
integrates it exactly: zero distance is a proof for that world. For an unknown subject it is
necessary, not sufficient: a threshold that is off, but crosses no point, does not show.
`proof.exact.bisection` finds the subject's own thresholds; these points are the check beside
it, and Sobol's the fallback for subjects without thresholds of their own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from draftproof.proof.exact.bisection import ONE
from draftproof.proof.exact.exact_law import rounding_error
from draftproof.proof.exact.generator import NotDrivable
from draftproof.proof.exact.interval import OracleGenerator, Path, explore
from draftproof.proof.exact.replay import Replay
from draftproof.proof.exact.rule_law import Enumeration, Rule
from draftproof.proof.worlds.law import Text, complete
from draftproof.proof.worlds.world import World

__all__ = ["Disagreement", "disagreements", "lattice_law", "rule_thresholds", "sobol_law"]

Floats = npt.NDArray[np.float64]


def rule_thresholds(rule: Rule, world: World, drafts: Sequence[int]) -> list[list[Fraction]]:
    """Return what a rule compares its uniforms with: g lists for the drafts', one for the last.

    Each is sorted and starts with 0 and ends with 1.

    >>> from draftproof.proof.exact.exact_law import RULES
    >>> from draftproof.proof.worlds.catalogue import WORLDS
    >>> rule_thresholds(RULES["token"], WORLDS["toy"], [0])[0]
    [Fraction(0, 1), Fraction(1, 2), Fraction(1, 1)]
    """
    q, p = world.rows(drafts)

    def program(path: Path) -> list[tuple[Fraction, Fraction]]:
        uniforms = OracleGenerator().random(len(drafts) + 1)
        rule(drafts, q, p, uniforms[:-1], uniforms[-1])
        return [path.interval(u) for u in uniforms]

    edges: list[set[Fraction]] = [{Fraction(0), Fraction(1)} for _ in range(len(drafts) + 1)]
    for intervals, _ in explore(program):
        assert not isinstance(intervals, Exception)
        for known, interval in zip(edges, intervals, strict=True):
            known.update(interval)
    return [sorted(known) for known in edges]


def lattice_law(replay: Replay, rule: Rule, refine: int = 1) -> Enumeration:
    """Return a subject's law as the cells of a rule see it.

    Args:
        replay: a subject that consumes one uniform for each of K drafts, then one for the last
            token.
        rule: whose cells: a value of `draftproof.proof.exact.exact_law.RULES`.
        refine: parts that each cell is cut into.

    Raises:
        NotDrivable: the subject consumes another number of uniforms.
    """
    masses: dict[Text | None, Fraction] = {}
    for chain, columns in _columns(replay, rule):
        cells = [_cut(edges, refine) for edges in columns]
        points = [[float(low + high) / 2 for low, high in cut] for cut in cells]
        codes = _emit(replay, chain, points)
        widths = itertools.product(*([high - low for low, high in cut] for cut in cells))
        for code, sides in zip(codes, widths, strict=True):
            mass = replay.weights[chain]
            for side in sides:
                mass *= side
            text = replay.text(code)
            masses[text] = masses.get(text, Fraction(0)) + mass
    return _enumeration(replay, masses, 0.0)


@dataclass(frozen=True)
class Disagreement:
    """A call whose tokens are not the reference's; ``emitted`` is None for an exception."""

    drafts: Text
    uniforms: tuple[float, ...]
    emitted: Text | None
    expected: Text


def disagreements(replay: Replay, rule: Rule) -> Iterator[Disagreement]:
    """Compare a subject with a reference at the edges of the reference's cells.

    The points are 0, the largest uniform, and both neighbours of each true threshold, in all
    combinations. Both sides see float64 rows. A right rule may decide the event u = threshold the
    other way round, so a disagreement is no fault of the law; a verifier that promises to equal
    the reference has none.

    Raises:
        NotDrivable: see `lattice_law`.
    """
    g = replay.num_draft
    for chain, columns in _columns(replay, rule):
        points = [_neighbours(edges) for edges in columns]
        codes = _emit(replay, chain, points)
        drafts = replay.drafts[chain]
        q, p = replay.world.arrays(drafts)
        for code, uniforms in zip(codes, itertools.product(*points), strict=True):
            emission = rule(drafts, q, p, np.array(uniforms[:g]), uniforms[-1])
            assert emission.last_token is not None, "rows of a world have mass"
            expected = (*drafts[: emission.num_accepted], emission.last_token)
            emitted = replay.text(code)
            if emitted != expected:
                yield Disagreement(drafts, uniforms, emitted, expected)


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


def _columns(replay: Replay, rule: Rule) -> Iterator[tuple[int, list[list[Fraction]]]]:
    """Yield each chain of drafts with the edges of the rule's cells by column of the script."""
    unread = [[Fraction(0), Fraction(1)]] * (replay.max_draft - replay.num_draft)
    if replay.columns != replay.max_draft + 1:
        raise NotDrivable(
            f"The subject consumes {replay.columns} uniforms a row, not {replay.max_draft + 1}."
        )
    for chain, drafts in enumerate(replay.drafts):
        *accept, final = rule_thresholds(rule, replay.world, drafts)
        yield chain, [*accept, *unread, final]


def _cut(edges: Sequence[Fraction], parts: int) -> list[tuple[Fraction, Fraction]]:
    cells = []
    for low, high in itertools.pairwise(edges):
        width = (high - low) / parts
        cells += [(low + i * width, low + (i + 1) * width) for i in range(parts)]
    return cells


def _neighbours(edges: Sequence[Fraction]) -> list[float]:
    """0, the largest uniform, and the last uniform below and the first at or above each edge."""
    first = [-int(-edge * ONE // 1) for edge in edges]
    steps = {step for at in first for step in (at - 1, at) if 0 <= step < ONE}
    return [step / ONE for step in sorted(steps)]


def _emit(replay: Replay, chain: int, points: Sequence[Sequence[float]]) -> list[int]:
    uniforms = np.array(list(itertools.product(*points))).reshape(-1, len(points))
    return [int(code) for code in replay.emit(np.full(len(uniforms), chain), uniforms)]


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
