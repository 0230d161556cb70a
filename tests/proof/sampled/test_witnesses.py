import numpy as np
import pytest
from scipy import stats

from draftproof.proof.sampled.witnesses import Statement, battery, holm
from draftproof.proof.worlds.wide import WideWorld, cumulative

V = 500


def make_world():
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.full(V, 0.3), (2, 3))
    q[:, ::7] = 0
    p[:, ::11] = 0
    return WideWorld("small", V, 3, "for tests", lambda: (p, q))


WORLD = make_world()
P, Q = WORLD.tables


def sample(laws, n, seed, length=2):
    """Texts whose tokens are drawn from laws [S, V]."""
    rng, edges = np.random.default_rng(seed), cumulative(laws)
    contexts, tokens = np.empty((2, n, length), dtype=np.int64)
    contexts[:, 0] = np.arange(n) % WORLD.contexts
    for i in range(length):
        if i:
            contexts[:, i] = WORLD.context_after(tokens[:, i - 1])
        uniforms = rng.random(n)
        for s in range(WORLD.contexts):
            rows = contexts[:, i] == s
            tokens[rows, i] = np.searchsorted(edges[s], uniforms[rows], side="right")
    return contexts, tokens


def heard(laws, n, seed=0, length=2):
    contexts, tokens = sample(laws, n, seed, length)
    return battery(WORLD, contexts, tokens, np.random.default_rng(seed))


def test_the_battery_of_a_text_of_two_tokens():
    names = [(t.witness, t.position) for t in heard(P, 100)]
    each = ["argmax rate", "rate of q > p", "surprisal", "log q/p"]
    assert names == [(w, i) for i in (0, 1) for w in each] + [("integral transform", -1)]


def test_no_witness_accuses_a_right_law_too_often():
    trials, level = 300, 0.05
    batteries = [heard(P, 80, seed) for seed in range(trials)]
    p_values = np.array([[s.p_value for s in statements] for statements in batteries])
    allowed = trials * level + 4.9 * np.sqrt(trials * level * (1 - level))
    assert ((p_values <= level).sum(axis=0) <= allowed).all()
    assert sum(bool(holm(statements, level)) for statements in batteries) <= allowed
    assert (p_values[:, [0, 1, 4, 5]] <= 2 * level).sum(axis=0).min() > 0  # exact, so not idle


def test_a_rate_has_the_exact_binomial_tail():
    contexts, tokens = sample(P, 300, 1, length=1)
    contexts[:] = 0
    tokens[:] = np.flatnonzero(P[0])[0]
    tokens[:40] = P[0].argmax()
    statement = battery(WORLD, contexts, tokens, np.random.default_rng(0))[0]
    rate = P[0].max()
    tail = min(stats.binom.cdf(40, 300, rate), stats.binom.sf(39, 300, rate))
    assert statement.p_value == pytest.approx(2 * tail, rel=1e-9)
    assert statement.observed == 40 / 300
    assert statement.expected == pytest.approx(rate)


def test_a_mean_is_bounded_by_chernoff_and_not_wastefully():
    """Far from the bound of a normal law it would be useless, below the tail it would be wrong."""
    contexts, tokens = sample(P, 30_000, 2, length=1)
    statements = {t.witness: t for t in battery(WORLD, contexts, tokens, np.random.default_rng(0))}
    w = np.where(P > 0, -np.log(np.maximum(P, 1e-300)), 0)
    means = (P * w).sum(axis=1)
    spread = np.sqrt((P * (w - means[:, None]) ** 2).sum() * 10_000)
    expected = statements["surprisal"].expected
    assert expected == pytest.approx(means.mean())
    for sigmas in (6, 9, 14):
        wrong = np.log(_p_value_of_shift(sigmas * spread))
        assert stats.norm.logsf(sigmas) < wrong < -(sigmas**2) / 2 * 0.75 + np.log(2)


def _p_value_of_shift(shift):
    from draftproof.proof.sampled import witnesses

    means, _, _ = witnesses._moments(WORLD, "surprisal")
    visits = np.full(3, 10_000)
    values = np.repeat(means, 10_000) + shift / 30_000
    return witnesses._mean(WORLD, "surprisal", 0, visits, values).p_value


def argmax_favoured(p, q):
    """Moves mass from two tokens of surprisals around it to the argmax: the mean stays."""
    law, head = p.copy(), p.argmax()
    law[head] += 0.15 * (1 - law[head])
    rest = np.arange(V) != head
    law[rest] *= (1 - law[head]) / law[rest].sum()
    return law


def late_ids_lost(p, q):
    law = np.where(np.arange(V) < V * 0.8, p, 0)
    return law / law.sum()


def likelier_still(p, q):
    law = p**1.2
    return law / law.sum()


def drafts_favoured(p, q):
    law = np.where(q > p, 1.35 * p, p)
    return law / law.sum()


def undrafted_rarer(p, q):
    law = np.where(q == 0, 0.6 * p, p)
    return law / law.sum()


@pytest.mark.parametrize(
    ("fault", "witness"),
    [
        (argmax_favoured, "argmax rate"),
        (late_ids_lost, "integral transform"),
        (likelier_still, "surprisal"),
        (drafts_favoured, "rate of q > p"),
        (undrafted_rarer, "log q/p"),
    ],
)
def test_each_witness_is_the_first_to_name_a_fault_of_its_own(fault, witness):
    wrong = np.stack([fault(p, q) for p, q in zip(P, Q, strict=True)])
    believed = holm(heard(wrong, 4_000), 1e-6)
    assert believed[0].witness == witness


def test_an_impossible_token_needs_no_other_witness():
    contexts, tokens = sample(P, 50, 0)
    tokens[7, 1] = 0
    (statement,) = battery(WORLD, contexts, tokens, np.random.default_rng(0))
    assert (statement.witness, statement.p_value) == ("rate of impossible tokens", 0.0)
    assert statement.observed == 1 / 100


def test_tokens_that_depend_on_each_other_show_in_the_transform():
    rng, edges = np.random.default_rng(0), cumulative(P)
    n = 4_000
    uniform = rng.random(n)
    contexts, tokens = np.zeros((2, n, 2), dtype=np.int64)
    for i in (0, 1):
        contexts[:, i] = np.arange(n) % 3 if i == 0 else WORLD.context_after(tokens[:, 0])
        for s in range(3):
            rows = contexts[:, i] == s
            tokens[rows, i] = np.searchsorted(edges[s], uniform[rows], side="right")
    believed = holm(battery(WORLD, contexts, tokens, rng), 1e-6)
    assert believed[0].witness == "integral transform"


def test_holm_steps_down():
    p_values = {"a": 0.02, "b": 0.01, "c": 0.04, "d": 0.011}
    family = [Statement(name, 0, 0, 0, p) for name, p in p_values.items()]
    assert [t.witness for t in holm(family, 0.04)] == ["b", "d", "a", "c"]
    assert [t.witness for t in holm(family, 0.039)] == []
    assert holm([], 0.1) == []
