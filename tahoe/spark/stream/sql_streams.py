"""``SELECT … FROM STREAM t``: Delta tables, by name or path, that SQL text reads as streams.

Spark would look for its own data source behind the name, so the result of `spark.readStream` replaces it when the text is parsed. This
works only in queries: Spark runs streams that are started, and its SQL has no statement that starts one. A view stores its text, and would
resolve the name to another table when it is read from another schema.
"""

from __future__ import annotations

import re

from pyspark.sql import DataFrame, SparkSession

from tahoe.api.table import Table
from tahoe.base.exceptions import TahoeError, Unsupported
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.proxies import PartialFunction
from tahoe.spark.jvm.records import items, with_queries
from tahoe.spark.names.entries import table_named
from tahoe.spark.names.requested_changes import request_of
from tahoe.spark.stream.read_stream import read_stream
from tahoe.spark.versions.source_names import NAMED_RELATION, identified_by

_STREAM = re.compile(r"[(\s]*(?:select|from|with|table)\b.*\bstream\b", re.IGNORECASE | re.DOTALL)
_WORD = re.compile(r"\bstream\b", re.IGNORECASE)
_VIEW = re.compile(r"\s*(?:create|alter)\b.*?\bview\b", re.IGNORECASE | re.DOTALL)

_PIPELINE = re.compile(r"\s*create\s+(?:or\s+\w+\s+)?(?:streaming\s+table|flow|materialized\s+view)\b", re.IGNORECASE)


def reads_streams(text: str) -> bool:
    """Return whether a text is a query that may read a table as a stream."""
    return _STREAM.match(text) is not None


def with_streams(spark: SparkSession, plan: JavaObject) -> JavaObject:
    """Return the plan with a stream in place of each Delta table that is read as one.

    Raises: the errors of `tahoe.spark.stream.read_stream.read_stream`.
    """
    streams = _Streams(spark)
    replaced = streams.within(plan)
    if streams.error is not None:
        raise streams.error
    return replaced


def refuse_streams(spark: SparkSession, plan: JavaObject, text: str) -> None:
    """Raise `Unsupported` (``TAHOE_STREAM_IN_STATEMENT``) if a statement other than a query reads a Delta table as a stream.

    Statements of Spark's pipelines, which no session runs, are left to Spark.

    Args:
        plan: of the statement.
        text: its SQL text.
    """
    if _WORD.search(text) is None or _PIPELINE.match(text) is not None:
        return
    streams = _Streams(spark, refuses=text)
    streams.within(plan)
    if streams.error is not None:
        raise streams.error


class _Streams:
    """Replaces ``UnresolvedRelation``, possibly below a ``NamedStreamingRelation``, by a stream.

    Attributes:
        error: the first error, for the caller to raise, because calls pass through the JVM.
    """

    def __init__(self, spark: SparkSession, refuses: str | None = None) -> None:
        self._spark, self._jvm = spark, Jvm.of(spark)
        self._refuses = refuses
        self.error: TahoeError | None = None

    def within(self, plan: JavaObject) -> JavaObject:
        """Return the plan with streams in it."""
        return plan.transformDownWithSubqueries(PartialFunction(self._of))

    def _of(self, node: JavaObject) -> JavaObject | None:
        kind = str(node.nodeName())
        try:
            if kind == "UnresolvedWith":
                return with_queries(self._jvm, node, self.within)
            if kind == NAMED_RELATION:
                return self._stream(node.productElement(0), name=identified_by(node.productElement(1)))
            if kind == "RelationChanges":
                return self._stream(node.productElement(0), changes=node.productElement(1))
            return self._stream(node) if kind == "UnresolvedRelation" else None
        except TahoeError as error:
            self.error = self.error or error
            return None

    def _stream(self, relation: JavaObject, name: str | None = None, changes: JavaObject | None = None) -> JavaObject | None:
        """Return the stream of a Delta table; None for other relations.

        Args:
            name: of the source, after IDENTIFIED BY.
            changes: the ``ChangelogContext`` of a CHANGES clause.
        """
        if str(relation.nodeName()) != "UnresolvedRelation" or not relation.isStreaming():
            return None
        parts = [str(part) for part in items(relation.multipartIdentifier())]
        named = table_named(self._spark, parts)
        if named is None:
            return None
        if self._refuses is not None:
            raise _refused(self._refuses, ".".join(parts))
        stream = self._rows(named.table, relation.options(), name, changes)
        alias = self._jvm.catalyst("AliasIdentifier")(parts[-1], self._jvm.seq(*parts[:-1]))
        return self._jvm.catalyst("plans.logical.SubqueryAlias")(alias, stream._jdf.logicalPlan())

    def _rows(self, table: Table, options: JavaObject, name: str | None, changes: JavaObject | None) -> DataFrame:
        requested = self._jvm.options(options)
        if changes is None:
            return read_stream(self._spark, table, requested, name=name)
        request = request_of(self._spark, changes, requested)
        return request.labelled(read_stream(self._spark, table, request.options, name=name))


def _refused(statement: str, name: str) -> Unsupported:
    if _VIEW.match(statement) is not None:
        problem = "A view cannot be made in SQL of a stream of a Delta table"
        instead = f"spark.readStream.table('{name}').createOrReplaceTempView(…) makes a temporary one"
    else:
        problem = f"{statement.split(maxsplit=1)[0].upper()} cannot read a Delta table as a stream"
        instead = (
            f"spark.readStream.table('{name}').writeStream.toTable(…) writes what comes; without STREAM the rows of now are read"
        )
    return Unsupported(
        f"{problem}, as FROM STREAM {name} asks for: a stream runs as a query that is started, and Spark's SQL has no statement for that. "
        f"Instead, {instead}.",
        code="TAHOE_STREAM_IN_STATEMENT",
        statement=statement[:200],
    )
