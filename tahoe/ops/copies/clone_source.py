"""The source of a CLONE: a version of a Delta table, or a folder of files; and the clone's `add` actions for the source's files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from tahoe.base.clock import Clock
from tahoe.log.files.removed_files import adds_of
from tahoe.ops.copies.parquet_folder import ConvertibleTable
from tahoe.ops.tables.create import new_metadata
from tahoe.protocol.actions import AddFile, DeletionVectorDescriptor, DomainMetadata, Metadata, Protocol
from tahoe.protocol.dv import file_name, new_file_name, z85_encode
from tahoe.protocol.row_tracking import NO_ROW_IDS, high_water_mark
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.location import absolute_url, decode_path, encode_path, is_outside
from tahoe.store.log_store import LogStore


@dataclass(frozen=True, slots=True)
class CloneSource:
    """The source of a clone.

    Args:
        name: its name in the history of the clone.
        store: the store of its files.
        metadata: the metadata of that version; for a folder, the metadata that CONVERT TO DELTA would write.
        protocol: None for a folder.
        files: the live files, with the paths of the source's log.
        version: -1 for a folder.
        row_id_mark: the highest row id of the source.
        domains: the metadata domains that the clone gets.
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
        """The total size of its files in bytes."""
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True)
class FileCopy:
    """A file that a deep clone copies.

    Args:
        source: its name in the source's store.
        target: the name of the copy in the clone's store.
        size: in bytes; None for the file of a deletion vector, whose size the log does not record.
    """

    source: str
    target: str
    size: int | None


def source_of_snapshot(snapshot: Snapshot, newest: int, name: str | None = None) -> CloneSource:
    """Return a version of a Delta table as a clone source.

    Args:
        newest: the newest version of the table.
        name: by default ``delta.`` and the URL.
    """
    mark = high_water_mark(snapshot.state.domains)
    return CloneSource(
        name=name or f"delta.`{snapshot.store.url}`",
        store=snapshot.store,
        metadata=snapshot.metadata,
        protocol=snapshot.protocol,
        files=adds_of(snapshot.files_with_texts()),
        version=snapshot.version,
        is_newest=snapshot.version == newest,
        row_id_mark=NO_ROW_IDS if mark is None else mark,
        domains=clustering_of(snapshot),
    )


def source_of_folder(folder: ConvertibleTable, store: LogStore, clock: Clock, name: str | None = None) -> CloneSource:
    """Return a folder of files as a clone source. Raises the errors of `tahoe.ops.tables.create.new_metadata`."""
    metadata = new_metadata(folder.schema, clock, partition_by=folder.partition_by, properties=folder.properties)
    return CloneSource(name or f"{folder.source_format}.`{folder.url}`", store, metadata, None, folder.files, -1)


def clustering_of(snapshot: Snapshot) -> tuple[DomainMetadata, ...]:
    """Return the clustering domain, the only metadata domain that a clone takes over."""
    return tuple(domain for name, domain in snapshot.state.domains.items() if name == "delta.clustering" and not domain.removed)


# -- shallow: absolute paths of the source's files ---------------------------------------------------------------------------------------


def referenced(source: CloneSource, add: AddFile) -> AddFile:
    """Return the `add` action of a shallow clone, with an absolute path."""
    url = source.store.url
    name = decode_path(add.path, url, outside=True)
    vector = add.deletion_vector
    if vector is not None and vector.storage_type != "i":
        place = file_name(vector, url)
        assert place is not None
        vector = replace(vector, storage_type="p", path_or_inline_dv=_absolute(url, place))
    return replace(add, path=_absolute(url, name), deletion_vector=vector, data_change=True)


def _absolute(url: str, name: str) -> str:
    """Return the absolute URL as Hadoop prints it, with one slash after ``file:``: delta-spark compares these strings."""
    text = absolute_url(url, name)
    return f"file:{text[7:]}" if text.startswith("file:///") else text


# -- deep: copies of the files -----------------------------------------------------------------------------------------------


def copied(source: CloneSource, add: AddFile) -> tuple[AddFile, list[FileCopy]]:
    """Return the `add` action of a deep clone, and the files to copy for it: the data file, and the file of its deletion vector."""
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
    """Return the name of the copy: the file's path relative to the root of its own table."""
    return source.store.outside.at(name)[1] if is_outside(name) else name


_OF_VECTOR = re.compile(r"(?:(?P<prefix>[A-Za-z0-9]+)/)?deletion_vector_(?P<uuid>[0-9a-f-]{36})\.bin")


def _described(vector: DeletionVectorDescriptor, name: str) -> DeletionVectorDescriptor:
    """Return the descriptor with a path relative to the clone's root."""
    if vector.storage_type == "u":
        return vector
    match = _OF_VECTOR.fullmatch(name)
    if match is None:  # an external writer's name pattern; the path is still below the root
        return replace(vector, path_or_inline_dv=encode_path(name))
    prefix, uuid = match["prefix"] or "", match["uuid"]
    assert new_file_name(uuid, prefix) == name
    return replace(vector, storage_type="u", path_or_inline_dv=prefix + z85_encode(UUID(uuid).bytes))
