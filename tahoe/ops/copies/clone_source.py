"""What a CLONE is made of: a version of a Delta table, or the files of a folder that would be one. Its files as the clone is to name them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from tahoe.clock import Clock
from tahoe.log.files.live_files import add_files
from tahoe.ops.copies.parquet_folder import FoundTable
from tahoe.ops.tables.create import new_metadata
from tahoe.protocol.actions import AddFile, DeletionVectorDescriptor, DomainMetadata, Metadata, Protocol
from tahoe.protocol.dv import file_name, new_file_name, z85_encode
from tahoe.protocol.row_tracking import NO_ROW_IDS, high_water_mark
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.location import absolute_url, decode_path, encode_path, is_outside
from tahoe.store.log_store import LogStore

__all__ = ["CloneSource", "FileCopy", "clustering_of", "copied", "referenced", "source_of_folder", "source_of_snapshot"]


@dataclass(frozen=True, slots=True)
class CloneSource:
    """What is cloned.

    Args:
        name: as the history of the clone tells it.
        store: where its files are.
        metadata: of that version; of a folder, what CONVERT TO DELTA would give it.
        protocol: None for a folder.
        files: with paths as the source's log has them.
        version: -1 for a folder.
        row_id_mark: the highest row id of the source.
        domains: metadata domains that the clone gets.
    """

    name: str
    store: LogStore
    metadata: Metadata
    protocol: Protocol | None
    files: Sequence[AddFile]
    version: int
    is_newest: bool = True
    row_id_mark: int = NO_ROW_IDS
    domains: Sequence[DomainMetadata] = ()

    @property
    def size(self) -> int:
        """Its bytes."""
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True)
class FileCopy:
    """A file that a deep clone has from its source.

    Args:
        source: its name in the source's store.
        target: the store name that the copy gets.
        size: in bytes; None for a deletion vector's file, of which the log says nothing.
    """

    source: str
    target: str
    size: int | None


def source_of_snapshot(snapshot: Snapshot, newest: int, name: str | None = None) -> CloneSource:
    """A version of a Delta table.

    Args:
        newest: the newest version of the table.
        name: by default ``delta.`` and its URL.
    """
    mark = high_water_mark(snapshot.state.domains)
    return CloneSource(
        name=name or f"delta.`{snapshot.store.url}`",
        store=snapshot.store,
        metadata=snapshot.metadata,
        protocol=snapshot.protocol,
        files=add_files(snapshot.files()),
        version=snapshot.version,
        is_newest=snapshot.version == newest,
        row_id_mark=NO_ROW_IDS if mark is None else mark,
        domains=clustering_of(snapshot),
    )


def source_of_folder(found: FoundTable, store: LogStore, clock: Clock, name: str | None = None) -> CloneSource:
    """A folder of files. Raises as `tahoe.ops.tables.create.new_metadata`."""
    metadata = new_metadata(found.schema, clock, partition_by=found.partition_by, properties=found.properties)
    return CloneSource(name or f"{found.source_format}.`{found.url}`", store, metadata, None, found.files, -1)


def clustering_of(snapshot: Snapshot) -> tuple[DomainMetadata, ...]:
    """The domain that says how a table is clustered, the only one that goes with its files."""
    return tuple(domain for name, domain in snapshot.state.domains.items() if name == "delta.clustering" and not domain.removed)


# -- shallow: the files where they are ---------------------------------------------------------------------------------------


def referenced(source: CloneSource, add: AddFile) -> tuple[AddFile, str]:
    """The file as a shallow clone names it, by an absolute path, and its name in the source's store."""
    url = source.store.url
    name = decode_path(add.path, url, outside=True)
    vector = add.deletion_vector
    if vector is not None and vector.storage_type != "i":
        place = file_name(vector, url)
        assert place is not None
        vector = replace(vector, storage_type="p", path_or_inline_dv=_absolute(url, place))
    return replace(add, path=_absolute(url, name), deletion_vector=vector, data_change=True), name


def _absolute(url: str, name: str) -> str:
    """As Hadoop prints a path, one slash after ``file:``: delta-spark compares such texts."""
    text = absolute_url(url, name)
    return f"file:{text[7:]}" if text.startswith("file:///") else text


# -- deep: copies of the files -----------------------------------------------------------------------------------------------


def copied(source: CloneSource, add: AddFile) -> tuple[AddFile, list[FileCopy]]:
    """The file as a deep clone names it, and what is to be copied for that: it, and the file of its deletion vector."""
    url = source.store.url
    name = decode_path(add.path, url, outside=True)
    place = _inside(source, name)
    copies, vector = [FileCopy(name, place, add.size)], add.deletion_vector
    if vector is not None and (from_name := file_name(vector, url)) is not None:
        to_name = _inside(source, from_name)
        copies.append(FileCopy(from_name, to_name, None))
        vector = _described(vector, to_name)
    return replace(add, path=encode_path(place), deletion_vector=vector, data_change=True), copies


def _inside(source: CloneSource, name: str) -> str:
    """The name that a copy gets: the one that the file has below its own folder."""
    return source.store.outside.at(name)[1] if is_outside(name) else name


_OF_VECTOR = re.compile(r"(?:(?P<prefix>[A-Za-z0-9]+)/)?deletion_vector_(?P<uuid>[0-9a-f-]{36})\.bin")


def _described(vector: DeletionVectorDescriptor, name: str) -> DeletionVectorDescriptor:
    """The vector by a path relative to the clone's root."""
    if vector.storage_type == "u":
        return vector
    match = _OF_VECTOR.fullmatch(name)
    if match is None:  # as another writer named it: still below the root
        return replace(vector, path_or_inline_dv=encode_path(name))
    prefix, uuid = match["prefix"] or "", match["uuid"]
    assert new_file_name(uuid, prefix) == name
    return replace(vector, storage_type="u", path_or_inline_dv=prefix + z85_encode(UUID(uuid).bytes))
