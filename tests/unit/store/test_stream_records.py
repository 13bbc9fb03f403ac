"""What a table knows of the streams that read it."""

from __future__ import annotations

from tahoe.clock import SYSTEM_CLOCK
from tahoe.exceptions import StorageFailure
from tahoe.store.object_store import open_store
from tahoe.store.stream_records import STREAMS_FOLDER, record_stream, streams_of
from tahoe.testing.faulty_store import WrappedStore


def a_store():
    return open_store(f"memory://{SYSTEM_CLOCK.uuid()}/table")


def test_each_checkpoint_has_one_record_and_the_newest_holds():
    store = a_store()
    record_stream(store, "file:/a/sources/0", 3)
    record_stream(store, "file:/a/sources/0", 5)
    record_stream(store, "file:/b/sources/0", 4)
    assert sorted((one.checkpoint, one.version) for one in streams_of(store)) == [
        ("file:/a/sources/0", 5),
        ("file:/b/sources/0", 4),
    ]
    assert all(one.name.startswith(STREAMS_FOLDER) and one.modified_ms > 0 for one in streams_of(store))


def test_no_secret_of_a_checkpoints_address_is_kept():
    store = a_store()
    record_stream(store, "s3a://key:secret@bucket/a/sources/0", 3)
    (record,) = streams_of(store)
    assert record.checkpoint == "s3a://bucket/a/sources/0"
    assert b"secret" not in store.get(record.name)


def test_a_record_that_cannot_be_read_says_nothing():
    store = a_store()
    record_stream(store, "file:/a/sources/0", 3)
    for number, content in enumerate((b"", b"{}", b"[]", b"\xff", b'{"checkpoint": "x", "version": "late"}')):
        store.put(f"{STREAMS_FOLDER}/{number}.json", content)
    assert [one.version for one in streams_of(store)] == [3]


def test_a_stream_that_may_not_write_leaves_none():
    class ReadOnly(WrappedStore):
        def _call(self, method, name, run):
            if method == "put":
                raise StorageFailure(f"{name}: denied")
            return run()

    store = a_store()
    record_stream(ReadOnly(store), "file:/a/sources/0", 3)
    assert list(streams_of(store)) == []
