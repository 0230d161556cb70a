"""The picture: how much of the memory's bandwidth each contender achieves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.results import Result

__all__ = ["plot_bandwidth"]

_CONTENDERS = {
    "floor": ("floor: a bare C pass", "#b8b8b8"),
    "draftproof": ("draftproof, one thread", "#1f6f8b"),
    "draftproof-2": ("draftproof, two threads", "#e07a3f"),
}


def plot_bandwidth(results: Sequence[Result], path: Path) -> None:
    """Draw the GB/s of each shape, one bar for each contender."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    shapes = [result for result in results if result.case.startswith("shape")]
    cases = list(dict.fromkeys(result.case for result in shapes))
    if not cases:
        return
    speed = {(result.case, result.contender): result.gb_per_s or 0.0 for result in shapes}
    label = {
        result.case: f"{result.B:,} × {result.K} × {result.V:,}\n{result.dtype}"
        for result in shapes
    }
    figure, axes = plt.subplots(figsize=(9, 0.75 * len(cases) + 1.6), layout="constrained")
    height = 0.8 / len(_CONTENDERS)
    for place, (contender, (name, colour)) in enumerate(_CONTENDERS.items()):
        widths = [speed.get((case, contender), 0.0) for case in cases]
        at = [index + (place - 1) * height for index in range(len(cases))]
        bars = axes.barh(at, widths, height * 0.92, label=name, color=colour)
        axes.bar_label(bars, [f"{width:.3g}" if width else "" for width in widths], padding=3)
    axes.set_yticks(range(len(cases)), [label[case] for case in cases])
    axes.invert_yaxis()
    axes.set_xlabel("bytes of the rows read last, over the median time (GB/s)")
    axes.set_ylabel("B × K × V")
    first = shapes[0]
    axes.set_title(f"Achieved bandwidth: {first.cpu}, {first.date}", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.08, y=0.02)
    axes.legend(frameon=False, loc="lower right")
    figure.savefig(path, dpi=120, metadata={"Software": None})
    plt.close(figure)
