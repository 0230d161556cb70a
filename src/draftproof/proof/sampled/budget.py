"""The false-alarm budget: how often may a lossless subject be rejected, and by which check?

Exact checks raise no false alarms. Every sampled check may spend its share of the whole and no
more, whatever it found: if each test keeps to its size, a verdict keeps to the sum (Bonferroni),
however the tests depend on one another.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType

__all__ = ["DECODER_SHARES", "LOGITS_SHARES", "LOOKS", "SHARES", "share", "table"]

SHARES: Mapping[str, Fraction] = MappingProxyType(
    {
        "joint": Fraction(8, 16),
        "ragged": Fraction(1, 16),
        "witnesses": Fraction(1, 16),
        "few-rows": Fraction(1, 16),
        "rounds": Fraction(1, 16),
        "rows": Fraction(1, 16),
        "seeds": Fraction(1, 16),
        "no-drafts": Fraction(1, 16),
        "equal-laws": Fraction(1, 32),
        "different-seeds": Fraction(1, 32),
    }
)
"""By check, of a whole of 1. A check splits its share evenly over the tables it looks at."""

DECODER_SHARES: Mapping[str, Fraction] = MappingProxyType(
    {
        "joint": Fraction(4, 16),
        "anytime": Fraction(8, 16),
        "honesty": Fraction(2, 16),
        "rows": Fraction(1, 16),
        "different-seeds": Fraction(1, 16),
    }
)
"""The same for decoders, which are judged by checks of their own."""

LOGITS_SHARES: Mapping[str, Fraction] = MappingProxyType(
    {"logits-joint": Fraction(3, 4), "logits-seeds": Fraction(1, 4)}
)
"""The same for verifiers from logits."""

LOOKS: tuple[tuple[Fraction, Fraction], ...] = (
    (Fraction(1, 16), Fraction(1, 4)),
    (Fraction(1), Fraction(3, 4)),
)
"""When a sampled law is looked at: (fraction of the texts, part of the share). A rule that is
plainly wrong is stopped at the first look; the second has the power of the profile."""


def share(false_alarm: float, check: str, shares: Mapping[str, Fraction] = SHARES) -> float:
    """Return what a check may spend of a verdict's probability of a false alarm.

    >>> share(1e-6, "joint")
    5e-07
    """
    return false_alarm * float(shares[check])


def table(false_alarm: float, shares: Mapping[str, Fraction] = SHARES) -> Mapping[str, float]:
    """Return every check's part, for the verdict: they add up to the whole."""
    return MappingProxyType({check: share(false_alarm, check, shares) for check in shares})
