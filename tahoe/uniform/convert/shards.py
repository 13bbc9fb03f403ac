"""A full conversion in shards: runs of the table's files that any process can encode into manifests independently.

    sorted files ─► shards as Arrow ─► encode_shard, in processes of a `ShardEncoder` ─► manifests ─► written here, in order

The result depends only on the shard and a `ShardOrder`, and a shard is a whole number of manifests. So the same files give the same names
and bytes as when one process encodes them all, which is the fallback for any failure. Only the converting process writes to storage; the
others need no access to it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import count, islice
from typing import TYPE_CHECKING, NamedTuple, Protocol

import pyarrow as pa

from tahoe.base.exceptions import StorageFailure
from tahoe.base.json_values import JsonMapping
from tahoe.base.lazy import pc
from tahoe.log.files.columns import rows_at
from tahoe.protocol.actions import Metadata
from tahoe.schema.types import StructType, schema_from_json
from tahoe.store.location import decode_path, named_url
from tahoe.uniform.convert.manifest_draft import Draft, NewSnapshot, manifest_data, manifest_name
from tahoe.uniform.convert.manifest_policy import most_entries
from tahoe.uniform.formats.data_files import FILES_COLUMNS, FileEncoder, spec_of
from tahoe.uniform.formats.manifest_schema import Spec
from tahoe.uniform.formats.manifests import ADDED, Entry, ManifestFile, manifest_entry, read_manifest_entry, recorded
from tahoe.uniform.formats.metadata import Totals

if TYPE_CHECKING:
    from tahoe.uniform.convert.manifest_folder import ManifestFolder


FILES_IN_SHARD = 16_384
"""The approximate number of files in a shard: a task of half a second."""


class Shard(NamedTuple):
    """The files of some manifests.

    Args:
        number: the number of the first manifest.
        files: the files as an Arrow stream.
    """

    number: int
    files: bytes


class EncodedManifest(NamedTuple):
    """One encoded manifest.

    Args:
        entry: its entry in a manifest list, without a path.
        data_size: the size of its data files, in bytes.
    """

    number: int
    data: bytes
    entry: bytes
    data_size: int


class ShardEncoder(Protocol):
    """Processes that encode shards."""

    @property
    def least_files(self) -> int:
        """A table with fewer files is encoded by one process."""

    def encode(self, order: str, shards: Iterable[Shard]) -> Iterator[EncodedManifest]:
        """Yield the results of `encode_shard` for the shards, in order; takes few shards at a time."""


@dataclass(frozen=True, slots=True)
class ShardOrder:
    """The parameters common to all shards of a conversion, as JSON values.

    Args:
        schema: the table's logical schema, as in the log.
        iceberg_schema: the Iceberg schema with its ``schema-id``.
        entries: files in each manifest but the last.
    """

    root_url: str
    schema: str
    partition_columns: tuple[str, ...]
    spec_id: int
    spec_fields: tuple[JsonMapping, ...]
    iceberg_schema: JsonMapping
    snapshot_id: int
    sequence_number: int
    version: int
    format_version: int
    first_row_id: int | None
    entries: int

    @classmethod
    def of(cls, root_url: str, metadata: Metadata, snapshot: NewSnapshot, files: int) -> ShardOrder:
        """Return the order for a table of so many files."""
        return cls(
            root_url=root_url,
            schema=metadata.schema_string,
            partition_columns=tuple(metadata.partition_columns),
            spec_id=snapshot.spec.spec_id,
            spec_fields=snapshot.spec.fields,
            iceberg_schema=snapshot.schema,
            snapshot_id=snapshot.snapshot_id,
            sequence_number=snapshot.sequence_number,
            version=snapshot.version,
            format_version=snapshot.format_version,
            first_row_id=snapshot.first_row_id,
            entries=most_entries(files),
        )

    def snapshot(self, schema: StructType) -> NewSnapshot:
        """Return the snapshot to which the shards belong.

        Args:
            schema: `self.schema`, parsed.
        """
        codecs = spec_of(schema, self.partition_columns).codecs
        return NewSnapshot(
            snapshot_id=self.snapshot_id,
            parent_id=None,
            sequence_number=self.sequence_number,
            version=self.version,
            spec=Spec(self.spec_id, tuple(self.spec_fields), codecs),
            schema=self.iceberg_schema,
            format_version=self.format_version,
            first_row_id=self.first_row_id,
        )


@dataclass(frozen=True, slots=True)
class OrderedFiles:
    """The live files of a table in the order in which manifests list them. Only some of them are copied at a time.

    Args:
        files: in any order.
        order: their positions.
    """

    files: pa.Table
    order: pa.Array

    def __len__(self) -> int:
        return len(self.order)

    def pieces(self, rows: int = 10_000) -> Iterator[pa.Table]:
        """Yield the files in order, `rows` at a time."""
        return (rows_at(self.files, self.order.slice(first, rows)) for first in range(0, len(self), rows))


def encode_shard(order: str, part: Shard) -> list[EncodedManifest]:
    """Encode all manifests of a shard.

    Args:
        order: a `ShardOrder` as JSON.
    """
    shared = ShardOrder(**json.loads(order))
    schema = schema_from_json(shared.schema)
    snapshot = shared.snapshot(schema)
    encoder = FileEncoder(
        schema,
        shared.partition_columns,
        lambda path: named_url(shared.root_url, decode_path(path, shared.root_url, outside=True)),
        format_version=shared.format_version,
    )
    with pa.ipc.open_stream(part.files) as stream:
        files = iter(encoder.encode_table(stream.read_all()))
    manifests = list[EncodedManifest]()
    for number in count(part.number):
        draft = Draft(
            Entry(ADDED, snapshot.snapshot_id, file.sequence_number, None, file) for file in islice(files, shared.entries)
        )
        if not draft.entries:
            break
        data = manifest_data(draft, snapshot)
        entry = manifest_entry(draft.manifest_file("", len(data), snapshot), snapshot.format_version)
        manifests.append(EncodedManifest(number, data, entry, sum(entry.file.size for entry in draft.entries)))
    return manifests


def sharded_manifests(
    files: OrderedFiles,
    order: ShardOrder,
    encoder: ShardEncoder,
    folder: ManifestFolder,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[list[ManifestFile], Totals]:
    """Encode the manifests of all files in other processes, and write them; return them with their totals. Ignores deletion vectors.

    Args:
        on_progress: receives the number of files in manifests, and the number of all files.
    """
    paths = files.files["path"]
    for path in paths.filter(pc.match_substring(paths, ":/")).to_pylist():
        folder.file_url(path)  # raises if the file must not be exposed
    done = 0
    manifests: list[ManifestFile] = []
    size = 0
    for number, data, entry, data_size in encoder.encode(json.dumps(asdict(order)), _shards(files, order.entries)):
        url = folder.put(manifest_name(data, order.version, number), data)
        manifest = replace(read_manifest_entry(entry, order.format_version), path=url)
        manifests.append(recorded(manifest, order.format_version))
        size += data_size
        done += manifest.added_files
        on_progress(done, len(files))
    added = sum(manifest.added_files for manifest in manifests)
    if added != len(files):
        raise StorageFailure(
            f"{len(files)} files of {order.root_url} were to be encoded, but {added} were.",
            code="TAHOE_SLICES_INCOMPLETE",
            table=order.root_url,
        )
    return manifests, Totals(added, sum(manifest.added_rows for manifest in manifests), size)


def collect_vectors(files: OrderedFiles, encoder: FileEncoder) -> None:
    """Pass the files' deletion vectors to the encoder's `on_vector`, in order: shards carry none."""
    vectors = files.files["deletionVector"]
    if vectors.null_count == len(vectors):
        return
    for piece in files.pieces():
        for _ in encoder.encode_table(piece.filter(pc.is_valid(piece["deletionVector"]))):
            pass


def _shards(files: OrderedFiles, entries: int) -> Iterator[Shard]:
    """Yield shards in Arrow's streaming format, compressed: statistics texts resemble each other."""
    names = [name for name in FILES_COLUMNS if name in files.files.column_names and name != "deletionVector"]
    rows = entries * max(FILES_IN_SHARD // entries, 1)
    for number, part in enumerate(replace(files, files=files.files.select(names)).pieces(rows)):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, part.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
            stream.write_table(part)
        yield Shard(number * rows // entries, sink.getvalue().to_pybytes())
