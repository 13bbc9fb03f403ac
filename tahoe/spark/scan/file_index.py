"""Catalyst's ``FileIndex`` in Python: when Spark plans a scan it asks here for the files, and Delta's log answers.

    Spark plans ──filters──► predicate ──► Snapshot.files_matching ──► partition filters, exactly ──► PartitionDirectory for each partition

Spark's own vectorised Parquet reader does the rest. Partition values come from the log, never from the path. Called on whatever thread
plans; nothing here changes after construction.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import pyarrow as pa

from tahoe.exceptions import CorruptTable
from tahoe.expr.tree.predicate import Predicate, all_of
from tahoe.lazy import pc
from tahoe.log.checksum import VersionChecksum, read_checksum
from tahoe.log.replay import add_files
from tahoe.protocol.skipping import keep
from tahoe.schema.types import PrimitiveType, StructField, StructType
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.errors import kept_for_the_caller
from tahoe.spark.jvm.records import items
from tahoe.spark.jvm.storage import hadoop_url
from tahoe.spark.jvm.translate import Names, shown_metadata, to_predicate
from tahoe.spark.scan.deleted_rows import DELETED_ROWS, bitmaps
from tahoe.spark.scan.file_urls import file_urls

if TYPE_CHECKING:
    from tahoe.table import Table

__all__ = [
    "BASE_ROW_ID",
    "DEFAULT_ROW_COMMIT_VERSION",
    "FileIndex",
    "Listing",
    "checksum_or_none",
    "has_vectors",
    "list_files",
    "opaque_columns",
]

_BLOCK_SIZE = 134_217_728
_NEWEST = "Tahoe, the newest version"
BASE_ROW_ID = StructField("__tahoe_base_row_id", PrimitiveType("long"))
DEFAULT_ROW_COMMIT_VERSION = StructField("__tahoe_default_row_commit_version", PrimitiveType("long"))
"""Hidden partition columns: what the log says of the ids and versions of a file's rows."""
_OF_LOG = {BASE_ROW_ID.name: "baseRowId", DEFAULT_ROW_COMMIT_VERSION.name: "defaultRowCommitVersion"}

_BINARY, _TIMESTAMP = PrimitiveType("binary"), PrimitiveType("timestamp")


class FileIndex:
    """The Scala trait ``org.apache.spark.sql.execution.datasources.FileIndex`` over one snapshot.

    Args:
        snapshot: what is read.
        files: only these of its files; None for all.
        hidden: partition columns that the table does not have: `DELETED_ROWS`, which brings each file's dead rows along, `BASE_ROW_ID` and
            `DEFAULT_ROW_COMMIT_VERSION`, and others, whose values are columns of `files`.
        computed: how values of hidden columns are made of the files that a query reads, where they are no columns of `files`.
        follows: the table, where its newest version is meant whenever a query runs (`tahoe.spark.scan.renewal`).
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
    ) -> None:
        self._jvm = jvm
        self._snapshot = snapshot
        self._files = files
        self._time_zone = time_zone
        self._hidden = tuple(hidden)
        self._computed = computed
        self._names = Names(snapshot.schema, opaque_columns(snapshot))
        self._follows = follows
        chosen = "all files" if files is None else _digest(files, ["path", *(column.name for column in hidden)])
        self._identity = (
            f"{'Tahoe' if follows is None else _NEWEST}[{snapshot.store.url}, version {snapshot.version}, id {snapshot.metadata.id}, "
            f"time {snapshot.segment.last_modified_ms}, {chosen}{''.join(f' + {column.name}' for column in hidden)}]"
        )
        if follows is not None:
            # Kept as long as any index of the same text is: the JVM may still hold one when others are gone.
            with _FOLLOWING_LOCK:
                first = _FOLLOWING.setdefault(self._identity, self)
            self._first = None if first is self else first

    # -- following a table -------------------------------------------------------------------------------------------------

    @staticmethod
    def following(relation: JavaObject) -> FileIndex | None:
        """The index of a ``HadoopFsRelation``, if it is one that follows its table; one with the same text lists the same files."""
        text = str(relation.location().toString())
        index = _FOLLOWING.get(text)
        assert index is not None or not text.startswith(f"{_NEWEST}["), text
        return index

    @property
    def snapshot(self) -> Snapshot:
        """The version whose files are listed."""
        return self._snapshot

    @property
    def follows(self) -> Table | None:
        """The table whose newest version is meant; None where this very version is."""
        return self._follows

    @property
    def has_vectors(self) -> bool:
        """Whether files may have deletion vectors."""
        return any(column.name == DELETED_ROWS for column in self._hidden)

    def shows(self, snapshot: Snapshot) -> bool:
        """Whether these are the files of that version already."""
        mine = self._snapshot
        return (mine.version, mine.metadata.id, mine.segment.last_modified_ms) == (
            snapshot.version,
            snapshot.metadata.id,
            snapshot.segment.last_modified_ms,
        )

    def at(self, snapshot: Snapshot, *more: StructField) -> FileIndex:
        """The same question to another version of the table.

        Args:
            more: hidden columns beside those that there are.
        """
        return FileIndex(
            self._jvm,
            snapshot,
            time_zone=self._time_zone,
            hidden=(*self._hidden, *more),
            computed=self._computed,
            follows=self._follows,
        )

    # -- the trait ---------------------------------------------------------------------------------------------------------

    @kept_for_the_caller
    def listFiles(self, partition_filters: JavaObject, data_filters: JavaObject) -> JavaObject:  # noqa: N802 - Spark's name
        """The files that a scan with these filters must read, by partition: a Scala `Seq` of ``PartitionDirectory``."""
        partition, data = list(items(partition_filters)), list(items(data_filters))
        exact = [(one, to_predicate(one, self._names, exact=True)) for one in partition]
        loose = [to_predicate(one, self._names, exact=False) for one in data]
        parts = [predicate for predicate in (*(part for _, part in exact), *loose) if predicate is not None]
        files = self._matching(all_of(parts) if parts else None)
        for expression in (one for one, part in exact if part is None):
            files = self._where(files, expression)
        return list_files(self._jvm, self._listing(files))

    @kept_for_the_caller
    def rootPaths(self) -> JavaObject:  # noqa: N802
        """The table's own folder, and the log in it, as a Scala `Seq` of Hadoop paths.

        Spark takes a relation with one root for a folder to write into, and would write its files past the log, or clear the folder first:
        by INSERT into a temporary view, say. It refuses one with two.
        """
        return self._root_paths

    @kept_for_the_caller
    def inputFiles(self) -> JavaObject:  # noqa: N802
        """The URLs of all files, for ``DataFrame.inputFiles()``."""
        return self._jvm.array("java.lang.String", self._listing(self._matching(None)).urls.to_pylist())

    def refresh(self) -> None:
        """A snapshot never changes."""

    @kept_for_the_caller
    def sizeInBytes(self) -> int:  # noqa: N802
        """The bytes of all files: Spark decides by it which side of a join is sent to every executor."""
        return self._size

    @kept_for_the_caller
    def partitionSchema(self) -> JavaObject:  # noqa: N802
        """The columns whose values come from the log, hidden ones last, as Spark's ``StructType``."""
        return self._jvm.data_type(_partition_schema_json(self._snapshot, self._hidden))

    def isTimeTravel(self) -> bool:  # noqa: N802
        """False: the version was chosen before, so to Spark no scan here is one of an older version."""
        return False

    @kept_for_the_caller
    def metadataOpsTimeNs(self) -> JavaObject:  # noqa: N802
        """Scala's ``None``: the time that listing takes is not in Spark's metrics."""
        return self._jvm.option(None)

    def toString(self) -> str:  # noqa: N802
        """The text by which two of these are equal: table, version and chosen files; ``explain()`` prints it."""
        return self._identity

    def hashCode(self) -> int:  # noqa: N802
        """The same number for the same `toString`, and positive, as an ``int`` of Java has one bit for the sign."""
        return zlib.crc32(self._identity.encode()) & 0x7FFFFFFF

    @kept_for_the_caller
    def equals(self, other: JavaObject) -> bool:
        """The same files of the same version, so that Spark reuses exchanges and what was cached. The other comes as an object of the
        JVM, whatever it is there; its text tells."""
        return other is not None and bool(other.toString() == self._identity)

    class Java:
        """Where py4j looks for the interfaces that the JVM may call on this object."""

        implements = ["org.apache.spark.sql.execution.datasources.FileIndex"]  # noqa: RUF012 - py4j's own form

    # -- parts -------------------------------------------------------------------------------------------------------------

    @cached_property
    def _root_paths(self) -> JavaObject:
        path, root = self._jvm.java_class("org.apache.hadoop.fs.Path"), hadoop_url(self._snapshot.store.url)
        return self._jvm.seq(path(root), path(f"{root}/_delta_log"))

    @cached_property
    def _size(self) -> int:
        if self._files is None and not self._snapshot.has_files_in_memory:
            known = checksum_or_none(self._snapshot)
            if known is not None:
                return known.table_size_bytes
        return int(pc.sum(self._matching(None)["size"]).as_py() or 0)

    def _matching(self, predicate: Predicate | None) -> pa.Table:
        if self._files is None:
            return self._snapshot.files_matching(predicate)
        if predicate is None:
            return self._files
        return self._files.filter(keep(predicate, self._files, self._snapshot.schema, self._snapshot.partition_columns))

    def _listing(self, files: pa.Table) -> Listing:
        store = self._snapshot.store
        columns = [*self._snapshot.config.partition_schema, *self._hidden]
        values = [self._values(files, column) for column in columns]
        types = [column.data_type.to_json_value() for column in columns]
        if DELETED_ROWS not in (column.name for column in self._hidden) and files["deletionVector"].null_count < len(files):
            raise CorruptTable(
                f"Table {store.url}, version {self._snapshot.version}: the log has deletion vectors, and the version's checksum says that "
                "it has none. Delete the checksum file of that version (.crc); it is not needed to read the table.",
                code="DELTA_TXN_LOG_FAILED_INTEGRITY",
                table=store.url,
            )
        with self._snapshot.naming_origins():
            urls = file_urls(files["path"], store, files["size"])
        return Listing(
            urls,
            files["size"],
            files["modificationTime"],
            values,
            types,
            self._time_zone,
        )

    def _values(self, files: pa.Table, column: StructField) -> pa.Array:
        """The text, or the bytes, of a partition column's value for each file."""
        if column not in self._hidden:
            return _partition_values(files, column.physical_name)
        if column.name == DELETED_ROWS:
            return _deleted_rows(files, self._snapshot)
        if column.name in self._computed:
            return self._computed[column.name](files)
        values = files[_OF_LOG.get(column.name, column.name)].combine_chunks()
        return values if column.data_type == _BINARY else values.cast(pa.string())

    def _where(self, files: pa.Table, expression: JavaObject) -> pa.Table:
        """The files for whose partition values Catalyst itself finds the filter true."""
        attributes = list(items(expression.references().toSeq()))
        if not attributes:
            return files if expression.eval(None) else files.slice(0, 0)
        schema = (*self._snapshot.config.partition_schema, *self._hidden)
        fields = [next(column for column in schema if column.physical_name.lower() == one.name().lower()) for one in attributes]
        values = [self._values(files, column) for column in fields]
        groups = _grouped(values)
        rows = _typed_rows(self._jvm, groups.values, [one.data_type.to_json_value() for one in fields], self._time_zone)
        kept = _evaluated(self._jvm, expression, attributes, rows, len(groups.starts))
        return files.take(groups.members_where(kept))


# Those that follow a table, by their texts: py4j gives no Python object back for what the JVM holds of it.
_FOLLOWING: WeakValueDictionary[str, FileIndex] = WeakValueDictionary()
_FOLLOWING_LOCK = Lock()


@dataclass(frozen=True)
class Listing:
    """Files to scan, one row each, in any order.

    Args:
        urls: percent-encoded absolute URLs.
        sizes, modification_times: bytes; milliseconds.
        partition_values: a column of the log's strings for each partition column.
        partition_types: the JSON of each partition column's Spark type.
        time_zone: of timestamps that name none.
    """

    urls: pa.Array
    sizes: pa.ChunkedArray
    modification_times: pa.ChunkedArray
    partition_values: list[pa.Array]
    partition_types: list[object]
    time_zone: str


def list_files(jvm: Jvm, listing: Listing) -> JavaObject:
    """What ``FileIndex.listFiles`` returns: a Scala `Seq` of a `PartitionDirectory` for each partition."""
    groups = _grouped(listing.partition_values) if listing.partition_values else _Groups.one(len(listing.urls))
    if not len(listing.urls):
        return jvm.seq()
    order = groups.order
    statuses = _statuses(jvm, listing.urls.take(order), listing.sizes.take(order), listing.modification_times.take(order))
    bulk, status = jvm.bulk, "org.apache.hadoop.fs.FileStatus"
    directory, row = f"{_DATASOURCES}.PartitionDirectory", "org.apache.spark.sql.catalyst.InternalRow"
    make = bulk.static(directory, "apply", directory, row, f"[L{status};")
    files_of = bulk.ranges(statuses, status, groups.starts, groups.stops)
    if listing.partition_values:
        values = bulk.elements(_typed_rows(jvm, groups.values, listing.partition_types, listing.time_zone))
        values = values.asType(values.type().changeReturnType(jvm.reflected(row)))
        directories = bulk.apply(make, values, files_of)
    else:
        directories = bulk.apply(bulk.fixed(make, 0, jvm.java_class(row).empty()), files_of)
    return jvm.seq_of(bulk.objects(len(groups.starts), directories))


def opaque_columns(snapshot: Snapshot) -> frozenset[str]:
    """Columns on which no filter is translated: partition columns of timestamps, which without a zone in the log mean the session's local
    time to Spark and UTC to the predicates. Catalyst itself filters those."""
    return frozenset(column.name for column in snapshot.config.partition_schema if column.data_type == _TIMESTAMP)


def checksum_or_none(snapshot: Snapshot) -> VersionChecksum | None:
    """What the version's checksum file says: a hint, cheaper than the live files."""
    try:
        return read_checksum(snapshot.store, snapshot.version)
    except CorruptTable:
        # A damaged checksum says nothing; the table can be read all the same.
        return None


def has_vectors(snapshot: Snapshot, files: pa.Table | None = None) -> bool:
    """Whether files of a version have deletion vectors, as cheaply as that can be told.

    Args:
        files: only these; None for all.
    """
    if "deletionVectors" not in snapshot.config.features:
        return False
    if files is None and not snapshot.has_files_in_memory:
        known = checksum_or_none(snapshot)
        # The file index refuses to list a file with a vector that was not expected.
        if known is not None and known.num_deletion_vectors == 0:
            return False
    vectors = (snapshot.files() if files is None else files)["deletionVector"]
    return bool(vectors.null_count < len(vectors))


def _partition_schema_json(snapshot: Snapshot, hidden: Sequence[StructField] = ()) -> str:
    """The partition columns of the relation under their physical names, as Spark's JSON."""
    columns = [
        replace(column, name=column.physical_name, metadata=shown_metadata(column)) for column in snapshot.config.partition_schema
    ]
    return StructType((*columns, *hidden)).to_json()


_DATASOURCES = "org.apache.spark.sql.execution.datasources"


@dataclass(frozen=True)
class _Groups:
    """Rows brought together by equal values.

    Args:
        order: row numbers, group by group.
        starts, stops: where each group lies in `order`.
        values: for each grouping column the value of each group.
    """

    order: pa.Array
    starts: pa.Array
    stops: pa.Array
    values: list[pa.Array]

    @classmethod
    def one(cls, count: int) -> _Groups:
        return cls(pa.array(range(count), pa.int64()), pa.array([0], pa.int32()), pa.array([count], pa.int32()), [])

    def members_where(self, kept: Sequence[bool]) -> pa.Array:
        """The row numbers of the groups that are kept."""
        parts = [
            self.order[start:stop]
            for start, stop, keep in zip(self.starts.to_pylist(), self.stops.to_pylist(), kept, strict=True)
            if keep
        ]
        return pa.concat_arrays(parts) if parts else pa.array([], pa.int64())


def _grouped(columns: Sequence[pa.Array]) -> _Groups:
    names = [str(position) for position in range(len(columns))]
    table = pa.table([*columns, pa.array(range(len(columns[0])), pa.int64())], [*names, "row"])
    grouped = table.group_by(names, use_threads=False).aggregate([("row", "list")])
    lists = grouped["row_list"].combine_chunks()
    offsets = lists.offsets
    values = [grouped[name].combine_chunks() for name in names]
    return _Groups(lists.values, offsets.slice(0, len(lists)), offsets.slice(1), values)


def _statuses(jvm: Jvm, urls: pa.Array, sizes: pa.ChunkedArray, times: pa.ChunkedArray) -> JavaObject:
    """A Hadoop ``FileStatus`` for each file, as a Java array of objects."""
    bulk, path = jvm.bulk, "org.apache.hadoop.fs.Path"
    text = bulk.apply(bulk.method("org.apache.spark.unsafe.types.UTF8String", "toString", "java.lang.String"), bulk.texts(urls))
    uri = bulk.apply(bulk.static("java.net.URI", "create", "java.net.URI", "java.lang.String"), text)
    status = bulk.constructor("org.apache.hadoop.fs.FileStatus", "long", "boolean", "int", "long", "long", path)
    status = bulk.fixed(status, 1, False, 1, _BLOCK_SIZE)
    statuses = bulk.apply(status, bulk.longs(sizes), bulk.longs(times), bulk.apply(bulk.constructor(path, "java.net.URI"), uri))
    return bulk.objects(len(urls), statuses)


def _typed_rows(jvm: Jvm, columns: Sequence[pa.Array], types: Sequence[object], time_zone: str) -> JavaObject:
    """Catalyst rows of the log's partition strings, cast as Spark casts them; an empty string is null."""
    reference, cast = jvm.catalyst("expressions.BoundReference"), jvm.catalyst("expressions.Cast")
    string, zone, mode = jvm.data_type('"string"'), jvm.option(time_zone), jvm.catalyst("expressions.EvalMode").ANSI()
    parts = []
    for position, data_type in enumerate(types):
        part = reference(position, string, True)
        parts.append(part if data_type == "string" else cast(part, jvm.data_type(json.dumps(data_type)), zone, mode))
    projection = jvm.catalyst("expressions.InterpretedUnsafeProjection").createProjection(jvm.seq(*parts))
    count = len(columns[0])
    return jvm.bulk.objects(count, jvm.bulk.rows([jvm.bulk.texts(column) for column in columns], projection))


def _evaluated(jvm: Jvm, expression: JavaObject, attributes: Sequence[JavaObject], rows: JavaObject, count: int) -> list[bool]:
    row, base = "org.apache.spark.sql.catalyst.InternalRow", "org.apache.spark.sql.catalyst.expressions.BasePredicate"
    inputs = jvm.java_class("org.apache.spark.sql.catalyst.expressions.package$AttributeSeq")(jvm.seq(*attributes))
    bound = jvm.catalyst("expressions.BindReferences").bindReference(expression, inputs, False)
    predicate = jvm.catalyst("expressions.InterpretedPredicate")(bound)
    predicate.initialize(0)
    values = jvm.bulk.elements(rows)
    values = values.asType(values.type().changeReturnType(jvm.reflected(row)))
    answers = jvm.bulk.objects(count, jvm.bulk.apply(jvm.bulk.method(base, "eval", "boolean", row).bindTo(predicate), values))
    text = str(jvm.java_class("java.util.Arrays").toString(answers))
    return [answer == "true" for answer in re.findall(r"true|false", text)]


def _partition_values(files: pa.Table, physical_name: str) -> pa.Array:
    values = pc.map_lookup(files["partitionValues"].combine_chunks(), physical_name, "first")
    return pc.if_else(pc.equal(values, ""), pa.scalar(None, pa.string()), values)


def _digest(files: pa.Table, columns: Sequence[str]) -> str:
    """Tells apart any two lists of files that differ in one of the columns; those that are missing are left out."""
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
