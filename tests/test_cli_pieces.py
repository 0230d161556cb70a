"""The command line over shards, watches, and decoders with models of their own."""

import json

import pytest
from typer.testing import CliRunner

from draftproof import cli
from draftproof.proof.shards import command
from draftproof.proof.shards.tally import Tally

ENGINE = "tests.proof.subjects.decoders:resampling_engine"
LAW = "tests.proof.subjects.decoders:law"


def run(*arguments):
    return CliRunner().invoke(cli.app, list(map(str, arguments)))


@pytest.mark.parametrize("which", ["0/2", "3/2", "2", "a/b", "1/0"])
def test_a_shard_that_is_none_is_refused(which):
    result = run("check", "mutant:token", "--shard", which)
    assert result.exit_code == 2
    assert "wanted i/n" in result.stderr


def test_own_is_our_own_on_every_backend(monkeypatch):
    def judge(spec, **options):
        raise ValueError(f"asked for {spec} by {options['profile']}")

    monkeypatch.setattr("draftproof.proof.judge.check", judge)
    assert "asked for None by quick" in run("check", "own", "--profile", "quick").stderr


def test_shards_are_written_and_merged(tmp_path, monkeypatch):
    monkeypatch.setattr("draftproof.proof.shards.shard.tokens_for", lambda plan: 2_000)
    files = [tmp_path / f"{i}.json" for i in (2, 3)]
    for i, file in zip((2, 3), files, strict=True):
        options = ("--shard", f"{i}/3", "--texts", 30_000, "--tally", file)
        result = run("check", "mutant:accept_always", "--profile", "quick", *options)
        assert result.exit_code == 0, result.stderr
        assert f"Wrote {file}" in result.stdout
    assert Tally.read(files[0]).shard == 2
    verdict = tmp_path / "verdict.json"
    result = run("merge", *files, "--json", verdict)
    assert result.exit_code == 1, "a wrong law is wrong though a shard is missing"
    assert json.loads(verdict.read_text())["outcome"] == "rejected"


def test_what_cannot_be_merged_is_refused(tmp_path):
    file = tmp_path / "x.json"
    file.write_text("{}")
    assert (run("merge", file).exit_code, run("merge").exit_code) == (2, 2)
    assert "x.json" in run("merge", file).stderr


def test_a_watch_ends_with_a_verdict():
    prompts = ("--law", LAW, "--watch")
    result = run("check", ENGINE, *prompts)
    assert result.exit_code == 1
    assert "VERDICT: rejected (proved wrong after" in result.stdout


def test_prompts_are_read_from_a_file(tmp_path, monkeypatch):
    seen = []

    def watch(self, on_progress):
        seen.append(self.given)
        raise ValueError("seen enough")

    monkeypatch.setattr(command.Piecemeal, "watch", watch)
    file = tmp_path / "prompts.json"
    file.write_text("[[1, 2], [3]]")
    run("check", ENGINE, "--law", LAW, "--watch", "--prompts", file, "--eos", 0)
    assert seen == [{"law": LAW, "prompts": [[1, 2], [3]], "eos": 0}]
    for text in ("[1]", "{}", "[[-1]]", "x", "[]"):
        file.write_text(text)
        result = run("check", ENGINE, "--law", LAW, "--prompts", file)
        assert (result.exit_code, "prompts.json" in result.stderr) == (2, True)


def test_ray_that_is_missing_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "ray", None)
    result = run("check", "mutant:token", "--profile", "quick", "--ray")
    assert result.exit_code == 2
    assert "draftproof[proof,ray]" in result.stderr
