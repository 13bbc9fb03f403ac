"""VACUUM without Spark: it deletes files that no reader may need, and no others."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import obstore
import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.base.exceptions import ConcurrentWriteException, InvalidRequest, NotFound, StorageFailure, TahoeWarning, Unsupported
from tahoe.base.progress import Reported
from tahoe.log.files.live_files import add_files
from tahoe.log.files.paths import LOG_FOLDER
from tahoe.ops.layout.bins import Bin
from tahoe.ops.layout.optimize import RewrittenBin, optimize, rewritten_here
from tahoe.ops.layout.optimize_plan import OptimizePlan, OptimizeRequest
from tahoe.ops.rows.insert import WriteOptions, stage_write
from tahoe.ops.tables.requests import VacuumRequest
from tahoe.ops.upkeep.vacuum import Vacuumed, vacuum
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.log_store import LogStore
from tahoe.store.object_store import open_store
from tahoe.store.stream_records import record_stream
from tahoe.testing.aged_store import AgedClock, AgedStore
from tahoe.testing.faulty_store import CrashingStore, SimulatedCrash, TracingStore, WrappedStore
from tahoe.txn.transaction import Operation

SCHEMA = pa.schema({"p": pa.string(), "id": pa.int64()})
VECTORS = {"delta.enableDeletionVectors": "true"}
WEEK_MS = 7 * 24 * 3_600_000


def rows(first: int, count: int = 10) -> pa.Table:
    ids = range(first, first + count)
    return pa.table({"p": ["ab"[i % 2] for i in ids], "id": ids}, SCHEMA)


@pytest.fixture
def store() -> AgedStore:
    return AgedStore(open_store(f"memory://{SYSTEM_CLOCK.uuid()}/table"))


def table_of(store: AgedStore, properties: dict[str, str] | None = None, hours_wrong: float = 0.0) -> Table:
    """Version 3: two files overwritten by a third."""
    clock = AgedClock(store, hours_wrong)
    table = Table.create(store.url, SCHEMA, properties=properties, store=store, clock=clock)
    table.append(rows(0))
    table.append(rows(10))
    table.overwrite(rows(20))
    return table


def session(store: LogStore, clock: AgedClock) -> Table:
    return Table(store.url, store=store, clock=clock)


def files(store: LogStore) -> set[str]:
    return {entry.name for entry in store.walk() if not entry.name.startswith(LOG_FOLDER)}


def vacuumed(table: Table, hours: float | None = None) -> Vacuumed:
    return table.vacuum(hours, retention_check=False)


def test_files_stay_for_the_retention_and_go_after_it(store: AgedStore) -> None:
    table = table_of(store)
    store.later(167)
    assert table.vacuum().deleted == 0
    store.later(2)
    planned = table.vacuum(dry_run=True)
    assert planned.deleted == 0 and len(files(store)) == 3
    assert planned.plan.lost_versions == (1, 2)
    reported = str(planned)
    assert "would delete 2 files" in reported and "2 versions would become unreadable: 1 to 2." in reported
    done = table.vacuum()
    assert done.deleted == 2 and {entry.name for entry in done.plan.files} == {entry.name for entry in planned.plan.files}
    assert "deleted 2 files" in str(done)
    assert table.to_arrow().num_rows == 10
    assert table.check() == []
    for version in (1, 2):
        with pytest.raises(NotFound):
            table.to_arrow(version=version)
    assert table.vacuum().deleted == 0


def test_a_stream_that_lags_is_reported_by_its_checkpoint_before_its_files_go(store: AgedStore) -> None:
    table = table_of(store)
    record_stream(store, "file:/late/sources/0", 2)
    record_stream(store, "file:/newest/sources/0", 4)
    assert table.vacuum(dry_run=True).plan.late_streams == ()  # nothing goes yet
    store.later(169)
    with pytest.warns(
        TahoeWarning, match=r"up to version 3 removed.* file:/late/sources/0 had read only the versions before 2 "
    ) as raised:
        plan = table.vacuum(dry_run=True).plan
    assert (len(raised), [item.version for item in plan.late_streams]) == (1, [2])
    record_stream(store, "file:/late/sources/0", 3)
    # The change feed of version 3 consists of the removed rows.
    assert [item.version for item in table.vacuum(dry_run=True).plan.late_streams] == [3]
    record_stream(store, "file:/late/sources/0", 4)
    assert table.vacuum().plan.late_streams == ()
    assert table.check(strict=True) == []


def test_the_history_records_it_in_the_references_words(store: AgedStore) -> None:
    table = table_of(store)
    store.later(24)
    version = vacuumed(table, 1.5).version
    end, start = table.history(2)
    assert (start["operation"], end["operation"], end["version"]) == ("VACUUM START", "VACUUM END", version)
    assert start["operationParameters"] == {
        "retentionCheckEnabled": "false",
        "defaultRetentionMillis": str(WEEK_MS),
        "specifiedRetentionMillis": "5400000",
    }
    assert start["operationMetrics"]["numFilesToDelete"] == "2"
    assert int(start["operationMetrics"]["sizeOfDataToDelete"]) > 0
    assert end["operationParameters"] == {"status": "COMPLETED"}
    assert end["operationMetrics"] == {"numDeletedFiles": "2", "numVacuumedDirectories": "1"}
    table.vacuum()
    assert "specifiedRetentionMillis" not in table.history(2)[1]["operationParameters"]
    before = table.version()
    assert table.vacuum(logs=False).version is None
    assert table.version() == before


def test_a_retention_shorter_than_the_tables_is_refused(store: AgedStore) -> None:
    table = table_of(store)
    with pytest.raises(InvalidRequest, match="at least 168 hours") as caught:
        table.vacuum(167)
    assert caught.value.code == "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"
    with pytest.raises(InvalidRequest) as caught:
        vacuumed(table, -1)
    assert caught.value.code == "DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE"
    assert table.vacuum(168).deleted == 0
    table.set_properties({"delta.deletedFileRetentionDuration": "interval 90 minutes"})
    with pytest.raises(InvalidRequest, match="at least 2 hours"):
        table.vacuum(1)


def test_a_protocol_that_is_not_known_is_not_cleaned(store: AgedStore) -> None:
    table = table_of(store)
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "readerFeatures": None, "writerFeatures": ["unheardOf"]}
    info = {"commitInfo": {"operation": "X", "timestamp": 1}}
    body = "\n".join(json.dumps(line) for line in (info, {"protocol": {k: v for k, v in protocol.items() if v}}))
    store.put(f"{LOG_FOLDER}/{4:020}.json", body.encode())
    store.later(1000)
    for dry_run in (True, False):
        with pytest.raises(Unsupported, match="unheardOf"):
            table.vacuum(dry_run=dry_run)
    assert len(files(store)) == 3


@pytest.mark.parametrize("hours_wrong", [-1000.0, 1000.0])
def test_the_clock_of_a_writer_does_not_count(store: AgedStore, hours_wrong: float) -> None:
    """Its tombstones are of the wrong time; its commits have the storage's."""
    table = table_of(store, hours_wrong=hours_wrong)
    store.later(167)
    assert session(store, AgedClock(store)).vacuum().deleted == 0
    store.later(2 if hours_wrong < 0 else 1002)
    assert table.vacuum().deleted == 2


def test_vectors_that_files_share_stay_until_the_last_of_them_goes(store: AgedStore) -> None:
    table = Table.create(store.url, SCHEMA, partition_by=["p"], properties=VECTORS, store=store, clock=AgedClock(store))
    table.append(rows(0, 4000))
    table.delete("id % 3 = 0")  # two files, one file of vectors
    vectors = [name for name in files(store) if name.endswith(".bin")]
    assert len(vectors) <= 1
    table.delete("p = 'a'")
    store.later(500)
    expected = table.to_arrow().sort_by("id")
    assert table.vacuum().deleted == 1
    assert [name for name in files(store) if name.endswith(".bin")] == vectors
    assert table.to_arrow().sort_by("id") == expected
    assert table.check(deep=True) == []
    table.purge()
    store.later(500)
    table.vacuum()
    assert len(files(store)) == 1
    assert table.to_arrow().sort_by("id") == expected


def test_change_data_stays_for_the_retention(store: AgedStore) -> None:
    table = table_of(store, {"delta.enableChangeDataFeed": "true"})
    table.update({"id": "id + 1"}, "id = 20")
    store.later(100)
    assert table.vacuum().deleted == 0
    assert table.changes(4).num_rows == 2
    store.later(100)
    table.vacuum()
    assert not [name for name in files(store) if name.startswith("_change_data")]


KEPT = [
    "_hidden/file.parquet",
    ".hidden/file.parquet",
    "_committed_1",
    ".file.crc",
    "p=1/_temporary/0/part.parquet",
    "metadata/v1.metadata.json",
    "metadata/snap-1.avro",
    "_delta_log/_sidecars/one.parquet",
    "_delta_log/_other",
    "%2e%2e/file.parquet",
    "a\\b.parquet",
]
GOING = [
    "abc.txt",
    "p=1/part.parquet",
    "_day=1/part.parquet",
    "_change_data/cdc.parquet",
    "_delta_index/one",
    "a%20b.parquet",
    "deep/metadata/x",
]


def test_hidden_and_unknown_files_stay(store: AgedStore) -> None:
    schema = pa.schema({"_day": pa.int64(), "id": pa.int64()})
    table = Table.create(store.url, schema, partition_by=["_day"], store=store, clock=AgedClock(store))
    for name in [*KEPT, *GOING]:
        store.put(name, b"?")
    store.later(200)
    gone = {entry.name for entry in table.vacuum().plan.files}
    assert gone == set(GOING)
    assert {name for name in KEPT if store.head(name) is None} == set()


def test_twins_of_encoded_names_are_distinguished(store: AgedStore) -> None:
    """``a b`` is in the log as ``a%20b``, and ``a%20b`` as ``a%2520b``: they are different files."""
    table = Table.create(store.url, SCHEMA, partition_by=["p"], store=store, clock=AgedClock(store))
    strange = ["a b", "a%20b", "ä", "a+b", "a=b", "100%"]
    table.append(pa.table({"p": strange, "id": range(6)}, SCHEMA))
    live = files(store)
    orphans = {name.replace("p=", "p=x") for name in live}
    for name in orphans:
        store.put(name, b"?")
    store.later(200)
    assert {entry.name for entry in table.vacuum().plan.files} == orphans
    assert files(store) == live
    assert sorted(table.to_arrow()["p"].to_pylist()) == sorted(strange)


# -- other ways to find the files ------------------------------------------------------------------------------------------


def test_lite_deletes_removed_files_and_leaves_unnamed_ones(store: AgedStore) -> None:
    table = table_of(store)
    store.put("orphan.parquet", b"?")
    store.later(200)
    tracing = TracingStore(store)
    done = session(tracing, AgedClock(store)).vacuum(lite=True)
    assert done.deleted == 2 and done.plan.size > 0
    assert "walk" not in {call.method for call in tracing.calls}
    assert store.head("orphan.parquet") is not None
    assert json.loads(store.get(f"{LOG_FOLDER}/_last_vacuum_info")) == {"latestCommitVersionOutsideOfRetentionWindow": 3}
    assert table.vacuum(lite=True).deleted == 0
    table.overwrite(rows(30))
    store.later(200)
    assert table.vacuum(lite=True).deleted == 1
    assert table.vacuum().deleted == 1
    assert table.check() == []


def test_lite_looks_at_nothing_twice_and_forgets_nothing(store: AgedStore) -> None:
    """A tombstone of a clock that is ahead is too young when its commit is old enough: the next VACUUM comes for it."""
    table = table_of(store, hours_wrong=300)
    store.later(200)
    assert table.vacuum(lite=True).deleted == 0
    store.later(300)
    assert table.vacuum(lite=True).deleted == 2


def test_lite_needs_every_commit_since_the_last_vacuum(store: AgedStore) -> None:
    table = table_of(store)
    table.checkpoint()
    store.later(200)
    for version in (0, 1):
        store.delete(f"{LOG_FOLDER}/{version:020}.json")
    for info in (None, {"latestCommitVersionOutsideOfRetentionWindow": 0}, ["nonsense"], {}):
        if info is not None:
            store.put(f"{LOG_FOLDER}/_last_vacuum_info", json.dumps(info).encode())
        with pytest.raises(InvalidRequest, match="Run VACUUM without LITE") as caught:
            table.vacuum(lite=True)
        assert caught.value.code == "DELTA_CANNOT_VACUUM_LITE"
    assert table.vacuum().deleted == 2
    assert table.vacuum(lite=True).deleted == 0


def inventory_of(store: AgedStore, root: str | None = None) -> pa.Table:
    actual = list(store.walk())
    return pa.table(
        {
            "path": [f"{root or store.url}/{entry.name}" for entry in actual]
            + [f"{root or store.url}/p", "/elsewhere/x.parquet"],
            "length": [entry.size for entry in actual] + [0, 1],
            "isDir": [False] * len(actual) + [True, False],
            "modificationTime": [0] * (len(actual) + 2),
        }
    )


def test_an_inventory_takes_the_place_of_the_listing(store: AgedStore) -> None:
    table = table_of(store)
    store.put("orphan.parquet", b"?")
    store.later(200)
    inventory = inventory_of(store)
    store.put("since.parquet", b"?")
    tracing = TracingStore(store)
    done = session(tracing, AgedClock(store)).vacuum(inventory=inventory)
    assert done.deleted == 3
    assert "walk" not in {call.method for call in tracing.calls}
    assert store.head("since.parquet") is not None
    # It says of each file that it is old; storage is asked, and of this one it knows better.
    assert table.vacuum(inventory=inventory_of(store)).deleted == 0
    with pytest.raises(InvalidRequest, match="one of the two"):
        table.vacuum(inventory=inventory, lite=True)


def test_an_inventory_must_have_its_columns(store: AgedStore) -> None:
    table, inventory = table_of(store), inventory_of(store)
    for wrong in (inventory.drop(["isDir"]), inventory.set_column(1, "length", pa.array(["1"] * len(inventory)))):
        with pytest.raises(InvalidRequest) as caught:
            table.vacuum(inventory=wrong)
        assert caught.value.code == "DELTA_INVALID_INVENTORY_SCHEMA"


# -- others beside it --------------------------------------------------------------------------------------------------------


class Meddling(WrappedStore):
    """Something happens once, before the first call of a method about a name."""

    def __init__(self, inner: LogStore, method: str, end: str, meanwhile: Callable[[], object]) -> None:
        super().__init__(inner)
        self.when, self.meanwhile = (method, end), meanwhile

    def _call(self, method: str, name: str, run: Callable[[], object]) -> object:  # type: ignore[override]
        if self.when[0] == method and name.endswith(self.when[1]):
            self.when = ("", "")
            self.meanwhile()
        return run()


def staged(table: Table) -> Callable[[], int]:
    """A writer that has written its file and not committed."""
    transaction = table.begin()
    operation = stage_write(transaction, rows(100), WriteOptions())
    return lambda: table.commit(transaction, operation).version


@pytest.mark.parametrize("moment", [("put", ".tahoe-clock"), ("walk", ""), ("put_if_absent", "04.json")])
def test_a_writer_that_commits_before_it_begins_to_delete_keeps_its_file(store: AgedStore, moment: tuple[str, str]) -> None:
    table = table_of(store)
    commit = staged(session(store, AgedClock(store)))
    store.later(0.5)
    meddling = Meddling(store, *moment, commit)
    assert vacuumed(session(meddling, AgedClock(store)), 0).deleted == 2
    assert table.to_arrow().num_rows == 20
    assert table.check() == []


@pytest.mark.parametrize("later", [0.5, 2.0])
def test_a_writer_that_commits_when_it_deletes_is_reported(store: AgedStore, later: float) -> None:
    table = table_of(store)
    commit = staged(session(store, AgedClock(store)))
    store.later(later)
    caught: list[str] = []

    def meanwhile() -> None:
        with pytest.raises(ConcurrentWriteException, match=r"may be deleted by a VACUUM in progress|is missing") as error:
            commit()
        caught.append(error.value.message)

    meddling = Meddling(store, "delete", ".parquet", meanwhile)
    assert vacuumed(session(meddling, AgedClock(store)), 0).deleted == 3
    assert len(caught) == 1
    assert table.to_arrow().num_rows == 10


def test_an_optimize_that_keeps_its_files_through_a_lost_race_is_reported(store: AgedStore) -> None:
    """Its second try begins after VACUUM START, with files from before."""
    table = table_of(store)
    for number in range(3):
        table.append(rows(100 + number * 10))
    clock = AgedClock(store)
    started: list[int] = []

    def rewrite(snapshot: Snapshot, bins: Sequence[Bin], plan: OptimizePlan) -> Iterator[RewrittenBin]:
        yield from rewritten_here(clock, snapshot, bins, plan)
        if not started:  # a VACUUM begins: the first try is lost to it
            store.later(0.1)
            parameters = {"retentionCheckEnabled": False, "defaultRetentionMillis": WEEK_MS, "specifiedRetentionMillis": 0}
            begun = session(store, clock)
            started.append(begun.commit(begun.begin(), Operation("VACUUM START", parameters)).version)

    other = session(store, clock)
    with pytest.raises(ConcurrentWriteException):
        optimize(other.begin, other.commit, OptimizeRequest(), rewrite)
    assert table.version() == started[0]


@pytest.mark.parametrize("logs", [True, False])
def test_a_writer_that_commits_too_late_is_reported(store: AgedStore, logs: bool) -> None:
    table = table_of(store)
    commit = staged(session(store, AgedClock(store)))
    store.later(200)
    table.vacuum(logs=logs)
    with pytest.raises(ConcurrentWriteException, match="is missing"):
        commit()
    assert table.to_arrow().num_rows == 10


def test_a_writer_within_the_retention_continues(store: AgedStore) -> None:
    table = table_of(store)
    commit = staged(session(store, AgedClock(store)))
    store.later(100)
    table.vacuum()
    commit()
    assert table.to_arrow().num_rows == 20


def test_whoever_dies_in_it_leaves_a_whole_table(store: AgedStore) -> None:
    table = table_of(store)
    calls = 0
    while True:
        store.later(200)
        crashing = CrashingStore(store, calls, after=calls % 2 == 0)
        calls += 1
        try:
            session(crashing, AgedClock(store)).vacuum()
            break
        except SimulatedCrash:
            assert session(store, AgedClock(store)).to_arrow().num_rows == 10
    assert calls > 10
    assert len(files(store)) == 1
    assert table.check() == []


def test_files_that_storage_keeps_are_reported_and_the_others_go(store: AgedStore) -> None:
    table = table_of(store)
    store.later(200)
    remaining = sorted(files(store) - set(table.files()["path"].to_pylist()))[0]

    class Keeping(WrappedStore):
        def delete(self, name: str) -> None:
            if name == remaining:
                raise StorageFailure(f"no, not {name}")
            super().delete(name)

    with pytest.raises(StorageFailure, match=r"1 of 2 files .* 1 were"):
        session(Keeping(store), AgedClock(store)).vacuum()
    assert table.history(1)[0]["operationParameters"] == {"status": "FAILED"}
    assert store.head(f"{LOG_FOLDER}/_last_vacuum_info") is None
    assert table.vacuum().deleted == 1


def test_it_shows_how_far_it_is(store: AgedStore) -> None:
    table, progress = table_of(store), Reported()
    store.later(200)
    vacuum(table.begin, table.commit, VacuumRequest(), progress=progress)
    assert ("files deleted", 2, 2) in progress.reports
    assert any(step == "files listed" for step, _, _ in progress.reports)


# -- a real folder -----------------------------------------------------------------------------------------------------------


def aged(folder: Path, hours: float) -> None:
    """Make every file of a folder so much older."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            status = path.stat()
            os.utime(path, (status.st_atime - hours * 3600, status.st_mtime - hours * 3600))


def test_links_are_neither_followed_nor_deleted(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious.parquet").write_bytes(b"?")
    folder = tmp_path / "table"
    table = Table.create(str(folder), SCHEMA)
    table.append(rows(0))
    live = folder / table.files()["path"][0].as_py()
    (folder / "real").mkdir()
    (folder / "real" / "named.parquet").write_bytes(live.read_bytes())
    (folder / "alias").symlink_to(folder / "real")
    (folder / "out").symlink_to(outside)
    (folder / "link.parquet").symlink_to(outside / "precious.parquet")
    (folder / "broken.parquet").symlink_to(folder / "nowhere")
    (folder / "orphan.parquet").write_bytes(b"?")
    actual = add_files(table.files())[0]
    transaction = table.begin()
    transaction.stage(replace(actual, path="alias/named.parquet"))
    table.commit(transaction, Operation("WRITE"))
    aged(folder, 200)
    done = Table(str(folder)).vacuum()
    assert {entry.name for entry in done.plan.files} == {"orphan.parquet"}
    assert (outside / "precious.parquet").exists() and (folder / "link.parquet").is_symlink()
    assert (folder / "broken.parquet").is_symlink()
    assert Table(str(folder)).to_arrow().num_rows == 20


def test_empty_folders_go_when_they_have_been_empty_for_the_retention(tmp_path: Path) -> None:
    """As in the reference, by the VACUUM after the one that empties them."""
    folder = tmp_path / "t"
    table = Table.create(str(folder), SCHEMA, partition_by=["p"])
    table.append(rows(0))
    for name in ("p=old/q=1", "p=new", "_kept", "metadata"):
        (folder / name).mkdir(parents=True)
        os.utime(folder / name, (0, 0))
    os.utime(folder / "p=new")
    os.utime(folder / "p=old", (0, 0))
    table.vacuum(dry_run=True)
    assert (folder / "p=old" / "q=1").is_dir()
    table.vacuum()
    os.utime(folder / "p=old", (0, 0))  # it has lost its folder just now
    vacuumed(table, 0)
    assert sorted(path.name for path in folder.iterdir()) == ["_delta_log", "_kept", "metadata", "p=a", "p=b", "p=new"]
    assert table.to_arrow().num_rows == 10


def test_a_store_that_deletes_many_at_once_is_asked_once(
    s3_url: str, s3_options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table.create(s3_url, SCHEMA, partition_by=["p"], storage_options=s3_options)
    table.append(rows(0))
    for number in range(30):
        table.store.put(f"p=a/orphan {number}.parquet", b"")
    asked = list[object]()
    delete = obstore.delete

    def counted(store: object, what: object) -> None:
        asked.append(what)
        delete(store, what)

    monkeypatch.setattr(obstore, "delete", counted)
    time.sleep(1.1)  # storage has times in whole seconds, and files exactly as old as the retention stay
    assert vacuumed(table, 0).deleted == 30
    assert sorted(len(what) for what in asked if isinstance(what, list)) == [30]
    assert sum(entry.name.endswith(".parquet") for entry in table.store.walk("p=a")) == 1


def test_where_many_at_once_are_refused_each_is_tried(store: AgedStore) -> None:
    table_of(store)

    class Refusing(WrappedStore):
        def delete_many(self, names: list[str]) -> None:
            store.delete(names[0])
            raise StorageFailure("one of them is locked")

    store.later(200)
    assert Table(store.url, store=Refusing(store)).vacuum().deleted == 2
    assert len(files(store)) == 1


def test_a_folder_on_disk(tmp_path: Path) -> None:
    table = Table.create(str(tmp_path / "t"), SCHEMA, partition_by=["p"])
    table.append(rows(0))
    table.overwrite(rows(20))
    assert table.vacuum().deleted == 0
    assert vacuumed(table, 0).deleted == 2
    assert table.to_arrow().num_rows == 10
    assert table.check(deep=True) == []
    assert not list((tmp_path / "t" / "_delta_log").glob(".tahoe*"))


def test_s3(s3_options: dict[str, str]) -> None:
    url = f"s3://tables/{SYSTEM_CLOCK.uuid()}"
    table = Table.create(url, SCHEMA, partition_by=["p"], storage_options=s3_options)
    for number in range(3):
        table.overwrite(rows(number * 10))
    assert table.vacuum(logs=None).version is None  # as the reference: no commits there
    SYSTEM_CLOCK.sleep(1.1)  # times are whole seconds there
    planned = table.vacuum(0, retention_check=False, dry_run=True)
    done = vacuumed(table, 0)
    assert done.deleted == 4 and done.plan.files == planned.plan.files
    assert done.version is not None  # but for a retention that writers must be warned of
    assert table.to_arrow().num_rows == 10
    assert table.check() == []
