"""The contract of `tahoe.store.log_store.LogStore` as tests.

Subclass `LogStoreContract` in a test module and define a fixture `store` that returns an empty store::

    class TestMyStore(LogStoreContract):
        @pytest.fixture
        def store(self) -> LogStore:
            return MyStore(...)

Needs the extra ``testing``.
"""

from __future__ import annotations

import io
import threading
from collections import Counter
from collections.abc import Callable

import pyarrow as pa

from tahoe.base.exceptions import NotFound, TahoeError
from tahoe.base.lazy import pq
from tahoe.store.log_store import Created, Entry, Exists, LogStore, PutOutcome
from tahoe.testing.extras import extra_missing
from tahoe.testing.interleaving import in_threads

try:
    import pytest
except ImportError as error:
    raise extra_missing(error, __name__) from error

__all__ = ["LogStoreContract"]

LOG = "_delta_log"
SPECIAL_NAMES = [
    "plain.parquet",
    "with space.parquet",
    "p=a%3Ab/percent.parquet",
    "p=a+b/plus.parquet",
    "special p@#h",
    "q=über/ünïcode-✓.parquet",
    "question?mark&and=equals.parquet",
    "colon:and;semicolon,comma.parquet",
    "quote'\"[brackets]{braces}~.parquet",
]


class LogStoreContract:
    """The requirements on every store. `store` is an empty store, new for each test."""

    @pytest.fixture
    def store(self) -> LogStore:
        """An empty store, new for each test; the subclass defines it."""
        raise TypeError(f"{type(self).__name__} must define a fixture 'store'")

    # -- reading and writing -------------------------------------------------------------------------------------------------

    def test_an_object_is_read_back_whole(self, store: LogStore) -> None:
        """`get` returns the bytes of `put`."""
        for size in (0, 1, 4096, 300_000):
            data = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
            store.put(f"data/{size}.bin", data)
            assert store.get(f"data/{size}.bin") == data

    def test_put_replaces_the_whole_object(self, store: LogStore) -> None:
        """A shorter object leaves no rest of the longer one before it."""
        store.put("object", b"a long first content")
        store.put("object", b"short")
        assert store.get("object") == b"short"

    def test_getting_a_missing_object_raises_not_found_and_names_it(self, store: LogStore) -> None:
        """The error is `NotFound`; its message contains the name."""
        store.put("folder/object", b"x")
        for name in ("missing", "folder/missing", "folder", "folder/object/below"):
            with pytest.raises(NotFound) as caught:
                store.get(name)
            assert name in caught.value.message
            assert store.url in caught.value.message

    def test_get_many_keeps_the_requested_order(self, store: LogStore) -> None:
        """`get_many` returns objects in the order of the names."""
        names = [f"many/{number}" for number in range(40)]
        for name in names:
            store.put(name, name.encode())
        asked = names[::-1] + names[:3]
        assert store.get_many(asked) == [name.encode() for name in asked]
        assert store.get_many([]) == []

    def test_get_many_raises_not_found_when_one_is_missing(self, store: LogStore) -> None:
        """One missing name fails the whole request."""
        store.put("a", b"x")
        with pytest.raises(NotFound):
            store.get_many(["a", "missing", "a"])

    def test_head_returns_name_size_and_time_or_none(self, store: LogStore) -> None:
        """`head` returns the entry of an existing object, with its size in bytes and its time in ms."""
        store.put("folder/object", b"12345")
        entry = store.head("folder/object")
        assert entry is not None
        assert (entry.name, entry.size) == ("folder/object", 5)
        assert entry.modified_ms > 1_600_000_000_000
        assert store.head("folder/missing") is None
        assert store.head("folder") is None

    @pytest.mark.parametrize("name", SPECIAL_NAMES)
    def test_names_are_taken_literally(self, store: LogStore, name: str) -> None:
        """Blanks, percent signs and non-ASCII letters are part of a name."""
        store.put(name, b"content")
        assert store.get(name) == b"content"
        entry = store.head(name)
        assert entry is not None
        assert entry.name == name
        assert [entry.name for entry in store.walk()] == [name]

    @pytest.mark.parametrize("name", ["../outside", "a/../../outside", "/absolute", "..", ""])
    def test_names_outside_of_the_root_are_refused(self, store: LogStore, name: str) -> None:
        """A name that leads outside the store's root is refused by every operation."""
        calls: list[Callable[[], object]] = [
            lambda: store.get(name),
            lambda: store.head(name),
            lambda: store.open_input(name),
            lambda: store.put(name, b""),
            lambda: store.put_if_absent(name, b""),
            lambda: store.delete(name),
        ]
        for call in calls:
            with pytest.raises(TahoeError):
                call()

    # -- deleting ------------------------------------------------------------------------------------------------------------

    def test_a_deleted_object_is_gone_from_every_view(self, store: LogStore) -> None:
        """`get`, `head` and listings no longer return a deleted object."""
        store.put("folder/object", b"x")
        store.delete("folder/object")
        assert store.head("folder/object") is None
        assert store.list_from("folder") == []
        assert list(store.walk()) == []
        with pytest.raises(NotFound):
            store.get("folder/object")

    def test_deleting_a_missing_object_is_not_an_error(self, store: LogStore) -> None:
        """`delete` of a missing name does nothing."""
        store.delete("missing")
        store.delete("folder/missing")

    # -- listing -------------------------------------------------------------------------------------------------------------

    def test_listing_is_sorted_and_starts_at_the_given_name_inclusive(self, store: LogStore) -> None:
        """Entries are in the order of their names and begin with the given one."""
        names = [f"{version:020d}.json" for version in (7, 0, 12, 3, 9, 10)]
        for name in names:
            store.put(f"{LOG}/{name}", name.encode())
        assert _file_names(store.list_from(LOG)) == sorted(names)
        assert _file_names(store.list_from(LOG, f"{9:020d}.json")) == [f"{version:020d}.json" for version in (9, 10, 12)]
        assert _file_names(store.list_from(LOG, f"{8:020d}")) == [f"{version:020d}.json" for version in (9, 10, 12)]
        assert store.list_from(LOG, f"{99:020d}") == []
        assert store.names_from(LOG, f"{9:020d}.json") == [f"{LOG}/{version:020d}.json" for version in (9, 10, 12)]

    def test_listing_gives_names_from_the_root_with_sizes(self, store: LogStore) -> None:
        """Names are relative to the root, not to the listed folder."""
        store.put(f"{LOG}/a", b"123")
        (entry,) = store.list_from(LOG)
        assert (entry.name, entry.size) == (f"{LOG}/a", 3)
        assert entry == store.head(f"{LOG}/a")

    def test_listing_neither_enters_sub_folders_nor_stops_at_them(self, store: LogStore) -> None:
        """Only the objects directly in the folder are listed."""
        for name in ("00.json", "_commits/1.json", "_last_checkpoint", "_sidecars/a.parquet", "_sidecars/b/c", "_z"):
            store.put(f"{LOG}/{name}", b"x")
        store.put("_delta_logger/other", b"x")
        assert _file_names(store.list_from(LOG)) == ["00.json", "_last_checkpoint", "_z"]
        assert store.names_from(LOG) == [f"{LOG}/{name}" for name in ("00.json", "_last_checkpoint", "_z")]
        assert _file_names(store.list_from(LOG, "_a")) == ["_last_checkpoint", "_z"]
        assert _file_names(store.list_from(LOG, "_z")) == ["_z"]

    def test_listing_the_root_gives_its_own_objects(self, store: LogStore) -> None:
        """The root is listed like any folder."""
        store.put("b", b"x")
        store.put("a", b"x")
        store.put("folder/c", b"x")
        assert [entry.name for entry in store.list_from("")] == ["a", "b"] == store.names_from("")
        assert [entry.name for entry in store.list_from("", "b")] == ["b"]

    def test_listing_a_missing_folder_is_empty(self, store: LogStore) -> None:
        """A folder that does not exist has no entries."""
        assert store.list_from(LOG) == []
        assert store.names_from(LOG) == []
        assert store.list_from(LOG, "0") == []
        assert list(store.walk("missing")) == []

    def test_walk_finds_all_objects_below_a_folder(self, store: LogStore) -> None:
        """`walk` enters subfolders."""
        names = {"a", "b/c", "b/d/e", "b/d/f/g", "bb/h", f"{LOG}/0.json"}
        for name in names:
            store.put(name, name.encode())
        assert {entry.name for entry in store.walk()} == names
        sizes = {entry.name: entry.size for entry in store.walk("b")}
        assert sizes == {"b/c": 3, "b/d/e": 5, "b/d/f/g": 7}

    # -- files for Arrow -----------------------------------------------------------------------------------------------------

    def test_an_input_file_can_be_read_from_any_position(self, store: LogStore) -> None:
        """An input file can seek, as readers of Parquet footers require."""
        data = bytes(range(256)) * 2000  # larger than a store's read-ahead
        store.put("object", data)
        with store.open_input("object") as file:
            assert file.size() == len(data)
            assert file.read(10) == data[:10]
            assert file.tell() == 10
            assert file.seek(-5, io.SEEK_END) == len(data) - 5
            assert file.read() == data[-5:]
            file.seek(1000)
            assert file.read(100) == data[1000:1100]
            assert file.read_at(50, 200_000) == data[200_000:200_050]
            file.seek(len(data) - 70_000)
            assert file.read() == data[-70_000:]
            assert file.read() == b""

    def test_an_empty_object_is_an_empty_file(self, store: LogStore) -> None:
        """An object of zero bytes can be opened."""
        store.put("empty", b"")
        with store.open_input("empty") as file:
            assert file.size() == 0
            assert file.read() == b""

    def test_opening_a_missing_object_raises_not_found(self, store: LogStore) -> None:
        """`open_input` raises `NotFound`, for a folder too."""
        store.put("folder/object", b"x")
        for name in ("missing", "folder"):
            with pytest.raises(NotFound):
                store.open_input(name)

    def test_parquet_is_read_through_an_input_file(self, store: LogStore) -> None:
        """Arrow reads Parquet from an input file."""
        table = pa.table({"id": pa.array(range(20_000)), "name": [f"name {number}" for number in range(20_000)]})
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, row_group_size=3_000, compression="none", use_dictionary=False)
        store.put("part.parquet", sink.getvalue().to_pybytes())
        with store.open_input("part.parquet") as file:
            assert pq.ParquetFile(file, pre_buffer=True).read(columns=["name"]) == table.select(["name"])

    # -- put if absent -------------------------------------------------------------------------------------------------------

    def test_an_output_appears_whole_when_it_ends_and_not_before(self, store: LogStore) -> None:
        """Until then, the previous content stays."""
        store.put("folder/name", b"old")
        with store.open_output("folder/name") as file:
            for number in range(100):
                file.write(bytes([number]) * 1000)
            assert store.get("folder/name") == b"old"
        assert store.get("folder/name") == b"".join(bytes([number]) * 1000 for number in range(100))
        with store.open_output("new/name"):
            pass
        assert store.get("new/name") == b""

    def test_an_output_that_ends_with_an_error_leaves_nothing(self, store: LogStore) -> None:
        """The writer's own error is raised, and the previous content stays."""

        def fail(name: str) -> None:
            with store.open_output(name) as file:
                file.write(b"new")
                raise ZeroDivisionError

        store.put("name", b"old")
        for name in ("name", "other"):
            with pytest.raises(ZeroDivisionError):
                fail(name)
        assert store.get("name") == b"old"
        assert [entry.name for entry in store.walk()] == ["name"]

    def test_a_free_name_is_created_and_a_taken_one_is_left_as_it_is(self, store: LogStore) -> None:
        """`put_if_absent` creates a free name and does not change a taken one."""
        name = f"{LOG}/{0:020d}.json"
        assert store.put_if_absent(name, b"first") == Created()
        assert store.put_if_absent(name, b"second") == Exists()
        assert store.get(name) == b"first"

    def test_a_name_taken_by_put_is_taken_and_a_deleted_one_is_free(self, store: LogStore) -> None:
        """`put_if_absent` sees objects of `put` and their deletion."""
        store.put("name", b"put")
        assert store.put_if_absent("name", b"x") == Exists()
        store.delete("name")
        assert store.put_if_absent("name", b"new") == Created()
        assert store.get("name") == b"new"

    def test_one_of_eight_writers_wins_each_name_and_its_bytes_stay(self, store: LogStore) -> None:
        """Of concurrent `put_if_absent` calls exactly one creates the name."""
        writers, names = 8, [f"{LOG}/{version:020d}.json" for version in range(20)]
        outcomes: dict[tuple[int, str], PutOutcome] = {}
        barrier = threading.Barrier(writers)

        def write(writer: int) -> None:
            for name in names:
                barrier.wait()
                outcomes[writer, name] = store.put_if_absent(name, f"writer {writer}".encode())

        in_threads([lambda writer=writer: write(writer) for writer in range(writers)])  # type: ignore[misc]
        assert len(outcomes) == writers * len(names)
        for name in names:
            successful = [writer for writer in range(writers) if outcomes[writer, name] == Created()]
            assert len(successful) == 1, f"{name}: {Counter(type(outcomes[writer, name]).__name__ for writer in range(writers))}"
            assert store.get(name) == f"writer {successful[0]}".encode()
        assert _file_names(store.list_from(LOG)) == [name.removeprefix(f"{LOG}/") for name in names]

    def test_readers_see_an_object_whole_or_not_at_all(self, store: LogStore) -> None:
        """While objects are created and replaced, readers and listings see one of the written contents."""
        size = 200_000
        contents = {letter * size for letter in (b"a", b"b", b"c")}
        seen: list[tuple[str, bytes | int]] = []
        done = threading.Event()

        def write() -> None:
            try:
                for round_ in range(6):
                    store.put_if_absent(f"new/{round_}", b"a" * size)
                    for letter in (b"b", b"c"):
                        store.put("replaced", letter * size)
            finally:
                done.set()

        def read() -> None:
            while not done.is_set():
                for entry in [*store.list_from("new"), *store.list_from("")]:
                    seen.append((entry.name, entry.size))
                    seen.append((entry.name, store.get(entry.name)))

        in_threads([write, read, read])
        assert {content for _, content in seen if isinstance(content, bytes)} <= contents
        assert {content for _, content in seen if isinstance(content, int)} <= {size}
        assert {name for name, _ in seen} <= {f"new/{round_}" for round_ in range(6)} | {"replaced"}

    # -- properties ------------------------------------------------------------------------------------------------------------

    def test_the_store_has_its_url_without_a_trailing_slash(self, store: LogStore) -> None:
        """`url` identifies the store in messages and caches."""
        assert "://" in store.url
        assert not store.url.endswith("/")
        assert store.url in repr(store)


def _file_names(entries: list[Entry]) -> list[str]:
    return [entry.name.rpartition("/")[2] for entry in entries]
