"""One table for each violation: made by Tahoe, one thing in it made wrong, and exactly the rules that say so."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tahoe
from tahoe.log.files.last_checkpoint import checksum_of_json
from tahoe.ops.rows.insert import WriteOptions
from tahoe.ops.strict.strict_check import ALL_RULES, strict_violations

pytestmark = pytest.mark.damages_tables

Plant = Callable[[Path], None]


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


TABLES = {
    made.__name__[1:]: made for made in (_plain, _vectors, _tracked, _timed, _mapped, _changes, _iceberg, _checkpointed, _v2)
}
SUMMED_UP = ("checkpointed", "v2")
"""Tables whose checkpoints and checksums are looked at; those of the others go, so that a changed commit breaks nothing but itself."""


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Each kind of table, made once and copied for each violation."""
    folder = tmp_path_factory.mktemp("whole")
    for name, make in TABLES.items():
        make(folder / name)
        if name not in SUMMED_UP:
            for file in [*_log(folder / name).glob("*.crc"), *_log(folder / name).glob("*checkpoint*")]:
                file.unlink()
    return {name: folder / name for name in TABLES}


# -- how to make something wrong -------------------------------------------------------------------------------------------


def _log(table: Path) -> Path:
    return table / "_delta_log"


def _actions(table: Path, version: int) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (_log(table) / f"{version:020d}.json").read_text().splitlines()]


def _store(table: Path, version: int, actions: list[dict[str, Any]]) -> None:
    (_log(table) / f"{version:020d}.json").write_text("".join(json.dumps(action) + "\n" for action in actions))


def _first(table: Path, version: int, kind: str) -> dict[str, Any]:
    return next(action[kind] for action in _actions(table, version) if kind in action)


def edit(version: int, change: Callable[[list[dict[str, Any]]], Any]) -> Plant:
    """A commit's actions, changed in place or replaced."""

    def plant(table: Path) -> None:
        actions = _actions(table, version)
        changed = change(actions)
        _store(table, version, actions if changed is None else changed)

    return plant


def put(version: int, kind: str, **members: Any) -> Plant:
    """Members of the first action of a kind; one that is `...` goes."""

    def change(actions: list[dict[str, Any]]) -> None:
        value = next(action[kind] for action in actions if kind in action)
        value.update(members)
        for name in [name for name, held in members.items() if held is ...]:
            del value[name]

    return edit(version, change)


def say(version: int, *more: dict[str, Any]) -> Plant:
    """More actions at the end of a commit."""
    return edit(version, lambda actions: actions.extend(more))


def configure(version: int, **properties: str) -> Plant:
    """Table properties; `_` stands for a point."""

    def change(actions: list[dict[str, Any]]) -> None:
        held = next(action["metaData"] for action in actions if "metaData" in action)["configuration"]
        held.update({name.replace("__", "."): value for name, value in properties.items()})

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
        held = json.loads(value["schemaString"])
        change(held["fields"])
        value["schemaString"] = json.dumps(held)

    return edit(version, changed)


def statistics(version: int, **members: Any) -> Plant:
    """Members of the statistics of a commit's first added file."""

    def change(actions: list[dict[str, Any]]) -> None:
        value = next(action["add"] for action in actions if "add" in action)
        held = {**json.loads(value["stats"]), **members}
        value["stats"] = json.dumps({name: each for name, each in held.items() if each is not ...})

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
        found = sorted(table.glob(pattern))[0]
        changed = change(found.read_bytes())
        if changed is None:
            found.unlink()
        else:
            found.write_bytes(changed)

    return plant


def checksum(version: int, **members: Any) -> Plant:
    """Members of a version's checksum."""

    def change(data: bytes) -> bytes:
        held = {**json.loads(data), **members}
        return json.dumps({name: each for name, each in held.items() if each is not ...}).encode()

    return file(f"_delta_log/{version:020d}.crc", change)


def checkpoint(change: Callable[[list[dict[str, Any]]], Any]) -> Plant:
    """The rows of a classic checkpoint."""

    def plant(table: Path) -> None:
        found = sorted(_log(table).glob("*.checkpoint*.parquet"))[0]
        held = pq.read_table(found)
        rows = held.to_pylist()
        changed = change(rows)
        pq.write_table(pa.Table.from_pylist(rows if changed is None else changed, schema=held.schema), found)

    return plant


def pointer(**members: Any) -> Plant:
    """Members of `_last_checkpoint`, with the checksum made anew unless it is given."""

    def change(data: bytes) -> bytes:
        held = {**json.loads(data), **members}
        if "checksum" not in members:
            held["checksum"] = checksum_of_json(held)
        return json.dumps(held).encode()

    return file("_delta_log/_last_checkpoint", change)


def _compaction(table: Path, first: int, last: int, actions: Iterable[dict[str, Any]]) -> None:
    name = f"{first:020d}.{last:020d}.compacted.json"
    (_log(table) / name).write_text("".join(json.dumps(action) + "\n" for action in actions))


def _set(rows: list[dict[str, Any]], kind: str, **members: Any) -> None:
    next(row[kind] for row in rows if row[kind] is not None).update(members)


ADD = {"path": "new.parquet", "partitionValues": {"day": "a"}, "size": 1, "modificationTime": 1, "dataChange": True}
REMOVE = {"path": "old.parquet", "dataChange": True, "deletionTimestamp": 1}
INTEGER = {"name": "more", "type": "integer", "nullable": True, "metadata": {}}


def _twice(kind: str) -> Callable[[list[dict[str, Any]]], Any]:
    return lambda actions: actions.append(next(action for action in actions if kind in action))


def _mapping(number: int, physical_name: str) -> dict[str, Any]:
    return {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical_name}


def _typed(field: dict[str, Any], change: dict[str, str]) -> None:
    field["metadata"]["delta.typeChanges"] = [change]


# -- the violations --------------------------------------------------------------------------------------------------------

PLANTED: list[tuple[str, str, Plant, set[str]]] = [
    # the log's folder
    ("a gap in the log", "plain", file("_delta_log/*1.json", lambda _: None), {"versions-are-contiguous"}),
    (
        "a short name",
        "plain",
        lambda table: shutil.copy(_log(table) / f"{0:020d}.json", _log(table) / "7.json"),
        {"names-have-twenty-digits"},
    ),
    (
        "no checkpoint of what is gone",
        "plain",
        file("_delta_log/*0.json", lambda _: None),
        {"what-is-gone-is-in-a-checkpoint"},
    ),
    (
        "a checksum of a version that is not there",
        "plain",
        lambda table: (_log(table) / f"{9:020d}.crc").write_text("{}"),
        {"checksums-follow-their-commits"},
    ),
    (
        "a checkpoint of a version that is not there",
        "checkpointed",
        lambda table: shutil.copy(_log(table) / f"{3:020d}.checkpoint.parquet", _log(table) / f"{9:020d}.checkpoint.parquet"),
        {"checkpoints-follow-their-commits"},
    ),
    ("a pointer to no checkpoint", "checkpointed", pointer(version=2), {"the-pointer-names-a-checkpoint"}),
    ("a pointer with parts", "checkpointed", pointer(parts=4), {"the-pointer-names-a-checkpoint"}),
    ("a pointer's checksum", "checkpointed", pointer(checksum="0" * 32), {"the-pointer-has-the-right-checksum"}),
    ("a pointer without a size", "checkpointed", pointer(size="many"), {"the-pointer-has-its-members"}),
    # a commit
    (
        "a line that is no JSON",
        "plain",
        file("_delta_log/*1.json", lambda data: data + b"{half\n"),
        {"a-line-is-one-action"},
    ),
    ("two actions in a line", "plain", say(1, {"txn": {}, "add": {}}), {"a-line-is-one-action"}),
    (
        "no metadata at the beginning",
        "plain",
        edit(0, lambda actions: [action for action in actions if "metaData" not in action]),
        {"the-first-version-has-metadata"},
    ),
    ("two metadata actions", "plain", edit(0, _twice("metaData")), {"one-metadata-action"}),
    ("two protocol actions", "plain", edit(0, _twice("protocol")), {"one-protocol-action"}),
    (
        "two transactions of an application",
        "plain",
        say(1, {"txn": {"appId": "a", "version": 1}}, {"txn": {"appId": "a", "version": 2}}),
        {"one-transaction-of-an-application"},
    ),
    ("a domain twice", "tracked", edit(1, _twice("domainMetadata")), {"one-action-of-a-domain"}),
    ("a path twice", "plain", edit(1, _twice("add")), {"a-path-occurs-once"}),
    (
        "a vector's file that is not removed",
        "vectors",
        edit(1, lambda actions: [action for action in actions if "remove" not in action]),
        {"a-live-path-is-removed-before-it-is-added"},
    ),
    ("a sidecar in a commit", "plain", say(1, {"sidecar": {"path": "a"}}), {"checkpoint-actions-stay-in-checkpoints"}),
    ("an append-only table", "plain", configure(0, delta__appendOnly="true"), {"append-only-tables-lose-nothing"}),
    ("new data that says it is none", "plain", put(1, "add", dataChange=False), {"what-changes-no-data-only-rearranges"}),
    ("an add without a size", "plain", put(2, "add", size=...), {"add-has-its-members", "live-files-have-their-size"}),
    ("a remove without dataChange", "plain", put(2, "remove", dataChange=...), {"remove-has-its-members"}),
    ("a txn without a version", "plain", say(1, {"txn": {"appId": "a"}}), {"txn-has-its-members"}),
    (
        "a protocol without a reader version",
        "plain",
        put(0, "protocol", minReaderVersion=...),
        {"protocol-has-its-members", "versions-are-known"},
    ),
    ("metadata without a configuration", "plain", put(0, "metaData", configuration=...), {"meta-data-has-its-members"}),
    (
        "a domain that does not say whether it goes",
        "tracked",
        put(1, "domainMetadata", removed=...),
        {"domain-metadata-has-its-members"},
    ),
    (
        "a domain without the feature",
        "plain",
        say(1, {"domainMetadata": {"domain": "mine", "configuration": "", "removed": False}}),
        {"domains-need-the-feature"},
    ),
    # change files
    ("a change file that changes data", "changes", put(1, "cdc", dataChange=True), {"change-files-change-no-data"}),
    ("a change file without a size", "changes", put(1, "cdc", size=...), {"cdc-has-its-members", "change-files-have-their-size"}),
    (
        "a change file elsewhere",
        "changes",
        both(
            lambda table: shutil.copy(sorted(table.glob("_change_data/*"))[0], table / "moved.parquet"),
            put(1, "cdc", path="moved.parquet"),
        ),
        {"change-files-stand-in-their-folder"},
    ),
    (
        "a change file without the feed",
        "changes",
        both(
            configure(0, delta__enableChangeDataFeed="false"),
            put(0, "protocol", minReaderVersion=1, minWriterVersion=2, writerFeatures=...),
        ),
        {"change-files-need-the-feature"},
    ),
    (
        "a change file that does not tell the changes",
        "changes",
        lambda table: _without_column(table, "_change_data/*.parquet", "_change_type"),
        {"change-files-tell-the-type-of-change", "change-files-have-their-size"},
    ),
    # times
    (
        "provenance at the end",
        "timed",
        edit(1, lambda actions: actions.append(actions.pop(0))),
        {"commit-info-comes-first"},
    ),
    ("a commit without its time", "timed", put(2, "commitInfo", inCommitTimestamp=...), {"commit-info-has-its-time"}),
    ("a time that goes back", "timed", put(2, "commitInfo", inCommitTimestamp=1), {"in-commit-timestamps-increase"}),
    # protocol
    ("an unknown version", "plain", put(0, "protocol", minWriterVersion=8), {"versions-are-known"}),
    (
        "reader features without writer features",
        "plain",
        put(0, "protocol", minReaderVersion=3, readerFeatures=[]),
        {"reader-features-need-writer-features"},
    ),
    ("features that are not listed", "plain", put(0, "protocol", minWriterVersion=7), {"writer-features-are-listed"}),
    ("features that may not be listed", "plain", put(0, "protocol", readerFeatures=[]), {"reader-features-are-listed"}),
    (
        "a feature of readers alone",
        "plain",
        both(feature(0, reader=["v2Checkpoint"])),
        {"reader-features-are-writer-features"},
    ),
    (
        "a feature of readers that these are not told",
        "plain",
        feature(0, "vacuumProtocolCheck"),
        {"features-stand-in-the-right-lists"},
    ),
    ("a feature that nobody knows", "plain", feature(0, "timeMachine"), {"feature-names-are-known"}),
    ("a feature twice", "plain", feature(0, "appendOnly"), {"features-are-listed-once"}),
    (
        "a feature without what it requires",
        "plain",
        feature(0, "rowTracking"),
        {"required-features-are-supported", *("added-files-have-a-base-row-id", "added-files-have-a-row-commit-version")},
    ),
    (
        "a property without its feature",
        "plain",
        configure(0, delta__enableInCommitTimestamps="true"),
        {"properties-in-use-have-their-feature"},
    ),
    (
        "a type without its feature",
        "plain",
        schema(0, lambda fields: fields.append({**INTEGER, "type": "timestamp_ntz"})),
        {"columns-in-use-have-their-feature"},
    ),
    (
        "tracking that is suspended",
        "tracked",
        configure(0, delta__rowTrackingSuspended="true"),
        {"row-tracking-is-not-suspended-and-enabled"},
    ),
    (
        "a materialised column of the table",
        "tracked",
        configure(0, delta__rowTracking__materializedRowIdColumnName="id"),
        {"row-tracking-names-its-columns"},
    ),
    # schema
    ("files that are not Parquet", "plain", put(0, "metaData", format={"provider": "orc", "options": {}}), {"files-are-parquet"}),
    (
        "a column that does not say whether it is nullable",
        "plain",
        schema(0, lambda fields: fields[1].pop("nullable")),
        {"fields-have-their-members"},
    ),
    (
        "an unknown type",
        "plain",
        schema(0, lambda fields: fields.append({**INTEGER, "type": "decimal(40,2)"})),
        {"types-are-known"},
    ),
    (
        "one name in two casings",
        "plain",
        schema(0, lambda fields: fields.append({**INTEGER, "name": "ID"})),
        {"column-names-are-unique"},
    ),
    (
        "a partition column that is none",
        "plain",
        put(0, "metaData", partitionColumns=["day", "month"]),
        {"partition-columns-are-columns", "files-have-a-value-of-each-partition-column"},
    ),
    (
        "an id twice",
        "mapped",
        schema(0, lambda fields: fields.append({**INTEGER, "type": "long", "metadata": _mapping(1, "other")})),
        {"column-ids-are-unique"},
    ),
    (
        "a highest id that is too low",
        "mapped",
        configure(0, delta__columnMapping__maxColumnId="1"),
        {"the-highest-id-is-tracked"},
    ),
    (
        "a column without a physical name",
        "mapped",
        schema(0, lambda fields: fields.append({**INTEGER, "metadata": {"delta.columnMapping.id": 3_000}})),
        {"mapped-columns-have-physical-names", "the-highest-id-is-tracked"},
    ),
    (
        "a change of type that is no widening",
        "plain",
        both(
            feature(0, "typeWidening", reader=["typeWidening"]),
            schema(0, lambda fields: _typed(fields[0], {"fromType": "string", "toType": "long"})),
        ),
        {"type-changes-are-told-right"},
    ),
    (
        "an identity column that stands still",
        "plain",
        both(
            feature(0, "identityColumns"),
            schema(
                0,
                lambda fields: fields[0]["metadata"].update(
                    {"delta.identity.start": 1, "delta.identity.step": 0, "delta.identity.allowExplicitInsert": True}
                ),
            ),
        ),
        {"identity-columns-have-start-and-step"},
    ),
    # files
    ("a path out of the table", "plain", put(2, "remove", path="../../etc/passwd"), {"paths-are-encoded-and-lead-to-files"}),
    (
        "a data file in a hidden folder",
        "plain",
        say(2, {"add": {**ADD, "path": "_hidden/a.parquet"}}),
        {"data-files-stand-in-visible-folders", "live-files-are-there"},
    ),
    (
        "a partition value of another name",
        "plain",
        put(1, "add", partitionValues={"Day": "b"}),
        {"files-have-a-value-of-each-partition-column"},
    ),
    (
        "a partition value that cannot be read",
        "plain",
        schema(0, lambda fields: fields[2].update(type="date")),
        {"partition-values-can-be-read"},
    ),
    ("statistics that are no JSON", "plain", put(1, "add", stats="{"), {"statistics-are-an-object"}),
    (
        "a negative count",
        "plain",
        statistics(0, numRecords=-1, nullCount={}),
        {"record-counts-are-counts", "record-counts-are-those-of-files", "statistics-hold-for-the-rows"},
    ),
    (
        "more nulls than rows",
        "plain",
        statistics(0, nullCount={"id": 9, "name": 0}),
        {"null-counts-are-within-the-records", "statistics-hold-for-the-rows"},
    ),
    (
        "a minimum above the maximum",
        "plain",
        statistics(0, minValues={"id": 9}),
        {"minima-do-not-exceed-maxima", "statistics-hold-for-the-rows"},
    ),
    ("a false maximum", "plain", statistics(0, maxValues={"id": 2}), {"statistics-hold-for-the-rows"}),
    (
        "a false row count",
        "plain",
        statistics(0, numRecords=4),
        {"record-counts-are-those-of-files", "statistics-hold-for-the-rows"},
    ),
    ("a missing data file", "plain", file("day=a/*.parquet", lambda _: None), {"live-files-are-there"}),
    ("a longer data file", "plain", file("day=a/*.parquet", lambda data: data + data), {"live-files-have-their-size"}),
    (
        "a column of another type",
        "plain",
        schema(0, lambda fields: fields[0].update(type="string")),
        {"columns-have-the-types-of-the-schema"},
    ),
    # vectors
    (
        "a vector without the feature",
        "vectors",
        both(
            put(0, "protocol", readerFeatures=[], writerFeatures=["appendOnly", "invariants"]),
            configure(0, delta__enableDeletionVectors="false"),
        ),
        {"vectors-need-the-feature"},
    ),
    (
        "a vector that is not asked for",
        "vectors",
        configure(0, delta__enableDeletionVectors="false"),
        {"new-vectors-are-allowed"},
    ),
    ("a vector and no row count", "vectors", statistics(1, numRecords=...), {"files-with-vectors-tell-their-records"}),
    (
        "a vector of another cardinality",
        "vectors",
        edit(1, lambda actions: _vector(actions, cardinality=2)),
        {"vectors-can-be-read"},
    ),
    (
        "a vector of more rows than there are",
        "vectors",
        edit(1, lambda actions: _vector(actions, cardinality=30)),
        {"vectors-can-be-read", "cardinalities-are-within-the-records"},
    ),
    (
        "a storage type that is none",
        "vectors",
        edit(1, lambda actions: _vector(actions, storageType="x")),
        {"storage-types-are-known", "vectors-can-be-read"},
    ),
    (
        "a descriptor without a size",
        "vectors",
        edit(1, lambda actions: _vector(actions, sizeInBytes=None)),
        {"deletion-vector-has-its-members", "vectors-can-be-read", "vector-files-have-their-version"},
    ),
    (
        "a damaged vector file",
        "vectors",
        file("deletion_vector*.bin", lambda data: b"\2" + data[1:]),
        {"vector-files-have-their-version", "vectors-can-be-read"},
    ),
    (
        "a flipped bit in a vector",
        "vectors",
        file("deletion_vector*.bin", lambda data: data[:-6] + bytes([data[-6] ^ 1]) + data[-5:]),
        {"vectors-can-be-read", "vector-files-have-their-version"},
    ),
    # row ids
    ("a file without row ids", "tracked", put(1, "add", baseRowId=...), {"added-files-have-a-base-row-id"}),
    ("a file of another version", "tracked", put(1, "add", defaultRowCommitVersion=0), {"added-files-have-a-row-commit-version"}),
    ("row ids given twice", "tracked", put(1, "add", baseRowId=0), {"new-row-ids-are-beyond-the-mark", "row-ids-are-given-once"}),
    (
        "a high-water mark that sinks",
        "tracked",
        put(1, "domainMetadata", configuration='{"rowIdHighWaterMark":1}'),
        {"the-high-water-mark-never-sinks", "the-high-water-mark-covers-the-commit"},
    ),
    (
        "clustering by a column that is not there",
        "tracked",
        say(
            1,
            {
                "domainMetadata": {
                    "domain": "delta.clustering",
                    "configuration": '{"clusteringColumns":[["x"]]}',
                    "removed": False,
                }
            },
        ),
        {"clustering-columns-are-columns"},
    ),
    ("clustering and partitions", "tracked", feature(0, "clustering"), {"clustered-tables-have-no-partitions"}),
    # Iceberg
    (
        "Iceberg without column mapping",
        "iceberg",
        configure(0, delta__columnMapping__mode="none"),
        {"iceberg-needs-column-mapping", "files-have-a-value-of-each-partition-column", "partition-columns-are-materialised"},
    ),
    (
        "Iceberg and vectors",
        "iceberg",
        both(
            feature(0, "deletionVectors", reader=["deletionVectors", "columnMapping"]),
            configure(0, delta__enableDeletionVectors="true"),
        ),
        {"iceberg-allows-no-vectors"},
    ),
    (
        "Iceberg without a row count",
        "iceberg",
        statistics(0, numRecords=...),
        {"iceberg-files-tell-their-records"},
    ),
    (
        "Iceberg asked for and not promised",
        "plain",
        configure(0, delta__universalFormat__enabledFormats="iceberg"),
        {"uniform-needs-iceberg-compatibility"},
    ),
    # checksums
    ("a checksum of other files", "checkpointed", checksum(3, numFiles=9), {"checksums-count-the-files"}),
    ("a checksum of other vectors", "checkpointed", checksum(3, numDeletedRecordsOpt=9), {"checksums-count-the-vectors"}),
    ("a checksum without a protocol", "checkpointed", checksum(3, protocol=...), {"checksums-have-their-members"}),
    ("a checksum with a time", "checkpointed", checksum(3, inCommitTimestampOpt=5), {"checksums-have-the-time"}),
    ("a checksum of another transaction", "checkpointed", checksum(3, txnId="other"), {"checksums-have-the-commits-id"}),
    (
        "a checksum of other transactions",
        "checkpointed",
        checksum(3, setTransactions=[{"appId": "app", "version": 8}]),
        {"checksums-hold-the-transactions"},
    ),
    (
        "a checksum with another histogram",
        "checkpointed",
        checksum(3, fileSizeHistogram={"sortedBinBoundaries": [0], "fileCounts": [9], "totalBytes": [9]}),
        {"size-histograms-are-right"},
    ),
    (
        "a checksum with a domain",
        "checkpointed",
        checksum(3, domainMetadata=[{"domain": "mine", "configuration": "", "removed": False}]),
        {"checksums-hold-the-domains"},
    ),
    # checkpoints
    (
        "a checkpoint that lacks a file",
        "checkpointed",
        checkpoint(lambda rows: rows.remove(next(row for row in rows if row["add"] is not None))),
        {"checkpoints-hold-the-live-files"},
    ),
    (
        "a checkpoint that has a file twice",
        "checkpointed",
        checkpoint(lambda rows: rows.append(next(row for row in rows if row["add"] is not None))),
        {"checkpoints-hold-the-live-files"},
    ),
    (
        "a checkpoint that says another size",
        "checkpointed",
        checkpoint(lambda rows: _set(rows, "add", size=1)),
        {"checkpoints-say-the-same-of-files"},
    ),
    (
        "a checkpoint without a protocol",
        "checkpointed",
        checkpoint(lambda rows: [row for row in rows if row["protocol"] is None]),
        {"checkpoints-have-protocol-and-metadata"},
    ),
    (
        "a checkpoint of other metadata",
        "checkpointed",
        checkpoint(lambda rows: _set(rows, "metaData", id="other")),
        {"checkpoints-repeat-the-settings"},
    ),
    (
        "a checkpoint of another transaction",
        "checkpointed",
        checkpoint(lambda rows: _set(rows, "txn", version=6)),
        {"checkpoints-hold-the-transactions"},
    ),
    (
        "a checkpoint that cannot be read",
        "checkpointed",
        file("_delta_log/*.checkpoint.parquet", lambda data: data[: len(data) // 2]),
        {"checkpoints-can-be-read"},
    ),
    (
        "a V2 checkpoint of another version",
        "v2",
        checkpoint(lambda rows: _set(rows, "checkpointMetadata", version=7)),
        {"v2-checkpoints-have-one-metadata"},
    ),
    (
        "a missing sidecar",
        "v2",
        file("_delta_log/_sidecars/*.parquet", lambda _: None),
        {"sidecars-are-there", "checkpoints-hold-the-live-files"},
    ),
    # compactions
    (
        "a compaction that keeps provenance",
        "plain",
        lambda table: _compaction(table, 0, 1, [*_actions(table, 0), *_actions(table, 1)]),
        {"compactions-keep-no-provenance"},
    ),
    (
        "a compaction that lacks a file",
        "plain",
        lambda table: _compaction(table, 0, 1, [each for each in _actions(table, 0) if "commitInfo" not in each]),
        {"compactions-say-what-their-commits-say"},
    ),
    # what stands in few tables
    (
        "a compaction that goes too far",
        "plain",
        lambda table: _compaction(table, 1, 9, []),
        {"compactions-cover-commits-that-there-were"},
    ),
    (
        "a compaction with a line that is none",
        "plain",
        both(
            lambda table: _compaction(
                table, 1, 2, [each for v in (1, 2) for each in _actions(table, v) if "commitInfo" not in each]
            ),
            file("_delta_log/*.compacted.json", lambda data: data + b"{\n"),
        ),
        {"compactions-are-lines-of-actions"},
    ),
    ("an action that is a list", "plain", say(1, {"txn": []}), {"actions-are-objects"}),
    (
        "an update that does not tell its changes",
        "changes",
        both(
            edit(1, lambda actions: [each for each in actions if "cdc" not in each]),
            edit(1, lambda actions: _same_path(actions)),
        ),
        {"updated-files-tell-their-changes"},
    ),
    (
        "times since when nobody knows",
        "plain",
        both(
            feature(0, "inCommitTimestamp"),
            lambda table: _enable_times(table),
        ),
        {"enablement-of-timestamps-is-told"},
    ),
    (
        "an inline vector with an offset",
        "vectors",
        edit(1, lambda actions: _vector(actions, offset=-1)),
        {"inline-vectors-have-no-offset", "vectors-can-be-read", "vector-files-have-their-version"},
    ),
    (
        "a file whose row ids change",
        "tracked",
        lambda table: say(1, {"remove": {"path": _first(table, 0, "add")["path"], "dataChange": True, "baseRowId": 77}})(table),
        {"files-keep-their-row-ids"},
    ),
    (
        "a schema that is a list",
        "plain",
        put(0, "metaData", schemaString="[]", partitionColumns=[]),
        {"the-schema-is-a-struct", "files-have-a-value-of-each-partition-column"},
    ),
    ("a mapping mode that is none", "mapped", configure(0, delta__columnMapping__mode="position"), {"the-mapping-mode-is-known"}),
    (
        "a column without an id",
        "mapped",
        schema(0, lambda fields: fields.append({**INTEGER, "metadata": {"delta.columnMapping.physicalName": "other"}})),
        {"mapped-columns-have-ids"},
    ),
    (
        "a physical name twice",
        "mapped",
        both(
            schema(
                0,
                lambda fields: fields.append(
                    {**fields[0], "name": "again", "metadata": {**fields[0]["metadata"], "delta.columnMapping.id": 9}}
                ),
            ),
            configure(0, delta__columnMapping__maxColumnId="9"),
        ),
        {"physical-field-paths-are-unique", "columns-of-files-have-ids"},
    ),
    (
        "an invariant that is none",
        "plain",
        schema(0, lambda fields: fields[0]["metadata"].update({"delta.invariants": "id > 0"})),
        {"invariants-are-expressions"},
    ),
    (
        "a generation expression that is a number",
        "plain",
        both(
            feature(0, "generatedColumns"),
            schema(0, lambda fields: fields[0]["metadata"].update({"delta.generationExpression": 1})),
        ),
        {"generation-expressions-are-texts"},
    ),
    (
        "an empty constraint",
        "plain",
        both(feature(0, "checkConstraints"), configure(0, delta__constraints__positive=" ")),
        {"constraints-are-named-expressions"},
    ),
    (
        "an array of void",
        "plain",
        schema(
            0, lambda fields: fields.append({**INTEGER, "type": {"type": "array", "elementType": "void", "containsNull": True}})
        ),
        {"void-stands-alone"},
    ),
    (
        "two versions for Iceberg",
        "iceberg",
        both(feature(0, "icebergCompatV3", "rowTracking", "domainMetadata"), configure(0, delta__enableIcebergCompatV3="true")),
        {"one-iceberg-version-is-active", "added-files-have-a-base-row-id", "added-files-have-a-row-commit-version"},
    ),
    (
        "a type that Iceberg has not",
        "iceberg",
        both(
            schema(0, lambda fields: fields.append({**INTEGER, "type": "void", "metadata": _mapping(9, "other")})),
            configure(0, delta__columnMapping__maxColumnId="9"),
        ),
        {"iceberg-types-are-allowed"},
    ),
    (
        "an element without an id",
        "iceberg",
        both(
            schema(
                0,
                lambda fields: fields.append(
                    {
                        **INTEGER,
                        "type": {"type": "array", "elementType": "long", "containsNull": True},
                        "metadata": _mapping(9, "other"),
                    }
                ),
            ),
            configure(0, delta__columnMapping__maxColumnId="9"),
        ),
        {"elements-keys-and-values-have-ids"},
    ),
    (
        "a checkpoint with a file that has no path",
        "checkpointed",
        checkpoint(lambda rows: _set(rows, "add", modificationTime=None)),
        {"checkpoint-files-have-their-members", "checkpoints-say-the-same-of-files"},
    ),
    (
        "a tombstone of a live file",
        "checkpointed",
        checkpoint(lambda rows: _set(rows, "remove", **{name: _add_of(rows)[name] for name in ("path", "deletionVector")})),
        {"tombstones-are-not-live", "tombstones-were-removed"},
    ),
    (
        "a tombstone that no commit made",
        "checkpointed",
        checkpoint(lambda rows: _set(rows, "remove", path="never.parquet")),
        {"tombstones-were-removed"},
    ),
    (
        "a checkpoint without lists of features",
        "checkpointed",
        checkpoint(lambda rows: _set(rows, "protocol", writerFeatures=None)),
        {"lists-of-features-are-kept", "checkpoints-repeat-the-settings"},
    ),
    (
        "a checkpoint without statistics",
        "checkpointed",
        checkpoint(lambda rows: [row["add"].update(stats=None) for row in rows if row["add"] is not None] and None),
        {"statistics-are-kept-as-asked"},
    ),
    (
        "a V2 checkpoint without the feature",
        "v2",
        both(
            edit(0, lambda actions: _without_feature(actions, "v2Checkpoint")),
            checkpoint(lambda rows: _without_feature(rows, "v2Checkpoint")),
            *(checksum(each, protocol=...) for each in range(4)),
        ),
        {"v2-checkpoints-need-the-feature", "checksums-have-their-members"},
    ),
    (
        "a checksum of other metadata",
        "checkpointed",
        checksum(3, metadata={"id": "other"}),
        {"checksums-repeat-the-settings"},
    ),
    ("a checksum that lists no files", "checkpointed", checksum(3, allFiles=[]), {"checksums-hold-the-files"}),
    (
        "a checksum with another histogram of deletions",
        "checkpointed",
        checksum(3, deletedRecordCountsHistogramOpt={"deletedRecordCounts": [9] * 10}),
        {"deletion-histograms-are-right"},
    ),
    (
        "a data file that is no Parquet",
        "plain",
        file("day=a/*.parquet", lambda data: b"x" * len(data)),
        {"live-files-are-parquet"},
    ),
    (
        "a required column with a null",
        "plain",
        both(
            lambda table: _null_in(table, "day=a/*.parquet"),
            schema(0, lambda fields: fields[0].update(nullable=False)),
        ),
        {"required-columns-have-no-nulls", "live-files-have-their-size"},
    ),
]


def _same_path(actions: list[dict[str, Any]]) -> None:
    """As if the update had only given the file a vector; the file of the old path is there, the vector is not looked for."""
    add, remove = (next(action[kind] for action in actions if kind in action) for kind in ("add", "remove"))
    remove.update(
        path=add["path"], deletionVector={"storageType": "u", "pathOrInlineDv": "x" * 20, "sizeInBytes": 1, "cardinality": 1}
    )


def _enable_times(table: Path) -> None:
    metadata = _first(table, 0, "metaData")
    metadata["configuration"]["delta.enableInCommitTimestamps"] = "true"
    for version in (1, 2):
        put(version, "commitInfo", inCommitTimestamp=1_000 * version)(table)
    say(1, {"metaData": metadata})(table)


def _add_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return next(row["add"] for row in rows if row["add"] is not None)


def _without_feature(actions: list[dict[str, Any]], name: str) -> None:
    for action in actions:
        for member in ("readerFeatures", "writerFeatures"):
            if action.get("protocol") and action["protocol"].get(member):
                action["protocol"][member] = [each for each in action["protocol"][member] if each != name]


def _null_in(table: Path, pattern: str) -> None:
    found = sorted(table.glob(pattern))[0]
    held = pq.read_table(found, partitioning=None)
    values = pa.array([None, *held["id"].to_pylist()[1:]], pa.int64())
    pq.write_table(held.set_column(held.schema.get_field_index("id"), "id", values), found)


def _vector(actions: list[dict[str, Any]], **members: Any) -> None:
    next(action["add"] for action in actions if "add" in action)["deletionVector"].update(members)


def _without_column(table: Path, pattern: str, column: str) -> None:
    found = sorted(table.glob(pattern))[0]
    pq.write_table(pq.read_table(found).drop_columns([column]), found)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_tahoe_wrote_breaks_no_rule(tables: dict[str, Path], name: str) -> None:
    assert strict_violations(tahoe.Table(str(tables[name])).store) == []


@pytest.mark.parametrize(("what", "kind", "plant", "rules"), PLANTED, ids=[each[0] for each in PLANTED])
def test_each_violation_is_found_by_the_rules_that_are_about_it(
    tables: dict[str, Path], tmp_path: Path, what: str, kind: str, plant: Plant, rules: set[str]
) -> None:
    table = tmp_path / "table"
    shutil.copytree(tables[kind], table)
    plant(table)
    found = strict_violations(tahoe.Table(str(table)).store)
    assert {each.code for each in found} == rules, "\n".join(map(str, found))
    assert {each.section for each in found} == {section for section, name in ALL_RULES if name in rules}


def test_at_least_sixty_tables_and_no_rule_twice() -> None:
    assert len(PLANTED) >= 60
    assert len({name for _, name in ALL_RULES}) == len(ALL_RULES)
    assert {name for *_, rules in PLANTED for name in rules} <= {name for _, name in ALL_RULES}
