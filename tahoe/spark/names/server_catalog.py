"""Tables in the catalog of a Spark Connect server, which the client finds by Spark's own statements.

An entry has the table's location and the format. The columns in it are those of the table when it was created by name: schema and
properties come from the log, as in a classic session.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import StructType

from tahoe.expr.tree.predicate import quote_identifier, text_literal
from tahoe.spark.jvm.translate import catalog_string

SESSION_CATALOG = "spark_catalog"
_NO_COLUMNS = "col ARRAY<STRING>"
"""In the entry of a table without columns: the server's catalog needs one. It is the column that Spark gives such entries in Hive."""


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """An entry of the server's catalog, or a temporary view.

    Args:
        parts: catalog, database and name.
        provider: the format, in lower case; empty for a view.
        location: the path or URL, unescaped; empty for a view.
        is_temporary: whether it is a temporary view.
        description: of a temporary view, with its columns and the second of its creation.
    """

    parts: tuple[str, ...]
    provider: str
    location: str
    is_managed: bool
    owner: str = ""
    is_view: bool = False
    is_temporary: bool = False
    description: str = ""
    comment: str | None = None

    @property
    def is_delta(self) -> bool:
        """Whether it is a Delta table."""
        return self.provider == "delta"


def plain_sql(spark: SparkSession, text: str, values: object = None, **frames: DataFrame) -> DataFrame:
    """Run a statement as PySpark does, without Tahoe's statements.

    Args:
        values: of its parameters.
        frames: DataFrames for placeholders in the text.
    """
    original: Any = inspect.unwrap(type(spark).sql)
    frame: DataFrame = original(spark, text, values, **frames)
    return frame


def rows_of_sql(spark: SparkSession, text: str) -> list[Row]:
    """Run a statement of the catalog as `plain_sql`, and return its rows.

    The server runs such a statement at once, and returns the rows with the answer. To collect them would be two more requests.
    """
    frame: Any = plain_sql(spark, text)
    client: Any = spark.client
    relation = frame._plan.plan(client)
    if relation.WhichOneof("rel_type") != "local_relation":
        rows: list[Row] = frame.collect()
        return rows
    table = pa.ipc.open_stream(relation.local_relation.data).read_all()
    return [Row(*table.column_names)(*values) for values in zip(*(column.to_pylist() for column in table.columns), strict=True)]


def server_entry(spark: SparkSession, parts: Sequence[str]) -> ServerEntry | None:
    """Return the entry with this name in the server's session catalog; None if there is none, and for temporary views, which take
    precedence.
    """
    relation = server_relation(spark, parts)
    return None if relation is None or relation.is_temporary else relation


def server_relation(spark: SparkSession, parts: Sequence[str]) -> ServerEntry | None:
    """Return the temporary view or the entry with this name in the server's session catalog; None if there is none."""
    if not parts or len(parts) > 3 or (len(parts) == 3 and parts[0].lower() != SESSION_CATALOG):
        return None
    inside = f" IN {quote_identifier(parts[-2])}" if len(parts) > 1 else ""
    # The pattern is a regular expression; a dot is any character.
    pattern = re.sub(r"\W", ".", parts[-1])
    try:
        rows = rows_of_sql(spark, f"SHOW TABLE EXTENDED{inside} LIKE '{pattern}'")
    except AnalysisException as error:
        if str(error.getCondition()) in ("SCHEMA_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND"):
            return None
        raise
    tables = [row for row in rows if str(row["tableName"]).lower() == parts[-1].lower()]
    # The server lists temporary views whatever the database is: those of the session have none, the global ones a database of their own.
    database = parts[-2].lower() if len(parts) > 1 else ""
    for row in tables:
        if row["isTemporary"] and str(row["namespace"]).lower() == database:
            return _temporary(tuple(parts), str(row["information"]))
    stored = [row for row in tables if not row["isTemporary"]]
    return _entry(str(stored[0]["namespace"]), str(stored[0]["tableName"]), str(stored[0]["information"])) if stored else None


def _temporary(parts: tuple[str, ...], information: str) -> ServerEntry:
    return ServerEntry(parts, "", "", is_managed=False, is_view=True, is_temporary=True, description=information)


def _entry(database: str, name: str, information: str) -> ServerEntry:
    lines = [line.split(": ", 1) for line in information.splitlines() if ": " in line]
    # A comment, or the text of a view, may have several lines. They come after the type and the format, and before the location.
    first, last = dict(reversed(lines)), dict(lines)
    is_view = first.get("Type", "") == "VIEW"
    return ServerEntry(
        (SESSION_CATALOG, database, name),
        "" if is_view else first.get("Provider", "").lower(),
        "" if is_view else unquote(last.get("Location", "")),
        first.get("Type", "") == "MANAGED",
        first.get("Owner", ""),
        is_view,
        comment=first.get("Comment"),
    )


def delta_entries(spark: SparkSession, database: str) -> dict[str, ServerEntry]:
    """Return the Delta tables in a database of the server's session catalog, by their names."""
    rows = rows_of_sql(spark, f"SHOW TABLE EXTENDED IN {SESSION_CATALOG}.{quote_identifier(database)} LIKE '*'")
    entries = [_entry(database, str(row["tableName"]), str(row["information"])) for row in rows if not row["isTemporary"]]
    return {entry.parts[-1]: entry for entry in entries if entry.is_delta}


def full_parts(spark: SparkSession, parts: Sequence[str]) -> tuple[str, ...]:
    """Return catalog, database and name of a new entry; the current database if the name has none."""
    database = parts[-2] if len(parts) > 1 else str(spark.catalog.currentDatabase())
    return (SESSION_CATALOG, database, parts[-1])


def managed_location(spark: SparkSession, parts: Sequence[str]) -> str:
    """Return the place of a managed table with this full name.

    Raises PySpark's ``AnalysisException`` (``SCHEMA_NOT_FOUND``) if there is no such database.
    """
    rows = rows_of_sql(spark, f"DESCRIBE DATABASE {quote_identifier(parts[-2])}")
    folder = next(str(row[1]) for row in rows if row[0] == "Location")
    return f"{unquote(folder).rstrip('/')}/{parts[-1].lower()}"


def add_entry(
    spark: SparkSession, parts: Sequence[str], columns: StructType, location: str | None, comment: str | None = None
) -> None:
    """Create the entry of a Delta table.

    Args:
        location: of an external table; None for a managed one, whose folder must be empty.
        comment: of the table, which the catalog lists.

    Raises PySpark's ``AnalysisException`` if the name exists.
    """
    place = "" if location is None else f" LOCATION {text_literal(location)}"
    described = "" if comment is None else f" COMMENT {text_literal(comment)}"
    plain_sql(spark, f"CREATE TABLE {_quoted(parts)} ({_as_ddl(columns)}) USING delta{place}{described}")


def set_columns(spark: SparkSession, parts: Sequence[str], columns: StructType) -> None:
    """Give the entry of a Delta table these columns, if it has others: the server resolves the query of a new view by them."""
    described = {str(row[0]): str(row[1]) for row in rows_of_sql(spark, f"DESCRIBE TABLE {_quoted(parts)}")}
    if described != {column.name: column.dataType.simpleString() for column in columns}:
        plain_sql(spark, f"ALTER TABLE {_quoted(parts)} REPLACE COLUMNS ({_as_ddl(columns)})")


def set_location(spark: SparkSession, parts: Sequence[str], location: str) -> None:
    """Give the entry of a Delta table another location, a path or URL."""
    plain_sql(spark, f"ALTER TABLE {_quoted(parts)} SET LOCATION {text_literal(location)}")


@contextmanager
def managed_entry(spark: SparkSession, parts: Sequence[str], columns: StructType, comment: str | None = None) -> Iterator[None]:
    """Create the entry of a managed table before the block creates the table, since Spark creates such entries only for empty folders; remove
    it if the block fails. Raises the errors of `add_entry`.
    """
    add_entry(spark, parts, columns, None, comment)
    try:
        yield
    except BaseException:
        drop_entry(spark, parts)
        raise


def drop_entry(spark: SparkSession, parts: Sequence[str]) -> None:
    """Remove an entry whose table could not be created; Spark deletes the folder of a managed table."""
    plain_sql(spark, f"DROP TABLE IF EXISTS {_quoted(parts)}")


def _quoted(parts: Sequence[str]) -> str:
    return ".".join(map(quote_identifier, parts[-2:]))


def _as_ddl(columns: StructType) -> str:
    texts = [f"{quote_identifier(column.name)} {catalog_string(column.dataType, quote_identifier)}" for column in columns]
    return ", ".join(texts) or _NO_COLUMNS
