"""Partitions whose names no writer spells like the next: Tahoe and deltalake change one table, and each reader sees the same rows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from tahoe import Table
from tahoe.ops.write import writer
from tahoe.protocol.partition import hive_folder
from tahoe.testing.iceberg_verifier import verify
from tests.cleaned_logs import start_at_the_checkpoint
from tests.interop.engines import canonical, read_deltalake, read_duckdb, read_polars
from tests.interop.iceberg import duckdb_iceberg, read_pyiceberg

VALUES = ["é", "日本", "ü ü", "a b", "50%", "%41", "%C3%A9", "a/b=c", "a:b", "x+y&z", "quote '", "plain"]
SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string())])
READERS = {"deltalake": read_deltalake, "duckdb": read_duckdb, "polars": read_polars}


def rows(first: int) -> pa.Table:
    return pa.table({"id": range(first, first + len(VALUES)), "p": VALUES}, schema=SCHEMA)


def check_readers(root: Path, expected: pa.Table) -> None:
    for name, read in READERS.items():
        assert canonical(read(str(root))) == canonical(expected), name


@pytest.fixture(params=[False, True], ids=["now", "before"])
def was_written_before(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether folders are named as Tahoe named them once, and as delta-spark does: letters outside ASCII as they are."""
    if request.param:
        monkeypatch.setattr(writer, "partition_folder", hive_folder)
    return bool(request.param)


def checkpointed_by_deltalake(root: Path) -> None:
    deltalake.DeltaTable(root).create_checkpoint()


def checkpointed_by_tahoe(root: Path) -> None:
    Table(root).checkpoint()


def cleaned_after_tahoe(root: Path) -> None:
    Table(root).checkpoint()
    start_at_the_checkpoint(root)


def cleaned_after_deltalake(root: Path) -> None:
    deltalake.DeltaTable(root).create_checkpoint()
    start_at_the_checkpoint(root)


LOGS = [checkpointed_by_deltalake, checkpointed_by_tahoe, cleaned_after_tahoe, cleaned_after_deltalake]


def test_paths_are_ascii_in_the_log_and_on_disk(tmp_path: Path) -> None:
    table = Table.create(tmp_path, SCHEMA, partition_by=["p"])
    table.append(rows(0))
    assert all(path.isascii() for path in table.files()["path"].to_pylist())
    folders = {"p=%C3%A9", "p=%E6%97%A5%E6%9C%AC", "p=%C3%BC %C3%BC", "p=a b", "p=50%25", "p=a%3Ab", "p=%25C3%25A9"}
    assert folders <= {folder.name for folder in tmp_path.glob("p=*")}
    check_readers(tmp_path, rows(0))
    for value in VALUES:
        quoted = value.replace("'", "''")
        assert table.to_arrow(filter=f"p = '{quoted}'").num_rows == 1


@pytest.mark.parametrize("change_log", LOGS, ids=lambda log: log.__name__)
def test_rows_that_deltalake_deletes_stay_deleted(
    tmp_path: Path, change_log: Callable[[Path], None], was_written_before: bool
) -> None:
    """Those of its own files, of Tahoe's, and of files in folders of non-ASCII names."""
    table = Table.create(tmp_path, SCHEMA, partition_by=["p"])
    table.append(rows(0))
    deltalake.write_deltalake(tmp_path, rows(100), mode="append")
    deltalake.DeltaTable(tmp_path).delete("id % 100 < 8")
    for change in (None, change_log):
        if change is not None:
            change(tmp_path)
        expected = pa.concat_tables([rows(0).slice(8), rows(100).slice(8)])
        assert canonical(Table(tmp_path).to_arrow()) == canonical(expected)
        assert canonical(Table(tmp_path).to_arrow(filter="id >= 0")) == canonical(expected)
        assert Table(tmp_path).check() == []
        if not was_written_before:
            check_readers(tmp_path, expected)
    table = Table(tmp_path)
    table.update({"id": "id + 1000"}, "id in (8, 108)")
    table.append(rows(200))
    table.vacuum(retention_hours=0, retention_check=False)
    ids = [1008, 1108, 9, 10, 11, 109, 110, 111, *range(200, 212)]
    assert sorted(table.to_arrow()["id"].to_pylist()) == sorted(ids)
    assert Table(tmp_path).check(deep=True) == []
    table.checkpoint()
    assert sorted(Table(tmp_path).to_arrow()["id"].to_pylist()) == sorted(ids)
    check_readers(tmp_path, table.to_arrow())


@pytest.mark.parametrize("change_log", LOGS, ids=lambda log: log.__name__)
def test_rows_that_tahoe_restores_come_back(tmp_path: Path, change_log: Callable[[Path], None], was_written_before: bool) -> None:
    """A checkpoint of deltalake may name their files as removed too; then the commits decide, else the tombstones."""
    table = Table.create(tmp_path, SCHEMA, partition_by=["p"])
    table.append(rows(0))
    deltalake.DeltaTable(tmp_path).delete("id < 8")
    Table(tmp_path).restore(1)
    change_log(tmp_path)
    no_commit_decides = was_written_before and change_log is cleaned_after_deltalake
    expected = rows(0).filter(pa.array([not no_commit_decides or value.isascii() for value in VALUES]))
    assert canonical(Table(tmp_path).to_arrow()) == canonical(expected)
    assert Table(tmp_path).check() == []


def test_iceberg_shows_the_rows_that_deltalake_left(tmp_path: Path, was_written_before: bool) -> None:
    properties = {"delta.enableIcebergCompatV2": "true", "delta.universalFormat.enabledFormats": "iceberg"}
    table = Table.create(tmp_path, SCHEMA, partition_by=["p"], properties=properties | {"delta.columnMapping.mode": "name"})
    table.append(rows(0))
    table.uniform.sync()
    removed = [json.loads(line) for line in removal_by_deltalake(table).splitlines()]
    (tmp_path / "_delta_log" / f"{table.version() + 1:020d}.json").write_text("".join(json.dumps(a) + "\n" for a in removed))
    table = Table(tmp_path)
    location = table.uniform.sync().metadata_location
    assert table.to_arrow().num_rows == len(VALUES) - 3
    for read in (read_pyiceberg, duckdb_iceberg):
        assert canonical(read(location)) == canonical(table.to_arrow())
    verify(table.store)


def removal_by_deltalake(table: Table) -> str:
    """The actions of deltalake, which does not write to tables of IcebergCompat."""
    files = [add for add in table.files().to_pylist() if dict(add["partitionValues"]).popitem()[1] in ("é", "日本", "ü ü")]
    assert len(files) == 3
    removes = [
        {"remove": {"path": path_by_deltalake(add["path"]), "deletionTimestamp": 1, "dataChange": True, "size": add["size"]}}
        for add in files
    ]
    return "\n".join(json.dumps(action) for action in [{"commitInfo": {"operation": "DELETE"}}, *removes])


def path_by_deltalake(path: str) -> str:
    return re.sub("[^\x00-\x7f]", lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), path)
