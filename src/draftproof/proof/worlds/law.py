"""A joint law of texts, and how emitted prefixes become one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from draftproof.proof.worlds.world import World

__all__ = ["Law", "Text", "complete"]

Text = tuple[int, ...]


class Law(Mapping[Text, Fraction]):
    """The probabilities of all texts of one length: a read-only mapping from tokens to Fraction.

    It holds the texts of positive probability; ``law[text]`` is 0 for every other one. Two laws are
    equal if every text has the same probability.

    Attributes:
        length: tokens of each text.
        error: bound on the total variation by which rounding may have moved the numbers away from
            those of the rule that was written down; 0 if no number was rounded.

    >>> coin = Law({(0,): Fraction(1, 2), (1,): Fraction(1, 2)}, length=1)
    >>> coin[(0,)], coin[(2,)], coin.total_variation(Law({(0,): Fraction(1)}, length=1))
    (Fraction(1, 2), Fraction(0, 1), Fraction(1, 2))
    """

    def __init__(
        self, probabilities: Mapping[Text, Fraction], length: int, error: float = 0.0
    ) -> None:
        if any(len(text) != length for text in probabilities):
            raise ValueError(f"A law of {length} tokens needs texts of {length} tokens.")
        self._probabilities = {
            text: weight for text, weight in sorted(probabilities.items()) if weight
        }
        self.length = length
        self.error = error

    def __getitem__(self, text: Text) -> Fraction:
        return self._probabilities.get(text, Fraction(0))

    def __contains__(self, text: object) -> bool:
        return text in self._probabilities

    def __iter__(self) -> Iterator[Text]:
        return iter(self._probabilities)

    def __len__(self) -> int:
        return len(self._probabilities)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        return all(self[text] == other.get(text, 0) for text in self._texts(other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(f"{text}: {weight}" for text, weight in list(self.items())[:4])
        more = ", ..." if len(self) > 4 else ""
        return f"Law({{{shown}{more}}}, length={self.length}, error={self.error})"

    def total_variation(self, other: Mapping[Text, Fraction]) -> Fraction:
        """Half the sum of the absolute differences: the largest error of any event's probability.

        Mass that one of the two lacks (a subject that crashes) counts in full.
        """
        differences = self.differences(other).values()
        total = sum((abs(d) for d in differences), Fraction(0))
        missing = abs(sum(differences, Fraction(0)))
        return (total + missing) / 2

    def differences(self, other: Mapping[Text, Fraction]) -> dict[Text, Fraction]:
        """This law minus the other, for every text that either of them holds, in order."""
        return {text: self[text] - other.get(text, Fraction(0)) for text in self._texts(other)}

    def product(self, other: Law) -> Law:
        """The law of this law's text followed by an independent text of the other law."""
        masses = {a + b: x * y for a, x in self.items() for b, y in other.items()}
        return Law(masses, self.length + other.length, self.error + other.error)

    def with_error(self, error: float) -> Law:
        """The same probabilities, known to within another error."""
        return Law(self._probabilities, self.length, error)

    def _texts(self, other: Mapping[Text, Fraction]) -> list[Text]:
        return sorted({*self, *other})


def complete(emissions: Iterable[tuple[Text, Fraction]], world: World, length: int) -> Law:
    """Let the target write on after each emitted prefix, and cut the texts to one length.

    A rule is lossless if this gives the target's own law; no rule for how many tokens a round
    emits has to be known.

    Args:
        emissions: (emitted tokens, weight) pairs, the same tokens as often as they occur.
        world: gives the target's rows.
        length: tokens of each text of the law.
    """
    masses: dict[Text, Fraction] = {}
    for tokens, weight in emissions:
        text = tuple(tokens[:length])
        masses[text] = masses.get(text, Fraction(0)) + weight
    for shorter in range(min(map(len, masses), default=length), length):
        for text in [text for text in masses if len(text) == shorter]:
            weight = masses.pop(text)
            for token, probability in enumerate(world.target[world.row(text)]):
                if probability:
                    longer = (*text, token)
                    masses[longer] = masses.get(longer, Fraction(0)) + weight * probability
    return Law(masses, length)
