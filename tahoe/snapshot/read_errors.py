"""Errors of reading data files, change data files and their vectors: each names table, version and file, and is one of Tahoe's.

What Arrow raises on bytes that were changed depends on where they were hit: any of `OF_DAMAGED_BYTES`. What storage raises stays what
it is, with the place added.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from tahoe.exceptions import CorruptTable, TahoeError

__all__ = ["OF_DAMAGED_BYTES", "cannot_be_read", "check_text", "located_batches", "locating", "told_as_damage"]

OF_DAMAGED_BYTES = (
    pa.ArrowException,
    pa.ArrowMemoryError,
    OSError,
    ValueError,  # with UnicodeDecodeError among them
    ArithmeticError,
    LookupError,
    struct.error,
)
"""What reading raises where bytes are not what they claim to be; never `TahoeError`, which some of these are bases of: except it first."""


@contextmanager
def locating(table: str, version: int | None, file: str) -> Iterator[None]:
    """What is raised inside is an error of Tahoe's that names these three.

    Args:
        table: its URL.
        version: that is being read; None where the file belongs to none yet.
        file: its store name.
    """
    try:
        with told_as_damage(file):
            yield
    except TahoeError as error:
        error.located(table=table, version=version, file=file)
        raise


@contextmanager
def told_as_damage(file: str) -> Iterator[None]:
    """What Arrow raises inside is the error of a data file that cannot be read."""
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
    reason = lines[0][:300] if lines else type(error).__name__
    return CorruptTable(
        f"Data file '{file}' cannot be read as Parquet: {reason}. Restore the file from a copy, or restore the table to an earlier "
        "version.",
        code="TAHOE_DATA_FILE_DAMAGED",
        file=file,
    )


def check_text(values: pa.Array, column: str, file: str) -> None:
    """Raise `CorruptTable` for bytes that are no UTF-8 where text should be, at any depth.

    Arrow takes them from a file unseen, and whoever takes the rows from us trusts that they are text; looking costs some 3 % of reading it.
    """
    if not _has_text(values.type):
        return
    try:
        values.validate(full=True)
    except pa.ArrowInvalid as error:
        raise CorruptTable(
            f"Column '{column}' of data file '{file}' holds text that is not UTF-8 ({error}): a bit was changed, or its writer put other "
            "bytes there. Restore the file from a copy, or restore the table to an earlier version.",
            code="TAHOE_DATA_FILE_DAMAGED",
            file=file,
            column=column,
        ) from error


def _has_text(data_type: pa.DataType) -> bool:
    if pa.types.is_nested(data_type):
        return any(_has_text(data_type.field(number).type) for number in range(data_type.num_fields))
    return bool(pa.types.is_string(data_type))
