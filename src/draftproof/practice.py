"""The practice problem: one round of speculative decoding in plain Python, deterministic.

It is a classroom version of `draftproof.verify`: lists in, a dict out, no NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Rational, Real
from os import PathLike
from typing import TYPE_CHECKING, Any, TypedDict

from draftproof.errors import complaint

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["PracticeResult", "verify_speculative_tokens", "write_stub"]

Rows = Sequence[Sequence[float]]


class PracticeResult(TypedDict):
    """What `verify_speculative_tokens` returns."""

    accepted_tokens: list[int]
    """The drafts before the first rejection."""
    bonus_token: int | None
    """The token after them; None if all were accepted and no target row is left."""
    acceptance_count: int
    """The length of ``accepted_tokens``."""


def verify_speculative_tokens(
    draft_tokens: Sequence[int],
    draft_probs: Rows,
    target_probs: Rows,
    random_samples: Sequence[float],
) -> PracticeResult:
    """Verify one round of drafted tokens, choosing the token after them by argmax.

    For each step i, with x = draft_tokens[i], P = target_probs[i], Q = draft_probs[i]:

    - accept x if random_samples[i] <= min(1, P[x] / Q[x]);
    - at the first x not accepted, the bonus token is the argmax of normalize(max(0, P - Q)),
      and verification ends.

    If all K drafts are accepted, the bonus token is the argmax of target_probs[K], or None where
    that row is missing. Of equal numbers the lowest index wins.

    **A teaching device, not a lossless sampler.** The argmax emits token x with probability
    min(P, Q)(x) + TV(P, Q) * [x is the argmax], where a draw from the residual emits it with
    min(P, Q)(x) + max(0, P - Q)(x) = P(x). The test ``u <= ratio`` differs too: at u = 0 it
    accepts a token that the target never emits. `draftproof.verify` does neither.

    Where the formulas are silent: with Q[x] = 0 the ratio is infinite if P[x] > 0 (accepted), and
    x is rejected if P[x] = 0. If a rejection leaves no residual (P <= Q everywhere), the bonus
    token is the argmax of P. Numbers are compared exactly as they come: in floats ``.5 - .3``
    exceeds ``.3 - .1``, and that is no tie.

    Args:
        draft_tokens: K token ids in 0..V-1.
        draft_probs: K rows of V numbers, finite and >= 0: the law each token was sampled from.
        target_probs: K or K + 1 rows of V numbers, finite and >= 0. No row need sum to one:
            nothing here depends on it.
        random_samples: K uniforms in [0, 1], one for each test.

    Returns:
        A dict of ``accepted_tokens``, ``bonus_token`` and ``acceptance_count``. The arguments are
        not changed.

    Raises:
        ValueError: an argument is no list, the lengths do not match, a token is no integer or lies
            outside the vocabulary (a negative one too), or a number is not what is said above
            (a bool, None or a string is none). All arguments are checked, also past a rejection.

    After Leviathan, Kalman and Matias (ICML 2023, arXiv 2211.17192), algorithm 1, with its draws
    replaced by an argmax.

    Both drafts accepted, and a third row for the bonus:

    >>> verify_speculative_tokens(
    ...     [2, 1],
    ...     [[.1, .2, .7], [.2, .6, .2]],
    ...     [[.05, .15, .8], [.1, .7, .2], [.5, .3, .2]],
    ...     [.5, .4])
    {'accepted_tokens': [2, 1], 'bonus_token': 0, 'acceptance_count': 2}

    Both accepted again (.9 / .1 > 1, often mistaken for a rejection), and no row for a bonus:

    >>> verify_speculative_tokens(
    ...     [0, 1], [[.8, .2], [.9, .1]], [[.9, .1], [.1, .9]], [.5, .8])
    {'accepted_tokens': [0, 1], 'bonus_token': None, 'acceptance_count': 2}

    One draft, two uniforms:

    >>> verify_speculative_tokens([0], [[.5, .5]], [[.5, .5]], [.1, .2])
    Traceback (most recent call last):
        ...
    ValueError: random_samples: found 2 entries; wanted 1: one for each draft token. Fix: ...
    """
    tokens, q_rows, p_rows, uniforms = _check(
        draft_tokens, draft_probs, target_probs, random_samples
    )
    accepted: list[int] = []
    bonus: int | None = None
    for x, q, p, u in zip(tokens, q_rows, p_rows, uniforms, strict=False):
        if not _accepts(p[x], q[x], u):
            bonus = _argmax(_residual(p, q))
            break
        accepted.append(x)
    else:
        if len(p_rows) > len(tokens):
            bonus = _argmax(p_rows[-1])
    return {
        "accepted_tokens": accepted,
        "bonus_token": bonus,
        "acceptance_count": len(accepted),
    }


def write_stub(path: str | PathLike[str], *, overwrite: bool = False) -> Path:
    """Write the practice problem as a Python file to fill in, which checks itself when run.

    Args:
        path: the file to write, in UTF-8. Its folder must exist.
        overwrite: whether to replace an existing file.

    Returns:
        The path of the file.

    Raises:
        FileExistsError: the file exists and ``overwrite`` is false; it is left as it was.
        OSError: the file cannot be written.
    """
    from pathlib import Path  # here, for it would be a fifth of what importing draftproof costs

    file = Path(path)
    if file.exists() and not overwrite:
        raise FileExistsError(
            complaint(
                "path",
                "",
                found=f"{file}, which exists",
                wanted="the name of a new file",
                fix="choose another name, or ask to overwrite it",
            )
        )
    stub = Path(__file__).parent / "templates" / "practice_stub.py.txt"
    file.write_bytes(stub.read_bytes())
    return file


def _accepts(p: float, q: float, u: float) -> bool:
    if q == 0:
        return p > 0
    return u <= min(1, p / q)


def _residual(p: Sequence[float], q: Sequence[float]) -> Sequence[float]:
    """max(0, P - Q), unnormalised since a common factor moves no argmax; P if nothing is left."""
    difference = [max(0, a - b) for a, b in zip(p, q, strict=True)]
    return difference if any(difference) else p


def _argmax(row: Sequence[float]) -> int:
    return max(range(len(row)), key=row.__getitem__)


def _check(
    draft_tokens: Sequence[int],
    draft_probs: Rows,
    target_probs: Rows,
    random_samples: Sequence[float],
) -> tuple[list[int], list[list[float]], list[list[float]], list[float]]:
    """Check all arguments against one another, and return them in Python's own numbers."""
    K = _length("draft_tokens", "", draft_tokens)
    one_each = "one for each draft token"
    _check_length("draft_probs", draft_probs, (K,), one_each)
    bonus = f"{one_each} and, if there is one, the bonus row"
    _check_length("target_probs", target_probs, (K, K + 1), bonus)
    _check_length("random_samples", random_samples, (K,), one_each)
    V = _length("target_probs", "step 0", target_probs[0]) if len(target_probs) else 0
    laws = _rows("draft_probs", draft_probs, V), _rows("target_probs", target_probs, V)
    for i, u in enumerate(random_samples):
        if not _is_finite(u) or not 0 <= u <= 1:
            wanted, fix = "a uniform in [0, 1]", "draw it with random.random()"
            raise _refusal("random_samples", f"step {i}", _shown(u), wanted, fix)
    for i, x in enumerate(draft_tokens):
        if not _is_a(Integral, x) or not 0 <= x < V:
            wanted = f"a token id in 0..{V - 1}"
            fix = "pass the index of the drafted token in its row"
            raise _refusal("draft_tokens", f"step {i}", _shown(x), wanted, fix)
    return [int(x) for x in draft_tokens], *laws, [*map(_plain, random_samples)]


def _check_length(name: str, values: Any, wanted: tuple[int, ...], meaning: str) -> None:
    if (length := _length(name, "", values)) not in wanted:
        spelled = f"{' or '.join(map(str, wanted))}: {meaning}"
        fix = "give all four arguments the same steps"
        raise _refusal(name, "", f"{length} entries", spelled, fix)


def _rows(name: str, rows: Rows, V: int) -> list[list[float]]:
    for i, row in enumerate(rows):
        if (length := _length(name, f"step {i}", row)) != V or V == 0:
            wanted = f"{V or 'at least one'}, as in every row of both models"
            fix = "use one vocabulary for the draft and the target"
            raise _refusal(name, f"step {i}", f"{length} probabilities", wanted, fix)
        for v, mass in enumerate(row):
            if not _is_finite(mass) or mass < 0:
                wanted, fix = "a probability, finite and >= 0", "pass the softmax of the logits"
                raise _refusal(name, f"step {i}, token {v}", _shown(mass), wanted, fix)
    return [[*map(_plain, row)] for row in rows]


def _length(name: str, place: str, values: Any) -> int:
    """Return the length of a list or of what can be read like one: a tuple, an array."""
    if not isinstance(values, str | bytes | dict | set | frozenset):
        try:
            return len(values)
        except TypeError:
            pass
    raise _refusal(name, place, f"a {type(values).__name__}", "a list", "pass lists of numbers")


def _is_a(kind: type, number: object) -> bool:
    return isinstance(number, kind) and not isinstance(number, bool)


def _is_finite(number: Any) -> bool:
    """Tell whether this is a number that a float can hold, infinity apart."""
    try:
        return _is_a(Real, number) and math.isfinite(number)
    except OverflowError:
        return False


def _plain(number: Any) -> Any:
    """Return Python's own number of the same value: an array's would wrap around below zero."""
    if isinstance(number, Integral):
        return int(number)
    return number if isinstance(number, Rational) else float(number)


def _shown(value: object) -> object:
    return value if isinstance(value, int | float) else repr(value)


def _refusal(name: str, place: str, found: object, wanted: str, fix: str) -> ValueError:
    return ValueError(complaint(name, place, found=found, wanted=wanted, fix=fix))
