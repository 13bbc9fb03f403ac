"""A job of Spark's Parquet writer whose files are those that its successful tasks report.

    rows ─► tasks write files under their final names ─► the task's result names its files ─► driver: one result for each task

Spark counts one attempt of each task, so files of attempts that died, or lost against a faster one, are in no result. Spark's usual
protocol moves files instead, some of them before the task has succeeded (version 2 of Hadoop's committer), and has no list of them: it
would have to be followed by a listing of the folder, in which files of dead attempts count.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote

from pyspark.sql import DataFrame

from tahoe.spark.jvm.bridge import Jvm
from tahoe.spark.jvm.compiled import compiled_object
from tahoe.spark.jvm.storage import hadoop_url
from tahoe.store.log_store import Entry


def write_parquet(rows: DataFrame, root: str, folder: str, partition_columns: int, options: Mapping[str, str]) -> list[Entry]:
    """Write rows to Parquet files in a new folder.

    Args:
        root: the URL of the table.
        folder: a name below it that no path to the table contains.
        partition_columns: the number of columns, the last ones, that are in names of folders instead of files.
        options: of the Parquet writer and of the file system.

    A failed job raises after its running tasks have ended, or after ten seconds.

    Returns:
        The files, named below the root; those of each task in the order of its rows, and tasks in the order of their partitions.
    """
    spark = rows.sparkSession
    jvm = Jvm.of(spark)
    none, plan, lines = jvm.option(None), rows._jdf.queryExecution().analyzed(), jvm.java_class("java.util.ArrayList")()
    path = jvm.java_class("org.apache.hadoop.fs.Path")(f"{hadoop_url(root)}/{folder}")
    parquet = jvm.datasources("parquet.ParquetFileFormat")()
    mode = jvm.java_class("org.apache.spark.sql.SaveMode").ErrorIfExists
    in_folders = plan.output().takeRight(partition_columns)
    place, catalog = (path, jvm.map({}), False, in_folders, none), (none, none)
    content = (parquet, jvm.map(options), plan, mode)
    command = compiled_object(jvm, "ReportedFiles", *place, *content, *catalog, jvm.seq(*rows.columns), lines)
    jvm.frame(rows._jdf.sparkSession(), command, spark)._jdf.queryExecution().assertCommandExecuted()
    return [_entry(line, folder) for line in str(lines.get(0)).splitlines()]


def _entry(line: str, folder: str) -> Entry:
    url, size, modified_ms = line.split(" ")
    name = unquote(url).partition(f"/{folder}/")[2]
    return Entry(f"{folder}/{name}", int(size), int(modified_ms))
