"""TRUNCATE TABLE: all files leave in one commit, which the history knows by its name."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tahoe import Table
from tahoe.base.exceptions import ConcurrentAppendException, InvalidRequest
from tahoe.ops.rows.truncate import stage_truncate

ROWS = pa.table({"id": [1, 2]})


def truncated(table: Table):
    transaction = table.begin()
    return table.commit_rows(transaction, stage_truncate(transaction))


def test_all_rows_go_and_an_empty_table_stays_as_it_is(tmp_path):
    table = Table(tmp_path / "t")
    for _ in range(2):
        table.append(ROWS)
    assert truncated(table).num_deleted_rows == 4
    entry = table.history(1)[0]
    assert (entry["operation"], entry["operationParameters"]) == ("TRUNCATE", {})
    assert entry["operationMetrics"].keys() == {"numRemovedFiles", "executionTimeMs"}
    assert entry["operationMetrics"]["numRemovedFiles"] == "2"
    assert table.to_arrow().num_rows == 0
    assert truncated(table).version is None and table.version() == 2


def test_rows_that_come_beside_it_conflict(tmp_path):
    table = Table(tmp_path / "t")
    table.append(ROWS)
    transaction = table.begin()
    Table(table.url).append(ROWS)
    with pytest.raises(ConcurrentAppendException):
        table.commit_rows(transaction, stage_truncate(transaction))


def test_an_append_only_table_is_not_truncated(tmp_path):
    table = Table.create(tmp_path / "t", ROWS.schema, properties={"delta.appendOnly": "true"})
    table.append(ROWS)
    with pytest.raises(InvalidRequest) as error:
        truncated(table)
    assert error.value.code == "DELTA_CANNOT_MODIFY_APPEND_ONLY"
