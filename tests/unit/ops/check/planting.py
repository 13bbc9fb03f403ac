"""Creates the tables of planted violations: sound tables of each kind, and changes that make one thing wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

import tahoe
from tahoe.log.files.last_checkpoint import checksum_of_json
from tahoe.ops.rows.insert import WriteOptions
from tahoe.protocol import dv

Plant = Callable[[Path], None]
"""Makes something wrong with the table of a folder."""
Planted = tuple[str, str, Plant, set[str]]
"""The fault in words, the kind of table, the change, and the rules that must report it."""


# -- tables ----------------------------------------------------------------------------------------------------------------


def _rows(*ids: int, day: str = "a") -> pa.Table:
    return pa.table({"id": list(ids), "name": [f"n{each}" for each in ids], "day": [day] * len(ids)})


def _made(path: Path, properties: dict[str, str], *, partitions: Iterable[str] = ("day",)) -> tahoe.Table:
    table = tahoe.Table(str(path))
    table.write(_rows(1, 2, 3), WriteOptions(partition_by=tuple(partitions), properties=properties))
    return table


def _plain(path: Path) -> None:
    table = _made(path, {})
    table.append(_rows(4, 5, day="b"))
    table.delete("id = 4")


def _vectors(path: Path) -> None:
    table = _made(path, {"delta.enableDeletionVectors": "true"})
    table.delete("id = 2")


def _tracked(path: Path) -> None:
    table = _made(path, {"delta.enableRowTracking": "true"})
    table.append(_rows(4, 5, day="b"))


def _timed(path: Path) -> None:
    table = _made(path, {"delta.enableInCommitTimestamps": "true"})
    table.append(_rows(4, day="b"))
    table.append(_rows(5, day="b"))


def _mapped(path: Path) -> None:
    table = _made(path, {"delta.columnMapping.mode": "id"})
    table.append(_rows(4))


def _changes(path: Path) -> None:
    table = _made(path, {"delta.enableChangeDataFeed": "true"}, partitions=())
    table.update({"name": "'new'"}, "id = 1")


def _iceberg(path: Path) -> None:
    table = _made(path, {"delta.enableIcebergCompatV2": "true", "delta.columnMapping.mode": "name"})
    table.append(_rows(4))


def _checkpointed(path: Path) -> None:
    table = _made(path, {"delta.checkpointInterval": "3", "delta.enableDeletionVectors": "true"}, partitions=())
    table.append(_rows(4), app=("app", 7))
    table.delete("id = 2")
    table.append(_rows(5))


def _v2(path: Path) -> None:
    table = _made(path, {"delta.checkpointInterval": "3", "delta.checkpointPolicy": "v2"}, partitions=())
    for each in range(4, 7):
        table.append(_rows(each))


def _v2_classic(path: Path) -> None:
    table = _made(path, {"delta.checkpointInterval": "3", "delta.feature.v2Checkpoint": "supported"}, partitions=())
    for each in range(4, 7):
        table.append(_rows(each))


def _iceberg_later(path: Path) -> None:
    """Its first file is from before anyone asked for Iceberg, and lacks the partition column."""
    table = _made(path, {"delta.columnMapping.mode": "name"})
    table.set_properties({"delta.enableIcebergCompatV2": "true"})
    table.append(_rows(4))


def _iceberg_times(path: Path) -> None:
    properties = {"delta.enableIcebergCompatV2": "true", "delta.columnMapping.mode": "name"}
    at = pa.array([0], pa.timestamp("us", "UTC"))
    tahoe.Table(str(path)).write(pa.table({"at": at}), WriteOptions(properties=properties))


TABLES = {
    made.__name__[1:]: made
    for made in (
        _plain,
        _vectors,
        _tracked,
        _timed,
        _mapped,
        _changes,
        _iceberg,
        _iceberg_later,
        _iceberg_times,
        _checkpointed,
        _v2,
        _v2_classic,
    )
}
SUMMED_UP = ("checkpointed", "v2", "v2_classic")
"""Tables whose checkpoints and checksums are looked at; those of the others go, so that a changed commit breaks nothing but itself."""


# -- how to make something wrong -------------------------------------------------------------------------------------------


def log_of(table: Path) -> Path:
    return table / "_delta_log"


def actions_of(table: Path, version: int) -> list[dict[str, Any]]:
    """A commit's actions; none where there is no such commit yet."""
    commit = log_of(table) / f"{version:020d}.json"
    return [json.loads(line) for line in commit.read_text().splitlines()] if commit.exists() else []


def store(table: Path, version: int, actions: list[dict[str, Any]]) -> None:
    (log_of(table) / f"{version:020d}.json").write_text("".join(json.dumps(action) + "\n" for action in actions))


def first(table: Path, version: int, kind: str) -> dict[str, Any]:
    return next(action[kind] for action in actions_of(table, version) if kind in action)


def edit(version: int, change: Callable[[list[dict[str, Any]]], Any]) -> Plant:
    """A commit's actions, changed in place or replaced."""

    def plant(table: Path) -> None:
        actions = actions_of(table, version)
        changed = change(actions)
        store(table, version, actions if changed is None else changed)

    return plant


def put(version: int, kind: str, **members: Any) -> Plant:
    """Members of the first action of a kind; one that is `...` goes."""

    def change(actions: list[dict[str, Any]]) -> None:
        value = next(action[kind] for action in actions if kind in action)
        value.update(members)
        for name in [name for name, content in members.items() if content is ...]:
            del value[name]

    return edit(version, change)


def say(version: int, *more: dict[str, Any]) -> Plant:
    """More actions at the end of a commit."""
    return edit(version, lambda actions: actions.extend(more))


def configure(version: int, **properties: str) -> Plant:
    """Table properties; `_` replaces a point."""

    def change(actions: list[dict[str, Any]]) -> None:
        content = next(action["metaData"] for action in actions if "metaData" in action)["configuration"]
        content.update({name.replace("__", "."): value for name, value in properties.items()})

    return edit(version, change)


def feature(version: int, *writer: str, reader: Iterable[str] = (), reader_version: int | None = None) -> Plant:
    """A protocol of reader version 1 or 3 and writer version 7 with more features."""

    def change(actions: list[dict[str, Any]]) -> None:
        value = next(action["protocol"] for action in actions if "protocol" in action)
        listed = [*value.get("writerFeatures", ["appendOnly", "invariants"]), *writer]
        value.update(minWriterVersion=7, writerFeatures=listed)
        if reader or value.get("readerFeatures"):
            value.update(minReaderVersion=3, readerFeatures=[*value.get("readerFeatures", []), *reader])
        if reader_version is not None:
            value["minReaderVersion"] = reader_version

    return edit(version, change)


def schema(version: int, change: Callable[[list[dict[str, Any]]], Any]) -> Plant:
    """The top-level fields of a commit's schema."""

    def changed(actions: list[dict[str, Any]]) -> None:
        value = next(action["metaData"] for action in actions if "metaData" in action)
        content = json.loads(value["schemaString"])
        change(content["fields"])
        value["schemaString"] = json.dumps(content)

    return edit(version, changed)


def statistics(version: int, **members: Any) -> Plant:
    """Members of the statistics of a commit's first added file."""

    def change(actions: list[dict[str, Any]]) -> None:
        value = next(action["add"] for action in actions if "add" in action)
        content = {**json.loads(value["stats"]), **members}
        value["stats"] = json.dumps({name: each for name, each in content.items() if each is not ...})

    return edit(version, change)


def both(*plants: Plant) -> Plant:
    """One after the other."""

    def plant(table: Path) -> None:
        for each in plants:
            each(table)

    return plant


def file(pattern: str, change: Callable[[bytes], bytes | None]) -> Plant:
    """The bytes of the first file of a pattern below the table's root; None deletes it."""

    def plant(table: Path) -> None:
        actual = sorted(table.glob(pattern))[0]
        changed = change(actual.read_bytes())
        if changed is None:
            actual.unlink()
        else:
            actual.write_bytes(changed)

    return plant


def checksum(version: int, **members: Any) -> Plant:
    """Members of a version's checksum."""

    def change(data: bytes) -> bytes:
        content = {**json.loads(data), **members}
        return json.dumps({name: each for name, each in content.items() if each is not ...}).encode()

    return file(f"_delta_log/{version:020d}.crc", change)


def checkpoint(change: Callable[[list[dict[str, Any]]], Any], **columns: pa.DataType) -> Plant:
    """The rows of a checkpoint, or of its top level; with columns that are added, or have another type."""

    def plant(table: Path) -> None:
        change_rows(next(iter(sorted(log_of(table).glob("*.checkpoint*.parquet")))), change, columns)

    return plant


def change_rows(found: Path, change: Callable[[list[dict[str, Any]]], Any], columns: dict[str, pa.DataType]) -> None:
    """The rows of a Parquet file, changed in place or replaced."""
    content = pq.read_table(found)
    types = {field.name: field.type for field in content.schema} | columns
    rows = [dict.fromkeys(types) | row for row in content.to_pylist()]
    changed = change(rows)
    pq.write_table(pa.Table.from_pylist(rows if changed is None else changed, schema=pa.schema(list(types.items()))), found)


def sidecar(change: Callable[[list[dict[str, Any]]], Any], **columns: pa.DataType) -> Plant:
    """The rows of a V2 checkpoint's one sidecar; the top level's summary of the sidecar is corrected."""

    def plant(table: Path) -> None:
        (actual,) = (log_of(table) / "_sidecars").glob("*.parquet")
        change_rows(actual, change, columns)
        kinds = pq.read_table(actual).to_pylist()
        size, adds = actual.stat().st_size, sum(row["add"] is not None for row in kinds)
        tags = {"numOfAddFiles": str(adds), "sidecarNumActions": str(len(kinds)), "sidecarSizeInBytes": str(size)}

        def reported(rows: list[dict[str, Any]]) -> None:
            set_members(rows, "sidecar", sizeInBytes=size)
            set_members(rows, "checkpointMetadata", tags=list(tags.items()))

        checkpoint(reported)(table)

    return plant


def rewrite(version: int, pattern: str, **written_as: Any) -> Plant:
    """A commit's one data file, written again with other settings of Parquet; the commit says its new size."""

    def plant(table: Path) -> None:
        (actual,) = table.glob(pattern)
        pq.write_table(pq.read_table(actual, partitioning=None), actual, **written_as)
        put(version, "add", size=actual.stat().st_size)(table)

    return plant


def pointer(**members: Any) -> Plant:
    """Members of `_last_checkpoint`, with a recomputed checksum if none is given."""

    def change(data: bytes) -> bytes:
        content = {**json.loads(data), **members}
        if "checksum" not in members:
            content["checksum"] = checksum_of_json(content)
        return json.dumps(content).encode()

    return file("_delta_log/_last_checkpoint", change)


def compaction(table: Path, first: int, last: int, actions: Iterable[dict[str, Any]]) -> None:
    name = f"{first:020d}.{last:020d}.compacted.json"
    (log_of(table) / name).write_text("".join(json.dumps(action) + "\n" for action in actions))


def set_members(rows: list[dict[str, Any]], kind: str, **members: Any) -> None:
    next(row[kind] for row in rows if row[kind] is not None).update(members)


TRACKING = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["domainMetadata", "rowTracking"]}
TRACKED = {
    "delta__enableRowTracking": "true",
    "delta__rowTracking__materializedRowIdColumnName": "_row-id",
    "delta__rowTracking__materializedRowCommitVersionColumnName": "_version",
}
ADD = {"path": "new.parquet", "partitionValues": {"day": "a"}, "size": 1, "modificationTime": 1, "dataChange": True}
REMOVE = {"path": "old.parquet", "dataChange": True, "deletionTimestamp": 1}
INTEGER = {"name": "more", "type": "integer", "nullable": True, "metadata": {}}


def twice(kind: str) -> Callable[[list[dict[str, Any]]], Any]:
    return lambda actions: actions.append(next(action for action in actions if kind in action))


def mapped_as(number: int, physical_name: str) -> dict[str, Any]:
    return {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical_name}


def type_change(field: dict[str, Any], change: dict[str, str]) -> None:
    field["metadata"]["delta.typeChanges"] = [change]


def as_if_given_a_vector(actions: list[dict[str, Any]]) -> None:
    """As if the update had only given the file a vector; the file of the old path is there, the vector is not looked for."""
    add, remove = (next(action[kind] for action in actions if kind in action) for kind in ("add", "remove"))
    remove.update(
        path=add["path"], deletionVector={"storageType": "u", "pathOrInlineDv": "x" * 20, "sizeInBytes": 1, "cardinality": 1}
    )


def enable_times(table: Path) -> None:
    metadata = first(table, 0, "metaData")
    metadata["configuration"]["delta.enableInCommitTimestamps"] = "true"
    for version in (1, 2):
        put(version, "commitInfo", inCommitTimestamp=1_000 * version)(table)
    say(1, {"metaData": metadata})(table)


def add_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return next(row["add"] for row in rows if row["add"] is not None)


def without_feature(actions: list[dict[str, Any]], name: str) -> None:
    for action in actions:
        for member in ("readerFeatures", "writerFeatures"):
            if action.get("protocol") and action["protocol"].get(member):
                action["protocol"][member] = [each for each in action["protocol"][member] if each != name]


def null_in(table: Path, pattern: str) -> None:
    actual = sorted(table.glob(pattern))[0]
    content = pq.read_table(actual, partitioning=None)
    values = pa.array([None, *content["id"].to_pylist()[1:]], pa.int64())
    pq.write_table(content.set_column(content.schema.get_field_index("id"), "id", values), actual)


def vector(actions: list[dict[str, Any]], **members: Any) -> None:
    next(action["add"] for action in actions if "add" in action)["deletionVector"].update(members)


def without_column(table: Path, pattern: str, column: str) -> None:
    actual = sorted(table.glob(pattern))[0]
    pq.write_table(pq.read_table(actual).drop_columns([column]), actual)


def configured(table: Path, **properties: str) -> dict[str, Any]:
    """The first metadata with more properties."""
    metadata = first(table, 0, "metaData")
    metadata["configuration"].update({name.replace("__", "."): value for name, value in properties.items()})
    return metadata


def with_fields(table: Path, change: Callable[[list[dict[str, Any]]], Any]) -> dict[str, Any]:
    """The first metadata with other top-level fields."""
    metadata = first(table, 0, "metaData")
    content = json.loads(metadata["schemaString"])
    change(content["fields"])
    return {**metadata, "schemaString": json.dumps(content)}


def without_id(actions: list[dict[str, Any]]) -> None:
    """As if the writer had given its commit no id."""
    del next(action["commitInfo"] for action in actions if "commitInfo" in action)["txnId"]


def inline_vector(*positions: int) -> dict[str, Any]:
    """The descriptor of an inline vector."""
    made = dv.inline_descriptor(BitMap64(positions))
    return {
        "storageType": made.storage_type,
        "pathOrInlineDv": made.path_or_inline_dv,
        "sizeInBytes": made.size_in_bytes,
        "cardinality": made.cardinality,
    }


def in_a_folder_of_another_name(table: Path) -> None:
    """The vector's file goes into a folder whose name has a point, and the log says so."""
    (actual,) = table.glob("deletion_vector_*.bin")
    (table / "a.b").mkdir()
    actual.rename(table / "a.b" / actual.name)
    content = first(table, 1, "add")["deletionVector"]["pathOrInlineDv"]
    edit(1, lambda actions: vector(actions, pathOrInlineDv=f"a.b{content}"))(table)


def renamed_checkpoint(name: str) -> Plant:
    """The one checkpoint under another name."""

    def plant(table: Path) -> None:
        (actual,) = log_of(table).glob("*.checkpoint.parquet")
        actual.rename(actual.with_name(name))

    return plant


def in_two_parts(table: Path) -> None:
    """The one checkpoint as two files, the second with its last row."""
    (actual,) = log_of(table).glob("*.checkpoint.parquet")
    content = pq.read_table(actual)
    actual.unlink()
    for part, rows in ((1, content[:-1]), (2, content[-1:])):
        pq.write_table(rows, log_of(table) / f"{3:020d}.checkpoint.{part:010d}.{2:010d}.parquet")


def one_file_beside_the_sidecar(table: Path) -> None:
    """A file action moves from the sidecar to the top level."""
    (actual,) = (log_of(table) / "_sidecars").glob("*.parquet")
    kind = pq.read_schema(actual).field("add").type
    moved: list[dict[str, Any]] = []
    sidecar(lambda rows: moved.append(rows.pop()))(table)

    def change(rows: list[dict[str, Any]]) -> None:
        set_members(rows, "checkpointMetadata", tags=[])
        rows.extend(moved)

    checkpoint(change, add=kind)(table)
