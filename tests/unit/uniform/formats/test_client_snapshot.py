"""The client's snapshot in the history of the Delta table: written and read back; forged values are ignored."""

from __future__ import annotations

import pytest

from tahoe.uniform.formats.client_snapshot import OPERATIONS, ClientSnapshot, client_snapshot


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_snapshot_is_read_as_it_was_written_without_counts(operation: str) -> None:
    summary = {"own": "kept", "added-records": "3", "total-data-files": "9"}
    written = ClientSnapshot(2**63 - 1, operation, summary, "PyIceberg 0.12.0")
    info = {"operation": written.operation_name, "operationParameters": written.parameters()}
    assert client_snapshot(info) == ClientSnapshot(2**63 - 1, operation, {"own": "kept"}, "PyIceberg 0.12.0")


@pytest.mark.parametrize(
    "info",
    [
        {},
        {"operation": 5},
        {"operation": "WRITE", "operationParameters": {"snapshotId": "5"}},
        {"operation": "ICEBERG APPEND"},
        {"operation": "ICEBERG APPEND", "operationParameters": {"snapshotId": "-5"}},
        {"operation": "ICEBERG APPEND", "operationParameters": {"snapshotId": str(2**63)}},
        {"operation": "ICEBERG APPEND", "operationParameters": {"snapshotId": "9" * 400}},
        {"operation": "ICEBERG MERGE", "operationParameters": {"snapshotId": "5"}},
    ],
)
def test_another_commit_has_no_snapshot_of_a_client(info: dict[str, object]) -> None:
    assert client_snapshot(info) is None


def test_a_summary_that_is_no_object_of_texts_is_ignored() -> None:
    for summary in (None, 5, "[]", "{", '{"a": 1}'):
        info = {"operation": "ICEBERG APPEND", "operationParameters": {"snapshotId": "5", "summary": summary, "client": 7}}
        assert client_snapshot(info) == ClientSnapshot(5, "append")
