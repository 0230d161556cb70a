"""Workers answer, and memory is measured, each in a process of its own."""

from __future__ import annotations

import pytest

from bench.cases import Case
from bench.memory import can_measure_memory, peak_extra_bytes
from bench.race import Effort, run_race

CASE = Case("shape", B=8, K=3, V=1_000, contenders=("numpy", "draftproof-numpy"))


def test_a_race_times_every_contender_in_every_round():
    race = run_race(CASE, Effort(rounds=3, batch_ns=0))
    assert {name: len(times) for name, times in race.times.items()} == dict.fromkeys(
        CASE.contenders, 3
    )
    assert 8 * 1_000 * 4 <= race.bytes_read <= 2 * 8 * 1_000 * 4


def test_a_worker_that_fails_ends_the_race():
    with pytest.raises(EOFError):
        run_race(Case("shape", B=1, K=1, V=8, dtype="int8", contenders=("numpy",)), Effort(1, 0))  # type: ignore[arg-type]


@pytest.mark.skipif(not can_measure_memory(), reason="needs Linux")
def test_the_straightforward_code_holds_at_least_its_residual():
    case = Case("memory", B=64, K=1, V=20_000)
    assert peak_extra_bytes("numpy", case) >= 64 * 20_000 * 4
