"""CLONE without Spark: tables of their own, of the files of another."""

from __future__ import annotations

import json
import time

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.base.exceptions import CorruptTable, InvalidRequest, NotFound
from tahoe.log.files.commits import read_commit
from tahoe.protocol.actions import AddFile
from tahoe.store.object_store import open_store
from tahoe.testing.aged_store import AgedStore
from tahoe.testing.faulty_store import CrashingStore, SimulatedCrash, TracingStore
from tahoe.testing.iceberg_verifier import verify

SCHEMA = pa.schema({"p": pa.string(), "id": pa.int64()})
VECTORS = {"delta.enableDeletionVectors": "true"}
TRACKED = {
    **VECTORS,
    "delta.enableRowTracking": "true",
    "delta.columnMapping.mode": "name",
    "delta.randomizeFilePrefixes": "true",
}
UNIFORM = {
    "delta.universalFormat.enabledFormats": "iceberg",
    "delta.enableIcebergCompatV2": "true",
    "delta.columnMapping.mode": "name",
}


def rows(first: int, count: int = 10) -> pa.Table:
    ids = range(first, first + count)
    return pa.table({"p": ["a b"] * (count // 2) + ["c"] * (count - count // 2), "id": ids}, SCHEMA)


@pytest.fixture
def root() -> str:
    return f"memory://{SYSTEM_CLOCK.uuid()}"


def table_of(root: str, properties: dict[str, str] | None = None) -> Table:
    """At version 3, with rows 0 to 19 but for 3 and 14."""
    table = Table.create(f"{root}/source", SCHEMA, partition_by=["p"], properties=properties)
    table.append(rows(0))
    table.append(rows(10))
    table.delete("id in (3, 14)")
    return table


def contents(table: Table, **options) -> pa.Table:
    return table.to_arrow(**options).sort_by("id")


def ids(table: Table) -> list[int]:
    return sorted(table.to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("properties", [{}, VECTORS, TRACKED])
@pytest.mark.parametrize("shallow", [True, False])
def test_a_clone_has_the_rows_and_their_ids_and_changes_alone(root, properties, shallow):
    source, has_ids = table_of(root, properties), "delta.enableRowTracking" in properties
    before = contents(source, row_ids=has_ids)
    planned = source.clone(f"{root}/clone", shallow=shallow, dry_run=True)
    clone = Table(f"{root}/clone")
    assert planned.version is None and "would make" in str(planned) and not clone.exists()
    done = source.clone(f"{root}/clone", shallow=shallow, properties={"team": "me"})
    assert done.version == 0 and f"a {'shallow' if shallow else 'deep'} clone of version 3" in str(done)
    assert done.metrics["source_num_of_files"] == len(source.files())
    assert done.metrics["num_copied_files"] == (0 if shallow else len(source.files()))
    assert contents(clone, row_ids=has_ids) == before
    assert (
        clone.snapshot().metadata.configuration["team"] == "me" and clone.snapshot().metadata.id != source.snapshot().metadata.id
    )
    assert clone.check(deep=True) == []
    clone.delete("id = 5")
    clone.update({"id": "id + 100"}, "id = 6")
    clone.append(rows(200, 2))
    clone.optimize()
    assert ids(clone) == sorted([*(item for item in ids(source) if item not in (5, 6)), 106, 200, 201])
    assert contents(source, row_ids=has_ids) == before
    assert clone.check(deep=True) == [] and source.check(deep=True) == []
    if has_ids:
        values = clone.to_arrow(row_ids=True)["_row_id"].to_pylist()
        assert len(set(values)) == len(values)
        newer = set(values) - set(before["_row_id"].to_pylist())
        assert len(newer) == 2 and min(newer) > max(before["_row_id"].to_pylist())


@pytest.mark.parametrize("shallow", [True, False])
def test_an_older_version_by_number_and_by_time(root, shallow):
    source = table_of(root, VECTORS)
    source.clone(f"{root}/one", shallow=shallow, version=1)
    assert ids(Table(f"{root}/one")) == list(range(10))
    source.clone(f"{root}/two", shallow=shallow, timestamp=source.history()[1]["timestamp"])
    assert ids(Table(f"{root}/two")) == list(range(20))
    assert Table(f"{root}/two").history()[0]["operationParameters"]["sourceVersion"] == "2"


@pytest.mark.damages_tables
def test_a_clone_of_a_clone_needs_every_source(root):
    source = table_of(root, TRACKED)
    source.clone(f"{root}/one", shallow=True)
    table = Table(f"{root}/one")
    table.append(rows(50))
    table.delete("id = 7")
    table.clone(f"{root}/two", shallow=True)
    table.clone(f"{root}/deep")
    two, deep = Table(f"{root}/two"), Table(f"{root}/deep")
    assert ids(two) == ids(deep) == ids(table)
    assert two.check(deep=True) == [] and deep.check(deep=True) == []
    assert all("://" not in path for path in deep.files()["path"].to_pylist())
    assert {v["storageType"] for v in deep.files()["deletionVector"].to_pylist() if v} <= {"u", "i"}
    with pytest.raises(CorruptTable):
        Table(f"{root}/stranger", store=_moved(two, f"{root}/stranger")).to_arrow()


def _moved(table: Table, url: str):
    store = open_store(url)
    for entry in table.store.walk("_delta_log"):
        store.put(entry.name, table.store.get(entry.name))
    return store


def test_a_second_deep_clone_copies_new_files(root):
    source = table_of(root, VECTORS)
    source.clone(f"{root}/clone")
    clone = Table(f"{root}/clone")
    same = source.clone(f"{root}/clone", replace=True)
    assert same.version is None and "nothing was to be done" in str(same)
    source.append(rows(30))
    source.delete("id = 15")
    trace = TracingStore(clone.store)
    done = source.clone(Table(clone.url, store=trace), replace=True)
    assert done.version == 1 and contents(clone) == contents(source) and clone.check(deep=True) == []
    put = [call.name for call in trace.calls if call.method == "put" and not call.name.startswith("_delta_log")]
    assert sum(name.endswith(".parquet") for name in put) == 2 and sum(name.endswith(".bin") for name in put) == 1
    clone.append(rows(500))
    assert source.clone(f"{root}/clone", replace=True).metrics["num_removed_files"] == 2
    assert contents(clone) == contents(source)
    assert ids(Table(f"{root}/clone")) == ids(source) and len(contents(clone, version=2)) == len(contents(source)) + 10


@pytest.mark.parametrize("shallow", [True, False])
def test_a_clone_that_dies_anywhere_is_all_or_nothing_and_goes_on_where_it_was(root, shallow):
    source = table_of(root, VECTORS)
    trace = TracingStore(open_store(f"{root}/traced"))
    source.clone(Table(trace.url, store=trace), shallow=shallow)
    copied = set()
    for at in range(len(trace.calls)):
        for after in (False, True):
            inner = open_store(f"{root}/clone-{at}-{after}")
            with pytest.raises(SimulatedCrash):
                source.clone(Table(inner.url, store=CrashingStore(inner, at, after=after)), shallow=shallow)
            survivor = Table(inner.url)
            if not survivor.exists():
                again = TracingStore(inner)
                source.clone(Table(inner.url, store=again), shallow=shallow)
                copied.add(sum(call.method == "put" and call.name.endswith(".parquet") for call in again.calls))
            assert contents(survivor) == contents(source) and survivor.check() == [], (at, after)
    # How many were copied when it died is the threads' to say; of all there are, none to all are left to do.
    assert copied == {0} if shallow else {0, 4} <= copied <= {0, 1, 2, 3, 4}


def test_vacuum_of_a_clone_leaves_the_source_alone(root):
    source = table_of(root, VECTORS)
    source.clone(f"{root}/clone", shallow=True)
    clone = Table(f"{root}/clone")
    clone.overwrite(rows(70))
    names = {entry.name for entry in source.store.walk()}
    clone.vacuum(0, retention_check=False)
    clone.vacuum(0, retention_check=False, lite=True)
    assert {entry.name for entry in source.store.walk()} == names
    assert ids(source) == [item for item in range(20) if item not in (3, 14)] and ids(clone) == list(range(70, 80))


def test_vacuum_of_the_source_keeps_files_of_its_clones(root):
    source = table_of(root, VECTORS)
    source.clone(f"{root}/old", shallow=True, version=2)
    source.clone(f"{root}/gone", shallow=True, version=1)
    Table(f"{root}/old").clone(f"{root}/of old", shallow=True)
    for entry in list(open_store(f"{root}/gone").walk()):
        open_store(f"{root}/gone").delete(entry.name)
    source.overwrite(rows(90))
    source.vacuum(0, retention_check=False)
    for name in ("old", "of old"):
        assert ids(Table(f"{root}/{name}")) == list(range(20)) and Table(f"{root}/{name}").check(deep=True) == []
    # A clone that lets go of the files gives them free, once its own retention is over; so do all that name them.
    for name in ("old", "of old"):
        table = Table(f"{root}/{name}")
        table.set_properties({"delta.deletedFileRetentionDuration": "interval 0 seconds"})
        table.delete()
    time.sleep(0.02)  # the storage counts milliseconds, and files of the current one stay
    done = source.vacuum(0, retention_check=False)
    assert done.deleted >= 4 and ids(source) == list(range(90, 100))


def test_a_clone_that_is_being_made_keeps_its_files(root):
    table_of(root)
    aged = AgedStore(open_store(f"{root}/source"), SYSTEM_CLOCK.now_ms())
    for entry in list(aged.inner.walk()):
        aged.put(entry.name, aged.inner.get(entry.name))
    source = Table(aged.url, store=aged)
    expected = set(source.files(version=1)["path"].to_pylist())
    source.overwrite(rows(90))
    aged.later(200)
    source.clone(f"{root}/clone", shallow=True, version=1)
    clone = open_store(f"{root}/clone")
    for entry in list(clone.walk()):  # as before its commit
        clone.delete(entry.name)
    planned = {entry.name for entry in source.vacuum(dry_run=True).plan.files}
    assert planned and not planned & {path.replace("%20", " ") for path in expected}
    aged.later(200)
    assert {path.replace("%20", " ") for path in expected} < {entry.name for entry in source.vacuum(dry_run=True).plan.files}


@pytest.mark.parametrize("shallow", [True, False])
def test_a_folder_with_other_files_is_refused(root, shallow):
    source = table_of(root)
    target = Table(f"{root}/clone")
    (first, *_) = source.files()["path"].to_pylist()
    copied = first.replace("%20", " ")
    for name in ("notes.txt", copied):
        target.store.put(name, source.store.get(copied))
    for dry_run in (True, False):
        with pytest.raises(InvalidRequest, match="which is not empty") as caught:
            source.clone(target.url, shallow=shallow, dry_run=dry_run)
        assert caught.value.code == "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"
    target.store.delete("notes.txt")
    if shallow:
        with pytest.raises(InvalidRequest):
            source.clone(target.url, shallow=True)
        target.store.delete(copied)
    source.clone(target.url, shallow=shallow)
    assert target.to_arrow().num_rows == source.to_arrow().num_rows


@pytest.mark.damages_tables
def test_requests_that_cannot_become_a_clone_are_refused(root):
    source = table_of(root)
    source.clone(f"{root}/clone")
    cases = [
        ({}, "DELTA_TABLE_ALREADY_EXISTS"),
        ({"shallow": True, "replace": True}, "DELTA_UNSUPPORTED_NON_EMPTY_CLONE"),
        ({"replace": True, "properties": {"delta.columnMapping.mode": "name"}}, "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"),
    ]
    for options, code in cases:
        with pytest.raises(InvalidRequest) as caught:
            source.clone(f"{root}/clone", **options)
        assert caught.value.code == code
    with pytest.raises(InvalidRequest) as caught:
        source.clone(source.url, replace=True)
    assert caught.value.code == "DELTA_UNSUPPORTED_CLONE_REPLACE_SAME_TABLE"
    with pytest.raises(NotFound):
        source.clone(f"{root}/other", version=99)
    (first, *_) = source.files()["path"].to_pylist()
    source.store.delete(first.replace("%20", " "))
    with pytest.raises(NotFound):
        source.clone(f"{root}/other")
    assert not Table(f"{root}/other").exists()


@pytest.mark.parametrize("shallow", [True, False])
def test_iceberg_shows_the_rows_of_a_clone(root, shallow):
    source = table_of(root, UNIFORM)
    source.uniform.sync()
    source.clone(f"{root}/clone", shallow=shallow)
    clone = Table(f"{root}/clone")
    clone.uniform.sync()
    assert verify(clone.store) == 0
    clone.append(rows(60))
    clone.delete("id = 60")
    clone.uniform.sync()
    assert verify(clone.store) == 2 and clone.check() == []


def test_the_log_of_a_shallow_clone_is_as_the_specification_has_it(root):
    source = table_of(root, TRACKED)
    source.clone(f"{root}/clone", shallow=True)
    adds = [action for action in read_commit(open_store(f"{root}/clone"), 0) if isinstance(action, AddFile)]
    assert all(add.path.startswith(f"{source.url}/") for add in adds)
    vectors = [add.deletion_vector for add in adds if add.deletion_vector is not None]
    assert vectors and all(v.storage_type == "p" and v.path_or_inline_dv.startswith(source.url) for v in vectors if v.offset)
    lines = open_store(f"{root}/clone").get(f"_delta_log/{0:020}.json").decode().splitlines()
    info = json.loads(lines[0])["commitInfo"]
    assert info["operation"] == "CLONE" and info["operationParameters"]["sourceVersion"] == 3


def test_a_file_of_this_machine_is_named_as_hadoop_names_it(tmp_path):
    source = table_of(str(tmp_path / "a b"), VECTORS)
    source.clone(str(tmp_path / "clone"), shallow=True)
    paths = Table(tmp_path / "clone").files()["path"].to_pylist()
    assert all(path.startswith(f"file:{tmp_path}/a%20b/source/p=") for path in paths)
    assert contents(Table(tmp_path / "clone")) == contents(source)
