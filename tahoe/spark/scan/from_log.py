"""Answers queries from the log: counts, minimum and maximum values, partition column values, and the files that a LIMIT needs.

A rule of Spark's optimizer looks for an aggregate, or a limit, directly over a Delta scan, and queries the log's statistics in Python
(`tahoe.snapshot.row_statistics`). If these suffice, constants replace the aggregate, or rows without a file replace the scan; otherwise the
plan stays. Filters on partition columns may be in between; deleted rows are subtracted.

delta-spark does so for counts and bounds of whole tables (``spark.databricks.delta.optimizeMetadataQuery.enabled``).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from tahoe.expr.tree.predicate import Predicate, all_of, references
from tahoe.schema.types import StructField
from tahoe.snapshot.row_statistics import RowStatistics
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.bulk_objects import LoggedValues, rows_of
from tahoe.spark.jvm.compiled import add_optimizer_rule
from tahoe.spark.jvm.proxies import Proxied, answered
from tahoe.spark.jvm.records import copied, created
from tahoe.spark.jvm.translate import Filter, Names, filter_predicate
from tahoe.spark.scan.deleted_rows import DELETED_ROWS
from tahoe.spark.scan.file_index import FileIndex, opaque_columns, partition_texts

_ENABLED = "spark.databricks.delta.optimizeMetadataQuery.enabled"


def answer_from_log(spark: SparkSession) -> None:
    """Add the rule to the session; copies of the session have it too. A second call does nothing."""
    add_optimizer_rule(spark, "FromLog", lambda: _FromLog(spark), deleted_rows=DELETED_ROWS)


class _FromLog(Proxied):
    """``(question, text of the scan's index, texts of filters, the filters, requested values, node) → answer``; None if the log does not
    contain it.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark, self._jvm = spark, Jvm.of(spark)

    @answered
    def apply(self, question: str, text: str, texts: str, filters: JavaObject, requested: str, node: JavaObject | None) -> Any:
        """Return the answer."""
        index = FileIndex.of_text(text)
        if index is None or str(self._spark.conf.get(_ENABLED, "true")).lower() != "true":
            return None
        parts = texts.split("\n") if texts else []
        conditions = [Filter(condition, partial(filters.apply, number)) for number, condition in enumerate(parts)]
        rows = _known_rows(index, conditions)
        if rows is None:
            return None
        match question:
            case "constants":
                return _constants(index, rows, requested.split("\n"))
            case "partitions":
                return self._partitions(index, rows, requested.split("\n"), node)
        assert question == "limit" and node is not None, question
        return _limited(index, rows, int(requested), node)

    def _partitions(
        self, index: FileIndex, known_rows: RowStatistics, names: Sequence[str], attributes: JavaObject
    ) -> JavaObject | None:
        """Return a relation with the distinct values of partition columns."""
        columns = [_column(index, name) for name in names]
        partitions = [column for column in columns if column is not None and column.name in known_rows.partition_columns]
        files = known_rows.living_files() if len(partitions) == len(columns) else None
        if files is None:
            return None
        texts = {column.physical_name: partition_texts(files, column.physical_name) for column in partitions}
        values = pa.table(texts).group_by(list(texts)).aggregate([])
        types = [column.data_type.to_json_value() for column in partitions]
        distinct = [values[column.physical_name] for column in partitions]
        rows = rows_of(self._jvm, LoggedValues(distinct, types, index.time_zone))
        return created(self._jvm, "plans.logical.LocalRelation", attributes, rows)

    class Java:
        """The interface that the JVM may call on this object."""

        implements = ("scala.Function6",)


def _known_rows(index: FileIndex, filters: Sequence[Filter]) -> RowStatistics | None:
    """Return the rows that fulfill filters on partition columns; None if a filter involves other columns."""
    snapshot = index.snapshot
    names = Names(snapshot.schema, opaque_columns(snapshot))
    predicates: list[Predicate] = []
    for condition in filters:
        predicate = filter_predicate(condition, names, exact=True)
        if predicate is None or any(path[0] not in snapshot.partition_columns for path in references(predicate)):
            return None
        predicates.append(predicate)
    if not predicates:
        index.record(None, snapshot.files())
        return index.known_rows
    met = all_of(predicates)
    files = snapshot.files_matching(met)
    index.record(met, files)
    return RowStatistics(files, snapshot.partition_columns)


def _constants(index: FileIndex, rows: RowStatistics, questions: Sequence[str]) -> str | None:
    """Return one line per question: a number, days since 1970 for a date, nothing for null."""
    lines = [_constant(index, rows, *question.split("\t")) for question in questions]
    return None if None in lines else "\n".join(line for line in lines if line is not None)


def _constant(index: FileIndex, rows: RowStatistics, kind: str, name: str | None = None) -> str | None:
    if name is None:
        return _text(rows.count())
    column = _column(index, name)
    if column is None:
        return None
    if kind == "count of":
        return _text(rows.count_of(column))
    bounds = rows.bounds(column)
    if bounds is None:
        return None
    value = bounds.least if kind == "least" else bounds.greatest
    return "" if value is None else str((value - _EPOCH).days if isinstance(value, date) else value)


def _text(count: int | None) -> str | None:
    return None if count is None else str(count)


def _limited(index: FileIndex, rows: RowStatistics, count: int, scan: JavaObject) -> JavaObject | None:
    """Return the scan with only the files that suffice for this number of rows; None if all files are needed."""
    files = rows.first(count)
    if files is None or len(files) >= index.snapshot.num_files:
        return None
    relation = scan.relation()
    return copied(scan, relation=copied(relation, relation.sparkSession(), location=index.only(files).to_java()))


def _column(index: FileIndex, physical_name: str) -> StructField | None:
    """Return the top-level column with this name in the files."""
    return next((column for column in index.snapshot.schema if column.physical_name == physical_name), None)


_EPOCH = date(1970, 1, 1)
