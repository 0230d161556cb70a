"""The values that papers and plain arithmetic promise, beside what this installation measures.

Every tolerance is derived: none for exact arithmetic, half a unit of the last printed digit for
a rounded value, and `SIGMAS` standard errors, known before the measurement, for a sampled one.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

import draftproof
from draftproof.efficiency import optimum, siblings
from draftproof.efficiency.chain import survival_in
from draftproof.proof.exact.exact_law import exact_law, expected_accepted
from draftproof.proof.exact.tree_law import tree_law
from draftproof.proof.figure import Figure
from draftproof.proof.mutants import get
from draftproof.proof.mutants.block import Block
from draftproof.proof.mutants.skeleton import Call
from draftproof.proof.sampled.joint_test import SEED, joint_test
from draftproof.proof.worlds.catalogue import WORLDS
from draftproof.proof.worlds.tree_world import TREE_WORLDS, TreeWorld
from draftproof.proof.worlds.world import World
from draftproof.trees import TREE_RULES, Draws, sample_siblings

__all__ = ["ROWS", "SEQUENCES", "SIGMAS", "reproduce"]

SEQUENCES = 300_000
ROWS = 400_000
SIGMAS = 4.9
"""A right verifier misses one sampled figure with probability 1e-6 (two-sided normal tail)."""

_SAMPLED = f"{SIGMAS} standard errors"
_LEVIATHAN = "Leviathan, Kalman, Matias, ICML 2023"
_SUN = "Sun et al., ICLR 2025"
_DALIRI = "Daliri, Musco, Suresh, arXiv 2408.07978"
_P = np.array([0.5, 0.3, 0.15, 0.05])
_UNIFORM = np.full(4, 0.25)
_CONTROLS_OFF_BY = {"resample p on a rejection": 0.1848, "one uniform for all": 0.0736}
_ROUNDED = "half a unit of the last digit printed"

Array = npt.NDArray[Any]


def reproduce(
    *, sequences: int = SEQUENCES, rows: int = ROWS, seed: int = SEED
) -> Iterator[Figure]:
    """Yield each expected value with what was measured.

    Args:
        sequences: texts of the joint test, for our verifier and for each control.
        rows: rows of the experiment with four tokens.
        seed: of all that is drawn.
    """
    yield from accepted_drafts()
    yield from block_against_token()
    yield from hierarchical_block()
    yield from accepted_siblings()
    yield from accepted_in_trees()
    yield from accepted_by_siblings(rows // 400, seed)
    yield from joint_law(sequences, seed)
    yield from four_tokens(rows, seed)
    yield from tokens_per_call(rows, seed)
    yield from corners(seed)


def accepted_drafts() -> Iterator[Figure]:
    """E[tau] in two worlds by exact enumeration, against values worked out by hand."""
    for world, rule, num_draft, expected in (
        ("L4", "token", 1, Fraction(3, 4)),
        ("L4", "token", 2, Fraction(21, 16)),
        ("L4", "block", 1, Fraction(3, 4)),
        ("L4", "block", 2, Fraction(11, 8)),
        ("toy", "token", 2, Fraction(10, 9)),
        ("toy", "block", 2, Fraction(11, 9)),
        ("toy", "greedy-block", 2, Fraction(4, 3)),
        ("toy", "gumbel", 2, Fraction(10, 9)),
    ):
        measured = expected_accepted(rule, WORLDS[world], num_draft)
        name = f"E[tau] of {rule} on {world}, g = {num_draft}"
        source = {"token": _LEVIATHAN, "gumbel": _DALIRI}.get(rule, _SUN)
        yield Figure(name, expected, measured, source)


def block_against_token() -> Iterator[Figure]:
    """E[tau] over drafters and lengths: the rules run in rationals, against their closed forms."""
    for eighths in (3, 4, 6):
        world = World.chain([(2, 6)] * 2, [(eighths, 8 - eighths)] * 2)
        target, draft = (np.array(law, dtype=object) for law in (world.target, world.draft))
        for num_draft in (1, 2, 3):
            for rule, source in (("token", _LEVIATHAN), ("block", _SUN)):
                kept = survival_in(target, draft, num_draft, rule=rule)
                measured = expected_accepted(rule, world, num_draft)
                name = f"E[tau] of {rule}, P = (1/4, 3/4), Q(0) = {eighths}/8, g = {num_draft}"
                yield Figure(name, sum(kept, Fraction(0)), measured, source)


class _Hierarchical(Block):
    """Block, but a whole draft is tested by p(x) / q(x), without block's cap on the way."""

    def thresholds(self, call: Call) -> Array:
        h: Array = super().thresholds(call)
        p, q = call.drafted()
        joint = np.prod(np.divide(p, q, out=np.ones_like(p), where=q > 0), axis=1)
        rows = np.flatnonzero(call.num_draft)
        h[rows, call.num_draft[rows] - 1] = joint[rows]
        return h


def hierarchical_block() -> Iterator[Figure]:
    """How far the joint law of three tokens is off where the cap is left out of the last test."""
    law = exact_law(_Hierarchical(), WORLDS["toy"], 2)
    measured = law.total_variation(WORLDS["toy"].target_law(3))
    yield Figure("total variation of block, last test by p(x) / q(x), toy, g = 2", Fraction(1, 9),
                 measured, "path (1, 0), of mass 2/9, is kept always in place of every other time",
                 tolerance=float(law.error), why="the rounding of its float64 rows")  # fmt: skip


def accepted_siblings() -> Iterator[Figure]:
    """Acceptance of two iid siblings on the first row of L4, by each rule's closed form."""
    p, q = (np.array(rows[0], dtype=object) for rows in (WORLDS["L4"].target, WORLDS["L4"].draft))
    for rule, expected, source in (
        (siblings.nss, Fraction(231, 512), "EAGLE, arXiv 2401.15077"),
        (siblings.naive_tree, Fraction(99, 128), "Hu et al., arXiv 2502.18779"),
        (siblings.rrs, Fraction(13, 16), "SpecInfer, arXiv 2305.09781"),
        (siblings.hu_greedy, Fraction(7, 8), "Hu et al., arXiv 2502.18779"),
        (optimum.iid, Fraction(223, 256), "Hu et al., arXiv 2502.18779"),
    ):
        name = rule.__name__.replace("_", "-") if rule is not optimum.iid else "the best rule"
        yield Figure(f"acceptance of {name}, 2 siblings, L4", expected, rule(p, q, 2), source)
    measured = siblings.k_seq(p.astype(float), q.astype(float), 2)
    yield Figure("acceptance of k-seq, 2 siblings, L4", 0.83768, float(measured),
                 "SpecTr, arXiv 2310.15141", tolerance=5e-6, why=_ROUNDED)  # fmt: skip


def accepted_in_trees() -> Iterator[Figure]:
    """E[tau] of whole trees, enumerated in rationals."""
    world = World.chain([(3, 4, 3)] * 3, [(6, 3, 1)] * 3)
    pair = TreeWorld(world, (2,), Draws.WITHOUT_REPLACEMENT)
    source = "worked out by hand"
    yield Figure("E[tau] of traversal, 2 siblings, P = (.3, .4, .3), Q = (.6, .3, .1)",
                 Fraction(7, 8), tree_law("traversal", pair).emitted - 1, source)  # fmt: skip
    toy = TREE_WORLDS["toy, 2 x 2, iid"]
    P, Q = (np.array(rows[0], dtype=object) for rows in (toy.world.target, toy.world.draft))
    once = siblings.rrs(P, Q, 2)
    yield Figure("E[tau] of rrs, a tree of 2 x 2, toy", once + once**2,
                 tree_law("rrs", toy).emitted - 1, "a + a^2, a = rrs's acceptance")  # fmt: skip


def accepted_by_siblings(rows: int, seed: int) -> Iterator[Figure]:
    """Acceptance over the number of siblings at V = 1,000: verified trees, against closed forms."""
    rng = np.random.default_rng(seed)
    V = 1_000
    logits = 2 * rng.standard_normal(V)
    p, q = (np.exp(law) / np.exp(law).sum() for law in (logits, logits + rng.standard_normal(V)))
    for rule, closed_form, numbers in (
        ("nss", siblings.nss, (2, 4, 8)),
        ("naive-tree", siblings.naive_tree, (2, 4, 8)),
        ("rrs", siblings.rrs, (2, 4, 8)),
        ("rrsw", siblings.rrsw, (2,)),
        ("k-seq", siblings.k_seq, (2, 4, 8)),
        ("hu-greedy", siblings.hu_greedy, (2, 4, 8)),
    ):
        draws = Draws.IID if rule == "nss" else TREE_RULES[rule].draws[0]
        for K in numbers:
            tree = sample_siblings(np.broadcast_to(q, (rows, V)), K, rng, draws=draws)
            result = draftproof.verify_tree(
                tree, np.broadcast_to(p, (rows, K + 1, V)), rng, rule=rule
            )
            expected = float(closed_form(p, q, K))
            chance = np.log(2e6) / rows
            error = chance / 3 + np.sqrt((chance / 3) ** 2 + 2 * chance * expected * (1 - expected))
            yield Figure(f"acceptance of {rule}, {K} siblings, V = 1,000, {rows:,} rows", expected,
                         float(result.num_accepted.mean()), "its closed form",
                         tolerance=float(error), why="Bernstein's inequality at 1e-6")  # fmt: skip


def joint_law(sequences: int, seed: int) -> Iterator[Figure]:
    """Chi-square of the joint law of three tokens: our verifier below its point, controls above."""
    ours = joint_test(draftproof.verify, sequences=sequences, seed=seed)
    source = "chi-square law, 63 degrees of freedom, upper 0.1 % point"
    yield Figure("threshold of 64 cells", 103.4, ours.threshold, source,
                 tolerance=0.05, why=_ROUNDED)  # fmt: skip
    yield Figure(f"chi-square of verify, {sequences:,} sequences", ours.threshold, ours.statistic,
                 source, relation="<")  # fmt: skip
    # |TV(seen, p) - TV(law, p)| <= TV(seen, law), whose mean is below sqrt(cells / n) / 2, and
    # which exceeds its mean by t with probability exp(-2 n t^2) (McDiarmid).
    noise = np.sqrt(64 / sequences) / 2 + np.sqrt(np.log(1e6) / (2 * sequences))
    for name, exact in _CONTROLS_OFF_BY.items():
        result = joint_test(get(name).build(), sequences=sequences, seed=seed)
        yield Figure(f"chi-square of a control: {name}", ours.threshold, result.statistic, source,
                     relation=">=")  # fmt: skip
        yield Figure(f"total variation of a control: {name}", exact, result.total_variation,
                     "exact enumeration", tolerance=float(noise),
                     why=f"McDiarmid's inequality at 1e-6, {sequences:,} sequences")  # fmt: skip


def four_tokens(rows: int, seed: int) -> Iterator[Figure]:
    """Measure p = (.5 .3 .15 .05), q uniform, three drafts: alpha = .70, and what a call emits."""
    tau = _accepted(_P, _UNIFORM, 3, rows, seed)
    length = np.arange(4)
    source = "alpha = sum min(p, q), E[tokens] = (1 - alpha^4) / (1 - alpha)"
    for name, expected, worth in (
        ("alpha: first drafts accepted", 0.70, (length > 0) * 1.0),
        ("tokens that a call emits", 2.533, length + 1.0),
        ("the same without the bonus", 2.19, np.minimum(length + 1.0, 3)),
    ):
        yield _mean(f"{name}, {rows:,} rows", expected, worth, tau, 0.7, 0.0005, source)


def tokens_per_call(rows: int, seed: int) -> Iterator[Figure]:
    """Measure E[tokens] = (1 - alpha^(g+1)) / (1 - alpha), where every row accepts with alpha."""
    for alpha, g, expected in ((0.6, 2, 1.96), (0.7, 3, 2.53), (0.8, 5, 3.69), (0.9, 10, 6.86)):
        half = np.array([alpha / 2, 1 - alpha / 2])  # against its reverse: sum min(p, q) = alpha
        tau = _accepted(half, half[::-1], g, rows // 4, seed)
        name = f"E[tokens], alpha = {alpha}, g = {g}, {rows // 4:,} rows"
        yield _mean(name, expected, np.arange(g + 1) + 1.0, tau, alpha, 0.005, _LEVIATHAN)


def _accepted(p: Array, q: Array, g: int, rows: int, seed: int) -> Array:
    """Verify g drafts from q, the same law at every position, and count the accepted ones."""
    rng = np.random.default_rng(seed)
    V = len(p)
    q_rows, p_rows = np.broadcast_to(q, (rows, g, V)), np.broadcast_to(p, (rows, g + 1, V))
    return draftproof.verify(_draw(q_rows, rng), q_rows, p_rows, rng=rng).num_accepted


def _mean(
    name: str, expected: float, worth: Array, tau: Array, alpha: float, digit: float, source: str
) -> Figure:
    """Compare the mean worth of tau with the one expected, which was rounded to 2 ``digit``."""
    g = len(worth) - 1
    law = np.append((1 - alpha) * alpha ** np.arange(g), alpha**g)
    error = np.sqrt(law @ (worth - law @ worth) ** 2 / len(tau))
    return Figure(
        name, expected, float(worth[tau].mean()), source,
        tolerance=float(SIGMAS * error + digit), why=f"{_SAMPLED}, and {_ROUNDED}",
    )  # fmt: skip


def corners(seed: int) -> Iterator[Figure]:
    """Count what differs where there is only one right answer."""
    B, K, V = 2_000, 3, 4
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(V), size=(B, K + 1))
    drafts = _draw(p[:, :K], rng)
    source = "the rule itself"

    equal = draftproof.verify(drafts, p[:, :K], p, rng=rng)
    yield Figure("p = q: rejected drafts", 0, int((equal.num_accepted < K).sum()), source)

    empty = draftproof.verify(drafts[:0], p[:0, :K], p[:0], rng=rng)
    shapes = (empty.token_ids.shape, empty.num_emitted.shape)
    yield Figure("empty batch: shapes other than (0, K+1) and (0,)", 0,
                 int(shapes != ((0, K + 1), (0,))), source)  # fmt: skip

    argmax = rng.integers(0, V, size=(B, K + 1))
    guesses = np.where(rng.random((B, K)) < 0.7, argmax[:, :K], drafts)
    q = np.full((B, K, V), 1 / V)
    sharp = draftproof.verify(guesses, q, np.eye(V)[argmax], rng=rng)
    run = np.logical_and.accumulate(guesses == argmax[:, :K], axis=1).sum(axis=1)
    wanted = np.where(np.arange(K + 1) <= run[:, None], argmax, -1)
    wrong = int((sharp.token_ids != wanted).any(axis=1).sum())
    yield Figure("one-hot target: rows other than its argmaxes", 0, wrong, source)
    yield from _no_drafts(rng, source)


def _no_drafts(rng: np.random.Generator, source: str) -> Iterator[Figure]:
    rows, V = 40_000, len(_P)
    nothing = np.empty((rows, 0), dtype=np.int64)
    p = np.broadcast_to(_P, (rows, 1, V))
    result = draftproof.verify(nothing, np.empty((rows, 0, V)), p, rng=rng)
    yield Figure("no drafts: rows with other than one token", 0,
                 int((result.num_emitted != 1).sum()), source)  # fmt: skip
    for token, probability in enumerate(_P):
        error = float(np.sqrt(probability * (1 - probability) / rows))
        yield Figure(f"no drafts: share of token {token}, {rows:,} rows", float(probability),
                     float((result.token_ids == token).mean()), source,
                     tolerance=SIGMAS * error, why=_SAMPLED)  # fmt: skip


def _draw(law: Array, rng: np.random.Generator) -> Array:
    """One token from each row of law [..., V]."""
    edges = law[..., :-1].cumsum(axis=-1)
    return np.asarray((edges <= rng.random((*law.shape[:-1], 1))).sum(axis=-1))
