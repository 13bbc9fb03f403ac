"""Commits in numbers."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.txn.commit import Committed
from tahoe.txn.commit_summary import CommitSummary, summary_of


@pytest.fixture
def committed(memory_url: str) -> tuple[Table, list[Committed]]:
    commits = list[Committed]()
    return Table(memory_url, hooks=[commits.append]), commits


def test_a_summary_counts_files_bytes_and_rows(committed: tuple[Table, list[Committed]]) -> None:
    table, commits = committed
    table.append(pa.table({"id": [1, 2, 3]}))
    (size,) = table.files()["size"].to_pylist()
    assert summary_of(commits[0]) == CommitSummary("WRITE", 1, 0, size, 0, 3, "CREATE")
    table.delete("id < 9")
    assert summary_of(commits[1]) == CommitSummary("DELETE", 0, 1, 0, size, None, None)


def test_the_lifecycle_is_that_of_the_table(committed: tuple[Table, list[Committed]]) -> None:
    table, commits = committed
    rows = pa.table({"id": [1, 2], "p": ["a", "b"]})
    table.overwrite(rows, partition_by=["p"])
    table.append(rows)
    table.overwrite(rows)
    table.overwrite(rows.slice(0, 1), replace_where="p = 'a'")
    table.overwrite(rows.slice(0, 1), dynamic_partitions=True)
    table.set_properties({"a.b": "c"})
    table.append(rows.append_column("v", pa.array([1, 2])), merge_schema=True)
    assert [summary_of(commit).lifecycle for commit in commits] == ["CREATE", None, "OVERWRITE", None, None, "ALTER", None]
