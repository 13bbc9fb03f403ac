"""The log through a coordinator: resolution of names, commits, and recovery from crashed writers."""

from __future__ import annotations

import json
import pickle
import uuid
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.base.exceptions import CorruptTable, InvalidRequest, NotFound, ProtocolChangedException, StorageFailure, Unsupported
from tahoe.coordinator.coordinated_store import CoordinatedStore
from tahoe.coordinator.coordinator import StagedCommit
from tahoe.coordinator.sql_coordinator import SqlCoordinator
from tahoe.log.cleanup import clean_up_log
from tahoe.log.files.paths import LOG_FOLDER, STAGED_FOLDER, checkpoint_name, commit_name, staged_name, staged_version
from tahoe.ops.rows.insert import WriteOptions, stage_write
from tahoe.store.log_store import Created, Exists, LogStore, Refused, Unanswered
from tahoe.store.object_store import open_store
from tahoe.testing.faulty_store import FaultyStore, PutFault, WrappedStore
from tahoe.testing.store_suite import LogStoreContract

SCHEMA = pa.schema([("id", pa.int64())])
MANAGED = {"delta.feature.catalogManaged": "supported"}


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def ids(table: Table, version: int | None = None) -> list[int]:
    return sorted(table.to_arrow(version=version)["id"].to_pylist())


@pytest.fixture
def inner() -> LogStore:
    return open_store(f"memory://{uuid.uuid4()}/table")


@pytest.fixture
def coordinator(tmp_path: Path) -> SqlCoordinator:
    return SqlCoordinator(f"sqlite:///{tmp_path}/c.db")


def table_over(inner: LogStore, coordinator: SqlCoordinator) -> Table:
    return Table(inner.url, store=inner, coordinator=coordinator)


@pytest.fixture
def table(inner: LogStore, coordinator: SqlCoordinator) -> Table:
    """Return a table with versions 0 and 1, published."""
    table = Table.create(inner.url, SCHEMA, properties=MANAGED, store=inner, coordinator=coordinator)
    table.append(rows(1))
    return table


class WithoutPublishing(WrappedStore):
    """Storage that refuses to publish commits."""

    def _call(self, method, name, run):  # type: ignore[no-untyped-def]
        if method == "put_if_absent" and name.startswith(f"{LOG_FOLDER}/0"):
            return Refused("not now")
        return run()


class TestUnmanaged(LogStoreContract):
    """A table that the coordinator does not know is stored as usual."""

    @pytest.fixture
    def store(self, inner: LogStore, coordinator: SqlCoordinator) -> LogStore:
        return CoordinatedStore(inner, coordinator, SYSTEM_CLOCK)


@pytest.mark.damages_tables
def test_the_example_of_the_specification(inner: LogStore, coordinator: SqlCoordinator) -> None:
    """PROTOCOL.md, "Reading Catalog-managed Tables": 7 ratified and published, 8 ratified, another 8 rejected, 10 proposed or torn."""
    store = CoordinatedStore(inner, coordinator, SYSTEM_CLOCK)
    for version in range(8):
        inner.put(commit_name(version), f"published {version}".encode())
    inner.put(commit_name(10), b"by somebody who asked nobody")
    inner.put(checkpoint_name(10), b"the same")
    coordinator.expect(inner.url, 6, "")
    coordinator.adopt(inner.url, 6)
    for version, name, body in ((7, "a", b"ratified 7"), (8, "b", b"ratified 8"), (8, "c", b"rejected"), (10, "d", b"proposed")):
        staged = staged_name(version, str(uuid.uuid4()))
        inner.put(staged, body)
        if name in "ab":
            entry = inner.head(staged)
            assert entry is not None
            commit = StagedCommit(inner.url, version, staged.rpartition("/")[2], entry.size, entry.modified_ms)
            assert isinstance(coordinator.ratify([commit]), Created)
    assert [entry.name for entry in store.list_from(LOG_FOLDER)] == [commit_name(v) for v in range(9)]
    assert store.names_from(LOG_FOLDER, f"{7:020d}") == [commit_name(7), commit_name(8)]
    assert store.get(commit_name(7)) == b"ratified 7", "the coordinator's commits count, also where it is published"
    assert store.get_many([commit_name(6), commit_name(8)]) == [b"published 6", b"ratified 8"]
    assert store.open_input(commit_name(8)).read() == b"ratified 8"
    entry = store.head(commit_name(8))
    assert entry is not None and entry.size == 10
    for name in (commit_name(10), checkpoint_name(10), commit_name(9)):
        assert store.head(name) is None
        with pytest.raises(NotFound):
            store.get(name)


def test_a_commit_is_staged_ratified_and_published(table: Table, inner: LogStore, coordinator: SqlCoordinator) -> None:
    assert table.append(rows(2)) == 2
    staged = inner.list_from(STAGED_FOLDER)
    assert [staged_version(entry.name) for entry in staged] == [1, 2]
    assert inner.get(staged[-1].name) == inner.get(commit_name(2))
    info = json.loads(inner.get(commit_name(2)).split(b"\n")[0])["commitInfo"]
    assert info["txnId"] and info["inCommitTimestamp"]
    assert coordinator.managed([inner.url])[inner.url].commits == {}
    assert table.check(strict=True) == []


def test_unpublished_commits_are_read_and_published_by_the_next_writer(
    table: Table, inner: LogStore, coordinator: SqlCoordinator
) -> None:
    blocked = table_over(WithoutPublishing(inner), coordinator)
    assert [blocked.append(rows(n)) for n in (2, 3)] == [2, 3]
    assert inner.head(commit_name(2)) is None
    assert ids(blocked) == ids(table_over(inner, coordinator)) == ids(table) == [1, 2, 3]
    assert [commit["version"] for commit in blocked.history()] == [3, 2, 1, 0]
    assert ids(table, version=2) == [1, 2]
    with pytest.raises(StorageFailure, match="publish it later"):
        blocked.checkpoint()
    assert inner.head(checkpoint_name(3)) is None, "a checkpoint contains published versions only"
    assert table.append(rows(4)) == 4
    assert all(inner.head(commit_name(version)) for version in range(5))
    assert ids(blocked) == [1, 2, 3, 4] and table.check(strict=True) == []


def test_without_its_coordinator_the_table_is_refused(table: Table, inner: LogStore, tmp_path: Path) -> None:
    for stranger in (Table(inner.url, store=inner), table_over(inner, SqlCoordinator(f"sqlite:///{tmp_path}/other.db"))):
        for use in (stranger.to_arrow, partial(stranger.append, rows(9)), stranger.checkpoint, stranger.history):
            with pytest.raises(Unsupported, match="catalogManaged") as caught:
                use()
            assert caught.value.code == "DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED"
    with pytest.raises(InvalidRequest, match="none is configured"):
        Table.create(f"{inner.url}/other", SCHEMA, properties=MANAGED)


def test_a_store_sent_to_another_process_has_no_coordinator(inner: LogStore, coordinator: SqlCoordinator, tmp_path: Path) -> None:
    store = CoordinatedStore(open_store(tmp_path / "t"), coordinator, SYSTEM_CLOCK)
    there = pickle.loads(pickle.dumps(store))
    assert (there.url, there.coordination) == (store.url, "none")


def test_a_table_can_be_put_under_a_coordinator_later_and_other_writers_notice(
    inner: LogStore, coordinator: SqlCoordinator
) -> None:
    plain = Table(inner.url, store=inner)
    plain.append(rows(1))
    late = plain.begin()
    table = table_over(inner, coordinator)
    assert table.append(rows(2)) == 1 and coordinator.managed([inner.url]) == {}
    assert table.add_feature("catalogManaged") == 2
    assert table.append(rows(3)) == 3 and inner.list_from(STAGED_FOLDER)
    assert ids(table) == [1, 2, 3] and ids(table, version=1) == [1, 2]
    assert [row["version"] for row in table.history()] == [3, 2, 1, 0]
    operation = stage_write(late, rows(9), WriteOptions("append"))
    with pytest.raises(ProtocolChangedException):
        plain.commit(late, operation)
    assert ids(table) == [1, 2, 3]


@pytest.mark.parametrize("died", ["before the commit", "after the commit"])
def test_an_interrupted_start_of_coordination_is_completed_by_other_writers(
    inner: LogStore, coordinator: SqlCoordinator, died: str
) -> None:
    Table(inner.url, store=inner).append(rows(1))
    if died == "before the commit":
        coordinator.expect(inner.url, 1, "who died")
        assert ids(Table(inner.url, store=inner)) == [1]
        assert table_over(inner, coordinator).append(rows(2)) == 1, "it is still a plain table"
        assert coordinator.managed([inner.url])[inner.url].last_version is None
        assert table_over(inner, coordinator).add_feature("catalogManaged") == 2
    else:

        class Forgetful(SqlCoordinator):
            def adopt(self, table: str, version: int) -> None:
                raise StorageFailure("the process died here")

        forgetful = Forgetful(f"sqlite:///{coordinator._database.url[10:]}")
        assert table_over(inner, forgetful).add_feature("catalogManaged") == 1
        assert coordinator.managed([inner.url])[inner.url].last_version is None
    version = table_over(inner, coordinator).version()
    assert coordinator.managed([inner.url])[inner.url].last_version == version
    assert table_over(inner, coordinator).append(rows(7)) == version + 1


def test_a_table_of_another_coordinator_is_not_adopted(inner: LogStore, coordinator: SqlCoordinator, tmp_path: Path) -> None:
    Table(inner.url, store=inner).append(rows(1))
    coordinator.expect(inner.url, 1, "who died")
    second = SqlCoordinator(f"sqlite:///{tmp_path}/other.db")
    assert table_over(inner, second).add_feature("catalogManaged") == 1
    with pytest.raises(Unsupported, match="does not know it"):
        table_over(inner, coordinator).to_arrow()
    assert table_over(inner, second).append(rows(2)) == 2


@pytest.mark.damages_tables
def test_an_unratified_commit_is_ignored_and_blocks_its_version(
    table: Table, inner: LogStore, coordinator: SqlCoordinator
) -> None:
    rogue = inner.get(commit_name(1)) + b"\n"
    inner.put(commit_name(2), rogue)
    assert table_over(inner, coordinator).version() == table.version() == 1
    staged = len(inner.list_from(STAGED_FOLDER))
    with pytest.raises(CorruptTable, match="find that writer, then delete") as caught:
        table.append(rows(2))
    assert caught.value.code == "TAHOE_UNRATIFIED_COMMIT"
    assert ids(table) == ids(table_over(inner, coordinator)) == [1] and inner.get(commit_name(2)) == rogue
    assert len(inner.list_from(STAGED_FOLDER)) == staged and coordinator.managed([inner.url])[inner.url].last_version == 1
    inner.delete(commit_name(2))
    assert table.append(rows(3)) == 2 and table.check(strict=True) == []


@pytest.mark.damages_tables
def test_an_unratified_commit_in_place_of_a_ratified_one_is_reported(
    table: Table, inner: LogStore, coordinator: SqlCoordinator, caplog: pytest.LogCaptureFixture
) -> None:
    table_over(WithoutPublishing(inner), coordinator).append(rows(2))
    rogue = inner.get(commit_name(1))
    inner.put(commit_name(2), rogue)
    assert ids(table_over(inner, coordinator)) == [1, 2], "the coordinator's commits count"
    assert table.append(rows(3)) == 3
    assert "another commit than the one that" in caplog.text
    with pytest.raises(CorruptTable, match="find that writer"):
        table.store.publish()  # type: ignore[attr-defined]
    assert ids(table) == [1, 2, 3] and inner.get(commit_name(2)) == rogue
    inner.delete(commit_name(2))
    assert table.append(rows(4)) == 4 and table.check(strict=True) == []


def test_two_writers_publish_at_once_and_one_of_them_cleans_up(
    table: Table, inner: LogStore, coordinator: SqlCoordinator
) -> None:
    """Another writer publishes all commits and deletes the staged files at each storage call of the first."""
    table_over(WithoutPublishing(inner), coordinator).append(rows(2))
    table_over(WithoutPublishing(inner), coordinator).append(rows(3))
    published = [inner.get(entry.name) for entry in inner.list_from(STAGED_FOLDER)[-2:]]

    class Overtaken(WrappedStore):
        def _call(self, method, name, run):  # type: ignore[no-untyped-def]
            if method == "get" and STAGED_FOLDER in name and self.inner.head(commit_name(3)) is None:
                store = table_over(inner, coordinator).store
                assert isinstance(store, CoordinatedStore) and store.publish() == 3
                for entry in inner.list_from(STAGED_FOLDER):
                    store.delete(entry.name)
            return run()

    overtaken = table_over(Overtaken(inner), coordinator).store
    assert isinstance(overtaken, CoordinatedStore) and overtaken.publish() == 3
    assert [inner.get(commit_name(version)) for version in (2, 3)] == published
    assert coordinator.managed([inner.url])[inner.url].commits == {} and ids(table) == [1, 2, 3]
    assert table.check(strict=True) == []


@pytest.mark.parametrize("after", range(1, 4))
def test_a_crash_between_ratifying_and_publishing_leaves_a_commit(
    table: Table, inner: LogStore, coordinator: SqlCoordinator, after: int
) -> None:
    """The writer dies at each step after ratification; readers, a checkpoint and the next writer see its commit."""

    class Dies(BaseException):
        """The end of the process, which no handler catches."""

    class Mortal(SqlCoordinator):
        calls = 0

        def ratify(self, proposed, unchanged=None):  # type: ignore[no-untyped-def]
            outcome = super().ratify(proposed, unchanged)
            self.calls = 1
            return outcome

        def managed(self, tables):  # type: ignore[no-untyped-def]
            if self.calls == 1 == after:
                raise Dies
            return super().managed(tables)

        def published(self, table, version):  # type: ignore[no-untyped-def]
            if self.calls == 1 and after == 2:
                raise Dies
            super().published(table, version)
            if self.calls == 1:
                raise Dies

    mortal = Mortal(f"sqlite:///{coordinator._database.url[10:]}")
    with pytest.raises(Dies):
        table_over(inner, mortal).append(rows(2))
    assert (inner.head(commit_name(2)) is None) == (after == 1)
    assert ids(table) == ids(table_over(inner, coordinator)) == [1, 2]
    assert table.checkpoint() == 2 or inner.head(checkpoint_name(2)) is not None
    assert inner.head(commit_name(2)) is not None, "a checkpoint contains published versions only"
    assert table.append(rows(3)) == 3 and table.check(strict=True) == []


@pytest.mark.damages_tables
def test_a_lost_log_is_reported_and_never_read_as_an_older_version(
    table: Table, inner: LogStore, coordinator: SqlCoordinator
) -> None:
    inner.delete(commit_name(1))
    with pytest.raises(CorruptTable, match="says that version 1 is the last"):
        table_over(inner, coordinator).version()
    for entry in list(inner.walk()):
        inner.delete(entry.name)
    with pytest.raises(CorruptTable, match="forget"):
        Table.create(inner.url, SCHEMA, store=inner, coordinator=coordinator)
    coordinator.forget(inner.url)
    assert Table.create(inner.url, SCHEMA, properties=MANAGED, store=inner, coordinator=coordinator).version() == 0


@pytest.mark.parametrize("answer", ["ratified", "not ratified"])
def test_a_lost_answer_of_the_coordinator_is_settled_by_asking_again(
    table: Table, inner: LogStore, coordinator: SqlCoordinator, answer: str
) -> None:
    class LosesOne(SqlCoordinator):
        lost = 0

        def ratify(self, proposed, unchanged=None):  # type: ignore[no-untyped-def]
            if self.lost:
                return super().ratify(proposed, unchanged)
            self.lost += 1
            if answer == "ratified":
                super().ratify(proposed, unchanged)
            return Unanswered("gone")

    losing = LosesOne(f"sqlite:///{coordinator._database.url[10:]}")
    assert table_over(inner, losing).append(rows(2)) == 2
    assert losing.lost == 1 and ids(table) == [1, 2] and table.version() == 2
    assert table.append(rows(3)) == 3 and table.check(strict=True) == []


@pytest.mark.parametrize("fault", [fault for fault in PutFault if fault is not PutFault.NONE])
def test_lost_requests_and_answers_of_storage_make_no_difference(
    table: Table, inner: LogStore, coordinator: SqlCoordinator, fault: PutFault
) -> None:
    for puts in ([fault], [PutFault.NONE, fault]):  # for the staged file, for the published one
        before = table.version()
        assert table_over(FaultyStore(inner, puts=puts), coordinator).append(rows(before + 1)) == before + 1
    assert ids(table) == [1, 2, 3] and table.append(rows(4)) == 4
    assert table.check(strict=True) == []


def test_a_lost_race_leaves_no_staged_file(table: Table, inner: LogStore, coordinator: SqlCoordinator) -> None:
    late = table.begin()
    table_over(inner, coordinator).append(rows(2))
    assert table.commit(late, stage_write(late, rows(3), WriteOptions("append"))).version == 3
    assert ids(table) == [1, 2, 3]
    assert len(inner.list_from(STAGED_FOLDER)) == 3
    store = table.store
    assert isinstance(store, CoordinatedStore)
    outcome = store.put_if_absent(commit_name(3), b"{}")
    assert isinstance(outcome, Exists) and len(inner.list_from(STAGED_FOLDER)) == 3


def test_clean_up_deletes_published_staged_files_up_to_the_checkpoint(
    table: Table, inner: LogStore, coordinator: SqlCoordinator
) -> None:
    blocked = table_over(WithoutPublishing(inner), coordinator)
    inner.put(staged_name(1, str(uuid.uuid4())), b"lost its race")
    table.append(rows(2))
    table.checkpoint()
    blocked.append(rows(3))
    inner.put(staged_name(3, str(uuid.uuid4())), b"lost its race, newer than the checkpoint")
    later = SYSTEM_CLOCK.now_ms() + 100 * 86_400_000
    assert clean_up_log(table.store, table.snapshot().config, later)
    left = [entry.name.rpartition("/")[2][:20] for entry in inner.list_from(STAGED_FOLDER)]
    assert left == [f"{3:020d}"] * 2
    assert ids(table_over(inner, coordinator)) == [1, 2, 3] and table.append(rows(4)) == 4
    # Deleting the staged file of an unpublished commit publishes the commit first.
    blocked.append(rows(5))
    newest = coordinator.managed([inner.url])[inner.url].commits[5].file
    table.store.delete(f"{STAGED_FOLDER}/{newest}")
    assert inner.head(commit_name(5)) is not None and ids(table_over(inner, coordinator)) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("file", ["../../secret.json", f"{2:020d}.../x.json", f"{3:020d}.{uuid.uuid4()}.json", ""])
def test_a_row_of_the_database_with_an_invalid_name_is_refused(
    table: Table, inner: LogStore, coordinator: SqlCoordinator, file: str
) -> None:
    assert isinstance(coordinator.ratify([StagedCommit(inner.url, 2, file, 1, 1)]), Created)
    for use in (table.version, partial(table.append, rows(2)), table_over(inner, coordinator).to_arrow):
        with pytest.raises(CorruptTable, match="not the name of a staged commit"):
            use()


def test_a_commit_is_never_overwritten(table: Table) -> None:
    with pytest.raises(InvalidRequest, match="cannot be overwritten"):
        table.store.put(commit_name(1), b"{}")


def test_maintenance_of_a_managed_table(table: Table, inner: LogStore, coordinator: SqlCoordinator) -> None:
    table.append(rows(2))
    table.delete("id = 1")
    table.optimize()
    table.restore(version=2)
    table.vacuum()
    assert ids(table) == ids(table_over(inner, coordinator)) == [1, 2]
    copy = Table(f"memory://{uuid.uuid4()}/copy", store=open_store(f"memory://{uuid.uuid4()}/copy"))
    table.clone(copy, shallow=False)
    assert ids(copy) == [1, 2] and not copy.snapshot().config.features & {"catalogManaged"}
    assert table.check(strict=True) == [] and copy.check(strict=True) == []
