"""Rows printed as a table, as JSON, as CSV or in Arrow's stream format."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from tahoe.cli.shell.output import print_json, print_table

if TYPE_CHECKING:
    import pyarrow as pa


class Output(StrEnum):
    """Formats of printed rows."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    ARROW = "arrow"


As = Annotated[Output, typer.Option("--output", "-o", help="The format. arrow is Arrow's stream format, for another program.")]


def print_rows(rows: pa.Table, output: Output) -> None:
    """Print rows in a format; the two machine formats go to standard output as bytes."""
    if output is Output.JSON:
        print_json(rows.to_pylist())
    elif output is Output.CSV:
        from pyarrow import csv

        csv.write_csv(rows, sys.stdout.buffer)
    elif output is Output.ARROW:
        import pyarrow as pa

        with pa.ipc.new_stream(sys.stdout.buffer, rows.schema) as writer:
            writer.write_table(rows)
    else:
        numbers = [_is_number(field.type) for field in rows.schema]
        titles = [(name, "right" if right else "left") for name, right in zip(rows.column_names, numbers, strict=True)]
        print_table(titles, [[_text(value) for value in row.values()] for row in rows.to_pylist()], wide=True)


def _is_number(data_type: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(data_type) or pa.types.is_floating(data_type) or pa.types.is_decimal(data_type))


def _text(value: object) -> str:
    return "NULL" if value is None else value.hex() if isinstance(value, bytes) else str(value)
