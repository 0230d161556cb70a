"""The order in which sampling parameters act, by the engine that does it so.

=============  ===========================  ======================================  ===========
order          logits                       law                                     ties
=============  ===========================  ======================================  ===========
standard       bias, repetition, additive   temperature, top-k, top-p, min-p,       lowest-id
                                            typical
transformers   bias, repetition             temperature, top-k, top-p, min-p,       keep-top-k
                                            typical
vllm           bias, repetition, additive   temperature, min-p, top-k, top-p        keep-top-k
sglang         additive, repetition, bias   temperature, top-k and top-p of one     keep
                                            law, min-p
llama.cpp      bias, repetition, additive   top-k, typical, top-p, min-p,           lowest-id
                                            temperature
=============  ===========================  ======================================  ===========

*Additive* stands for the presence and the frequency penalty. Masks and the ban of ends before
``min_tokens`` put logits to -inf, which no other step undoes, so their place does not matter. A
filter's law is normalised over what the filters before it have kept; ``sglang`` lets top-k and
top-p both look at the law before either. ``llama.cpp`` filters at temperature 1.

Sources: transformers' ``generation/utils.py`` and ``generation/logits_process.py``; vLLM's
``v1/sample/sampler.py``; SGLang's ``sampling/sampling_batch_info.py`` and ``layers/sampler.py``;
llama.cpp's ``common/common.h`` and ``src/llama-sampler.cpp``.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["ORDERS", "Filters", "Order", "Recipe", "Ties"]


class Order(enum.StrEnum):
    """Whose order of operations a request is sampled in."""

    STANDARD = "standard"
    TRANSFORMERS = "transformers"
    VLLM = "vllm"
    SGLANG = "sglang"
    LLAMA_CPP = "llama.cpp"


class Filters(enum.IntEnum):
    """What is done to the edited logits, in this order; the codes that kernels read."""

    SEQUENTIAL = 0
    """temperature, top-k, top-p, min-p, typical"""
    MIN_P_FIRST = 1
    """temperature, min-p, top-k, top-p"""
    JOINT = 2
    """temperature, top-k and top-p, both of the law before either, min-p"""
    TEMPERATURE_LAST = 3
    """top-k, typical, top-p, min-p, all at temperature 1, then temperature"""


class Ties(enum.StrEnum):
    """Which of the tokens that tie at a filter's edge are kept.

    Tokens tie if their edited logits are equal (typical: if their surprises lie as far from the
    entropy). min-p has no edge: it keeps what reaches its threshold.
    """

    LOWEST_ID = "lowest-id"
    """As many as the filter asks for, the lowest ids first: top-k keeps exactly k."""
    KEEP_TOP_K = "keep-top-k"
    """top-k keeps all that tie with its k-th; top-p and typical the lowest ids."""
    KEEP = "keep"
    """Every filter keeps all that tie with the last token that it needs."""

    @property
    def code(self) -> int:
        """For kernels: bit 0 says that top-k keeps ties, bit 1 that top-p and typical do."""
        return {Ties.LOWEST_ID: 0, Ties.KEEP_TOP_K: 1, Ties.KEEP: 3}[self]

    @property
    def at_top_k(self) -> bool:
        """Whether top-k keeps ties."""
        return bool(self.code & 1)

    @property
    def at_mass(self) -> bool:
        """Whether top-p and typical keep ties."""
        return bool(self.code & 2)


@dataclass(frozen=True)
class Recipe:
    """What an order means.

    Attributes:
        edits: ``"bias"``, ``"repetition"`` and ``"additive"`` in the order in which they act.
        filters: what is done to the edited logits.
        ties: unless a request says otherwise.
        repetition_counts_prompt: whether the repetition penalty sees the prompt, beside the output.
        additive_counts_prompt: whether presence and frequency penalties do.
        lacks: fields of `SamplingParams` that the engine does not have.
    """

    edits: tuple[str, ...]
    filters: Filters
    ties: Ties
    repetition_counts_prompt: bool = True
    additive_counts_prompt: bool = False
    lacks: frozenset[str] = frozenset()


ORDERS: Mapping[Order, Recipe] = MappingProxyType(
    {
        Order.STANDARD: Recipe(
            ("bias", "repetition", "additive"), Filters.SEQUENTIAL, Ties.LOWEST_ID
        ),
        Order.TRANSFORMERS: Recipe(
            ("bias", "repetition"),
            Filters.SEQUENTIAL,
            Ties.KEEP_TOP_K,
            lacks=frozenset({"presence_penalty", "frequency_penalty"}),
        ),
        Order.VLLM: Recipe(
            ("bias", "repetition", "additive"),
            Filters.MIN_P_FIRST,
            Ties.KEEP_TOP_K,
            lacks=frozenset({"typical_p"}),
        ),
        Order.SGLANG: Recipe(
            ("additive", "repetition", "bias"),
            Filters.JOINT,
            Ties.KEEP,
            repetition_counts_prompt=False,
            lacks=frozenset({"typical_p"}),
        ),
        Order.LLAMA_CPP: Recipe(
            ("bias", "repetition", "additive"),
            Filters.TEMPERATURE_LAST,
            Ties.LOWEST_ID,
            additive_counts_prompt=True,
        ),
    }
)
