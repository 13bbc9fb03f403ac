"""A table's records of the streams that read it."""

from __future__ import annotations

from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.base.exceptions import StorageFailure
from tahoe.store.object_store import open_store
from tahoe.store.stream_records import STREAMS_FOLDER, record_stream, streams_of
from tahoe.testing.faulty_store import WrappedStore


def a_store():
    return open_store(f"memory://{SYSTEM_CLOCK.uuid()}/table")


def test_each_checkpoint_has_one_record_with_the_newest_version():
    store = a_store()
    record_stream(store, "file:/a/sources/0", 3)
    record_stream(store, "file:/a/sources/0", 5)
    record_stream(store, "file:/b/sources/0", 4)
    assert sorted((record.checkpoint, record.version) for record in streams_of(store)) == [
        ("file:/a/sources/0", 5),
        ("file:/b/sources/0", 4),
    ]
    assert all(record.name.startswith(STREAMS_FOLDER) and record.modified_ms > 0 for record in streams_of(store))


def test_credentials_in_a_checkpoint_location_are_not_stored():
    store = a_store()
    record_stream(store, "s3a://key:secret@bucket/a/sources/0", 3)
    (record,) = streams_of(store)
    assert record.checkpoint == "s3a://bucket/a/sources/0"
    assert b"secret" not in store.get(record.name)


def test_an_unreadable_record_is_skipped():
    store = a_store()
    record_stream(store, "file:/a/sources/0", 3)
    for number, content in enumerate((b"", b"{}", b"[]", b"\xff", b'{"checkpoint": "x", "version": "late"}')):
        store.put(f"{STREAMS_FOLDER}/{number}.json", content)
    assert [record.version for record in streams_of(store)] == [3]


def test_a_stream_without_write_access_leaves_no_record():
    class ReadOnly(WrappedStore):
        def _call(self, method, name, run):
            if method == "put":
                raise StorageFailure(f"{name}: denied")
            return run()

    store = a_store()
    record_stream(ReadOnly(store), "file:/a/sources/0", 3)
    assert list(streams_of(store)) == []
