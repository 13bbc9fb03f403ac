"""`tahoe head`, `tahoe changes` and `tahoe append`: the rows of a table, in a shell."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath
from typing import IO, TYPE_CHECKING, Annotated

import typer

from tahoe.base.exceptions import InvalidRequest, NotFound
from tahoe.base.method_options import option
from tahoe.base.wording import counted
from tahoe.cli.shell.arguments import Path, StorageOptions, open_table
from tahoe.cli.shell.flags import Flags, with_flags
from tahoe.cli.shell.output import RECORD, ROWS, Output, prints
from tahoe.cli.shell.text import visible

if TYPE_CHECKING:
    import pyarrow as pa

    from tahoe.api.table import Table


class Format(StrEnum):
    """Formats of files that `tahoe append` reads."""

    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"
    ARROW = "arrow"


_ENDINGS = {
    ".parquet": Format.PARQUET,
    ".csv": Format.CSV,
    ".json": Format.JSON,
    ".jsonl": Format.JSON,
    ".ndjson": Format.JSON,
    ".arrow": Format.ARROW,
    ".arrows": Format.ARROW,
    ".feather": Format.ARROW,
}

File = Annotated[str, typer.Argument(help="A Parquet, CSV, JSON Lines or Arrow file; - for standard input.", show_default=False)]
Input = Annotated[
    Format | None, typer.Option("--format", help="The file's format; by default, as its name ends.", show_default=False)
]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadOptions:
    """The options of `tahoe head`."""

    limit: int = option(10, "--limit", "-n", help="The maximum number of rows.")
    filter: str | None = option(None, "--filter", "-f", help='Only matching rows: "month = 3 and id > 7".')
    columns: str | None = option(None, "--columns", "-c", metavar="NAME,…", help="Only these columns, in this order.")
    version: int | None = option(None, "--at", metavar="VERSION", help="Use this version instead of the newest.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesOptions:
    """The options of `tahoe changes`."""

    start: int | None = option(None, "--from", metavar="VERSION", help="The first version; default: the newest.")
    end: int | None = option(None, "--to", metavar="VERSION", help="The last version; default: the newest.")
    limit: int = option(100, "--limit", "-n", help="The maximum number of rows.")


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendOptions:
    """The options of `tahoe append`."""

    merge_schema: bool = option(False, "--merge-schema", help="Add columns that only the file has.")
    dry_run: bool = option(False, "--dry-run", help="Read and check the file, and write nothing.")


@prints(ROWS)
@with_flags(HeadOptions)
def head(path: Path, flags: Flags, output: Output, option: StorageOptions = []) -> None:  # noqa: B006 - read by typer
    """Print the first rows, or the first rows that match a filter."""
    names = None if flags["columns"] is None else [name.strip() for name in flags["columns"].split(",")]
    rows = open_table(path, option).to_batches(**{**flags, "columns": names})
    output.rows(rows.read_all())


@prints(ROWS)
@with_flags(ChangesOptions)
def changes(path: Path, flags: Flags, output: Output, option: StorageOptions = []) -> None:  # noqa: B006
    """Print the change data feed: inserted, updated and deleted rows with their versions."""
    table, limit = open_table(path, option), flags["limit"]
    feed = table.changes(table.version() if flags["start"] is None else flags["start"], flags["end"])
    output.rows(feed.slice(0, limit))
    if feed.num_rows > limit and output.is_text:
        typer.echo(f"{counted(feed.num_rows, 'row')}, {limit:,} shown")


@prints(RECORD)
@with_flags(AppendOptions)
def append(path: Path, file: File, flags: Flags, output: Output, format: Input = None, option: StorageOptions = []) -> None:  # noqa: B006
    """Append the rows of a file in one commit. Columns are matched by name; CSV and JSON are read with the table's types."""
    table = open_table(path, option)
    dry_run, version = flags["dry_run"], None
    with _opened(file) as stream:
        rows = _Counted(_read(stream, format or _format_of(file), table))
        if dry_run:
            rows.reader().read_all()
        else:
            version = table.append(rows.reader(), merge_schema=flags["merge_schema"])
    read = counted(rows.count, "row")
    sentence = f"would append {read} to {visible(table.url)}" if dry_run else f"appended {read}: version {version}"
    summary = {"table": table.url, "version": version, "rows": rows.count, "dryRun": dry_run}
    output.record(summary, lambda: typer.echo(sentence))


class _Counted:
    """Counts the rows of a stream while it is read."""

    def __init__(self, rows: pa.RecordBatchReader) -> None:
        self._rows = rows
        self.count = 0

    def reader(self) -> pa.RecordBatchReader:
        """Return the stream."""
        import pyarrow as pa

        return pa.RecordBatchReader.from_batches(self._rows.schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for batch in self._rows:
            self.count += batch.num_rows
            yield batch


@contextmanager
def _opened(file: str) -> Iterator[IO[bytes]]:
    if file == "-":
        yield sys.stdin.buffer
        return
    try:
        stream = open(file, "rb")  # noqa: SIM115 - closed below
    except FileNotFoundError as error:
        raise NotFound(
            f"There is no file {file!r}. Check the path; - reads standard input.", code="TAHOE_NO_FILE", file=file
        ) from error
    with stream:
        yield stream


def _format_of(file: str) -> Format:
    ending = PurePath(file).suffix.lower()
    if ending in _ENDINGS:
        return _ENDINGS[ending]
    source = "Standard input has no name" if file == "-" else f"The name {file!r} does not end with one of {', '.join(_ENDINGS)}"
    raise InvalidRequest(f"{source}. Give --format {'|'.join(Format)}.", code="TAHOE_FILE_FORMAT", file=file)


def _read(stream: IO[bytes], format: Format, table: Table) -> pa.RecordBatchReader:
    """Return the rows of a file as a stream. Text formats are read with the table's types, and further columns with inferred ones."""
    import pyarrow as pa

    try:
        if format is Format.PARQUET:
            return _parquet(stream)
        if format is Format.ARROW:
            return _arrow(stream)
        return _text_rows(stream, format, table.to_batches(filter="false").schema)
    except pa.ArrowException as error:
        raise InvalidRequest(
            f"The file cannot be read as {format}: {error}. Check --format, and the types of the table ({table.url}).",
            code="TAHOE_FILE_FORMAT",
            table=table.url,
        ) from error


def _parquet(stream: IO[bytes]) -> pa.RecordBatchReader:
    import pyarrow as pa

    from tahoe.base.lazy import pq

    file = pq.ParquetFile(stream if stream.seekable() else pa.BufferReader(stream.read()))
    return pa.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches())


def _arrow(stream: IO[bytes]) -> pa.RecordBatchReader:
    """Return the rows of Arrow's stream format or file format."""
    import pyarrow as pa

    if not stream.seekable():
        return pa.ipc.open_stream(stream)
    is_file = stream.read(6) == b"ARROW1"
    stream.seek(0)
    if not is_file:
        return pa.ipc.open_stream(stream)
    file = pa.ipc.open_file(stream)
    return pa.RecordBatchReader.from_batches(file.schema, (file.get_batch(number) for number in range(file.num_record_batches)))


def _text_rows(stream: IO[bytes], format: Format, schema: pa.Schema) -> pa.RecordBatchReader:
    import pyarrow as pa
    from pyarrow import csv, json

    if format is Format.CSV:
        # An empty field is NULL and a quoted empty one is text; by default Arrow reads texts such as NA and NaN as NULL too.
        options = csv.ConvertOptions(
            column_types=schema, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
        )
        return csv.open_csv(stream, convert_options=options)
    rows = json.read_json(stream, parse_options=json.ParseOptions(explicit_schema=_without_dates(schema)))
    return rows.cast(pa.schema([_typed(field, schema) for field in rows.schema])).to_reader()


def _without_dates(schema: pa.Schema) -> pa.Schema:
    """Return the schema with text for dates, which Arrow's JSON reader cannot read."""
    import pyarrow as pa

    return pa.schema([field.with_type(pa.string()) if pa.types.is_date(field.type) else field for field in schema])


def _typed(field: pa.Field, schema: pa.Schema) -> pa.Field:
    return schema.field(field.name) if field.name in schema.names else field
