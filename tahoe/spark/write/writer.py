"""Writes the rows of a DataFrame to data files with Spark's own Parquet writer, and returns their `AddFile` actions.

    fitted rows ─► Spark job into a separate folder below the table's root ─► files that its tasks report ─► footers ─► AddFile

The folder is new and named by a UUID. On local disk the files are then moved to the usual names of Delta tables (a rename each); in
object stores, where a rename is a copy, they stay. The folder's name begins with a letter or digit, so any engine's VACUUM deletes the
files of a crashed job. Partition values are encoded in folder names as text and read back from there; statistics come from the footers,
so no row is read twice.
"""

from __future__ import annotations

import os
import shutil
from base64 import urlsafe_b64decode
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import takewhile
from pathlib import Path
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from tahoe.base.clock import Clock
from tahoe.base.exceptions import CorruptTable, InvalidRequest, StorageFailure, Unsupported
from tahoe.expr.tree.predicate import quote_identifier
from tahoe.ops.write.bloom_filters import bloom_filter_columns
from tahoe.ops.write.completion import Completion
from tahoe.ops.write.writer import CHANGE_DATA_FOLDER, WriterOptions
from tahoe.protocol.actions import AddFile
from tahoe.protocol.column_values.identity import IDENTITY
from tahoe.protocol.config import TableConfig
from tahoe.protocol.constraints import null_found
from tahoe.protocol.features import Feature
from tahoe.protocol.partition import HIVE_NULL, deserialize, partition_folder, serialize
from tahoe.protocol.properties import CONSTRAINT_PREFIX
from tahoe.schema.evolve import check_holds_data, without_void
from tahoe.schema.mapping import explode
from tahoe.schema.types import GENERATION_EXPRESSION, DataType, PrimitiveType, StructField
from tahoe.spark.executors.file_settings import FILE_SETTINGS, config_of_files, options_of_files
from tahoe.spark.executors.footers import Describe, DescribedFile, WrittenFile, described_file
from tahoe.spark.executors.shipped import raised, run_each
from tahoe.spark.jvm.bridge import Jvm
from tahoe.spark.jvm.errors import raising, without_task_failures
from tahoe.spark.jvm.file_systems import moves_in_python
from tahoe.spark.jvm.session_copies import session_with
from tahoe.spark.names.settings import settings_named
from tahoe.spark.versions.shredded_variants import UNSHREDDED
from tahoe.spark.write.fitting import stored
from tahoe.spark.write.optimized import optimizes, rebalanced, settings_of_bins
from tahoe.spark.write.reported_files import write_parquet
from tahoe.spark.write.task_files import refuse_parquet_options, written_in_python
from tahoe.store.location import encode_path, local_path, needs_jvm
from tahoe.store.log_store import Entry, LogStore
from tahoe.txn.transaction import Transaction

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
# Texts that name a folder unencoded, and the prefix of encoded ones, which no plain text begins with and no writer escapes.
_PLAIN = r"\A[A-Za-z0-9][A-Za-z0-9_.-]*\z"
_ENCODED = "!"
_LONGEST_NAME = 255
_BLOOM = "parquet.bloom.filter.enabled#"
# Fewer footers are read on the driver, in threads; more by Spark's executors.
_FOOTERS_ON_DRIVER = 2_000
_TASKS = 64
_DEMANDING = ("delta.invariants", GENERATION_EXPRESSION)
_THREADS = 16

_SETTINGS = {
    # The old INT96 timestamps have no statistics, and Iceberg does not read them.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.fieldId.write.enabled": "true",
}


@dataclass(frozen=True, slots=True)
class FileOptions:
    """Options for writing files.

    Args:
        compression: a Spark codec; None for the table's ``delta.parquet.compression.codec``, otherwise the session's.
        max_records_per_file: the maximum rows per file; None for the session's setting.
        hadoop: additional options for the file system and the Parquet writer.
        optimized: whether rows are shuffled first, so that partitions get few files; None for the setting of session or table.
        change_data: whether the files are change data files, with their names and folder.
    """

    compression: str | None = None
    max_records_per_file: int | None = None
    hadoop: Mapping[str, str] = field(default_factory=dict)
    optimized: bool | None = None
    change_data: bool = False


def write_files(
    data: DataFrame,
    config: TableConfig,
    transaction: Transaction,
    options: FileOptions = FileOptions(),
    *,
    completion: Completion | None = None,
) -> list[AddFile]:
    """Write rows as data files of a table.

    Args:
        data: rows of `tahoe.spark.write.enforce.enforced` for this table.
        config: protocol, schema and properties for the files: those of the coming commit.
        transaction: its store and clock are used; nothing is staged.
        completion: the identity columns whose values the job generates; it receives the greatest values.

    Returns:
        The actions that add the files, without empty files. Nothing is committed. If the job fails, its files are deleted, and so are
            folders that were created for it.
    """
    store, clock = transaction.store, transaction.clock
    check_holds_data(config.schema)
    if store.url.startswith("memory:"):
        raise Unsupported(
            f"Spark cannot write to {store.url}, a store of this Python process; use a folder or an object store.",
            code="TAHOE_STORE_WITHOUT_SPARK",
        )
    if moves_in_python(data.sparkSession, store.url):
        return _written_in_python(data, config, store, options, completion)
    layout = _Layout.of(config)
    folder = f"{CHANGE_DATA_FOLDER}/{clock.uuid()}" if options.change_data else clock.uuid()
    new_folders = _missing_folders(local_path(store.url))
    try:
        entries = _run(data, layout, folder, config, options)
        written = list(_written(store.url, folder, entries, layout.partition))
        described = _described(written, Describe.of(store, config, () if completion is None else completion.identities), data)
        adds = [file.add for file in described]
        if completion is not None:
            completion.note(file.furthest for file in described)
        placed = _placed(transaction, adds, config, change_data=options.change_data)
    except BaseException:
        _discard(store, folder)
        _remove_empty(new_folders)
        raise
    if local_path(store.url) is not None:
        _discard(store, folder)
    return placed


def _written_in_python(
    data: DataFrame, config: TableConfig, store: LogStore, options: FileOptions, completion: Completion | None
) -> list[AddFile]:
    refuse_parquet_options(config.table, options.hadoop)
    spark = data.sparkSession
    if optimizes(spark, config, options.optimized):
        session = session_with(spark, settings_of_bins(spark))
        data = Jvm.of(spark).frame(session, data._jdf.queryExecution().analyzed(), spark)
        data = rebalanced(data, config.partition_columns)
    settings = settings_named(spark, FILE_SETTINGS)
    written = options_of_files(WriterOptions(options.max_records_per_file, options.compression, options.change_data), settings)
    with without_task_failures(spark) if _may_refuse_rows(config) else nullcontext():
        return written_in_python(data, config_of_files(config, settings), store, written, completion)


@dataclass(frozen=True)
class _Layout:
    """The layout of the written files.

    Args:
        in_files: the columns of the data files.
        partition: the partition columns, in the table's order.
        folders: for each partition column the name in its folders; none is a column of the files.
        with_ids: whether the files contain field ids.
        table: its URL, for errors.
    """

    in_files: tuple[StructField, ...]
    partition: tuple[StructField, ...]
    folders: list[str]
    with_ids: bool
    table: str

    @classmethod
    def of(cls, config: TableConfig) -> _Layout:
        partition = config.partition_schema.fields
        stored_twice = config.materializes_partition_columns
        return cls(
            (*without_void(config.data_schema).fields, *(partition if stored_twice else ())),
            partition,
            [column.physical_name + ("-folder" if stored_twice else "") for column in partition],
            config.column_mapping_mode != "none",
            config.table,
        )

    def applied(self, data: DataFrame) -> DataFrame:
        """Return the rows to write: physical columns, then a text for each partition column. The rows of a plain table stay unchanged."""
        if not self.with_ids and not self.partition and data.columns == [column.name for column in self.in_files]:
            return data
        jvm = Jvm.of(data.sparkSession)
        columns = [stored(jvm, _named(column), column, with_ids=self.with_ids) for column in self.in_files]
        texts = [
            self._folder_text(column, folder).alias(folder) for column, folder in zip(self.partition, self.folders, strict=True)
        ]
        return data.select(*columns, *texts)

    def _folder_text(self, column: StructField, folder: str) -> Column:
        """Return the value's text in a folder name; a value that is too long for a folder name makes the job fail with the column's name."""
        text = _partition_text(_named(column), column.data_type)
        if column.data_type not in (PrimitiveType("string"), PrimitiveType("binary")):
            return text
        room = _LONGEST_NAME - len(f"{folder}=".encode())
        too_long = raising(
            InvalidRequest(
                f"Table {self.table}: a value of partition column '{column.name}' is too long. Spark's writer names folders by the values, "
                f"which leaves room for about {room * 3 // 4} bytes. Write it without Spark (tahoe.Table.append), or partition by "
                "another column.",
                code="TAHOE_PARTITION_VALUE_TOO_LONG",
                table=self.table,
                column=column.name,
            )
        )
        return sf.when(sf.octet_length(text) > room, too_long.cast("string")).otherwise(text)


def _named(column: StructField) -> Column:
    return sf.col(quote_identifier(column.name))


def _run(data: DataFrame, layout: _Layout, folder: str, config: TableConfig, options: FileOptions) -> list[Entry]:
    """Write the rows to a folder below the table's root; return its files, in order of their folders, and in one folder of their rows."""
    jvm, spark = Jvm.of(data.sparkSession), data.sparkSession
    laid_out = layout.applied(data)
    is_optimized = optimizes(spark, config, options.optimized)
    shredding = {} if config.is_active(Feature.VARIANT_SHREDDING) else UNSHREDDED
    session = session_with(spark, {**_SETTINGS, **shredding, **(settings_of_bins(spark) if is_optimized else {})})
    rows = jvm.frame(session, laid_out._jdf.queryExecution().analyzed(), spark)
    rows = rebalanced(rows, layout.folders) if is_optimized else rows
    settings = {**_bloom_filters(config), **options.hadoop}
    compression = options.compression or config.properties.parquet_compression_codec
    if compression is not None:
        settings["compression"] = compression
    if options.max_records_per_file is not None:
        settings["maxRecordsPerFile"] = str(options.max_records_per_file)
    with without_task_failures(spark) if _may_refuse_rows(config) else nullcontext():
        entries = write_parquet(rows, config.table, folder, len(layout.folders), settings)
    return sorted(entries, key=lambda entry: os.path.dirname(entry.name))


def _bloom_filters(config: TableConfig) -> dict[str, str]:
    """Return the settings of Parquet's writer for bloom filter columns; the filters' size depends on the rows."""
    paths = bloom_filter_columns(config)
    return {"parquet.bloom.filter.adaptive.enabled": "true"} | {_BLOOM + path: "true" for path in paths} if paths else {}


def _may_refuse_rows(config: TableConfig) -> bool:
    """Return whether the table has rules that may make the job fail for a row."""
    fields = [column for _, column in explode(config.schema)]
    named = any(key.lower().startswith(CONSTRAINT_PREFIX) for key in config.metadata.configuration)
    return named or any(
        not field.nullable or any(key in _DEMANDING or key.startswith(IDENTITY) for key in field.metadata) for field in fields
    )


def _written(table: str, folder: str, entries: Sequence[Entry], partition: Sequence[StructField]) -> Iterator[WrittenFile]:
    for entry in entries:
        *folders, _ = entry.name.removeprefix(f"{folder}/").split("/")
        texts = [part.rpartition("=")[2] for part in folders]
        values = {column.physical_name: _logged(text, column.data_type) for column, text in zip(partition, texts, strict=True)}
        for column in partition:
            if not column.nullable and values[column.physical_name] is None:
                raise null_found((column.name,), table)
        yield WrittenFile(entry, values)


def _partition_text(values: Column, data_type: DataType) -> Column:
    """Return a text with the whole value, independent of the session's time zone, for a folder name.

    Strings that are not plain are encoded in base 64: whatever they contain, they do not collide with another name or with Hive's for NULL,
    and survive a JVM whose file names are not UTF-8.
    """
    match data_type:
        case PrimitiveType("string"):
            encoded = sf.translate(sf.base64(values.cast("binary")), "+/=\r\n", "-_")
            plain = sf.when(values.rlike(_PLAIN), values).otherwise(sf.concat(sf.lit(_ENCODED), encoded))
            return sf.when(values != "", plain)
        case PrimitiveType("timestamp"):
            return sf.unix_micros(values).cast("string")
        case PrimitiveType("binary"):
            return sf.hex(values)
    return values.cast("string")


def _logged(text: str, data_type: DataType) -> str | None:
    """Return the log's text of a partition value from the text in its folder name."""
    if text == HIVE_NULL:
        return None
    text = unquote(text)
    match data_type:
        case PrimitiveType("string"):
            encoded = text.removeprefix(_ENCODED)
            return text if encoded == text else urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
        case PrimitiveType("timestamp"):
            return serialize(_EPOCH + timedelta(microseconds=int(text)), data_type)
        case PrimitiveType("binary"):
            return serialize(bytes.fromhex(text), data_type)
    return serialize(deserialize(text, data_type), data_type)


def _described(written: Sequence[WrittenFile], describe: Describe, data: DataFrame) -> list[DescribedFile]:
    """Return an action for each non-empty file, with statistics from its footer."""
    if len(written) > _FOOTERS_ON_DRIVER and not needs_jvm(describe.store.url):
        described = list(raised(run_each(data.sparkSession.sparkContext, described_file, written, describe, tasks=_TASKS)))
    elif local_path(describe.store.url) is not None:
        described = [described_file(describe, file) for file in written]
    else:
        with ThreadPoolExecutor(_THREADS) as pool:
            described = list(pool.map(partial(described_file, describe), written))
    return [file for file in described if file is not None]


def _placed(transaction: Transaction, adds: Sequence[AddFile], config: TableConfig, *, change_data: bool) -> list[AddFile]:
    """Return the actions with the files' final paths; on local disk the files are moved there."""
    root, clock = local_path(transaction.store.url), transaction.clock
    if root is None:
        return [_with_path(add, add.path) for add in adds]
    placed, folders = [], set()
    for add in adds:
        target = "/".join(filter(None, (CHANGE_DATA_FOLDER if change_data else "", _final_folder(add, config, clock))))
        if target not in folders:
            _make_folder(root, target)
            folders.add(target)
        file = os.path.basename(add.path)
        name = "/".join(filter(None, (target, f"cdc{file.removeprefix('part')}" if change_data else file)))
        os.rename(os.path.join(root, add.path), os.path.join(root, name))
        placed.append(_with_path(add, name))
    return placed


def _final_folder(add: AddFile, config: TableConfig, clock: Clock) -> str:
    if config.random_prefixes:
        length = int(config.properties.get("delta.randomPrefixLength"))
        return "".join(_LETTERS[int(clock.random() * len(_LETTERS))] for _ in range(length))
    return partition_folder(list(add.partition_values), add.partition_values)


def _make_folder(root: str, name: str) -> None:
    path = os.path.join(root, name)
    os.makedirs(path, exist_ok=True)
    if not f"{os.path.realpath(path)}/".startswith(f"{os.path.realpath(root)}/"):
        raise CorruptTable(
            f"Folder '{name}' of table '{root}' is a link that leads out of the table; nothing is written there. Remove the link.",
            code="TAHOE_PATH_OUTSIDE_TABLE",
            table=root,
            path=name,
        )


def _with_path(add: AddFile, name: str) -> AddFile:
    return replace(add, path=encode_path(name))


def _missing_folders(root: str | None) -> list[Path]:
    """Return a table's folder and its parents, as far as they do not exist; none in an object store, which has no folders."""
    folders = [] if root is None else [Path(root), *Path(root).parents]
    return list(takewhile(lambda folder: not folder.exists(), folders))


def _remove_empty(folders: Sequence[Path]) -> None:
    for folder in folders:
        try:
            folder.rmdir()
        except OSError:  # another writer has added a file
            return


def _discard(store: LogStore, folder: str) -> None:
    """Delete the remaining files in the job's folder; files that cannot be deleted are left to VACUUM."""
    root = local_path(store.url)
    if root is not None:
        shutil.rmtree(os.path.join(root, folder), ignore_errors=True)
        return
    with suppress(StorageFailure):
        for entry in list(store.walk(folder)):
            store.delete(entry.name)
