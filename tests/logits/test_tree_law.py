"""The law of trees from logits is that of plain sampling; and what of them is read."""

# mypy: no-check-untyped-defs
from __future__ import annotations

import collections
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draftproof import DraftTree, SamplingParams, verify_tree, verify_tree_logits
from draftproof.logits import verify_tree as verify_tree_module
from draftproof.logits.rows import LogitRows
from tests.logits.requests import plain_law, requests
from tests.logits.test_law import Model, cells

PARENTS = [-1, -1, 0]
"""Two siblings, and one node behind the first of them."""
DEPTH = 2


def contexts(tokens):
    """The text up to each context: the root, then the nodes."""
    texts = [()]
    for node, parent in enumerate(PARENTS):
        texts.append((*texts[parent + 1], tokens[node]))
    return texts


def minus(p, q):
    rest = np.maximum(p - q, 0)
    return rest / rest.sum() if rest.sum() > 0 else p


def edges_of(tokens, p, q):
    """Where what is emitted may change, for each node's uniform and for the last one (rrsw)."""
    first, second, below = tokens
    refused, left = minus(p[0], q[0]), np.where(np.arange(3) == first, 0, q[0])
    left = left / left.sum()
    accept = [p[0][first] / q[0][first], refused[second] / left[second], p[1][below] / q[1][below]]
    last = [minus(refused, left), minus(p[1], q[1]), p[2], p[3]]
    return [[min(1.0, edge)] for edge in accept], np.concatenate([np.cumsum(law) for law in last])


def drawn(q):
    """Every tree, and its probability: siblings are drawn without replacement."""
    for tokens in itertools.product(range(3), repeat=3):
        first, second, below = tokens
        root, child = q[()], q[first,]
        if first == second or root[first] == 1:
            continue
        weight = root[first] * root[second] / (1 - root[first]) * child[below]
        if weight > 0:
            yield tokens, weight


def spoken_law(target, drafter, params, draft_params, prompt, output):
    P, Q = target.laws(params, prompt, output), drafter.laws(draft_params, prompt, output)
    spoken = collections.Counter()
    for tokens, weight in drawn(Q):
        texts = contexts(tokens)
        accept, final = edges_of(tokens, [P[t] for t in texts], [Q[t] for t in texts])
        axes = [cells(edges) for edges in (*accept, final)]
        points = np.stack(np.meshgrid(*(a for a, _ in axes), indexing="ij"), -1).reshape(-1, 4)
        shares = np.prod(np.meshgrid(*(s for _, s in axes), indexing="ij"), axis=0).ravel()
        B = len(points)
        p, q = (
            np.broadcast_to([model.logits[text] for text in texts], (B, 4, 3))
            for model in (target, drafter)
        )
        result = verify_tree_logits(
            DraftTree([tokens] * B, [PARENTS] * B), p, draft_logits=q, params=params,
            draft_params=draft_params, history=[output] * B, prompts=[prompt] * B, rule="rrsw",
            uniforms=(points[:, :3], points[:, 3]),
        )  # fmt: skip
        for text, share in zip(result.to_lists(), shares, strict=True):
            spoken[tuple(text)] += weight * share
    law = dict.fromkeys(itertools.product(range(3), repeat=DEPTH + 1), 0.0)
    for text in law:
        for n in range(1, DEPTH + 2):
            rest = [P[text[:i]][text[i]] for i in range(n, DEPTH + 1)]
            law[text] += spoken[text[:n]] * np.prod(rest)
    return law, P, sum(weight for _, weight in drawn(Q))


@settings(max_examples=8)
@given(st.data())
def test_a_tree_has_the_law_of_plain_sampling(data):
    seed, texts = data.draw(st.integers(0, 2**20)), st.lists(st.integers(0, 2), max_size=3)
    params = data.draw(requests(3))
    warm = SamplingParams(temperature=data.draw(st.sampled_from([0.7, 1.5])), presence_penalty=0.5)
    prompt, output = data.draw(texts), data.draw(texts)
    target, drafter = Model(seed), Model(seed + 1)
    for row in drafter.logits.values():
        row[1] = max(row[1], -2.0)  # so that two siblings can be drawn
    law, P, whole = spoken_law(target, drafter, params, warm, prompt, output)
    assert whole == pytest.approx(1)
    for text, mass in law.items():
        plain = np.prod([P[text[:i]][text[i]] for i in range(DEPTH + 1)])
        assert mass == pytest.approx(plain, abs=1e-9)


@pytest.mark.parametrize(
    ("rule", "draws"),
    [
        ("nss", "deterministic"), ("target-only", "deterministic"),
        ("naive-tree", "without-replacement"), ("rrsw", "without-replacement"),
        ("traversal", "without-replacement"), ("rrs", "iid"), ("k-seq", "iid"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("backend", ["auto", "numpy"])
def test_every_rule_walks_on_plain_laws(rule, draws, backend):
    """Masks by node, ends by depth, greedy requests and penalties along the path, in one batch."""
    rows = [
        SamplingParams(repetition_penalty=2.0, frequency_penalty=0.7, top_p=0.9),
        SamplingParams(min_tokens=3, eos_token_ids=(0,), temperature=0.8),
        SamplingParams(temperature=0, presence_penalty=1.0),
        SamplingParams(top_k=2, logit_bias={2: 1.0}),
    ]
    history, B = [[1], [2, 2], [1, 0], []], 4
    rng = np.random.default_rng(7)
    for _ in range(12):
        tokens = np.stack([[*rng.permutation(3)[:2], rng.integers(3)] for _ in range(B)])
        target, draft = rng.normal(size=(2, B, 4, 3)) * 2
        mask = rng.random((B, 4, 3)) < 0.8
        mask[..., 1] = True
        p = [
            [
                plain_law(
                    np.where(mask[b, c], target[b, c], -np.inf), rows[b], [], [*history[b], *text]
                )
                for c, text in enumerate(contexts(tokens[b]))
            ]
            for b in range(B)
        ]
        q = np.exp(draft) / np.exp(draft).sum(axis=-1, keepdims=True)
        uniforms, parents = (rng.random((B, 3)), rng.random(B)), [PARENTS] * B
        cold = [params.temperature == 0 for params in rows]
        expected = verify_tree(
            DraftTree(tokens, parents, q, draws), p, uniforms=uniforms, rule=rule, greedy=cold
        )
        result = verify_tree_logits(
            DraftTree(tokens, parents, None, draws), target, draft_logits=draft, params=rows,
            draft_params=SamplingParams(), history=history, token_mask=mask, uniforms=uniforms,
            rule=rule, backend=backend,
        )  # fmt: skip
        np.testing.assert_array_equal(result.token_ids, expected.token_ids)
        np.testing.assert_array_equal(result.path, expected.path)


def wide_tree():
    """A chain of four nodes, each with three siblings that stay leaves."""
    parents, tokens, last = [], [], -1
    for _ in range(4):
        parents += [last] * 4
        tokens += [0, 1, 2, 3]
        last = len(parents) - 4
    return DraftTree([tokens], [parents], draws="deterministic")


@pytest.mark.parametrize("rule", ["nss", "target-only"])
def test_only_rows_on_the_path_are_made(monkeypatch, rule):
    made = []

    def counting(self, at, requests, positions, real=LogitRows._rows):
        made.extend(np.asarray(positions).tolist())
        return real(self, at, requests, positions)

    monkeypatch.setattr(LogitRows, "_rows", counting)
    tree, logits = wide_tree(), np.zeros((1, 17, 8))
    logits[0, :, 0] = 20.0
    logits[0, 5, [0, 7]] = 0.0, 20.0
    params = SamplingParams(top_p=0.9, presence_penalty=0.1)
    result = verify_tree_logits(
        tree,
        logits,
        params=params,
        history=[[]],
        rule=rule,
        backend="numpy",
        uniforms=(np.full((1, 16), 0.5), [0.5]),
    )
    assert result.to_lists() == [[0, 0, 7]]
    assert sorted(made) == [0, 1, 5], "each once"


def test_a_bad_tree_has_a_status_and_the_others_are_right():
    tokens, parents = [[0, 1, 2]] * 4, [PARENTS] * 4
    logits = np.random.default_rng(0).normal(size=(4, 4, 3))
    tree = DraftTree(tokens, parents, draws="deterministic")
    call = {"rule": "target-only", "uniforms": (np.full((4, 3), 0.5), np.full(4, 0.5))}
    rows = [SamplingParams(), SamplingParams(top_k=2), SamplingParams(temperature=0), None]
    rows[3] = SamplingParams(min_p=0.1)
    well = verify_tree_logits(tree, logits, params=rows, **call).to_lists()
    logits[0, 0, 1], logits[1, 0, 2], logits[2, 0, 0] = np.nan, np.inf, np.nan
    result = verify_tree_logits(tree, logits, params=rows, on_bad_row="status", **call)
    assert result.status.tolist() == [16, 16, 0, 0]
    assert result.to_lists()[:2] == [[], []]
    assert result.to_lists()[3] == well[3]
    assert result.to_lists()[2][0] == 1 + int(np.argmax(logits[2, 0, 1:])), "NaN never wins"


REAL_PATH = verify_tree_module._path_tokens


def no_node(tree, row, context):
    return np.zeros(0, np.int64)


def every_node(tree, row, context):
    return tree.token_ids[row, :context]


def without_the_node_itself(tree, row, context):
    return REAL_PATH(tree, row, context)[:-1]


def by_the_other_sibling(tree, row, context):
    path = REAL_PATH(tree, row, context)
    return np.array([tree.token_ids[row, 1], *path[1:]], np.int64) if context == 3 else path


@pytest.mark.parametrize(
    "wrong", [no_node, every_node, without_the_node_itself, by_the_other_sibling]
)
def test_a_wrong_path_is_seen(monkeypatch, wrong):
    monkeypatch.setattr(verify_tree_module, "_path_tokens", wrong)
    with pytest.raises(AssertionError):
        test_every_rule_walks_on_plain_laws("rrsw", "without-replacement", "numpy")


@pytest.mark.parametrize("wrong", ["the next node's row", "the logits as given"])
def test_a_wrong_row_is_seen(monkeypatch, wrong):
    """A mask by another number of the context; and a row that nothing was done to."""
    real = LogitRows.edited

    def edited(self, at, request, position):
        if wrong == "the logits as given":
            return np.asarray(self.logits[at], dtype=np.float64)
        row, context = at
        return real(self, (row, (context + 1) % self.shape[1]), request, position)

    monkeypatch.setattr(LogitRows, "edited", edited)
    with pytest.raises(AssertionError):
        test_every_rule_walks_on_plain_laws("rrsw", "without-replacement", "numpy")
