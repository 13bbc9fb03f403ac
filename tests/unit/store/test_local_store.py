"""Specifics of the store over a local folder: links, temporary files, syncing, permissions."""

from __future__ import annotations

import errno
import os
import pickle
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from tahoe.base.exceptions import CorruptTable, InvalidRequest, NotFound, StorageFailure, Unsupported
from tahoe.store.local_store import LocalLogStore
from tahoe.store.log_store import Created, Exists, LogStore, Refused, Unanswered
from tahoe.store.object_store import open_store

COMMIT = "_delta_log/00000000000000000000.json"


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    return open_store(tmp_path / "table")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Return a folder beside the table, with a secret in it."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_bytes(b"secret")
    return folder


# -- symbolic links ------------------------------------------------------------------------------------------------------------


def _refuses(store: LogStore, name: str) -> None:
    for call in (store.get, store.head, store.open_input, lambda name: store.get_many([name])):
        with pytest.raises(CorruptTable, match=r"TAHOE_PATH_OUTSIDE_TABLE.*symbolic link"):
            call(name)


def test_a_file_that_links_out_of_the_table_is_not_read(store: LogStore, tmp_path: Path, outside: Path) -> None:
    store.put("part", b"x")
    (tmp_path / "table" / "linked").symlink_to(outside / "secret")
    _refuses(store, "linked")


def test_a_folder_that_links_out_of_the_table_is_not_read_written_or_deleted_in(
    store: LogStore, tmp_path: Path, outside: Path
) -> None:
    store.put("part", b"x")
    (tmp_path / "table" / "month=1").symlink_to(outside)
    _refuses(store, "month=1/secret")
    for write in (lambda: store.put("month=1/new", b"x"), lambda: store.put_if_absent("month=1/new", b"x")):
        with pytest.raises(CorruptTable):
            write()
    with pytest.raises(CorruptTable):
        store.delete("month=1/secret")
    with pytest.raises(CorruptTable):
        store.list_from("month=1")
    assert [entry.name for entry in store.walk()] == ["part"]
    assert sorted(os.listdir(outside)) == ["secret"]


def test_a_log_folder_that_links_out_of_the_table_is_not_used(store: LogStore, tmp_path: Path, outside: Path) -> None:
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / "_delta_log").symlink_to(outside)
    for call in (
        lambda: store.get("_delta_log/secret"),
        lambda: store.put_if_absent(COMMIT, b"x"),
        lambda: store.put("_delta_log/_last_checkpoint", b"x"),
        lambda: store.list_from("_delta_log"),
        lambda: store.delete("_delta_log/secret"),
    ):
        with pytest.raises(CorruptTable):
            call()
    assert sorted(os.listdir(outside)) == ["secret"]


def test_a_commit_that_links_out_of_the_table_is_not_read_even_after_others_were(
    store: LogStore, tmp_path: Path, outside: Path
) -> None:
    assert store.put_if_absent(COMMIT, b"{}") == Created()
    assert store.get(COMMIT) == b"{}"
    (tmp_path / "table" / "_delta_log" / "00000000000000000001.json").symlink_to(outside / "secret")
    _refuses(store, "_delta_log/00000000000000000001.json")


def test_links_that_stay_inside_the_table_are_followed(store: LogStore, tmp_path: Path) -> None:
    store.put("real/part", b"x")
    store.put(COMMIT, b"{}")
    (tmp_path / "table" / "alias").symlink_to(tmp_path / "table" / "real")
    (tmp_path / "table" / "_delta_log" / "alias.json").symlink_to(tmp_path / "table" / COMMIT)
    (tmp_path / "table" / "_delta_log" / "nowhere.json").symlink_to(tmp_path / "table" / "missing")
    assert store.get("alias/part") == b"x"
    assert store.get("_delta_log/alias.json") == b"{}"
    assert (
        [entry.name for entry in store.list_from("_delta_log")]
        == store.names_from("_delta_log")
        == [COMMIT, "_delta_log/alias.json"]
    )


def test_the_tables_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "table").symlink_to(tmp_path / "real")
    store = open_store(tmp_path / "table")
    assert store.put_if_absent(COMMIT, b"{}") == Created()
    store.put("p=1/part", b"x")
    assert store.get("p=1/part") == b"x"
    assert (tmp_path / "real" / COMMIT).read_bytes() == b"{}"


def test_deleting_a_link_leaves_its_target(store: LogStore, tmp_path: Path, outside: Path) -> None:
    store.put("part", b"x")
    (tmp_path / "table" / "linked").symlink_to(outside / "secret")
    store.delete("linked")
    assert (outside / "secret").read_bytes() == b"secret"
    assert not (tmp_path / "table" / "linked").is_symlink()


def test_a_pipe_is_not_a_file_and_does_not_block(store: LogStore, tmp_path: Path) -> None:
    store.put(COMMIT, b"{}")
    for name in ("pipe", "_delta_log/pipe"):
        os.mkfifo(tmp_path / "table" / name)
        assert store.head(name) is None
        for read in (store.get, store.open_input):
            with pytest.raises(NotFound):
                read(name)
    assert [entry.name for entry in store.walk()] == [COMMIT]


# -- temporary files -------------------------------------------------------------------------------------------------------------


def test_writes_leave_no_temporary_file(store: LogStore, tmp_path: Path) -> None:
    store.put("part", b"x")
    store.put_if_absent(COMMIT, b"x")
    store.put_if_absent(COMMIT, b"y")
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()) == [
        f"table/{COMMIT}",
        "table/part",
    ]


def test_a_dead_writer_s_temporary_file_is_not_listed_and_removed_after_a_day(store: LogStore, tmp_path: Path) -> None:
    store.put(COMMIT, b"{}")
    log = tmp_path / "table" / "_delta_log"
    young, old = log / ".tahoe-1-abc-0.tmp", log / ".tahoe-1-abc-1.tmp"
    for path in (young, old):
        path.write_bytes(b"half a com")
    two_days_ago = young.stat().st_mtime - 2 * 24 * 3600
    os.utime(old, (two_days_ago, two_days_ago))
    assert [entry.name for entry in store.list_from("_delta_log")] == [COMMIT]
    assert [entry.name for entry in store.walk()] == [COMMIT]
    assert young.exists()
    assert not old.exists()


@pytest.mark.parametrize("call", ["write", "link"])
def test_a_write_to_a_full_disk_is_refused_and_leaves_nothing(
    store: LogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    store.put("_delta_log/before", b"x")

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, full)
    outcome = store.put_if_absent(COMMIT, b"x")
    monkeypatch.undo()
    assert isinstance(outcome, Refused)
    assert "No space left" in outcome.error
    assert os.listdir(tmp_path / "table" / "_delta_log") == ["before"]


def test_a_failed_replacement_raises_and_keeps_the_old_content(
    store: LogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("object", b"old")

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StorageFailure, match="'object': No space left"):
        store.put("object", b"new")
    monkeypatch.undo()
    assert store.get("object") == b"old"
    assert os.listdir(tmp_path / "table") == ["object"]


def test_a_partial_write_is_continued_to_the_end(store: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, memoryview(data)[:7]))
    store.put("object", bytes(range(256)))
    monkeypatch.undo()
    assert store.get("object") == bytes(range(256))


# -- the primitive ---------------------------------------------------------------------------------------------------------------


def test_a_file_system_without_hard_links_is_refused_with_the_remedy(
    store: LogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*_: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", no_links)
    with pytest.raises(Unsupported, match=r"not support hard links.*object store"):
        store.put_if_absent(COMMIT, b"x")
    monkeypatch.undo()
    assert os.listdir(tmp_path / "table" / "_delta_log") == []


def test_a_link_whose_answer_was_lost_is_recognized_as_ours(store: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def answered_twice(source: str, target: str) -> None:
        link(source, target)
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))

    monkeypatch.setattr(os, "link", answered_twice)
    assert store.put_if_absent(COMMIT, b"ours") == Created()
    monkeypatch.undo()
    assert store.get(COMMIT) == b"ours"
    assert store.put_if_absent(COMMIT, b"other") == Exists()


def test_a_link_without_an_answer_is_unanswered(store: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "link", lost)
    assert isinstance(store.put_if_absent(COMMIT, b"x"), Unanswered)


def test_a_sync_that_fails_leaves_the_commit_in_doubt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(tmp_path / "table", {"fsync": "true"})
    store.put("_delta_log/before", b"x")
    fsync, calls = os.fsync, iter([False, True])

    def lost(handle: int) -> None:
        if next(calls):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", lost)
    assert isinstance(store.put_if_absent(COMMIT, b"x"), Unanswered)
    monkeypatch.undo()
    assert store.get(COMMIT) == b"x"


@pytest.mark.parametrize(("option", "syncs"), [("true", 4), ("false", 0)])
def test_syncing_covers_file_and_folder_only_if_enabled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, syncs: int
) -> None:
    store = open_store(tmp_path / "table", {"fsync": option})
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    store.put("part", b"x")
    store.put_if_absent(COMMIT, b"x")
    assert len(synced) == syncs


def test_a_wrong_option_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="'fsync' must be 'true' or 'false'"):
        open_store(tmp_path, {"fsync": "maybe"})


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_the_error_for_a_read_only_folder_names_it(tmp_path: Path) -> None:
    store = open_store(tmp_path / "table")
    store.put(COMMIT, b"{}")
    (tmp_path / "table" / "_delta_log").chmod(0o500)
    try:
        assert isinstance(store.put_if_absent("_delta_log/1", b"x"), Refused)
        with pytest.raises(StorageFailure, match=r"'_delta_log/1'.*permissions"):
            store.put("_delta_log/1", b"x")
    finally:
        (tmp_path / "table" / "_delta_log").chmod(0o700)


def test_the_error_for_a_folder_that_cannot_be_created_names_it(tmp_path: Path) -> None:
    (tmp_path / "table").write_bytes(b"a file where the table's folder should be")
    store = open_store(tmp_path / "table")
    assert isinstance(store.put_if_absent(COMMIT, b"x"), Refused)
    with pytest.raises(StorageFailure, match=COMMIT):
        store.put(COMMIT, b"x")
    assert store.head(COMMIT) is None
    assert store.list_from("_delta_log") == []


# -- the rest --------------------------------------------------------------------------------------------------------------------


def test_an_input_file_of_a_few_megabytes_is_mapped_not_copied(store: LogStore) -> None:
    store.put("part", bytes(4_000_000))
    before = pa.total_allocated_bytes()
    with store.open_input("part") as file:
        buffer = file.read_buffer()
        assert buffer.size == 4_000_000
        assert pa.total_allocated_bytes() - before < 1_000_000


def test_files_deleted_during_a_listing_are_omitted(store: LogStore) -> None:
    for number in range(200):
        store.put(f"_delta_log/{number:03d}", b"x")
    done = threading.Event()

    def remove() -> None:
        for number in range(200):
            store.delete(f"_delta_log/{number:03d}")
        done.set()

    remover = threading.Thread(target=remove)
    remover.start()
    while not done.is_set():
        names = [entry.name for entry in store.list_from("_delta_log")]
        assert names == sorted(names)
    remover.join()
    assert store.list_from("_delta_log") == []


def test_a_store_can_be_sent_to_another_process(tmp_path: Path) -> None:
    store = open_store(tmp_path / "table", {"fsync": "true"})
    store.put("part", b"x")
    copy = pickle.loads(pickle.dumps(store))
    assert copy.url == store.url
    assert copy.get("part") == b"x"


def test_only_local_folders_are_opened() -> None:
    with pytest.raises(InvalidRequest, match="not a local folder"):
        LocalLogStore("s3://bucket/t")
