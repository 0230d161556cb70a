"""How much evidence a profile asks for."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

__all__ = [
    "PROFILES",
    "PROVEN_VISIBLE",
    "Plan",
    "after_proof",
    "after_replay",
    "make_plan",
    "visible_by_decoders",
]

PROFILES = ("quick", "standard", "paper")


@dataclass(frozen=True)
class Plan:
    """What the checks of one verdict share.

    Attributes:
        profile: its name.
        seed: of everything that is drawn; two runs with one seed give one verdict.
        worlds: names in `draftproof.proof.worlds.catalogue.WORLDS` that exact checks look at.
        sizes: (g, K): drafts of the examined row, and the padded length. A bonus row that padding
            spoils shows only at g < K, a reused last uniform only at g = K.
        sequences: texts of the joint test, for each world that is sampled.
        max_paths: replayed paths the interval oracle may spend on one world and size.
        false_alarm: the probability that a lossless subject is rejected at all, to be shared out
            by the sampled checks.
        power: the probability with which a total variation of `visible` is to be seen.
        visible: that total variation, in the hardest world sampled.
        main_worlds: how many of the worlds are sampled to that power.
        rounds: of a text of the joint test, see `draftproof.proof.sampled.sampling.Experiment`.
        timeout: seconds that one check may take before it counts as hanging.
        law: for a decoder with models of its own, what names its target's law,
            ``law(prompt, prefix) -> row``.
        plain: for one whose law nobody knows, what names the same decoder without speculation.
        prompts: that such decoders are given; a few short ones if empty.
        eos: the token behind which their texts end.
    """

    profile: str
    seed: int
    worlds: tuple[str, ...]
    sizes: tuple[tuple[int, int], ...]
    sequences: int
    max_paths: int
    false_alarm: float
    power: float
    visible: float
    timeout: float
    main_worlds: int = 2
    rounds: int | None = None
    law: str = ""
    plain: str = ""
    prompts: tuple[tuple[int, ...], ...] = ()
    eos: int | None = None

    @property
    def longer(self) -> str:
        """What to do where the time was not enough."""
        return f"raise --timeout, {self.timeout:g} s now"


PROVEN_VISIBLE = 0.1
PROVEN_SIZES = ((0, 2), (1, 2))
"""What is left to examine where the oracle has proven a law in every world and size: what only
batches, rounds, floats and real generators show, and such faults are gross."""

_QUICK_SIZES = ((0, 2), (1, 1), (1, 2), (2, 2))


def make_plan(profile: str, seed: int, timeout: float | None = None) -> Plan:
    """Return the plan of a profile: "quick" (seconds), "standard", or "paper" (minutes)."""
    if profile == "quick":
        plan = Plan(
            profile="quick", seed=seed, worlds=("L4", "L357"), sizes=_QUICK_SIZES,
            sequences=100_000, max_paths=5_000, false_alarm=1e-6, power=0.99, visible=0.02,
            timeout=60.0, main_worlds=1, rounds=1,
        )  # fmt: skip
    elif profile == "standard":
        plan = Plan(
            profile="standard", seed=seed,
            worlds=("L4", "L357", "toy", "zeros", "equal", "near-equal", "one-hot"),
            sizes=(*_QUICK_SIZES, (2, 3), (3, 3)), sequences=1_600_000, max_paths=5_000,
            false_alarm=1e-6, power=0.99, visible=0.005, timeout=300.0,
        )  # fmt: skip
    elif profile == "paper":
        plan = Plan(
            profile="paper", seed=seed,
            worlds=("L4", "L357", "toy", "zeros", "equal", "near-equal", "one-hot"),
            sizes=(*_QUICK_SIZES, (2, 3), (3, 3)), sequences=10_000_000, max_paths=20_000,
            false_alarm=1e-6, power=0.99, visible=0.002, timeout=1800.0,
        )  # fmt: skip
    else:
        raise ValueError(f"profile: found {profile!r}; wanted one of {', '.join(PROFILES)}.")
    return plan if timeout is None else replace(plan, timeout=timeout)


def after_replay(plan: Plan) -> Plan:
    """Return the plan of a law of single rows that replay has found.

    A quick trial asks no more of it than what is gross. Any other samples it all the same, to the
    full: replay has taken something for granted.
    """
    if plan.profile != "quick":
        return plan
    return replace(plan, worlds=plan.worlds[:1], visible=max(plan.visible, PROVEN_VISIBLE))


def after_proof(plan: Plan) -> Plan:
    """Return the plan of what is left to examine once the oracle has found no fault."""
    return replace(
        plan,
        worlds=plan.worlds[:1],
        sizes=PROVEN_SIZES,
        visible=max(plan.visible, PROVEN_VISIBLE),
    )


def visible_by_decoders(plan: Plan) -> float:
    """Return the total variation to be seen of a decoder, whose every text takes several calls.

    >>> [round(visible_by_decoders(make_plan(profile, 0)), 3) for profile in PROFILES]
    [0.04, 0.02, 0.013]
    """
    return 0.2 * math.sqrt(2 * plan.visible)
