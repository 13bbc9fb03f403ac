"""REORG: tables become readable as Iceberg, and files lose deleted rows; properties are checked against the existing files."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest
from tahoe.log.replay import add_files
from tahoe.protocol.actions import AddFile, to_json_line
from tahoe.txn.transaction import Operation
from tests.interop.engines import canonical
from tests.interop.iceberg import duckdb_iceberg, read_pyiceberg

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("part", pa.string()),
        pa.field("tags", pa.list_(pa.field("element", pa.string()))),
        pa.field("counts", pa.map_(pa.string(), pa.int32())),
        pa.field("inner", pa.struct([pa.field("a", pa.int32()), pa.field("list", pa.list_(pa.int64()))])),
        pa.field("at", pa.timestamp("us", tz="UTC")),
        pa.field("price", pa.decimal128(9, 2)),
    ]
)


def rows(first: int, last: int) -> pa.Table:
    actual = [
        {
            "id": i,
            "part": f"p{i % 2}",
            "tags": None if i % 5 == 0 else [f"t{i}", None],
            "counts": {"a": i, "b": None},
            "inner": {"a": i, "list": [i, i + 1]},
            "at": i * 1_000_000,
            "price": Decimal(i) / 4,
        }
        for i in range(first, last)
    ]
    return pa.Table.from_pylist(actual, SCHEMA)


def made(path: Path, *, partitioned: bool = False, properties: dict[str, str] | None = None) -> Table:
    """A table of two files, or two a partition, written without any thought of Iceberg."""
    table = Table.create(path, SCHEMA, partition_by=["part"] if partitioned else [], properties=properties or {})
    table.append(rows(0, 10))
    table.append(rows(10, 20))
    return table


def paths(table: Table) -> set[str]:
    return set(table.files()["path"].to_pylist())


def assert_iceberg_readers_agree(table: Table) -> None:
    expected = canonical(table.to_arrow())
    location = table.uniform.sync().metadata_location
    readers: tuple[Callable[[str], pa.Table], ...] = (read_pyiceberg, duckdb_iceberg)
    for read in readers:
        assert canonical(read(location)) == expected, read.__name__


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("partitioned", [False, True])
def test_after_the_upgrade_readers_of_iceberg_read_the_same_rows(tmp_path: Path, partitioned: bool, version: int) -> None:
    table = made(tmp_path / "t", partitioned=partitioned)
    before, old = canonical(table.to_arrow()), paths(table)
    upgrade = table.uniform.upgrade(version)
    assert canonical(table.to_arrow()) == before
    assert set(upgrade.rewritten) == old and not paths(table) & old
    assert all("field ids" in reasons for reasons in upgrade.rewritten.values())
    assert {add.tags["ICEBERG_COMPAT_VERSION"] for add in add_files(table.snapshot().files()) if add.tags} == {str(version)}
    assert_iceberg_readers_agree(table)
    operations = [(item["operation"], item["isBlindAppend"]) for item in table.history(3)]
    assert operations == [("SET TBLPROPERTIES", False), ("REORG", False), ("REORG TABLE UPGRADE UNIFORM", False)]


def test_a_second_upgrade_commits_nothing(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.uniform.upgrade()
    version = table.version()
    again = table.uniform.upgrade()
    assert (again.version, table.version()) == (version, version)
    assert not again.properties and not again.rewritten and not again.noted


def test_a_dry_run_shows_the_actions_and_changes_nothing(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    before = paths(table)
    reported = table.uniform.upgrade(dry_run=True)
    assert (reported.version, table.version(), paths(table)) == (2, 2, before)
    assert set(reported.rewritten) == before
    assert reported.properties == {
        "delta.enableIcebergCompatV2": "true",
        "delta.columnMapping.mode": "name",
        "delta.universalFormat.enabledFormats": "iceberg",
    }
    done = table.uniform.upgrade()
    assert (done.properties, done.rewritten) == (reported.properties, reported.rewritten)


def test_only_files_that_need_it_are_written_again(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", SCHEMA, properties={"delta.columnMapping.mode": "name"})
    table.append(rows(0, 10))  # with the ids of columns, without those of elements
    table.set_properties({"delta.enableIcebergCompatV2": "true"})
    early = paths(table)
    table.append(rows(10, 20))
    late = paths(table) - early
    upgrade = table.uniform.upgrade()
    assert upgrade.rewritten == dict.fromkeys(early, ("field ids",)) and not upgrade.noted
    assert upgrade.properties == {"delta.universalFormat.enabledFormats": "iceberg"}
    assert late < paths(table)
    assert_iceberg_readers_agree(table)


def test_a_file_that_only_lacks_the_tag_or_statistics_stays_and_the_log_says_more_of_it(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", SCHEMA, properties={"delta.enableIcebergCompatV2": "true"})
    table.append(rows(0, 4))
    table.append(rows(4, 8))
    first, second = add_files(table.snapshot().files())
    forget(table, replace(first, tags=None), replace(second, stats=None))
    upgrade = table.uniform.upgrade()
    assert upgrade.noted == {first.path: ("tag",), second.path: ("statistics",)} and not upgrade.rewritten
    for add in add_files(table.snapshot().files()):
        assert add.tags == {"ICEBERG_COMPAT_VERSION": "2"}
        assert json.loads(add.stats or "")["numRecords"] == 4
    assert_iceberg_readers_agree(table)


def test_the_checksum_counts_once_a_file_that_gets_a_tag_beside_a_rewrite(tmp_path: Path) -> None:
    properties = {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"}
    table = Table.create(tmp_path / "t", pa.schema([("id", pa.int64())]), properties=properties)
    for first in (0, 10):
        table.append(pa.table({"id": range(first, first + 10)}))
    table.delete("id = 1")
    upgrade = table.uniform.upgrade()
    assert (len(upgrade.rewritten), len(upgrade.noted)) == (1, 1)
    assert len(Table(tmp_path / "t").files()) == 2
    assert_iceberg_readers_agree(Table(tmp_path / "t"))


def test_files_of_version_1_contain_the_partition_columns(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", pa.schema([("id", pa.int64()), ("p", pa.string())]), partition_by=["p"])
    table.append(pa.table({"id": [1, 2], "p": ["a", "b"]}))
    upgrade = table.uniform.upgrade(1)
    assert set(upgrade.rewritten.values()) == {("field ids", "partition columns")}
    table.append(pa.table({"id": [3], "p": ["a"]}))
    assert table.uniform.upgrade(1).version == table.version()
    assert table.check(strict=True) == []
    assert_iceberg_readers_agree(table)


def forget(table: Table, *adds: AddFile) -> None:
    """Another writer's entries for the same files; not by way of `prepare`, which would refuse them."""
    lines = [json.dumps({"commitInfo": {"operation": "TEST"}}), *(to_json_line(replace(add, data_change=False)) for add in adds)]
    table.store.put_if_absent(f"_delta_log/{table.version() + 1:020d}.json", "\n".join(lines).encode())


@pytest.mark.breaks_rules("iceberg-allows-no-vectors")
def test_files_with_dead_rows_lose_them_unless_iceberg_can_have_vectors(tmp_path: Path) -> None:
    for version, properties, rewritten in (
        (1, {}, 2),  # the other file lacks the ids of columns
        (2, {"delta.universalFormat.config.iceberg.deletes": "position", "delta.columnMapping.mode": "name"}, 0),
        (3, {"delta.columnMapping.mode": "name"}, 0),
    ):
        flat = pa.table({"id": range(20), "name": [f"n{i}" for i in range(20)]})
        table = Table.create(
            tmp_path / f"t{version}", flat.schema, properties={"delta.enableDeletionVectors": "true", **properties}
        )
        table.append(flat, max_rows_per_file=10)
        table.delete("id = 3")
        before = canonical(table.to_arrow())
        upgrade = table.uniform.upgrade(version)
        assert len(upgrade.rewritten) == rewritten, version
        vectors = table.files()["deletionVector"]
        assert len(vectors) - vectors.null_count == (0 if rewritten else 1)
        assert table.snapshot().config.properties.enable_deletion_vectors == (version > 1)
        assert canonical(table.to_arrow()) == before
        if version < 3:  # DuckDB 1.5 and PyIceberg 0.12 read no Puffin vectors
            assert_iceberg_readers_agree(table)


def test_a_file_of_spark_with_int96_timestamps_is_written_again(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("at", pa.timestamp("us", tz="UTC"))])
    table = Table.create(tmp_path / "t", schema, properties={"delta.enableIcebergCompatV2": "true"})
    table.append(pa.table({"at": pa.array([1, 2], pa.timestamp("us", tz="UTC"))}))
    (add,) = add_files(table.snapshot().files())
    place = tmp_path / "t" / add.path
    pq.write_table(pq.read_table(place), place, use_deprecated_int96_timestamps=True)
    forget(table, replace(add, tags=None, size=place.stat().st_size))
    before = canonical(table.to_arrow())
    assert table.uniform.upgrade().rewritten == {add.path: ("INT96 timestamps",)}
    assert canonical(table.to_arrow()) == before
    assert_iceberg_readers_agree(table)


def test_rows_keep_their_ids(tmp_path: Path) -> None:
    table = made(tmp_path / "t", properties={"delta.enableRowTracking": "true"})
    before = sorted(table.to_arrow(columns=["id"], row_ids=True).to_pylist(), key=lambda row: row["id"])
    table.uniform.upgrade(2)
    assert sorted(table.to_arrow(columns=["id"], row_ids=True).to_pylist(), key=lambda row: row["id"]) == before


def test_a_rewrite_is_no_change_of_data(tmp_path: Path) -> None:
    table = made(tmp_path / "t", properties={"delta.appendOnly": "true"})
    table.uniform.upgrade()
    (reorg,) = [item for item in table.history() if item["operation"] == "REORG"]
    actions = (tmp_path / "t" / "_delta_log" / f"{reorg['version']:020d}.json").read_text().splitlines()
    files = [next(iter(json.loads(line).values())) for line in actions if line.startswith(('{"add"', '{"remove"'))]
    assert len(files) == 4 and not any(item["dataChange"] for item in files)
    assert reorg["operationMetrics"]["numRemovedFiles"] == "2" and reorg["isolationLevel"] == "SnapshotIsolation"


def test_another_writer_that_changes_files_meanwhile_does_not_stop_it(tmp_path: Path) -> None:
    table, other = made(tmp_path / "t"), Table(tmp_path / "t")
    commit, met = table.commit, []

    def commit_after_another(transaction: object, operation: Operation, **named: object) -> object:
        if operation.name == "REORG" and not met:
            met.append(other.delete("id < 3").version)
        return commit(transaction, operation, **named)  # type: ignore[arg-type]

    table.commit = commit_after_another  # type: ignore[method-assign,assignment]
    table.uniform.upgrade()
    assert met and sorted(table.to_arrow()["id"].to_pylist()) == list(range(3, 20))
    assert_iceberg_readers_agree(table)


@pytest.mark.parametrize(
    ("version", "schema", "message"),
    [
        (4, pa.schema([("id", pa.int64())]), "COMPAT_VERSION_NOT_SUPPORTED"),
        (1, pa.schema([("id", pa.list_(pa.int64()))]), "UNSUPPORTED_DATA_TYPE"),
    ],
)
@pytest.mark.parametrize("dry_run", [False, True])
def test_tables_that_iceberg_cannot_represent_are_refused_before_anything_is_committed(
    tmp_path: Path, version: int, schema: pa.Schema, message: str, dry_run: bool
) -> None:
    table = Table.create(tmp_path / "t", schema)
    with pytest.raises(InvalidRequest, match=message):
        table.uniform.upgrade(version, dry_run=dry_run)
    assert table.version() == 0


def test_from_an_older_compatibility_version_to_a_newer(tmp_path: Path) -> None:
    flat = pa.table({"id": range(4)})
    table = Table.create(tmp_path / "t", flat.schema, properties={"delta.enableIcebergCompatV1": "true"})
    table.append(flat)
    upgrade = table.uniform.upgrade(2)
    assert upgrade.properties["delta.enableIcebergCompatV1"] == "false" and not upgrade.rewritten
    assert list(upgrade.noted.values()) == [("tag",)]
    assert table.snapshot().config.iceberg_compat_version == 2
    assert_iceberg_readers_agree(table)


# -- purge -------------------------------------------------------------------------------------------------------------------


def test_purge_rewrites_files_with_dead_rows_in_the_partitions_named(tmp_path: Path) -> None:
    table = made(tmp_path / "t", partitioned=True, properties={"delta.enableDeletionVectors": "true"})
    table.delete("id in (0, 1)")
    before, remaining = canonical(table.to_arrow()), table.files()
    clean = {
        path
        for path, vector in zip(remaining["path"].to_pylist(), remaining["deletionVector"].to_pylist(), strict=True)
        if not vector
    }
    table.purge("part = 'p1'")
    assert len(paths(table) & set(remaining["path"].to_pylist())) == 3
    version = table.purge()
    assert paths(table) >= clean and table.files()["deletionVector"].null_count == 4
    assert table.purge() == version
    assert canonical(table.to_arrow()) == before
    with pytest.raises(InvalidRequest, match="partition columns"):
        table.purge("id = 1")


def test_purge_takes_columns_out_that_the_table_has_no_more(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", SCHEMA, properties={"delta.columnMapping.mode": "name"})
    table.append(rows(0, 3))
    metadata = table.snapshot().metadata
    schema = json.loads(metadata.schema_string)
    schema["fields"] = [item for item in schema["fields"] if item["name"] != "counts"]
    next(item for item in schema["fields"] if item["name"] == "inner")["type"]["fields"].pop()
    dropped = replace(metadata, schema_string=json.dumps(schema))
    table.store.put_if_absent(f"_delta_log/{2:020d}.json", to_json_line(dropped).encode())
    before = canonical(table.to_arrow())
    assert table.purge() == 3 and table.purge() == 3
    assert canonical(table.to_arrow()) == before
    (path,) = paths(table)
    assert len(pq.read_schema(tmp_path / "t" / path)) == 6


# -- properties --------------------------------------------------------------------------------------------------------------


def test_iceberg_is_not_enabled_over_files_that_it_could_not_show(tmp_path: Path) -> None:
    table = made(tmp_path / "t", properties={"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"})
    table.delete("id = 1")
    table.set_properties({"delta.enableDeletionVectors": "false"})
    with pytest.raises(InvalidRequest, match="DELETION_VECTORS_NOT_PURGED"):
        table.set_properties({"delta.enableIcebergCompatV2": "true"})
    table.set_properties({"delta.enableIcebergCompatV2": "true", "delta.universalFormat.config.iceberg.deletes": "position"})


@pytest.mark.parametrize(
    "key", ["provider", "location", "delta.columnMapping.maxColumnId", "DELTA.rowTracking.materializedRowIdColumnName"]
)
def test_properties_that_the_table_keeps_itself_are_refused(tmp_path: Path, key: str) -> None:
    table = Table.create(tmp_path / "t", SCHEMA)
    with pytest.raises(InvalidRequest, match=r"DELTA_CANNOT_(CHANGE|MODIFY)"):
        table.set_properties({key: "1"})


def test_the_comment_is_the_description(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", SCHEMA)
    table.set_properties({"comment": "mine", "a": "b"})
    assert (table.snapshot().metadata.description, dict(table.snapshot().metadata.configuration)) == ("mine", {"a": "b"})
    table.unset_properties(["comment"])
    assert table.snapshot().metadata.description is None
    with pytest.raises(InvalidRequest, match="no property comment"):
        table.unset_properties(["comment"])
