"""Reads checkpoints of all kinds: classic, multi-part and V2, whose file actions may be in sidecars.

Only the leaf columns that are asked for are read, row group by row group on a few threads, and nothing becomes a Python object
but the few actions that are not files. Before any of it counts, the checkpoint is held against what others say of it: the
``_last_checkpoint`` hint, the ``.crc`` of its version, the tags and sizes that it states itself. Whatever does not fit is
`DamagedCheckpoint`, which the replay answers with an older checkpoint or the commits themselves.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tahoe.exceptions import CorruptTable, NotFound, StorageFailure
from tahoe.lazy import cached_property
from tahoe.log.files import FILES_SCHEMA, TOMBSTONES_SCHEMA, files_table, tombstones_table, without_rows
from tahoe.log.footer_check import fault_in_footer
from tahoe.log.last_checkpoint import LastCheckpoint
from tahoe.log.paths import parse, sidecar_name
from tahoe.log.reader import check_no_duplicates, parse_actions
from tahoe.log.segment import Checkpoint
from tahoe.protocol.actions import Action, AddFile, CheckpointMetadata, RemoveFile, SidecarFile, action_from_json
from tahoe.store.log_store import Entry, LogStore

__all__ = [
    "CheckpointReader",
    "DamagedCheckpoint",
    "ParquetSource",
    "RowGroup",
    "cast_members",
    "concat",
    "conformed_adds",
    "open_checkpoint",
    "read_adds",
    "sidecars_of",
]


_ALL_COLUMNS = (*FILES_SCHEMA.names, "stats_parsed", "partitionValues_parsed")


class DamagedCheckpoint(CorruptTable):
    """A checkpoint cannot be used; the state may still be had without it.

    Args:
        checkpoint: it.
        file: the file of it that is damaged.
        what: is wrong with that file.
    """

    default_code = "DELTA_TXN_LOG_FAILED_INTEGRITY"

    def __init__(self, url: str, checkpoint: Checkpoint, file: str, what: str, message: str | None = None) -> None:
        self.names = checkpoint.names
        super().__init__(
            message
            or f"Table {url}: the checkpoint file {file} is damaged: {what}. Delete it if the log's commits are "
            "complete, or restore "
            "it from a backup.",
            table=url,
            file=file,
            version=checkpoint.version,
        )


@dataclass(frozen=True, slots=True)
class RowGroup:
    """One row group of one of the checkpoint's Parquet files."""

    file: ParquetSource
    index: int

    @property
    def metadata(self) -> pq.RowGroupMetaData:
        return self.file.metadata.row_group(self.index)

    def non_null(self, leaf: str) -> int | None:
        """How many rows have a value in a leaf column that no list or map holds; None where the file does not say."""
        position = self.file.leaves.get(leaf)
        if position is None:
            return 0
        column = self.metadata.column(position)
        statistics = column.statistics
        if statistics is None or not statistics.has_null_count:
            return None
        return int(column.num_values - statistics.null_count)

    def read(self, columns: Sequence[str]) -> pa.Table:
        """The columns below the given dotted paths; top-level structs hold only what was asked for."""
        with _reading(self.file):
            return self.file.open().read_row_group(self.index, columns=list(columns), use_threads=False)

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        """As `read`, `rows` at a time and no further than the caller goes: what is not asked for is not decoded."""
        with _reading(self.file):
            yield from self.file.open().iter_batches(rows, row_groups=[self.index], columns=list(columns), use_threads=False)


@dataclass(frozen=True)
class ParquetSource:
    """One Parquet file of a checkpoint.

    Args:
        footer_crc32: what the footer's CRC-32 must be, where the file's writer has left word of it.
    """

    store: LogStore
    checkpoint: Checkpoint
    name: str
    footer_crc32: int | None = None

    @cached_property
    def metadata(self) -> pq.FileMetaData:
        with _reading(self):
            end = _end_of_file(self.store.open_input(self.name))
        if end is None:
            raise self.damaged("it does not end as a Parquet file does")
        footer = end[:-_LENGTH_AND_MAGIC]
        if self.footer_crc32 is None:
            fault = fault_in_footer(footer)
        else:
            fault = None if crc32(footer) == self.footer_crc32 else "its footer is not the one that was written"
        if fault is not None:
            raise self.damaged(fault)
        with _reading(self):
            return pq.read_metadata(pa.BufferReader(end))

    @cached_property
    def leaves(self) -> dict[str, int]:
        """Dotted path of each leaf column, and its position."""
        schema = self.metadata.schema
        return {schema.column(i).path: i for i in range(len(schema))}

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        with _reading(self):
            return self.metadata.schema.to_arrow_schema()

    def open(self) -> pq.ParquetFile:
        # A file for each reader: Arrow's are not made for two threads.
        return pq.ParquetFile(self.store.open_input(self.name), metadata=self.metadata, page_checksum_verification=True)

    def row_groups(self) -> list[RowGroup]:
        return [RowGroup(self, i) for i in range(self.metadata.num_row_groups)]

    def damaged(self, what: str) -> DamagedCheckpoint:
        return DamagedCheckpoint(self.store.url, self.checkpoint, self.name, what)


@dataclass(frozen=True)
class CheckpointReader:
    """An open checkpoint.

    Args:
        sources: its Parquet files, sidecars included; empty when all its actions are in a JSON file.
        actions: what a JSON top-level file holds.
    """

    store: LogStore
    checkpoint: Checkpoint
    sources: tuple[ParquetSource, ...]
    actions: tuple[Action, ...] = ()

    @cached_property
    def row_groups(self) -> tuple[RowGroup, ...]:
        return tuple(group for source in self.sources for group in source.row_groups())

    @cached_property
    def num_actions(self) -> int:
        rows: int = sum(source.metadata.num_rows for source in self.sources)
        return len(self.actions) + rows

    @cached_property
    def num_adds(self) -> int:
        """How many `add` actions it holds, from footers where they say so."""
        total = sum(isinstance(action, AddFile) for action in self.actions)
        for group in self.row_groups:
            found = group.non_null("add.path")
            if found is None:
                column = group.read(["add.path"]).column("add")
                found = len(column) - column.null_count
            total += found
        return total

    @cached_property
    def single_actions(self) -> list[Action]:
        """All that are not files: protocol, metadata, transactions, domains."""
        found: list[Action] = [action for action in self.actions if not isinstance(action, AddFile | RemoveFile)]
        for name, leaf in _SINGLE_ACTIONS.items():
            for source in self.sources:
                found += _single_actions(source, name, leaf)
        return found

    def adds(self, sift: Callable[[pa.Table], pa.Table] | None = None) -> pa.Table:
        """The `add` actions as `FILES_SCHEMA`, with ``stats_parsed`` and ``partitionValues_parsed`` where they are there.

        Args:
            sift: what to make of the files of one row group, right after they were read and on the same thread.
        """
        json = files_table(a for a in self.actions if isinstance(a, AddFile))
        parts = [json if sift is None else sift(json)] if len(json) else []
        parts += self.map_row_groups(lambda group: read_adds(group) if sift is None else sift(read_adds(group)), "add.path")
        return concat(parts, FILES_SCHEMA)

    def removes(self) -> pa.Table:
        """The `remove` actions as a table of `TOMBSTONES_SCHEMA`."""
        parts = [tombstones_table(a for a in self.actions if isinstance(a, RemoveFile))]
        parts += self.map_row_groups(_read_removes, "remove.path")
        return concat(parts, TOMBSTONES_SCHEMA)

    def map_row_groups(self, read: Callable[[RowGroup], pa.Table], leaf: str) -> list[pa.Table]:
        """`read` of each row group where `leaf` has values, in order, side by side when that is worth it."""
        groups = [group for group in self.row_groups if group.non_null(leaf) != 0]
        if len(groups) < 2 or sum(group.metadata.num_rows for group in groups) < _ROWS_WORTH_THREADS:
            return [read(group) for group in groups]
        with ThreadPoolExecutor(min(len(groups), THREADS)) as pool:
            return list(pool.map(read, groups))


def open_checkpoint(store: LogStore, checkpoint: Checkpoint, hint: LastCheckpoint | None = None) -> CheckpointReader:
    """Open a checkpoint, its sidecars too.

    Args:
        hint: what ``_last_checkpoint`` says of it.

    Raises:
        DamagedCheckpoint: a file is missing or cannot be read, or does not have the size that the checkpoint states.
    """
    reader = _open_top_level(store, checkpoint, hint)
    sidecars = _sidecars(reader)
    _check_stated(reader, sidecars)
    return (
        reader
        if not sidecars
        else CheckpointReader(
            store, checkpoint, (*reader.sources, *(_sidecar_source(reader, sidecar) for sidecar in sidecars)), reader.actions
        )
    )


def sidecars_of(store: LogStore, entry: Entry) -> list[str]:
    """The store names of the sidecars that a top-level checkpoint file names; none for other files.

    Raises:
        DamagedCheckpoint: the file cannot be read, so its sidecars are not known.
    """
    parsed = parse(entry.name)
    if parsed is None or parsed.kind != "checkpoint" or parsed.part is not None:
        return []
    checkpoint = Checkpoint(parsed.version, "classic" if parsed.unique_id is None else "uuid", (entry,))
    return [sidecar_name(s.path, store.url) for s in _sidecars(_open_top_level(store, checkpoint))]


def read_adds(group: RowGroup) -> pa.Table:
    """The `add` actions of one row group, as `conformed_adds` gives them."""
    present = {leaf.split(".")[1] for leaf in group.file.leaves if leaf.startswith("add.")}
    return conformed_adds(group, group.read([f"add.{name}" for name in _ALL_COLUMNS if name in present]).column("add"))


def conformed_adds(group: RowGroup, adds: pa.ChunkedArray | pa.StructArray, texts: pa.Array | None = None) -> pa.Table:
    """Values of the `add` struct as a table of `FILES_SCHEMA`, with the optional columns that are there; other rows are left out.

    Args:
        texts: the column ``stats``, where it was read before.
    """
    members, count = _members(adds)
    if texts is not None:
        members["stats"] = texts
    return _conformed(group, members, count, [name for name in _ALL_COLUMNS if name in FILES_SCHEMA.names or name in members])


def concat(parts: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    """The tables one after another; a column or a member of a struct that only some have is null in the others."""
    if not parts:
        return schema.empty_table()
    if all(part.schema == parts[0].schema for part in parts):
        return pa.concat_tables(parts)
    merged = pa.unify_schemas([part.schema for part in parts], promote_options="permissive")
    return pa.concat_tables([_with_schema(part, merged) for part in parts])


def cast_members(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    """The values in the wanted type; members that a struct lacks are null, those that are not wanted are dropped."""
    if values.type == wanted:
        return values
    if pa.types.is_struct(wanted):
        have = {values.type.field(i).name: child for i, child in enumerate(values.flatten())}
        children = [
            cast_members(have[field.name], field.type) if field.name in have else pa.nulls(len(values), field.type)
            for field in wanted
        ]
        return pa.StructArray.from_arrays(children, fields=list(wanted), mask=values.is_null())
    return values.cast(wanted)


_SINGLE_ACTIONS = {
    "protocol": "minReaderVersion",
    "metaData": "id",
    "txn": "appId",
    "domainMetadata": "domain",
    "checkpointMetadata": "version",
    "sidecar": "path",
}
THREADS = min(4, os.cpu_count() or 1)
_ROWS_WORTH_THREADS = 20_000
_LENGTH_AND_MAGIC = 8
_BYTES_OF_MOST_FOOTERS = 64 << 10
# They are few, and mostly at the beginning of a row group: small batches, so that reading can end early.
_ROWS_OF_SINGLE_ACTIONS = 4_096


def _open_top_level(store: LogStore, checkpoint: Checkpoint, hint: LastCheckpoint | None = None) -> CheckpointReader:
    name = checkpoint.entries[0].name
    if not name.endswith(".json"):
        footer = hint.footer_crc32 if hint and [e.size for e in checkpoint.entries] == [hint.size_in_bytes] else None
        return CheckpointReader(store, checkpoint, tuple(ParquetSource(store, checkpoint, n, footer) for n in checkpoint.names))
    try:
        actions = tuple(action for _, action in parse_actions(name, store.get(name), store.url))
        check_no_duplicates(actions, name, store.url)
    except NotFound as error:
        raise DamagedCheckpoint(store.url, checkpoint, name, "it vanished") from error
    except CorruptTable as error:
        raise DamagedCheckpoint(store.url, checkpoint, name, error.message) from error
    return CheckpointReader(store, checkpoint, (), actions)


def _sidecars(reader: CheckpointReader) -> list[SidecarFile]:
    if reader.checkpoint.kind == "multi-part":
        return []
    return [action for action in reader.single_actions if isinstance(action, SidecarFile)]


def _sidecar_source(reader: CheckpointReader, sidecar: SidecarFile) -> ParquetSource:
    source = ParquetSource(reader.store, reader.checkpoint, sidecar_name(sidecar.path, reader.store.url))
    with _reading(source):
        size = reader.store.open_input(source.name).size()
    if size != sidecar.size_in_bytes:
        raise source.damaged(f"it has {size} bytes, but its checkpoint says {sidecar.size_in_bytes}")
    return source


def _check_stated(reader: CheckpointReader, sidecars: Sequence[SidecarFile]) -> None:
    """A V2 checkpoint states its version, and has its files either in itself or in sidecars."""
    name, version = reader.checkpoint.names[0], reader.checkpoint.version
    stated = (
        [a for a in reader.single_actions if isinstance(a, CheckpointMetadata)] if reader.checkpoint.kind != "multi-part" else []
    )
    what = None
    if stated and stated[0].version != version:
        what = f"it says that it is of version {stated[0].version}"
    elif reader.checkpoint.kind == "uuid" and len(stated) != 1:
        what = f"it must hold one checkpointMetadata action, found {len(stated)}"
    elif sidecars and reader.num_adds:
        what = "it holds files and names sidecars, which the specification forbids"
    if what:
        raise DamagedCheckpoint(reader.store.url, reader.checkpoint, name, what)


def _single_actions(source: ParquetSource, name: str, leaf: str) -> Iterator[Action]:
    path = f"{name}.{leaf}"
    if path not in source.leaves:
        return
    for group in source.row_groups():
        left = group.non_null(path)
        if left == 0:
            continue
        for batch in group.batches([name], _ROWS_OF_SINGLE_ACTIONS):
            column = batch.column(name)
            valid = column.filter(pc.is_valid(pc.struct_field(column, leaf)))
            for value in valid.to_pylist(maps_as_pydicts="strict"):
                yield _action_of(source, name, value)
            left = None if left is None else left - len(valid)
            if left == 0:
                break


def _action_of(source: ParquetSource, name: str, value: object) -> Action:
    try:
        action = action_from_json({name: value})
    except CorruptTable as error:
        raise source.damaged(error.message) from error
    assert action is not None, "only actions that are known are read"
    return action


def _read_removes(group: RowGroup) -> pa.Table:
    present = {leaf.split(".")[1] for leaf in group.file.leaves if leaf.startswith("remove.")}
    read = group.read([f"remove.{name}" for name in TOMBSTONES_SCHEMA.names if name in present])
    return _conformed(group, *_members(read.column("remove")), TOMBSTONES_SCHEMA.names, TOMBSTONES_SCHEMA)


def _members(structs: pa.ChunkedArray | pa.StructArray) -> tuple[dict[str, pa.ChunkedArray], int]:
    """The members of the structs that are not null, and how many those are."""
    table = pa.table({"struct": structs})
    if structs.null_count:
        table = without_rows(table, table.column(0).is_null())
    flat = table.flatten()
    return {name.removeprefix("struct."): flat.column(name) for name in flat.column_names}, flat.num_rows


def _conformed(
    group: RowGroup, members: Mapping[str, pa.ChunkedArray], count: int, names: Sequence[str], schema: pa.Schema = FILES_SCHEMA
) -> pa.Table:
    arrays = []
    for name in names:
        found = members.get(name)
        if name not in schema.names:
            arrays.append(found)
        else:
            wanted = schema.field(name).type
            with _reading(group.file):
                arrays.append(pa.nulls(count, wanted) if found is None else _cast_chunks(found, wanted))
    return pa.Table.from_arrays(arrays, list(names))


def _cast_chunks(values: pa.ChunkedArray | pa.Array, wanted: pa.DataType) -> pa.ChunkedArray | pa.Array:
    if values.type == wanted:
        return values
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    return pa.chunked_array([cast_members(chunk, wanted) for chunk in chunks], wanted)


def _with_schema(part: pa.Table, schema: pa.Schema) -> pa.Table:
    have = part.column_names
    columns = [
        _cast_chunks(part.column(field.name), field.type) if field.name in have else pa.nulls(part.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _end_of_file(source: pa.NativeFile) -> bytes | None:
    """A Parquet file's footer with the length and the magic bytes that follow it; None where there is none."""
    size = source.size()
    wanted = min(size, _BYTES_OF_MOST_FOOTERS)
    while True:
        source.seek(size - wanted)
        end = source.read(wanted)
        length = int.from_bytes(end[-_LENGTH_AND_MAGIC:-4], "little") + _LENGTH_AND_MAGIC
        if len(end) != wanted or wanted < _LENGTH_AND_MAGIC or not end.endswith(b"PAR1") or length > size:
            return None
        if length <= wanted:
            return bytes(end[-length:])
        wanted = length


@contextmanager
def _reading(source: ParquetSource) -> Iterator[None]:
    """What Arrow raises on bytes that are no Parquet becomes the checkpoint's damage; what storage raises stays what it is."""
    try:
        yield
    except NotFound as error:
        raise source.damaged("it is missing") from error
    except (StorageFailure, CorruptTable):
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, MemoryError) as error:
        text = str(error).strip().splitlines()
        raise source.damaged(f"it cannot be read as Parquet ({text[0][:200] if text else type(error).__name__})") from error
