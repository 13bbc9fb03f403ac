"""Output of commands: tables for people, and JSON, CSV and Arrow for programs. `NO_COLOR` is honoured; colour is never the only signal."""

from __future__ import annotations

import io
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from functools import wraps
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from tahoe.base.exceptions import InvalidRequest
from tahoe.cli.shell.arguments import with_parameters
from tahoe.cli.shell.table_text import USUAL, WIDE, Columns, print_complete, print_fitted, print_pairs

if TYPE_CHECKING:
    import pyarrow as pa


class Format(StrEnum):
    """Formats of printed rows."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    ARROW = "arrow"


ROWS = tuple(Format)
"""Formats of commands that print rows."""

RECORD = (Format.TABLE, Format.JSON)
"""Formats of commands that print one record, or a page of text."""


@dataclass(frozen=True, slots=True)
class Output:
    """Prints the result of a command in the requested format.

    Args:
        wide: show every value of a table completely.
    """

    format: Format
    wide: bool = False

    @property
    def is_text(self) -> bool:
        """Whether the output is text for people."""
        return self.format is Format.TABLE

    def record(self, members: object, show: Callable[[], object]) -> None:
        """Print one record.

        Args:
            members: the record for JSON.
            show: prints the text.
        """
        if self.is_text:
            show()
        else:
            print_json(members)

    def records(
        self,
        records: Sequence[Mapping[str, object]],
        show: Callable[[], object],
        *,
        document: object = None,
        names: Sequence[str] = (),
    ) -> None:
        """Print rows. In CSV and Arrow, members that are objects or lists are JSON texts.

        Args:
            show: prints the text.
            document: for JSON; None for the records.
            names: the columns, also if there are no records; by default the members of all records.
        """
        if self.is_text:
            show()
        elif self.format is Format.JSON:
            print_json(records if document is None else document)
        else:
            self.rows(_arrow_table(records, names))

    def rows(self, rows: pa.Table) -> None:
        """Print Arrow rows; CSV and Arrow's stream format go to standard output as bytes."""
        if self.format is Format.JSON:
            print_json(rows.to_pylist())
        elif self.format is Format.CSV:
            from pyarrow import csv

            csv.write_csv(rows, sys.stdout.buffer)
        elif self.format is Format.ARROW:
            import pyarrow as pa

            with pa.ipc.new_stream(sys.stdout.buffer, rows.schema) as writer:
                writer.write_table(rows)
        else:
            numbers = [_is_number(field.type) for field in rows.schema]
            titles = [(name, "right" if right else "left") for name, right in zip(rows.column_names, numbers, strict=True)]
            self.table(titles, [[_text(value) for value in row.values()] for row in rows.to_pylist()], names=True)

    def table(self, columns: Columns, rows: Iterable[Sequence[str]], *, names: bool = False) -> None:
        """Print a table with a header. On a terminal, each row is one line, and long values are shortened; otherwise they are folded.

        Args:
            rows: one text per column.
            names: without a terminal, keep rows of up to 240 characters on one line, so that names can be searched.
        """
        if self.wide:
            print_complete(columns, rows, None)
        elif sys.stdout.isatty():
            print_fitted(columns, list(rows))
        else:
            print_complete(columns, rows, WIDE if names else USUAL)

    def texts(self, columns: Columns, rows: Iterable[Sequence[str]]) -> None:
        """Print a table of sentences, which are folded and never shortened."""
        print_complete(columns, rows, None if self.wide else USUAL)

    def pairs(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Print names and values, one pair per line."""
        print_pairs(pairs)


def prints(formats: Sequence[Format]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a command: its parameter ``output`` gets the `Output` of the options ``--output``, ``--json`` and ``--wide``.

    Text is paged on a terminal, unless ``--no-pager`` is set. A format that the command lacks is refused before it runs.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def call(**arguments: object) -> None:
            output, is_paged = _output_of(arguments, formats)
            with _paged(is_paged and output.is_text):
                command(**arguments, output=output)

        return with_parameters(call, command, "output", _parameters(formats))

    return decorate


def print_json(value: object, *, on_one_line: bool = False) -> None:
    """Print a JSON document; times as ISO 8601 in UTC. Indented for a terminal unless it is to be on one line; on one line for a pipe."""
    indent = 2 if sys.stdout.isatty() and not on_one_line else None
    sys.stdout.write(json.dumps(value, default=_plain, ensure_ascii=False, indent=indent) + "\n")
    sys.stdout.flush()


def write_page(file: Path, html: str) -> None:
    """Write an HTML page. Raises `InvalidRequest` (`TAHOE_NO_FILE`): the file cannot be written."""
    try:
        file.write_text(html, encoding="utf-8")
    except OSError as error:
        raise InvalidRequest(
            f"The page cannot be written to '{file}': {error.strerror or error}. Pass --html with a file in a folder that exists and can be "
            "written.",
            code="TAHOE_NO_FILE",
            file=str(file),
        ) from error


def _parameters(formats: Sequence[Format]) -> list[Parameter]:
    explained = "The format. arrow is Arrow's stream format, for another program." if Format.ARROW in formats else "The format."
    choices = f"[{'|'.join(formats)}]"
    options = {
        "format": (Format | None, typer.Option("--output", "-o", metavar=choices, help=f"{explained}  [default: table]"), None),
        "json": (bool, typer.Option("--json", help="Short for --output json."), False),
        "wide": (bool, typer.Option("--wide", "--no-truncate", help="Show long values of a table completely."), False),
        "no_pager": (bool, typer.Option("--no-pager", help="Print long text at once."), False),
    }
    return [
        Parameter(f"output_{name}", Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option])
        for name, (kind, option, default) in options.items()
    ]


def _output_of(arguments: dict[str, Any], formats: Sequence[Format]) -> tuple[Output, bool]:
    """Take the options of output out of a command's arguments. Raises `InvalidRequest` if they contradict each other or the command."""
    asked, as_json = arguments.pop("output_format"), arguments.pop("output_json")
    wide, no_pager = arguments.pop("output_wide"), arguments.pop("output_no_pager")
    if as_json and asked not in (None, Format.JSON):
        raise _refused(f"--json and --output {asked} contradict each other. Leave one out.")
    chosen = Format.JSON if as_json else asked or Format.TABLE
    if chosen not in formats:
        raise _refused(
            f"--output {chosen} is for commands that print rows, and this one prints one record. Use --output {' or '.join(formats)}."
        )
    if wide and chosen is not Format.TABLE:
        raise _refused(f"--wide is for --output table: {chosen} has complete values. Leave --wide out.")
    return Output(chosen, wide), not no_pager


def _refused(message: str) -> InvalidRequest:
    return InvalidRequest(message, code="TAHOE_OUTPUT_FORMAT", option="--output")


def _arrow_table(records: Sequence[Mapping[str, object]], names: Sequence[str]) -> pa.Table:
    import pyarrow as pa

    columns = names or list(dict.fromkeys(name for record in records for name in record))
    return pa.table({name: pa.array([_plain_member(record.get(name)) for record in records]) for name in columns})


def _plain_member(value: object) -> object:
    if isinstance(value, Mapping | list | tuple | set | frozenset):
        return json.dumps(value, default=_plain, ensure_ascii=False)
    return value


def _is_number(data_type: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(data_type) or pa.types.is_floating(data_type) or pa.types.is_decimal(data_type))


def _text(value: object) -> str:
    return "NULL" if value is None else value.hex() if isinstance(value, bytes) else str(value)


def _plain(value: object) -> Any:
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, frozenset | set):
        return sorted(value)
    if isinstance(value, Decimal | timedelta | UUID):
        return str(value)
    if isinstance(value, bytes):
        return value.hex()
    raise TypeError(f"{type(value).__name__} cannot be converted to JSON")


# -- long text on a terminal goes through a pager: the variable `PAGER`, or less --------------------------------------------------

_PAGER = "less"
_LESS = "FRX"  # end at once if all fits, keep colors, leave the text on the screen


class _Collected(io.StringIO):
    """Standard output of a command that is shown when it ends."""

    def isatty(self) -> bool:
        return True


@contextmanager
def _paged(is_wanted: bool) -> Iterator[None]:
    """Collect standard output, and show it when the context ends, through a pager if it is longer than the terminal.

    Without a terminal nothing is collected. An error is raised after the text before it is shown.
    """
    terminal = sys.stdout
    if not is_wanted or not terminal.isatty():
        yield
        return
    collected = _Collected()
    sys.stdout = collected
    try:
        yield
    finally:
        sys.stdout = terminal
        _show(collected.getvalue())


def _show(text: str) -> None:
    command = shlex.split(os.environ.get("PAGER", _PAGER))
    if text.count("\n") < shutil.get_terminal_size().lines or not command or shutil.which(command[0]) is None:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    pager = subprocess.Popen(
        command, stdin=subprocess.PIPE, text=True, encoding="utf-8", errors="replace", env={"LESS": _LESS, **os.environ}
    )
    with suppress(BrokenPipeError):  # the user left the pager before it had read all
        pager.communicate(text)
    while pager.poll() is None:
        with suppress(KeyboardInterrupt):  # Ctrl-C is for the pager
            pager.wait()
