import ast
import copy
import inspect
import math
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from draftproof import practice
from draftproof.practice import verify_speculative_tokens, write_stub

THREE = ([2, 1], [[0.1, 0.2, 0.7], [0.2, 0.6, 0.2]])
UNIFORM = [0.5, 0.5]


def oracle(tokens, q_rows, p_rows, uniforms):
    """The text of the problem, sentence by sentence, in exact rationals."""

    def argmax(row):
        best = max(row)
        return next(v for v, mass in enumerate(row) if mass == best)

    accepted = []
    for i in range(len(tokens)):
        p, q = [Fraction(m) for m in p_rows[i]], [Fraction(m) for m in q_rows[i]]
        px, qx, u = p[tokens[i]], q[tokens[i]], Fraction(uniforms[i])
        if (px > 0) if qx == 0 else (u <= min(Fraction(1), px / qx)):
            accepted.append(tokens[i])
            continue
        left = [max(Fraction(0), a - b) for a, b in zip(p, q, strict=True)]
        law = [mass / sum(left) for mass in left] if sum(left) else p
        return accepted, argmax(law)
    return accepted, argmax(p_rows[-1]) if len(p_rows) > len(tokens) else None


@st.composite
def rounds(draw):
    """Sixteenths, which floats hold exactly; few of them, so that zeros and ties are common."""
    V, K = draw(st.integers(1, 4)), draw(st.integers(0, 4))
    row = st.lists(st.integers(0, 4).map(lambda n: n / 16), min_size=V, max_size=V)
    bonus = draw(st.booleans())
    return (
        draw(st.lists(st.integers(0, V - 1), min_size=K, max_size=K)),
        draw(st.lists(row, min_size=K, max_size=K)),
        draw(st.lists(row, min_size=K + bonus, max_size=K + bonus)),
        draw(st.lists(st.integers(0, 8).map(lambda n: n / 8), min_size=K, max_size=K)),
    )


@given(rounds())
@example(([], [], [], []))
@example(([0], [[0.0, 0.25]], [[0.0, 0.25]], [0.0]))
def test_equals_the_oracle_and_leaves_its_arguments_alone(arguments):
    before = copy.deepcopy(arguments)
    result = verify_speculative_tokens(*arguments)
    accepted, bonus = oracle(*arguments)
    assert result == {
        "accepted_tokens": accepted,
        "bonus_token": bonus,
        "acceptance_count": len(accepted),
    }
    assert arguments == before
    assert result["accepted_tokens"] is not arguments[0]


@pytest.mark.parametrize(
    ("arguments", "accepted", "bonus"),
    [
        ((*THREE, [[0.05, 0.15, 0.8], [0.1, 0.7, 0.2], [0.5, 0.3, 0.2]], [0.5, 0.4]), [2, 1], 0),
        (([0, 1], [[0.8, 0.2], [0.9, 0.1]], [[0.9, 0.1], [0.1, 0.9]], [0.5, 0.8]), [0, 1], None),
        (([], [], [], []), [], None),
        (([], [], [[0.2, 0.4, 0.4]], []), [], 1),
        (([0], [[0.5, 0.5]], [[0.25, 0.75]], [0.5]), [0], None),  # u equal to the ratio
        (([0], [[0.5, 0.5]], [[0.25, 0.75]], [math.nextafter(0.5, 1)]), [], 1),
        (([0], [[0.5, 0.5]], [[0.5, 0.5]], [1.0]), [0], None),
        (([0], [[0.0, 1.0]], [[0.1, 0.9]], [1.0]), [0], None),  # q = 0 < p: an infinite ratio
        (([0], [[0.0, 1.0]], [[0.0, 1.0]], [0.0]), [], 1),  # 0 / 0, and nothing left of p
        (([0], [[1.0, 0.0]], [[0.0, 1.0]], [0.0]), [0], None),  # 0 <= 0: the text accepts
        (([0], [[0.75, 0.0, 0.25]], [[0.0, 0.5, 0.5]], [0.5]), [], 1),
        (([0], [[0.5, 0.25, 0.25]], [[0.0, 0.5, 0.5]], [0.5]), [], 1),  # a tie: the lower index
        (([0], [[0.4, 0.1, 0.3]], [[0.1, 0.3, 0.5]], [0.5]), [], 2),  # 0.3 - 0.1 < 0.5 - 0.3
        (([0], [[5e-324, 1.0]], [[1.0, 0.0]], [1.0]), [0], None),  # the ratio overflows
    ],
)
def test_worked_cases(arguments, accepted, bonus):
    result = verify_speculative_tokens(*arguments)
    assert (result["accepted_tokens"], result["bonus_token"]) == (accepted, bonus)
    assert result["acceptance_count"] == len(accepted)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (([0], [UNIFORM], [UNIFORM], [0.1, 0.2]), "random_samples: found 2 entries; wanted 1:"),
        (([0], [UNIFORM], [UNIFORM], []), "random_samples: found 0"),
        (([0], [], [UNIFORM], [0.1]), "draft_probs: found 0"),
        (([], [UNIFORM], [UNIFORM], []), "draft_probs: found 1"),
        (([0], [UNIFORM], [], [0.1]), "target_probs: found 0 entries; wanted 1 or 2:"),
        (([0], [UNIFORM], [UNIFORM] * 3, [0.1]), "target_probs: found 3"),
        (([0], [UNIFORM], [[1.0]], [0.1]), "draft_probs at step 0: found 2 probabilities"),
        (([0], [UNIFORM], [UNIFORM, [1.0]], [0.1]), "target_probs at step 1: found 1"),
        (([0, 0], [UNIFORM, [1.0]], [UNIFORM] * 2, [0.1] * 2), "draft_probs at step 1"),
        (([], [], [[]], []), "target_probs at step 0: found 0 probabilities; wanted at least one"),
        (([2], [UNIFORM], [UNIFORM], [0.1]), r"draft_tokens at step 0: found 2; .* in 0\.\.1"),
        (([-1], [UNIFORM], [UNIFORM], [0.1]), "draft_tokens at step 0: found -1"),
        (([0], [UNIFORM], [UNIFORM], [-0.1]), "random_samples at step 0: found -0.1"),
        (([0], [UNIFORM], [UNIFORM], [1.1]), "random_samples at step 0: found 1.1"),
        (([0], [UNIFORM], [UNIFORM], [math.nan]), "random_samples at step 0: found nan"),
        (([0], [[math.nan, 1]], [UNIFORM], [0.1]), "draft_probs at step 0, token 0: found nan"),
        (([0], [UNIFORM], [[1, -0.5]], [0.1]), "target_probs at step 0, token 1: found -0.5"),
        (([0], [UNIFORM], [UNIFORM, [1, math.inf]], [0.1]), "at step 1, token 1: found inf"),
        (([0, 5], [[1.0, 0.0], UNIFORM], [[0.0, 1.0], UNIFORM], [0.5, 0.5]), "at step 1: found 5"),
    ],
)
def test_what_does_not_match_is_refused(arguments, complaint):
    with pytest.raises(ValueError, match=complaint):
        verify_speculative_tokens(*arguments)


NO_NUMBERS = [
    (None, "None"),
    (True, "True"),
    ("0", "'0'"),
    (b"0", "b'0'"),
    ([0], r"\[0\]"),
    (0j, "0j"),
    (Decimal(0), r"Decimal\('0'\)"),
    (math.nan, "nan"),
    (math.inf, "inf"),
    (-math.inf, "-inf"),
    (10**400, "1000"),
    (-(10**400), "-1000"),
    pytest.param(10**5000, "a int that cannot be printed", id="unprintable"),
    pytest.param(Fraction(10**400), r"Fraction\(1000", id="a large fraction"),
]
"""And how a message shows them."""


def refused(arguments, place, found):
    with pytest.raises(ValueError, match=f"^{place}: found {found}.*; wanted .*Fix: ") as error:
        verify_speculative_tokens(*arguments)
    assert type(error.value) is ValueError
    assert len(str(error.value)) < 600


@pytest.mark.parametrize(("odd", "found"), NO_NUMBERS)
def test_what_is_no_number_is_refused_wherever_it_stands(odd, found):
    both = [UNIFORM] * 2
    refused(([0, odd], both, both, [0.1, 0.1]), "draft_tokens at step 1", found)
    refused(([0, 0], both, both, [0.1, odd]), "random_samples at step 1", found)
    for bad in ([0.5, odd], [odd, 0.5]):
        place = f"token {bad.index(odd)}"
        laws = [UNIFORM, bad]
        refused(([0, 0], laws, both, [0.1] * 2), f"draft_probs at step 1, {place}", found)
        refused(([0, 0], both, laws, [0.1] * 2), f"target_probs at step 1, {place}", found)
        bonus = [UNIFORM, UNIFORM, bad]
        refused(([0, 0], both, bonus, [0.1] * 2), f"target_probs at step 2, {place}", found)


@pytest.mark.parametrize("token", [0.0, 1.5, Fraction(1)])
def test_a_token_must_be_an_integer(token):
    refused(([token], [UNIFORM], [UNIFORM], [0.1]), "draft_tokens at step 0", "")


@pytest.mark.parametrize(
    "odd", [None, 1, 0.5, "ab", b"ab", {0: 0.5, 1: 0.5}, {0.5, 0.25}, iter([])]
)
def test_what_is_no_list_is_refused(odd):
    good = [[0], [UNIFORM], [UNIFORM], [0.1]]
    names = ["draft_tokens", "draft_probs", "target_probs", "random_samples"]
    for place, name in enumerate(names):
        refused([*good[:place], odd, *good[place + 1 :]], name, "a ")
    refused(([0], [odd], [UNIFORM], [0.1]), "draft_probs at step 0", "a ")
    refused(([0], [UNIFORM], [odd], [0.1]), "target_probs at step 0", "a ")


@pytest.mark.parametrize(
    ("p", "q"),
    [
        ([Fraction(1, 3), Fraction(2, 3)], [Fraction(2, 3), Fraction(1, 3)]),
        ([1, 0], [0, 1]),
        ([10**300, 1], [1, 10**308]),
        (np.array([0.25, 0.75]), np.array([0.5, 0.5])),
        (np.array([0, 1, 1], dtype=np.uint8), np.array([1, 0, 1], dtype=np.uint8)),
        (np.array([0.25, 0.75], dtype=np.float32), (np.float16(0.5), np.float16(0.5))),
    ],
)
def test_numbers_of_every_kind_are_compared_exactly(p: Any, q: Any):
    for x in range(2):
        for u in (0, 0.5, Fraction(1, 2), np.float32(0.75), 1):
            accepted, bonus = oracle([x], [[*map(exact, q)]], [[*map(exact, p)]], [exact(u)])
            arguments: Any = [np.array([x]), [q], [p], [u]]
            result = verify_speculative_tokens(*arguments)
            assert (result["accepted_tokens"], result["bonus_token"]) == (accepted, bonus)
            assert all(type(token) is int for token in result["accepted_tokens"])


def exact(number):
    return Fraction(number) if isinstance(number, int | Fraction) else Fraction(float(number))


def test_the_argmax_law_is_what_the_docstring_says():
    p, q, grid = [1 / 2, 3 / 8, 1 / 8], [3 / 4, 1 / 8, 1 / 8], 24
    law = [Fraction(0)] * 3
    for x in range(3):
        for k in range(grid):  # midpoints, which no threshold (a multiple of 1/24) meets
            result = verify_speculative_tokens([x], [q], [p], [(k + 0.5) / grid])
            token = x if result["acceptance_count"] else result["bonus_token"]
            assert token is not None
            law[token] += Fraction(q[x]) / grid
    total_variation, argmax = 1 / 4, 1
    assert law == [min(p[v], q[v]) + total_variation * (v == argmax) for v in range(3)]


def test_the_module_needs_no_numpy():
    modules = {
        alias.name if isinstance(node, ast.Import) else node.module
        for node in ast.walk(ast.parse(inspect.getsource(practice)))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert not {module for module in modules if module and module.startswith("numpy")}


def run(file):
    return subprocess.run([sys.executable, file], capture_output=True, text=True, check=False)


def test_the_stub_runs_and_waits_for_a_solution(tmp_path):
    done = run(write_stub(tmp_path / "mine.py"))
    assert done.returncode == 1
    assert "NotImplementedError: write your solution here" in done.stderr


def test_a_solved_stub_passes_its_own_check(tmp_path):
    file = write_stub(tmp_path / "mine.py")
    solution = (
        "from draftproof import verify_speculative_tokens as solve\n"
        "    return solve(draft_tokens, draft_probs, target_probs, random_samples)"
    )
    stub = file.read_text()
    file.write_text(stub.replace('raise NotImplementedError("write your solution here")', solution))
    done = run(file)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line[:3] for line in done.stdout.splitlines()] == ["ok "] * 5


def test_a_wrong_solution_fails_its_check(tmp_path):
    file = write_stub(tmp_path / "mine.py")
    wrong = "return {'accepted_tokens': draft_tokens, 'bonus_token': None, 'acceptance_count': 2}"
    stub = file.read_text()
    file.write_text(stub.replace('raise NotImplementedError("write your solution here")', wrong))
    done = run(file)
    assert done.returncode == 1
    assert done.stdout.count("FAIL") == 4


def test_an_existing_file_is_kept_unless_asked(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("my work")
    with pytest.raises(FileExistsError, match=r"mine\.py, which exists"):
        write_stub(file)
    assert file.read_text() == "my work"
    assert write_stub(str(file), overwrite=True) == file
    assert "NotImplementedError" in file.read_text()
