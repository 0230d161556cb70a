# mypy: no-check-untyped-defs
import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from draftproof import SamplingParams, process
from draftproof.proof.exact.logits_oracle import oracle_logits_law
from draftproof.proof.logits.gallery import load_own
from draftproof.proof.worlds.logits_world import (
    FOCUSED,
    LOGITS_WORLDS,
    LONGEST,
    adapted,
    logits_world,
    of_other_params,
    random_world,
)

OWN = load_own("reference")


def texts(V, length):
    yield ()
    if length:
        yield from ((*text, token) for text in texts(V, length - 1) for token in range(V))


@pytest.mark.parametrize("name", ["penalties", "random 2"])
def test_rows_are_numbered_by_their_texts(name):
    world = logits_world(name)
    known = {world.row(text) for text in texts(world.vocabulary, LONGEST - 1)}
    assert known == set(range(len(world.target))) == set(range(len(world.draft)))


@pytest.mark.parametrize("name", ["penalties", "grammar", "ends", "greedy", "window", "prompt"])
def test_laws_are_those_of_the_public_process(name):
    world = logits_world(name)
    for text in [(), (1,), (1, 1), (3, 0)]:
        logits = world.arrays((), 0, text)[1]
        params, _ = world.requests((), 0, text)
        law = process(logits, params, [[*world.history, *text]], prompts=[world.prompt])[0]
        assert np.allclose(world.tables[0][world.row(text)], law, rtol=1e-14, atol=0)


def test_a_call_has_the_logits_and_masks_along_its_drafts():
    world = logits_world("grammar")
    q, p = world.arrays((2,), 2, (3,))
    assert np.array_equal(q[0], world.draft_logits[3])
    assert np.array_equal(p[:2], world.target_logits[[3, 2]])
    assert np.isnan(q[1]).all()
    assert np.isnan(p[2]).all()
    params, draft_params = world.requests((2,), 2, (3,))
    assert np.array_equal(params.allowed_tokens[:2], world.grammar[[3, 2]])
    assert not params.allowed_tokens[2].any()
    assert draft_params.allowed_tokens is None


def test_logits_survive_bfloat16_and_tie_only_where_they_should():
    for name in LOGITS_WORLDS:
        world = logits_world(name)
        for rows in (world.target_logits, world.draft_logits):
            assert np.array_equal(rows.view(np.uint64) & (2**45 - 1), np.zeros(rows.shape))
        if not name.startswith("ties"):
            assert all(len(set(row)) == len(row) for row in world.target_logits.tolist())


def test_the_focused_ones_show_what_they_are_about():
    assert len(logits_world("greedy").target_law(2)) == 1
    law = logits_world("ends").target_law(3)
    assert {text.index(3) for text in law if 3 in text} == {2}
    for way in ("keep", "lowest-id"):
        for name in ("ties at top-k", "ties at top-p"):
            world = logits_world(name)
            params = replace(world.params, ties=way)
            law = of_other_params(world, params, world.draft_params).target_law(1)
            assert len(law) == (3 if way == "keep" else 2)
    banned = logits_world("bias and ban").target_law(3)
    assert all(0 not in text for text in banned)


def test_an_engine_is_asked_for_nothing_that_it_lacks():
    params = SamplingParams(typical_p=0.5, min_p=0.2, top_k=3)
    ours = adapted(params, "vllm", {"min_p"})
    assert (ours.typical_p, ours.min_p, ours.top_k, ours.order) == (1, 0, 3, "vllm")
    world = logits_world("min-p", "standard", frozenset({"min_p"}))
    assert len(world.target_law(1)) == 4 > len(logits_world("min-p").target_law(1))
    later = logits_world("top-k, top-p", "llama.cpp")
    assert later.target_law(3) != logits_world("top-k, top-p").target_law(3)


def test_rows_are_laws_and_go_into_json():
    for name in FOCUSED:
        world = logits_world(name)
        assert {sum(row) for row in (*world.target, *world.draft)} == {Fraction(1)}
        row = world.to_row()
        assert json.loads(json.dumps(row)) == row


def spread(law):
    return -sum(float(x) * math.log(x) for x in law.values())


def test_random_worlds_have_any_parameters():
    worlds = [random_world(number, seed) for seed in range(4) for number in range(0, 8, 2)]
    assert {world.vocabulary for world in worlds} == {4, 5, 6, 7}
    temperatures = {world.params.temperature for world in worlds}
    assert 0 in temperatures
    assert len(temperatures) > 4
    assert sum(spread(world.target_law(2)) > 0.5 for world in worlds) > len(worlds) // 2


@pytest.mark.parametrize("seed", range(12))
def test_speculation_has_the_law_of_plain_sampling_for_any_parameters(seed):
    world = random_world(seed % 4, seed + 1)
    run = oracle_logits_law(OWN, (world,), ((2,),), 2)
    target = world.target_law(3)
    assert run.law.total_variation(target) <= run.law.error
    assert run.law.error < 1e-12
