"""Reads a partition folder of a table, as in ``load(".../sales/month=3")``: the rows of that partition.

delta-spark discourages it (``where`` is equivalent), so a warning is issued once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

from tahoe.base.exceptions import InvalidRequest, NotFound
from tahoe.expr.tree.predicate import all_of, quote_identifier
from tahoe.settings.warn_once import warn_once
from tahoe.spark.jvm.storage import table_at
from tahoe.spark.names.options import ReadRequest, travelling
from tahoe.spark.scan.relation import condition_of

if TYPE_CHECKING:
    from tahoe.snapshot.snapshot import Snapshot


_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class Subfolder:
    """A folder inside a table.

    Args:
        request: the read request, for the whole table.
        fragment: the folders below the table's own.
    """

    request: ReadRequest
    fragment: str

    def condition(self, spark: SparkSession, snapshot: Snapshot) -> Column:
        """Return the condition that the folder's rows fulfill.

        Raises:
            InvalidRequest: a folder is not of the form ``column=value`` (``DELTA_INVALID_PARTITION_PATH``), or not of a partition column.
            NotFound: the partition has no files.
        """
        pairs = [_pair(folder, self.fragment) for folder in self.fragment.split("/")]
        unknown = [name for name, _ in pairs if name not in snapshot.partition_columns]
        if unknown:
            raise InvalidRequest(
                f"Table {snapshot.store.url} is partitioned by ({', '.join(snapshot.partition_columns)}), but the path asks for the folder "
                f"'{self.fragment}' of {', '.join(unknown)}. Load the table and use where(…).",
                code="DELTA_NON_PARTITION_COLUMN_SPECIFIED",
                columns=unknown,
            )
        condition = reduce(Column.__and__, (_equals(name, text) for name, text in pairs))
        if not len(snapshot.files_matching(all_of(condition_of(spark, snapshot, condition).predicates))):
            raise NotFound(
                f"Table {snapshot.store.url} has no files in the partition '{self.fragment}'. Load the table and use where(…).",
                code="DELTA_PATH_DOES_NOT_EXIST",
                path=f"{self.request.path}/{self.fragment}",
            )
        return condition


def subfolder_of(spark: SparkSession, request: ReadRequest, options: Mapping[str, str]) -> Subfolder | None:
    """Return the table and folder for a path without a table of its own; None if there is no such table."""
    if "=" not in request.path or table_at(spark, request.path, options).exists():
        return None
    request = travelling(request) or request if "@" in request.path else request
    path = table_root(spark, request.path, options)
    if path is None:
        return None
    fragment = request.path.rstrip("/")[len(path) + 1 :]
    warn_once(
        "load of a partition's folder",
        f"A partition of table {path} is loaded by the path of its folder '{fragment}'. "
        f'Better load the table and use a condition: spark.read.format("delta").load("{path}").where(…).',
    )
    return Subfolder(replace(request, path=path), fragment)


def table_root(spark: SparkSession, path: str, options: Mapping[str, str]) -> str | None:
    """Return the nearest table at the path or at a folder above it; None if there is none, or inside a log."""
    path = path.rstrip("/")
    while path and not path.endswith((":", "/")) and path.rpartition("/")[2] != "_delta_log":
        if table_at(spark, path, options).exists():
            return path
        path = path.rpartition("/")[0]
    return None


def _pair(folder: str, fragment: str) -> tuple[str, str]:
    name, equals, text = folder.partition("=")
    if not equals or not name:
        raise InvalidRequest(
            f"The folders '{fragment}' of a table are no partition: each should be written as column=value. Load the table itself.",
            code="DELTA_INVALID_PARTITION_PATH",
            path=fragment,
        )
    return unquote(name), unquote(text)


def _equals(name: str, text: str) -> Column:
    column = sf.col(quote_identifier(name))
    return column.isNull() if text == _NULL else column == sf.lit(text)
