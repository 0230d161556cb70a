"""Rules that change the text's law, by name: for comparison, never by default.

A lossy rule accepts more drafts, or is simpler, and in exchange the text is not the target's any
more. `draftproof.verify` refuses these names. Here each one says how far it is off, on the judge's
world L4: the exact total variation of the joint law of three tokens, for two drafts.

================ =================================================== ==================
Name             Does                                                Off, on L4
================ =================================================== ==================
typical          accepts x where p(x) > min(epsilon, delta exp(-H))  11/32 = .344
lenience         accepts x with probability min(1, l p/q), l = 1.1   187/3200 = .058
threshold        accepts x where p(x) >= 3/8                         5/16 = .313
top-k            accepts x among the 2 likeliest tokens of p         147/512 = .287
argmax-residual  emits the likeliest token of (p - q)+               27/256 = .105
================ =================================================== ==================

H is p's entropy. After a draft that typical, threshold or top-k refuses the token is drawn from p.

>>> LOSSY["lenience"].lossless
False
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from draftproof.batch import Batch, padded_batch
from draftproof.errors import BadRowError, complaint
from draftproof.noise import uniform
from draftproof.reference.chain import Emission, Row, accepts, recover, residual
from draftproof.reference.draw import best_token, inverse_cdf
from draftproof.reference.rows import draft_row, target_rows
from draftproof.types import SparseProbs, VerifyResult
from draftproof.uniforms import draw_uniforms
from draftproof.validation import first_fault

__all__ = ["LOSSY", "LossyRule", "explain", "verify"]

Number = float | Fraction
Stop = Callable[[int, Row, Row, Any], Emission]
"""What to emit after a rejection, from (tau, p, q, u)."""


@dataclass(frozen=True)
class LossyRule:
    """A rule that is not lossless.

    Attributes:
        name: what ``rule=`` calls it.
        does: what it does, in one line.
        source: where it comes from.
        accept: whether to keep a draft, from (p, q, x, u, **parameters).
        stop: what to emit after a rejection.
        parameters: their defaults, which ``total_variation`` belongs to.
        total_variation: on L4, of the joint law of three tokens from the target's, two drafts.
        lossless: False.
    """

    name: str
    does: str
    source: str
    accept: Callable[..., bool]
    stop: Stop
    parameters: Mapping[str, Number]
    total_variation: Fraction
    lossless: bool = False

    def __call__(
        self,
        drafts: Sequence[int],
        q_rows: Sequence[Row],
        p_rows: Sequence[Row],
        accept: Sequence[Any],
        final: Any,
        **parameters: Number,
    ) -> Emission:
        """Verify one row, as `draftproof.reference.chain.token` does."""
        chosen = {**self.parameters, **parameters}
        for i, x in enumerate(drafts):
            if not self.accept(p_rows[i], q_rows[i], x, accept[i], **chosen):
                return self.stop(i, p_rows[i], q_rows[i], final)
        return Emission(len(drafts), inverse_cdf(p_rows[len(drafts)], final))


def _typical(p: Row, q: Row, x: int, u: Any, *, epsilon: float, delta: float) -> bool:
    numbers = p[p > 0].astype(np.float64)
    entropy = -float((numbers * np.log(numbers)).sum())
    return bool(p[x] > min(epsilon, delta * math.exp(-entropy)))


def _lenience(p: Row, q: Row, x: int, u: Any, *, lenience: Any) -> bool:
    return accepts(lenience * p[x], q[x], u)


def _threshold(p: Row, q: Row, x: int, u: Any, *, threshold: Any) -> bool:
    return bool(p[x] >= threshold)


def _top_k(p: Row, q: Row, x: int, u: Any, *, k: int) -> bool:
    return bool(p[x] > 0 and (p > p[x]).sum() < k)


def _token(p: Row, q: Row, x: int, u: Any) -> bool:
    return accepts(p[x], q[x], u)


def _redraw(tau: int, p: Row, q: Row, u: Any) -> Emission:
    return Emission(tau, inverse_cdf(p, u))


def _recover(tau: int, p: Row, q: Row, u: Any) -> Emission:
    return recover(tau, residual(p, q), p, u)


def _argmax(tau: int, p: Row, q: Row, u: Any) -> Emission:
    return Emission(tau, best_token(residual(p, q).astype(np.float64)))


LOSSY: Mapping[str, LossyRule] = MappingProxyType(
    {
        rule.name: rule
        for rule in (
            LossyRule(
                "typical",
                "accepts a draft where p(x) > min(epsilon, delta exp(-H(p)))",
                "Medusa, arXiv 2401.10774",
                _typical,
                _redraw,
                {"epsilon": 0.09, "delta": 0.3},
                Fraction(11, 32),
            ),
            LossyRule(
                "lenience",
                "accepts a draft with probability min(1, l p/q), l > 1",
                "Leviathan, Kalman and Matias, ICML 2023, appendix A.5",
                _lenience,
                _recover,
                {"lenience": Fraction(11, 10)},
                Fraction(187, 3200),
            ),
            LossyRule(
                "threshold",
                "accepts a draft where p(x) >= threshold",
                "SGLang's speculative_accept_threshold_single",
                _threshold,
                _redraw,
                {"threshold": Fraction(3, 8)},
                Fraction(5, 16),
            ),
            LossyRule(
                "top-k",
                "accepts a draft among the k likeliest tokens of p",
                "relaxed acceptance, TensorRT-LLM",
                _top_k,
                _redraw,
                {"k": 2},
                Fraction(147, 512),
            ),
            LossyRule(
                "argmax-residual",
                "emits the likeliest token of (p - q)+ after a rejection",
                "the practice problem, draftproof.verify_speculative_tokens",
                _token,
                _argmax,
                {},
                Fraction(27, 256),
            ),
        )
    }
)
"""By name."""

ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "typical-acceptance": "typical",
        "lenient": "lenience",
        "thresholds": "threshold",
        "relaxed": "top-k",
        "top-k-membership": "top-k",
        "argmax": "argmax-residual",
    }
)


def explain(rule: object) -> str | None:
    """Say why a rule is refused where only lossless ones belong; None if it is not one of these.

    >>> explain("typical acceptance")
    "rule: found 'typical acceptance', which is lossy: it accepts ..."
    >>> explain("token")
    """
    name = str(rule).lower().replace("_", "-").replace(" ", "-")
    known = LOSSY.get(ALIASES.get(name, name))
    if known is None:
        return None
    return complaint(
        "rule",
        "",
        found=f"{rule!r}, which is lossy: it {known.does}, and its text is "
        f"{float(known.total_variation):.3f} in total variation from the target's on the world L4",
        wanted="a lossless rule",
        fix=f"choose another, or call draftproof.lossy.verify(..., rule={known.name!r}) "
        "if the text may differ from the target's",
    )


def verify(
    draft_token_ids: npt.ArrayLike,
    draft_probs: npt.ArrayLike | SparseProbs | None,
    target_probs: npt.ArrayLike,
    num_draft: npt.ArrayLike | None = None,
    rng: np.random.Generator | None = None,
    *,
    rule: str,
    uniforms: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    **parameters: Number,
) -> VerifyResult:
    """Verify a ragged batch of drafts with a rule that changes the text's law.

    Args:
        draft_token_ids, draft_probs, target_probs, num_draft, rng, uniforms: as for
            `draftproof.verify`, and as many uniforms.
        rule: a name in `LOSSY`.
        parameters: in place of the rule's own.

    Every number of every row is judged before anything is emitted; one row after the other, in
    float64.

    Raises:
        ValueError, TypeError: as `draftproof.verify` does; an unknown rule or parameter.

    >>> p = [[[0.5, 0.3, 0.2], [1.0, 0.0, 0.0]]]
    >>> verify([[2]], None, p, uniforms=([[0.0]], [0.0]), rule="top-k", k=2).to_lists()
    [[0]]
    """
    if rule not in LOSSY:
        raise ValueError(_unknown("rule", rule, LOSSY))
    known = LOSSY[rule]
    for name in parameters:
        if name not in known.parameters:
            raise ValueError(_unknown(f"parameter of {rule!r}", name, known.parameters))
    batch = padded_batch(draft_token_ids, draft_probs, target_probs, num_draft)
    accept, final = draw_uniforms(batch, "token", rng, uniforms, None, None, uniform)
    token_ids = np.full((batch.size, batch.max_draft + 1), -1, dtype=np.int64)
    num_emitted = np.zeros(batch.size, dtype=np.int64)
    for row in range(batch.size):
        tau, last_token = _verify_row(known, parameters, batch, accept, final, row)
        token_ids[row, :tau] = batch.draft_token_ids[row, :tau]
        token_ids[row, tau] = last_token
        num_emitted[row] = tau + 1
    status = np.zeros(batch.size, dtype=np.int64)
    return VerifyResult(token_ids, num_emitted, batch.num_draft, status, "reference")


def _verify_row(
    rule: LossyRule,
    parameters: Mapping[str, Number],
    batch: Batch,
    accept: npt.NDArray[np.float64],
    final: npt.NDArray[np.float64],
    row: int,
) -> tuple[int, int]:
    fault = first_fault(batch, "token", accept, final, row, "full")
    if fault is not None:
        message = complaint(
            fault.argument, fault.place, found=fault.found, wanted=fault.wanted, fix=fault.fix
        )
        raise BadRowError(message, row, int(fault.status))
    g = int(batch.num_draft[row])
    drafts = batch.draft_token_ids[row, :g].tolist()
    q_rows = [draft_row(batch, row, i) for i in range(g)]
    p_rows = target_rows(batch, row)
    tau, last_token, _ = rule(drafts, q_rows, p_rows, accept[row], final[row], **parameters)
    assert last_token is not None, "a law with mass"
    return tau, last_token


def _unknown(what: str, found: object, options: Mapping[str, object]) -> str:
    return complaint(
        what,
        "",
        found=repr(found),
        wanted=f"one of {', '.join(map(repr, options))}" if options else "none",
        fix="choose one of these" if options else "drop it",
    )
