"""Processes that append to one table at once lose nothing, double nothing, and leave no gap."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tests.race.processes import acknowledged, start, wait_until_ready, writer_process

ROWS = 3


def race(path: str, writers: int, appends: int, options: Mapping[str, str] | None = None) -> None:
    """The number of appends of each writer, and the expected rows."""
    commits = writers * appends
    table = Table.create(path, pa.schema({"id": pa.int64()}), storage_options=options)
    with contextlib.ExitStack() as stack:
        processes = [
            stack.enter_context(writer_process(path, writer, appends=appends, rows=ROWS, options=options))
            for writer in range(writers)
        ]
        for process in processes:
            wait_until_ready(process)
        for process in processes:
            start(process)
        outputs = [process.communicate() for process in processes]
    assert [stderr for _, stderr in outputs] == [""] * writers
    acks = [ack for stdout, _ in outputs for ack in acknowledged(stdout)]

    assert len(acks) == commits
    assert sorted(version for version, _ in acks) == list(range(1, commits + 1))
    expected = sorted(first + row for _, first in acks for row in range(ROWS))
    assert sorted(table.to_arrow()["id"].to_pylist()) == expected
    history = table.history()
    assert [commit["version"] for commit in history] == list(range(commits, -1, -1))
    assert Counter(commit["operation"] for commit in history) == {"WRITE": commits, "CREATE TABLE": 1}
    for version, first in acks[:: commits // 5]:
        assert set(range(first, first + ROWS)) <= set(table.to_arrow(version=version)["id"].to_pylist())
        assert first not in table.to_arrow(version=version - 1)["id"].to_pylist()
    assert table.check() == []


@pytest.mark.long
def test_four_processes_append_to_a_local_table(tmp_path: Path) -> None:
    race(str(tmp_path / "table"), 4, 10)


def test_three_processes_append_to_a_table_on_s3(s3_url: str, s3_options: dict[str, str]) -> None:
    race(s3_url, 3, 4, s3_options)


@pytest.mark.soak
def test_eight_processes_append_two_hundred_times_to_a_local_table(tmp_path: Path) -> None:
    race(str(tmp_path / "table"), 8, 25)


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_eight_processes_append_two_hundred_times_to_a_table_on_s3(s3_url: str, s3_options: dict[str, str]) -> None:
    race(s3_url, 8, 25, s3_options)
