"""The attacked tables: small, each with features that the others lack, and the same bytes in every run."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from io import BytesIO
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from tahoe import Table
from tahoe.base.clock import SeededClock
from tahoe.log.files.live_files import add_files
from tahoe.log.files.paths import SIDECAR_FOLDER, commit_name, parse
from tahoe.protocol.dv import inline_descriptor
from tahoe.testing.log_builder import Log
from tahoe.txn.transaction import Operation
from tests.attack.overlay import Overlay

__all__ = ["VICTIMS", "Victim", "kind_of", "victim"]


@dataclass(frozen=True)
class Victim:
    """A sound table, and its queries.

    Args:
        files: all of its files by name.
        filter: SQL text that some rows fulfil and some files cannot.
        old_version: one that is not the newest.
        feed_from: first version of its change data feed; None where it has none.
        tracks_rows: whether its rows have ids.
        damaged_elsewhere: kinds of its files that another table has as they are here.
    """

    name: str
    files: dict[str, bytes] = field(repr=False)
    filter: str
    old_version: int
    feed_from: int | None = None
    tracks_rows: bool = False
    damaged_elsewhere: tuple[str, ...] = ()

    @property
    def url(self) -> str:
        return f"memory://attack/{self.name}"

    def of_kind(self, *kinds: str) -> list[str]:
        """The names of its files of these kinds, sorted."""
        return sorted(name for name in self.files if kind_of(name) in kinds)

    def kinds(self) -> list[str]:
        """The kinds of its files, sorted."""
        return sorted({kind_of(name) for name in self.files})


@cache
def kind_of(name: str) -> str:
    """The kind of a file, from its name."""
    if name.startswith(f"{SIDECAR_FOLDER}/"):
        return "sidecar"
    if name.startswith("_change_data/"):
        return "change data"
    if name.endswith(".bin"):
        return "vector"
    if name.endswith("_last_checkpoint"):
        return "hint"
    actual = parse(name)
    if actual is None:
        return "data"
    if actual.kind != "checkpoint":
        return actual.kind
    if actual.unique_id is not None:
        return f"V2 checkpoint ({actual.format})"
    return "part of a checkpoint" if actual.parts else "checkpoint"


SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.string()), ("name", pa.string()), ("price", pa.decimal128(9, 2))])
PARTS = ("a", None, "ü/ %=", "")


def rows(start: int, count: int, part: str | None = None) -> pa.Table:
    """`count` rows whose ids begin with `start`, of one part or of all in turn."""
    ids = range(start, start + count)
    values = {
        "id": list(ids),
        "part": [PARTS[number % 3] if part is None else part for number in ids],
        "name": [None if number % 7 == 0 else f"name {number}" for number in ids],
    }
    prices = pa.array([number * 100 + 25 for number in ids], pa.int64()).cast(pa.decimal128(19, 0)).to_pylist()
    return pa.table(values | {"price": pa.array([price.scaleb(-2) for price in prices], SCHEMA.field("price").type)}, SCHEMA)


def _began(name: str, **options: Any) -> tuple[Table, Overlay]:
    store = Overlay(f"memory://attack/{name}")
    clock = SeededClock(sum(name.encode()))
    return Table.create(store.url, SCHEMA, store=store, clock=clock, **options), store


def _lived(name: str, **options: Any) -> tuple[Table, Overlay]:
    """A table with inserts, deletes, an update, an idempotent write and a merge."""
    table, store = _began(name, **options)
    table.append(rows(0, 12))
    table.append(rows(12, 12), app=("stream", 1))
    table.delete("id in (3, 5, 14)")
    table.update({"name": "'changed'"}, "id between 7 and 9")
    table.append(rows(24, 12), app=("stream", 2))
    table.merge(rows(34, 4), "target.id = source.id").when_matched_update_all().when_not_matched_insert_all().execute()
    table.delete("id = 30")
    return table, store


def _plain(name: str) -> Overlay:
    return _lived(name)[1]


def _partitioned(name: str) -> Overlay:
    table, store = _began(name, partition_by=["part"])
    table.append(rows(0, 9))
    table.append(rows(9, 9))
    table.delete("part is null and id < 6")
    table.append(rows(20, 3, "nowhere else"))
    table.overwrite(rows(30, 2, "a"), replace_where="part = 'a'")
    return store


def _vectors(name: str) -> Overlay:
    table, store = _lived(name, properties={"delta.enableDeletionVectors": "true"})
    # Tahoe writes files of vectors; the reference also puts short ones into the log.
    add = next(add for add in add_files(table.snapshot().files()) if add.deletion_vector is None)
    transaction = table.begin()
    dead = replace(add, deletion_vector=inline_descriptor(BitMap64([0, 2])), stats=(add.stats or "").replace("true", "false"))
    transaction.staged += [add.remove(1_700_000_000_500), dead]
    table.commit(transaction, Operation("DELETE", {"predicate": "[]"}))
    return store


def _mapped(name: str) -> Overlay:
    return _lived(name, partition_by=["part"], properties={"delta.columnMapping.mode": "name"})[1]


def _feed(name: str) -> Overlay:
    return _lived(name, properties={"delta.enableChangeDataFeed": "true"})[1]


def _tracked(name: str) -> Overlay:
    return _lived(name, properties={"delta.enableRowTracking": "true", "delta.enableDeletionVectors": "true"})[1]


def _timed(name: str) -> Overlay:
    return _lived(name, properties={"delta.enableInCommitTimestamps": "true", "delta.enableChangeDataFeed": "true"})[1]


def _checkpointed(name: str, **properties: str) -> Overlay:
    """Checkpoints of the versions 2 and 5, and commits after them."""
    table, store = _began(name, properties=properties or None, partition_by=["part"])
    for number in range(8):
        table.append(rows(10 * number, 5, PARTS[number % 3] or "none"), app=("stream", number))
        if number == 3:
            table.delete("id in (1, 2)")
        if number in (1, 4):
            table.checkpoint()
    return store


def _stats_as_struct(name: str) -> Overlay:
    return _checkpointed(name, **{"delta.checkpoint.writeStatsAsJson": "false", "delta.checkpoint.writeStatsAsStruct": "true"})


def _in_parts(name: str) -> Overlay:
    """The newest checkpoint in three parts."""
    store = _checkpointed(name)
    checkpoint, version, whole = _newest_checkpoint(store)
    for part in range(3):
        rows = whole.take(list(range(part, whole.num_rows, 3)))
        store.put(f"_delta_log/{version:020d}.checkpoint.{part + 1:010d}.{3:010d}.parquet", _parquet(rows))
    store.delete(checkpoint)
    hint = {"version": version, "size": whole.num_rows, "parts": 3}
    store.put("_delta_log/_last_checkpoint", json.dumps(hint).encode())
    return store


def _second_edition(name: str, form: str) -> Overlay:
    """The newest checkpoint as a V2 checkpoint with two sidecars."""
    store = _checkpointed(name, **{"delta.feature.v2Checkpoint": "supported"})
    checkpoint, version, whole = _newest_checkpoint(store)
    live = [row for row in whole.to_pylist() if row["add"] or row["remove"]]
    single = [row for row in whole.to_pylist() if not (row["add"] or row["remove"])]
    top = [{"checkpointMetadata": {"version": version, "tags": None}}]
    for number in range(2):
        path = f"{uuid.UUID(int=number + 1)}.parquet"
        data = _parquet(pa.Table.from_pylist(live[number::2], whole.schema.empty_table().select(["add", "remove"]).schema))
        store.put(f"{SIDECAR_FOLDER}/{path}", data)
        top.append({"sidecar": {"path": path, "sizeInBytes": len(data), "modificationTime": 1}})
    top += [{key: value for key, value in row.items() if value is not None} for row in single]
    file = f"_delta_log/{version:020d}.checkpoint.{uuid.UUID(int=99)}.{form}"
    store.put(file, _json_lines(top) if form == "json" else _parquet(_second_edition_rows(top, whole.schema)))
    store.delete(checkpoint)
    store.delete("_delta_log/_last_checkpoint")
    return store


def _second_edition_rows(top: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    expected = pa.schema(
        [
            *(field for field in schema if field.name not in ("add", "remove")),
            ("checkpointMetadata", pa.struct([("version", pa.int64()), ("tags", pa.map_(pa.string(), pa.string()))])),
            ("sidecar", pa.struct([("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64())])),
        ]
    )
    return pa.Table.from_pylist(top, expected)


def _json_lines(actions: list[dict[str, Any]]) -> bytes:
    """Actions as rows of a checkpoint to the lines that a commit would have."""

    def plain(value: Any) -> Any:
        if isinstance(value, list) and value and all(isinstance(item, tuple) for item in value):
            return dict(value)
        if isinstance(value, dict):
            return {
                key: {} if key in ("options", "configuration") and item == [] else plain(item)
                for key, item in value.items()
                if item is not None
            }
        return value

    return b"".join(json.dumps(plain(action), separators=(",", ":")).encode() + b"\n" for action in actions)


def _compacted(name: str) -> Overlay:
    _, store = _lived(name)
    Log(store).compaction(1, 4)
    return store


def _foreign(name: str) -> Overlay:
    """As writers leave it who know no checksums: not of versions, nor of commits, nor of pages."""
    _, store = _lived(name, partition_by=["part"])
    sizes = {}
    for data in [entry.name for entry in store.walk() if kind_of(entry.name) == "data"]:
        rows = pq.read_table(BytesIO(store.get(data)))
        store.put(data, _parquet(rows, write_page_checksum=False))
        sizes[data.rpartition("/")[2]] = len(store.get(data))
    for entry in list(store.walk()):
        kind = kind_of(entry.name)
        if kind == "checksum":
            store.delete(entry.name)
        elif kind == "commit":
            store.put(entry.name, _anonymous(store.get(entry.name), sizes))
    return store


def _anonymous(commit: bytes, sizes: dict[str, int]) -> bytes:
    """A commit without Tahoe's own members, and with these sizes of files."""
    lines = [json.loads(line) for line in commit.splitlines()]
    for line in lines:
        ((kind, value),) = line.items()
        if kind == "commitInfo":
            line[kind] = {member: value[member] for member in ("timestamp", "operation")}
        if kind in ("add", "remove"):
            value["size"] = sizes[unquote(value["path"]).rpartition("/")[2]]
    return b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)


def _newest_checkpoint(store: Overlay) -> tuple[str, int, pa.Table]:
    name = max(name for name in store.names_from("_delta_log") if kind_of(name) == "checkpoint")
    actual = parse(name)
    assert actual is not None
    return name, actual.version, pq.read_table(BytesIO(store.get(name)))


def _parquet(table: pa.Table, *, write_page_checksum: bool = True) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, write_page_checksum=write_page_checksum)
    return bytes(sink.getvalue().to_pybytes())


# Of these the newest checkpoint alone is not as in the table `checkpoint`.
_AS_THE_CLASSIC_ONE = ("commit", "checksum", "data", "hint")
_BUILDERS: dict[str, tuple[Callable[[str], Overlay], dict[str, Any]]] = {
    "plain": (_plain, {}),
    "partitioned": (_partitioned, {"filter": "part is null or id > 28"}),
    "vectors": (_vectors, {}),
    "mapped": (_mapped, {"filter": "part = 'a' and id < 20"}),
    "feed": (_feed, {"feed_from": 0}),
    "tracked": (_tracked, {"tracks_rows": True}),
    "timed": (_timed, {"feed_from": 0}),
    "checkpoint": (_checkpointed, {"old_version": 7}),
    "struct": (_stats_as_struct, {"old_version": 7, "damaged_elsewhere": _AS_THE_CLASSIC_ONE}),
    "parts": (_in_parts, {"old_version": 7, "damaged_elsewhere": (*_AS_THE_CLASSIC_ONE, "checkpoint")}),
    "sidecars": (
        lambda name: _second_edition(name, "parquet"),
        {"old_version": 7, "damaged_elsewhere": (*_AS_THE_CLASSIC_ONE, "checkpoint")},
    ),
    "sidecars-json": (
        lambda name: _second_edition(name, "json"),
        {"old_version": 7, "damaged_elsewhere": (*_AS_THE_CLASSIC_ONE, "checkpoint", "sidecar")},
    ),
    "reused": (
        lambda name: _checkpointed(name, **{"delta.checkpointPolicy": "v2"}),
        {"old_version": 7, "damaged_elsewhere": _AS_THE_CLASSIC_ONE},
    ),
    "compacted": (_compacted, {"old_version": 5}),
    "foreign": (_foreign, {}),
}
VICTIMS = tuple(_BUILDERS)


@cache
def victim(name: str) -> Victim:
    """The table of that name; built once a process."""
    build, asked = _BUILDERS[name]
    store = build(name)
    assert store.head(commit_name(0)) is not None
    return Victim(name, store.contents(), **({"filter": "id between 4 and 16", "old_version": 3} | asked))
