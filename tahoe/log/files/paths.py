"""Builds and parses the names of the log's files (PROTOCOL.md, "File Types", "Checkpoint Naming Scheme").

Names are relative to the table's root: ``_delta_log/00000000000000000010.json``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from tahoe.base.exceptions import CorruptTable
from tahoe.store.location import decode_path

LOG_FOLDER = "_delta_log"
SIDECAR_FOLDER = f"{LOG_FOLDER}/_sidecars"
STAGED_FOLDER = f"{LOG_FOLDER}/_staged_commits"
LAST_CHECKPOINT = f"{LOG_FOLDER}/_last_checkpoint"

LogFileKind = Literal["commit", "checkpoint", "compaction", "checksum"]


@dataclass(frozen=True, slots=True)
class ParsedLogPath:
    """The parsed name of one file of the log.

    Args:
        name: the name that was parsed.
        version: the version; of a compaction, its first.
        kind: the kind of file. `parse` returns None for staged commits, ``_last_checkpoint`` and unknown files.
        last_version: the last version that a compaction covers; else `version`.
        part, parts: of a multi-part checkpoint, counted from 1; else None.
        unique_id: the UUID in a V2 checkpoint's name; else None.
        format: of a checkpoint, ``parquet`` or ``json``; else ``json``.
    """

    name: str
    version: int
    kind: LogFileKind
    last_version: int
    part: int | None = None
    parts: int | None = None
    unique_id: str | None = None
    format: Literal["parquet", "json"] = "json"


def commit_name(version: int) -> str:
    """The store name of a version's commit."""
    return f"{LOG_FOLDER}/{version:020d}.json"


def checkpoint_name(version: int) -> str:
    """The name of a classic checkpoint."""
    return f"{LOG_FOLDER}/{version:020d}.checkpoint.parquet"


def v2_checkpoint_name(version: int, unique_id: str) -> str:
    """The name of a V2 checkpoint's top level in Parquet.

    Args:
        unique_id: a UUID.
    """
    return f"{LOG_FOLDER}/{version:020d}.checkpoint.{unique_id}.parquet"


def checksum_name(version: int) -> str:
    """The store name of a version's checksum."""
    return f"{LOG_FOLDER}/{version:020d}.crc"


def staged_name(version: int, unique_id: str) -> str:
    """The store name of a commit that is proposed to a coordinator (PROTOCOL.md, "Delta Log Entries").

    Args:
        unique_id: a UUID.
    """
    return f"{STAGED_FOLDER}/{version:020d}.{unique_id}.json"


def staged_version(name: str) -> int | None:
    """The version for which a commit was staged; None for a name that is none of such a commit."""
    folder, _, last = name.rpartition("/")
    match = _STAGED.fullmatch(last) if folder == STAGED_FOLDER else None
    return None if match is None else int(match["version"])


def sidecar_name(path: str, root_url: str) -> str:
    """The store name of a `sidecar.path`: a bare file name, or a path that leads into ``_delta_log/_sidecars``.

    Raises:
        CorruptTable: for a path that leads elsewhere.
    """
    bare = "/" not in path and ":" not in path
    name = decode_path(f"{SIDECAR_FOLDER}/{path}" if bare else path, root_url)
    if name.rpartition("/")[0] != SIDECAR_FOLDER:
        raise CorruptTable(
            f"A checkpoint of table {root_url} names the sidecar {path!r}, which is not in {SIDECAR_FOLDER}. "
            "Restore the checkpoint from a backup, or delete it if the log's commits are complete.",
            code="TAHOE_PATH_OUTSIDE_TABLE",
            table=root_url,
            path=path,
        )
    return name


def file_name(name: str) -> str:
    """The last part of a store name."""
    return name.rpartition("/")[2]


def parse(name: str) -> ParsedLogPath | None:
    """Parse the name of a file directly in the log's folder; None for names that the log's readers ignore.

    Args:
        name: relative to the table's root, or the file name alone.
    """
    folder, _, last = name.rpartition("/")
    if folder not in ("", LOG_FOLDER):
        return None
    match = _NAME.fullmatch(last)
    if match is None or len(match["version"].lstrip("0")) > _MOST_DIGITS:
        return None
    version = int(match["version"])
    if match["commit"]:
        return ParsedLogPath(name, version, "commit", version)
    if match["checksum"]:
        return ParsedLogPath(name, version, "checksum", version)
    if match["last"]:
        last_version = int(match["last"])
        return ParsedLogPath(name, version, "compaction", last_version) if last_version > version else None
    if match["part"]:
        part, parts = int(match["part"]), int(match["parts"])
        valid = 1 <= part <= parts
        return ParsedLogPath(name, version, "checkpoint", version, part, parts, format="parquet") if valid else None
    if match["unique_id"]:
        json = match["format"] == "json"
        return ParsedLogPath(
            name, version, "checkpoint", version, unique_id=match["unique_id"], format="json" if json else "parquet"
        )
    return ParsedLogPath(name, version, "checkpoint", version, format="parquet")


# Versions are 64-bit integers; a longer number is no version that any writer can have made.
_MOST_DIGITS = 18

_STAGED = re.compile(r"(?P<version>\d{20})\.[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}\.json")

_NAME = re.compile(
    r"""(?P<version>\d{20})\.(?:
        (?P<commit>json)
      | (?P<checksum>crc)
      | (?P<last>\d{20})\.compacted\.json
      | checkpoint\.parquet
      | checkpoint\.(?P<part>\d{10})\.(?P<parts>\d{10})\.parquet
      | checkpoint\.(?P<unique_id>[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12})\.(?P<format>json|parquet)
    )""",
    re.VERBOSE,
)
