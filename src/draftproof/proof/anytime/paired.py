"""Two streams of texts, of one law or of two? For decoders whose law nobody knows.

Text X was made with speculation, Y without it, for one prompt, independently. If speculation
changes no law, the two could be exchanged: whoever is shown both cannot tell which is which. An
expert that has learned from earlier pairs guesses all the same. Let F and G be the laws that it
has learned of the one stream and of the other; it bets on "X is the speculated one" at the odds
F(X) G(Y) : F(Y) G(X), and its factor

    2 F(X) G(Y) / (F(X) G(Y) + F(Y) G(X))

has expectation 1 over the two ways round, whatever F and G are, and whatever the texts' own law.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from draftproof.proof.anytime.account import LEVEL, log_sum_exp

__all__ = ["CONTEXTS", "Paired", "swap_ratio"]

Text = Sequence[int]
Context = Callable[[Text, Text], Hashable]
"""(prompt, text so far) -> what the next token's law may depend on."""

TRUST = (1.0, 16.0, 256.0)
"""Tokens that the pooled law is worth beside what one stream alone has shown."""
STRENGTHS = (0.25, 1.0, 4.0)
"""Of the bets on how surprising a whole text is, up and down."""
END = -1
"""Stands behind a text that ended early, as its last token."""

CONTEXTS: Mapping[str, Context] = MappingProxyType(
    {
        "all tokens": lambda prompt, text: None,
        "the place in the text": lambda prompt, text: len(text),
        "the token before": lambda prompt, text: (*prompt, *text)[-1:],
        "the two tokens before": lambda prompt, text: (*prompt, *text)[-2:],
        "the whole text before": lambda prompt, text: (*prompt, END, *text),
    }
)


def swap_ratio(log_odds: float) -> float:
    """Return the logarithm of 2 / (1 + exp(-log_odds)): of the factor at those odds.

    >>> round(math.exp(swap_ratio(0.7)) + math.exp(swap_ratio(-0.7)), 12)
    2.0
    """
    return math.log(2) - float(np.logaddexp(0.0, -log_odds))


class _Learner:
    """The laws of both streams, by context: each a Dirichlet law around their pool."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._counts: tuple[dict[Hashable, int], dict[Hashable, int]] = (
            defaultdict(int),
            defaultdict(int),
        )
        self._tokens: dict[int, int] = defaultdict(int)

    def log_odds(self, prompt: Text, text: Text) -> tuple[list[float], float]:
        """Return ln F/G of a text for each `TRUST`, and its mean surprisal under the pool."""
        odds, surprisal = [0.0] * len(TRUST), 0.0
        all_tokens = sum(self._tokens.values())
        for i, token in enumerate(text):
            context = self._context(prompt, text[:i])
            ours, theirs = (counts.get((context, token), 0) for counts in self._counts)
            n, m = (counts.get((context,), 0) for counts in self._counts)
            base = (self._tokens.get(token, 0) + 0.5) / (all_tokens + 0.5 * len(self._tokens) + 1)
            pool = (ours + theirs + base) / (n + m + 1)
            surprisal -= math.log(pool)
            for j, trust in enumerate(TRUST):
                f = (ours + trust * pool) / (n + trust)
                g = (theirs + trust * pool) / (m + trust)
                odds[j] += math.log(f / g)
        return odds, surprisal / max(1, len(text))

    def learn(self, prompt: Text, text: Text, stream: int) -> None:
        counts = self._counts[stream]
        for i, token in enumerate(text):
            context = self._context(prompt, text[:i])
            counts[context, token] += 1
            counts[context,] += 1
            self._tokens[token] += 1


class Paired:
    """The e-process for the equality of two streams.

    Attributes:
        pairs: how many pairs of texts were seen.
        tokens: of the first stream.
        log_e, log_peak, decided_after: as of `draftproof.proof.anytime.account.Account`, the last
            one in tokens of the first stream.
    """

    def __init__(self, level: float = LEVEL) -> None:
        self._learners = [_Learner(context) for context in CONTEXTS.values()]
        self.labels = [
            *(f"the tokens' frequency by {name}" for name in CONTEXTS for _ in TRUST),
            *(f"how surprising texts are by {name}" for name in CONTEXTS for _ in (1, -1) * 3),
        ]
        self._log_wealth = np.full(len(self.labels), -math.log(len(self.labels)))
        self._log_level = math.log(level)
        self.pairs = self.tokens = 0
        self.log_e = self.log_peak = 0.0
        self.decided_after: int | None = None

    @property
    def leader(self) -> str:
        """The label of the richest expert."""
        return self.labels[int(np.argmax(self._log_wealth))]

    @property
    def false_alarm(self) -> float:
        """By Ville, the probability that two streams of one law ever make the wealth so large."""
        return math.exp(-max(0.0, self.log_peak))

    def observe(self, prompt: Text, first: Text, second: Text) -> bool:
        """Bet on one pair of texts; return whether the level has been reached by now."""
        laws, surprise = [], []
        for learner in self._learners:
            (ours, a), (theirs, b) = (learner.log_odds(prompt, text) for text in (first, second))
            laws += [x - y for x, y in zip(ours, theirs, strict=True)]
            surprise += [sign * k * (a - b) for k in STRENGTHS for sign in (1, -1)]
            learner.learn(prompt, first, 0)
            learner.learn(prompt, second, 1)
        self._log_wealth += [swap_ratio(odds) for odds in (*laws, *surprise)]
        self.pairs += 1
        self.tokens += len(first)
        self.log_e = float(log_sum_exp(self._log_wealth))
        self.log_peak = max(self.log_peak, self.log_e)
        if self.decided_after is None and self.log_e >= self._log_level:
            self.decided_after = self.tokens
        return self.decided_after is not None
