import math
import re

import pytest

from draftproof.proof.verdicts.finding import Cell, Finding, Grade, Outcome
from draftproof.proof.verdicts.reproducer import MOST_TEXTS, find_reproducer
from draftproof.proof.worlds.catalogue import WORLDS
from draftproof.proof.worlds.law import Law

MUTANT = "mutant:resample p on a rejection"


def lossy(cell, g=2, K=2, **fields):
    return Finding("exact", Outcome.LOSSY, Grade.EXACT, "off\nby a lot", world="L4", num_draft=g,
                   max_draft=K, cells=(cell,), **fields)  # fmt: skip


def script_of(finding, spec=MUTANT, contract="ragged"):
    return find_reproducer(spec, contract, "quick", 3, finding).script


def texts_of(script):
    """n, the last number of the line that sets it."""
    (line,) = re.findall(r"^subject, world, .*$", script, flags=re.MULTILINE)
    return int(line.rpartition(" ")[2])


def run(script, capsys):
    exec(compile(script, "script", "exec"), {})
    return capsys.readouterr().out


@pytest.fixture(scope="module")
def worst() -> Cell:
    """The text that the mutant gets most wrong on L4, by the exact law."""
    from draftproof.proof.exact.exact_law import exact_law

    world = WORLDS["L4"]
    law: Law = exact_law(MUTANT, world, 2)
    wanted = world.target_law(3)
    text = max(wanted, key=lambda text: abs(law.get(text, 0) - wanted[text]))
    return Cell(text, float(wanted[text]), float(law[text]))


def test_the_command_repeats_the_verdict():
    finding = lossy(Cell((0, 1, 2), 0.5, 0.25))
    assert find_reproducer("my file.py:f", "single", "standard", 7, finding).command == (
        "draftproof check 'my file.py:f' --contract single --profile standard --seed 7"
    )


@pytest.mark.parametrize("K", [2, 3])
def test_the_script_makes_the_wrong_text_as_often_as_was_found(worst, capsys, K):
    frequency = float(run(script_of(lossy(worst, K=K)), capsys).split()[0])
    n = texts_of(script_of(lossy(worst, K=K)))
    error = math.sqrt(worst.observed * (1 - worst.observed) / n)
    assert abs(frequency - worst.observed) < 4.9 * error
    assert abs(frequency - worst.expected) > error


def test_a_right_verifier_does_not_show_the_fault(worst, capsys):
    script = script_of(lossy(worst), spec="own:numpy")
    frequency = float(run(script, capsys).split()[0])
    error = math.sqrt(worst.expected / texts_of(script))
    assert abs(frequency - worst.expected) < 4.9 * error


def test_a_fault_too_small_to_draw_is_shown_by_its_exact_law(worst, capsys):
    tiny = Cell(worst.tokens, worst.expected, worst.expected + 1e-7)
    script = script_of(lossy(tiny))
    assert f"{MOST_TEXTS}" not in script
    assert "exact_law" in script
    found, wanted = run(script, capsys).split()
    assert float(eval(found)) == pytest.approx(worst.observed)
    assert float(eval(wanted)) == pytest.approx(worst.expected)


def test_a_call_that_broke_is_called_again(capsys):
    case = {"draft": [[1, -1]], "q": [[[0.5, 0.5], [float("nan")] * 2]],
            "p": [[[0.0, 1.0], [1.0, 0.0], [float("nan")] * 2]], "num_draft": [1]}  # fmt: skip
    broken = Finding("shape", Outcome.BROKEN, Grade.BEHAVIOUR, "broke", case=case)
    out = run(script_of(broken, spec="own:numpy"), capsys)
    assert "array([[ 1,  0, -1]])" in out


def test_an_empty_batch_keeps_its_dimensions():
    case: dict[str, list[int]] = {"draft": [], "q": [], "p": [], "num_draft": []}
    script = script_of(Finding("empty", Outcome.BROKEN, Grade.BEHAVIOUR, "broke", case=case))
    assert "reshape((0, 0))" in script
    compile(script, "script", "exec")


def test_a_greedy_case_gets_point_masses_for_q(capsys):
    case = {"draft": [[1]], "p": [[[0.25, 0.75], [0.75, 0.25]]], "num_draft": [1]}
    greedy = Finding("greedy", Outcome.LOSSY, Grade.EXACT, "differs", max_draft=1, case=case)
    script = script_of(greedy, "draftproof:verify", "ragged")
    assert "[[[0.0, 1.0]]]" in script
    assert "array([[1," in run(script, capsys)


def test_a_practice_case_is_called_again(capsys):
    case = {
        "a": [0, 1],
        "b": [[0.8, 0.2], [0.9, 0.1]],
        "c": [[0.9, 0.1], [0.1, 0.9]],
        "d": [0.5, 0.8],
    }
    finding = Finding("practice", Outcome.LOSSY, Grade.EXACT, "wrong", case=case)
    out = run(script_of(finding, "draftproof:verify_speculative_tokens", "practice"), capsys)
    assert "'acceptance_count': 2" in out


@pytest.mark.parametrize(
    "finding",
    [
        lossy(Cell((0, 1), 0.5, 0.25)),  # not the text of one round
        lossy(Cell((0, 1, 2), 0.5, 0.5)),
        Finding("rows", Outcome.LOSSY, Grade.SAMPLED, "dependent", world="L4"),
    ],
)
def test_anything_else_runs_its_check(finding):
    script = script_of(finding)
    assert f"CHECKS[{finding.check!r}](load({MUTANT!r}, 'ragged'), make_plan('quick', 3))" in script
    compile(script, "script", "exec")
