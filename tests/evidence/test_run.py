"""The long run in small: shards are kept, a lost one is run again, none counts twice."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from bench.machine import Machine
from draftproof.proof.shards.merge import merge
from draftproof.proof.shards.shard import identify
from draftproof.proof.shards.tally import Tally
from draftproof.proof.trial.plan import make_plan
from evidence.page import PAGE, page
from evidence.result import read_result, result_of, write_result
from evidence.shards import complete

MACHINE = Machine("2030-01-02", "Linux x86_64; 2 CPUs", "a CPU", "3.13", "2.4", "abc")
IDENTITY = identify("own:numpy", None, make_plan("quick", 0), 3, 900)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three shards, the first without its other checks."""
    folder = tmp_path_factory.mktemp("shards") / "cut"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("draftproof.proof.shards.shard._rest", lambda identity, plan: None)
        patch.setattr("draftproof.proof.shards.shard.tokens_for", lambda plan: 600)
        complete(IDENTITY, folder, lambda line: None)
    return folder


@pytest.fixture
def result(folder):
    return result_of(IDENTITY, merge(complete(IDENTITY, folder, lambda line: None)), MACHINE)


def test_a_second_run_repeats_the_lost_shard_and_no_other(folder, monkeypatch):
    monkeypatch.setattr("draftproof.proof.shards.shard.tokens_for", lambda plan: 600)
    lost = folder / "2.json"
    before = Tally.read(lost)
    lost.unlink()
    told: list[str] = []
    assert complete(IDENTITY, folder, told.append)[1] == before == Tally.read(lost)
    assert [" kept;" in line for line in told] == [True, False, True]


def test_a_shard_of_another_verdict_is_refused(folder):
    with pytest.raises(ValueError, match=r"1\.json: found a shard of another verdict"):
        complete(replace(IDENTITY, seed=1), folder, lambda line: None)


def test_every_shard_counts_once(result):
    joint = [found for found in result.found if found.check == "joint"]
    assert [found.size for found in joint] == [900, 900]
    assert result.made == 1_800
    assert {found.check for found in result.found} == {"joint", "anytime"}


def test_a_result_survives_its_file(result, tmp_path):
    write_result(result, tmp_path / "result.json")
    assert read_result(tmp_path / "result.json") == result


def test_the_committed_run_is_long_enough_and_its_page_is_made_from_it():
    result = read_result()
    assert (result.subject, result.verdict) == ("own:native", "not rejected")
    assert result.made >= 10**9
    assert re.fullmatch(r"[0-9a-f]{12}", result.commit), "measured with sources that differ"
    assert PAGE.read_text(encoding="utf-8") == page(result)
