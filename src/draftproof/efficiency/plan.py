"""How many drafts to make, and which rule to verify them by.

A round with g drafts costs one call of the target and g of the drafter, and emits 1 + E[tau]
tokens. With a drafter that costs ``cost_ratio`` of the target, and a target that checks g + 1
positions for the price of one,

    speed-up(g) = (1 + Pr(tau >= 1) + ... + Pr(tau >= g)) / (1 + g cost_ratio)

(Leviathan, Kalman and Matias, ICML 2023, section 3.3, where Pr(tau >= i) = alpha^i.) Greedy block
is left out: what it keeps after a text's first round is not known from its first. A tree of n nodes
costs the drafter a call for each of its levels and the target one call, so its speed-up is
E[tokens] / (1 + levels cost_ratio); see `draftproof.efficiency.tree`.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.acceptance import AcceptanceRecord
from draftproof.efficiency.chain import survival_along
from draftproof.efficiency.tree import RANKED_RULES, best_shape, mean_by_rank
from draftproof.errors import complaint
from draftproof.types import SparseProbs

__all__ = [
    "Choice",
    "Plan",
    "make_plan",
    "optimal_num_draft",
    "optimal_table",
    "ranks_of_rounds",
    "read_ranks",
    "read_survival",
    "survival_of_rounds",
]

PLANNED_RULES = ("block", "token", "gumbel", "exact-match")
"""Of two that are equally fast the first is chosen."""
MOST_DRAFTS = 1_000
MOST_SIBLINGS = 16


@dataclass(frozen=True)
class Choice:
    """One way to speculate: ``num_draft`` 0 is plain decoding.

    Attributes:
        levels: of a tree, its nodes at depth 1, 2, ...; empty for a chain.
        parents: of a tree, each node's parent, -1 for the root.
    """

    rule: str
    num_draft: int
    expected_tokens: float
    speed_up: float
    levels: tuple[int, ...] = ()
    parents: tuple[int, ...] = ()


@dataclass(frozen=True)
class Plan:
    """Every choice that the data speak of, and the fastest.

    Attributes:
        cost_ratio: cost of one call of the drafter over one of the target.
        best: the fastest choice.
        choices: of each rule, with 0, 1, ... drafts; then trees of 1, 2, ... levels.
        at_edge: whether more drafts than the data hold may be faster still.
    """

    cost_ratio: float
    best: Choice
    choices: tuple[Choice, ...]
    at_edge: bool

    def to_rows(self) -> list[dict[str, Any]]:
        """Return the choices as a table, ready for JSON."""
        return [
            {"cost_ratio": self.cost_ratio, **asdict(choice), "best": choice == self.best}
            for choice in self.choices
        ]

    def to_sentence(self) -> str:
        """Say what to do."""
        best = self.best
        if not best.num_draft:
            return f"at a cost ratio of {self.cost_ratio:g} do not speculate"
        edge = "; the data end there, and more may be faster" if self.at_edge else ""
        tree = f" in a tree of {' + '.join(map(str, best.levels))} nodes" if best.levels else ""
        return (
            f"at a cost ratio of {self.cost_ratio:g} make {best.num_draft} drafts{tree} and "
            f"verify by {best.rule}: {best.expected_tokens:.3g} tokens a round, "
            f"{best.speed_up:.3g} times as fast as without{edge}"
        )


def make_plan(
    survival: Mapping[str, Sequence[float]],
    cost_ratio: float,
    by_rank: Mapping[str, npt.ArrayLike] | None = None,
    num_nodes: int = 64,
) -> Plan:
    """Choose a rule and a number of drafts, in a chain or in a tree.

    Args:
        survival: for each rule Pr(tau >= 1), Pr(tau >= 2), ..., from `survival_of_rounds`,
            `read_survival`, or powers of alpha.
        cost_ratio: cost of one call of the drafter over one of the target, > 0.
        by_rank: for each rule for trees the acceptance of each rank of siblings at each depth,
            [D, K], from `ranks_of_rounds`, `read_ranks` or
            `draftproof.efficiency.tree.ranks_accepted`; a chain alone if it is left out.
        num_nodes: the most nodes that the target checks for the price of one call.

    >>> plan = make_plan({"token": [0.8, 0.64, 0.512, 0.4096]}, cost_ratio=0.1)
    >>> plan.best.num_draft, round(plan.best.speed_up, 3), plan.at_edge
    (4, 2.401, True)
    """
    _check_cost(cost_ratio)
    choices = []
    for rule, kept in survival.items():
        tokens = np.cumsum([1.0, *kept])
        speeds = tokens / (1 + cost_ratio * np.arange(len(tokens)))
        choices += [Choice(rule, g, float(tokens[g]), float(speeds[g])) for g in range(len(tokens))]
    if not choices:
        raise ValueError(
            complaint("survival", "", found="no rule", wanted="at least one", fix="name a rule")
        )
    for rule, table in (by_rank or {}).items():
        for depth in range(1, len(np.asarray(table)) + 1):
            shape = best_shape(table, num_nodes, depth)
            speed = shape.expected_tokens / (1 + cost_ratio * len(shape.levels))
            if len(shape.levels) == depth:
                choices.append(
                    Choice(
                        rule,
                        len(shape.parents),
                        shape.expected_tokens,
                        speed,
                        shape.levels,
                        shape.parents,
                    )
                )
    best = max(choices, key=lambda choice: choice.speed_up)
    deepest = len(best.levels) or best.num_draft
    known = (by_rank or {})[best.rule] if best.levels else survival[best.rule]
    at_edge = 0 < deepest == len(np.asarray(known))
    return Plan(cost_ratio, best, tuple(choices), at_edge)


def survival_of_rounds(
    draft_token_ids: npt.ArrayLike,
    draft_probs: npt.ArrayLike | SparseProbs | None,
    target_probs: npt.ArrayLike,
    num_draft: npt.ArrayLike | None = None,
) -> dict[str, list[float]]:
    """Average, over recorded rounds, the probability that each rule keeps 1, 2, ... drafts.

    Arguments are those of `draftproof.verify`. A depth's average is over the rounds with a draft
    there; it is unbiased where a round's length was chosen without looking at its drafts.
    """
    averages = {}
    for rule in PLANNED_RULES:
        survival = survival_along(draft_token_ids, draft_probs, target_probs, num_draft, rule=rule)
        drafted = ~np.isnan(survival)
        reached = survival[:, drafted.any(axis=0)]
        averages[rule] = np.nanmean(reached, axis=0).tolist() if reached.size else []
    return averages


def ranks_of_rounds(
    draft_token_ids: npt.ArrayLike,
    draft_probs: npt.ArrayLike | None,
    target_probs: npt.ArrayLike,
    num_draft: npt.ArrayLike | None = None,
    *,
    num_siblings: int = MOST_SIBLINGS,
) -> dict[str, npt.NDArray[np.float64]]:
    """Average, over recorded rounds, what each rule for trees accepts of each rank of siblings.

    A depth's average is over the rounds with a draft there: it takes it that acceptance depends on
    a node's depth and rank alone. Nothing is known where the drafter is deterministic.

    Args:
        draft_token_ids, draft_probs, target_probs, num_draft: as for `draftproof.verify`, but with
            every row of q over the target's vocabulary.
        num_siblings: K.
    """
    if draft_probs is None:
        return {}
    q, p, ids = np.asarray(draft_probs), np.asarray(target_probs), np.asarray(draft_token_ids)
    lengths = np.full(len(ids), ids.shape[1]) if num_draft is None else np.asarray(num_draft)
    drafted = [np.flatnonzero(lengths > depth) for depth in range(ids.shape[1])]
    laws = [(p[rows, depth], q[rows, depth]) for depth, rows in enumerate(drafted) if len(rows)]
    return {rule: mean_by_rank(laws, num_siblings, rule) for rule in RANKED_RULES}


def read_ranks(path: Path) -> dict[str, npt.NDArray[np.float64]]:
    """Read what a plan of trees is made from, of a file as `read_survival` takes.

    A record of acceptance speaks of chains alone: for it there is none.
    """
    return ranks_of_rounds(**_load_arrays(path)) if path.suffix == ".npz" else {}


def read_survival(path: Path) -> dict[str, list[float]]:
    """Read what a plan is made from.

    Args:
        path: an ``.npz`` file with the arguments of `survival_of_rounds` by name (no
            ``draft_probs`` for a deterministic drafter), or a JSON file with what
            `draftproof.AcceptanceRecord.to_dict` returned, which speaks of its own rule alone.

    Raises:
        ValueError: a file that holds neither.
    """
    if path.suffix == ".npz":
        return survival_of_rounds(**_load_arrays(path))
    data = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(data, dict):
        fix = "write json.dumps(record.to_dict())"
        raise ValueError(
            complaint(str(path), "", found=f"a {type(data).__name__}", wanted="an object", fix=fix)
        )
    return {"recorded": list(AcceptanceRecord.from_dict(data).acceptance_per_position)}


def _load_arrays(path: Path) -> dict[str, Any]:
    known = ("draft_token_ids", "draft_probs", "target_probs", "num_draft")
    try:
        with path.open("rb") as file, np.load(file) as archive:
            arrays = {name: archive[name] for name in archive.files}
        found = f"arrays {', '.join(arrays) or 'none'}"
    except (ValueError, TypeError, zipfile.BadZipFile) as error:
        arrays, found = {}, f"no archive of arrays ({error})"
    if {"draft_token_ids", "target_probs"} <= arrays.keys() <= {*known}:
        return {"draft_probs": None, **arrays}
    raise ValueError(
        complaint(
            str(path),
            "",
            found=found,
            wanted="draft_token_ids and target_probs, and if you have them draft_probs, num_draft",
            fix="save them with numpy.savez(path, draft_token_ids=..., ...)",
        )
    )


def optimal_num_draft(alpha: float, cost_ratio: float) -> int:
    """Return the fastest number of drafts where each is accepted with probability alpha.

    One more pays while its token, alpha^(g+1), is worth more than its cost: the speed-up rises up
    to one point and falls from there.

    Args:
        alpha: in [0, 1).
        cost_ratio: > 0.

    Source: Leviathan, Kalman and Matias, ICML 2023, section 3.5 and figure 3.

    >>> [optimal_num_draft(alpha, 0.05) for alpha in (0.5, 0.6, 0.7, 0.8, 0.9)]
    [3, 4, 6, 8, 13]
    """
    _check_cost(cost_ratio)
    if not 0 <= alpha < 1:
        fix = "pass the share of drafts that are accepted"
        raise ValueError(complaint("alpha", "", found=alpha, wanted="a number in [0, 1)", fix=fix))
    g, tokens, more = 0, 1.0, alpha
    while more * (1 + g * cost_ratio) > tokens * cost_ratio and g < MOST_DRAFTS:
        g, tokens, more = g + 1, tokens + more, more * alpha
    return g


def optimal_table(alphas: Sequence[float], cost_ratios: Sequence[float]) -> list[dict[str, float]]:
    """Return the fastest number of drafts, what it emits, and its speed-up, for each pair.

    >>> optimal_table([0.8], [0.1])[0]["num_draft"]
    6
    """
    rows: list[dict[str, float]] = []
    for alpha in alphas:
        for ratio in cost_ratios:
            g = optimal_num_draft(alpha, ratio)
            tokens = float((alpha ** np.arange(g + 1)).sum())
            row = {"alpha": alpha, "cost_ratio": ratio, "num_draft": g, "expected_tokens": tokens}
            rows.append({**row, "speed_up": tokens / (1 + g * ratio)})
    return rows


def _check_cost(cost_ratio: float) -> None:
    if not 0 < cost_ratio < np.inf:
        wanted = "a number > 0"
        fix = "divide the time of one call of the drafter by that of one call of the target"
        raise ValueError(complaint("cost_ratio", "", found=cost_ratio, wanted=wanted, fix=fix))
