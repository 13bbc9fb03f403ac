"""The steps of a case: SQL text, or one action of the DataFrame API.

The key that names the action, its value, and its optional keys:

* ``save``: SQL of the rows to write, with ``alias`` (of the DataFrame), ``mode``, ``options``, ``partition_by``, ``cluster_by``,
  ``format``, and a target: ``table`` (saveAsTable), ``insert_into``, ``path`` (save), or ``write_to`` with ``action``, ``condition`` (of
  ``overwrite``) and ``properties``;
* ``read``: a path or the name of a table (``table = true``), with ``options``, ``format``, ``filter``, ``select``; with ``view``, the rows
  become a temporary view of that name;
* ``stream``: a path or the name of a table (``table = true``) to read with trigger availableNow, with ``options``, ``select``,
  ``write_options``, ``mode``, ``partition_by``, ``checkpoint``, and a target: ``path`` or ``to`` (the name of a table);
* ``sql``: SQL text whose result is reduced by ``filter`` and ``select``, for commands such as DESCRIBE HISTORY;
* ``file``: a file to write, with its ``text``;
* ``remove``: a pattern of files to delete.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, expr

__all__ = ["frame_of", "perform"]

_KEYS = {
    "save": {
        *("save", "alias", "mode", "options", "partition_by", "cluster_by", "format", "table", "insert_into", "path"),
        *("write_to", "action", "condition", "properties"),
    },
    "read": {"read", "table", "options", "format", "filter", "select", "view"},
    "sql": {"sql", "filter", "select"},
    "stream": {"stream", "table", "options", "select", "write_options", "mode", "partition_by", "checkpoint", "path", "to"},
    "file": {"file", "text"},
    "remove": {"remove"},
}


def perform(spark: SparkSession, step: str | Mapping[str, Any]) -> None:
    """Carry out a step, and read the rows of one that has any."""
    if isinstance(step, str) or "sql" in step or ("read" in step and "view" not in step):
        frame_of(spark, step).collect()
        return
    action = next((key for key in _KEYS if key in step), None)
    if action is None or step.keys() - _KEYS[action]:
        raise ValueError(f"a step of an unknown form: {step}")
    _ACTIONS[action](spark, step)


def frame_of(spark: SparkSession, step: str | Mapping[str, Any]) -> DataFrame:
    """The DataFrame of SQL text, or of a ``sql`` or ``read`` step."""
    if isinstance(step, str):
        return spark.sql(step)
    kind = "sql" if "sql" in step else "read"
    if kind not in step or step.keys() - _KEYS[kind]:
        raise ValueError(f"neither SQL text nor a step that reads: {step}")
    frame = spark.sql(step["sql"]) if kind == "sql" else _read(spark, step)
    if "filter" in step:
        frame = frame.filter(step["filter"])
    return frame.selectExpr(*step["select"]) if "select" in step else frame


def _read(spark: SparkSession, step: Mapping[str, Any]) -> DataFrame:
    reader = spark.read.options(**step.get("options", {}))
    return reader.table(step["read"]) if step.get("table") else reader.format(step.get("format", "delta")).load(step["read"])


def _view(spark: SparkSession, step: Mapping[str, Any]) -> None:
    frame_of(spark, step).createOrReplaceTempView(step["view"])


def _save(spark: SparkSession, step: Mapping[str, Any]) -> None:
    rows = spark.sql(step["save"])
    if "alias" in step:
        rows = rows.alias(step["alias"])
    if "write_to" in step:
        _write_to(rows, step)
        return
    writer = rows.write.options(**step.get("options", {}))
    if "mode" in step:
        writer = writer.mode(step["mode"])
    if "insert_into" in step:
        writer = writer.format(step["format"]) if "format" in step else writer
        writer.insertInto(step["insert_into"])
        return
    writer = writer.format(step.get("format", "delta"))
    if "partition_by" in step:
        writer = writer.partitionBy(*step["partition_by"])
    if "cluster_by" in step:
        writer = writer.clusterBy(*step["cluster_by"])
    if "path" in step:
        writer = writer.option("path", step["path"]) if "table" in step else writer
    if "table" in step:
        writer.saveAsTable(step["table"])
    else:
        writer.save(step["path"])


def _write_to(rows: DataFrame, step: Mapping[str, Any]) -> None:
    writer = rows.writeTo(step["write_to"]).options(**step.get("options", {}))
    if step["action"] in ("create", "replace", "createOrReplace"):
        writer = writer.using(step.get("format", "delta"))
    for key, value in step.get("properties", {}).items():
        writer = writer.tableProperty(key, value)
    if "partition_by" in step:
        writer = writer.partitionedBy(*map(col, step["partition_by"]))
    if "cluster_by" in step:
        writer = writer.clusterBy(*step["cluster_by"])
    if step["action"] == "overwrite":
        writer.overwrite(expr(step["condition"]))
    else:
        getattr(writer, step["action"])()


def _stream(spark: SparkSession, step: Mapping[str, Any]) -> None:
    reader = spark.readStream.options(**step.get("options", {}))
    frame = reader.table(step["stream"]) if step.get("table") else reader.format("delta").load(step["stream"])
    if "select" in step:
        frame = frame.selectExpr(*step["select"])
    writer = frame.writeStream.format("delta").trigger(availableNow=True).outputMode(step.get("mode", "append"))
    writer = writer.options(**{"checkpointLocation": step["checkpoint"], **step.get("write_options", {})})
    if "partition_by" in step:
        writer = writer.partitionBy(*step["partition_by"])
    query = writer.toTable(step["to"]) if "to" in step else writer.start(step["path"])
    try:
        query.awaitTermination()
    finally:
        query.stop()


def _file(_: SparkSession, step: Mapping[str, Any]) -> None:
    path = Path(step["file"])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(step["text"], encoding="utf-8")


def _remove(_: SparkSession, step: Mapping[str, Any]) -> None:
    paths = glob.glob(step["remove"])
    if not paths:
        raise ValueError(f"no file to delete: {step['remove']}")
    for path in paths:
        Path(path).unlink()


_ACTIONS: Mapping[str, Callable[[SparkSession, Mapping[str, Any]], None]] = {
    "save": _save,
    "read": _view,
    "stream": _stream,
    "file": _file,
    "remove": _remove,
}
