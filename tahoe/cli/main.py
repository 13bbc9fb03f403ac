"""`tahoe`: inspects and maintains a table from a shell.

docs/guide/command-line.md lists the exit codes. Importing this module loads only typer: Arrow, the store and rich are loaded by the
command that needs them.
"""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from typing import Annotated

import typer

from tahoe.base.exceptions import TahoeError
from tahoe.base.secrets import without_secrets
from tahoe.base.version import __version__
from tahoe.cli.definition import create, schema, set_properties
from tahoe.cli.doctor import doctor
from tahoe.cli.files import files, layout
from tahoe.cli.reports.sql import sql
from tahoe.cli.reports.summaries import diff, du, report, stats
from tahoe.cli.rows import append, changes, head
from tahoe.cli.run import run
from tahoe.cli.serve import serve
from tahoe.cli.shell.arguments import NO_ANSWER
from tahoe.cli.shell.hints import for_shell
from tahoe.cli.shell.startup import import_little
from tahoe.cli.shell.text import visible
from tahoe.cli.uniform import uniform
from tahoe.cli.upkeep import (
    analyze,
    check,
    clone,
    compat,
    convert,
    drop_feature,
    fsck,
    generate,
    optimize,
    repair_log,
    restore,
    vacuum,
)
from tahoe.cli.versions import detail, history, watch

_COMPLETE_VARIABLE = "_TAHOE_COMPLETE"
"""The environment variable with which a completion script runs `tahoe`."""


class Shell(StrEnum):
    """Shells for which there is a script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"
    POWERSHELL = "powershell"


Name = Annotated[Shell, typer.Argument(help="The shell.", show_default=False)]


def completion(shell: Name) -> None:
    """Print the completion script of a shell: tahoe completion bash > ~/.local/share/bash-completion/completions/tahoe"""
    from typer._completion_shared import get_completion_script

    typer.echo(get_completion_script(prog_name="tahoe", complete_var=_COMPLETE_VARIABLE, shell=shell))


app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(short_help="schema, size, protocol, properties")(detail)
app.command(short_help="the commits, newest first")(history)
app.command(short_help="create an empty table")(create)
app.command(short_help="the columns and their types")(schema)
app.command(name="set", short_help="set or remove table properties")(set_properties)
app.command(short_help="print rows")(head)
app.command(short_help="print the change data feed")(changes)
app.command(short_help="run a query in DuckDB's SQL")(sql)
app.command(short_help="compare two versions")(diff)
app.command(short_help="print new commits as they appear")(watch)
app.command(short_help="append a Parquet, CSV, JSON or Arrow file")(append)
app.command(short_help="the live files, or those that a filter needs")(files)
app.command(short_help="how well it is clustered, and the gain of OPTIMIZE")(layout)
app.command(short_help="each column's nulls and bounds, from the log")(stats)
app.command(short_help="the storage that the table uses, by kind of file")(du)
app.command(short_help="write a report as an HTML page")(report)
app.command(short_help="check the table for problems")(check)
app.command(short_help="compact small files into few large ones")(optimize)
app.command(short_help="delete files that no reader may need")(vacuum)
app.command(short_help="restore an older version")(restore)
app.command(name="repair-log", short_help="rewrite checkpoint and checksum")(repair_log)
app.command(short_help="remove files missing from storage from the log")(fsck)
app.command(short_help="recompute the statistics for data skipping")(analyze)
app.command(short_help="create an independent table with the same rows")(clone)
app.command(short_help="write lists of files for readers without Delta support")(generate)
app.command(short_help="convert Parquet files to a table in place")(convert)
app.command(name="drop-feature", short_help="remove a feature, so that clients without it can use the table")(drop_feature)
app.command(short_help="which engines can read and write the table")(compat)
app.command(
    short_help="run a program with Delta enabled in its Spark sessions",
    context_settings={"allow_interspersed_args": False, "ignore_unknown_options": True},
)(run)
app.command(short_help="examine this machine, and whether it reaches a table")(doctor)
app.command(short_help="serve the tables below a folder as Iceberg")(serve)
app.command(short_help="print the completion script of a shell")(completion)
app.add_typer(uniform, name="uniform", short_help="the Iceberg side: enable, status, sync, repair")


def main() -> None:
    """Run the console script: run a command, and convert an exception to one sentence and an exit code."""
    import_little()
    if _COMPLETE_VARIABLE in os.environ:
        _prepare_completion()
    try:
        try:
            app(prog_name="tahoe")  # also for `python -m tahoe`: shells find their completion by this name
        finally:
            # Flush here, where a closed pipe can be recognized, and not while Python shuts down.
            sys.stdout.flush()
    except SystemExit:
        # The command-line parser notices a closed pipe before this function does, and treats it as a failure.
        if type(sys.stdout).__name__ == "PacifyFlushWrapper":
            sys.exit(0)
        raise
    except BrokenPipeError:
        # The reader of our output (`head`, `less`) has exited: there is nothing left to do, and flushing at exit would only raise again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except TahoeError as error:
        _fail(str(error))
    except Exception as error:
        if os.environ.get("TAHOE_TRACEBACK"):
            raise
        _fail(f"unexpected {type(error).__name__}: {error} (TAHOE_TRACEBACK=1 shows where)")


def _prepare_completion() -> None:
    """Make the command answer completion scripts; typer does it only for applications with its own options for completion."""
    from typer._completion_classes import completion_init

    completion_init()


def _fail(sentence: str) -> None:
    print(f"tahoe: {visible(without_secrets(for_shell(sentence), sys.argv[1:], os.environ))}", file=sys.stderr)  # noqa: T201
    sys.exit(NO_ANSWER)


def _print_version(is_set: bool) -> None:
    if is_set:
        typer.echo(f"tahoe {__version__}")
        raise typer.Exit


@app.callback(
    help="Inspect and maintain a Delta table, without Spark and without a JVM.",
    epilog="Exit codes: 0 success, 1 check or doctor found a problem, 2 the command failed, 130 interrupted.",
)
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print Tahoe's version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Options before the command."""
