"""The command line: every command is a few lines over a function of the library.

Exit codes: 0 well, 1 rejected, 2 wrong usage, 4 inconclusive.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.table import Table

import draftproof.doctor
from draftproof.practice import write_stub
from draftproof.proof.first_evidence import Evidence, first_evidence
from draftproof.proof.joint_test import SEED

__all__ = ["app"]

EXIT_CODES = {"not rejected": 0, "rejected": 1, "inconclusive": 4}

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


@app.command()
def proof(
    sequences: Annotated[
        int, typer.Option(min=2_000, help="How many texts of three tokens each verifier makes.")
    ] = 300_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of drafts and verifiers.")] = SEED,
    json_file: Annotated[
        typer.FileTextWrite | None,
        typer.Option("--json", metavar="FILE", lazy=False, help="Write the findings there too."),
    ] = None,
) -> None:
    """Test that the verifier keeps the target's law, beside two controls that must fail.

    Exit code 0: not rejected. 1: rejected. 4: inconclusive, for a control was not rejected.
    """
    try:
        evidence = first_evidence(sequences=sequences, seed=seed)
    except ModuleNotFoundError as error:
        _refuse(str(error))
    if json_file is not None:
        json.dump(evidence, json_file, indent=2)
    Console().print(_table(evidence), evidence["scope"], sep="\n", highlight=False)
    typer.echo(f"VERDICT: {evidence['verdict']} ({evidence['reason']})")
    raise typer.Exit(EXIT_CODES[evidence["verdict"]])


def _table(evidence: Evidence) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False, collapse_padding=True)
    table.add_column("verifier", no_wrap=True)
    for heading in ("sequences", "chi-square", "threshold", "TV", "passes", "wanted"):
        table.add_column(heading, justify="right")
    for finding in evidence["findings"]:
        table.add_row(
            finding["name"],
            f"{finding['sequences']:,}",
            f"{finding['statistic']:,.1f}",
            f"{finding['threshold']:.1f}",
            f"{finding['total_variation']:.4f}",
            "no" if finding["outcome"] == "rejected" else "yes",
            "no" if finding["wanted"] == "rejected" else "yes",
            style="" if finding["outcome"] == finding["wanted"] else "bold red",
        )
    return table


def _refuse(message: str) -> NoReturn:
    typer.echo(f"Error: {message}", err=True)
    raise typer.Exit(2)
