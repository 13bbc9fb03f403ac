"""Writes V2 checkpoints (PROTOCOL.md, "V2 Spec"): a small top level in Parquet, and sidecars, which are reused from the previous checkpoint.

    previous sidecars ──keys of the commits since──► unchanged: named again
                                                 └─► changed, small, or new files: written

Live files and tombstones never share a sidecar, so that expiring tombstones affects only their own sidecars. The cost is that of finding
the keys (one column of each sidecar), and of writing the changes.

After writing a checkpoint that names old sidecars again, the writer checks that the previous checkpoint still exists: if a log cleanup has
deleted it meanwhile, its sidecars may be deleted too, so all sidecars are rewritten. (Cleanup deletes checkpoints first, and then the
sidecars that no remaining checkpoint names.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from zlib import crc32

import pyarrow as pa

from tahoe.base.clock import Clock
from tahoe.base.lazy import cached_property, pc
from tahoe.base.progress import Progress, tracked
from tahoe.log.checkpoints.checkpoint_checksum import checkpoint_with_checksum, footer_of
from tahoe.log.checkpoints.checkpoint_reader import THREADS, CheckpointReader, read_adds, read_removes
from tahoe.log.checkpoints.checkpoint_rows import (
    REMOVE_TYPE,
    SINGLE_SCHEMA,
    AddColumns,
    RowEncoder,
    pieces,
    single_actions,
    unexpired,
)
from tahoe.log.checkpoints.checkpoint_writer import verify_encoded
from tahoe.log.checkpoints.footer_check import vouch_for_footer
from tahoe.log.checkpoints.parquet_source import ParquetSource
from tahoe.log.checkpoints.sidecar_summary import SidecarSummary, columns_of, summary_of
from tahoe.log.files.columns import concat
from tahoe.log.files.last_checkpoint import LastCheckpoint, TopLevel
from tahoe.log.files.live_files import (
    FILES_SCHEMA,
    STRING_MAP,
    TOMBSTONES_SCHEMA,
    are_plain,
    file_keys,
    table_of_rows,
    without_rows,
)
from tahoe.log.files.paths import SIDECAR_FOLDER, file_name, v2_checkpoint_name
from tahoe.protocol.actions import CheckpointMetadata, SidecarFile
from tahoe.protocol.config import TableConfig
from tahoe.protocol.table_state import TableState
from tahoe.store.log_store import LogStore


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes since a checkpoint.

    Args:
        adds: added files that are live (`FILES_SCHEMA`).
        removes: tombstones of removed files (`TOMBSTONES_SCHEMA`).
        keys: of all files in the commits (`file_keys`).
        totals: the expected number of live files and their total size in bytes; None if no checksum states them.
    """

    adds: pa.Table
    removes: pa.Table
    keys: pa.Array
    totals: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class V2Writer:
    """Writes one checkpoint of one version.

    Args:
        state, config: of that version.
        now_ms: milliseconds since the epoch.
        progress: reports the written sidecars.
    """

    store: LogStore
    version: int
    state: TableState
    config: TableConfig
    clock: Clock
    now_ms: int
    progress: Progress

    def write(self, files: pa.Table, tombstones: pa.Table) -> LastCheckpoint:
        """Write the checkpoint with new sidecars only.

        Args:
            files: the live files.
            tombstones: expired ones are left out.
        """
        recent = unexpired(tombstones, self._expired_ms)
        writer = self._sidecars()
        jobs = [partial(_write, writer.adds, (piece,)) for piece in pieces(files, rows_in_sidecar(files.num_rows))]
        jobs += [partial(_write, writer.removes, (piece,)) for piece in pieces(recent, rows_in_sidecar(recent.num_rows))]
        return self.top_level([sidecar for written in self._run(jobs) for sidecar in written])

    def after(self, before: CheckpointReader, sidecars: Sequence[SidecarFile], changes: Changes) -> LastCheckpoint | None:
        """Write the checkpoint, and reuse as many sidecars of an older one as possible.

        Args:
            before: an older V2 checkpoint.
            sidecars: the sidecars that it names.

        Returns:
            None if all sidecars must be rewritten: they are from another writer, have other columns, or are too many small ones, or the
            older checkpoint was deleted or does not lead to the totals.

        Raises:
            DamagedCheckpoint: a sidecar cannot be read.
        """
        writer = self._sidecars()
        kept_sidecars = _kept_sidecars(before, sidecars)
        if kept_sidecars is None or any(each.summary.columns != writer.columns and each.summary.adds for each in kept_sidecars):
            return None
        adds = _merged([each for each in kept_sidecars if each.summary.adds], changes.adds, changes.keys, "add")
        removes = [each for each in kept_sidecars if each.summary.removes and each.summary.newest > self._expired_ms]
        gone = _merged(removes, unexpired(changes.removes, self._expired_ms), changes.keys, "remove")
        if adds is None or gone is None:
            return None
        expired_ms = self._expired_ms
        parts: list[_KeptSidecar | Callable[[], list[SidecarFile]]] = []
        parts += [each if isinstance(each, _KeptSidecar) else partial(_write, writer.adds, each) for each in adds]
        parts += [
            each
            if isinstance(each, _KeptSidecar)
            else partial(_write, writer.removes, (unexpired(rows, expired_ms) for rows in each))
            for each in gone
        ]
        written = iter(self._run([part for part in parts if not isinstance(part, _KeptSidecar)]))
        named = [sidecar for part in parts for sidecar in ([part.sidecar] if isinstance(part, _KeptSidecar) else next(written))]
        if changes.totals not in (None, _totals(named)):
            return None
        hint = self.top_level(named)
        if self.store.head(before.checkpoint.names[0]) is None and hint.v2 is not None:
            self.store.delete(v2_checkpoint_name(self.version, hint.v2.path.split(".")[2]))
            return None
        return hint

    @property
    def _expired_ms(self) -> int:
        return self.now_ms - self.config.properties.deleted_file_retention_ms

    def _sidecars(self) -> SidecarWriter:
        return SidecarWriter(self.store, self.version, AddColumns.of(self.config), self.now_ms, self.clock.uuid)

    def _run(self, jobs: Sequence[Callable[[], list[SidecarFile]]]) -> list[list[SidecarFile]]:
        if len(jobs) < 2:
            return [job() for job in jobs]
        with ThreadPoolExecutor(THREADS) as pool:
            return list(tracked(pool.map(lambda job: job(), jobs), self.progress, "sidecars written", len(jobs)))

    def top_level(self, sidecars: Sequence[SidecarFile]) -> LastCheckpoint:
        """Write the file that names the sidecars, which completes the checkpoint."""
        summaries = [summary for sidecar in sidecars if (summary := summary_of(sidecar)) is not None]
        adds, rows = sum(each.adds for each in summaries), sum(each.rows for each in summaries)
        of_sidecars = sum(sidecar.size_in_bytes for sidecar in sidecars)
        tags = {"numOfAddFiles": str(adds), "sidecarNumActions": str(rows), "sidecarSizeInBytes": str(of_sidecars)}
        single = single_actions(self.state, self.config, self.now_ms)
        single.append({"checkpointMetadata": _with_pairs(CheckpointMetadata(self.version, tags).to_json_value())})
        single += [{"sidecar": _with_pairs(sidecar.to_json_value())} for sidecar in sidecars]
        data = checkpoint_with_checksum(RowEncoder.of(_TOP_LEVEL).encode([table_of_rows(single, _TOP_LEVEL)]), self.version)
        name = v2_checkpoint_name(self.version, self.clock.uuid())
        self.store.put(name, data)
        vouch_for_footer(footer_of(data))
        top = TopLevel(file_name(name), len(data), self.now_ms)
        return LastCheckpoint(
            self.version, len(single) + rows, size_in_bytes=len(data) + of_sidecars, num_of_add_files=adds, v2=top
        )


_TOP_LEVEL = pa.schema(
    [
        *SINGLE_SCHEMA,
        ("checkpointMetadata", pa.struct([("version", pa.int64()), ("tags", STRING_MAP)])),
        (
            "sidecar",
            pa.struct(
                [("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64()), ("tags", STRING_MAP)]
            ),
        ),
    ]
)


@dataclass(frozen=True, slots=True)
class _KeptSidecar:
    """A sidecar of the previous checkpoint."""

    sidecar: SidecarFile
    summary: SidecarSummary
    source: ParquetSource


def _kept_sidecars(before: CheckpointReader, sidecars: Sequence[SidecarFile]) -> list[_KeptSidecar] | None:
    """Return all sidecars; None if Tahoe has not written all of them."""
    sources = before.sources[len(before.sources) - len(sidecars) :]
    kept_sidecars = []
    for sidecar, source in zip(sidecars, sources, strict=True):
        summary = summary_of(sidecar)
        if summary is not None:
            kept_sidecars.append(_KeptSidecar(sidecar, summary, source))
    return kept_sidecars if len(kept_sidecars) == len(sidecars) else None


def _totals(sidecars: Sequence[SidecarFile]) -> tuple[int, int]:
    """Return the number of live files and their total size in bytes."""
    summaries = [summary for sidecar in sidecars if (summary := summary_of(sidecar)) is not None]
    return sum(each.adds for each in summaries), sum(each.bytes for each in summaries)


def _write(write: Callable[[pa.Table], SidecarFile], tables: Iterable[pa.Table]) -> list[SidecarFile]:
    """Write a sidecar for each table that has rows."""
    return [write(rows) for rows in tables if rows.num_rows]


def _merged(
    sidecars: Sequence[_KeptSidecar], new: pa.Table, keys: pa.Array, kind: str
) -> list[_KeptSidecar | Iterator[pa.Table]] | None:
    """Merge the old rows, except those of `keys`, with the new ones.

    Returns the sidecars that stay, and iterators over the tables of the sidecars to write, which read lazily; None for too many of them.
    """
    with ThreadPoolExecutor(THREADS) as pool:
        lost = list(pool.map(lambda each: _rows_of(each, keys, kind), sidecars))
    rows = [each.summary.rows - gone for each, gone in zip(sidecars, lost, strict=True)]
    full = rows_in_sidecar(sum(rows) + new.num_rows)
    planned = plan_sidecars(rows, [gone > 0 for gone in lost], new.num_rows, full)
    if planned is None:
        return None
    return [
        _rows_to_write([sidecars[i] for i in part.members], new if part.takes_new else None, keys, kind, full)
        if isinstance(part, Written)
        else sidecars[part]
        for part in planned
    ]


def _rows_of(sidecar: _KeptSidecar, keys: pa.Array, kind: str) -> int:
    """Count the rows of a sidecar with one of the keys. Its footer is read, and checked against its summary."""
    summary, count = sidecar.summary, 0
    leaves = [f"{kind}.path", *([f"{kind}.deletionVector"] if summary.vectors else [])]
    for group in sidecar.source.row_groups():
        rows = pa.Table.from_struct_array(group.read(leaves).column(kind))
        if summary.plain and not summary.vectors:
            count += pc.sum(pc.is_in(rows.column("path"), value_set=keys), min_count=0).as_py()
        else:
            count += sum(
                pc.sum(pc.is_in(file_keys(batch, sidecar.source.store.url), value_set=keys), min_count=0).as_py()
                for batch in rows.to_batches()
            )
    return count


def _rows_to_write(
    sidecars: Sequence[_KeptSidecar], new: pa.Table | None, keys: pa.Array, kind: str, full: int
) -> Iterator[pa.Table]:
    """Yield one table for each sidecar to write. Nothing is read before the first is requested."""
    schema = FILES_SCHEMA if kind == "add" else TOMBSTONES_SCHEMA
    yield from pieces(concat([*_left(sidecars, keys, kind), *([] if new is None else [new])], schema), full)


def _left(sidecars: Sequence[_KeptSidecar], keys: pa.Array, kind: str) -> Iterator[pa.Table]:
    """Yield the rows of sidecars without those of the keys."""
    for each in sidecars:
        for group in each.source.row_groups():
            rows = read_adds(group) if kind == "add" else read_removes(group)
            gone = [pc.is_in(file_keys(batch, each.source.store.url), value_set=keys) for batch in rows.to_batches()]
            yield without_rows(rows, pa.chunked_array(gone, pa.bool_()))


def _with_pairs(value: dict[str, object]) -> dict[str, object]:
    """Return the members of an action, with its map of tags as the list of pairs that Arrow requires."""
    tags = value.get("tags")
    return value | {"tags": list(tags.items())} if isinstance(tags, dict) else value


# -- the plan of the sidecars ----------------------------------------------------------------------------------------------------


ROWS_IN_SIDECAR = 50_000
"""The rows of a full sidecar, as in delta-spark, except in very large tables."""


@dataclass(frozen=True, slots=True)
class Written:
    """A sidecar to write, or several if there are too many rows for one.

    Args:
        members: the indexes of the old sidecars whose rows it contains, oldest first.
        takes_new: whether it also contains the new rows, after them.
    """

    members: tuple[int, ...]
    takes_new: bool


def rows_in_sidecar(total: int) -> int:
    """Return the rows of a full sidecar: a table has about twenty sidecars, regardless of its size, with at most half a million rows each."""
    return min(max(ROWS_IN_SIDECAR, -(-total // _USUAL_SIDECARS)), 10 * ROWS_IN_SIDECAR)


def plan_sidecars(rows: Sequence[int], changed: Sequence[bool], new: int, full: int) -> list[int | Written] | None:
    """Plan the sidecars of the next checkpoint in the order of the log: the index of an old sidecar that stays, or a sidecar to write.

    Args:
        rows: the number of rows that each old sidecar has left, in their order.
        changed: whether each old sidecar has lost any.
        new: the number of new rows.
        full: `rows_in_sidecar`.

    Returns:
        None if so many sidecars would be left that rewriting all of them is better.
    """
    groups: list[_Group] = []
    if new:
        groups.append(_Group([], new, True, takes_new=True))
    for number in reversed(range(len(rows))):
        if not rows[number]:
            continue
        item = _Group([number], rows[number], changed[number])
        if groups and _belong_together(item, groups[-1], full):
            last = groups[-1]
            groups[-1] = _Group([number, *last.members], last.rows + item.rows, True, last.takes_new)
        else:
            groups.append(item)
    groups.reverse()
    if len(groups) > _MOST_OVER + 2 * -(-(sum(rows) + new) // full):
        return None
    return [Written(tuple(group.members), group.takes_new) if group.is_written else group.members[0] for group in groups]


_USUAL_SIDECARS = 20
_MOST_OVER = 16


@dataclass(slots=True)
class _Group:
    """Neighbours that become one sidecar."""

    members: list[int]
    rows: int
    is_written: bool
    takes_new: bool = False


def _belong_together(older: _Group, newer: _Group, full: int) -> bool:
    """Whether to write both as one: they fit, and the group that could stay is not much larger than the group that must be written."""
    if older.rows + newer.rows > full or not (older.is_written or newer.is_written):
        return False
    if older.is_written and newer.is_written:
        return True
    written, staying = (older, newer) if older.is_written else (newer, older)
    return staying.rows <= 2 * written.rows


ROWS_IN_GROUP = 50_000
"""Rows in one row group of a sidecar."""


@dataclass(frozen=True)
class SidecarWriter:
    """Writes the sidecars of one checkpoint; from any thread.

    Args:
        version: of the checkpoint.
        add_columns: the columns of its live files.
        now_ms: milliseconds since the epoch.
        uuid: gives a new name.
    """

    store: LogStore
    version: int
    add_columns: AddColumns
    now_ms: int
    uuid: Callable[[], str] = field(repr=False)

    @cached_property
    def columns(self) -> str:
        """The name of the columns that its sidecars have."""
        return columns_of(self.add_columns.type)

    def adds(self, files: pa.Table) -> SidecarFile:
        """Write live files.

        Args:
            files: of `FILES_SCHEMA`, with ``stats_parsed`` where they have it.
        """
        return self._write(files, "add")

    def removes(self, tombstones: pa.Table) -> SidecarFile:
        """Write tombstones, of `TOMBSTONES_SCHEMA`."""
        return self._write(tombstones, "remove")

    @cached_property
    def _encoder(self) -> RowEncoder:
        return RowEncoder.of(pa.schema([("add", self.add_columns.type), ("remove", REMOVE_TYPE)]))

    def _write(self, rows: pa.Table, kind: str) -> SidecarFile:
        structs = self.add_columns.of_files if kind == "add" else pa.Table.to_struct_array
        data = self._encoder.encode(self._encoder.rows(kind, piece, structs) for piece in pieces(rows, ROWS_IN_GROUP))
        verify_encoded(data, rows.num_rows, rows.num_rows if kind == "add" else 0, self.store.url, self.version)
        data = checkpoint_with_checksum(data, self.version)
        footer = footer_of(data)
        path = f"{self.uuid()}.parquet"
        self.store.put(f"{SIDECAR_FOLDER}/{path}", data)
        vouch_for_footer(footer)
        is_add = kind == "add"
        vectors = rows.column("deletionVector")
        summary = SidecarSummary(
            footer_crc32=crc32(footer),
            columns=self.columns,
            adds=rows.num_rows if is_add else 0,
            removes=0 if is_add else rows.num_rows,
            bytes=pc.sum(rows.column("size"), min_count=0).as_py() if is_add else 0,
            vectors=len(vectors) - vectors.null_count,
            plain=are_plain(rows.column("path")),
            newest=0 if is_add else pc.max(rows.column("deletionTimestamp")).as_py() or 0,
        )
        return SidecarFile(path, len(data), self.now_ms, summary.tags())
