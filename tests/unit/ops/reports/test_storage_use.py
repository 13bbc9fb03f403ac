"""`Table.storage_use`: every file below the folder belongs to one kind."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from tahoe.api.table import Table


def test_each_file_counts_once_by_its_kind(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    table = Table.create(
        folder, {"x": "long", "p": "string"}, partition_by=["p"], properties={"delta.enableChangeDataFeed": "true"}
    )
    table.append(pa.table({"x": [1, 2], "p": ["a b", "a b"]}))
    table.update({"x": "3"}, "x = 1")
    table.checkpoint()
    (folder / "stray.parquet").write_bytes(b"12345")
    kinds = {kind.kind: (kind.files, kind.size) for kind in table.storage_use().kinds}
    assert {name: files for name, (files, _) in kinds.items() if name != "other log files"} == {
        "live data": 1,
        "removed data": 1,
        "change data": 1,
        "commits": 3,
        "checkpoints": 1,
        "not in the log": 1,
    }
    assert kinds["not in the log"] == (1, 5)
    on_disk = [path for path in folder.rglob("*") if path.is_file()]
    assert sum(files for files, _ in kinds.values()) == len(on_disk)
    assert table.storage_use().size == sum(path.stat().st_size for path in on_disk)


def test_deletion_vectors_are_live_data(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", {"x": "long"}, properties={"delta.enableDeletionVectors": "true"})
    table.append(pa.table({"x": range(5000)}))
    table.delete("x % 3 = 0")
    kinds = {kind.kind: kind.files for kind in table.storage_use().kinds}
    assert "not in the log" not in kinds
    assert "live data" in table.storage_use()._repr_html_()
