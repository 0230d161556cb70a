"""The exact law of a verifier of trees, by the interval oracle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from draftproof.proof.exact.exact_law import BOUNDARY, Enumeration, rounding_error
from draftproof.proof.exact.generator import NotDrivable
from draftproof.proof.exact.interval import MAX_PATHS, OracleGenerator, Path, explore
from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.subjects.emission import ContractBroken
from draftproof.proof.subjects.raised import phrase
from draftproof.proof.subjects.subject import Subject
from draftproof.proof.trees.call import DrawnTree, call_subject
from draftproof.proof.worlds.law import Text, complete
from draftproof.proof.worlds.logits_world import LogitsWorld
from draftproof.proof.worlds.tree_world import Choose, TreeWorld

__all__ = ["draw_tree", "oracle_tree_law", "text_length"]


def draw_tree(world: TreeWorld, text: Text, choose: Choose) -> DrawnTree:
    """Draw a whole tree after a text, level by level; laws of leaves' children are NaN.

    In a world of logits it has these, and the request.
    """
    tokens: list[int] = []
    parents: list[int] = []
    prefixes: list[Text] = [()]
    for depth in range(world.depth):
        for context in [c for c, prefix in enumerate(prefixes) if len(prefix) == depth]:
            prefix = prefixes[context]
            drawn = world.siblings(text + prefix, depth, choose)
            tokens += drawn
            parents += [context - 1] * len(drawn)
            prefixes += [(*prefix, token) for token in drawn]
    leaves = [context for context in range(len(prefixes)) if context - 1 not in parents]
    if isinstance(world.world, LogitsWorld):
        q, p, request = world.world.contexts(text, prefixes)
    else:
        rows = [world.world.row(text + prefix) for prefix in prefixes]
        q, p, request = world.laws[0][rows], world.laws[1][rows], None
    q[leaves] = np.nan
    return DrawnTree(tuple(tokens), tuple(parents), q, p, request)


def oracle_tree_law(
    subject: Subject, *worlds: TreeWorld, max_paths: int = MAX_PATHS
) -> Enumeration:
    """Enumerate a verifier of siblings or of trees, run on float64 laws.

    Args:
        subject: see `draftproof.proof.trees.call`.
        worlds: where the tree of each call grows, with one generator for all calls, each going on
            where the one before ended; of one world, and the draws that the subject asks for.
        max_paths: runs that this may take.

    Returns:
        The law of `text_length` tokens, completed from the target. `Law.error` is 0 if it equals
        the target's, else a bound on what rounding explains.

    Raises:
        NotDrivable: the subject does more with its uniforms than compare them.
        ContractBroken: it returns what its contract forbids.
    """

    def program(path: Path) -> Text:
        rng = OracleGenerator()
        text: Text = ()
        for world in worlds:
            text += call_subject(subject, draw_tree(world, text, path.choose), rng)
        return text

    masses: dict[Text, Fraction] = {}
    paths, emitted, boundary = 0, Fraction(0), Fraction(0)
    for result, weight in explore(program, max_paths):
        paths += 1
        if not isinstance(result, Exception):
            masses[result] = masses.get(result, Fraction(0)) + weight
            emitted += len(result) * weight
            continue
        boundary += weight
        if boundary >= BOUNDARY:
            if isinstance(result, ContractBroken):
                raise result
            raise NotDrivable(f"The subject raises {phrase(result)} on intervals.") from result
    length, world = text_length(subject, worlds), worlds[0].world
    run = Enumeration(complete(masses.items(), world, length), emitted, paths, boundary)
    if run.law == world.target_law(length):
        return run
    error = rounding_error(world, length) * (1 + max(sum(w.branching) for w in worlds))
    return replace(run, law=run.law.with_error(error))


def text_length(subject: Subject, worlds: Sequence[TreeWorld]) -> int:
    """Return how many tokens calls emit at most, one in each of these worlds."""
    if subject.contract is Contract.SIBLINGS:
        return len(worlds)
    return sum(world.depth + 1 for world in worlds)
