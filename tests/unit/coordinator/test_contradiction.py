"""A coordinator that forgot ratified commits: reported before anything is read or written, and never two commits of one version."""

from __future__ import annotations

import shutil
import uuid
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from tahoe.api.several_tables import read_together, transaction
from tahoe.api.table import Table
from tahoe.base.exceptions import CorruptTable
from tahoe.coordinator.sql_coordinator import SqlCoordinator
from tahoe.log.files.paths import LOG_FOLDER, commit_name, staged_version
from tahoe.ops.rows.insert import WriteOptions, stage_write
from tahoe.store.log_store import LogStore
from tahoe.store.object_store import open_store

pytestmark = pytest.mark.damages_tables

SCHEMA = pa.schema([("id", pa.int64())])
MANAGED = {"delta.feature.catalogManaged": "supported"}


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


class Restored:
    """A table with versions 0 to 4, and its database in the state of version 2."""

    def __init__(self, folder: Path) -> None:
        self.inner: LogStore = open_store(f"memory://{uuid.uuid4()}/table")
        self.database = folder / "c.db"
        self.table = Table.create(self.inner.url, SCHEMA, properties=MANAGED, store=self.inner, coordinator=self.coordinator())
        for n in (1, 2):
            self.table.append(rows(n))
        shutil.copy(self.database, folder / "backup.db")
        for n in (3, 4):
            self.table.append(rows(n))
        self.log = self.in_log()
        shutil.copy(folder / "backup.db", self.database)

    def coordinator(self) -> SqlCoordinator:
        return SqlCoordinator(f"sqlite:///{self.database}")

    def opened(self) -> Table:
        return Table(self.inner.url, store=self.inner, coordinator=self.coordinator())

    def in_log(self) -> dict[str, bytes]:
        names = (entry.name for entry in self.inner.walk(LOG_FOLDER))
        return {name: self.inner.get(name) for name in names if name.endswith(".json")}


@pytest.fixture
def restored(tmp_path: Path) -> Restored:
    return Restored(tmp_path)


def test_after_an_older_backup_a_new_client_cannot_read_or_write(restored: Restored) -> None:
    uses = (
        lambda table: table.to_arrow(),
        lambda table: table.version(),
        lambda table: table.append(rows(9)),
        lambda table: table.delete("id = 1"),
        lambda table: table.history(),
        lambda table: table.checkpoint(),
        lambda table: table.vacuum(),
        lambda table: read_together(table),
    )
    for use in uses:
        with pytest.raises(CorruptTable, match="says that version 2 is the last, but it has ratified version 4") as caught:
            use(restored.opened())
        assert caught.value.code == "TAHOE_COORDINATOR_BEHIND"
    assert restored.in_log() == restored.log


def test_after_an_older_backup_a_client_of_newer_versions_gets_the_same_error(restored: Restored) -> None:
    seen = restored.table  # its snapshot is of version 4
    for use in (seen.to_arrow, partial(seen.append, rows(9)), partial(seen.delete, "id = 1"), seen.checkpoint):
        with pytest.raises(CorruptTable) as caught:
            use()
        assert caught.value.code == "TAHOE_COORDINATOR_BEHIND"
    assert restored.in_log() == restored.log


def test_a_writer_at_the_backup_s_version_is_stopped_by_the_existing_commit(restored: Restored) -> None:
    hidden = {version: restored.inner.get(commit_name(version)) for version in (3, 4)}
    for version in hidden:
        restored.inner.delete(commit_name(version))
    table = restored.opened()
    transaction = table.begin()
    for version, data in hidden.items():
        restored.inner.put(commit_name(version), data)
    with pytest.raises(CorruptTable) as caught:
        table.commit(transaction, stage_write(transaction, rows(9), WriteOptions("append")))
    assert caught.value.code == "TAHOE_COORDINATOR_BEHIND"
    assert restored.in_log() == restored.log, "and nothing was staged"


def test_a_transaction_over_several_tables_commits_nothing_after_an_older_backup(tmp_path: Path) -> None:
    coordinator = SqlCoordinator(f"sqlite:///{tmp_path}/c.db")
    tables = [Table.create(f"memory://{uuid.uuid4()}/t", SCHEMA, properties=MANAGED, coordinator=coordinator) for _ in "ab"]
    shutil.copy(tmp_path / "c.db", tmp_path / "backup.db")
    tables[1].append(rows(1))

    def run() -> None:
        with transaction(*tables) as t:
            for table in tables:
                t[table].append(rows(2))
            shutil.copy(tmp_path / "backup.db", tmp_path / "c.db")

    with pytest.raises(CorruptTable, match="restored from an older backup"):
        run()
    assert tables[0].version() == 0, "the other table has nothing of the transaction either"


def test_the_error_s_remedy_recovers_the_table(restored: Restored) -> None:
    coordinator, url = restored.coordinator(), restored.table.url
    coordinator.forget(url)
    coordinator.expect(url, 4, "")
    coordinator.adopt(url, 4)
    table = restored.opened()
    assert sorted(table.to_arrow()["id"].to_pylist()) == [1, 2, 3, 4]
    assert table.append(rows(5)) == 5 and table.check(strict=True) == []


def test_a_backup_that_names_cleaned_up_staged_commits_is_reported(restored: Restored) -> None:
    for entry in list(restored.inner.walk(f"{LOG_FOLDER}/_staged_commits")):
        if (staged_version(entry.name) or 0) < 4:
            restored.inner.delete(entry.name)
    with pytest.raises(CorruptTable) as caught:
        restored.opened().append(rows(9))
    assert caught.value.code == "TAHOE_COORDINATOR_BEHIND"


def test_a_commit_between_asking_and_listing_is_no_contradiction(tmp_path: Path) -> None:
    """A commit that another writer ratified and published meanwhile is newer than the coordinator's answer."""
    inner = open_store(f"memory://{uuid.uuid4()}/table")
    coordinator = SqlCoordinator(f"sqlite:///{tmp_path}/c.db")
    table = Table.create(inner.url, SCHEMA, properties=MANAGED, store=inner, coordinator=coordinator)

    class Overtaken(SqlCoordinator):
        writes = 2

        def managed(self, tables):  # type: ignore[no-untyped-def]
            answer = super().managed(tables)
            if self.writes:
                self.writes -= 1
                table.append(rows(self.writes))
            return answer

    late = Table(inner.url, store=inner, coordinator=Overtaken(f"sqlite:///{tmp_path}/c.db"))
    assert late.version() in (0, 1, 2)
    assert late.append(rows(9)) == 3 and sorted(late.to_arrow()["id"].to_pylist()) == [0, 1, 9]
