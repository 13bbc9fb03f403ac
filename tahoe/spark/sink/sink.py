"""A ``Sink`` of Structured Streaming: the JVM object that receives the batches of a query.

    start ─► DeltaSink (Java) ──(query, number, rows)──► `tahoe.spark.sink.batches.write_batch`
                    ▲                                              │
                    └────────── nothing, or the exception to throw ┘

Spark has no public method for a sink object, only for a provider class; so a query is started by the private method of ``DataStreamWriter``
by which Spark starts its own sinks (docs/design/026).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tahoe.api.table import Table
from tahoe.base.exceptions import TahoeError
from tahoe.spark.commands.write_options import Insert
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.compiled import compiled_object
from tahoe.spark.jvm.errors import thrown
from tahoe.spark.jvm.private_fields import other_spark
from tahoe.spark.jvm.records import items
from tahoe.spark.jvm.stand_ins import Proxied, answered
from tahoe.spark.jvm.storage import hadoop_path
from tahoe.spark.sink.batches import write_batch

__all__ = ["AskedOfStream", "start_query"]


@dataclass(frozen=True, slots=True)
class AskedOfStream:
    """The settings of a stream's writer, which Spark stores in private fields.

    Args:
        java: the JVM writer, wrapped for access to its private members.
        partition_by: in the spelling of the data; None if not specified.
        cluster_by: likewise.
    """

    java: JavaObject
    source: str
    output_mode: str
    options: Mapping[str, str]
    partition_by: tuple[str, ...] | None
    cluster_by: tuple[str, ...] | None

    @classmethod
    def of(cls, spark: SparkSession, writer: JavaObject) -> AskedOfStream:
        """Read the fields of a JVM ``DataStreamWriter``.

        Raises:
            Unsupported: ``TAHOE_SPARK_VERSION``; this Spark version's writer has other members.
            AnalysisException: Spark's own, for a partition or clustering column that the data lacks.
        """
        jvm = Jvm.of(spark)
        _check_members(writer)
        java = compiled_object(jvm, "StreamWriter", writer)
        return cls(
            java,
            str(java.field("source")),
            str(java.field("outputMode").toString()),
            jvm.dictionary(java.field("extraOptions").originalMap()),
            _columns(java, "partitioningColumns", "normalizedParCols"),
            _columns(java, "clusteringColumns", "normalizedClusteringCols"),
        )


_FIELDS = {"source", "outputMode", "extraOptions", "partitioningColumns", "clusteringColumns"}
_METHODS = {"startQuery": 5, "normalizedParCols": 0, "normalizedClusteringCols": 0}
_CHECKED: set[str] = set()


def _check_members(writer: JavaObject) -> None:
    kind = writer.getClass()
    if str(kind.getName()) in _CHECKED:
        return
    fields = {str(field.getName()) for field in kind.getDeclaredFields()}
    methods = {(str(method.getName()), method.getParameterCount()) for method in kind.getDeclaredMethods()}
    missing = [*sorted(_FIELDS - fields), *(name for name, count in _METHODS.items() if (name, count) not in methods)]
    if missing:
        raise other_spark("write streams but by foreachBatch", f"{kind.getName()} has no {', '.join(missing)}")
    _CHECKED.add(str(kind.getName()))


def _columns(java: JavaObject, field: str, method: str) -> tuple[str, ...] | None:
    if not java.field(field).isDefined():
        return None
    return tuple(str(one) for one in items(java.call(method, []).get()))


def start_query(spark: SparkSession, table: Table, asked: AskedOfStream, request: Insert, *, path: str) -> JavaObject:
    """Start the query; return Spark's own ``StreamingQuery``.

    Args:
        path: of the table, as the query shows it.
    """
    jvm = Jvm.of(spark)
    sink = compiled_object(jvm, "DeltaSink", f"DeltaSink[{hadoop_path(table.url)}]", _Batches(spark, table, request))
    pair = jvm.java_class("scala.Tuple2")("path", path)
    options = getattr(asked.java.field("extraOptions"), "$plus")(pair)
    given = jvm.java_class("java.util.ArrayList")()
    # After each batch, Spark would refresh a table with a known name, in a way that only its own relations support; Tahoe's own
    # commits refresh the cached data of the table.
    for one in (sink, options, True, jvm.option(None), jvm.option(None)):
        given.add(one)
    return asked.java.call("startQuery", given)


class _Batches(Proxied):
    """``(query, number, rows, root paths of their sources) → exception to throw``; a ``scala.Function4``."""

    def __init__(self, spark: SparkSession, table: Table, request: Insert) -> None:
        self._spark, self._table, self._request = spark, table, request

    @answered
    def apply(self, query: str, number: int, rows: JavaObject, roots: str) -> JavaObject | None:
        """Write the rows; return None, or the JVM exception that ends the query."""
        jvm = Jvm.of(self._spark)
        try:
            root = hadoop_path(self._table.url)
            data = _frame(self._spark, rows)
            write_batch(self._table, query, number, data, self._request, reads_target=root in roots.split("\n"))
        except (TahoeError, PySparkException, Py4JJavaError) as error:
            return thrown(jvm, error)
        return None

    class Java:
        """The interface that the JVM may call on this object."""

        implements = ("scala.Function4",)


def _frame(spark: SparkSession, rows: JavaObject) -> DataFrame:
    """Return the rows of a batch as a DataFrame that may be changed and written: the query's computation stays a separate plan, in which
    alone Spark handles the query's state and watermarks.
    """
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

    session = rows.sparkSession()
    made = session.internalCreateDataFrame(rows.queryExecution().toRdd(), rows.schema(), False)
    return ClassicDataFrame(made, SparkSession(spark.sparkContext, session))
