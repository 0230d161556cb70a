"""The checks: each one looks at a subject in its own way and yields findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from draftproof.proof.checks.behaviour import BEHAVIOUR
from draftproof.proof.checks.decoders import GENERATE, OWN_MODELS, ROUND
from draftproof.proof.checks.driven import check_bisection
from draftproof.proof.checks.greedy import check_greedy
from draftproof.proof.checks.logits import (
    check_logits_bisection,
    check_logits_calls,
    check_logits_engine,
    check_logits_joint,
    check_logits_oracle,
    check_logits_padding,
    check_logits_pairs,
)
from draftproof.proof.checks.logits_behaviour import (
    check_logits_bad_rows,
    check_logits_habits,
    check_logits_lacks,
    check_logits_seeds,
)
from draftproof.proof.checks.oracle import (
    check_oracle,
    check_oracle_calls,
    check_oracle_pairs,
)
from draftproof.proof.checks.practice import check_practice
from draftproof.proof.checks.sampled import (
    check_few_rows,
    check_joint,
    check_ragged,
    check_rounds,
    check_rows,
    check_seeds,
)
from draftproof.proof.checks.scorecard import check_scorecard
from draftproof.proof.checks.trees import check_tree_calls, check_tree_joint, check_tree_oracle
from draftproof.proof.checks.wide import check_cuts, check_witnesses
from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.subjects.subject import Subject
from draftproof.proof.trial.examination import Check
from draftproof.proof.trial.plan import Plan
from draftproof.proof.verdicts.finding import Finding, Outcome

__all__ = ["CHECKS", "ORACLE", "checks_for", "is_proven"]

ORACLE: Mapping[str, Check] = MappingProxyType(
    {
        "oracle": check_oracle,
        "oracle-pairs": check_oracle_pairs,
        "oracle-calls": check_oracle_calls,
    }
)
"""The strongest evidence, which spares a subject most of the rest."""

_SAMPLERS: Mapping[str, Check] = MappingProxyType(
    {
        **ORACLE,
        "bisection": check_bisection,
        "cuts": check_cuts,
        **BEHAVIOUR,
        "joint": check_joint,
        "ragged": check_ragged,
        "rounds": check_rounds,
        "few-rows": check_few_rows,
        "rows": check_rows,
        "seeds": check_seeds,
        "witnesses": check_witnesses,
        "scorecard": check_scorecard,
    }
)

_TREES: Mapping[str, Check] = MappingProxyType(
    {
        "tree-oracle": check_tree_oracle,
        "tree-calls": check_tree_calls,
        "tree-joint": check_tree_joint,
    }
)

_LOGITS: Mapping[str, Check] = MappingProxyType(
    {
        "logits-engine": check_logits_engine,
        "logits-oracle": check_logits_oracle,
        "logits-pairs": check_logits_pairs,
        "logits-calls": check_logits_calls,
        "logits-padding": check_logits_padding,
        "logits-habits": check_logits_habits,
        "logits-lacks": check_logits_lacks,
        "logits-bad-rows": check_logits_bad_rows,
        "logits-seeds": check_logits_seeds,
        "logits-bisection": check_logits_bisection,
        "logits-joint": check_logits_joint,
    }
)

_DECODERS: Mapping[Contract, Mapping[str, Check]] = MappingProxyType(
    {Contract.ROUND: ROUND, Contract.GENERATE: GENERATE}
)

EXACT = (
    *ORACLE, "tree-oracle", "tree-calls",
    "logits-oracle", "logits-pairs", "logits-calls", "logits-padding",
)  # fmt: skip
"""The checks by which a law is proven."""


def _by_contract(name: str, other: Check | None) -> Check:
    """The check of one name: what it looks at is the same, how it looks a decoder's own way."""

    def check(subject: Subject, plan: Plan) -> Iterator[Finding]:
        decoders = _DECODERS.get(subject.contract)
        own = other if decoders is None else decoders.get(name)
        if own is not None and not (subject.has_own_models and name not in OWN_MODELS):
            yield from own(subject, plan)

    return check


_OTHERS: Mapping[str, Check] = MappingProxyType(
    {**_SAMPLERS, **_TREES, **_LOGITS, "greedy": check_greedy, "practice": check_practice}
)

CHECKS: Mapping[str, Check] = MappingProxyType(
    {name: _by_contract(name, _OTHERS.get(name)) for name in {**_OTHERS, **ROUND, **GENERATE}}
)
"""All checks by name, in the order in which they run: the cheap and sharp ones first."""


def checks_for(contract: Contract) -> tuple[str, ...]:
    """Return the names of the checks that fit a contract."""
    if contract.is_decoder:
        return tuple(_DECODERS[contract])
    if contract.is_tree:
        return tuple(_TREES)
    if contract is Contract.LOGITS:
        return tuple(_LOGITS)
    if contract.is_sampler:
        return tuple(_SAMPLERS)
    return (contract.value,)


def is_proven(findings: Iterable[Finding]) -> bool:
    """Whether the oracle followed a subject through every world and size, and found no fault."""
    seen = [f for f in findings if f.check in EXACT]
    return bool(seen) and all(finding.outcome is Outcome.PASSED for finding in seen)
