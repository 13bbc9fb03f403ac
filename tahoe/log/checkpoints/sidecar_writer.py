"""Writes sidecars: files of live files or of tombstones, which the top level of a V2 checkpoint names (PROTOCOL.md, "Sidecar Files").

Like each checkpoint of Tahoe, a sidecar has page checksums and an embedded checksum; the CRC-32 of its footer goes into the checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from zlib import crc32

import pyarrow as pa

from tahoe.base.lazy import cached_property, pc
from tahoe.log.checkpoints.checkpoint_checksum import checkpoint_with_checksum, footer_of
from tahoe.log.checkpoints.checkpoint_rows import REMOVE_TYPE, AddColumns, RowEncoder, pieces
from tahoe.log.checkpoints.checkpoint_writer import verify_encoded
from tahoe.log.checkpoints.footer_check import vouch_for_footer
from tahoe.log.checkpoints.sidecar_summary import SidecarSummary, columns_of
from tahoe.log.files.live_files import are_plain
from tahoe.log.files.paths import SIDECAR_FOLDER
from tahoe.protocol.actions import SidecarFile
from tahoe.store.log_store import LogStore

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
