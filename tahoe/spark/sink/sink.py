"""A ``Sink`` of Structured Streaming: the JVM object that receives the batches of a query.

    start ─► DeltaSink (Java) ──(query, number, rows)──► `write_batch` ─► `tahoe.ops.rows.stream_batch`: one commit for each batch
                    ▲                                          │
                    └────── nothing, or the exception to throw ┘

Spark has no public method for a sink object, only for a provider class; so a query is started by the private method of ``DataStreamWriter``
by which Spark starts its own sinks (docs/design/026).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tahoe.api.table import Table
from tahoe.base.exceptions import TahoeError
from tahoe.ops.rows.stream_batch import Batch, CommitsTable, commit_batch
from tahoe.ops.write.completion import Completion
from tahoe.protocol.actions import AddFile
from tahoe.protocol.config import TableConfig
from tahoe.spark.commands.write_options import Insert
from tahoe.spark.jvm.bridge import JavaObject, Jvm, handle_of
from tahoe.spark.jvm.compiled import compiled_object
from tahoe.spark.jvm.errors import java_exception
from tahoe.spark.jvm.job_progress import job_progress
from tahoe.spark.jvm.proxies import Proxied, answered
from tahoe.spark.jvm.records import items
from tahoe.spark.jvm.storage import hadoop_path
from tahoe.spark.versions.members import private_method, private_value
from tahoe.spark.write.enforce import enforced, in_session_zone
from tahoe.spark.write.fitting import casts_of_inserts, columns_of
from tahoe.spark.write.writer import write_files
from tahoe.txn.transaction import Transaction

_USE = "write streams but by foreachBatch"


@dataclass(frozen=True, slots=True)
class StreamWriterOptions:
    """The options of a stream's writer, which Spark stores in private fields.

    Args:
        writer: the JVM ``DataStreamWriter``.
        partition_by: in the spelling of the data; None if not specified.
        cluster_by: likewise.
    """

    writer: JavaObject
    source: str
    output_mode: str
    options: Mapping[str, str]
    partition_by: tuple[str, ...] | None
    cluster_by: tuple[str, ...] | None

    @classmethod
    def of(cls, spark: SparkSession, writer: JavaObject) -> StreamWriterOptions:
        """Read the fields of a JVM ``DataStreamWriter``.

        Raises:
            Unsupported: ``TAHOE_SPARK_VERSION``; this Spark version's writer has other members.
            AnalysisException: Spark's own, for a partition or clustering column that the data lacks.
        """
        _start_method(writer)
        return cls(
            writer,
            str(private_value(writer, "source", _USE)),
            str(private_value(writer, "outputMode", _USE).toString()),
            Jvm.of(spark).dictionary(private_value(writer, "extraOptions", _USE).originalMap()),
            _columns(spark, writer, "partitioningColumns", "normalizedParCols"),
            _columns(spark, writer, "clusteringColumns", "normalizedClusteringCols"),
        )


def _start_method(writer: JavaObject) -> JavaObject:
    return private_method(writer, "startQuery", 5, _USE)


def _columns(spark: SparkSession, writer: JavaObject, field: str, method: str) -> tuple[str, ...] | None:
    if not private_value(writer, field, _USE).isDefined():
        return None
    columns = private_method(writer, method, 0, _USE).invoke(writer, Jvm.of(spark).array("java.lang.Object", ()))
    return tuple(str(column) for column in items(columns.get()))


def start_query(spark: SparkSession, table: Table, options: StreamWriterOptions, request: Insert, *, path: str) -> JavaObject:
    """Start the query; return Spark's own ``StreamingQuery``.

    Args:
        path: of the table, as the query shows it.
    """
    jvm, writer = Jvm.of(spark), options.writer
    sink = compiled_object(jvm, "DeltaSink", f"DeltaSink[{hadoop_path(table.url)}]", _Batches(spark, table, request))
    pair = jvm.java_class("scala.Tuple2")("path", path)
    extra_options = getattr(private_value(writer, "extraOptions", _USE), "$plus")(pair)
    # After each batch, Spark would refresh a table with a known name, in a way that only its own relations support; Tahoe's own
    # commits refresh the cached data of the table.
    catalog, name = jvm.option(None), jvm.option(None)
    arguments = jvm.array("java.lang.Object", (sink, extra_options, True, catalog, name))
    return _start_method(writer).invoke(writer, arguments)


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
            return java_exception(jvm, error)
        return None

    class Java:
        """The interface that the JVM may call on this object."""

        implements = ("scala.Function4",)


def write_batch(
    table: Table, query: str, number: int, data: DataFrame, request: Insert, *, reads_target: bool = False
) -> int | None:
    """Write the rows in a Spark job and commit; return the version, or None if the table already has the batch.

    Args:
        query, number, reads_target: see `tahoe.ops.rows.stream_batch.Batch`.
        data: the rows, which a separate job may write.

    Raises: see `tahoe.ops.rows.stream_batch.commit_batch`.
    """

    def write(transaction: Transaction, config: TableConfig) -> Sequence[AddFile]:
        completion = Completion(in_session_zone(data.sparkSession, transaction), data.columns)
        rows = enforced(data, config, completion=completion, casts=casts_of_inserts(data.sparkSession))
        with job_progress(data.sparkSession, transaction.clock):
            return write_files(rows, config, transaction, request.files, completion=completion)

    commit = partial(table.commit, user_metadata=request.user_metadata)
    batch = Batch(query, number, columns_of(data), reads_target)
    return commit_batch(CommitsTable(table.url, table.begin, commit), batch, request.options, write)


def _frame(spark: SparkSession, rows: JavaObject) -> DataFrame:
    """Return the rows of a batch as a DataFrame that may be changed and written: the query's computation stays a separate plan, in which
    alone Spark handles the query's state and watermarks.
    """
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

    session = rows.sparkSession()
    converted = session.internalCreateDataFrame(rows.queryExecution().toRdd(), rows.schema(), False)
    return ClassicDataFrame(converted, handle_of(spark, session))
