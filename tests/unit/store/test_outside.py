"""Files outside of a table's root are read only if the file's folder permits the table."""

from __future__ import annotations

import os
import pickle
import uuid
from pathlib import Path

import pytest

from tahoe.base.exceptions import CorruptTable, NotFound, TahoeError
from tahoe.store.location import absolute_url, decode_path, is_outside
from tahoe.store.log_store import LogStore
from tahoe.store.object_store import open_store
from tahoe.store.outside import CLONES_FOLDER, CloneRecord, clones_of, record_clone


@pytest.fixture(params=["file", "memory"])
def stores(request, tmp_path: Path) -> tuple[LogStore, LogStore]:
    """Return a source with a file, and a table beside it."""
    root = str(tmp_path) if request.param == "file" else f"memory://{uuid.uuid4()}/a"
    source, table = open_store(f"{root}/the source"), open_store(f"{root}/table")
    source.put("p=1/x y.parquet", b"rows")
    return source, table


def name_of(source: LogStore, table: LogStore, inside: str = "p=1/x y.parquet") -> str:
    return decode_path(absolute_url(source.url, inside), table.url, outside=True)


def test_a_file_is_readable_once_its_folder_records_the_table(stores):
    source, table = stores
    name = name_of(source, table)
    assert is_outside(name) and name == f"{source.url}/p=1/x y.parquet"
    for read in (table.get, table.head, table.open_input, lambda name: table.get_many([name])):
        with pytest.raises(CorruptTable) as caught:
            read(name)
        assert caught.value.code == "TAHOE_PATH_OUTSIDE_TABLE" and "allow_shallow_clone" in str(caught.value)
    record_clone(source, CloneRecord(table.url, 3))
    assert table.get(name) == b"rows" and table.get_many([name]) == [b"rows"]
    assert table.open_input(name).read() == b"rows"
    entry = table.head(name)
    assert entry is not None and (entry.name, entry.size) == (name, 4)
    missing = name_of(source, table, "p=1/gone")
    assert table.head(missing) is None
    with pytest.raises(NotFound):
        table.get(missing)
    ((record),) = clones_of(source)
    assert (record.table, record.version) == (table.url, 3) and record.modified_ms > 0


def test_a_record_permits_only_its_own_table(stores):
    source, table = stores
    sibling = open_store(f"{table.url}2")
    record_clone(source, CloneRecord(sibling.url, None))
    with pytest.raises(CorruptTable):
        table.get(name_of(source, table))
    # Another table's record under the name of this one has no effect either.
    record_clone(source, CloneRecord(table.url, None))
    names = [entry.name for entry in source.list_from(CLONES_FOLDER)]
    for name in names:
        source.put(name, b'{"table": "file:///elsewhere"}')
    with pytest.raises(CorruptTable):
        open_store(table.url).get(name_of(source, table))


def test_nothing_is_written_or_deleted_outside(stores):
    source, table = stores
    record_clone(source, CloneRecord(table.url, None))
    name = name_of(source, table)
    for change in (lambda: table.put(name, b"!"), lambda: table.delete(name), lambda: table.put_if_absent(name, b"!")):
        with pytest.raises(TahoeError) as caught:
            change()
        assert caught.value.code in ("TAHOE_PATH_OUTSIDE_TABLE", "TAHOE_STORE_NAME")
    with pytest.raises(TahoeError), table.open_output(name) as file:
        file.write(b"!")
    assert source.get("p=1/x y.parquet") == b"rows"


def test_a_pickled_store_reads_the_same_file(tmp_path):
    source, table = open_store(tmp_path / "source"), open_store(tmp_path / "table")
    source.put("x", b"rows")
    record_clone(source, CloneRecord(table.url, None))
    name = name_of(source, table, "x")
    assert pickle.loads(pickle.dumps(table)).get(name) == b"rows"
    assert table.get(name) == b"rows" and pickle.loads(pickle.dumps(table)).get(name) == b"rows"


def test_links_that_lead_out_of_the_source_are_not_followed(tmp_path):
    source, table = open_store(tmp_path / "source"), open_store(tmp_path / "table")
    (tmp_path / "secret").write_bytes(b"secret")
    source.put("x", b"rows")
    os.symlink(tmp_path / "secret", tmp_path / "source" / "link")
    record_clone(source, CloneRecord(table.url, None))
    with pytest.raises(CorruptTable):
        table.get(name_of(source, table, "link"))


@pytest.mark.parametrize(
    "path",
    [
        "../source/x", "file:///source/../etc/passwd", "file:///a/%2e%2e/b", "file://host/x", "s3://bucket/x", "file:///", "//host/x",
        "file%3A///etc/passwd", "file:/a\0b", "file:relative",
    ],
)  # fmt: skip
def test_paths_outside_that_storage_are_refused_by_their_text(path):
    with pytest.raises(CorruptTable):
        decode_path(path, "file:///data/table", outside=True)


@pytest.mark.parametrize(
    ("path", "root", "name"),
    [
        ("file:/data/s/a%20b", "file:///data/t", "file:///data/s/a b"),
        ("/data//s/./a", "file:///data/t", "file:///data/s/a"),
        ("s3a://other/k/x", "s3://bucket/t", "s3://other/k/x"),
        ("s3://bucket/t2/x", "s3://bucket/t", "s3://bucket/t2/x"),
        ("file:/data/t/x", "file:///data/t", "x"),
    ],
)
def test_an_absolute_path_has_one_name(path, root, name):
    assert decode_path(path, root, outside=True) == name


def test_an_unreadable_record_is_reported(stores):
    source, _ = stores
    source.put(f"{CLONES_FOLDER}/x.json", b"[]")
    with pytest.raises(CorruptTable) as caught:
        list(clones_of(source))
    assert caught.value.code == "TAHOE_CORRUPT_CLONE_RECORD"
