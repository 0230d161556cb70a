import numpy as np

from draftproof.proof.mutants.skeleton import Verifier
from draftproof.proof.sampled.statistics import compare
from draftproof.proof.sampled.wide_texts import WideTexts
from draftproof.proof.worlds.wide import WideWorld

V = 12
ROWS = np.random.default_rng(0).dirichlet(np.ones(V), (2, 3))
WORLD = WideWorld("small", V, 3, "for tests", lambda: (ROWS[0], ROWS[1]))
P, Q = WORLD.tables


def nothing_accepted(draft, q, p, num_draft, rng):
    """Emits one token of p, whatever was drafted."""
    first = (p[:, 0].cumsum(axis=1) <= rng.random((len(p), 1))).sum(axis=1)
    tokens = np.full((len(p), draft.shape[1] + 1), -1)
    tokens[:, 0] = np.minimum(first, V - 1)
    return tokens, np.ones(len(p), np.int64)


def law_of_a_text():
    """[S, V, V]: of two tokens after each context."""
    return P[:, :, None] * P[np.arange(V) % 3][None]


def fits(texts):
    for s in range(3):
        start = texts.tokens[texts.contexts[:, 0] == s]
        counts = np.bincount(start @ [V, 1], minlength=V * V)
        assert compare(counts, law_of_a_text()[s].ravel()).false_alarm > 1e-6


def test_a_right_verifier_makes_the_targets_texts():
    for verify in (Verifier(), nothing_accepted):
        texts = WideTexts(verify, WORLD, 1, seed=0)
        assert texts.extend(6_000)
        assert texts.tokens.shape == texts.contexts.shape == (6_000, 2)
        assert np.bincount(texts.contexts[:, 0]).tolist() == [2_000] * 3
        assert (texts.contexts[:, 1] == texts.tokens[:, 0] % 3).all()
        fits(texts)
    assert texts.emitted == 6_000


def test_what_was_emitted_stands_and_the_rest_is_the_targets():
    def accepts_all(draft, q, p, num_draft, rng):
        return np.column_stack([draft, np.full(len(draft), 5)]), num_draft + 1

    texts = WideTexts(accepts_all, WORLD, 1, seed=0)
    texts.extend(3_000)
    assert (texts.tokens[:, 1] == 5).all()
    assert texts.emitted == 6_000
    counts = np.bincount(texts.tokens[texts.contexts[:, 0] == 1, 0], minlength=V)
    assert compare(counts, Q[1]).false_alarm > 1e-6


def test_rows_without_drafts_are_called_with_k_0():
    shapes = set()

    def verify(draft, q, p, num_draft, rng):
        shapes.add((draft.shape[1:], q.shape[1:], p.shape[1:], *num_draft))
        return Verifier()(draft, q, p, num_draft, rng)

    texts = WideTexts(verify, WORLD, 0, seed=0)
    texts.extend(1)
    texts.extend(4)
    assert texts.tokens.shape == (4, 1)
    assert shapes == {((0,), (0, V), (1, V), *[0] * n) for n in (1, 3)}


def test_drafts_come_from_the_law_that_the_subject_names():
    def argmax(row):
        return [float(x == max(row)) for x in row]

    seen = []

    def verify(draft, q, p, num_draft, rng):
        seen.append((draft[:, 0] == q[:, 0].argmax(axis=1)).all())
        return Verifier()(draft, q, p, num_draft, rng)

    WideTexts(verify, WORLD, 1, seed=0, sampled_law=argmax).extend(300)
    assert seen == [True]


def test_one_seed_gives_one_sequence_of_texts_and_time_may_run_out():
    a, b, c = (WideTexts(Verifier(), WORLD, 1, seed) for seed in (0, 0, 1))
    assert all(texts.extend(200) for texts in (a, b, c))
    assert (a.tokens == b.tokens).all()
    assert (a.tokens != c.tokens).any()
    assert not a.extend(300, deadline=0.0)
    assert len(a.tokens) == 200
