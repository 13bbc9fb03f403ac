"""Tables whose rows are deleted by vectors are read through Iceberg as they are: format 2 with position deletes, format 3 with Puffin."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tahoe
from tahoe.api.process import UNIFORM_RUNTIME
from tahoe.base.exceptions import InvalidRequest
from tahoe.log.replay import add_files
from tahoe.protocol.dv import inline_descriptor
from tahoe.testing.iceberg_verifier import named_files, verify
from tahoe.testing.random_history import PER_COMMIT, V2, V3, History, restore
from tahoe.txn.transaction import Operation
from tests.interop.engines import canonical
from tests.interop.iceberg import duckdb_iceberg, read_pyiceberg

Reader = Callable[..., pa.Table]
READERS: dict[str, Reader] = {"pyiceberg": read_pyiceberg, "duckdb": duckdb_iceberg}
FORMATS = [pytest.param(V2, id="position deletes"), pytest.param(V3, id="puffin")]
NUMBERS = pa.schema([("id", pa.int64()), ("part", pa.string())])


def numbers(first: int, last: int) -> pa.Table:
    return pa.table({"id": range(first, last), "part": ["ab"[i % 2] for i in range(first, last)]}, schema=NUMBERS)


def table_of(folder: Path, properties: dict[str, str], **options: Any) -> tahoe.Table:
    made = tahoe.Table.create(folder / "a table", NUMBERS, properties=properties, **options)
    made.append(numbers(0, 100), max_rows_per_file=10)
    return made


def document_of(table: tahoe.Table) -> dict[str, Any]:
    actual: dict[str, Any] = json.loads(Path(table.uniform.sync().metadata_location.removeprefix("file://")).read_text())
    return actual


def check(table: tahoe.Table, why: object = "") -> dict[str, Any]:
    """Both readers read the newest version; the metadata is as the specification wants it. Returns the summary of the newest snapshot."""
    document = document_of(table)
    expected = canonical(table.to_arrow())
    for name, read in READERS.items():
        assert canonical(read(table.uniform.status().metadata_location)) == expected, f"{name}, {why}"
    verify(table.store)
    summary: dict[str, Any] = document["snapshots"][-1]["summary"]
    return summary


@pytest.mark.parametrize("properties", FORMATS)
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (2, 3))])
def test_a_history_is_read_as_it_is_after_each_step_and_at_old_snapshots(tmp_path: Path, seed: int, properties: dict) -> None:
    """Some steps are converted one by one, some together; old snapshots show the version that they name."""
    history = History(tmp_path, seed, {**properties, **(PER_COMMIT if seed % 2 else {})})
    table = history.table
    for _ in history.steps(8):
        if history.random.random() < 0.8:
            check(table, history)
    check(table, history)
    schema = table.snapshot().metadata.schema_string
    for snapshot in document_of(table)["snapshots"]:
        version = int(snapshot["summary"]["delta-version"])
        rows = table.to_arrow(version=version)
        expected = canonical(rows)
        same_schema = table.snapshot(version).metadata.schema_string == schema
        for name, read in READERS.items():
            # DuckDB reads old snapshots under the columns of today.
            if name == "pyiceberg" or same_schema:
                actual = read(table.uniform.status().metadata_location, snapshot_id=snapshot["snapshot-id"])
                assert canonical(actual) == expected, f"{name}, version {version}, {history}"


@pytest.mark.parametrize("properties", FORMATS)
def test_a_vector_that_grows_and_a_file_that_goes(tmp_path: Path, properties: dict) -> None:
    table = table_of(tmp_path, properties, partition_by=["part"])
    check(table)
    table.delete("id % 7 = 0")
    summary = check(table)
    assert (summary["operation"], summary["total-position-deletes"]) == ("delete", "15")
    files = 2 if properties is V2 else 10
    assert summary["total-delete-files"] == str(files), "one for each partition, or one for each vector"
    table.delete("id % 5 = 0")
    summary = check(table)
    assert summary["total-position-deletes"] == "32"
    assert summary["added-position-deletes"] == ("17" if properties is V2 else "32")
    table.delete("id < 20")
    summary = check(table)
    assert (summary["deleted-data-files"], summary["total-position-deletes"]) == ("2", "26")
    assert table.snapshot().files().num_rows == 8
    table.delete()
    summary = check(table)
    assert (summary["total-delete-files"], summary["total-position-deletes"], summary["total-data-files"]) == ("0", "0", "0")


@pytest.mark.parametrize("properties", FORMATS)
def test_rows_that_a_restore_brings_back_are_read_again(tmp_path: Path, properties: dict) -> None:
    table = table_of(tmp_path, properties)
    table.delete("id % 2 = 0")
    check(table)
    table.delete("id % 3 = 0")
    table.delete("id < 10")
    check(table)
    assert restore(table, 2)
    summary = check(table)
    assert summary["total-position-deletes"] == "50"
    assert restore(table, 1)
    summary = check(table)
    assert (summary["total-position-deletes"], summary["total-delete-files"]) == ("0", "0")
    assert restore(table, 4)
    check(table)


@pytest.mark.parametrize("properties", FORMATS)
def test_vectors_that_are_in_the_log_itself_are_shown(tmp_path: Path, properties: dict) -> None:
    """Other writers keep small vectors inline."""
    from pyroaring import BitMap64

    table = table_of(tmp_path, properties)
    check(table)
    (add, *_) = add_files(table.snapshot().files())
    transaction = table.begin()
    transaction.read_whole_table()
    stats = json.dumps({**json.loads(add.stats or ""), "tightBounds": False})
    transaction.stage(add.remove(1), replace(add, stats=stats, deletion_vector=inline_descriptor(BitMap64([0, 9]))))
    table.commit(transaction, Operation("DELETE"))
    assert check(table)["total-position-deletes"] == "2"


@pytest.mark.parametrize("properties", FORMATS)
def test_many_deletes_leave_few_delete_manifests_and_no_file_that_nothing_names(
    tmp_path: Path, properties: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tahoe.uniform.convert.converter.LATELY_MS", 0)  # no reader is late
    retention = {"delta.deletedFileRetentionDuration": "interval 0 seconds", "delta.logRetentionDuration": "interval 0 seconds"}
    table = table_of(tmp_path, {**properties, **retention})
    for k in range(40):
        table.delete(f"id = {k * 2 + 1}")
        table.uniform.wait()  # the conversion behind the commit alone: two side by side would leave files of the slower one
    check(table)
    assert UNIFORM_RUNTIME.drain(120, 0, table.url) == []  # a conversion deletes files after it has published its version
    metadata = tmp_path / "a table" / "metadata"
    there = {path.name for path in metadata.iterdir() if path.suffix in (".parquet", ".puffin", ".avro")}
    assert there == named_files(table.store)
    assert len([name for name in there if name.endswith(".parquet")]) <= 34


def test_without_the_property_vectors_are_refused_with_the_remedy(tmp_path: Path) -> None:
    without = {key: value for key, value in V2.items() if not key.endswith(".deletes")}
    with pytest.raises(InvalidRequest, match=r"iceberg\.deletes = position"):
        tahoe.Table.create(tmp_path / "t", NUMBERS, properties=without)


def test_row_ids_are_iceberg_s_row_lineage(tmp_path: Path) -> None:
    """`_row_id` and `_last_updated_sequence_number`, as DuckDB reads them, are Delta's row ids and row commit versions."""
    table = table_of(tmp_path, V3, partition_by=["part"])
    table.update({"id": "id + 1000"}, "id % 11 = 0")
    table.delete("id % 7 = 3")
    table.merge(numbers(90, 110), "target.id = source.id").when_matched_update_all().when_not_matched_insert_all().execute()
    document = document_of(table)
    expected = canonical(table.to_arrow(row_ids=True))
    actual = duckdb_iceberg(table.uniform.status().metadata_location, columns="*, _row_id, _last_updated_sequence_number")
    names = {"_last_updated_sequence_number": "_row_commit_version"}
    assert canonical(actual.rename_columns([names.get(name, name) for name in actual.column_names])) == expected
    mark = json.loads(table.snapshot().state.domains["delta.rowTracking"].configuration)["rowIdHighWaterMark"]
    assert document["next-row-id"] == mark + 1
    assert document["last-sequence-number"] == table.version()


def test_a_table_goes_from_format_2_to_3(tmp_path: Path) -> None:
    table = table_of(tmp_path, {**V2, **PER_COMMIT})
    table.delete("id % 2 = 0")
    check(table)
    table.set_properties({"delta.enableIcebergCompatV2": "false", "delta.enableIcebergCompatV3": "true"})
    table.delete("id % 3 = 0")
    summary = check(table)
    assert summary["total-position-deletes"] == "67"
    document = document_of(table)
    assert document["format-version"] == 3
    old = [snapshot for snapshot in document["snapshots"] if snapshot["summary"]["delta-version"] == "2"]
    assert canonical(read_pyiceberg(table.uniform.status().metadata_location, snapshot_id=old[0]["snapshot-id"])) == canonical(
        table.to_arrow(version=2)
    )
    with pytest.raises(InvalidRequest, match="cannot be disabled"):
        table.set_properties({"delta.enableIcebergCompatV2": "true", "delta.enableIcebergCompatV3": "false"})


@pytest.mark.breaks_rules("iceberg-types-are-allowed")
def test_void_columns_are_unknown_in_format_3(tmp_path: Path) -> None:
    """DuckDB 1.5 reads no table that has one."""
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "nothing": pa.nulls(2)})
    table = tahoe.Table.create(tmp_path / "t", rows.schema, properties=V3)
    table.append(rows)
    table.delete("id = 1")
    assert canonical(read_pyiceberg(table.uniform.sync().metadata_location)) == canonical(table.to_arrow())
