"""Rows as text that fits the terminal: values that are too long are shortened, and columns for which there is no space are left out."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tahoe.cli.shell.text import visible

Columns = Sequence[tuple[str, str]]
"""Header and justification (``left`` or ``right``) of each column."""


@dataclass(frozen=True, slots=True)
class FittedTable:
    """A table that fits a width.

    Args:
        columns: those for which there is space.
        widths: their widths in terminal cells.
        is_shortened: whether a value does not fit the width of its column.
    """

    columns: Columns
    widths: tuple[int, ...]
    is_shortened: bool


def fitted(columns: Columns, rows: Sequence[Sequence[str]], width: int) -> FittedTable:
    """Return the widths of the columns in a width: the widest are shortened first, and numbers never.

    Args:
        width: of the terminal, in cells.
    """
    natural = [max(_length(text) for text in (header, *texts)) for (header, _), texts in _with_texts(columns, rows)]
    least = [size if justify == "right" else min(size, _NARROWEST) for size, (_, justify) in zip(natural, columns, strict=True)]
    shown = len(columns)
    while shown > 1 and sum(least[:shown]) > _space(width, shown):
        shown -= 1
    limit = max(natural[:shown], default=0)
    while limit > _NARROWEST and sum(_widths(natural[:shown], least, limit)) > _space(width, shown):
        limit -= 1
    widths = _widths(natural[:shown], least, limit)
    return FittedTable(columns[:shown], tuple(widths), any(a < b for a, b in zip(widths, natural, strict=False)))


def print_fitted(columns: Columns, rows: Sequence[Sequence[str]]) -> None:
    """Print a table to a terminal, with a note on values and columns that are not shown completely."""
    shown = fitted(columns, rows, shutil.get_terminal_size().columns)
    table = _table(shown.columns, one_line=True)
    for row in rows:
        cells = [_cell(text) for text in row[: len(shown.columns)]]
        for cell, width in zip(cells, shown.widths, strict=True):
            cell.truncate(width, overflow="ellipsis")
        table.add_row(*cells)
    _console(None).print(table)
    for note in _notes(shown, len(columns)):
        sys.stdout.write(f"{note}\n")


def print_complete(columns: Columns, rows: Iterable[Sequence[str]], usual: int | None) -> None:
    """Print a table with every value complete.

    Args:
        usual: the width in which values are folded without a terminal; COLUMNS takes its place. None folds nothing.
    """
    table = _table(columns, one_line=usual is None)
    for row in rows:
        table.add_row(*(_cell(text) for text in row))
    terminal = sys.stdout.isatty() and usual is not None
    _console(None if terminal else _UNBOUNDED if usual is None else _width(usual)).print(table)


def print_pairs(pairs: Iterable[tuple[str, str]]) -> None:
    """Print names and values, one pair per line; long values are folded."""
    table = _table([])
    table.show_header = False
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(_cell(name), _cell(value))
    _console(None if sys.stdout.isatty() else _width(USUAL)).print(table)


def _notes(shown: FittedTable, count: int) -> Iterable[str]:
    if len(shown.columns) < count:
        yield f"{len(shown.columns)} of {count} columns are shown: --wide shows all."
    elif shown.is_shortened:
        yield "Values that end with … are shortened: --wide shows all."


def _space(width: int, columns: int) -> int:
    """Return the cells for the values of so many columns."""
    return width - _EDGES - _GAP * (columns - 1)


def _widths(natural: Sequence[int], least: Sequence[int], limit: int) -> list[int]:
    return [max(min(size, limit), few) for size, few in zip(natural, least, strict=False)]


def _with_texts(columns: Columns, rows: Sequence[Sequence[str]]) -> Iterable[tuple[tuple[str, str], list[str]]]:
    for position, column in enumerate(columns):
        yield column, [row[position] for row in rows]


def _length(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(visible(text))


def _table(columns: Columns, *, one_line: bool = False) -> Any:
    from rich import box  # only tables need rich
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for header, justify in columns:
        table.add_column(header, justify=justify, overflow="fold", no_wrap=one_line or justify == "right")  # type: ignore[arg-type]
    return table


def _cell(text: str) -> Any:
    from rich.text import Text

    return Text(visible(text))


def _console(width: int | None) -> Any:
    from rich.console import Console

    return Console(highlight=False, width=width)


def _width(usual: int) -> int:
    """Return the line width without a terminal: COLUMNS, or the default."""
    columns = os.environ.get("COLUMNS", "")
    return max(int(columns), _NARROW) if columns.isascii() and columns.isdecimal() and len(columns) < 6 else usual


USUAL, WIDE = 80, 240
_NARROW, _UNBOUNDED = 60, 100_000
_NARROWEST = 8
_GAP, _EDGES = 3, 2
