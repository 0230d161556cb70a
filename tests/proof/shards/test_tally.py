import json
from dataclasses import replace

import pytest

from draftproof.proof.shards.tally import Count, Identity, Lane, Tally, distinct

IDENTITY = Identity("m:f", "ragged", "quick", 0, 3, 30, "1.0", prompts=((1, 2), (3,)))
ONE = Tally(IDENTITY, 1, (Count("L4", (1, 2)),), (Lane("L4", 3, None, "x"),), {"a": 1})
TWO = replace(ONE, shard=2, rest=None, counts=(Count("L4", (3, 0)),))


def test_a_tally_is_read_back_as_it_was_written(tmp_path):
    file = tmp_path / "tally.json"
    ONE.write(file)
    assert Tally.read(file) == ONE
    assert json.loads(file.read_text())["schema"] == "draftproof/tally/1"
    assert [f.name for f in tmp_path.iterdir()] == ["tally.json"]


def test_a_shard_that_cannot_write_leaves_nothing_behind(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        replace(ONE, lanes=(Lane("L4", 3, float("inf"), ""),)).write(tmp_path / "tally.json")
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="directory"):
        ONE.write(tmp_path / "taken")
    assert [f.name for f in tmp_path.iterdir()] == ["taken"]


def test_a_repeated_shard_counts_once():
    again = replace(ONE, seconds=99.0)
    assert distinct([TWO, ONE, again]) == [ONE, TWO]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (replace(TWO, identity=replace(IDENTITY, seed=1)), "has seed = 1, and shard 1 has 0"),
        (replace(TWO, identity=replace(IDENTITY, shards=4)), "shards = 4"),
        (replace(TWO, shard=4), r"found shard 4; wanted 1\.\.3"),
        (replace(ONE, counts=()), "found shard 1 twice, with different counts"),
    ],
)
def test_what_is_not_of_one_verdict_is_refused(other, message):
    with pytest.raises(ValueError, match=message):
        distinct([ONE, other])


@pytest.mark.parametrize("text", ["", "{}", '{"schema": "draftproof/verdict/1"}', "[1]"])
def test_what_is_no_tally_is_refused_by_its_name(tmp_path, text):
    file = tmp_path / "x.json"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"x\.json"):
        Tally.read(file)
