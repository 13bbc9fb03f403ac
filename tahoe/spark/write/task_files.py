"""Files that Python workers of Spark write, for sessions of Spark Connect and for storage that Spark's JVM cannot write.

    rows ─► `mapInArrow` with Tahoe's writer (`tahoe.spark.executors.row_tasks`) ─► files in storage ─► `AddFile`s, which alone come back

A task that runs twice leaves files that no commit names: the actions are those that the query returns, one set for each partition.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, StructField, StructType

from tahoe.base.exceptions import StorageFailure, TahoeError, Unsupported
from tahoe.ops.rows.row_changes import BYTES_OF_A_FILE
from tahoe.ops.write.completion import Completion
from tahoe.ops.write.writer import WriterOptions
from tahoe.protocol.actions import AddFile
from tahoe.protocol.config import TableConfig
from tahoe.protocol.features import Use, check_columns
from tahoe.spark.executors.data_source_tasks import WrittenFiles
from tahoe.spark.executors.footers import Describe, WrittenFile, described_file
from tahoe.spark.executors.row_tasks import NewFiles, written_rows
from tahoe.spark.executors.shipped import mapped
from tahoe.store.location import decode_path
from tahoe.store.log_store import Entry, LogStore

_ANSWERS = StructType([StructField("answer", BinaryType())])


def written_by(rows: DataFrame, target: NewFiles) -> list[WrittenFiles]:
    """Write rows to files on the executors; return the files of each task.

    Raises the first error of Tahoe that a task met; the files of the others are deleted as far as storage allows.
    """
    names = tuple(rows.columns)
    if any("." in name or "`" in name for name in names):  # PySpark resolves the names of the columns as expressions
        rows, target = rows.toDF(*(f"_{place}" for place in range(len(names)))), replace(target, names=names)
    files = mapped(rows, _ANSWERS, written_rows, target)
    answers = [pickle.loads(answer) for answer in files.toArrow()["answer"].to_pylist()]
    written = [answer for answer in answers if isinstance(answer, WrittenFiles)]
    failed = next((answer for answer in answers if isinstance(answer, TahoeError)), None)
    if failed is not None:
        take_back(target.store, [add for part in written for add in part.adds])
        raise failed
    return written


def take_back(store: LogStore, adds: Iterable[AddFile]) -> None:
    """Delete files that no commit will name; VACUUM deletes those that cannot be deleted now."""
    for add in adds:
        with suppress(StorageFailure):
            store.delete(decode_path(add.path, store.url))


def written_in_python(
    rows: DataFrame, config: TableConfig, store: LogStore, options: WriterOptions, completion: Completion | None
) -> list[AddFile]:
    """Write rows that Spark has already checked and completed. The arguments are those of `tahoe.spark.write.writer.write_files`."""
    check_columns(config.schema, Use.CONNECT)
    options = replace(options, copied=True, bytes_per_file=BYTES_OF_A_FILE)
    adds = [add for part in written_by(rows, NewFiles(config, store, None, options)) for add in part.adds]
    if completion is not None and completion.identities:
        # The statistics of the actions may lack the column.
        describe = replace(Describe.of(store, config, completion.identities), patches=False, indexed=())
        files = [WrittenFile(Entry(decode_path(add.path, store.url), add.size, add.modification_time), {}) for add in adds]
        described = [described_file(describe, file) for file in files]
        completion.note(file.furthest for file in described if file is not None)
    return adds


def refuse_parquet_options(table: str, options: Iterable[str]) -> None:
    """Raise `Unsupported` for options of Spark's Parquet writer, which Tahoe's writer in Python workers does not have."""
    refused = next((name for name in options if name.lower().startswith("parquet.")), None)
    if refused is not None:
        raise Unsupported(
            f"The option '{refused}' is for Spark's Parquet writer, and the rows of table {table} pass through Python workers, because "
            "Spark lacks the file system of its store. Leave the option out, or add the JAR of the file system.",
            code="TAHOE_OPTION_NOT_SUPPORTED",
            option=refused,
        )
