from html.parser import HTMLParser

import pytest

from draftproof.report.page import html_page
from draftproof.report.summary import facts, headline
from tests.report.verdicts import ALL, verdict

VOID = {"meta", "link", "br", "img", "hr", "input"}


class Page(HTMLParser):
    """Collects text, ids and tags, and fails on a tag that is closed wrongly."""

    def __init__(self, source):
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text += data


@pytest.mark.parametrize("outcome", ALL)
def test_the_page_is_well_formed_and_says_everything(outcome):
    page = Page(html_page(ALL[outcome]))
    assert headline(ALL[outcome]) in page.text
    for _, says in facts(ALL[outcome]):
        assert says in page.text
    for finding in ALL[outcome]["findings"]:
        assert finding["message"].replace("\0", "\ufffd") in page.text.replace("\0", "\ufffd")


@pytest.mark.parametrize("outcome", ALL)
def test_the_page_needs_nothing_else(outcome):
    page = Page(html_page(ALL[outcome]))
    assert not {"script", "link", "img", "iframe"} & set(page.tags)
    assert not {"src", "href"} & {name for name, _ in page.attributes}
    assert "url(" not in html_page(ALL[outcome])


def test_a_rejection_comes_before_the_evidence():
    text = Page(html_page(ALL["rejected"])).text
    order = ["Rejected", "What speaks against it", "residual |p - q|", "-0.015625",
             "draftproof check mine.py:verify", "The evidence", "Scorecard"]  # fmt: skip
    places = [text.index(part) for part in order]
    assert places == sorted(places)


def test_what_a_subject_says_is_escaped():
    source = html_page(ALL["rejected"])
    assert "<b>from</b>" not in source
    assert "&lt;b&gt;from&lt;/b&gt;" in source


def test_a_bare_verdict_has_a_page():
    bare = verdict(findings=(), scorecard=(), false_alarm_budget={}, captured_output="")
    assert "All findings" not in Page(html_page(bare.to_dict())).text


@pytest.mark.parametrize("outcome", ALL)
def test_the_page_is_accessible(outcome):
    page = Page(html_page(ALL[outcome]))
    ids = [value for name, value in page.attributes if name == "id"]
    labels = [value for name, value in page.attributes if name == "aria-labelledby"]
    assert len(ids) == len(set(ids))
    assert set(labels) <= set(ids)
    assert page.tags.count("h1") == page.tags.count("main") == 1
    assert ("lang", "en") in page.attributes
    assert page.tags.count("th") >= 4
