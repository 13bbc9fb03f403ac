"""Enables Delta in a Spark session: after `enable`, `format("delta")` and ``delta.`/path` `` use Tahoe.

A setting marks a classic session with Delta enabled; its copies and the new sessions that it creates have it too. Methods of PySpark's
session, reader and writer classes check it (`tahoe.spark.entry_points`). A call with another format, or in a session without the mark, goes
to PySpark unchanged.

A session of Spark Connect has no JVM here. `enable` sends the portable source to its server, and changes tables from the client
(`tahoe.spark.connect`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession
from pyspark.sql.classic.dataframe import DataFrame

from tahoe.api.process import UNIFORM_RUNTIME
from tahoe.base.argument_checks import checked_arguments
from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.spark.catalog.enable_names import enable_names
from tahoe.spark.catalog.jar_settings import remove_jar_settings
from tahoe.spark.commands.merge.builder import DeltaMergeBuilder
from tahoe.spark.entry_points.catalog_methods import wrap_catalog
from tahoe.spark.entry_points.input_files import wrap_input_files
from tahoe.spark.entry_points.java_delta_table import add_java_delta_table
from tahoe.spark.entry_points.merging import wrap_merge_into
from tahoe.spark.entry_points.reading import wrap_reader
from tahoe.spark.entry_points.reading_streams import wrap_stream_reader
from tahoe.spark.entry_points.short_errors import shorten_errors
from tahoe.spark.entry_points.wrapping import ENABLED, is_enabled, mark_enabled, wrap
from tahoe.spark.entry_points.writing import wrap_writer
from tahoe.spark.entry_points.writing_streams import wrap_stream_writer
from tahoe.spark.entry_points.writing_v2 import wrap_writer_v2
from tahoe.spark.executors.shard_encoder import SparkShards
from tahoe.spark.jvm.bridge import is_classic
from tahoe.spark.jvm.errors import install
from tahoe.spark.jvm.storage import COORDINATOR, name_coordinator
from tahoe.spark.versions.call_sites import skip_own_call_sites

if TYPE_CHECKING:
    from tahoe.coordinator.sql_coordinator import SqlCoordinator

__all__ = ["ENABLED", "configure_spark_with_delta_pip", "enable", "is_enabled"]


def enable(spark: SparkSession, *, coordinator: SqlCoordinator | None = None, storage: str = "client") -> SparkSession:
    """Enable Delta in a session and return it. No JAR, no other setting, no restart; a second call changes only the arguments.

    Afterwards ``spark.read.format("delta")`` and ``df.write.format("delta")`` read and write Delta tables at native speed. SQL supports
    them by name and as ``delta.`/path` `` (`tahoe.spark.catalog`, `tahoe.spark.statements`). All other formats and all earlier sessions
    stay unchanged.

    Args:
        coordinator: ratifies the commits of the session's catalog-managed tables (docs/design/030); the session's setting
            ``spark.tahoe.coordinator`` then has its URL, without its password. Not supported in Spark Connect sessions.
        storage: of a Spark Connect session: ``client`` if this process reads and writes the tables' logs, ``server`` if only the server
            can reach the storage. Each request to the storage is then a query. A classic session accepts only ``client``.

    Raises:
        InvalidRequest: `spark` is no session, or `storage` is neither ``client`` nor ``server``.
        Unsupported: an argument is not for this kind of session.
    """
    if storage not in ("client", "server"):
        raise InvalidRequest(
            f"enable() takes storage='client' or storage='server', found '{storage}'.",
            code="TAHOE_OPTION_NOT_SUPPORTED",
            option="storage",
        )
    if not isinstance(spark, SparkSession) and not hasattr(spark, "read"):
        raise InvalidRequest(
            f"enable() takes a SparkSession as 'spark', found {type(spark).__name__}.",
            code="TAHOE_NO_SPARK_SESSION",
            parameter="spark",
        )
    if is_classic(spark):
        install()
        shorten_errors()
        skip_own_call_sites()
        enable_names(spark)
        _wrap_classic()
        add_java_delta_table(spark)
        if coordinator is not None:
            name_coordinator(spark, coordinator)
        if storage != "client":
            raise Unsupported(
                "storage='server' is for sessions of Spark Connect: in a classic session, this process is the driver, and reads the "
                "tables' logs itself. Leave the argument out.",
                code="TAHOE_OPTION_NOT_SUPPORTED",
                option="storage",
            )
    else:
        if coordinator is not None or spark.conf.get(COORDINATOR, ""):
            raise Unsupported(
                "A session of Spark Connect reads tables in processes of its server, which know no coordinator. Use a classic session, or "
                "tahoe.Table(path, coordinator=…).",
                code="DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION",
            )
        from tahoe.spark.entry_points.connect import enable_connect  # needs grpc, which classic sessions do not

        enable_connect(spark, through_server=storage == "server")
    mark_enabled(spark)
    UNIFORM_RUNTIME.shards = SparkShards(spark)
    return spark


@checked_arguments
def configure_spark_with_delta_pip(
    spark_session_builder: SparkSession.Builder, extra_packages: list[str] | None = None
) -> SparkSession.Builder:
    """Return the builder, for programs written for delta-spark, whose function adds its JAR here. Tahoe has none: only `extra_packages` are
    added.

    Delta is enabled in the builder's sessions (`enable`). The classes of delta-spark's JAR in ``spark.sql.extensions`` and
    ``spark.sql.catalog.spark_catalog`` are removed.
    """
    if extra_packages:
        spark_session_builder.config("spark.jars.packages", ",".join(extra_packages))
    # Only in this builder: others create sessions as Spark does.
    vars(spark_session_builder)["getOrCreate"] = partial(_enabled, spark_session_builder)
    return spark_session_builder


def _enabled(builder: SparkSession.Builder) -> SparkSession:
    remove_jar_settings(builder._options)
    return enable(SparkSession.Builder.getOrCreate(builder))


# -- classic sessions --------------------------------------------------------------------------------------------------------


def _wrap_classic() -> None:
    wrap_reader()
    wrap_stream_reader()
    wrap_writer()
    wrap_writer_v2()
    wrap_stream_writer()
    wrap_catalog()
    wrap_input_files()
    wrap_merge_into(DataFrame, DeltaMergeBuilder)
    wrap(SparkSession, "newSession", _new_session)


def _new_session(original: Callable[..., SparkSession], spark: Any) -> SparkSession:
    """Enable Delta in a new session of a session with Delta enabled, because it has the same tables."""
    session = original(spark)
    return enable(session) if is_enabled(spark) else session
