"""Error classes that depend on the statement: Spark's analyzer or a command of delta-spark finds the fault first, and programs catch that.

The core has one class for each fault, and knows no statements. What follows are the only places where an error changes its class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tahoe.exceptions import TahoeError
from tahoe.table import Table

__all__ = ["COMMANDS", "CREATIONS_BY_NAME", "STREAMS", "appending_by_name", "reading", "with_classes"]

_NO_TABLE = "DELTA_TABLE_NOT_FOUND"
COMMANDS: Mapping[str, Mapping[str, str]] = {
    "DESCRIBE HISTORY": {_NO_TABLE: "DELTA_TABLE_ONLY_OPERATION"},
    "REORG TABLE … APPLY (PURGE)": {_NO_TABLE: "DELTA_ONLY_OPERATION"},
    "REORG TABLE … APPLY (UPGRADE UNIFORM)": {_NO_TABLE: "DELTA_ONLY_OPERATION"},
    "DELETE": {},
    "UPDATE": {},
    "MERGE": {},
    "RESTORE": {},
    "CLONE": {},
    "CREATE TABLE AS SELECT": {},
    "REPLACE TABLE AS SELECT": {},
    "": {_NO_TABLE: "DELTA_MISSING_DELTA_TABLE"},
}
"""What a command calls the errors of the core, by the words of `tahoe.spark.statements.command.Command`; others do as ``""``.

For commands that read or change rows, see `reading`.
"""
STREAMS: Mapping[str, str] = {_NO_TABLE: "DELTA_SCHEMA_NOT_SET"}
"""What ``readStream`` calls them."""
CREATIONS_BY_NAME: Mapping[str, str] = {
    "DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION": "ALL_PARTITION_COLUMNS_NOT_ALLOWED",
    "DELTA_DUPLICATE_COLUMNS_FOUND": "COLUMN_ALREADY_EXISTS",
    "DELTA_DUPLICATE_COLUMNS_FOUND.DATA": "COLUMN_ALREADY_EXISTS",
    "DELTA_INVALID_PARTITION_COLUMN_TYPE": "INVALID_PARTITION_COLUMN_DATA_TYPE",
    "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA": "UNSUPPORTED_FEATURE.PARTITION_WITH_NESTED_COLUMN_IS_UNSUPPORTED",
    "DELTA_DUPLICATE_COLUMNS_FOUND.CLUSTER_BY": "UNSUPPORTED_FEATURE.PARTITION_WITH_NESTED_COLUMN_IS_UNSUPPORTED",
}
"""What CREATE TABLE and ``saveAsTable`` call them, where ``save`` of a path has the core's. The last two are about clustering columns."""


@contextmanager
def with_classes(classes: Mapping[str, str]) -> Iterator[None]:
    """Give errors that leave the block another class.

    Args:
        classes: by the class that the error has; an error of another one passes as it is.
    """
    try:
        yield
    except TahoeError as error:
        other = classes.get(error.code)
        if other is None:
            raise
        raise error.recoded(other) from error.__cause__


@contextmanager
def appending_by_name() -> Iterator[None]:
    """For ``saveAsTable``: rows with another partitioning or clustering than the table's are an illegal argument, not a failed analysis."""
    try:
        yield
    except TahoeError as error:
        if error.code != "DELTA_CLUSTERING_COLUMNS_MISMATCH" and "partition_by" not in error.facts:
            raise
        raise error.recoded("TAHOE_OTHER_LAYOUT") from error.__cause__


@contextmanager
def reading(table: Table, nothing: str = "PATH_NOT_FOUND") -> Iterator[None]:
    """Tell a path with nothing below it from one with files that are no Delta table, where rows are read or changed.

    Args:
        nothing: the class for the former.
    """
    try:
        yield
    except TahoeError as error:
        if error.code != _NO_TABLE or next(table.store.walk(""), None) is not None:
            raise
        raise error.recoded(nothing) from error.__cause__
