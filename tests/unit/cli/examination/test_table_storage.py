from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.cli.examination import table_storage
from tahoe.cli.examination.findings import Finding, State
from tahoe.store.local_store import LocalLogStore
from tahoe.store.log_store import Created, PutOutcome

SCHEMA = pa.schema([("id", pa.int64())])


@pytest.fixture
def silent_endpoint() -> Iterator[str]:
    """An endpoint that accepts connections and answers none."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def found(
    path: object, options: Mapping[str, str] | None = None, *, writes: bool = False, seconds: float = 60
) -> dict[str, Finding]:
    return {
        finding.subject: finding for finding in table_storage.of_storage(str(path), options or {}, writes=writes, seconds=seconds)
    }


def test_a_local_table_is_examined_without_a_write(tmp_path: Path) -> None:
    Table.create(tmp_path / "t", SCHEMA)
    before = sorted(tmp_path.rglob("*"))
    findings = found(tmp_path / "t")
    assert findings["storage"].state is State.OK
    assert findings["folder"].state is State.OK
    assert findings["letter case"].state is State.OK
    assert findings["conditional writes"].state is State.NOT_EXAMINED
    assert "--write" in findings["storage's clock"].remedy
    assert sorted(tmp_path.rglob("*")) == before


def test_a_local_table_is_examined_by_writes_that_leave_nothing(tmp_path: Path) -> None:
    Table.create(tmp_path / "t", SCHEMA)
    before = sorted(tmp_path.rglob("*"))
    findings = found(tmp_path / "t", writes=True)
    assert findings["conditional writes"].state is State.OK
    assert findings["storage's clock"].state is State.OK
    assert sorted(tmp_path.rglob("*")) == before


def test_nothing_is_written_where_there_is_no_table(tmp_path: Path) -> None:
    assert found(tmp_path, writes=True)["conditional writes"].state is State.NOT_EXAMINED
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_accepts_two_conditional_writes_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def accept(store: LocalLogStore, name: str, data: bytes) -> PutOutcome:
        store.put(name, data)
        return Created()

    Table.create(tmp_path / "t", SCHEMA)
    monkeypatch.setattr(LocalLogStore, "put_if_absent", accept)
    finding = found(tmp_path / "t", writes=True)["conditional writes"]
    assert finding.state is State.PROBLEM
    assert "does not refuse a second" in finding.sentence


def test_an_object_store_is_examined(s3_url: str, s3_options: dict[str, str]) -> None:
    table = Table.create(s3_url, SCHEMA, storage_options=s3_options)
    findings = found(s3_url, s3_options)
    assert {finding.state for finding in findings.values()} == {State.OK, State.NOT_EXAMINED}
    assert "folder" not in findings
    findings = found(s3_url, s3_options, writes=True)
    assert {finding.state for finding in findings.values()} == {State.OK}
    assert set(findings) == {"credentials", "storage", "conditional writes", "storage's clock"}
    assert not [entry for entry in table.store.list_from("_delta_log") if ".tahoe" in entry.name]
    assert s3_options["aws_secret_access_key"] not in str(findings)


def test_an_endpoint_that_does_not_answer_is_a_problem_in_time(silent_endpoint: str, s3_options: dict[str, str]) -> None:
    findings = found("s3://tables/t", {**s3_options, "aws_endpoint": silent_endpoint}, writes=True, seconds=0.2)
    assert findings["storage"].state is State.PROBLEM
    assert "did not answer within 0.2 seconds" in findings["storage"].sentence
    assert findings["conditional writes"].state is State.NOT_EXAMINED


def test_a_bucket_that_does_not_exist_is_a_problem(s3_options: dict[str, str]) -> None:
    finding = found("s3://no-such-bucket-here/t", s3_options)["storage"]
    assert finding.state is State.PROBLEM
    assert "Create the bucket" in finding.sentence


def test_a_location_or_option_that_no_store_accepts_is_a_problem(s3_options: dict[str, str]) -> None:
    findings = found("s3://tables/t", {**s3_options, "no_such_option": "1"})
    assert findings["storage"].state is State.PROBLEM
    assert findings["conditional writes"].state is State.NOT_EXAMINED


def test_credentials_are_found_by_name_or_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = {"AWS_ACCESS_KEY_ID": "canary"}
    assert table_storage.of_credentials("s3", secret).state is State.OK
    assert "canary" not in str(table_storage.of_credentials("s3", secret))
    monkeypatch.setattr("tahoe.cli.examination.table_storage.may_have_role", lambda scheme, settings: False)
    missing = table_storage.of_credentials("s3", {"AWS_REGION": "x"})
    assert missing.state is State.PROBLEM
    assert "AWS_ACCESS_KEY_ID" in missing.remedy
    monkeypatch.setattr("tahoe.cli.examination.table_storage.may_have_role", lambda scheme, settings: True)
    assert "may have a role" in table_storage.of_credentials("s3", {}).sentence


def test_a_variable_of_another_program_is_no_credential(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr("tahoe.cli.examination.table_storage.may_have_role", lambda scheme, settings: False)
    monkeypatch.setenv("OTHER_ACCESS_KEY_ID", "x")
    assert found("s3://tables/t", {"aws_endpoint": "http://127.0.0.1:9"}, seconds=0.2)["credentials"].state is State.PROBLEM


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_noted(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        assert found(tmp_path / "t")["folder"].state is State.NOTE
    finally:
        tmp_path.chmod(0o700)


MOUNTS = "/dev/a / ext4 rw 0 0\nserver:/x /mnt/a\\040b nfs4 rw 0 0\n"


@pytest.mark.parametrize(
    ("folder", "kind", "state"), [("/mnt/a b/t", "nfs4", State.NOTE), ("/mnt/a", "ext4", State.OK), ("/", "ext4", State.OK)]
)
def test_the_innermost_mount_decides_the_file_system(folder: str, kind: str, state: State) -> None:
    assert table_storage.file_system_of(Path(folder), MOUNTS) == kind
    assert table_storage.of_file_system(kind).state is state


@pytest.mark.parametrize("kind", ["fuse.gcsfuse", "fuse.blobfuse2", "fuse.mount-s3", "cifs", "vboxsf", "virtiofs"])
def test_a_network_file_system_is_noted(kind: str) -> None:
    actual = table_storage.of_file_system(kind)
    assert actual.state is State.NOTE and kind in actual.sentence


def test_a_file_system_without_hard_links_is_a_problem() -> None:
    actual = table_storage.of_file_system("exfat")
    assert actual.state is State.PROBLEM and "hard links" in actual.sentence


@pytest.mark.parametrize(
    ("may_write", "is_read_only", "state", "says"),
    [(True, False, State.OK, "may write"), (False, False, State.NOTE, "may not write"), (False, True, State.NOTE, "read-only")],
)
def test_a_folder_that_cannot_be_written_is_noted_with_the_reason(
    may_write: bool, is_read_only: bool, state: State, says: str
) -> None:
    actual = table_storage.of_folder("/mnt", may_write=may_write, is_read_only=is_read_only)
    assert actual.state is state and says in actual.sentence


def test_an_unknown_file_system_is_not_examined() -> None:
    assert table_storage.of_file_system(table_storage.file_system_of(Path("/x"), None)).state is State.NOT_EXAMINED


@pytest.mark.parametrize(("ignores_case", "state"), [(True, State.NOTE), (False, State.OK), (None, State.NOT_EXAMINED)], ids=str)
def test_a_file_system_that_ignores_case_is_noted(ignores_case: bool | None, state: State) -> None:
    assert table_storage.of_letter_case(ignores_case).state is state


def test_a_folder_found_by_both_spellings_ignores_case(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    assert table_storage._ignores_case(tmp_path) is False
    (tmp_path / "_DELTA_LOG").symlink_to(tmp_path / "_delta_log")
    assert table_storage._ignores_case(tmp_path) is True


@pytest.mark.parametrize(
    ("skew_ms", "state"), [(0, State.OK), (-59_000, State.OK), (-70_000, State.PROBLEM), (70_000, State.PROBLEM)]
)
def test_a_clock_that_differs_by_a_minute_is_a_problem(skew_ms: int, state: State) -> None:
    assert table_storage.of_skew(skew_ms, 10).state is state
    assert table_storage.of_skew(skew_ms, 100_000).state is State.OK
