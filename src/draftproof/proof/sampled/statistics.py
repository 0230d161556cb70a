"""Counts against a known law: how surprising are they, and how small a bias would have been seen?

Pearson's chi-square describes. It does not decide: at a false-alarm rate of 1e-6 its tail is wrong
(at an expected count of 5 a nominal 1e-6 is really 7e-5). Decisions rest on two bounds that hold
for every sample size and every law, `Comparison.false_alarm`:

- **Cells.** The exact binomial tail of each cell, times the number of cells (Bonferroni).
- **The likelihood ratio** G = 2 sum x ln(x / mu), Chernoff's bound with an exact moment generating
  function. Let X_i be independent Poisson(mu_i), d(x) = x ln(x/mu) - x + mu, and 0 < t < 1; given
  sum X = n the X are multinomial and sum d = G/2. With f_i(x) = P(X_i = x) e^(t d(x)),

      E e^(t G/2) = sum over {sum x = n} of prod f_i(x_i) / P(Poisson(n) = n)
                 <= max_x f_1(x) * prod_(i > 1) sum_x f_i(x) / P(Poisson(n) = n).

  As counts grow this tends to (1-t)^(-df/2) / sqrt(largest probability): Chernoff's bound of the
  chi-square law itself, but for the last factor. At 63 degrees of freedom and 1e-6 it costs 17 %
  more sequences than a chi-square tail would, if that could be trusted.

Power is that of the noncentral chi-square law, with noncentrality n sum (p' - p)^2 / p >= 4 n TV^2
(Cauchy-Schwarz) for a subject of law p'.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = [
    "Comparison",
    "compare",
    "dispersion",
    "pool",
    "required_sequences",
    "threshold",
    "total_variation_upper",
    "visible_total_variation",
]

Array = npt.NDArray[Any]


def scipy_special() -> Any:
    """SciPy's special functions, imported when they are needed: an import of the judge stays light.

    Raises:
        ModuleNotFoundError: saying how to install it.
    """
    try:
        from scipy import special
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "The joint test needs SciPy. Fix: pip install 'draftproof[proof]'."
        ) from error
    return special


SMALLEST_EXPECTED_COUNT = 5
"""Cells expected less often are pooled: Cochran's rule (Biometrics 10, 1954)."""
CONFIDENCE = 0.99
"""Of the upper bound of the total variation."""
LARGEST_TILT = 0.9
"""Of the moment generating function; far out any tilt gives a bound that is small enough."""


@dataclass(frozen=True)
class Comparison:
    """Counts beside the law they should have come from.

    Attributes:
        size: how many texts were counted.
        cells: possible cells after pooling.
        statistic: Pearson's chi-square over them; infinite if an impossible cell was seen.
        p_value: of that statistic by the chi-square law; a description, good down to 1e-4.
        likelihood_ratio: G; infinite if an impossible cell was seen.
        false_alarm: bound on the probability that a lossless subject's counts are as far off; 0 if
            an impossible cell was seen.
        total_variation: between frequencies and law; noise alone makes it positive.
        total_variation_upper: the subject's law is no farther off, at a confidence of .99.
    """

    size: int
    cells: int
    statistic: float
    p_value: float
    likelihood_ratio: float
    false_alarm: float
    total_variation: float
    total_variation_upper: float

    @property
    def degrees_of_freedom(self) -> int:
        """Possible cells minus one."""
        return self.cells - 1


def compare(counts: Array, law: Array) -> Comparison:
    """Compare counts with the law of one text.

    Args:
        counts: how often each cell was seen, any shape.
        law: the cells' exact probabilities, of the same shape, summing to 1.
    """
    counts, law = counts.ravel(), law.ravel()
    n = int(counts.sum())
    if n == 0:
        return Comparison(0, int(np.count_nonzero(law)), 0.0, 1.0, 0.0, 1.0, 0.0, 1.0)
    observed, expected, pooled = pool(counts, law)
    df = len(expected) - 1
    difference = float(np.abs(counts - n * law).sum() / (2 * n))
    if counts[law == 0].any():
        return Comparison(n, df + 1, np.inf, 0.0, np.inf, 0.0, difference, 1.0)

    special = scipy_special()

    statistic = float(((observed - expected) ** 2 / expected).sum())
    ratio = 2 * float(special.xlogy(observed, observed / expected).sum())
    by_cell = len(law) * _smallest_tail(counts, n, law)
    by_ratio = _ratio_tail(ratio, expected)
    return Comparison(
        size=n,
        cells=df + 1,
        statistic=statistic,
        p_value=float(special.chdtrc(df, statistic)) if df else 1.0,
        likelihood_ratio=ratio,
        false_alarm=min(1.0, 2 * min(by_cell, by_ratio)),
        total_variation=difference,
        total_variation_upper=min(1.0, total_variation_upper(statistic, df, n) + pooled),
    )


def pool(counts: Array, law: Array) -> tuple[Array, Array, float]:
    """Pool rare cells, by their probability under the law and never by what was observed.

    Returns:
        The observed and the expected counts of the cells, the pool last; and the pool's
        probability, 0 if no cell needed it.
    """
    n = counts.sum()
    order = np.argsort(law, kind="stable")
    order = order[law[order] > 0]
    expected = n * law[order]
    rare = int(np.searchsorted(expected, SMALLEST_EXPECTED_COUNT))
    while 0 < rare < len(order) and expected[:rare].sum() < SMALLEST_EXPECTED_COUNT:
        rare += 1
    observed = counts[order]
    if rare <= 1:
        return observed, expected, 0.0
    return (
        np.append(observed[rare:], observed[:rare].sum()),
        np.append(expected[rare:], expected[:rare].sum()),
        float(law[order][:rare].sum()),
    )


def _smallest_tail(counts: Array, n: int, law: Array) -> float:
    """Return the smallest two-sided exact binomial p-value of a cell, before Bonferroni."""
    special = scipy_special()

    possible = (law > 0) & (law < 1)
    x, p = counts[possible], law[possible]
    if not len(x):
        return 1.0
    lower = special.bdtr(x, n, p)
    upper = np.where(x > 0, special.bdtrc(np.maximum(x - 1, 0), n, p), 1.0)
    return float(2 * np.minimum(lower, upper).min())


def _ratio_tail(ratio: float, expected: Array) -> float:
    """Bound P(G >= ratio), see the module's text."""
    df = len(expected) - 1
    if df == 0 or ratio <= df:
        return 1.0
    t = min(1 - df / ratio, LARGEST_TILT)
    n, largest = expected.sum(), int(np.argmax(expected))
    log_moment = (
        np.log(2 * np.pi * n) / 2 + 1 / (12 * n) + np.log(_terms(expected[largest], t).max())
    )
    means, multiplicity = np.unique(np.delete(expected, largest), return_counts=True)
    for mean, times in zip(means, multiplicity, strict=True):
        log_moment += times * np.log(_terms(mean, t).sum())
    return float(np.exp(min(0.0, log_moment - t * ratio / 2)))


def _terms(mean: float, t: float) -> Array:
    """Return upper bounds of P(X = x) e^(t d(x)) for X ~ Poisson(mean), where they matter.

    P(X = x) = P(Poisson(x) = x) e^(-d(x)), and P(Poisson(x) = x) <= e^(-1/(12x+1)) / sqrt(2 pi x)
    (Robbins, A remark on Stirling's formula, 1955). What lies outside the window sums to less than
    1e-12 of the whole.
    """
    special = scipy_special()

    reach = 12 * np.sqrt(mean / (1 - t)) + 60
    x = np.arange(max(0, int(mean - reach)), int(mean + reach) + 2, dtype=np.float64)
    exponent = (1 - t) * (special.xlogy(x, x / mean) - x + mean)
    positive = np.maximum(x, 1)
    peak = np.where(x > 0, np.exp(-1 / (12 * positive + 1)) / np.sqrt(2 * np.pi * positive), 1.0)
    return np.asarray(peak * np.exp(-exponent))


def threshold(cells: int, size: float, largest: float = 1.0) -> float:
    """Return the G that `Comparison.false_alarm` takes to ``size``, where counts are large.

    Solves g - df - df ln(g / df) = 2 ln(2 / size) + ln(1 / largest); the 2 is for the two bounds.

    Args:
        cells: possible cells.
        size: false-alarm probability.
        largest: the most likely cell's probability.

    >>> round(threshold(64, 1e-6, 1 / 16), 1)
    149.0
    """
    df = cells - 1
    if df == 0:
        return 0.0
    wanted = (2 * np.log(2 / size) - np.log(largest)) / df
    low, high = 1.0, 4 + 4 * wanted
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if middle - 1 - np.log(middle) < wanted else (low, middle)
    return float(df * high)


def _noncentrality(law: Array, size: float, power: float) -> float:
    special = scipy_special()

    cells = int(np.count_nonzero(law))
    if cells < 2:
        return 0.0
    return float(special.chndtrinc(threshold(cells, size, law.max()), cells - 1, 1 - power))


def required_sequences(total_variation: float, power: float, size: float, law: Array) -> int:
    """Return how many texts show a bias of ``total_variation`` with probability ``power``."""
    return int(np.ceil(_noncentrality(law, size, power) / (4 * total_variation**2)))


def visible_total_variation(n: int, power: float, size: float, law: Array) -> float:
    """Return the smallest bias that n texts show with probability ``power``."""
    return min(1.0, float(np.sqrt(_noncentrality(law, size, power) / n)) / 2)


def total_variation_upper(
    statistic: float, df: int, n: int, confidence: float = CONFIDENCE
) -> float:
    """Return sqrt(lambda / n) / 2 for the largest noncentrality that still gives this chi-square.

    A fit better than noise allows counts as the average one: it is luck, not evidence.
    """
    special = scipy_special()

    if df == 0:
        return 0.0
    statistic = max(statistic, float(df))
    if statistic > 100 * df + 10_000:  # the inverse is slow out here, and the law is normal
        z = float(special.ndtri(confidence))
        noncentrality = statistic + 2 * z * np.sqrt(statistic) + z**2
    else:
        noncentrality = special.chndtrinc(statistic, df, 1 - confidence)
    return min(1.0, float(np.sqrt(noncentrality / n)) / 2)


def dispersion(counts: Array, size: int, probability: float) -> tuple[float, float]:
    """Do counts vary from call to call as binomial ones do, neither less nor more?

    The statistic is T = sum (x - np)^2 / (np(1-p)) over the calls. Both of its tails are bounded
    by Chernoff's inequality with the exact binomial moment generating function of one term.

    Args:
        counts: one count for each call.
        size: trials of each call.
        probability: of the counted event.

    Returns:
        The index of dispersion T / calls, which is 1 on average, and a bound on the two-sided
        false-alarm probability.
    """
    special = scipy_special()

    def term(x: Array) -> Array:
        return np.asarray((x - size * probability) ** 2 / (size * probability * (1 - probability)))

    calls, total = len(counts), float(term(counts).sum())
    x = np.arange(size + 1)
    log_law = (
        special.gammaln(size + 1) - special.gammaln(x + 1) - special.gammaln(size - x + 1)
        + special.xlogy(x, probability) + special.xlog1py(size - x, -probability)
    )  # fmt: skip
    low, high = -np.geomspace(1e-3, 100, 60), np.geomspace(1e-3, 0.49, 60)
    tilts = low if total < calls else high
    moments = special.logsumexp(log_law + tilts[:, None] * term(x), axis=1)
    bound = 2 * np.exp(min(0.0, float((calls * moments - tilts * total).min())))
    return total / calls, min(1.0, bound)
