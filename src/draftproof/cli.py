"""The command line: every command is a few lines over a function of the library.

Exit codes: 0 well, 1 rejected, 2 wrong usage, 3 contract broken, 4 inconclusive.
"""

from __future__ import annotations

import enum
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

import draftproof.doctor
from draftproof.practice import write_stub
from draftproof.proof.subjects.contracts import Contract
from draftproof.report.card import print_card
from draftproof.report.junit import junit_xml
from draftproof.report.summary import Json

__all__ = ["app"]


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]

app = typer.Typer(
    help="Lossless verification for speculative decoding, with the proof that it is lossless.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"draftproof {version('draftproof')}")
        raise typer.Exit


@app.callback()
def take_options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Take the options that stand before a command."""


@app.command()
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Show what this installation can do, and what it lacks."""
    raise typer.Exit(draftproof.doctor.main(["--json"] if as_json else []))


@app.command()
def practice(
    init: Annotated[Path, typer.Option("--init", metavar="FILE", help="The file to write.")],
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
) -> None:
    """Write the practice problem as a Python file to fill in. Run that file to check a solution."""
    try:
        write_stub(init, overwrite=force)
    except FileExistsError:
        _refuse(f"{init} exists. Choose another name, or replace it with --force.")
    except OSError as error:
        _refuse(f"{init} cannot be written: {error.strerror}.")
    typer.echo(f"Wrote {init}. Fill in verify_speculative_tokens, then run: python {init}")


class Profile(enum.StrEnum):
    """How much evidence to gather; see `draftproof.proof.trial.plan`."""

    QUICK = "quick"
    STANDARD = "standard"
    PAPER = "paper"


class Against(enum.StrEnum):
    """What else to judge at the same budget."""

    MUTANTS = "mutants"


def _list_adapters(wanted: bool) -> None:
    if wanted:
        from draftproof.integrations.public.table import ADAPTERS, installed_version

        rows = [
            {**vars(adapter), "installed": installed_version(adapter)}
            for adapter in ADAPTERS.values()
        ]
        _show(rows, False, ("name", "package", "tested", "installed", "contract", "calls"))
        raise typer.Exit


def _file(option: str, what: str) -> Any:
    return typer.Option(
        option,
        metavar="FILE",
        lazy=False,
        encoding="utf-8",
        errors="replace",
        help=what,
        rich_help_panel="Output",
    )


OWN_MODELS, LONG_RUNS = "For a decoder with models of its own", "Long runs, in parts"
"""Headings of options."""


@app.command()
def check(
    subject: Annotated[
        str | None,
        typer.Argument(
            metavar="SUBJECT",
            help="module:attr, path/to/file.py:attr or a name of --list. Left out, or own: "
            "draftproof's own verify, on every backend that is installed.",
        ),
    ] = None,
    contract: Annotated[
        Contract | None, typer.Option(help="The call shape. Left out: guessed, and shown.")
    ] = None,
    profile: Annotated[
        Profile,
        typer.Option(help="Of a fast subject: seconds, a minute or two, or an hour of evidence."),
    ] = Profile.STANDARD,
    seed: Annotated[int, typer.Option(min=0, help="Of all that is drawn.")] = 0,
    timeout: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            help="Seconds that one check may take: more for a slow subject, or a busy machine.",
        ),
    ] = None,
    json_file: Annotated[typer.FileTextWrite | None, _file("--json", "Write the verdict.")] = None,
    html_file: Annotated[typer.FileTextWrite | None, _file("--html", "Write a page.")] = None,
    junit_file: Annotated[
        typer.FileTextWrite | None, _file("--junit", "Write JUnit XML, for CI systems.")
    ] = None,
    fail_fast: Annotated[
        bool, typer.Option("--fail-fast", help="Stop at the first finding that decides.")
    ] = False,
    against: Annotated[
        Against | None, typer.Option(help="Judge every known wrong verifier alike, too.")
    ] = None,
    law: Annotated[
        str | None,
        typer.Option(
            metavar="module:attr",
            help="Its target's law: law(prompt, prefix) -> row.",
            rich_help_panel=OWN_MODELS,
        ),
    ] = None,
    plain: Annotated[
        str | None,
        typer.Option(
            metavar="module:attr",
            help="In place of a law, the same decoder without speculation.",
            rich_help_panel=OWN_MODELS,
        ),
    ] = None,
    prompts: Annotated[
        typer.FileText | None,
        typer.Option(
            metavar="FILE", help="JSON: a list of token lists.", rich_help_panel=OWN_MODELS
        ),
    ] = None,
    eos: Annotated[
        int | None,
        typer.Option(
            min=0, help="The token behind which its texts end.", rich_help_panel=OWN_MODELS
        ),
    ] = None,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Only bet against it, until it is proved wrong or Ctrl-C.",
            rich_help_panel=LONG_RUNS,
        ),
    ] = False,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="i/n",
            help="Run one of n parts, and write a tally for draftproof merge.",
            rich_help_panel=LONG_RUNS,
        ),
    ] = None,
    tally: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Where --shard writes its tally.", rich_help_panel=LONG_RUNS
        ),
    ] = None,
    texts: Annotated[
        int | None,
        typer.Option(
            min=1, help="Of all shards together, in each world.", rich_help_panel=LONG_RUNS
        ),
    ] = None,
    on_ray: Annotated[
        bool,
        typer.Option(
            "--ray",
            help="Run all shards on a Ray cluster (RAY_ADDRESS, or here).",
            rich_help_panel=LONG_RUNS,
        ),
    ] = False,
    shards: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Parts for --ray; as many as it has processors.",
            rich_help_panel=LONG_RUNS,
        ),
    ] = None,
    listing: Annotated[
        bool,
        typer.Option(
            "--list", callback=_list_adapters, is_eager=True, help="Show public implementations."
        ),
    ] = False,
) -> None:
    """Judge whether a verifier is lossless, or show where it is not.

    Exit code 0: not rejected, with the power stated. 1: rejected. 2: the command is not understood.
    3: it breaks its contract. 4: inconclusive, the power was not reached.
    """
    try:
        from draftproof.proof.judge import check as judge

        spec, shape = _resolve(subject, contract)
        beside = {"law": law, "plain": plain, "prompts": _read_prompts(prompts), "eos": eos}
        given: dict[str, Any] = {name: x for name, x in beside.items() if x is not None}
        if watch or shard or on_ray:
            from draftproof.proof.shards.command import Piecemeal

            piecemeal = Piecemeal(spec, shape, profile.value, seed, timeout, given)
        with _progress() as on_progress:
            if shard:
                file = piecemeal.write_shard(shard, texts, tally, on_progress)
                typer.echo(f"Wrote {file}. When all are there: draftproof merge FILES")
                raise typer.Exit
            if watch:
                verdict = piecemeal.watch(on_progress).to_dict()
            elif on_ray:
                from draftproof.integrations.ray import run_shards

                verdict = piecemeal.run_all(run_shards, shards, texts, on_progress).to_dict()
            else:
                verdict = judge(
                    spec,
                    contract=shape,
                    profile=profile.value,
                    seed=seed,
                    timeout=timeout,
                    fail_fast=fail_fast,
                    against_mutants=against is Against.MUTANTS,
                    on_progress=on_progress,
                    **given,
                ).to_dict()
    except ModuleNotFoundError as error:
        _refuse_without(error)
    except ValueError as error:
        _refuse(str(error))
    _show_verdict(verdict, json_file, html_file, junit_file)


@app.command()
def merge(
    tallies: Annotated[list[Path], typer.Argument(metavar="TALLY...", help="Of all shards.")],
    json_file: Annotated[typer.FileTextWrite | None, _file("--json", "Write the verdict.")] = None,
    html_file: Annotated[typer.FileTextWrite | None, _file("--html", "Write a page.")] = None,
    junit_file: Annotated[
        typer.FileTextWrite | None, _file("--junit", "Write JUnit XML, for CI systems.")
    ] = None,
) -> None:
    """Make one verdict of the tallies that check --shard has written; exit codes as of check."""
    try:
        from draftproof.proof.shards.command import merge_files

        verdict = merge_files(tallies).to_dict()
    except ModuleNotFoundError as error:
        _refuse_without(error)
    except ValueError as error:
        _refuse(str(error))
    _show_verdict(verdict, json_file, html_file, junit_file)


def _show_verdict(
    verdict: Json, json_file: Any = None, html_file: Any = None, junit_file: Any = None
) -> NoReturn:
    from draftproof.report.page import html_page

    for file, render in ((json_file, _as_json), (html_file, html_page), (junit_file, junit_xml)):
        if file is not None:
            file.write(render(verdict))
    print_card(verdict, _console())
    raise typer.Exit(verdict["exit_code"])


def _read_prompts(file: Any) -> list[list[int]] | None:
    """Read prompts; anything but a list of lists of integers is refused."""
    if file is None:
        return None
    try:
        prompts = json.load(file)
        if prompts and all(isinstance(t, int) and t >= 0 for prompt in prompts for t in prompt):
            return [list(prompt) for prompt in prompts]
    except (ValueError, TypeError) as error:
        raise ValueError(f"prompts: {file.name} is no JSON of token lists: {error}.") from None
    raise ValueError(f"prompts: found {file.name}; wanted JSON such as [[1, 2], [3]].")


@app.command()
def worlds(as_json: AsJson = False) -> None:
    """List the worlds, whose laws are known exactly, that verifiers are judged in."""
    from draftproof.proof.worlds.catalogue import WORLDS
    from draftproof.proof.worlds.logits_world import LOGITS_WORLDS, logits_world
    from draftproof.proof.worlds.wide import WIDE_WORLDS

    rows: list[dict[str, Any]] = [
        {
            "name": world.name,
            "tokens": world.vocabulary,
            "start": world.start,
            "target": [list(map(str, row)) for row in world.target],
            "draft": [list(map(str, row)) for row in world.draft],
            "why": world.why,
        }
        for world in WORLDS.values()
    ]
    rows += [  # their rows are too long to print
        {"name": wide.name, "tokens": wide.vocabulary, "contexts": wide.contexts, "why": wide.why}
        for wide in WIDE_WORLDS.values()
    ]
    rows += [logits_world(name).to_row() for name in LOGITS_WORLDS]
    _show(rows, as_json, ("name", "tokens", "why"))


@app.command()
def mutants(as_json: AsJson = False) -> None:
    """List the wrong verifiers that the judge must reject, and what catches each.

    Named are the exact checks, and the first one that catches it where no more than a seed, or
    nothing, of its randomness can be reached.
    """
    from draftproof.proof.logits.gallery import logits_table
    from draftproof.proof.mutants import table
    from draftproof.proof.trees.gallery import tree_table

    with redirect_stdout(None):  # one of them prints, and computing a distance runs it
        rows = [*table(), *tree_table(), *logits_table()]
    _show(rows, as_json, ("name", "kind", "total_variation", "caught_by", "public", "does"))


@app.command()
def reproduce(as_json: AsJson = False) -> None:
    """Measure what the papers and plain arithmetic promise. Exit code 1 if a value is missed."""
    try:
        from draftproof.proof import reproduce as figures_of

        figures = list(figures_of.reproduce())
    except ModuleNotFoundError as error:
        _refuse_without(error)
    columns = ("met", "name", "relation", "expected", "measured", "tolerance", "source")
    _show([figure.to_dict() for figure in figures], as_json, columns)
    missed = [figure.name for figure in figures if not figure.met]
    if not as_json:
        told = f"missed: {', '.join(missed)}" if missed else f"all {len(figures)} values met"
        typer.echo(f"REPRODUCED: {told}")
    raise typer.Exit(1 if missed else 0)


@app.command()
def plan(
    cost_ratio: Annotated[
        list[float],
        typer.Option("--cost-ratio", help="Cost of one drafter call over one target call."),
    ],
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Recorded rounds (.npz: draft_token_ids, draft_probs, target_probs, num_draft), "
            "or an AcceptanceRecord (.json).",
        ),
    ] = None,
    alpha: Annotated[
        list[float] | None,
        typer.Option("--alpha", help="In place of FILE: the share of drafts that are accepted."),
    ] = None,
    nodes: Annotated[
        int, typer.Option("--nodes", min=0, help="Most nodes of a tree; 0 for chains alone.")
    ] = 64,
    as_json: AsJson = False,
) -> None:
    """Say how many drafts to make, in a chain or a tree, and by which rule to verify them.

    --cost-ratio and --alpha may be given several times. Trees need recorded rounds.
    """
    from draftproof.efficiency.plan import make_plan, optimal_table, read_ranks, read_survival

    if (file is None) == (not alpha):
        _refuse("what to plan from? Fix: give either FILE or --alpha.")
    columns = ("rule", "num_draft", "expected_tokens", "speed_up")
    try:
        if file is None:
            rows = optimal_table(alpha or [], cost_ratio)
            _show(rows, as_json, ("alpha", "cost_ratio", *columns[1:]))
            return
        survival = read_survival(file)
        ranks = read_ranks(file) if nodes else {}
        plans = [make_plan(survival, ratio, ranks, nodes) for ratio in cost_ratio]
    except (ValueError, OSError) as error:
        _refuse(str(error))
    rows = [row for each in plans for row in each.to_rows()]
    _show(rows, as_json, ("best", "cost_ratio", *columns, "levels"))
    for each in plans if not as_json else ():
        typer.echo(f"PLAN: {each.to_sentence()}")


def _resolve(subject: str | None, contract: str | None) -> tuple[str | None, str | None]:
    """Let a name without a colon stand for the adapter of a public implementation."""
    if subject in (None, "own"):
        return None, contract
    if ":" in subject:
        return subject, contract
    from draftproof.integrations.public.table import find_adapter

    adapter = find_adapter(subject)
    return adapter.spec, contract or adapter.contract


def _as_json(verdict: Json) -> str:
    return json.dumps(verdict, indent=2, allow_nan=False) + "\n"


@contextmanager
def _progress() -> Iterator[Callable[[int, int, str], None]]:
    """Yield what the judge reports its progress to: a bar on a terminal, nothing in CI."""
    console = Console(stderr=True)
    watched = console.is_terminal and not os.environ.get("CI")
    with Progress(console=console, transient=True, disable=not watched) as bar:
        task = bar.add_task("", total=None)

        def advance(done: int, total: int, what: str) -> None:
            bar.update(task, completed=done, total=total, description=what)

        yield advance


def _show(rows: Sequence[Json], as_json: bool, columns: Sequence[str]) -> None:
    """Print rows as JSON, or some of their columns as a table."""
    if as_json:
        typer.echo(json.dumps(list(rows), indent=2))
        return
    table = Table(box=None, header_style="bold", pad_edge=False, collapse_padding=True)
    for column in columns:
        is_number = any(type(row[column]) in (int, float) for row in rows)
        table.add_column(column.replace("_", " "), justify="right" if is_number else "left")
    for row in rows:
        style = "bold red" if row.get("met") is False else ""
        table.add_row(*(_cell(row[column]) for column in columns), style=style)
    _console().print(table, highlight=False)


def _console() -> Console:
    """Where nobody watches, lines may be longer than the 80 columns that rich assumes."""
    console = Console()
    return console if console.is_terminal else Console(width=120)


def _cell(value: Any) -> Text:
    if isinstance(value, bool):
        return Text("yes" if value else "no")
    if isinstance(value, float):
        return Text(f"{value:.6g}")
    if isinstance(value, tuple):
        return Text(" + ".join(map(str, value)))
    return Text("" if value is None else str(value))


def _refuse_without(error: ModuleNotFoundError) -> NoReturn:
    """Name the extra that holds a missing package; a missing module of ours is our own bug."""
    if error.name is None:
        _refuse(str(error))
    if error.name.partition(".")[0] == "draftproof":
        raise error
    _refuse(f"this command needs {error.name}. Fix: pip install 'draftproof[proof]'.")


def _refuse(message: str) -> NoReturn:
    typer.echo(f"Error: {message}", err=True)
    raise typer.Exit(2)
