"""Errors of reading data files, change data files and their vectors: each is a `TahoeError` that names table, version and file.

For corrupt bytes Arrow raises any of `OF_DAMAGED_BYTES`, depending on their position. Errors of the storage keep their class, and the
location is added.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from tahoe.base.exceptions import CorruptTable, InvalidRequest, TahoeError
from tahoe.schema.text_validity import is_ascii

OF_DAMAGED_BYTES = (
    pa.ArrowException,
    pa.ArrowMemoryError,
    OSError,
    ValueError,  # with UnicodeDecodeError among them
    ArithmeticError,
    LookupError,
    struct.error,
)
"""The exceptions that reading corrupt bytes raises. Some are bases of `TahoeError`, which is never meant here: catch it before these."""


@contextmanager
def locating(table: str, version: int | None, file: str) -> Iterator[None]:
    """Convert the errors raised inside to a `TahoeError` that names table, version and file.

    Args:
        table: its URL.
        version: the version that is read; None for a file that belongs to no version yet.
        file: its store name.
    """
    with naming(table, version, file), reported_as_damage(file):
        yield


@contextmanager
def naming(table: str, version: int | None, file: str | None = None) -> Iterator[None]:
    """Add table, version and file to the message of a `TahoeError` that is raised inside, such as that of an expression."""
    try:
        yield
    except TahoeError as error:
        error.located(table=table, version=version, file=file)
        raise


@contextmanager
def naming_table(table: str) -> Iterator[None]:
    """Add the URL of a table to the message of a `TahoeError` that is raised inside, unless it is about another table."""
    try:
        yield
    except TahoeError as error:
        error.located_in(table)
        raise


@contextmanager
def reported_as_damage(file: str) -> Iterator[None]:
    """Convert the errors that Arrow raises inside to the error of a data file that cannot be read."""
    try:
        yield
    except TahoeError:
        raise
    except OF_DAMAGED_BYTES as error:
        raise cannot_be_read(file, error) from error


def located_batches(batches: Iterator[pa.RecordBatch], table: str, version: int | None, file: str) -> Iterator[pa.RecordBatch]:
    """The batches of a file, with errors as of `locating`."""
    with locating(table, version, file):
        yield from batches


def cannot_be_read(file: str, error: BaseException) -> CorruptTable:
    """The error of a data file whose bytes are no Parquet file, or none with the values that it says it has."""
    lines = str(error).strip().splitlines()
    reason = lines[0][:300].rstrip(".") if lines else type(error).__name__
    return CorruptTable(
        f"Data file '{file}' cannot be read as Parquet: {reason}. Restore the file from a copy, or restore the table to an earlier "
        "version.",
        code="TAHOE_DATA_FILE_DAMAGED",
        file=file,
    )


def check_text(values: pa.Array, column: str, file: str) -> None:
    """Raise `CorruptTable` for string values that are not valid UTF-8, at any depth.

    Arrow does not validate them when it reads a file, and the consumers of the rows rely on it; the check costs about 3 % of the read.
    """
    if not _has_text(values.type) or is_ascii(values):
        return
    try:
        values.validate(full=True)
    except pa.ArrowInvalid as error:
        raise CorruptTable(
            f"Column '{column}' of data file '{file}' contains text that is not UTF-8 ({error}): a bit was changed, or its writer put other "
            "bytes there. Restore the file from a copy, or restore the table to an earlier version.",
            code="TAHOE_DATA_FILE_DAMAGED",
            file=file,
            column=column,
        ) from error


def _has_text(data_type: pa.DataType) -> bool:
    if pa.types.is_nested(data_type):
        return any(_has_text(data_type.field(number).type) for number in range(data_type.num_fields))
    return bool(pa.types.is_string(data_type))


def no_columns(table: str) -> InvalidRequest:
    """Return the error of reading a table without columns.

    Args:
        table: its URL.
    """
    return InvalidRequest(
        f"Table {table} has no columns, so that there is nothing to read. Append rows with mergeSchema, or add columns.",
        code="DELTA_READ_TABLE_WITHOUT_COLUMNS",
        table=table,
    )


def no_columns_to_stream(table: str) -> InvalidRequest:
    """Return the error of a stream of a table without columns."""
    return InvalidRequest(
        f"Table {table} has no columns yet, so there is nothing that a stream could read. Write rows, or add columns first.",
        code="DELTA_SCHEMA_NOT_SET",
        table=table,
    )
