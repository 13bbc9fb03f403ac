"""Tables in the catalog of a Spark Connect server, which the client finds by Spark's own statements.

An entry has the table's location and the format. The columns in it are those of the table when it was created by name: schema and
properties come from the log, as in a classic session.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from tahoe.expr.tree.predicate import quote_identifier
from tahoe.spark.jvm.translate import catalog_string

_CATALOG = "spark_catalog"


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """An entry of the server's catalog.

    Args:
        parts: catalog, database and name.
        provider: the format, in lower case; empty for a view.
        location: the path or URL, unescaped.
    """

    parts: tuple[str, ...]
    provider: str
    location: str
    is_managed: bool
    owner: str = ""

    @property
    def is_delta(self) -> bool:
        """Whether it is a Delta table."""
        return self.provider == "delta"


def plain_sql(spark: SparkSession, text: str, values: object = None) -> DataFrame:
    """Run a statement as PySpark does, without Tahoe's statements.

    Args:
        values: of its parameters.
    """
    original: Any = inspect.unwrap(type(spark).sql)
    frame: DataFrame = original(spark, text, values)
    return frame


def server_entry(spark: SparkSession, parts: Sequence[str]) -> ServerEntry | None:
    """Return the entry with this name in the server's session catalog; None if there is none, and for temporary views, which take
    precedence.
    """
    if not parts or len(parts) > 3 or (len(parts) == 3 and parts[0].lower() != _CATALOG):
        return None
    inside = f" IN {quote_identifier(parts[-2])}" if len(parts) > 1 else ""
    # The pattern is a regular expression; a dot is any character.
    pattern = re.sub(r"\W", ".", parts[-1])
    try:
        rows = plain_sql(spark, f"SHOW TABLE EXTENDED{inside} LIKE '{pattern}'").collect()
    except AnalysisException as error:
        if str(error.getCondition()) in ("SCHEMA_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND"):
            return None
        raise
    tables = [row for row in rows if str(row["tableName"]).lower() == parts[-1].lower()]
    if any(row["isTemporary"] for row in tables):
        return None
    return _entry(str(tables[0]["namespace"]), str(tables[0]["tableName"]), str(tables[0]["information"])) if tables else None


def _entry(database: str, name: str, information: str) -> ServerEntry:
    lines = dict(line.split(": ", 1) for line in information.splitlines() if ": " in line)
    return ServerEntry(
        (_CATALOG, database, name),
        lines.get("Provider", "").lower(),
        unquote(lines.get("Location", "")),
        lines.get("Type", "") == "MANAGED",
        lines.get("Owner", ""),
    )


def full_parts(spark: SparkSession, parts: Sequence[str]) -> tuple[str, ...]:
    """Return catalog, database and name of a new entry; the current database if the name has none."""
    database = parts[-2] if len(parts) > 1 else str(spark.catalog.currentDatabase())
    return (_CATALOG, database, parts[-1])


def managed_location(spark: SparkSession, parts: Sequence[str]) -> str:
    """Return the place of a managed table with this full name.

    Raises PySpark's ``AnalysisException`` (``SCHEMA_NOT_FOUND``) if there is no such database.
    """
    rows = plain_sql(spark, f"DESCRIBE DATABASE {quote_identifier(parts[-2])}").collect()
    folder = next(str(row[1]) for row in rows if row[0] == "Location")
    return f"{unquote(folder).rstrip('/')}/{parts[-1].lower()}"


def add_entry(spark: SparkSession, parts: Sequence[str], columns: StructType, location: str | None) -> None:
    """Create the entry of a Delta table.

    Args:
        location: of an external table; None for a managed one, whose folder must be empty.

    Raises PySpark's ``AnalysisException`` if the name exists.
    """
    fields = ", ".join(
        f"{quote_identifier(column.name)} {catalog_string(column.dataType, quote_identifier)}" for column in columns
    )
    name = ".".join(map(quote_identifier, parts[-2:]))
    place = "" if location is None else f" LOCATION '{location.replace(chr(39), chr(92) + chr(39))}'"
    plain_sql(spark, f"CREATE TABLE {name} ({fields}) USING delta{place}").collect()


def drop_entry(spark: SparkSession, parts: Sequence[str]) -> None:
    """Remove an entry whose table could not be created; Spark deletes the folder of a managed table."""
    plain_sql(spark, f"DROP TABLE IF EXISTS {'.'.join(map(quote_identifier, parts[-2:]))}").collect()
