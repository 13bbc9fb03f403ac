"""Vectors that were merged in a lost race, and files with hidden columns for row ids, are read equal by others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.ops.rows.delete import stage_delete
from tahoe.ops.rows.update import stage_update
from tests.interop.engines import canonical, read_deltalake, read_duckdb

READERS = [pytest.param(read, id=read.__name__.removeprefix("read_")) for read in (read_deltalake, read_duckdb)]
Reader = Callable[..., pa.Table]
SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.string()), ("v", pa.int64())])
MODES = {
    "plain": {},
    "mapped": {"delta.columnMapping.mode": "name"},
    "tracked": {"delta.enableRowTracking": "true"},
    "tracked-mapped": {"delta.enableRowTracking": "true", "delta.columnMapping.mode": "name"},
}


@pytest.fixture(params=MODES)
def table(request, tmp_path: Path) -> Table:
    properties = {"delta.enableDeletionVectors": "true", **MODES[request.param]}
    # DuckDB's delta extension takes partition columns that are mapped for null.
    partition_by = [] if "mapped" in request.param else ["part"]
    made = Table.create(tmp_path / "table", SCHEMA, partition_by=partition_by, properties=properties)
    ids = list(range(20_000))
    made.append(pa.table({"id": ids, "part": ["a" if id < 15_000 else "b" for id in ids], "v": [0] * len(ids)}, schema=SCHEMA))
    return made


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("step", [97, 3], ids=["vector in the log", "vector in a file"])
def test_tables_after_races_are_read_equal(table: Table, read: Reader, step: int) -> None:
    racing = [table.begin(), table.begin(), table.begin()]
    staged = [
        stage_delete(racing[0], f"id % {step} = 0"),
        stage_delete(racing[1], f"id % {step} = 1"),
        stage_update(racing[2], {"v": "id"}, f"id % {step} = 2 and part = 'a'"),
    ]
    for transaction, each in zip(racing, staged, strict=True):
        table.commit(transaction, each.operation)
    ours = table.to_arrow()
    expected = {id: id if id % step == 2 and id < 15_000 else 0 for id in range(20_000) if id % step not in (0, 1)}
    assert dict(zip(ours.column("id").to_pylist(), ours.column("v").to_pylist(), strict=True)) == expected
    assert canonical(read(table.url.removeprefix("file://"))) == canonical(ours)
    kinds = {vector["storageType"] for vector in table.snapshot().files().column("deletionVector").to_pylist() if vector}
    assert kinds == ({"i"} if step == 97 else {"u"})
    assert table.check() == []
