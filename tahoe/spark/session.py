"""Delta switched on in a Spark session: `enable` makes `format("delta")` and ``delta.`/path` `` of that session mean Tahoe.

A classic session has a mark that Delta is on, which its copies and new sessions made by it have too. Methods of PySpark's session, reader
and writer classes look at it (`tahoe.spark.doors`). A call with another format, or in a session without the mark, goes on to PySpark
untouched.

A session of Spark Connect has no JVM here. Its servers load the portable source (`pyspark_delta`) by themselves; `enable` only lets
filters reach it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from tahoe.argument_checks import checked_arguments
from tahoe.exceptions import InvalidRequest, Unsupported
from tahoe.process import UNIFORM_RUNTIME
from tahoe.spark.catalog.installed import give_names
from tahoe.spark.catalog.jar_settings import leave_out_jar_settings
from tahoe.spark.doors.catalog_methods import wrap_catalog
from tahoe.spark.doors.input_files import wrap_input_files
from tahoe.spark.doors.reading import wrap_reader
from tahoe.spark.doors.reading_streams import wrap_stream_reader
from tahoe.spark.doors.wrapping import ENABLED, is_enabled, takes_names, wrap
from tahoe.spark.doors.writing import wrap_writer
from tahoe.spark.doors.writing_streams import wrap_stream_writer
from tahoe.spark.doors.writing_v2 import wrap_writer_v2
from tahoe.spark.jvm.bridge import is_classic
from tahoe.spark.jvm.errors import install
from tahoe.spark.jvm.storage import name_coordinator
from tahoe.spark.names.snapshots import moment
from tahoe.spark.slice_encoder import SparkSlices

if TYPE_CHECKING:
    from tahoe.coordinator.sql_coordinator import SqlCoordinator

__all__ = ["ENABLED", "configure_spark_with_delta_pip", "enable", "is_enabled", "moment"]

_FILTERS = "spark.sql.python.filterPushdown.enabled"


def enable(spark: SparkSession, *, coordinator: SqlCoordinator | None = None) -> SparkSession:
    """The same session with Delta switched on. No JAR, no further setting, no restart; a second call does nothing.

    Afterwards ``spark.read.format("delta")`` and ``df.write.format("delta")`` read and write Delta tables at native speed. SQL knows
    them by name and as ``delta.`/path` `` (`tahoe.spark.catalog`, `tahoe.spark.statements`). All other formats stay as they are, and
    so do sessions that were there before.

    Args:
        coordinator: who says which commits the session's catalog-managed tables have (docs/design/030); the session's setting
            ``spark.tahoe.coordinator`` then has its URL, without its password. Sessions of Spark Connect have none.
    """
    if not isinstance(spark, SparkSession) and not hasattr(spark, "read"):
        raise InvalidRequest(
            f"enable() takes a SparkSession as 'spark', found {type(spark).__name__}.",
            code="TAHOE_NO_SPARK_SESSION",
            parameter="spark",
        )
    if is_classic(spark):
        install()
        give_names(spark)
        _wrap_classic()
        if coordinator is not None:
            name_coordinator(spark, coordinator)
    else:
        if coordinator is not None:
            raise Unsupported(
                "A session of Spark Connect reads tables in processes of its server, which know no coordinator. Use a classic session, or "
                "tahoe.Table(path, coordinator=…).",
                code="DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION",
            )
        from tahoe.spark.doors.connect import wrap_connect  # needs grpc, which classic sessions do not

        wrap_connect()
        spark.conf.set(_FILTERS, "true")
    spark.conf.set(ENABLED, "true")
    UNIFORM_RUNTIME.slices = SparkSlices(spark)
    return spark


@checked_arguments
def configure_spark_with_delta_pip(
    spark_session_builder: SparkSession.Builder, extra_packages: list[str] | None = None
) -> SparkSession.Builder:
    """The builder, for programs written for delta-spark, which adds its JAR here. Tahoe has none: only `extra_packages` are added.

    The sessions that the builder makes are switched on (`enable`). The classes of delta-spark's JAR that its program names for
    ``spark.sql.extensions`` and ``spark.sql.catalog.spark_catalog`` are left out.
    """
    if extra_packages:
        spark_session_builder.config("spark.jars.packages", ",".join(extra_packages))
    # Of this builder alone: others make sessions as Spark does.
    vars(spark_session_builder)["getOrCreate"] = partial(_enabled, spark_session_builder)
    return spark_session_builder


def _enabled(builder: SparkSession.Builder) -> SparkSession:
    leave_out_jar_settings(builder._options)
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
    wrap(SparkSession, "newSession", _new_session)


def _new_session(original: Callable[..., SparkSession], spark: Any) -> SparkSession:
    """A new session beside one with Delta on has it too, as it has the same tables."""
    session = original(spark)
    return enable(session) if takes_names(spark) else session
