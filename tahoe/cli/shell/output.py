"""Two output formats: JSON for programs, tables for people. `NO_COLOR` is honoured, and colour is never the only signal."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from tahoe.base.exceptions import InvalidRequest
from tahoe.cli.shell.text import visible


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


def print_pairs(pairs: Iterable[tuple[str, str]]) -> None:
    """Print names and values, one pair per line."""
    table = _table([])
    table.show_header = False
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(_cell(name), _cell(value))
    _print(table)


def print_table(columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[str]], *, wide: bool = False) -> None:
    """Print a table with a header.

    Args:
        columns: header and justification (``left`` or ``right``) of each.
        rows: one text per column.
        wide: for a pipe, keep rows of up to 240 characters on one line, so that names can be searched.
    """
    table = _table(columns)
    for row in rows:
        table.add_row(*(_cell(text) for text in row))
    _print(table, _WIDE if wide else _USUAL)


def _table(columns: Sequence[tuple[str, str]]) -> Any:
    from rich import box  # only tables need rich
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for header, justify in columns:
        table.add_column(header, justify=justify, overflow="fold", no_wrap=justify == "right")  # type: ignore[arg-type]
    return table


def _cell(text: str) -> Any:
    from rich.text import Text

    return Text(visible(text))


def _print(table: object, usual: int = 80) -> None:
    from rich.console import Console

    # Without a terminal, lines are folded too, and nothing is cut; --json has unfolded values.
    Console(highlight=False, width=None if sys.stdout.isatty() else _width(usual)).print(table)


def _width(usual: int) -> int:
    """Return the line width without a terminal: COLUMNS, or the default."""
    columns = os.environ.get("COLUMNS", "")
    return max(int(columns), _NARROW) if columns.isascii() and columns.isdecimal() and len(columns) < 6 else usual


def _plain(value: object) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, frozenset | set):
        return sorted(value)
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes):
        return value.hex()
    raise TypeError(f"{type(value).__name__} cannot be converted to JSON")


_USUAL, _NARROW, _WIDE = 80, 60, 240
