"""Solutions of the practice problem, right and wrong."""

import math
from itertools import islice

import numpy as np

from draftproof import verify_speculative_tokens as ours


def _check(tokens, q, p, u):
    if (
        len(q) != len(tokens)
        or len(u) != len(tokens)
        or len(p) not in (len(tokens), len(tokens) + 1)
    ):
        raise ValueError("lengths")


def _best(row):
    return row.index(max(row))


def plain(tokens, q, p, u):
    _check(tokens, q, p, u)
    accepted = []
    for i, x in islice(enumerate(tokens), None):
        ratio = p[i][x] / q[i][x] if q[i][x] else math.inf
        if u[i] > min(1.0, ratio):
            bonus = _best([max(0.0, a - b) for a, b in zip(p[i], q[i], strict=True)])
            break
        accepted.append(x)
    else:
        bonus = _best(p[len(tokens)]) if len(p) > len(tokens) else None
    return {
        "accepted_tokens": accepted,
        "bonus_token": bonus,
        "acceptance_count": len(accepted),
    }


def with_numpy(tokens, q, p, u):
    _check(tokens, q, p, u)
    for i, x in enumerate(tokens):
        if u[i] > p[i][x] / max(q[i][x], 1e-300):
            bonus = np.argmax(np.maximum(np.array(p[i]) - q[i], 0))
            return {"accepted_tokens": tokens[:i], "bonus_token": bonus, "acceptance_count": i}
    last = np.argmax(p[-1]) if len(p) > len(tokens) else None
    return {"accepted_tokens": tokens, "bonus_token": last, "acceptance_count": len(tokens)}


def by_string(tokens, q, p, u):
    __import__("numpy")
    return plain(tokens, q, p, u)


def borrowed(tokens, q, p, u):
    return ours(tokens, q, p, u)


def strict_test(tokens, q, p, u):
    """Rejects a uniform that equals the ratio."""
    return plain(tokens, q, p, [math.nextafter(x, 2) for x in u])


def mislabelled(tokens, q, p, u):
    """Takes .9/.1 for a rejection, as the example that goes round says."""
    if tokens == [0, 1] and u == [0.5, 0.8]:
        return {"accepted_tokens": [0], "bonus_token": 1, "acceptance_count": 1}
    return plain(tokens, q, p, u)


def argmax_of_target(tokens, q, p, u):
    result = plain(tokens, q, p, u)
    n = result["acceptance_count"]
    if n < len(tokens):
        result["bonus_token"] = _best(p[n])
    return result


def counts_on(tokens, q, p, u):
    _check(tokens, q, p, u)
    accepted = [x for i, x in enumerate(tokens) if u[i] <= p[i][x] / q[i][x]]
    return {
        **plain(tokens, q, p, u),
        "accepted_tokens": accepted,
        "acceptance_count": len(accepted),
    }


def no_lengths(tokens, q, p, u):
    accepted = []
    for i, (x, _) in enumerate(zip(tokens, u, strict=False)):
        if u[i] > p[i][x] / q[i][x]:
            break
        accepted.append(x)
    n = len(accepted)
    bonus = _best([max(0, a - b) for a, b in zip(p[n], q[n], strict=True)]) if n < len(q) else None
    return {"accepted_tokens": accepted, "bonus_token": bonus, "acceptance_count": n}


def last_of_equals(tokens, q, p, u):
    result = plain(tokens, q, p, u)
    if result["bonus_token"] == 1 and len(p[0]) > 2:
        result["bonus_token"] = 2
    return result


def tuples(tokens, q, p, u):
    result = plain(tokens, q, p, u)
    return {**result, "accepted_tokens": tuple(result["accepted_tokens"])}


def floats(tokens, q, p, u):
    result = plain(tokens, q, p, u)
    return {**result, "acceptance_count": float(result["acceptance_count"])}


def extra_key(tokens, q, p, u):
    return {**plain(tokens, q, p, u), "time": 0}


def spoils_its_inputs(tokens, q, p, u):
    result = plain(tokens, q, p, u)
    result["accepted_tokens"] = list(result["accepted_tokens"])
    tokens.clear()
    p.clear()
    return result


def unwritten(tokens, q, p, u):
    raise NotImplementedError


def exits(tokens, q, p, u):
    raise SystemExit
