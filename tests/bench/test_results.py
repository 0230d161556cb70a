"""Results survive their file, and the documents show the file that is committed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bench.__main__ import HOME
from bench.cases import MEMORY_CASE, Case
from bench.machine import Machine
from bench.page import PAGE, README, filled_in
from bench.plots import plot_bandwidth
from bench.race import Race
from bench.results import memory_result, race_results, read_results, write_results
from bench.tables import digest, document, terminal
from bench.versions import versions_of

MACHINE = Machine("2030-01-02", "Linux x86_64; 2 CPUs", "a CPU", "3.13", "2.4", "abc")
SHAPE = Race(
    Case("shape", 8, 4, 32_000),
    bytes_read=1_000_000,
    times={
        "floor": [10.0, 20.0, 20.0],
        "draftproof": [20.0, 30.0, 50.0],
        "draftproof-2": [15.0, 15.0, 15.0],
        "numpy": [2000.0, 2000.0, 1000.0],
    },
)
GROWTH = Race(Case("flat-K", 32, 64, 32_000), 10**6, {"floor": [1.0], "draftproof": [1.0]})


@pytest.fixture
def results():
    lines = [*race_results(SHAPE, MACHINE), *race_results(GROWTH, MACHINE)]
    return [*lines, memory_result(MEMORY_CASE, MACHINE, "draftproof", 2**19)]


def test_ratios_are_of_the_same_round():
    assert SHAPE.ratio("draftproof", "floor") == 2.0  # of 2, 1.5, 2.5; not 30 / 20
    assert SHAPE.ratio("draftproof", "draftproof-numpy") is None


def test_a_line_sums_up_the_rounds(results):
    line = next(line for line in results if line.contender == "draftproof")
    assert (line.median_us, line.min_us, line.rounds) == (30.0, 20.0, 3)
    assert line.gb_per_s == 33.33
    assert (line.over_floor, line.over_draftproof) == (2.0, 1.0)


def test_results_survive_the_file(results, tmp_path):
    path = tmp_path / "results.csv"
    write_results(results, path)
    assert read_results(path) == results


def test_tables_show_medians_and_minima(results):
    page = document(results)
    assert (
        "| 8 × 4 × 32,000 float32 | 20.0 (10.0) | 30.0 (20.0) | 15.0 (15.0) | 2,000 (1,000) | - "
        "| 2.00 (2.00) | 0.5 (0.75) | 66.7 (50.0) |"
    ) in page
    assert "the native kernel: 0.50 MiB" in page
    assert "Measured 2030-01-02 on a CPU" in terminal(results)


def test_a_peer_stands_beside_us_with_its_version():
    times = {"floor": [2.0], "draftproof": [5.0], "torch": [60.0]}
    lines = race_results(Race(Case("logits", 1, 4, 32_000, logits=True), 10**6, times), MACHINE)
    lines[-1] = replace(lines[-1], software="torch 9.9")
    for shown in (digest(lines), document(lines)):
        assert "Peers: torch 9.9." in shown
        assert shown.splitlines()[-3].startswith("| logits | 1 × 4 × 32,000 float32 | 2.00")
    assert "| 5.00 | - | 2.50 | 12.0 |" in digest(lines)


def test_versions_are_those_of_the_distributions():
    assert versions_of(["numpy", "numpy"]) == f"numpy {np.__version__}"
    assert versions_of(["no_such_module"]) == versions_of([]) == ""


def test_no_results_are_said_to_be_none():
    assert document([]) == "Not measured yet."


@pytest.mark.parametrize(("path", "render"), [(PAGE, document), (README, digest)])
def test_a_document_keeps_what_surrounds_the_results(results, path, render):
    text = path.read_text(encoding="utf-8")
    filled = filled_in(path, text, results)
    assert render(results) in filled
    assert filled_in(path, filled, read_results(HOME / "results.csv")) == text
    with pytest.raises(ValueError, match="lacks"):
        filled_in(path, "no marks", results)


@pytest.mark.parametrize("path", [PAGE, README])
def test_the_documents_show_the_committed_results(path):
    text = path.read_text(encoding="utf-8")
    assert text == filled_in(path, text, read_results(HOME / "results.csv"))


def test_the_digest_shows_medians_of_shapes_alone(results):
    shown = digest(results)
    assert "(" not in shown.partition("\n\n")[2]
    assert "NumPy backend" not in shown
    assert digest([]) == "Not measured yet."


def test_the_plot_is_drawn(results, tmp_path):
    pytest.importorskip("matplotlib")
    plot_bandwidth(results, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 0
