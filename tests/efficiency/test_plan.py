# mypy: no-check-untyped-defs
from __future__ import annotations

import json

import numpy as np
import pytest

from draftproof import AcceptanceRecord, verify
from draftproof.efficiency.plan import (
    make_plan,
    optimal_num_draft,
    optimal_table,
    ranks_of_rounds,
    read_ranks,
    read_survival,
    survival_of_rounds,
)


def test_speed_is_tokens_over_cost():
    plan = make_plan({"token": [0.5, 0.25]}, cost_ratio=0.25)
    assert [(c.num_draft, c.expected_tokens, c.speed_up) for c in plan.choices] == [
        (0, 1.0, 1.0),
        (1, 1.5, 1.2),
        (2, 1.75, 1.75 / 1.5),
    ]
    assert (plan.best, plan.at_edge) == (plan.choices[1], False)
    assert "make 1 drafts" in plan.to_sentence()
    assert [row["best"] for row in plan.to_rows()] == [False, True, False]


def test_a_dear_drafter_is_not_worth_it():
    plan = make_plan({"block": [0.5], "token": [0.4]}, cost_ratio=0.5)
    assert plan.best.num_draft == 0
    assert not plan.at_edge
    assert "do not speculate" in plan.to_sentence()


def test_the_better_rule_wins_and_the_edge_is_told():
    plan = make_plan({"token": [0.8, 0.5], "block": [0.8, 0.6]}, cost_ratio=0.1)
    assert (plan.best.rule, plan.best.num_draft, plan.at_edge) == ("block", 2, True)
    assert "more may be faster" in plan.to_sentence()


def test_a_tree_wins_where_later_siblings_are_worth_their_place():
    ranks = {"rrsw": [[0.6, 0.2], [0.6, 0.2]]}
    plan = make_plan({"token": [0.6, 0.36]}, 0.1, ranks, num_nodes=3)
    trees = [choice for choice in plan.choices if choice.levels]
    assert [(c.levels, round(c.expected_tokens, 2)) for c in trees] == [((2,), 1.8), ((2, 1), 2.16)]
    assert plan.best == trees[1]
    assert plan.best.speed_up == pytest.approx(2.16 / 1.2)
    assert plan.at_edge
    assert "make 3 drafts in a tree of 2 + 1 nodes and verify by rrsw" in plan.to_sentence()
    assert not make_plan({"token": [0.6, 0.36]}, 0.1, ranks, num_nodes=0).best.levels


@pytest.mark.parametrize(
    ("alpha", "g", "tokens"), [(0.6, 2, 1.96), (0.7, 3, 2.53), (0.8, 5, 3.69), (0.9, 10, 6.86)]
)
def test_leviathans_expected_tokens(alpha, g, tokens):
    plan = make_plan({"token": alpha ** np.arange(1, g + 1)}, cost_ratio=0.05)
    assert plan.choices[-1].expected_tokens == pytest.approx(tokens, abs=0.005)


@pytest.mark.parametrize("cost_ratio", [0.01, 0.02, 0.05, 0.1, 0.5])
@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9])
def test_the_optimal_number_of_drafts_is_the_fastest_of_all(alpha, cost_ratio):
    g = np.arange(200)
    speed = (1 - alpha ** (g + 1)) / ((1 - alpha) * (g * cost_ratio + 1))
    assert optimal_num_draft(alpha, cost_ratio) == np.argmax(speed)
    (row,) = optimal_table([alpha], [cost_ratio])
    assert row["speed_up"] == pytest.approx(speed.max(), rel=1e-12)


@pytest.mark.parametrize("alpha", [-0.1, 1.0, float("nan")])
def test_a_rate_that_is_none_is_refused(alpha):
    with pytest.raises(ValueError, match="alpha"):
        optimal_num_draft(alpha, 0.1)


@pytest.mark.parametrize("cost_ratio", [0.0, -1.0, float("inf"), float("nan")])
def test_a_cost_that_is_none_is_refused(cost_ratio):
    with pytest.raises(ValueError, match="cost_ratio"):
        make_plan({"token": [0.5]}, cost_ratio)
    with pytest.raises(ValueError, match="cost_ratio"):
        optimal_num_draft(0.5, cost_ratio)
    with pytest.raises(ValueError, match="survival"):
        make_plan({}, 0.1)


def test_rounds_are_averaged_where_they_have_a_draft(case_of):
    case = case_of(40, 4, 9)
    survival = survival_of_rounds(*case)
    assert [*survival] == ["block", "token", "gumbel", "exact-match"]
    longest = case.num_draft.max()
    assert {len(kept) for kept in survival.values()} == {longest}
    assert (np.array(survival["block"]) >= np.array(survival["token"])).all()
    one = case_of(1, 3, 9, ragged=False)
    p, q = (law[0, 0, one.ids[0, 0]] for law in (one.p, one.q))
    assert survival_of_rounds(*one)["token"][0] == min(1, p / q)


def test_ranks_are_averaged_where_they_have_a_draft(case_of):
    case = case_of(30, 3, 9)
    ranks = ranks_of_rounds(*case, num_siblings=4)
    assert [*ranks] == ["rrsw", "rrs", "target-only"]
    assert {table.shape for table in ranks.values()} == {(case.num_draft.max(), 4)}
    here = case.num_draft > 1
    alpha = np.minimum(case.p[here, 1], case.q[here, 1]).sum(axis=-1).mean()
    for rule in ("rrs", "rrsw"):
        assert ranks[rule][1, 0] == pytest.approx(alpha)
    assert ranks_of_rounds(case.ids, None, case.p) == {}


def test_files(tmp_path, case_of):
    case = case_of(20, 3, 7)
    names = ("draft_token_ids", "draft_probs", "target_probs", "num_draft")
    np.savez(tmp_path / "rounds.npz", **dict(zip(names, case, strict=True)))
    assert read_survival(tmp_path / "rounds.npz") == survival_of_rounds(*case)
    deterministic = {"draft_token_ids": case.ids, "target_probs": case.p}
    np.savez(tmp_path / "one-hot.npz", num_draft=case.num_draft, **deterministic)
    expected = survival_of_rounds(case.ids, None, case.p, case.num_draft)
    assert read_survival(tmp_path / "one-hot.npz") == expected

    record = AcceptanceRecord.from_result(verify(*case, np.random.default_rng(0)))
    (tmp_path / "record.json").write_text(json.dumps(record.to_dict()))
    kept = [*record.acceptance_per_position]
    assert read_survival(tmp_path / "record.json") == {"recorded": kept}
    assert read_ranks(tmp_path / "record.json") == {} == read_ranks(tmp_path / "one-hot.npz")
    ranks, again = read_ranks(tmp_path / "rounds.npz"), ranks_of_rounds(*case)
    assert all((ranks[rule] == again[rule]).all() for rule in again)


def test_files_that_hold_neither(tmp_path):
    np.savez(tmp_path / "other.npz", p=np.ones(2))
    np.save(tmp_path / "plain.npy", np.ones(2))
    (tmp_path / "plain.npy").rename(tmp_path / "plain.npz")
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04 nothing")
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "record.json").write_text("{}")
    for name in ("other.npz", "plain.npz", "broken.npz", "list.json", "record.json"):
        with pytest.raises(ValueError, match="wanted"):
            read_survival(tmp_path / name)
