"""The law of speculation from logits is that of plain sampling, for any parameters."""

# mypy: no-check-untyped-defs
from __future__ import annotations

import collections
import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftproof import DraftLogits, SamplingParams, process, sample, verify_logits
from draftproof.proof.exact.logits_oracle import oracle_logits_law
from draftproof.proof.logits.gallery import load_own
from draftproof.proof.worlds.logits_world import logits_world, of_other_params
from tests.logits.requests import plain_law, requests

K = 2
TEXTS = [text for n in range(K + 1) for text in itertools.product(range(3), repeat=n)]


class Model:
    """Logits for every text of up to K tokens over 3 tokens, some of them banned."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.logits = {
            text: np.round(rng.normal(size=3) * 2, 1) + 0.013 * rng.random(3) for text in TEXTS
        }
        for text in TEXTS[1::3]:
            self.logits[text][1] = -np.inf

    def laws(self, params, prompt, output):
        """The plain law after each text."""
        return {
            text: plain_law(self.logits[text], params, prompt, [*output, *text]) for text in TEXTS
        }


def cells(edges):
    """Midpoints and lengths of the cells between edges in (0, 1)."""
    bounds = np.unique([0.0, 1.0, *edges])
    bounds = bounds[np.append(True, np.diff(bounds) > 1e-13)]
    return (bounds[1:] + bounds[:-1]) / 2, np.diff(bounds)


def spoken_law(target, drafter, params, draft_params, prompt, output, rule, backend):
    """Integrate `verify_logits` over drafts and uniforms, each text continued by the target.

    Between the edges computed here from the plain laws the call is constant, if it is right; if
    it is not, its law differs.
    """
    P, Q = target.laws(params, prompt, output), drafter.laws(draft_params, prompt, output)
    spoken = collections.Counter()
    for drafts in itertools.product(range(3), repeat=K):
        p, q = [P[drafts[:i]] for i in range(K + 1)], [Q[drafts[:i]] for i in range(K)]
        weight = np.prod([q[i][drafts[i]] for i in range(K)])
        if weight == 0:
            continue
        axes = [cells(edges) for edges in edges_of(rule, drafts, p, q)]
        points = np.stack(np.meshgrid(*(a for a, _ in axes), indexing="ij"), -1).reshape(-1, K + 1)
        shares = np.prod(np.meshgrid(*(s for _, s in axes), indexing="ij"), axis=0).ravel()
        B = len(points)
        rows = [
            np.broadcast_to([model.logits[drafts[:i]] for i in range(n)], (B, n, 3))
            for model, n in ((target, K + 1), (drafter, K))
        ]
        result = verify_logits(
            [drafts] * B, DraftLogits(rows[1]), rows[0], params=params, draft_params=draft_params,
            history=[output] * B, prompts=[prompt] * B, rule=rule, backend=backend,
            uniforms=(points[:, :K], points[:, K]),
        )  # fmt: skip
        for text, share in zip(result.to_lists(), shares, strict=True):
            spoken[tuple(text)] += weight * share
    law = dict.fromkeys(itertools.product(range(3), repeat=K + 1), 0.0)
    for text in law:
        for n in range(1, K + 2):
            law[text] += spoken[text[:n]] * np.prod([P[text[:i]][text[i]] for i in range(n, K + 1)])
    return law, P


def edges_of(rule, drafts, p, q):
    """Where the outcome may change, for each accept uniform and for the last one."""
    last = [np.cumsum(p[K])]
    if rule == "exact-match":
        return [np.cumsum(p[i]) for i in range(K)] + last
    accept, w = [], 1.0
    for i in range(K):
        residual = np.maximum(w * p[i] - q[i], 0)
        last.append(np.cumsum(residual) / max(residual.sum(), 1e-300))
        ratio = p[i][drafts[i]] / q[i][drafts[i]]
        w = min(1.0, w * ratio) if rule == "block" else 1.0
        if rule == "block" and i < K - 1:
            z = np.maximum(w * p[i + 1] - q[i + 1], 0).sum()
            ratio = z / (z + 1 - w) if z + 1 - w else 1.0
        elif rule == "block":
            ratio = w
        accept.append([min(ratio, 1.0)])
    return [*accept, np.concatenate(last)]


@given(st.data())
def test_speculation_has_the_law_of_plain_sampling(data):
    seed, texts = data.draw(st.integers(0, 2**20)), st.lists(st.integers(0, 2), max_size=3)
    params, draft_params = data.draw(requests(3, greedy=False)), data.draw(requests(3))
    prompt, output = data.draw(texts), data.draw(texts)
    rule = data.draw(st.sampled_from(["token", "block", "exact-match"]))
    backend = data.draw(st.sampled_from(["auto", "numpy"]))
    target, drafter = Model(seed), Model(seed + 1)
    law, P = spoken_law(target, drafter, params, draft_params, prompt, output, rule, backend)
    for text, mass in law.items():
        plain = np.prod([P[text[:i]][text[i]] for i in range(K + 1)])
        assert mass == pytest.approx(plain, abs=1e-9)


@pytest.mark.parametrize("backend", ["auto", "numpy", "reference"])
def test_exact_match_speaks_as_sample_does(backend):
    """Keyed by position, the text is that of `sample` token by token."""
    rng = np.random.default_rng(0)
    B, length, V = 6, 3, 11
    logits = rng.normal(size=(B, length + 1, V)) * 2
    rows = [
        SamplingParams(seed=b, temperature=0.8, top_p=0.9, frequency_penalty=0.7) for b in range(B)
    ]
    texts = [[] for _ in range(B)]
    for i in range(length + 1):
        where = np.full(B, 100 + i)
        tokens = sample(logits[:, i], rows, None, where, texts, backend=backend)
        texts = [[*text, int(token)] for text, token in zip(texts, tokens, strict=True)]
    drafts = np.array(texts)[:, :length]
    drafts[::2, 1] = (drafts[::2, 1] + 1) % V
    result = verify_logits(
        drafts, None, logits, params=rows, history=[[]] * B, positions=np.full(B, 100),
        rule="exact-match", backend=backend,
    )  # fmt: skip
    for text, spoken in zip(texts, result.to_lists(), strict=True):
        assert spoken == text[: len(spoken)]
    assert result.num_emitted.tolist() == [2, 4] * 3


def test_the_edges_come_from_plain_laws_and_these_are_processed_ones():
    model = Model(0)
    params = SamplingParams(top_k=2, temperature=0.5)
    for text in TEXTS:
        law = process([model.logits[text]], params)[0]
        np.testing.assert_allclose(law, model.laws(params, [], [])[text], rtol=1e-12)


@pytest.mark.parametrize(
    "params",
    [
        {"temperature": 0.3},
        {"top_k": 2, "presence_penalty": 0.0},
        {"top_p": 0.5, "typical_p": 0.5},
        {"min_p": 1.0, "temperature": 2.5},
        {"logit_bias": {0: -np.inf, 3: -np.inf}},
        {"min_tokens": 2, "eos_token_ids": (1, 2)},
        {"temperature": 0.0, "frequency_penalty": 1.0},
    ],
)
def test_where_laws_are_dyadic_they_are_equal_exactly(params):
    """All logits alike: whatever is kept has one half or one quarter, which no float rounds."""
    world = logits_world("grammar")
    flat = replace(
        world, grammar=None, target_logits=np.zeros((4, 4)), draft_logits=np.zeros((4, 4))
    )
    world = of_other_params(flat, SamplingParams(**params), SamplingParams(top_k=2))
    run = oracle_logits_law(load_own("reference"), (world,), ((2,),), 2)
    assert run.law == world.target_law(3)
    assert run.law.error == 0
