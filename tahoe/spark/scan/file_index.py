"""Catalyst's ``FileIndex`` in Python: when Spark plans a scan, it lists the files here, from Delta's log.

    Spark plans ──filters──► predicate ──► Snapshot.files_matching ──► partition filters, exactly ──► PartitionDirectory for each partition

Spark's own vectorized Parquet reader does the rest. Partition values come from the log, never from the path. Any planning thread may call
this; after construction only the listings for repeated queries change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING
from weakref import WeakSet, WeakValueDictionary

import pyarrow as pa

from tahoe.base.exceptions import CorruptTable
from tahoe.base.lazy import pc
from tahoe.expr.tree.predicate import Predicate, all_of
from tahoe.log.checksum import VersionChecksum, read_checksum
from tahoe.log.replay import add_files
from tahoe.protocol.features import Feature
from tahoe.protocol.skipping import keep
from tahoe.schema.collations import physical_collations
from tahoe.schema.types import PrimitiveType, StructField, StructType
from tahoe.snapshot.read_errors import no_columns
from tahoe.snapshot.row_statistics import RowStatistics
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.executors.row_tasks import CHOSEN
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.bulk_objects import LoggedValues
from tahoe.spark.jvm.compiled import compiled_object
from tahoe.spark.jvm.proxies import Proxied, answered
from tahoe.spark.jvm.records import items
from tahoe.spark.jvm.storage import hadoop_url
from tahoe.spark.jvm.translate import Filter, Names, filter_predicate, shown_metadata
from tahoe.spark.scan.deleted_rows import DELETED_ROWS, bitmaps
from tahoe.spark.scan.listed_files import Listing, NamedFiles, files_where, list_files, refuse_links
from tahoe.spark.scan.own_reads import OwnReads
from tahoe.spark.scan.scan_filters import ScanFilters

if TYPE_CHECKING:
    from tahoe.api.table import Table


_NEWEST = "Tahoe, the newest version"
BASE_ROW_ID = StructField("__tahoe_base_row_id", PrimitiveType("long"))
DEFAULT_ROW_COMMIT_VERSION = StructField("__tahoe_default_row_commit_version", PrimitiveType("long"))
"""Hidden partition columns: the ids and versions of a file's rows in the log."""
_OF_LOG = {BASE_ROW_ID.name: "baseRowId", DEFAULT_ROW_COMMIT_VERSION.name: "defaultRowCommitVersion"}

_BINARY, _TIMESTAMP = PrimitiveType("binary"), PrimitiveType("timestamp")


_MOST_REUSED_FILES, _MOST_REUSED_LISTINGS = 1000, 16


@dataclass(frozen=True, slots=True)
class _Directories:
    """A result of ``listFiles``, and the names and sizes in bytes of its files."""

    names: list[str]
    sizes: list[int]
    java: JavaObject


class FileIndex(Proxied):
    """The Scala trait ``org.apache.spark.sql.execution.datasources.FileIndex`` over one snapshot.

    Args:
        snapshot: the version to read.
        files: only these of its files; None for all.
        hidden: partition columns that the table lacks: `DELETED_ROWS` with each file's deleted rows, `BASE_ROW_ID` and
            `DEFAULT_ROW_COMMIT_VERSION`, and others whose values are columns of `files`.
        computed: functions that compute hidden columns from the files that a query reads, unless they are columns of `files`.
        follows: the table, if each query reads its newest version (`tahoe.spark.scan.renewal`).
        reads: records what is read, for a query whose rows are written to the table.
    """

    def __init__(
        self,
        jvm: Jvm,
        snapshot: Snapshot,
        *,
        time_zone: str,
        files: pa.Table | None = None,
        hidden: Sequence[StructField] = (),
        computed: Mapping[str, Callable[[pa.Table], pa.Array]] = MappingProxyType({}),
        follows: Table | None = None,
        reads: OwnReads | None = None,
    ) -> None:
        self._jvm = jvm
        self._snapshot = snapshot
        self._files = files
        self._time_zone = time_zone
        self._hidden = tuple(hidden)
        self._computed = computed
        self._names = Names(snapshot.schema, opaque_columns(snapshot))
        self._follows, self._reads = follows, reads
        self._listings: dict[str, _Directories] = {}
        chosen = "all files" if files is None else _digest(files, ["path", CHOSEN, *(column.name for column in hidden)])
        self._identity = (
            f"{_kind(follows, reads)}[{snapshot.store.url}, version {snapshot.version}, id {snapshot.metadata.id}, "
            f"time {snapshot.segment.last_modified_ms}, {chosen}{''.join(f' + {column.name}' for column in hidden)}]"
        )
        with _ALIVE_LOCK:
            _ALIVE.add(self)
        if files is None and not computed:
            # Kept as long as any index with the same text: the JVM may still refer to one when others are gone.
            with _WHOLE_LOCK:
                first = _WHOLE.setdefault(self._identity, self)
            self._first = None if first is self else first

    # -- following a table -------------------------------------------------------------------------------------------------

    @staticmethod
    def of_text(text: str) -> FileIndex | None:
        """Return the index of all files of a version with this text, if there is one; indexes with the same text list the same files."""
        index = _WHOLE.get(text)
        assert index is not None or not text.startswith(f"{_NEWEST}["), text
        return index

    @staticmethod
    def in_use(text: str) -> FileIndex:
        """Return an index with this text that a plan of the JVM refers to; indexes with the same text list the same files."""
        with _ALIVE_LOCK:
            return next(index for index in _ALIVE if index.text == text)

    @staticmethod
    def snapshot_of(file: str) -> Snapshot | None:
        """Return the version that a running query reads this data file of; None if none is known.

        Args:
            file: the file's URL, as Spark's errors have it.
        """
        with _ALIVE_LOCK:
            snapshots = [index.snapshot for index in _ALIVE]
        within = [snapshot for snapshot in snapshots if file.startswith(f"{hadoop_url(snapshot.store.url).rstrip('/')}/")]
        return max(within, key=lambda snapshot: (len(snapshot.store.url), snapshot.version), default=None)

    @cached_property
    def known_rows(self) -> RowStatistics:
        """The log's information on the rows of all files; kept as long as plans are, because counting reads each file's statistics."""
        return RowStatistics(self._snapshot.files(), self._snapshot.partition_columns)

    @property
    def time_zone(self) -> str:
        """The time zone of timestamps without a zone."""
        return self._time_zone

    @property
    def snapshot(self) -> Snapshot:
        """The version whose files are listed."""
        return self._snapshot

    @property
    def follows(self) -> Table | None:
        """The table whose newest version is read; None for this specific version."""
        return self._follows

    @property
    def hidden(self) -> tuple[StructField, ...]:
        """The partition columns that the table lacks."""
        return self._hidden

    @property
    def has_vectors(self) -> bool:
        """Whether files may have deletion vectors."""
        return any(column.name == DELETED_ROWS for column in self._hidden)

    def shows(self, snapshot: Snapshot) -> bool:
        """Return whether these are the files of that version already."""
        mine = self._snapshot
        return (mine.version, mine.metadata.id, mine.segment.last_modified_ms) == (
            snapshot.version,
            snapshot.metadata.id,
            snapshot.segment.last_modified_ms,
        )

    def renewed(self, snapshot: Snapshot) -> FileIndex:
        """Return the index of another version of the table, with additional hidden columns that its files need."""
        return self._at(snapshot, self._follows, None)

    def in_transaction(self, reads: OwnReads) -> FileIndex:
        """Return the index of the version that a transaction is based on, which records the reads."""
        return self._at(reads.snapshot, None, reads)

    def _at(self, snapshot: Snapshot, follows: Table | None, reads: OwnReads | None) -> FileIndex:
        more = () if self.has_vectors or not has_vectors(snapshot) else (StructField(DELETED_ROWS, _BINARY),)
        hidden = (*self._hidden, *more)
        return FileIndex(
            self._jvm, snapshot, time_zone=self._time_zone, hidden=hidden, computed=self._computed, follows=follows, reads=reads
        )

    def only(self, files: pa.Table) -> FileIndex:
        """Return the index of some of its files."""
        return FileIndex(self._jvm, self._snapshot, time_zone=self._time_zone, files=files, hidden=self._hidden)

    # -- calls from Spark --------------------------------------------------------------------------------------------------

    def to_java(self) -> JavaObject:
        """Return a JVM ``FileIndex`` that calls this one, which lives as long as the JVM refers to it.

        This index must not refer to it: neither garbage collector sees a cycle through Python and the JVM, so every version that is read
        would stay in memory.

        It has two roots, the table's own folder and the log in it: Spark treats a relation with one root as a folder to write into, and
        would write files without the log, or clear the folder first, for example by INSERT into a temporary view. It rejects a relation
        with two.
        """
        jvm, root = self._jvm, hadoop_url(self._snapshot.store.url)
        schema = _partition_schema_json(self._snapshot, self._hidden)
        return compiled_object(jvm, "LogFiles", self._identity, root, schema, self)

    @answered
    def apply(self, question: str, partition_filters: JavaObject, data_filters: JavaObject, texts: str) -> JavaObject:
        """Answer a call from the JVM: ``listFiles``, ``filesOf``, ``inputFiles`` or ``sizeInBytes``."""
        match question:
            case "listFiles":
                return self._directories(ScanFilters(texts, partition_filters, data_filters))
            case "filesOf":
                filters = ScanFilters(texts, partition_filters, data_filters)
                return "\n".join(self._listing(self.files_of(filters.partition, filters.data)).files["url"].to_pylist())
            case "inputFiles":
                # For ``DataFrame.inputFiles()``.
                return self._jvm.array("java.lang.String", self._listing(self._matching(None)).files["url"].to_pylist())
        # Spark uses it to decide which side of a join to broadcast.
        assert question == "sizeInBytes", question
        return self._size

    def files_of(self, partition: Sequence[Filter], data: Sequence[Filter]) -> pa.Table:
        """Return the files that a scan with these filters must read. Raises `InvalidRequest` for a table without columns."""
        if not self._snapshot.schema.fields:
            raise no_columns(self._snapshot.store.url)
        exact = [(condition, filter_predicate(condition, self._names, exact=True)) for condition in partition]
        loose = [filter_predicate(condition, self._names, exact=False) for condition in data]
        parts = [predicate for predicate in (*(part for _, part in exact), *loose) if predicate is not None]
        files = self._matching(all_of(parts) if parts else None)
        for condition in (condition for condition, part in exact if part is None):
            files = self._where(files, condition.java())
        self.record(all_of(parts) if parts else None, files)
        return files

    def record(self, predicate: Predicate | None, files: pa.Table) -> None:
        """Record that files were read, if the query's rows are written to the table. The arguments are those of `OwnReads.record`."""
        if self._reads is not None:
            self._reads.record(predicate, files)

    @property
    def text(self) -> str:
        """The text by which two indexes are equal: table, version and chosen files; ``explain()`` prints it."""
        return self._identity

    class Java:
        """The interfaces that the JVM may call on this object."""

        implements = ("scala.Function4",)

    # -- parts -------------------------------------------------------------------------------------------------------------

    @cached_property
    def _size(self) -> int:
        if self._files is None and not self._snapshot.has_files_in_memory:
            checksum = checksum_or_none(self._snapshot)
            if checksum is not None:
                return checksum.table_size_bytes
        return int(pc.sum(self._matching(None)["size"]).as_py() or 0)

    def _matching(self, predicate: Predicate | None) -> pa.Table:
        if self._files is None:
            return self._snapshot.files_matching(predicate)
        if predicate is None:
            return self._files
        return self._files.filter(keep(predicate, self._files, self._snapshot.schema, self._snapshot.partition_columns))

    def _directories(self, filters: ScanFilters) -> JavaObject:
        """Return the result of ``listFiles``. It is reused for the same filters; links and sizes of its files are checked each time."""
        reused = self._listings.get(filters.key)
        if reused is not None:
            self._refuse_links(reused.names, reused.sizes)
            return reused.java
        files = self.files_of(filters.partition, filters.data)
        java = list_files(self._jvm, self._listing(files))
        if filters.are_texts_complete and not self._hidden and len(files) <= _MOST_REUSED_FILES:
            if len(self._listings) >= _MOST_REUSED_LISTINGS:
                self._listings.clear()
            names = NamedFiles.of(files["path"], self._snapshot.store).names
            self._listings[filters.key] = _Directories(names, files["size"].to_pylist(), java)
        return java

    def urls_of(self, files: pa.Table) -> pa.Array:
        """Return the absolute, percent-encoded URLs of files to read. Raises `CorruptTable` for unexpected deletion vectors."""
        store = self._snapshot.store
        if DELETED_ROWS not in (column.name for column in self._hidden) and files["deletionVector"].null_count < len(files):
            raise CorruptTable(
                f"Table {store.url}, version {self._snapshot.version}: the log has deletion vectors, and the version's checksum says that "
                "it has none. Delete the checksum file of that version (.crc); it is not needed to read the table.",
                code="DELTA_TXN_LOG_FAILED_INTEGRITY",
                table=store.url,
            )
        with self._snapshot.naming_origins():
            named = NamedFiles.of(files["path"], store)
        self._refuse_links(named.names, files["size"].to_pylist())
        return named.urls

    def _refuse_links(self, names: Sequence[str], sizes: Sequence[int]) -> None:
        with self._snapshot.naming_origins():
            refuse_links(self._snapshot.store, names, sizes)

    def _listing(self, files: pa.Table) -> Listing:
        listed = pa.table({"url": self.urls_of(files), "size": files["size"], "modificationTime": files["modificationTime"]})
        return Listing(listed, self._logged_values(files, [*self._snapshot.config.partition_schema, *self._hidden]))

    def _logged_values(self, files: pa.Table, columns: Sequence[StructField]) -> LoggedValues:
        values = [self.values_of(files, column) for column in columns]
        return LoggedValues(values, [column.data_type.to_json_value() for column in columns], self._time_zone)

    def values_of(self, files: pa.Table, column: StructField) -> pa.Array:
        """Return the text, or the bytes, of a partition column's value for each file."""
        if column not in self._hidden:
            return partition_texts(files, column.physical_name)
        if column.name == DELETED_ROWS:
            return _deleted_rows(files, self._snapshot)
        if column.name in self._computed:
            return self._computed[column.name](files)
        values = files[_OF_LOG.get(column.name, column.name)].combine_chunks()
        return values if column.data_type == _BINARY else values.cast(pa.string())

    def _where(self, files: pa.Table, expression: JavaObject) -> pa.Table:
        """Return the files for whose partition values Catalyst evaluates the filter to true."""
        attributes = list(items(expression.references().toSeq()))
        if not attributes:
            return files if expression.eval(None) else files.slice(0, 0)
        schema = (*self._snapshot.config.partition_schema, *self._hidden)
        fields = [
            next(column for column in schema if column.physical_name.lower() == attribute.name().lower())
            for attribute in attributes
        ]
        return files.take(files_where(self._jvm, expression, attributes, self._logged_values(files, fields)))


def _kind(follows: Table | None, reads: OwnReads | None) -> str:
    """Return the beginning of an index's text."""
    if reads is not None:
        return f"Tahoe, transaction {reads.number}"
    return "Tahoe" if follows is None else _NEWEST


# The indexes of all files of a version, by text: py4j does not return the Python object behind a JVM proxy.
_WHOLE: WeakValueDictionary[str, FileIndex] = WeakValueDictionary()
_WHOLE_LOCK = Lock()
_ALIVE: WeakSet[FileIndex] = WeakSet()
_ALIVE_LOCK = Lock()


def opaque_columns(snapshot: Snapshot) -> frozenset[str]:
    """Return the columns whose filters are not translated: partition columns of type timestamp.

    A value without a zone in the log means the session's local time to Spark, and UTC to the predicates. Catalyst itself evaluates these
    filters.
    """
    return frozenset(column.name for column in snapshot.config.partition_schema if column.data_type == _TIMESTAMP)


def checksum_or_none(snapshot: Snapshot) -> VersionChecksum | None:
    """Return the version's checksum file, or None: a hint, cheaper than reading the live files."""
    try:
        return read_checksum(snapshot.store, snapshot.version)
    except CorruptTable:
        # A corrupt checksum is ignored; the table is still readable.
        return None


def has_vectors(snapshot: Snapshot, files: pa.Table | None = None) -> bool:
    """Return whether files of a version have deletion vectors, determined as cheaply as possible.

    Args:
        files: only these; None for all.
    """
    if Feature.DELETION_VECTORS not in snapshot.config.features:
        return False
    if files is None and not snapshot.has_files_in_memory:
        checksum = checksum_or_none(snapshot)
        # The file index refuses to list a file with an unexpected vector.
        if checksum is not None and checksum.num_deletion_vectors == 0:
            return False
    vectors = (snapshot.files() if files is None else files)["deletionVector"]
    return bool(vectors.null_count < len(vectors))


def _partition_schema_json(snapshot: Snapshot, hidden: Sequence[StructField] = ()) -> str:
    """Return the partition columns of the relation under their physical names, as Spark's JSON."""
    columns = [
        replace(column, name=column.physical_name, metadata=physical_collations(column, shown_metadata(column)))
        for column in snapshot.config.partition_schema
    ]
    return StructType((*columns, *hidden)).to_json()


def partition_texts(files: pa.Table, physical_name: str) -> pa.Array:
    """Return a partition column's values from the log, one for each file; an empty text is null."""
    values = pc.map_lookup(files["partitionValues"].combine_chunks(), physical_name, "first")
    return pc.if_else(pc.equal(values, ""), pa.scalar(None, pa.string()), values)


def _digest(files: pa.Table, columns: Sequence[str]) -> str:
    """Return a digest that differs for any two lists of files that differ in one of the columns; missing columns are ignored."""
    digest = hashlib.sha256()
    for name in columns:
        if name in files.column_names:
            for value in files[name].to_pylist():
                content = value if isinstance(value, bytes) else repr(value).encode()
                digest.update(len(content).to_bytes(8) + content)
    return digest.hexdigest()


def _deleted_rows(files: pa.Table, snapshot: Snapshot) -> pa.Array:
    vectors = files["deletionVector"].combine_chunks()
    with_vector = pc.indices_nonzero(vectors.is_valid())
    packed = bitmaps(snapshot.store, [add.deletion_vector for add in add_files(files.take(with_vector)) if add.deletion_vector])
    values: list[bytes | None] = [None] * len(files)
    for row, bits in zip(with_vector.to_pylist(), packed.to_pylist(), strict=True):
        values[row] = bits
    return pa.array(values, pa.binary())
