"""What laws of single rows do not show: rounds, seeds, impossible tokens, inputs, shapes."""

import itertools
from typing import Any

import numpy as np
import pytest

from draftproof.proof.exact.exact_law import oracle_law
from draftproof.proof.exact.generator import DrivenGenerator
from draftproof.proof.exact.interval import OracleGenerator, explore
from draftproof.proof.mutants import get
from draftproof.proof.mutants.registry import GALLERY
from draftproof.proof.sampled.joint_test import joint_test
from draftproof.proof.subjects.emission import ContractBroken
from draftproof.proof.subjects.subject import load
from draftproof.proof.worlds.catalogue import WORLDS
from draftproof.proof.worlds.law import complete

ENDS_THE_PROCESS = ("hangs", "exits", "aborts")
ALL = [m for m in GALLERY.values() if m.name not in ENDS_THE_PROCESS]
K, V = 3, 4


def of(predicate):
    chosen = [m for m in ALL if predicate(m)]
    return pytest.mark.parametrize("mutant", chosen, ids=[m.name for m in chosen])


def ragged_batch(B, *, poisoned=True) -> tuple[Any, Any, Any, Any]:
    rng = np.random.default_rng(0)
    num_draft = rng.integers(0, K + 1, B)
    draft = rng.integers(0, V, (B, K))
    q, p = rng.dirichlet(np.ones(V), (B, K)), rng.dirichlet(np.ones(V), (B, K + 1))
    past = (np.arange(K + 1) >= num_draft[:, None]) & poisoned
    draft[past[:, :-1]], q[past[:, :-1]], p[:, 1:][past[:, :-1]] = -1, np.nan, np.nan
    return draft, q, p, num_draft


class Scripted(DrivenGenerator):
    """Hands out one number in place of all uniforms."""

    def __init__(self, u):
        super().__init__()
        self.u = u

    def draw(self, shape):
        return np.full(shape, self.u)


def breaks(subject, call, seed=0):
    try:
        subject.verify(*call, np.random.default_rng(seed))
    except (ContractBroken, RuntimeError, IndexError):
        return True
    return False


def one_row(name, u, p, q, x):
    rows = np.array([q], float), np.array([[p, p]], float).reshape(1, 2, -1)
    out, n = get(name).build()(np.array([[x]]), rows[0][None], rows[1], np.array([1]), Scripted(u))
    return out[0, : n[0]].tolist()


@of(lambda m: m.kind != "broken")
def test_runs_on_a_ragged_batch(mutant):
    draft, q, p, num_draft = ragged_batch(1_000)
    out, n = load(mutant.spec).verify(draft, q, p, num_draft, np.random.default_rng(1))
    assert out.shape == (1_000, K + 1)
    assert set(np.unique(n - 1 - num_draft)) <= {0, -1, -2, -3}


@of(lambda m: m.kind != "broken" and m.seen != "padding")
def test_never_reads_past_the_drafts(mutant):
    draft, q, p, num_draft = ragged_batch(500)
    tokens = []
    for junk in (np.nan, 0.25):
        past = np.isnan(q), np.isnan(p)
        call = draft, np.where(past[0], junk, q), np.where(past[1], junk, p), num_draft
        if not mutant.name.startswith("q of ") and mutant.drivable:
            tokens.append(get(mutant.name).build()(*call, np.random.default_rng(1))[0])
    assert all(np.array_equal(a, b) for a, b in itertools.pairwise(tokens))


@of(lambda m: m.seen in ("batch", "size", "empty"))
def test_a_fault_beyond_a_row_leaves_rows_right(mutant):
    world = WORLDS["L4"]
    assert oracle_law(load(mutant.spec), world, 2).law == world.target_law(3)


@pytest.mark.parametrize(
    ("call", "period"), [("noise kept between calls", 1), ("two buffers of noise", 2)]
)
def test_noise_comes_again(call, period):
    verify, batch = get(call).build(), ragged_batch(200, poisoned=False)
    rng = np.random.default_rng(0)
    outputs = [verify(*batch, rng)[1] for _ in range(4)]  # how many drafts pass, which noise tells
    again = [n for n in range(1, 4) if np.array_equal(outputs[0], outputs[n])]
    assert again == list(range(period, 4, period))


@of(lambda m: m.kind == "equivalent")
@pytest.mark.parametrize(("B", "K"), [(0, 2), (0, 0), (3, 0)])
def test_an_equivalent_takes_empty_calls(mutant, B, K):
    p = np.full((B, K + 1, V), 1 / V)
    call = np.zeros((B, K), int), p[:, :-1], p, np.full(B, K), np.random.default_rng(0)
    out, n = load(mutant.spec).verify(*call)
    assert out.shape == (B, K + 1)
    assert (n == 1).all()


@of(lambda m: m.kind == "broken" and m.name != "crashes now and then")
def test_a_broken_one_breaks_the_contract(mutant):
    subject = load(mutant.spec)
    no_drafts = np.zeros((1, 0), int), np.zeros((1, 0, V)), np.full((1, 1, V), 0.25), np.zeros(1)
    batches = ragged_batch(1_000), ragged_batch(1_000, poisoned=False), ragged_batch(0), no_drafts
    assert any(breaks(subject, call) for call in batches)


def test_crashes_now_and_then():
    subject, batch = load("mutant:crashes now and then"), ragged_batch(10)
    crashed = {breaks(subject, batch, seed) for seed in range(100)}
    assert crashed == {False, True}


def test_exits():
    with pytest.raises(SystemExit):
        get("exits").build()(*ragged_batch(1), np.random.default_rng(0))


@pytest.mark.parametrize(
    ("name", "of_5120"),
    [("block, noise by absolute position", 29), ("noise kept between calls", 200), ("block", 0)],
)
def test_two_rounds_of_two_drafts(name, of_5120):
    """The law of two tokens, the second of which may come from the second round, on L4."""
    world, verify = WORLDS["L4"], get(name).build()

    def program(path):
        rng = OracleGenerator()
        text: tuple[int, ...] = ()
        while len(text) < 2:
            drafts: tuple[int, ...] = ()
            for _ in range(2):
                drafts = (*drafts, path.choose(world.draft[world.row(text + drafts)]))
            q, p = world.arrays(drafts, 2, text)
            out, n = verify(np.array([drafts]), q[None], p[None], np.array([2]), rng)
            text += tuple(out[0, : n[0]].tolist())
        return text[:2]

    masses = [(text, weight) for text, weight in explore(program) if isinstance(text, tuple)]
    law = complete(masses, world, 2)
    assert float(law.total_variation(world.target_law(2))) == pytest.approx(of_5120 / 5120)


@pytest.mark.parametrize("name", ["fixed seed in each call", "fixed seed at the start"])
def test_a_fixed_seed_ignores_the_caller_s(name):
    batch = ragged_batch(100)
    first, second = (get(name).build()(*batch, np.random.default_rng(s))[0] for s in (1, 2))
    assert np.array_equal(first, second)
    token = [get("token").build()(*batch, np.random.default_rng(s))[0] for s in (1, 2)]
    assert not np.array_equal(*token)


@pytest.mark.parametrize(
    ("name", "u", "emits_impossible"),
    [
        ("token", 0.0, False),
        ("bf16 uniforms below the ratio", 0.0, False),
        ("bf16 uniforms up to the ratio", 2.0**-8 - 2.0**-53, True),
        ("float32 uniforms up to the ratio", 2.0**-24 - 2.0**-53, True),
        ("float32 uniforms up to the ratio", 2.0**-24, False),
        ("0/0 accepted", 0.5, False),
    ],
)
def test_impossible_drafts(name, u, emits_impossible):
    assert (one_row(name, u, p=(0, 0.5, 0.5), q=(1, 0, 0), x=0)[0] == 0) == emits_impossible


def test_an_impossible_draft_of_an_impossible_drafter():
    """0/0: no draft of the declared law has q = 0."""
    assert one_row("0/0 accepted", 0.5, p=(0, 0.5, 0.5), q=(0, 0, 1), x=0)[0] == 0
    assert one_row("token", 0.5, p=(0, 0.5, 0.5), q=(0, 0, 1), x=0)[0] != 0


def test_float32_rounds_up_to_one():
    u, law = 1 - 2.0**-26, (0.5, 0.5, 0)
    assert one_row("uniforms rounded to float32", u, p=law, q=(0.25, 0.75, 0), x=1)[-1] == 2
    assert one_row("token", u, p=law, q=(0.25, 0.75, 0), x=1)[-1] < 2


def test_the_coin_that_is_token_0_s_noise():
    """The public report's numbers: .25 each becomes .328, .25, .211, .211."""
    B = 200_000
    p, q = np.full((B, 2, 4), 0.25), np.tile(np.eye(4)[1], (B, 1, 1))
    call = np.ones((B, 1), int), q, p, np.ones(B, int), np.random.default_rng(0)
    out, _ = get("coin is a token's noise").build()(*call)
    law = np.bincount(out[:, 0], minlength=4) / B
    assert np.abs(law - (0.328, 0.25, 0.211, 0.211)).max() < 5 * np.sqrt(0.25 / B)


@pytest.mark.parametrize(
    "name", ["token, in logarithms", "token, exponential race", "token, Gumbel noise"]
)
def test_equivalents_with_noise_of_their_own_keep_the_joint_law(name):
    assert joint_test(get(name).build(), sequences=30_000).passed


def test_own_entropy_keeps_the_joint_law():
    verify: Any = get("token, own entropy").build()
    verify.rng = np.random.default_rng(1)  # so that this test is not a matter of luck
    assert joint_test(verify, sequences=30_000).passed
