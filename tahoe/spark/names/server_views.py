"""Permanent views in the catalog of a Spark Connect server, as DESCRIBE TABLE EXTENDED … AS JSON shows them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from tahoe.expr.tree.predicate import quote_identifier
from tahoe.spark.names.server_catalog import ServerEntry, rows_of_sql
from tahoe.sql.table_name import TableName, table_name

_EVOLVES = "EVOLUTION"
_TYPE_EVOLVES = "TYPE EVOLUTION"


@dataclass(frozen=True, slots=True)
class ServerView:
    """A permanent view.

    Args:
        namespace: catalog and database in which its query finds tables without a database.
        query: its text.
        columns: name and DDL type of each column of the view.
        query_columns: the query's columns that they are, in the same order.
        mode: of its schema: ``BINDING``, ``COMPENSATION``, ``TYPE EVOLUTION`` or ``EVOLUTION``.
    """

    namespace: tuple[str, ...]
    query: str
    columns: tuple[tuple[str, str], ...]
    query_columns: tuple[str, ...]
    mode: str

    def of_query(self, rows: DataFrame) -> DataFrame:
        """Return the view's columns of the rows that its query returns."""
        if self.mode == _EVOLVES:
            return rows
        sources = self.query_columns
        if len(set(sources)) < len(self.columns):
            # Only a view with a list of columns may have the same column twice. They are by position.
            sources = tuple(name for name, _ in self.columns)
            rows = rows.toDF(*sources)
        selected = []
        for (name, kind), source in zip(self.columns, sources, strict=True):
            column = sf.col(quote_identifier(source))
            selected.append((column if self.mode == _TYPE_EVOLVES else column.cast(kind)).alias(name))
        return rows.select(*selected)


def server_view(spark: SparkSession, entry: ServerEntry) -> ServerView:
    """Return the view of an entry."""
    text = rows_of_sql(spark, f"DESCRIBE TABLE EXTENDED {TableName(None, entry.parts)} AS JSON")[0][0]
    described = json.loads(text)
    namespace = table_name(described["view_catalog_and_namespace"])
    return ServerView(
        entry.parts[:-1] if namespace is None else namespace.parts,
        described["view_text"],
        tuple((column["name"], _ddl_type(column["type"])) for column in described["columns"]),
        tuple(described.get("view_query_output_columns", ())),
        described.get("view_schema_mode", "BINDING"),
    )


def _ddl_type(kind: Mapping[str, Any]) -> str:
    """Return the DDL of a type. CHAR and VARCHAR become STRING: a view does not check their lengths."""
    match kind["name"]:
        case "array":
            return f"array<{_ddl_type(kind['element_type'])}>"
        case "map":
            return f"map<{_ddl_type(kind['key_type'])}, {_ddl_type(kind['value_type'])}>"
        case "struct":
            fields = (f"{quote_identifier(field['name'])}: {_ddl_type(field['type'])}" for field in kind["fields"])
            return f"struct<{', '.join(fields)}>"
        case "decimal":
            return f"decimal({kind['precision']}, {kind['scale']})"
        case "interval":
            units = (kind["start_unit"], kind["end_unit"])
            return f"interval {units[0]}" if units[0] == units[1] else f"interval {units[0]} to {units[1]}"
        case "char" | "varchar":
            return "string"
        case "string":
            return f"string collate {kind.get('collation', 'UTF8_BINARY')}"
    return str(kind["name"])
