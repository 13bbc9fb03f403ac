"""Tahoe's summary of a sidecar in the checkpoint that names it: its counts and the CRC-32 of its footer, which save a request.

The summary is JSON text under one name in `sidecar.tags`. Other writers do not know it; if they copy the tags, the summary remains valid,
because a sidecar never changes.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from hashlib import sha256

import pyarrow as pa

from tahoe.protocol.actions import SidecarFile


@dataclass(frozen=True, slots=True)
class SidecarSummary:
    """One sidecar, whose rows are all live files or all tombstones.

    Args:
        footer_crc32: of its Parquet footer, the only part of the file without a checksum of its own.
        columns: `columns_of` the `add` struct of the file.
        adds, removes: the number of each.
        bytes: the total size of the live files.
        vectors: the number of rows with a deletion vector.
        plain: whether all paths are in the form of `tahoe.log.files.live_files.canonical_path`.
        newest: the greatest `deletionTimestamp` of its tombstones; 0 without.
    """

    footer_crc32: int
    columns: str
    adds: int
    removes: int
    bytes: int
    vectors: int
    plain: bool
    newest: int

    @property
    def rows(self) -> int:
        """The number of all its actions."""
        return self.adds + self.removes

    def tags(self) -> dict[str, str]:
        """For `sidecar.tags`."""
        return {_TAG: json.dumps(asdict(self), separators=(",", ":"))}


def summary_of(sidecar: SidecarFile) -> SidecarSummary | None:
    """Return Tahoe's summary of a sidecar; None for sidecars of other writers, and for a summary of an unknown form."""
    text = (sidecar.tags or {}).get(_TAG)
    if text is None:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or {name: type(member).__name__ for name, member in value.items()} != _TYPES:
        return None
    summary = SidecarSummary(**value)
    return summary if min(summary.adds, summary.removes, summary.bytes, summary.vectors) >= 0 else None


def columns_of(adds: pa.StructType) -> str:
    """Return a name for the columns of a sidecar. All sidecars of a checkpoint have the same columns, so that every reader can join them."""
    return sha256(str(adds).encode()).hexdigest()[:16]


_TAG = "tahoe.sidecar"
_TYPES = {member.name: member.type for member in fields(SidecarSummary)}
