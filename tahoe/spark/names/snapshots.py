"""The version that a reader requests, by options, by a path such as ``path@v3``, or by SQL time travel."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from tahoe.base.exceptions import InvalidRequest
from tahoe.spark.jvm.bridge import Jvm, is_classic
from tahoe.spark.jvm.storage import table_at
from tahoe.spark.names.error_names import reading
from tahoe.spark.names.options import ReadRequest, travelling
from tahoe.spark.names.settings import look_at_settings

if TYPE_CHECKING:
    from tahoe.snapshot.snapshot import Snapshot


def requested_snapshot(spark: SparkSession, request: ReadRequest, options: Mapping[str, str]) -> Snapshot:
    """Return the requested version.

    Args:
        options: reader options for Hadoop (``fs.…``).

    Raises: see `tahoe.api.table.Table.snapshot` and `parsed_timestamp`.
    """
    look_at_settings(spark)
    table = table_at(spark, request.path, options)
    if "@" in request.path and not table.exists() and (versioned := travelling(request)) is not None:
        request = versioned
        table = table_at(spark, request.path, options)
    when = None if request.timestamp is None else parsed_timestamp(spark, request.timestamp)
    with reading(table):
        return table.snapshot(request.version if when is None else None, when)


def parsed_timestamp(spark: SparkSession, text: str) -> datetime:
    """Return the timestamp of a text, parsed by Spark in the session's time zone. Raises `InvalidRequest` (`DELTA_TIMESTAMP_INVALID`)."""
    if not is_classic(spark):
        return _parsed_on_server(spark, text)
    jvm = Jvm.of(spark)
    zone = jvm.option(spark.conf.get("spark.sql.session.timeZone"))
    literal = jvm.catalyst("expressions.Literal")(
        jvm.java_class("org.apache.spark.unsafe.types.UTF8String").fromString(text), jvm.data_type('"string"')
    )
    cast = jvm.catalyst("expressions.Cast")(
        literal, jvm.data_type('"timestamp"'), zone, jvm.catalyst("expressions.EvalMode").LEGACY()
    )
    microseconds = cast.eval(None)
    return _time_of(microseconds, text)


def _parsed_on_server(spark: SparkSession, text: str) -> datetime:
    row = spark.range(1).select(sf.unix_micros(sf.lit(text).try_cast("timestamp"))).first()
    return _time_of(None if row is None else row[0], text)


def _time_of(microseconds: int | None, text: str) -> datetime:
    if microseconds is None:
        raise InvalidRequest(
            f"The provided timestamp ('{text}') cannot be converted to a valid timestamp. Write it as '2026-01-31 12:00:00'.",
            code="DELTA_TIMESTAMP_INVALID",
        )
    return time_of_micros(microseconds)


def time_of_micros(microseconds: int) -> datetime:
    """Return the time that is a number of microseconds after 1970."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
