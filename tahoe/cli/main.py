"""`tahoe`: looks at a table from a shell, and keeps it in order.

Exit codes: 0 all is well, 1 `check` found something wrong with the table, 2 the question could not be answered (one sentence on
standard error says why). Importing this module costs nothing but typer: Arrow, the store and rich are loaded by the command that
needs them.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from tahoe.cli.arguments import NO_ANSWER
from tahoe.cli.detail import detail
from tahoe.cli.files import files, layout
from tahoe.cli.hints import in_shell_words
from tahoe.cli.history import history
from tahoe.cli.secrets import without_secrets
from tahoe.cli.serve import serve
from tahoe.cli.startup import import_little
from tahoe.cli.text import visible
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
from tahoe.exceptions import TahoeError
from tahoe.version import __version__

__all__ = ["app", "main"]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(short_help="schema, size, protocol, properties")(detail)
app.command(short_help="who did what, newest first")(history)
app.command(short_help="the live files, or those that a filter needs")(files)
app.command(short_help="how well it is clustered, and what OPTIMIZE would gain")(layout)
app.command(short_help="what is wrong with the table")(check)
app.command(short_help="small files become few large ones")(optimize)
app.command(short_help="files that nobody may need go")(vacuum)
app.command(short_help="an older version comes back")(restore)
app.command(name="repair-log", short_help="checkpoint and checksum are written anew")(repair_log)
app.command(short_help="files that are gone from storage leave the log")(fsck)
app.command(short_help="statistics of the files, by which queries skip, are made anew")(analyze)
app.command(short_help="a table of its own with the same rows")(clone)
app.command(short_help="lists of files for readers that know no log")(generate)
app.command(short_help="Parquet files become a table where they are")(convert)
app.command(name="drop-feature", short_help="clients that lack a feature can use the table again")(drop_feature)
app.command(short_help="which engines can read and write the table")(compat)
app.command(short_help="the tables below a folder as Iceberg, to every engine")(serve)
app.add_typer(uniform, name="uniform", short_help="the Iceberg side: status, sync, repair")


def main() -> None:
    """The console script: runs a command and turns what it raises into one sentence and an exit code."""
    import_little()
    try:
        try:
            app()
        finally:
            # What is buffered goes out here, where a reader that has gone can be told apart, and not while Python shuts down.
            sys.stdout.flush()
    except SystemExit:
        # The parser of the command line meets a reader that has gone before we do, and calls it a failure.
        if type(sys.stdout).__name__ == "PacifyFlushWrapper":
            sys.exit(0)
        raise
    except BrokenPipeError:
        # The reader of our output (`head`, `less`) has gone: nothing is left to say, and flushing at exit would only complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except TahoeError as error:
        _give_up(str(error))
    except Exception as error:
        if os.environ.get("TAHOE_TRACEBACK"):
            raise
        _give_up(f"unexpected {type(error).__name__}: {error} (TAHOE_TRACEBACK=1 shows where)")


def _give_up(sentence: str) -> None:
    print(f"tahoe: {visible(without_secrets(in_shell_words(sentence), sys.argv[1:], os.environ))}", file=sys.stderr)  # noqa: T201
    sys.exit(NO_ANSWER)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"tahoe {__version__}")
        raise typer.Exit


@app.callback(
    help="Look at a Delta table and keep it in order, without Spark and without a JVM.",
    epilog="Exit codes: 0 all is well, 1 check found something wrong, 2 the question could not be answered.",
)
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print Tahoe's own version and stop.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """What stands before the command."""
