"""Error classes that depend on the statement: Spark's analyzer or a delta-spark command detects the error first, and programs catch that.

The core has one class for each error, and knows no statements. The functions here are the only places that change an error's class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tahoe.api.table import Table
from tahoe.base.exceptions import NotFound, TahoeError

NO_TABLE = "DELTA_TABLE_NOT_FOUND"
"""The code in the core for a folder without a Delta table; statements replace it."""
COMMANDS: Mapping[str, Mapping[str, str]] = {
    "DESCRIBE HISTORY": {NO_TABLE: "DELTA_TABLE_ONLY_OPERATION"},
    "REORG TABLE … APPLY (PURGE)": {NO_TABLE: "DELTA_ONLY_OPERATION"},
    "REORG TABLE … APPLY (UPGRADE UNIFORM)": {NO_TABLE: "DELTA_ONLY_OPERATION"},
    "DELETE": {},
    "UPDATE": {},
    "MERGE": {},
    "RESTORE": {},
    "CLONE": {},
    "CREATE TABLE AS SELECT": {},
    "REPLACE TABLE AS SELECT": {},
    "": {NO_TABLE: "DELTA_MISSING_DELTA_TABLE"},
}
"""The classes of a command's errors by the core's classes, by the words of `tahoe.spark.statements.command.Command`; ``""`` for other
commands.

For commands that read or change rows, see `reading`.
"""
STREAMS: Mapping[str, str] = {NO_TABLE: "DELTA_SCHEMA_NOT_SET"}
"""The error classes of ``readStream``."""
READERS_OF_TABLES: Mapping[str, str] = {
    "DELTA_ONEOF_IN_TIMETRAVEL": "INVALID_TIME_TRAVEL_SPEC",
    "DELTA_TIMESTAMP_INVALID": "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.OPTION",
}
"""The error classes of a reader's options for a table with a name, which Spark's analyzer checks."""
TIMES_IN_QUERIES: Mapping[str, str] = {"DELTA_TIMESTAMP_INVALID": "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.INPUT"}
"""The error classes of ``TIMESTAMP AS OF``."""
MERGE_STATEMENTS: Mapping[str, str] = {
    "DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION": "NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION",
    "DELTA_NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION": "NON_LAST_NOT_MATCHED_BY_TARGET_CLAUSE_OMIT_CONDITION",
    "DELTA_NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION": "NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION",
}
"""The error classes of MERGE in SQL, whose clauses Spark's parser checks."""
CREATIONS_BY_NAME: Mapping[str, str] = {
    "DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION": "ALL_PARTITION_COLUMNS_NOT_ALLOWED",
    "DELTA_DUPLICATE_COLUMNS_FOUND": "COLUMN_ALREADY_EXISTS",
    "DELTA_DUPLICATE_COLUMNS_FOUND.DATA": "COLUMN_ALREADY_EXISTS",
    "DELTA_INVALID_PARTITION_COLUMN_TYPE": "INVALID_PARTITION_COLUMN_DATA_TYPE",
    "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA": "UNSUPPORTED_FEATURE.PARTITION_WITH_NESTED_COLUMN_IS_UNSUPPORTED",
    "DELTA_DUPLICATE_COLUMNS_FOUND.CLUSTER_BY": "UNSUPPORTED_FEATURE.PARTITION_WITH_NESTED_COLUMN_IS_UNSUPPORTED",
}
"""The error classes of CREATE TABLE and ``saveAsTable``; ``save`` with a path uses the core's. The last two concern clustering columns."""


@contextmanager
def with_classes(classes: Mapping[str, str]) -> Iterator[None]:
    """Change the class of errors that leave the block.

    Args:
        classes: old class → new class; an error of another class, or about a table property, is unchanged.
    """
    try:
        yield
    except TahoeError as error:
        code = None if "property" in error.facts else classes.get(error.code)
        if code is None:
            raise
        raise error.recoded(code) from error.__cause__


@contextmanager
def appending_by_name() -> Iterator[None]:
    """For ``saveAsTable``: a partitioning or clustering that differs from the table's is an illegal argument, not a failed analysis."""
    try:
        yield
    except TahoeError as error:
        if error.code != "DELTA_CLUSTERING_COLUMNS_MISMATCH" and "partition_by" not in error.facts:
            raise
        raise error.recoded("TAHOE_OTHER_LAYOUT") from error.__cause__


@contextmanager
def reading(table: Table, nothing: str = "PATH_NOT_FOUND") -> Iterator[None]:
    """Distinguish an empty path from one with files that are no Delta table, in operations that read or change rows.

    Args:
        nothing: the class for an empty path.
    """
    try:
        yield
    except TahoeError as error:
        if error.code != NO_TABLE or next(table.store.walk(""), None) is not None:
            raise
        # Programs written for delta-spark look for "Path does not exist" and "is not a Delta table" in the text.
        message = f"Path does not exist: {table.url}. It is not a Delta table. Check the path, or create the table."
        raise NotFound(message, code=nothing, table=table.url) from error.__cause__
