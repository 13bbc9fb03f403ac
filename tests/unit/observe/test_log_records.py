"""Each event is a log record with fields."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.base.events import happened
from tahoe.base.exceptions import InvalidRequest
from tahoe.log.cleanup import clean_up_log
from tahoe.observe.log_records import LogRecords

DAY_MS = 86_400_000
LOGGER = "tahoe.observe.log_records"
_USUAL = set(vars(logging.LogRecord("", 0, "", 0, "", (), None))) | {"message"}


def fields_of(record: logging.LogRecord) -> dict[str, object]:
    """The fields as a JSON formatter writes them."""
    return json.loads(json.dumps({name: value for name, value in vars(record).items() if name not in _USUAL}))


def test_operations_are_records_with_table_version_operation_counts_and_duration(
    memory_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, LOGGER)
    table = Table(memory_url)
    table.append(pa.table({"id": [1, 2, 3]}))
    table.delete("id = 1")
    table.vacuum()
    records = [fields_of(record) for record in caplog.records]
    assert [record["event"] for record in records] == ["commit", "commit", "delete", "commit", "commit", "vacuum"]
    assert {record["table"] for record in records} == {memory_url}
    assert all(isinstance(record["duration_ms"], float) for record in records)
    first, _, deleted, *_, vacuum = records
    expected = {"version": 0, "operation": "WRITE", "attempts": 1, "files_added": 1, "rows_written": 3}
    assert expected.items() <= first.items()
    assert {"version": 1, "rows_deleted": 1, "rows_inserted": 0}.items() <= deleted.items()
    assert {"version": 3, "files_deleted": 0, "dry_run": False}.items() <= vacuum.items()
    assert caplog.records[0].getMessage().startswith(f"commit: version 0 of {memory_url} (operation=WRITE, attempts=1,")


def test_plans_and_checkpoints_are_at_the_level_debug(memory_url: str, caplog: pytest.LogCaptureFixture) -> None:
    table = Table(memory_url)
    table.append(pa.table({"id": [1, 2, 3]}))
    caplog.set_level(logging.DEBUG, LOGGER)
    table.checkpoint()
    table.to_arrow(filter="id > 1")
    details = [fields_of(record) for record in caplog.records if record.levelno == logging.DEBUG]
    assert {"checkpoint", "plan"} == {record["event"] for record in details}
    assert {"files": 1, "filtered": True, "version": 0}.items() <= details[-1].items()


def test_a_failed_operation_is_a_record_with_the_code_of_its_error(memory_url: str, caplog: pytest.LogCaptureFixture) -> None:
    table = Table(memory_url)
    table.append(pa.table({"id": [1]}))
    caplog.set_level(logging.INFO, LOGGER)
    with pytest.raises(InvalidRequest) as raised:
        table.update({"id": "nothing + 1"})
    (record,) = caplog.records
    assert fields_of(record)["error"] == raised.value.code
    assert "version" not in fields_of(record)


def test_no_value_of_a_row_a_condition_or_an_option_is_logged(tmp_path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    table = Table(tmp_path / "t", storage_options={"fsync": "true"})
    table.append(pa.table({"name": ["hunter2", "swordfish"]}), user_metadata="token=hunter2")
    table.delete("name = 'hunter2'")
    table.update({"name": "'hunter2'"}, "name = 'swordfish'")
    assert len(caplog.records) > 3
    assert "hunter2" not in caplog.text + str([fields_of(record) for record in caplog.records if record.name == LOGGER])


def test_the_guide_lists_every_event_with_its_level_and_fields(memory_url: str, caplog: pytest.LogCaptureFixture) -> None:
    guide = (Path(__file__).parents[3] / "docs" / "guide" / "observing.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*`) \| (\w+) \| [^|]* \| (.*) \|$", guide, re.MULTILINE)
    listed = {
        name: (level, set(re.findall(r"`(\w+)`", fields)))
        for names, level, fields in rows
        for name in re.findall(r"`(\w+)`", names)
    }
    caplog.set_level(logging.DEBUG, LOGGER)
    properties = {"delta.universalFormat.enabledFormats": "iceberg", "delta.enableIcebergCompatV2": "true"}
    table = Table.create(memory_url, pa.schema([("id", pa.int64())]), properties=properties)
    table.append(pa.table({"id": [1, 2, 3]}))
    table.delete("id = 1")
    table.update({"id": "id + 10"}, "id = 2")
    table.merge(pa.table({"id": [3]}), "target.id = source.id").when_matched_delete().execute()
    table.uniform.sync()
    table.optimize()
    table.vacuum()
    table.checkpoint()
    clean_up_log(table.store, table.snapshot().config, SYSTEM_CLOCK.now_ms() + 10 * DAY_MS, retention_ms=0)
    happened("retry", memory_url, 1, operation="commit", attempts=1)
    seen = [fields_of(record) for record in caplog.records if record.name == LOGGER]
    assert {record["event"] for record in seen} == listed.keys()
    for record, fields in zip([record for record in caplog.records if record.name == LOGGER], seen, strict=True):
        level, names = listed[str(fields["event"])]
        assert record.levelname == level
        assert fields.keys() - {"event", "table", "version", "duration_ms", "error"} <= names, fields


def test_records_cost_nothing_while_the_level_is_off() -> None:
    assert not LogRecords().is_on("commit")
