import sys
from dataclasses import replace

import numpy as np
import pytest

import draftproof
from draftproof.proof.checks.behaviour import BEHAVIOUR
from draftproof.proof.mutants.skeleton import Verifier
from draftproof.proof.subjects.contracts import Contract
from draftproof.proof.subjects.emission import ContractBroken
from draftproof.proof.subjects.subject import Subject, load
from draftproof.proof.trial.plan import make_plan
from draftproof.proof.verdicts.finding import Outcome

PLAN = make_plan("quick", 0)
RIGHT = Verifier()


def examine(check, call, contract=Contract.RAGGED):
    subject = call if isinstance(call, Subject) else Subject("it", contract, call)
    return list(BEHAVIOUR[check](subject, PLAN))


def outcomes(check, call, contract=Contract.RAGGED):
    return [finding.outcome for finding in examine(check, call, contract)]


def wrap(before):
    """A right verifier whose arguments are changed before it sees them."""

    def verify(draft, q, p, num_draft, rng):
        return RIGHT(*before(draft, q, p, num_draft, rng))

    return verify


def one_row(draft, q, p, rng):
    ids, n = RIGHT(draft[None], q[None], p[None], np.array([len(draft)]), rng)
    return ids[0, : n[0]].tolist()


fixed_seed = wrap(lambda draft, q, p, n, rng: (draft, q, p, n, np.random.default_rng(0)))
own_entropy = wrap(lambda draft, q, p, n, rng: (draft, q, p, n, np.random.default_rng()))


class SeededOnce:
    def __init__(self):
        self.rng = np.random.default_rng(0)

    def __call__(self, draft, q, p, num_draft, rng):
        return RIGHT(draft, q, p, num_draft, self.rng)


class NoBonus(Verifier):
    """Lossless: it emits no bonus token where there is a draft."""

    def emit(self, call, tau, last):
        tokens, n = super().emit(call, tau, last)
        short = (tau == call.num_draft) & (tau > 0)
        tokens[short, tau[short]] = -1
        return tokens, n - short


class ExactMatch(Verifier):
    """Lossless, and accepts less than it could where p = q."""

    def test(self, p, q, u):
        return u < p

    def residual(self, call, rows, at):
        p = call.p[rows, at].copy()
        p[np.arange(len(rows)), call.draft[rows, at]] = 0
        return p


class BonusOfTheDraftRow(Verifier):
    def bonus_law(self, call, rows, at):
        return call.p[rows, np.maximum(at - 1, 0)]


class WrongWithoutDrafts(Verifier):
    def bonus_law(self, call, rows, at):
        p = call.p[rows, at].copy()
        p[call.num_draft[rows] == 0] = 1.0
        return p


class DropsEqualLaws(Verifier):
    """Takes p = q for a rejection and draws a uniform token."""

    def test(self, p, q, u):
        return super().test(p, q, u) & (p != q)

    def residual(self, call, rows, at):
        same = (call.p[rows, at] == call.q[rows, at]).all(axis=1)
        return np.where(same[:, None], 1.0, super().residual(call, rows, at))


@pytest.mark.parametrize("check", BEHAVIOUR)
@pytest.mark.parametrize(
    "call", [RIGHT, *(load(f"own:{name}") for name in draftproof.available_backends())]
)
def test_a_right_verifier_passes(check, call):
    findings = examine(check, call)
    assert {finding.outcome for finding in findings} == {Outcome.PASSED}
    assert {finding.check for finding in findings} == {check}


@pytest.mark.parametrize("check", BEHAVIOUR)
def test_a_right_one_in_another_contract_passes(check):
    assert set(outcomes(check, one_row, Contract.SINGLE)) == {Outcome.PASSED}


@pytest.mark.parametrize(
    ("check", "call"),
    [
        ("different-seeds", fixed_seed),
        ("different-seeds", SeededOnce()),
        ("no-drafts", WrongWithoutDrafts()),
        ("equal-laws", DropsEqualLaws()),
        ("one-hot", BonusOfTheDraftRow()),
    ],
)
def test_a_wrong_one_is_caught(check, call):
    assert Outcome.LOSSY in outcomes(check, call)


def test_own_entropy_is_a_note():
    (finding,) = examine("different-seeds", own_entropy)
    assert finding.outcome is Outcome.NOTE
    assert "own entropy" in finding.message


@pytest.mark.parametrize(
    ("seed", "outcome"), [("0", Outcome.LOSSY), ("", Outcome.NOTE)], ids=["fixed", "entropy"]
)
def test_a_generator_of_the_module_is_told_by_a_fresh_start(tmp_path, seed, outcome, monkeypatch):
    name = f"seeded_{'once' if seed else 'freely'}"
    file = tmp_path / f"{name}.py"
    file.write_text(
        "import numpy as np\n"
        "from draftproof.proof.mutants.skeleton import Verifier\n"
        f"own = np.random.default_rng({seed})\n"
        "right = Verifier()\n"
        "print('loaded')\n"
        "def verify(draft, q, p, num_draft, rng):\n"
        "    return right(draft, q, p, num_draft, own)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    try:
        (finding,) = examine("different-seeds", load(f"{file}:verify"))
    finally:
        sys.modules.pop(name, None)
    assert finding.outcome is outcome


def test_a_fresh_start_that_takes_too_long_decides_nothing(tmp_path, monkeypatch):
    file = tmp_path / "slow_to_load.py"
    file.write_text(
        "import numpy as np\n"
        "from draftproof.proof.mutants.skeleton import Verifier\n"
        "own = np.random.default_rng(0)\n"
        "def verify(draft, q, p, num_draft, rng):\n"
        "    return Verifier()(draft, q, p, num_draft, own)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    subject = load(f"{file}:verify")
    (finding,) = BEHAVIOUR["different-seeds"](subject, replace(PLAN, timeout=1e-3))
    sys.modules.pop("slow_to_load", None)
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "takes more than" in finding.message


def test_a_lossy_row_comes_with_its_call():
    (finding,) = examine("one-hot", BonusOfTheDraftRow())
    case = {name: value for name, value in finding.case.items() if name != "seed"}
    arguments = {name: np.array(value) for name, value in case.items()}
    assert arguments["draft"].shape == (1, finding.max_draft)
    ids, n = BonusOfTheDraftRow()(**arguments, rng=np.random.default_rng(0))
    assert tuple(ids[0, : n[0]]) == finding.cells[1].tokens
    assert finding.cells[0].tokens[:-1] == finding.cells[1].tokens[:-1]


@pytest.mark.parametrize(
    ("check", "call", "words"),
    [("one-hot", NoBonus(), "where"), ("equal-laws", ExactMatch(), "keeps")],
)
def test_less_efficient_is_a_note(check, call, words):
    findings = examine(check, call)
    assert [finding.outcome for finding in findings] == [Outcome.PASSED, Outcome.NOTE]
    assert "efficiency" in findings[1].message
    assert words in findings[1].message


@pytest.mark.parametrize(
    ("check", "result"),
    [
        ("empty-batch", lambda B, K: (np.zeros((0, K), int), np.zeros(0, int))),
        ("one-hot", lambda B, K: (np.zeros((B, K + 1), int), np.zeros(B, int))),
        ("no-drafts", lambda B, K: (np.full((B, K + 1), 9), np.ones(B, int))),
    ],
)
def test_what_is_malformed_is_broken(check, result):
    with pytest.raises(ContractBroken):
        examine(check, lambda draft, q, p, num_draft, rng: result(*draft.shape))


def test_an_input_that_is_written_to_is_broken():
    def writes(draft, q, p, num_draft, rng):
        result = RIGHT(draft, q, p, num_draft, rng)
        p[...] = 0
        return result

    with pytest.raises(ContractBroken, match="wrote to its input"):
        examine("different-seeds", writes)


def test_a_seed_decides_all_but_own_entropy():
    plan = replace(PLAN, seed=3)
    first, again = (
        list(BEHAVIOUR["no-drafts"](Subject("it", Contract.RAGGED, RIGHT), plan)) for _ in range(2)
    )
    assert first == again
