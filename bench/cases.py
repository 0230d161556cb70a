"""The shapes that are measured."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

from draftproof import SamplingParams

__all__ = ["CASES", "MEMORY_CASE", "Case"]

DType = Literal["float32", "float64"]

ONE_AND_TWO_THREADS = ("floor", "draftproof", "draftproof-2")
AGAINST_NUMPY = ("floor", "numpy", *ONE_AND_TWO_THREADS[1:])
WITH_NUMPY_BACKEND = (*AGAINST_NUMPY, "draftproof-numpy")
LOGITS = (*ONE_AND_TWO_THREADS, "torch", "flashspec", "vllm", "vllm-sampler")


@dataclass(frozen=True)
class Case:
    """One shape of inputs, and who runs on it.

    Attributes:
        series: what the case belongs to: ``shape``, or ``flat-K``, ``flat-V``, ``flat-B``, where
            one size grows and the others stay, or a rule's name.
        B, K, V, dtype: the inputs' shape and type.
        contenders: names that `bench.contenders.make_contender` knows.
        rejects_at: the position at which every row is rejected, so that the work depends on no
            chance; None for drafts that are accepted or not as in real life.
        rule: what ``rule=`` takes.
        branching: for a rule for trees, of K nodes: the children of each node, level by level.
        logits: whether the laws come as logits.
        sampling: the one parameter that is set, and its number; for logits.
        spread: the standard deviation of the target's logits; 4 gives a likeliest token of some
            ten per cent.
    """

    series: str
    B: int
    K: int
    V: int
    dtype: DType = "float32"
    contenders: tuple[str, ...] = AGAINST_NUMPY
    rejects_at: int | None = None
    rule: str = "token"
    branching: tuple[int, ...] = ()
    logits: bool = False
    sampling: tuple[str, float] | None = None
    spread: float = 4.0

    @property
    def name(self) -> str:
        """As it stands in the results, and as ``--case`` takes it."""
        return f"{self.series}-{self.B}x{self.K}x{self.V}-{self.dtype}"

    @property
    def params(self) -> SamplingParams:
        """As a user has them: made once."""
        return _params(self.sampling)


@cache
def _params(sampling: tuple[str, float] | None) -> SamplingParams:
    if sampling is None:
        return SamplingParams()
    name, value = sampling
    return SamplingParams(top_k=int(value)) if name == "top_k" else SamplingParams(top_p=value)


def _rule(rule: str, B: int, K: int, branching: tuple[int, ...] = ()) -> Case:
    contenders = ONE_AND_TWO_THREADS
    return Case(rule, B, K, 128_256, contenders=contenders, rule=rule, branching=branching)


def _tree_of_logits(series: str, sampling: tuple[str, float] | None) -> Case:
    return Case(
        series, 24, 64, 128_256, contenders=ONE_AND_TWO_THREADS, rule="rrsw",
        branching=(4, 3, 4), logits=True, sampling=sampling,
    )  # fmt: skip


def _flat(series: str, B: int, K: int, V: int) -> Case:
    return Case(series, B, K, V, contenders=ONE_AND_TWO_THREADS, rejects_at=2)


def _filter(series: str, V: int, sampling: tuple[str, float], spread: float) -> Case:
    """Rows without drafts, so that all of a call is to filter 8 rows and to draw from them."""
    contenders = (*ONE_AND_TWO_THREADS, "torch-sort")
    return Case(
        series, 8, 0, V, contenders=contenders, logits=True, sampling=sampling, spread=spread
    )


CASES = (
    Case("shape", 1, 4, 32_000, contenders=WITH_NUMPY_BACKEND),
    Case("shape", 8, 4, 32_000, contenders=WITH_NUMPY_BACKEND),
    Case("shape", 8, 4, 32_000, "float64"),
    Case("shape", 32, 4, 32_000),
    Case("shape", 32, 4, 32_000, "float64"),
    Case("shape", 64, 5, 128_256),
    Case("shape", 256, 3, 32_000),
    Case("shape", 256, 3, 32_000, "float64"),
    Case("shape", 300_000, 3, 4, contenders=WITH_NUMPY_BACKEND),
    Case("shape", 300_000, 3, 4, "float64", contenders=WITH_NUMPY_BACKEND),
    *(_rule(rule, 64, 5) for rule in ("block", "greedy-block")),
    *(_rule(rule, 24, 64, (4, 3, 4)) for rule in ("rrs", "rrsw", "nss", "k-seq")),
    _rule("traversal", 4, 64, (4, 3, 4)),
    _tree_of_logits("tree-logits", None),
    _tree_of_logits("tree-top-p", ("top_p", 0.9)),
    Case("logits", 1, 4, 32_000, contenders=(*LOGITS, "transformers"), logits=True),
    Case("logits", 64, 5, 128_256, contenders=LOGITS, logits=True),
    Case("logits", 256, 3, 32_000, contenders=LOGITS, logits=True),
    *(
        _filter(f"{name}-{shape}", V, sampling, spread)
        for name, sampling in (("top-p", ("top_p", 0.9)), ("top-k", ("top_k", 50)))
        for shape, spread in (("flat", 1.0), ("peaked", 4.0))
        for V in (32_000, 128_256)
    ),
    *(_flat("flat-K", 32, K, 32_000) for K in (4, 16, 64)),
    *(_flat("flat-V", 32, 4, V) for V in (16_000, 32_000, 64_000, 128_000)),
    *(_flat("flat-B", B, 4, 32_000) for B in (8, 32, 128, 256)),
)

MEMORY_CASE = Case("memory", 256, 3, 32_000, contenders=("numpy", "draftproof"))
"""Where the peak memory of a call is measured."""
