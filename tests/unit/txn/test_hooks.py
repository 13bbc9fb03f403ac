"""Hooks never fail a commit, and run when they are due."""

from __future__ import annotations

import logging

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.exceptions import CorruptTable, StorageFailure
from tahoe.log.checksum import encode_checksum
from tahoe.log.checksum_writer import checksum_of
from tahoe.log.files.paths import checkpoint_name, checksum_name, commit_name
from tahoe.log.segment import checkpoints_in
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.object_store import open_store
from tahoe.testing.faulty_store import WrappedStore
from tahoe.txn.commit import Committed
from tahoe.txn.hooks import run_hooks
from tahoe.txn.transaction import Operation

ROWS = pa.table({"id": [1]})


def made(url: str) -> Table:
    return Table.create(url, ROWS.schema, properties={"delta.checkpointInterval": "2"})


def test_a_checksum_follows_each_commit_and_a_checkpoint_every_interval(memory_url: str) -> None:
    table = made(memory_url)
    for _ in range(4):
        table.append(ROWS)
    there = {
        version: (table.store.head(checksum_name(version)), table.store.head(checkpoint_name(version))) for version in range(5)
    }
    assert all(checksum for checksum, _ in there.values())
    assert [version for version, (_, checkpoint) in there.items() if checkpoint] == [2, 4]


def test_a_v2_checkpoint_reads_no_live_files_unless_the_chain_of_checksums_is_broken(
    memory_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table.create(memory_url, ROWS.schema, properties={"delta.checkpointInterval": "2", "delta.checkpointPolicy": "v2"})
    for _ in range(3):
        table.append(ROWS)
    asked: list[int] = []
    files = Snapshot.files

    def asks(snapshot: Snapshot) -> pa.Table:
        asked.append(snapshot.version)
        return files(snapshot)

    monkeypatch.setattr(Snapshot, "files", asks)
    Table(memory_url).append(ROWS)
    Table(memory_url).append(ROWS)
    assert asked == [] and [*checkpoints_in(table.store.list_from("_delta_log"))] == [2, 4]
    table.store.delete(checksum_name(5))
    Table(memory_url).append(ROWS)
    assert asked == [6] and table.store.head(checksum_name(6)), "the chain restarts"
    assert Table(memory_url).check() == []


def test_a_hook_that_fails_is_logged_with_version_and_table_and_the_others_run(
    memory_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    table, ran = made(memory_url), []
    transaction = table.begin()
    transaction.stage_app("job", 1)
    committed = table.commit(transaction, Operation("TEST"))

    def fails(committed: Committed) -> None:
        raise OSError("the disk is full")

    with caplog.at_level(logging.ERROR):
        run_hooks([fails, lambda committed: ran.append(committed.version)], committed)
    assert ran == [1]
    assert f"after version 1 of {table.url}" in caplog.text and "the disk is full" in caplog.text


class FirstReadFails(WrappedStore):
    """Answers the first read of a name otherwise: with an error, or with other content."""

    def __init__(self, url: str, name: str, answer: Exception | bytes) -> None:
        super().__init__(open_store(url))
        self.name, self.answer, self.reads = name, answer, 0

    def get(self, name: str) -> bytes:
        if name == self.name:
            self.reads += 1
            if self.reads == 1 and isinstance(self.answer, Exception):
                raise self.answer
            if self.reads == 1 and isinstance(self.answer, bytes):
                return self.answer
        return super().get(name)


@pytest.mark.parametrize(
    "answer",
    [StorageFailure("no answer", table="t"), RuntimeError("a fault"), b"{}", b""],
    ids=["failure", "fault", "wrong", "empty"],
)
def test_a_previous_checksum_that_cannot_be_read_with_the_commit_is_read_after_it(
    memory_url: str, answer: Exception | bytes
) -> None:
    made(memory_url)
    store = FirstReadFails(memory_url, checksum_name(0), answer)
    Table(memory_url, store=store).append(ROWS)
    assert store.reads == 2 and store.get(checksum_name(1)) == written_from_scratch(memory_url, 1)


def test_no_checkpoint_takes_over_the_loss_of_a_commits_lines(memory_url: str, caplog: pytest.LogCaptureFixture) -> None:
    table = Table.create(memory_url, ROWS.schema, properties={"delta.checkpointInterval": "4"})
    table.append(ROWS)
    table.overwrite(ROWS)
    whole = table.store.get(commit_name(2))
    table.store.put(commit_name(2), next(line for line in whole.splitlines(keepends=True) if line.startswith(b'{"add"')))
    writer = Table(memory_url)
    writer.append(ROWS)
    with pytest.raises(CorruptTable, match=checksum_name(3)):
        writer.to_arrow()
    writer.append(ROWS)
    assert "a post-commit hook failed" in caplog.text and table.store.head(checkpoint_name(4)) is None
    with pytest.raises(CorruptTable, match=checksum_name(4)):
        Table(memory_url).to_arrow()
    table.store.put(commit_name(2), whole)
    assert Table(memory_url).to_arrow().num_rows == 3 and Table(memory_url).check() == []


def test_a_previous_checksum_that_contradicts_the_log_is_not_carried_forward_and_is_reported_once(
    memory_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    table = made(memory_url)
    other = made(f"{memory_url}2")
    table.store.put(checksum_name(0), other.store.get(checksum_name(0)))
    assert table.append(ROWS) == 1 and table.store.head(checksum_name(1)) is None
    assert [record.message for record in caplog.records if "was not carried forward" in record.message] == [
        f"{table.url}: {checksum_name(0)} was not carried forward, for it says a metaData action whose id the log gives otherwise"
    ]


def test_a_commit_that_lost_a_race_has_the_checksum_of_its_own_version(memory_url: str) -> None:
    table = Table.create(memory_url, ROWS.schema)
    transaction = table.begin()
    transaction.stage_app("job", 1)
    for _ in range(3):
        Table(memory_url).append(ROWS)
    committed = table.commit(transaction, Operation("TEST"))
    assert committed.version == 4 and len(committed.concurrent) == 3
    assert table.store.get(checksum_name(4)) == written_from_scratch(memory_url, 4)
    entries = [table.store.head(entry.name) for entry in committed.snapshot.segment.commits]
    assert list(committed.snapshot.segment.commits) == entries, "the estimates are replaced by the entries in the store"


def test_a_commit_whose_file_cannot_be_looked_up_is_reported_as_committed(memory_url: str) -> None:
    class NoLook(WrappedStore):
        def head(self, name: str) -> None:
            raise StorageFailure(f"cannot look at {name}", table="t")

    table = Table.create(memory_url, ROWS.schema)
    transaction = table.begin()
    transaction.stage_app("job", 1)
    transaction.store = NoLook(table.store)
    committed = table.commit(transaction, Operation("TEST"))
    assert committed.version == 1 and Table(memory_url).version() == 1
    assert table.store.get(checksum_name(1)) == written_from_scratch(memory_url, 1)


def written_from_scratch(url: str, version: int) -> bytes:
    """The checksum file of a version, from its live files alone."""
    snapshot = Table(url).snapshot(version)
    return encode_checksum(version, checksum_of(snapshot.state, snapshot.files(), snapshot.config))
