"""Two ways to answer: JSON for programs, tables for people. `NO_COLOR` is honoured, and colour is never the only signal."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import Any

from tahoe.cli.text import visible

__all__ = ["print_json", "print_pairs", "print_table"]


def print_json(value: Any) -> None:
    """One JSON document; times as ISO 8601 in UTC. Indented for a terminal, on one line for a pipe."""
    indent = 2 if sys.stdout.isatty() else None
    sys.stdout.write(json.dumps(value, default=_plain, ensure_ascii=False, indent=indent) + "\n")


def print_pairs(pairs: Iterable[tuple[str, str]]) -> None:
    """Names and values, one a line."""
    table = _table([])
    table.show_header = False
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(_cell(name), _cell(value))
    _print(table)


def print_table(columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[str]], *, wide: bool = False) -> None:
    """A table with a header.

    Args:
        columns: header and justification (``left`` or ``right``) of each.
        rows: one text a column.
        wide: for a pipe, keep a row on one line where that is no longer than 240 characters: names that one searches for.
    """
    table = _table(columns)
    for row in rows:
        table.add_row(*(_cell(text) for text in row))
    _print(table, _WIDE if wide else _USUAL)


def _table(columns: Sequence[tuple[str, str]]) -> Any:
    from rich import box  # only answers for people need rich
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for header, justify in columns:
        table.add_column(header, justify=justify, overflow="fold", no_wrap=justify == "right")  # type: ignore[arg-type]
    return table


def _cell(text: str) -> Any:
    from rich.text import Text

    return Text(visible(text))


def _print(table: Any, usual: int = 80) -> None:
    from rich.console import Console

    # Where there is no terminal lines are folded too, and nothing is cut: whoever wants whole values takes --json.
    Console(highlight=False, width=None if sys.stdout.isatty() else _width(usual)).print(table)


def _width(usual: int) -> int:
    """Of a line where there is no terminal: what COLUMNS says, or the usual one."""
    given = os.environ.get("COLUMNS", "")
    return max(int(given), _NARROW) if given.isascii() and given.isdecimal() and len(given) < 6 else usual


def _plain(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, frozenset | set):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


_USUAL, _NARROW, _WIDE = 80, 60, 240
