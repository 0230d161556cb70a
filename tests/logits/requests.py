"""Requests for the tests of sampling: Hypothesis strategies, and laws made the plain way."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import strategies as st

from draftproof import SamplingParams

LACKS = {
    "transformers": {"presence_penalty", "frequency_penalty"},
    "vllm": {"typical_p"},
    "sglang": {"typical_p"},
}
ORDERS = ("standard", "transformers", "vllm", "sglang", "llama.cpp")


@st.composite
def requests(draw: st.DrawFn, vocabulary: int, *, greedy: bool = True) -> SamplingParams:
    """Any parameters that an order has, each unset half of the time."""
    order = draw(st.sampled_from(ORDERS))
    values: dict[str, st.SearchStrategy[Any]] = {
        "temperature": st.sampled_from(([0.0] if greedy else []) + [0.3, 0.7, 1.0, 2.5]),
        "top_k": st.integers(1, vocabulary + 1),
        "top_p": st.sampled_from([0.1, 0.5, 0.8, 0.95, 0.999]),
        "min_p": st.sampled_from([0.01, 0.2, 0.6, 1.0]),
        "typical_p": st.sampled_from([0.2, 0.6, 0.95]),
        "repetition_penalty": st.sampled_from([0.8, 1.3, 10.0]),
        "presence_penalty": st.sampled_from([-1.0, 0.5, 2.0]),
        "frequency_penalty": st.sampled_from([-0.5, 0.25, 1.0]),
        "penalty_window": st.integers(0, 3),
        "logit_bias": st.dictionaries(
            st.integers(1, vocabulary - 1), st.sampled_from([-math.inf, -1.5, 3.0])
        ),
        "allowed_tokens": st.just(np.arange(vocabulary) != vocabulary - 1),
        "min_tokens": st.integers(1, 3),
        "ties": st.sampled_from(["lowest-id", "keep-top-k", "keep"]),
    }
    absent = LACKS.get(order, set())
    given = {
        name: draw(strategy)
        for name, strategy in values.items()
        if name not in absent and draw(st.booleans())
    }
    if "min_tokens" in given:
        given["eos_token_ids"] = [vocabulary - 1]
    return SamplingParams(order=order, **given)


def plain_law(
    logits: Any, params: SamplingParams, prompt: list[int], output: list[int]
) -> np.ndarray:
    """The law as a reader of the documentation would write it: Python floats and plain sorts."""
    z = [float(x) for x in logits]
    window = params.penalty_window
    text = [(t, False) for t in prompt] + [(t, True) for t in output]
    text = text if window is None else text[len(text) - min(window, len(text)) :]
    everything, outputs = [t for t, _ in text], [t for t, out in text if out]
    repeated = outputs if params.order == "sglang" else everything
    counted = everything if params.order == "llama.cpp" else outputs

    def bias() -> None:
        for token, b in (params.logit_bias or {}).items():
            z[token] += b

    def repetition() -> None:
        for t in sorted(set(repeated)):
            r = params.repetition_penalty
            z[t] = z[t] / r if z[t] > 0 else z[t] * r

    def additive() -> None:
        for t in sorted(set(counted)):
            z[t] -= params.presence_penalty + params.frequency_penalty * counted.count(t)

    for step in (
        (additive, repetition, bias) if params.order == "sglang" else (bias, repetition, additive)
    ):
        step()
    if len(output) < params.min_tokens:
        for t in params.eos_token_ids:
            z[t] = -math.inf
    if params.allowed_tokens is not None:
        z = [x if ok else -math.inf for x, ok in zip(z, params.allowed_tokens, strict=True)]
    if params.temperature == 0:
        point = np.zeros(len(z))
        point[z.index(max(z))] = 1
        return point
    return _filtered(z, params)


def _filtered(z: list[float], params: SamplingParams) -> np.ndarray:
    ties = params.ties or {
        "transformers": "keep-top-k",
        "vllm": "keep-top-k",
        "sglang": "keep",
    }.get(params.order, "lowest-id")

    def law(kept: set[int], T: float) -> dict[int, float]:
        top = max(z[t] for t in kept)
        w = {t: math.exp((z[t] - top) / T) for t in kept}
        total = math.fsum(w.values())
        return {t: x / total for t, x in w.items()}

    def likeliest(kept: set[int], enough: Any, keep_ties: bool, key: Any) -> set[int]:
        """Take tokens by key until `enough` of those taken; then those that tie, if wanted."""
        chosen: list[int] = []
        for t in sorted(kept, key=lambda t: (key(t), t)):
            if enough(chosen):
                break
            chosen.append(t)
        if keep_ties:
            chosen += [t for t in kept if key(t) == key(chosen[-1])]
        return set(chosen)

    def top_k(kept: set[int], T: float) -> set[int]:
        if not params.top_k:
            return kept
        return likeliest(
            kept, lambda c: len(c) >= params.top_k, ties != "lowest-id", lambda t: -z[t]
        )

    def top_p(kept: set[int], T: float) -> set[int]:
        if params.top_p == 1:
            return kept
        p = law(kept, T)
        return likeliest(
            kept,
            lambda c: math.fsum(p[t] for t in c) >= params.top_p,
            ties == "keep",
            lambda t: -z[t],
        )

    def min_p(kept: set[int], T: float) -> set[int]:
        p = law(kept, T)
        return {t for t in kept if p[t] >= params.min_p * max(p.values())}

    def typical(kept: set[int], T: float) -> set[int]:
        if params.typical_p == 1:
            return kept
        p = law(kept, T)
        entropy = -math.fsum(x * math.log(x) for x in p.values() if x)
        kept = {t for t in kept if p[t] > 0}
        return likeliest(
            kept,
            lambda c: math.fsum(p[t] for t in c) >= params.typical_p,
            ties == "keep",
            lambda t: abs(-math.log(p[t]) - entropy),
        )

    T = 1.0 if params.order == "llama.cpp" else params.temperature
    kept = {t for t, x in enumerate(z) if x > -math.inf}
    if params.order == "sglang":
        kept = top_k(kept, T) & top_p(kept, T)
        kept = min_p(kept, T)
    else:
        for step in {
            "vllm": (min_p, top_k, top_p),
            "llama.cpp": (top_k, typical, top_p, min_p),
        }.get(params.order, (top_k, top_p, min_p, typical)):
            kept = step(kept, T)
    p = law(kept, params.temperature)
    return np.array([p.get(t, 0.0) for t in range(len(z))])
