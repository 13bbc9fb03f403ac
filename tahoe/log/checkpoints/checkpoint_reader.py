"""Reads checkpoints of all kinds: classic, multi-part and V2, whose file actions may be in sidecars.

Only the requested leaf columns are read, row group by row group on a few threads, and only the few actions that are not files become
Python objects. The version, sizes and counts that a V2 checkpoint states about itself are checked.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pyarrow as pa

from tahoe.base.exceptions import CorruptTable, NotFound
from tahoe.base.lazy import cached_property, pc
from tahoe.log.checkpoints.parquet_source import DamagedCheckpoint, ParquetSource, RowGroup, reading
from tahoe.log.checkpoints.sidecar_summary import SidecarSummary, summary_of
from tahoe.log.files.columns import cast_chunks, concat
from tahoe.log.files.commits import check_no_duplicates, parse_actions
from tahoe.log.files.last_checkpoint import LastCheckpoint
from tahoe.log.files.listing import Checkpoint
from tahoe.log.files.live_files import FILES_SCHEMA, TOMBSTONES_SCHEMA, files_table, tombstones_table, without_rows
from tahoe.log.files.paths import parse, sidecar_name
from tahoe.protocol.action_members import check_names, fault_of_files
from tahoe.protocol.actions import Action, AddFile, CheckpointMetadata, RemoveFile, SidecarFile, action_from_json
from tahoe.store.log_store import Entry, LogStore


@dataclass(frozen=True)
class CheckpointReader:
    """An open checkpoint.

    Args:
        sources: its Parquet files, sidecars included; empty when all its actions are in a JSON file.
        actions: the actions of a JSON top-level file.
        summaries: Tahoe's summaries of the sidecars, by their names; such sidecars are opened when their rows are read.
        top_level: the same without sidecars, if there are any.
    """

    store: LogStore
    checkpoint: Checkpoint
    sources: tuple[ParquetSource, ...]
    actions: tuple[Action, ...] = ()
    summaries: Mapping[str, SidecarSummary] = field(default_factory=dict)
    top_level: CheckpointReader | None = None

    def opened(self, leaf: str) -> Sequence[ParquetSource]:
        """The Parquet files that may have values in a leaf column, in order. Their footers are read, side by side where there are several."""
        unopened = []
        for source in self.sources:
            summary = self.summaries.get(source.name)
            if summary is None or (summary.removes if leaf.startswith("remove.") else summary.adds):
                unopened.append(source)
        if len(unopened) > 1:
            with ThreadPoolExecutor(min(len(unopened), _FOOTERS_AT_ONCE)) as pool:
                list(pool.map(lambda source: source.leaves, unopened))
        return [source for source in unopened if leaf in source.leaves]

    @cached_property
    def num_actions(self) -> int:
        """The number of actions, those in sidecars too, by the summaries of sidecars and the footers of Parquet files."""
        return len(self.actions) + sum(map(self.num_rows, self.sources))

    def num_rows(self, source: ParquetSource) -> int:
        """Return the number of actions in one of its Parquet files."""
        summary = self.summaries.get(source.name)
        return int(source.metadata.num_rows) if summary is None else summary.rows

    @cached_property
    def num_adds(self) -> int:
        """The number of `add` actions, from footers if they have it."""
        total = sum(isinstance(action, AddFile) for action in self.actions)
        total += sum(summary.adds for summary in self.summaries.values())
        for group in (g for source in self.sources if source.name not in self.summaries for g in source.row_groups()):
            count = group.non_null("add.path")
            if count is None:
                column = group.read(["add.path"]).column("add")
                count = len(column) - column.null_count
            total += count
        return total

    @cached_property
    def single_actions(self) -> list[Action]:
        """The actions other than files: protocol, metadata, transactions, domains."""
        if self.top_level is None:
            actions: list[Action] = [action for action in self.actions if not isinstance(action, AddFile | RemoveFile)]
        else:
            actions = list(self.top_level.single_actions)
        for source in self.sources[0 if self.top_level is None else len(self.top_level.sources) :]:
            if source.name not in self.summaries:
                actions += _single_actions(source)
        return actions

    def adds(self, sift: Callable[[pa.Table], pa.Table] = lambda files: files, columns: Sequence[str] | None = None) -> pa.Table:
        """Read the `add` actions as `FILES_SCHEMA`, with ``stats_parsed`` and ``partitionValues_parsed`` if the checkpoint has them.

        Args:
            sift: filters or converts the files of one row group, on the thread that has read them.
            columns: those to read, of `FILES_SCHEMA`; None for all. With ``stats``, ``stats_parsed`` too if files lack the text.
        """
        json = files_table(a for a in self.actions if isinstance(a, AddFile))
        json = json if columns is None else json.select(list(columns))
        parts = [sift(json)] if len(json) else []
        parts += self.map_row_groups(lambda group: sift(read_adds(group, columns)), "add.path")
        return concat(parts, json.schema)

    def removes(self) -> pa.Table:
        """Read the `remove` actions as a table of `TOMBSTONES_SCHEMA`."""
        parts = [tombstones_table(a for a in self.actions if isinstance(a, RemoveFile))]
        parts += self.map_row_groups(read_removes, "remove.path")
        return concat(parts, TOMBSTONES_SCHEMA)

    def map_row_groups(self, read: Callable[[RowGroup], pa.Table], leaf: str) -> list[pa.Table]:
        """Call `read` for each row group in which `leaf` has values, in order, in parallel if that is faster."""
        groups = [group for source in self.opened(leaf) for group in source.row_groups() if group.non_null(leaf) != 0]
        if len(groups) < 2 or sum(group.metadata.num_rows for group in groups) < _ROWS_WORTH_THREADS:
            return [read(group) for group in groups]
        with ThreadPoolExecutor(min(len(groups), THREADS)) as pool:
            return list(pool.map(read, groups))


def open_checkpoint(store: LogStore, checkpoint: Checkpoint, hint: LastCheckpoint | None = None) -> CheckpointReader:
    """Open a checkpoint, its sidecars too.

    Args:
        hint: its entry in ``_last_checkpoint``.

    Raises:
        DamagedCheckpoint: a file is missing or cannot be read, or does not have the size that the checkpoint states.
    """
    reader = _open_top_level(store, checkpoint, hint)
    sidecars = _sidecars(reader)
    _check_stated(reader, sidecars)
    if sidecars:
        reader = _with_sidecars(reader, sidecars)
    _check_tags(reader, sidecars)
    return reader


def sidecars_of(store: LogStore, entry: Entry) -> list[str]:
    """Return the store names of the sidecars that a top-level checkpoint file names; none for other files.

    Raises:
        DamagedCheckpoint: the file cannot be read, so its sidecars are not known.
    """
    parsed = parse(entry.name)
    if parsed is None or parsed.kind != "checkpoint" or parsed.part is not None:
        return []
    checkpoint = Checkpoint(parsed.version, "classic" if parsed.unique_id is None else "uuid", (entry,))
    return [sidecar_name(s.path, store.url) for s in _sidecars(_open_top_level(store, checkpoint))]


def read_adds(group: RowGroup, columns: Sequence[str] | None = None) -> pa.Table:
    """The `add` actions of one row group, as `conformed_adds` gives them.

    Args:
        columns: those to read and return, as for `CheckpointReader.adds`; None for all.
    """
    present = {leaf.split(".")[1] for leaf in group.file.leaves if leaf.startswith("add.")}
    if columns is not None and "stats" in columns and group.non_null("add.stats") != group.non_null("add.path"):
        columns = [*columns, "stats_parsed"]
    names = [name for name in columns or _ALL_COLUMNS if name in present]
    files = conformed_adds(group, group.read([f"add.{name}" for name in names]).column("add"))
    return files if columns is None else files.select([name for name in columns if name in files.column_names])


def read_through(reader: CheckpointReader) -> None:
    """Read and discard every page of a checkpoint; raise `DamagedCheckpoint` for the first corrupt page."""
    for source in reader.sources:
        for group in source.row_groups():
            for name in source.arrow_schema.names:
                group.read([name])


def conformed_adds(group: RowGroup, adds: pa.ChunkedArray | pa.StructArray, texts: pa.Array | None = None) -> pa.Table:
    """Convert the `add` struct to a table of `FILES_SCHEMA`, with its optional columns; rows of other actions are left out.

    Args:
        texts: the column ``stats``, if it was read before.
    """
    members, count = _members(adds)
    if texts is not None:
        members["stats"] = texts
    return _conformed(group, members, count, [name for name in _ALL_COLUMNS if name in FILES_SCHEMA.names or name in members])


_ALL_COLUMNS = (*FILES_SCHEMA.names, "stats_parsed", "partitionValues_parsed")
STORED_COLUMNS = tuple(name for name in FILES_SCHEMA.names if name not in ("stats", "tags"))
"""The columns of `FILES_SCHEMA` about the files themselves, and not about their rows: a third of the memory, or less."""

_SINGLE_ACTIONS = {
    "protocol": "minReaderVersion",
    "metaData": "id",
    "txn": "appId",
    "domainMetadata": "domain",
    "checkpointMetadata": "version",
    "sidecar": "path",
}
THREADS = min(4, os.cpu_count() or 1)
# They wait for storage, most of the time.
_FOOTERS_AT_ONCE = 16
_ROWS_WORTH_THREADS = 20_000
# They are few, and mostly at the beginning of a row group: small batches, so that reading can end early.
_ROWS_OF_SINGLE_ACTIONS = 4_096


def _open_top_level(store: LogStore, checkpoint: Checkpoint, hint: LastCheckpoint | None = None) -> CheckpointReader:
    name = checkpoint.entries[0].name
    if not name.endswith(".json"):
        footer = hint.footer_crc32 if hint and [e.size for e in checkpoint.entries] == [hint.size_in_bytes] else None
        sources = (ParquetSource(store, checkpoint, n, footer) for n in checkpoint.names)
        return CheckpointReader(store, checkpoint, tuple(map(_spelled_right, sources)))
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


def _with_sidecars(reader: CheckpointReader, sidecars: Sequence[SidecarFile]) -> CheckpointReader:
    summaries = {}
    sources = list(reader.sources)
    for sidecar in sidecars:
        summary = summary_of(sidecar)
        sources.append(_sidecar_source(reader, sidecar, summary))
        if summary is not None:
            summaries[sources[-1].name] = summary
    return CheckpointReader(reader.store, reader.checkpoint, tuple(sources), reader.actions, summaries, reader)


def _sidecar_source(reader: CheckpointReader, sidecar: SidecarFile, summary: SidecarSummary | None) -> ParquetSource:
    try:
        name = sidecar_name(sidecar.path, reader.store.url)
    except CorruptTable as error:
        # A corrupt name makes the checkpoint unusable: another one, or the commits, replace it.
        file = reader.checkpoint.names[0]
        raise DamagedCheckpoint(reader.store.url, reader.checkpoint, file, "", error.message, error.code) from error
    if summary is not None:
        # The summary has the counts and the CRC-32 of the footer, so the file need not be opened before its rows are read.
        return ParquetSource(reader.store, reader.checkpoint, name, summary.footer_crc32, sidecar.size_in_bytes)
    return _spelled_right(ParquetSource(reader.store, reader.checkpoint, name, size=sidecar.size_in_bytes))


def _spelled_right(source: ParquetSource) -> ParquetSource:
    """Return the file after checking that no column differs only in case from a column of the specification, which would be ignored."""
    try:
        check_names(tuple(leaf.split(".")) for leaf in source.leaves)
    except DamagedCheckpoint:
        raise
    except CorruptTable as error:
        raise source.damaged(error.message) from error
    return source


def _check_stated(reader: CheckpointReader, sidecars: Sequence[SidecarFile]) -> None:
    """Check that a V2 checkpoint states its version, and has its files either in itself or in sidecars."""
    if reader.checkpoint.kind == "multi-part":
        return
    version = reader.checkpoint.version
    stated = [action for action in reader.single_actions if isinstance(action, CheckpointMetadata)]
    fault = None
    if stated and stated[0].version != version:
        fault = f"it says that it is of version {stated[0].version}"
    elif reader.checkpoint.kind == "uuid" and len(stated) != 1:
        fault = f"it must have one checkpointMetadata action, found {len(stated)}"
    elif sidecars and reader.num_adds:
        fault = "it contains files and names sidecars, which the specification forbids"
    if fault:
        raise DamagedCheckpoint(reader.store.url, reader.checkpoint, reader.checkpoint.names[0], fault)


def _check_tags(reader: CheckpointReader, sidecars: Sequence[SidecarFile]) -> None:
    """Check the numbers in the tags of a V2 checkpoint (PROTOCOL.md, "Checkpoint Metadata Tags")."""
    stated = next((action for action in reader.single_actions if isinstance(action, CheckpointMetadata)), None)
    names = {sidecar_name(sidecar.path, reader.store.url) for sidecar in sidecars}
    counted = {
        "numOfAddFiles": reader.num_adds,
        "sidecarNumActions": sum(reader.num_rows(source) for source in reader.sources if source.name in names),
        "sidecarSizeInBytes": sum(sidecar.size_in_bytes for sidecar in sidecars),
    }
    for tag, number in counted.items():
        text = None if stated is None or stated.tags is None else stated.tags.get(tag)
        if text is not None and text != str(number):
            fault = f"its tag {tag} says {text}, but it is {number}"
            raise DamagedCheckpoint(reader.store.url, reader.checkpoint, reader.checkpoint.names[0], fault)


def _single_actions(source: ParquetSource) -> Iterator[Action]:
    paths = {name: f"{name}.{leaf}" for name, leaf in _SINGLE_ACTIONS.items() if f"{name}.{leaf}" in source.leaves}
    for group in source.row_groups():
        # How many are still to come; None where the file does not say.
        left = {name: count for name, path in paths.items() if (count := group.non_null(path)) != 0}
        if not left:
            continue
        for batch in group.batches(list(left), _ROWS_OF_SINGLE_ACTIONS):
            for name in left:
                column = batch.column(name)
                valid = column.filter(pc.is_valid(pc.struct_field(column, _SINGLE_ACTIONS[name])))
                for value in valid.to_pylist(maps_as_pydicts="strict"):
                    yield _action_of(source, name, value)
                count = left[name]
                left[name] = None if count is None else count - len(valid)
            if all(count == 0 for count in left.values()):
                break


def _action_of(source: ParquetSource, name: str, value: object) -> Action:
    try:
        action = action_from_json({name: value})
    except CorruptTable as error:
        raise source.damaged(error.message) from error
    assert action is not None, "only actions that are known are read"
    return action


def read_removes(group: RowGroup) -> pa.Table:
    """The `remove` actions of one row group, as a table of `TOMBSTONES_SCHEMA`."""
    present = {leaf.split(".")[1] for leaf in group.file.leaves if leaf.startswith("remove.")}
    read = group.read([f"remove.{name}" for name in TOMBSTONES_SCHEMA.names if name in present])
    return _conformed(group, *_members(read.column("remove")), TOMBSTONES_SCHEMA.names, TOMBSTONES_SCHEMA)


def _members(structs: pa.ChunkedArray | pa.StructArray) -> tuple[dict[str, pa.ChunkedArray], int]:
    """Return the members of the structs that are not null, and the number of those structs."""
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
        member = members.get(name)
        if name not in schema.names:
            arrays.append(member)
        else:
            data_type = schema.field(name).type
            with reading(group.file):
                arrays.append(pa.nulls(count, data_type) if member is None else cast_chunks(member, data_type))
    files = pa.Table.from_arrays(arrays, list(names))
    fault = fault_of_files("add" if schema is FILES_SCHEMA else "remove", files)
    if fault is not None:
        raise group.file.damaged(fault)
    return files
