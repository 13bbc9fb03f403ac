"""Hooks never fail a commit, and run when they are due."""

from __future__ import annotations

import logging

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.log.files.paths import checkpoint_name, checksum_name
from tahoe.log.segment import checkpoints_in
from tahoe.snapshot.snapshot import Snapshot
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
