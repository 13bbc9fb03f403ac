"""The file index of a change data feed; a feed without an end lists the files up to the newest version.

Version, timestamp and type of a change are hidden partition values of its file. So are the rows to include, if not all are: the rows that a
commit deleted by a deletion vector (`SELECTED_ROWS`), or those that no vector has deleted (`DELETED_ROWS`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakValueDictionary

import pyarrow as pa
from pyspark.sql import Column

from tahoe.api.table import Table
from tahoe.log.replay import files_table
from tahoe.protocol.actions import AddFile, DeletionVectorDescriptor
from tahoe.schema.types import PrimitiveType, StructField
from tahoe.snapshot.changes import Bounds, ChangedFile, Feed, feed
from tahoe.snapshot.data_reader import VectorReader
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.jvm.bridge import Jvm
from tahoe.spark.scan.deleted_rows import DELETED_ROWS, is_live, packed
from tahoe.spark.scan.file_index import FileIndex

KIND = StructField("__tahoe_change_type", PrimitiveType("string"))
VERSION = StructField("__tahoe_commit_version", PrimitiveType("long"))
TIME = StructField("__tahoe_commit_timestamp", PrimitiveType("timestamp"))
SELECTED_ROWS = StructField("__tahoe_rows_meant", PrimitiveType("binary"))
_DELETED_ROWS = StructField(DELETED_ROWS, PrimitiveType("binary"))
# The index of a file in its feed; a column of the files only.
_NUMBER = "__tahoe_number"


def _is_selected(jvm: Jvm, selected: Column, position: Column) -> Column:
    return selected.isNull() | ~is_live(jvm, selected, position)


ROW_CONDITIONS: Mapping[str, Callable[[Jvm, Column, Column], Column]] = {SELECTED_ROWS.name: _is_selected, DELETED_ROWS: is_live}
"""The name of a hidden column → the condition for rows, a function of that column and the row's position in its file."""


def groups_of(files: Sequence[ChangedFile]) -> tuple[list[ChangedFile], list[ChangedFile]]:
    """Return the data files, whose rows all have the same change type, and the change data files."""
    return [file for file in files if file.kind is not None], [file for file in files if file.kind is None]


@dataclass(frozen=True, slots=True)
class OpenRange:
    """A range of commits without an end.

    Args:
        bounds: of the range.
        latest: the newest version when the files were listed.
    """

    table: Table
    bounds: Bounds
    latest: Snapshot


class ChangedFilesIndex(FileIndex):
    """The files of one group of a feed (`groups_of`).

    Args:
        is_change_data: the group, in case it has no file.
        range_of: the range, if each query reads up to the newest version; None for a range with an end.
        hidden: hidden columns that a plan already has, whether the files need them or not.
    """

    def __init__(
        self,
        jvm: Jvm,
        changes: Feed,
        files: Sequence[ChangedFile],
        time_zone: str,
        *,
        is_change_data: bool | None = None,
        range_of: OpenRange | None = None,
        hidden: Sequence[StructField] = (),
    ) -> None:
        self._is_change_data = files[0].kind is None if is_change_data is None else is_change_data
        self._range = range_of
        needed = _hidden(files, self._is_change_data)
        super().__init__(
            jvm,
            changes.snapshot,
            time_zone=time_zone,
            files=_table_of(changes, files),
            hidden=(*hidden, *(column for column in needed if column not in hidden)),
            computed={SELECTED_ROWS.name: _selected_rows(changes, files)},
        )
        if range_of is not None:
            self._identity = f"changes since {range_of.bounds} in {self._identity}, version {range_of.latest.version}"
            self._first = _OPEN.setdefault(self._identity, self)

    @staticmethod
    def of_text(text: str) -> ChangedFilesIndex | None:
        """Return the index of a range without an end with this text, if there is one."""
        return _OPEN.get(text)

    @property
    def follows(self) -> Table | None:
        """The table whose newest version ends the range; None for a range with an end."""
        return None if self._range is None else self._range.table

    def shows(self, snapshot: Snapshot) -> bool:
        """Return whether the range ends with that version."""
        assert self._range is not None
        return _identity(self._range.latest) == _identity(snapshot)

    def renewed(self, snapshot: Snapshot) -> ChangedFilesIndex:
        """Return the same range up to that version."""
        assert self._range is not None
        table, bounds = self._range.table, self._range.bounds
        changes = feed(table.store, snapshot, bounds)
        return ChangedFilesIndex(
            self._jvm,
            changes,
            groups_of(list(changes.files()))[self._is_change_data],
            self.time_zone,
            is_change_data=self._is_change_data,
            range_of=OpenRange(table, bounds, snapshot),
            hidden=self.hidden,
        )


# Like the indexes of whole versions: kept as long as any index with the same text.
_OPEN: WeakValueDictionary[str, ChangedFilesIndex] = WeakValueDictionary()


def _identity(snapshot: Snapshot) -> tuple[int, str, int]:
    return snapshot.version, snapshot.metadata.id, snapshot.segment.last_modified_ms


def _hidden(files: Sequence[ChangedFile], is_change_data: bool) -> tuple[StructField, ...]:
    kind = () if is_change_data else (KIND,)
    selected = (SELECTED_ROWS,) if any(file.within is not None for file in files) else ()
    deleted = (_DELETED_ROWS,) if any(_deleted(file) is not None for file in files) else ()
    return VERSION, TIME, *kind, *selected, *deleted


def _deleted(file: ChangedFile) -> DeletionVectorDescriptor | None:
    """Return the vector that defines the rows to skip, if nothing else restricts the rows."""
    return file.without if file.within is None else None


def _table_of(changes: Feed, files: Sequence[ChangedFile]) -> pa.Table:
    """Return the files in the form of an index, with the hidden columns except `SELECTED_ROWS`, and with `_NUMBER`."""

    def added(file: ChangedFile) -> AddFile:
        values, time = file.partition_values, changes.times[file.version]
        return AddFile(file.path, values, file.size, time, True, stats=file.stats, deletion_vector=_deleted(file))

    times = pa.array([changes.times[file.version] for file in files], pa.timestamp("ms", "UTC"))
    table = files_table(added(file) for file in files)
    table = table.append_column(VERSION.name, pa.array([file.version for file in files], pa.int64()))
    table = table.append_column(TIME.name, times)
    table = table.append_column(KIND.name, pa.array([file.kind for file in files], pa.string()))
    return table.append_column(_NUMBER, pa.array(range(len(files)), pa.int64()))


def _selected_rows(changes: Feed, files: Sequence[ChangedFile]) -> Callable[[pa.Table], pa.Array]:
    """Return a function that computes packed bits of the rows to include for the files that a query reads; null for all rows."""
    store = changes.store

    def selected(chosen: pa.Table) -> pa.Array:
        vectors = VectorReader(store)
        chosen_files = (files[number] for number in chosen[_NUMBER].to_pylist())
        rows = (file.rows(vectors.bitmap) for file in chosen_files)
        return pa.array([None if included is None else packed(included, store.url) for included in rows], pa.binary())

    return selected
