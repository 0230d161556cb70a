import io

import pytest
from rich.console import Console

from draftproof.report.card import card_text, print_card
from draftproof.report.summary import facts, headline
from tests.report.verdicts import ALL, rejected, verdict


@pytest.mark.parametrize("outcome", ALL)
def test_the_last_line_is_the_verdict_whole_on_any_width(outcome):
    for width in (30, 100):
        text = card_text(ALL[outcome], width)
        assert text.endswith(f"\n{headline(ALL[outcome])}\n")
        assert "\x1b" not in text


@pytest.mark.parametrize("outcome", ALL)
def test_every_fact_is_shown(outcome):
    text = card_text(ALL[outcome], width=400)
    for topic, says in facts(ALL[outcome]):
        assert topic in text
        assert all(line in text for line in says.splitlines())


def test_a_rejection_says_where_what_how_near_and_how_to_see_it_again():
    text = card_text(ALL["rejected"], width=400)
    for part in (
        "exact law", "world L4, g = 2, K = 3", "412", "0 1 2: 0.007812, the target has 0.023438",
        "residual |p - q| (naive #19): draws from |p - q|", "0.98",
        "draftproof check mine.py:verify --seed 7", "from mine import verify",
    ):  # fmt: skip
        assert part in text


def test_a_fault_without_a_public_name_has_no_brackets():
    data = rejected().to_dict()
    data["nearest_fault"]["public"] = ""
    assert "residual |p - q|: draws from" in card_text(data, width=400)


def test_what_a_subject_says_is_no_markup_and_no_control_code():
    data = verdict(reason="[red]x[/red]", subject="[bold]m:f").to_dict()
    text = card_text({**data, "outcome": "broken", "captured_output": "\x1b[31mred\x1b[0m"})
    assert "[bold]m:f" in text
    assert "VERDICT: broken ([red]x[/red])" in text
    assert "\x1b" not in text
    assert "red" in text


def test_the_script_survives_a_copy():
    text = card_text(ALL["rejected"])
    assert "  draft = np.array([[1, 2]])" in text


def test_a_terminal_gets_colours():
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, color_system="standard", width=100)
    print_card(ALL["rejected"], console)
    assert "\x1b[1;31mVERDICT: rejected" in out.getvalue()
