"""The portable access: a PySpark Python data source, for Spark Connect and for sessions without `tahoe.enable`.

    format("delta") ─► Table on the driver's side ─► tasks, a few files each ─► Arrow batches in Python workers

It needs no JVM access and no user code, but every row passes a socket, and Spark prunes no columns: a client of Spark Connect sends the names
in its query instead (`tahoe.spark.connect.requests.query_columns`). Spark 4.1 and later push filters. The
snapshot is chosen once, when Spark requests the schema; the same version is planned and read later, in other processes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType as SparkStruct

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, MetadataChangedException, Unsupported
from tahoe.base.log_fields import about
from tahoe.expr.tree.predicate import Column, Comparison, In, IsNotNull, IsNull, Literal, Not, Predicate, StartsWith, all_of
from tahoe.log.history import parse_timestamp
from tahoe.ops.rows.insert import already_written, prepare_schema, stage_adds
from tahoe.protocol.config import TableConfig
from tahoe.protocol.features import ENFORCED, Use, check_columns
from tahoe.protocol.properties import CONSTRAINT_PREFIX
from tahoe.schema.collations import compares_by_bytes
from tahoe.schema.types import DataType, DecimalType, PrimitiveType, StructField, StructType
from tahoe.settings.dataframe_options import warn_of_range_without_feed
from tahoe.snapshot.arrow_reader import ReadTask
from tahoe.snapshot.changes import Bounds, ChangedFile, Feed, feed, feed_schema, no_changes
from tahoe.snapshot.data_reader import DataFiles
from tahoe.snapshot.read_errors import no_columns
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.commands.write_options import Insert, WriterCall, insert_request
from tahoe.spark.executors import worker
from tahoe.spark.executors.data_source_tasks import (
    Target,
    WrittenFiles,
    binned,
    filled_in,
    rows_of_changes,
    rows_of_files,
    written_files,
)
from tahoe.spark.executors.scan_tasks import MetadataColumn, ScannedFile, rows_with_metadata
from tahoe.spark.executors.shipped import sent_whole
from tahoe.spark.jvm.translate import from_spark_schema, to_spark_schema, with_shown_metadata
from tahoe.spark.names.error_names import reading
from tahoe.spark.names.options import read_request, travelling
from tahoe.spark.names.settings import LATE_RANGES
from tahoe.spark.portable.data_source_options import (
    CLUSTER_BY,
    PARTITION_BY,
    columns_in,
    is_on_in,
    option_of,
    settings_in,
    stream_table_of,
    table_of,
    table_over,
    time_zone_of,
    without_own,
)
from tahoe.spark.portable.file_metadata import metadata_of, scanned_files
from tahoe.spark.portable.sent import Sent, opened
from tahoe.spark.portable.stream_reader import stream_reader, streams_alone
from tahoe.spark.portable.stream_writer import stream_writer
from tahoe.spark.portable.tasks import discard, finish_conversions, note_numbers
from tahoe.spark.write.fitting import nullable_schema
from tahoe.store.log_store import LogStore
from tahoe.txn.after_commit import logged_after_commit


class DeltaDataSource(Sent, DataSource):
    """``format("delta")`` of PySpark's own data source API.

    Options: those of the native reader and writer (``versionAsOf``, ``mergeSchema``, …), and seven more. ``timeZone`` is the time zone in
    which a writer evaluates generated columns, constraints and defaults, and a reader the time in ``path@20260131120000000``; UTC if it is
    not set. ``partitionBy`` and ``clusterBy`` name columns of a new table, separated by commas. ``coordinator`` is the URL, without a
    password, of the database that ratifies the commits of a catalog-managed table, in the form of `tahoe.SqlCoordinator`; the processes
    that plan and commit query it, those that read files do not. Three are for reads and streams of Tahoe's client: ``evaluatedRules``, the
    rules whose values and results Spark added to the rows (`tahoe.spark.executors.evaluated_rules`), ``sessionSettings``, and
    ``isStream``.
    """

    kind = "DataSource"

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = dict(options)
        self._version: int | None = None
        self._range: tuple[int, int] | None = None

    @classmethod
    def name(cls) -> str:
        """Return the name for ``format(…)``."""
        return "delta"

    def schema(self) -> SparkStruct:
        """Return the columns of the version, or of its change data feed. Spark calls this first, so it chooses the version.

        Columns whose values cannot be read are among them; the plan of the tasks refuses them.
        """
        if streams_alone(self._options):
            table = stream_table_of(option_of(self._options, "path", ""), self._options)
            snapshot = table.snapshot()
            self._version = snapshot.version
            check_columns(snapshot.schema, Use.CONNECT)
            return to_spark_schema(with_shown_metadata(feed_schema(snapshot.schema)))
        changes = self._changes()
        if changes is not None:
            return to_spark_schema(with_shown_metadata(changes.schema))
        snapshot = self._snapshot()
        return to_spark_schema(with_shown_metadata(_with_metadata(self._columns(snapshot), self._metadata(snapshot))))

    def reader(self, schema: SparkStruct) -> DataSourceReader:
        """Return the reader of the chosen version; a schema from the user must be the table's."""
        changes = self._changes()
        if changes is not None:
            _check_schema(schema, changes.schema, changes.store)
            return _ChangeReader(changes)
        warn_of_range_without_feed(self._options)
        snapshot = self._snapshot()
        columns, metadata = self._columns(snapshot), self._metadata(snapshot)
        _check_schema(schema, _with_metadata(columns, metadata), snapshot.store)
        return (_FilteringReader if _pushes_filters(self._options) else _Reader)(snapshot, columns, metadata)

    def writer(self, schema: SparkStruct, overwrite: bool) -> DataSourceArrowWriter:
        """Return the writer for rows with these columns; every request that can be rejected is rejected here, before a task runs."""
        partition_by, cluster_by = columns_in(self._options, PARTITION_BY), columns_in(self._options, CLUSTER_BY)
        call = WriterCall("Overwrite" if overwrite else "Append", without_own(self._options), partition_by, cluster_by)
        request = insert_request(call, settings_in(self._options))
        replaces = request.matching.option if request.matching is not None else "replaceWhere"
        if request.matching is not None or request.options.replace_where is not None:
            raise Unsupported(
                f"{replaces} is not supported by the portable data source; write in a classic session after tahoe.enable(spark).",
                code="TAHOE_OPTION_NOT_SUPPORTED",
                option=replaces,
            )
        table = table_of(option_of(self._options, "path", ""), self._options)
        columns_given = from_spark_schema(schema)
        check_columns(columns_given, Use.CONNECT)
        return _Writer(table, columns_given, request, self._options)

    def streamReader(self, schema: SparkStruct) -> DataSourceStreamReader:  # noqa: N802 - PySpark's name
        """Return the reader of a stream's batches; the rows have the columns of the version whose schema Spark got."""
        table = stream_table_of(option_of(self._options, "path", ""), self._options)
        version = self._version if self._range is None else self._range[1]
        return stream_reader(table, version, schema, self._options)

    def streamWriter(self, schema: SparkStruct, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """Return the writer of a stream's batches, each written once; in output mode complete, `overwrite`, a batch replaces all rows."""
        return stream_writer(
            stream_table_of(option_of(self._options, "path", ""), self._options), schema, self._options, overwrite
        )

    def _columns(self, snapshot: Snapshot) -> StructType:
        """Return the table's columns; only those that the query may read, if it has their names."""
        names = _names_of_query(self._options)
        if names is None or not snapshot.schema.fields:
            return snapshot.schema
        columns = [column for column in snapshot.schema if column.name.lower() in names]
        return StructType(tuple(columns or [min(snapshot.schema, key=_width)]))

    def _metadata(self, snapshot: Snapshot) -> MetadataColumn | None:
        return metadata_of(self._options, snapshot.config, snapshot.store.url)

    def _changes(self) -> Feed | None:
        """Return the change data feed if it is requested; the range is chosen once, like the snapshot."""
        request = read_request(option_of(self._options, "path", ""), self._options, has_schema=False)
        if request.changes is None:
            return None
        requested = request.changes.with_versions_first()
        table = table_of(request.path, self._options)
        if self._range is None:
            first, last = (
                None if text is None else parse_timestamp(text, table.time_zone)
                for text in (requested.start_timestamp, requested.end_timestamp)
            )
            may_be_late = is_on_in(self._options, LATE_RANGES)
            bounds = Bounds(requested.start_version, requested.end_version, first, last, may_be_late)
        elif self._range[0] > self._range[1]:
            return no_changes(table.snapshot(self._range[1]))
        else:
            bounds = Bounds(*self._range)
        with reading(table):
            latest = table.snapshot()
        changes = feed(table.store, _version_of_query(table, latest, self._options), bounds)
        self._range = changes.start, changes.end
        return changes

    def _snapshot(self) -> Snapshot:
        request = read_request(option_of(self._options, "path", ""), self._options, has_schema=False)
        table = table_of(request.path, self._options)
        if "@" in request.path and not table.exists() and (versioned := travelling(request)) is not None:
            request = versioned
            table = table_of(request.path, self._options)
        if self._version is not None:
            return table.snapshot(self._version)
        with reading(table):
            snapshot = table.snapshot(request.version, request.timestamp)
        snapshot = _version_of_query(table, snapshot, self._options)
        self._version = snapshot.version
        return snapshot


@dataclass(frozen=True)
class _Tasks(Sent, InputPartition):
    """The files of one Spark task."""

    kind = "InputPartition"

    tasks: tuple[ReadTask, ...] | tuple[ScannedFile, ...]


class _PlannedReader(Sent, DataSourceReader):
    """A reader that is sent to the workers as a plain value, without the plan."""

    kind = "DataSourceReader"

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_planned": None}


class _Reader(_PlannedReader):
    """Reads one snapshot; sent to the workers without the snapshot's files."""

    def __init__(self, snapshot: Snapshot, columns: StructType, metadata: MetadataColumn | None) -> None:
        self._planned: Snapshot | None = snapshot
        self._version = snapshot.version
        self._schema = columns
        self._files = DataFiles(snapshot.store, snapshot.config)
        self._metadata = metadata
        self._predicate: Predicate | None = None

    def partitions(self) -> Sequence[InputPartition]:
        assert self._planned is not None
        if not self._planned.schema.fields:
            raise no_columns(self._planned.store.url)
        scan = self._planned.scan(self._predicate)
        parts = [_Tasks(tasks) for tasks in (binned(scan.tasks()) if self._metadata is None else binned(scanned_files(scan)))]
        if parts:
            check_columns(self._schema, Use.CONNECT)
        return parts or [_Tasks(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Tasks)
        function, *arguments = self._call
        return function(*arguments, partition.tasks)

    def _task(self) -> object:
        return sent_whole(worker.part, *self._call)

    @property
    def _call(self) -> tuple[Callable[..., Iterator[pa.RecordBatch]], *tuple[object, ...]]:
        """The function that reads the files of a task, and its first arguments."""
        arguments = self._files, self._schema, self._predicate, self._version
        return (rows_of_files, *arguments) if self._metadata is None else (rows_with_metadata, *arguments, self._metadata)


def _with_metadata(columns: StructType, metadata: MetadataColumn | None) -> StructType:
    return columns if metadata is None else StructType((*columns, metadata.column))


def _pushes_filters(options: Mapping[str, str]) -> bool:
    """Whether filters skip files. Only Tahoe's client of Spark Connect sets it, with a number (`tahoe.spark.connect.requests`).

    Raises `Unsupported` for a request without one: Spark uses the files of the first filter for every scan of the same DataFrame.
    """
    value = option_of(options, "pushFilters", "false").lower()
    if value == "true":
        raise Unsupported(
            "The option 'pushFilters' is not supported: Spark would use the files of the first filter for every other query of the same "
            "DataFrame, which would lose rows. Leave it out; after tahoe.enable(spark) filters skip files.",
            code="TAHOE_OPTION_NOT_SUPPORTED",
            option="pushFilters",
        )
    return value.startswith("true:")


def _version_of_query(table: Table, snapshot: Snapshot, options: Mapping[str, str]) -> Snapshot:
    """Return the version that all reads of the table in one query have, if the query has several. Only Tahoe's client of Spark Connect sends
    it, with the table's id: at the same path, the client may have another table.

    Raises `Unsupported` for other values.
    """
    value = option_of(options, "queryVersion", "")
    version, _, table_id = value.partition(":")
    if value and not (version.isdigit() and table_id):
        raise Unsupported(
            "The option 'queryVersion' is not for programs: leave it out, or use versionAsOf.",
            code="TAHOE_OPTION_NOT_SUPPORTED",
            option="queryVersion",
        )
    is_older = bool(value) and snapshot.metadata.id == table_id and int(version) < snapshot.version
    return table.snapshot(int(version)) if is_older else snapshot


def _names_of_query(options: Mapping[str, str]) -> frozenset[str] | None:
    """Return the names in the query, in lower case; None if all columns are read. Only Tahoe's client of Spark Connect sends them, with a
    number.

    Raises `Unsupported` for other values: Spark would use the columns for every other query of the same DataFrame.
    """
    value = option_of(options, "queryNames", "")
    if not value:
        return None
    number, _, names = value.partition(":")
    if not number.isdigit() or not names.startswith("["):
        raise Unsupported(
            "The option 'queryNames' is not for programs: leave it out, and select columns.",
            code="TAHOE_OPTION_NOT_SUPPORTED",
            option="queryNames",
        )
    return frozenset(json.loads(names))


def _width(column: StructField) -> int:
    """Return the approximate size of a column's values, for the choice of a column that only counts rows."""
    return _BYTES.get(str(column.data_type), 100)


_BYTES = {"boolean": 1, "byte": 1, "short": 2, "integer": 4, "date": 4, "float": 4, "long": 8, "double": 8, "timestamp": 8}


class _FilteringReader(_Reader):
    """A separate class, because Spark rejects every reader with `pushFilters` unless the setting for it is on."""

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:  # noqa: N802 - PySpark's name
        predicates = [predicate for pushed in filters if (predicate := _predicate(pushed, self._schema)) is not None]
        self._predicate = all_of(predicates) if predicates else None
        # Return all filters, so that Spark applies them to the rows again.
        return filters


@dataclass(frozen=True)
class _ChangedFiles(Sent, InputPartition):
    """The changed files of one Spark task."""

    kind = "InputPartition"

    files: tuple[ChangedFile, ...]


class _ChangeReader(_PlannedReader):
    """Reads the change data feed of a range of versions."""

    def __init__(self, changes: Feed) -> None:
        self._planned: Feed | None = changes
        self._store = changes.store
        self._config = changes.config
        self._times = {version: changes.times[version] for version in range(changes.start, changes.end + 1)}

    def partitions(self) -> Sequence[InputPartition]:
        assert self._planned is not None
        parts = [_ChangedFiles(files) for files in binned(self._planned.files())]
        if parts:
            check_columns(self._planned.schema, Use.CONNECT)
        return parts or [_ChangedFiles(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _ChangedFiles)
        return rows_of_changes(self._store, self._config, self._times, partition.files)

    def _task(self) -> object:
        return sent_whole(worker.part, rows_of_changes, self._store, self._config, self._times)


class _Writer(Sent, DataSourceArrowWriter):
    """Writes files in the workers and commits on the driver's side, in another process than the one that planned."""

    kind = "DataSourceArrowWriter"
    commits = True

    def __init__(self, table: Table, schema: StructType, request: Insert, options: Mapping[str, str]) -> None:
        transaction = table.begin()
        transaction.enforces = ENFORCED
        self._store: LogStore = table.store
        self._schema = nullable_schema(schema)
        self._request = request
        self._coordinated_by = {key: value for key, value in options.items() if key.lower() == "coordinator"}
        self._config: TableConfig = prepare_schema(transaction, self._schema, request.options)
        self._time_zone = time_zone_of(options)
        self._filled_in = filled_in(self._config, self._schema.names, table.clock.now_ms(), self._time_zone)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return written_files(self._target(), iterator)

    def _target(self) -> Target:
        files = self._request.files
        return Target(
            self._config,
            self._store,
            self._filled_in,
            files.max_records_per_file,
            files.compression,
            time_zone=self._time_zone or "UTC",
        )

    def _task(self) -> object:
        return sent_whole(worker.message, written_files, self._target())

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        files = list(opened(messages, WrittenFiles))
        table = table_over(self._store, self._coordinated_by)
        transaction = table.begin()
        transaction.enforces = ENFORCED
        if already_written(transaction, self._request.options.app):
            return
        current = prepare_schema(transaction, self._schema, self._request.options)
        if _rules_of_rows(current) != _rules_of_rows(self._config):
            if transaction.snapshot is not None:
                raise MetadataChangedException(
                    f"The schema or a constraint of table {table.url} was changed, or another writer numbered rows of it, while rows were "
                    "being written to it. Run the write again.",
                    table=table.url,
                )
            transaction.set_metadata(self._config.metadata)
        note_numbers(transaction, self._config, files)
        adds = [add for written in files for add in written.adds]
        operation = stage_adds(transaction, self._config, adds, None, self._request.options)
        table.commit(transaction, operation, user_metadata=self._request.user_metadata)
        with logged_after_commit("table %s is written, but not converted", table.url, extra=about(table.url)):
            finish_conversions(table.url)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        discard(self._store, messages)


def _rules_of_rows(config: TableConfig) -> tuple[object, ...]:
    """Return the metadata for which the files were written."""
    checks = {key: text for key, text in config.metadata.configuration.items() if key.lower().startswith(CONSTRAINT_PREFIX)}
    return config.metadata.schema_string, config.partition_columns, checks


def _check_schema(requested: SparkStruct, schema: StructType, store: LogStore) -> None:
    names = [column.name for column in schema]
    if requested.names != names:
        raise InvalidRequest(
            f"Table {store.url} has its own schema ({', '.join(names)}); leave schema(…) out and select columns instead.",
            code="DELTA_UNSUPPORTED_SCHEMA_DURING_READ",
        )


def _predicate(pushed: Any, schema: StructType) -> Predicate | None:
    """Return the predicate of a PySpark filter; None if it cannot be translated."""
    match pushed:
        case datasource.Not(child):
            inner = _predicate(child, schema)
            return None if inner is None else Not(inner)
        case datasource.IsNull(path) | datasource.IsNotNull(path):
            column = schema.resolve(tuple(path))
            if column is None:
                return None
            return IsNull(Column(tuple(path))) if isinstance(pushed, datasource.IsNull) else IsNotNull(Column(tuple(path)))
        case datasource.StringStartsWith(path, value):
            column = schema.resolve(tuple(path))
            is_text = column is not None and str(column.data_type) == "string" and compares_by_bytes(column)
            return StartsWith(Column(tuple(path)), value) if is_text else None
        case datasource.In(path, values):
            literals = [_literal(value, tuple(path), schema) for value in values]
            return None if None in literals else In(Column(tuple(path)), tuple(value for value in literals if value is not None))
    operator = _OPERATORS.get(type(pushed).__name__)
    literal = None if operator is None else _literal(pushed.value, tuple(pushed.attribute), schema)
    return None if operator is None or literal is None else Comparison(operator, Column(tuple(pushed.attribute)), literal)


_OPERATORS = {
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}
_TYPES: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("long", "integer", "short", "byte"), int),
    **dict.fromkeys(("float", "double"), (float, int)),
    "string": str,
    "binary": (bytes, bytearray),
    "boolean": bool,
}


def _literal(value: object, path: tuple[str, ...], schema: StructType) -> Literal | None:
    column = schema.resolve(path)
    return (
        None
        if column is None or not compares_by_bytes(column) or not _is_of(value, column.data_type)
        else Literal(_plain(value, column.data_type), column.data_type)
    )


def _is_of(value: object, data_type: DataType) -> bool:
    if value is None:
        return True
    match data_type:
        case DecimalType():
            return isinstance(value, Decimal)
        case PrimitiveType("date"):
            return isinstance(value, date) and not isinstance(value, datetime)
        case PrimitiveType("timestamp" | "timestamp_ntz" as name):
            return isinstance(value, datetime) and (value.tzinfo is None) == (name == "timestamp_ntz")
        case PrimitiveType(name) if name in _TYPES:
            return isinstance(value, _TYPES[name]) and (name == "boolean" or not isinstance(value, bool))
    return False


def _plain(value: object, data_type: DataType) -> object:
    """Convert a value for `tahoe.expr.tree.predicate.Literal`: timestamps in UTC."""
    if isinstance(value, datetime) and data_type == PrimitiveType("timestamp"):
        return value.astimezone(UTC)
    return bytes(value) if isinstance(value, bytearray) else value
