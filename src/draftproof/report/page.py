"""The verdict as one HTML page that needs nothing else: no script, no font, no request."""

from __future__ import annotations

from functools import cache
from importlib import resources

from jinja2 import Environment, StrictUndefined, Template

from draftproof.report.summary import Json, bound, decisive, facts, headline, place, plural, spread

__all__ = ["html_page"]


def html_page(verdict: Json) -> str:
    """Return the page: what speaks against the subject first, then all the evidence.

    Args:
        verdict: what `draftproof.proof.verdicts.verdict.Verdict.to_dict` returns.
    """
    return _template().render(
        verdict=verdict,
        headline=headline(verdict),
        bound=bound(verdict),
        facts=facts(verdict),
        against=decisive(verdict),
        place=place,
        plural=plural,
        spread=spread(verdict),
    )


@cache
def _template() -> Template:
    source = resources.files("draftproof.report").joinpath("templates", "verdict.html.j2")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True
    )
    return environment.from_string(source.read_text(encoding="utf-8"))
