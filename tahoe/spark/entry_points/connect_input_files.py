"""`DataFrame.inputFiles` in sessions of Spark Connect: the server knows no files of a Python data source.

Filters do not reduce the files, as for Spark's own formats.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql.connect.dataframe import DataFrame

from tahoe.base.exceptions import Unsupported
from tahoe.spark.connect.requests.plan_reads import sources
from tahoe.spark.connect.requests.query_versions import request_of
from tahoe.spark.connect.requests.server_source import table_with_options
from tahoe.spark.entry_points.wrapping import is_enabled, wrap
from tahoe.spark.names.error_names import reading
from tahoe.spark.scan.listed_files import NamedFiles


def wrap_input_files() -> None:
    """Make DataFrames over Delta tables list their files, in sessions where Delta is enabled."""
    wrap(DataFrame, "inputFiles", _input_files)


def _input_files(original: Callable[..., list[str]], frame: Any) -> list[str]:
    spark = frame.sparkSession
    if not is_enabled(spark):
        return list(original(frame))
    plan = frame._plan.to_proto(spark.client)
    ours = [source for source, _ in sources(plan, {}, None)]
    return list(dict.fromkeys([url for source in ours for url in _files(spark, source)] + list(original(frame))))


def _files(spark: Any, source: Any) -> list[str]:
    """Return the URLs of the files of a read (``spark.connect.Read.DataSource``)."""
    request = request_of(source)
    if request is None:  # the server refuses it
        return []
    if request.changes is not None:
        raise Unsupported(
            f"The files of the change data feed of {request.path} are not listed in a session of Spark Connect. Use a classic session.",
            code="TAHOE_SPARK_CONNECT",
            table=request.path,
        )
    table = table_with_options(spark, request.path, source.options)
    with reading(table):
        snapshot = table.snapshot(request.version, request.timestamp)
    with snapshot.naming_origins():
        urls: list[str] = NamedFiles.of(snapshot.files()["path"], snapshot.store).urls.to_pylist()
    return urls
