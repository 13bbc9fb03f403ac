"""UniForm after each operation of upkeep: the Iceberg side is the newest version, and PyIceberg reads its rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tahoe.api.table import Table
from tahoe.ops.layout.auto_compact import AutoCompaction, PartitionReservations, compaction_after
from tahoe.ops.layout.optimize import rewritten_here
from tahoe.testing.iceberg_verifier import verify
from tahoe.testing.random_history import V2
from tahoe.txn.commit import Committed
from tests.interop.iceberg import read_pyiceberg
from tests.race.operations import SCHEMA, contents, rows

BEFORE = [("a", 2), ("a", 3), ("b", 11), ("b", 12), ("b", 13)]


def lose_a_file_and_fsck(table: Table) -> None:
    for path in table.files(filter="id < 3")["path"].to_pylist()[:1]:
        table.store.delete(path)
    table.fsck()


def other_statistics(table: Table) -> None:
    table.set_properties({"delta.dataSkippingNumIndexedCols": "1"})
    table.compute_statistics()


def compact(table: Table, committed: Committed) -> None:
    settings = AutoCompaction(enabled=True, min_files=3)
    compaction_after(
        committed, settings, PartitionReservations(), partial(table.compact_gently, partial(rewritten_here, table.clock))
    )


UPKEEP: dict[str, Callable[[Table], object]] = {
    "OPTIMIZE": lambda table: table.optimize(),
    "OPTIMIZE ZORDER BY": lambda table: table.optimize(zorder_by=["id"]),
    "CLUSTER BY": lambda table: (table.cluster_by(["id"]), table.optimize()),
    "REORG APPLY (PURGE)": lambda table: table.purge(),
    "auto compaction": lambda table: Table(table.store.url, compactor=compact).append(rows("a", 100)),
    "ANALYZE": other_statistics,
    "VACUUM": lambda table: table.vacuum(0, retention_check=False),
    "FSCK REPAIR TABLE": lose_a_file_and_fsck,
    "RESTORE": lambda table: table.restore(2),
    "checkpoint": lambda table: table.checkpoint(),
    "V2 checkpoint": lambda table: (table.set_properties({"delta.checkpointPolicy": "v2"}), table.checkpoint()),
    "repair of the log": lambda table: (table.checkpoint(), table.repair_log()),
}


@pytest.mark.damages_tables
@pytest.mark.parametrize("name", UPKEEP)
def test_iceberg_shows_the_table_after_it(tmp_path: Path, name: str) -> None:
    table = Table.create(tmp_path / "t", SCHEMA, properties=V2)
    for written in (rows("a", 1, 2), rows("a", 3), rows("b", 11), rows("b", 12), rows("b", 13)):
        table.append(written)
    table.delete("id = 1")
    shown(table)
    before = table.version()
    UPKEEP[name](table)
    table = Table(tmp_path / "t")
    assert (table.version() > before) == (name not in ("checkpoint", "repair of the log"))
    if name not in ("FSCK REPAIR TABLE", "RESTORE", "auto compaction"):
        assert contents(table) == BEFORE
    shown(table)


@pytest.mark.parametrize("shallow", [False, True], ids=["deep", "shallow"])
def test_iceberg_shows_a_clone(tmp_path: Path, shallow: bool) -> None:
    source = Table.create(tmp_path / "t", SCHEMA, properties=V2)
    source.append(rows("a", 1, 2, 3))
    source.delete("id = 1")
    source.clone(tmp_path / "clone", shallow=shallow)
    clone = Table(tmp_path / "clone")
    shown(clone)
    clone.append(rows("b", 11))
    clone.update({"id": "20"}, "id = 2")
    shown(clone)
    shown(source)


def shown(table: Table) -> None:
    location = table.uniform.sync().metadata_location
    assert location is not None and verify(table.store) == table.version()
    read = read_pyiceberg(location)
    assert sorted(zip(read["part"].to_pylist(), read["id"].to_pylist(), strict=True)) == contents(table)
