"""Hand-written logs: every kind of file in the specification, written without Tahoe's writers.

    log = memory_log()
    log.begin(one := add("one.parquet"), add("two.parquet"))
    log.commit(remove(one))
    log.v2("json", sidecars=2)
    assert live_paths(log) == log.expected() == ["two.parquet"]

The state of each version is computed here action by action, for comparison with a reader of logs. `DAMAGES` are corruptions of a
single file. There are no data files.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.base.lazy import pq
from tahoe.log.checkpoints.checkpoint_reader import open_checkpoint
from tahoe.log.files.commits import read_commit
from tahoe.log.files.live_files import add_files
from tahoe.log.files.paths import LAST_CHECKPOINT, SIDECAR_FOLDER, checksum_name, commit_name
from tahoe.log.replay import LogReader, TableState
from tahoe.log.segment import checkpoints_in, segment_for
from tahoe.protocol.actions import (
    Action,
    AddFile,
    CheckpointMetadata,
    CommitInfo,
    DeletionVectorDescriptor,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    SidecarFile,
    to_json_line,
)
from tahoe.protocol.features import Feature
from tahoe.schema.types import PrimitiveType, StructField, StructType
from tahoe.store.log_store import LogStore
from tahoe.store.object_store import open_store

__all__ = [
    "DAMAGES",
    "METADATA",
    "PROTOCOL",
    "SCHEMA",
    "Log",
    "add",
    "live_paths",
    "lines",
    "memory_log",
    "parquet",
    "remove",
    "vector",
]

SCHEMA = StructType(
    (
        StructField("id", PrimitiveType("long")),
        StructField("name", PrimitiveType("string")),
        StructField("part", PrimitiveType("string")),
    )
)
PROTOCOL = Protocol(3, 7, frozenset({Feature.V2_CHECKPOINT}), frozenset({Feature.V2_CHECKPOINT, Feature.DOMAIN_METADATA}))
METADATA = Metadata(id="a-table", schema_string=SCHEMA.to_json(), partition_columns=("part",), created_time=1)


def add(path: str, *, size: int = 100, part: str | None = "a", low: int = 0, high: int = 9, **more: object) -> AddFile:
    """Return a file of 10 rows whose statistics bound `id` by `low` and `high`.

    Args:
        path: of the data file, which need not exist.
        size: in bytes.
        part: the partition's value.
        low: the minimum `id`; the minimum `name` is ``n<low>``.
        high: the maximum `id`.
        more: members of `AddFile` that replace the defaults.
    """
    stats = json.dumps(
        {
            "numRecords": 10,
            "minValues": {"id": low, "name": f"n{low}"},
            "maxValues": {"id": high, "name": f"n{high}"},
            "nullCount": {"id": 0, "name": 0},
        },
        separators=(",", ":"),
    )
    values: dict[str, Any] = {
        "path": path,
        "partition_values": {"part": part},
        "size": size,
        "modification_time": 1,
        "data_change": True,
        "stats": stats,
    }
    return AddFile(**(values | more))


def remove(file: AddFile, deletion_timestamp: int = 1_000) -> RemoveFile:
    """Return the tombstone of a file."""
    return file.remove(deletion_timestamp)


def vector(name: str, cardinality: int = 1, offset: int | None = 1) -> DeletionVectorDescriptor:
    """Return a deletion vector in a separate file, which need not exist."""
    return DeletionVectorDescriptor("u", name, 40, cardinality, offset)


def lines(actions: Iterable[Action]) -> bytes:
    """Return the bytes of a commit."""
    return b"".join(to_json_line(action).encode() + b"\n" for action in actions)


def live_paths(log: Log, version: int | None = None) -> list[str]:
    """Return the paths that Tahoe reads for a version, sorted; the newest by default."""
    return sorted(file.path for file in log.live(version))


@dataclass
class Log:
    """A table without data files, and the state of its versions by plain replay.

    Args:
        store: an empty store for the log.

    Attributes:
        versions: for each version its live files, by path and deletion vector.
        removed: the tombstones of the newest version.
        others: protocol, metadata, application transactions and domains of the newest version.
    """

    store: LogStore
    versions: list[dict[tuple[str, str | None], AddFile]] = field(default_factory=list)
    removed: dict[tuple[str, str | None], RemoveFile] = field(default_factory=dict)
    others: dict[tuple[str, str], Action] = field(default_factory=dict)

    def commit(self, *actions: Action, info: bool = True) -> int:
        """Write the next version; its `txnId` is ``txn-<version>``.

        Args:
            actions: in order.
            info: add a ``commitInfo`` before them.

        Returns:
            The version.
        """
        version = len(self.versions)
        first = [CommitInfo({"operation": "TEST", "txnId": f"txn-{version}"})] if info else []
        self.store.put(commit_name(version), lines([*first, *actions]))
        live = dict(self.versions[-1]) if self.versions else {}
        for action in actions:
            match action:
                case AddFile():
                    live[action.key] = action
                    self.removed.pop(action.key, None)
                case RemoveFile():
                    live.pop(action.key, None)
                    self.removed[action.key] = action
                case SetTransaction():
                    self.others["txn", action.app_id] = action
                case DomainMetadata():
                    self.others["domainMetadata", action.domain] = action
                case Protocol():
                    self.others["protocol", ""] = action
                case Metadata():
                    self.others["metaData", ""] = action
        self.versions.append(live)
        return version

    def begin(self, *actions: Action) -> int:
        """Commit `PROTOCOL`, `METADATA` and the actions."""
        return self.commit(PROTOCOL, METADATA, *actions)

    @property
    def version(self) -> int:
        """The newest version; -1 for an empty log."""
        return len(self.versions) - 1

    def files_of_checkpoint(self, version: int) -> list[AddFile]:
        """Return the live files in the complete checkpoint of a version, ignoring the commits before and after it."""
        [checkpoint, *_] = checkpoints_in(self.store.list_from("_delta_log", f"{version:020d}"))[version]
        return add_files(open_checkpoint(self.store, checkpoint).adds())

    def live(self, version: int | None = None) -> list[AddFile]:
        """Return the live files that Tahoe reads."""
        return add_files(LogReader(self.store, segment_for(self.store, version)).files())

    def state(self, version: int | None = None) -> TableState:
        """Return the state that Tahoe reads."""
        return LogReader(self.store, segment_for(self.store, version)).state()

    def expected(self) -> list[str]:
        """Return the paths of the newest version by plain replay, sorted: the expected result of `live_paths`."""
        return sorted(file.path for file in self.versions[-1].values())

    def _single(self) -> list[Action]:
        return [a for a in self.others.values() if not (isinstance(a, DomainMetadata) and a.removed)]

    def classic(self, actions: Sequence[Action] | None = None, name: str | None = None) -> str:
        """Write the classic checkpoint of the newest version; return its name.

        Args:
            actions: replace the version's actions.
            name: replaces its standard name.
        """
        name = name or f"_delta_log/{self.version:020d}.checkpoint.parquet"
        self.store.put(name, parquet(self._all() if actions is None else actions))
        return name

    def multi_part(self, parts: int) -> list[str]:
        """Write a multi-part checkpoint of the newest version; return the names."""
        actions = self._all()
        names = []
        for part in range(parts):
            name = f"_delta_log/{self.version:020d}.checkpoint.{part + 1:010d}.{parts:010d}.parquet"
            names.append(self.classic(actions[part::parts], name))
        return names

    def v2(self, top_level: str, *, sidecars: int = 2, classic_name: bool = False, **tags: str) -> list[str]:
        """Write a V2 checkpoint of the newest version; return the names, sidecars first.

        Args:
            top_level: ``json`` or ``parquet``.
            sidecars: the number of sidecars for the file actions; with 0 they are in the checkpoint itself.
            classic_name: omit the unique part of the name.
            tags: members of ``checkpointMetadata.tags`` that replace the right ones.
        """
        files: list[Action] = [*self.versions[-1].values(), *self.removed.values()]
        right = {"numOfAddFiles": str(len(self.versions[-1])), "sidecarNumActions": str(len(files) if sidecars else 0)}
        top: list[Action] = [CheckpointMetadata(self.version, right | tags), *self._single()]
        names = []
        for number in range(sidecars):
            path = f"{uuid.UUID(int=number + 1)}.parquet"
            data = parquet(files[number::sidecars])
            self.store.put(f"{SIDECAR_FOLDER}/{path}", data)
            names.append(f"{SIDECAR_FOLDER}/{path}")
            top.append(SidecarFile(path, len(data), 1))
        if not sidecars:
            top += files
        unique = "" if classic_name else f".{uuid.UUID(int=99)}"
        name = f"_delta_log/{self.version:020d}.checkpoint{unique}.{top_level}"
        self.store.put(name, lines(top) if top_level == "json" else parquet(top))
        return [*names, name]

    def compaction(self, first: int, last: int) -> str:
        """Write the commits of a range as one compacted file, by plain reconciliation; return its name."""
        newest: dict[object, Action] = {}
        for version in range(first, last + 1):
            for action in read_commit(self.store, version):
                match action:
                    case AddFile() | RemoveFile():
                        newest["file", action.key] = action
                    case SetTransaction():
                        newest["txn", action.app_id] = action
                    case Protocol() | Metadata():
                        newest[type(action)] = action
        name = f"_delta_log/{first:020d}.{last:020d}.compacted.json"
        self.store.put(name, lines(newest.values()))
        return name

    def checksum(self, version: int | None = None, **changes: object) -> str:
        """Write the checksum of the newest version, or of an older version with the same other actions; return its name.

        Args:
            version: None for the newest.
            changes: members that replace the right ones.
        """
        version = self.version if version is None else version
        live = self.versions[version].values()
        value: dict[str, Any] = {
            "txnId": f"txn-{version}",
            "tableSizeBytes": sum(file.size for file in live),
            "numFiles": len(live),
            "numMetadata": 1,
            "numProtocol": 1,
            "setTransactions": [a.to_json_value() for a in self.others.values() if isinstance(a, SetTransaction)],
            "domainMetadata": [a.to_json_value() for a in self._single() if isinstance(a, DomainMetadata)],
            "metadata": self.others["metaData", ""].to_json_value(),
            "protocol": self.others["protocol", ""].to_json_value(),
        }
        self.store.put(checksum_name(version), json.dumps(value | changes).encode())
        return checksum_name(version)

    def hint(self, **changes: object) -> str:
        """Write ``_last_checkpoint`` for a checkpoint of the newest version, with these members replaced; return its name."""
        value = {"version": self.version, "size": len(self._all()), "numOfAddFiles": len(self.versions[-1])}
        self.store.put(LAST_CHECKPOINT, json.dumps(value | changes).encode())
        return LAST_CHECKPOINT

    def _all(self) -> list[Action]:
        return [*self._single(), *self.versions[-1].values(), *self.removed.values()]


def memory_log() -> Log:
    """Return an empty log in this process's memory."""
    return Log(open_store(f"memory://{SYSTEM_CLOCK.uuid()}/table"))


def parquet(actions: Sequence[Action]) -> bytes:
    """Return the actions as rows of a Parquet file, with the columns that they need."""
    rows = [_row(action) for action in actions]
    present = [name for name in _TYPES if any(name in row for row in rows)] or ["add"]
    columns = [pa.array([row.get(name) for row in rows], _TYPES[name]) for name in present]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_arrays(columns, present), sink)
    return bytes(sink.getvalue().to_pybytes())


def _row(action: Action) -> dict[str, Any]:
    (name, value), *_ = json.loads(to_json_line(action)).items()
    for member in ("partitionValues", "tags", "configuration"):
        if isinstance(value.get(member), dict):
            value[member] = list(value[member].items())
    if "format" in value:
        value["format"] = value["format"] | {"options": list(value["format"]["options"].items())}
    if name == "remove":
        value = {member: content for member, content in value.items() if member not in ("stats", "tags")}
    return {name: value}


_MAP = pa.map_(pa.string(), pa.string())
_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
_FILE = [("path", pa.string()), ("partitionValues", _MAP), ("size", pa.int64()), ("dataChange", pa.bool_())]
_TYPES: dict[str, pa.DataType] = {
    "txn": pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())]),
    "add": pa.struct(
        [*_FILE, ("modificationTime", pa.int64()), ("stats", pa.string()), ("tags", _MAP), ("deletionVector", _VECTOR)]
    ),
    "remove": pa.struct(
        [*_FILE, ("deletionTimestamp", pa.int64()), ("extendedFileMetadata", pa.bool_()), ("deletionVector", _VECTOR)]
    ),
    "metaData": pa.struct(
        [
            ("id", pa.string()),
            ("format", pa.struct([("provider", pa.string()), ("options", _MAP)])),
            ("schemaString", pa.string()),
            ("partitionColumns", pa.list_(pa.string())),
            ("configuration", _MAP),
            ("createdTime", pa.int64()),
        ]
    ),
    "protocol": pa.struct(
        [
            ("minReaderVersion", pa.int32()),
            ("minWriterVersion", pa.int32()),
            ("readerFeatures", pa.list_(pa.string())),
            ("writerFeatures", pa.list_(pa.string())),
        ]
    ),
    "domainMetadata": pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]),
    "checkpointMetadata": pa.struct([("version", pa.int64()), ("tags", _MAP)]),
    "sidecar": pa.struct([("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64()), ("tags", _MAP)]),
}


def _without_last_line(data: bytes) -> bytes:
    whole = data.rstrip(b"\n").split(b"\n")
    return b"\n".join(whole[:-1]) + b"\n" if len(whole) > 1 else b""


def _with_flipped_bit(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 0x80]) + data[middle + 1 :]


DAMAGES: dict[str, Callable[[bytes], bytes | None]] = {
    "deleted": lambda data: None,
    "emptied": lambda data: b"",
    "cut in half": lambda data: data[: len(data) // 2],
    "without its last line": _without_last_line,
    "with a flipped bit": _with_flipped_bit,
    "of garbage": lambda data: b"\x8f\x02garbage\x00" * 9,
    "with NULs at its end": lambda data: data + b"\0" * 64,
    "doubled": lambda data: data + data,
    "half of NULs": lambda data: data[: len(data) // 2] + b"\0" * (len(data) - len(data) // 2),
}
"""Corruptions of a file by storage, crashes and people; None for its removal."""
