"""The store over Hadoop's file systems: the contract of all stores, and the outcome of each failed call.

tests/jvm/test_hdfs_jvm.py runs the contract on HDFS.
"""

from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path

import pytest

from tahoe.base.exceptions import InvalidRequest, NotFound, StorageFailure, Unsupported
from tahoe.store import hadoop_store
from tahoe.store.hadoop_store import HadoopLogStore, HadoopStatus, use_file_systems
from tahoe.store.log_store import Created, Exists, LogStore, Refused, Unanswered
from tahoe.store.object_store import open_store
from tahoe.testing.store_suite import LogStoreContract

URL = "hdfs://name-node:8020/warehouse/t"
COMMIT = "_delta_log/00000000000000000000.json"


class FilesOfFolder:
    """`HadoopFiles` over a local folder, with failures on demand.

    Args:
        root: the folder for the root of the file system.

    Attributes:
        failures: the error of the next calls of a method, by its name; it is raised before the call.
        lost_answers: methods whose next calls succeed and then raise.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.failures: dict[str, OSError] = {}
        self.lost_answers: dict[str, OSError] = {}

    def local(self, url: str) -> Path:
        return self.root / url.partition("://")[2].partition("/")[2]

    def before(self, method: str) -> None:
        if method in self.failures:
            raise self.failures[method]

    def after(self, method: str) -> None:
        if method in self.lost_answers:
            raise self.lost_answers[method]

    def list(self, folder: str) -> list[tuple[str, HadoopStatus]]:
        self.before("list")
        path = self.local(folder)
        entries = ((name, self.status(f"{folder}/{name}")) for name in (os.listdir(path) if path.is_dir() else ()))
        return [(name, status) for name, status in entries if status is not None]

    def status(self, file: str) -> HadoopStatus | None:
        try:
            status = self.local(file).stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return HadoopStatus(self.local(file).is_dir(), status.st_size, status.st_mtime_ns // 1_000_000)

    def read(self, file: str, start: int, length: int) -> bytes:
        self.before("read")
        return self.local(file).read_bytes()[start : start + length]

    def write(self, file: str, data: bytes) -> None:
        self.before("write")
        self.local(file).parent.mkdir(parents=True, exist_ok=True)
        self.local(file).write_bytes(data)

    def upload(self, local: str, file: str) -> None:
        self.local(file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(local, self.local(file))

    def rename(self, source: str, target: str, *, overwrite: bool) -> bool:
        self.before("rename")
        if overwrite:
            os.replace(self.local(source), self.local(target))
        else:
            try:
                os.link(self.local(source), self.local(target))
            except FileExistsError:
                return False
            self.local(source).unlink()
        self.after("rename")
        return True

    def delete(self, file: str) -> None:
        self.local(file).unlink(missing_ok=True)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FilesOfFolder:
    monkeypatch.setattr(hadoop_store._FileSystems, "opener", None)
    opened = FilesOfFolder(tmp_path / "root")
    use_file_systems(lambda options: opened)
    return opened


@pytest.fixture
def store(files: FilesOfFolder) -> HadoopLogStore:
    return HadoopLogStore(URL, {})


class TestTheContract(LogStoreContract):
    @pytest.fixture
    def store(self, files: FilesOfFolder) -> LogStore:
        return open_store(URL)


def left_behind(files: FilesOfFolder) -> list[str]:
    return [path.name for path in files.root.rglob(".tahoe-*")]


def test_a_lost_answer_to_the_rename_of_a_commit_is_unanswered(store: HadoopLogStore, files: FilesOfFolder) -> None:
    files.lost_answers["rename"] = OSError("SocketTimeoutException: no answer")
    assert store.put_if_absent(COMMIT, b"ours") == Unanswered(
        f"could not rename to '{COMMIT}': SocketTimeoutException: no answer"
    )
    files.lost_answers.clear()
    assert store.get(COMMIT) == b"ours"


def test_a_rename_that_the_client_repeated_is_ours(
    store: HadoopLogStore, files: FilesOfFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first attempt took the name, so the second one finds it taken, and the temporary file is gone."""
    once = files.rename

    def repeated(source: str, target: str, *, overwrite: bool) -> bool:
        once(source, target, overwrite=overwrite)
        return False

    with monkeypatch.context() as patched:
        patched.setattr(files, "rename", repeated)
        assert store.put_if_absent(COMMIT, b"ours") == Created()
    assert store.put_if_absent(COMMIT, b"another writer's") == Exists()
    assert store.get(COMMIT) == b"ours"
    assert left_behind(files) == []


def test_a_failed_write_of_the_temporary_file_is_refused(store: HadoopLogStore, files: FilesOfFolder) -> None:
    files.failures["write"] = PermissionError("AccessControlException: Permission denied")
    outcome = store.put_if_absent(COMMIT, b"x")
    assert isinstance(outcome, Refused) and "Permission denied" in outcome.error
    with pytest.raises(StorageFailure, match=rf"Table '{URL}': could not write 'a'.*Permission denied.*Check the permissions"):
        store.put("a", b"x")
    files.failures.clear()
    assert store.head(COMMIT) is None and left_behind(files) == []


def test_a_failed_replacement_keeps_the_old_object_and_leaves_nothing(store: HadoopLogStore, files: FilesOfFolder) -> None:
    store.put("a", b"old")
    files.failures["rename"] = OSError("RemoteException: safe mode")
    with pytest.raises(StorageFailure, match="safe mode"):
        store.put("a", b"new")
    assert store.get("a") == b"old" and left_behind(files) == []


def test_a_failed_read_and_listing_name_the_table(store: HadoopLogStore, files: FilesOfFolder) -> None:
    store.put("a", b"x")
    files.failures |= {"read": OSError("EOFException"), "list": OSError("ConnectException: refused")}
    with pytest.raises(StorageFailure, match=f"Table '{URL}': could not read 'a': EOFException"):
        store.get("a")
    with pytest.raises(StorageFailure, match=r"could not list '\.': ConnectException"):
        store.list_from("")


def test_temporary_files_are_hidden_and_old_ones_deleted(store: HadoopLogStore, files: FilesOfFolder) -> None:
    store.put("a", b"x")
    folder = files.local(URL)
    (folder / ".tahoe-new.tmp").write_bytes(b"")
    (folder / ".tahoe-old.tmp").write_bytes(b"")
    os.utime(folder / ".tahoe-old.tmp", (1, 1))
    assert store.names_from("") == ["a"] == [entry.name for entry in store.walk()]
    assert left_behind(files) == [".tahoe-new.tmp"]


def test_folders_are_listed(store: HadoopLogStore) -> None:
    store.put("b/x/1", b"")
    store.put("a/2", b"")
    assert store.folders() == ["a", "b"] and store.folders("b") == ["x"] and store.folders("none") == []
    assert store.has_folder("b/x") and not store.has_folder("a/2") and not store.has_folder("none")


def test_an_unknown_option_is_refused_by_name() -> None:
    with pytest.raises(
        InvalidRequest, match=r"'aws_region' is no setting of Hadoop, whose names begin with fs\., dfs\., hadoop\."
    ) as caught:
        open_store(URL, {"aws_region": "CANARY"})
    assert "CANARY" not in str(caught.value)


def test_without_a_session_each_call_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hadoop_store._FileSystems, "opener", None)
    store = open_store(URL)
    for call in (lambda: store.get("a"), lambda: store.put("a", b""), lambda: store.list_from("")):
        with pytest.raises(Unsupported, match="through the JVM of a Spark session"):
            call()


def test_a_new_session_serves_a_store_that_is_open(store: HadoopLogStore, files: FilesOfFolder, tmp_path: Path) -> None:
    store.put("a", b"of the first session")
    other = FilesOfFolder(tmp_path / "other")
    use_file_systems(lambda options: other)
    with pytest.raises(NotFound):
        store.get("a")


def test_a_store_is_opened_again_by_its_url_and_options(files: FilesOfFolder) -> None:
    store = pickle.loads(pickle.dumps(open_store(URL, {"dfs.replication": "1"})))
    store.put("a", b"x")
    assert (store.url, store.get("a"), store._options) == (URL, b"x", {"dfs.replication": "1"})
