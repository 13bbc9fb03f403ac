"""Where a schema log may lie; the rest of `tahoe.spark.stream.schema_logs` is in tests/spark/test_streams.py."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.spark.portable.stream_reader import stream_reader
from tahoe.spark.stream import schema_logs
from tahoe.spark.stream.schema_logs import check_below_checkpoint, read_for_columns, tracking_of
from tahoe.stream.schema_log import SchemaLog, TrackedMetadata, log_folder
from tahoe.stream.source_options import SourceOptions


@pytest.mark.parametrize(
    ("location", "source_path", "is_below"),
    [
        ("/at/schemas", "file:/at/sources/0", True),
        ("file:///at", "file:/at/sources/0", True),
        ("/at/", "file:/at/sources/named", True),
        ("s3://bucket/at/s", "s3a://bucket/at/sources/0", True),
        ("/at/sources/schemas", "file:/at/sources/0", True),
        ("/at/../elsewhere", "file:/at/sources/0", False),
        ("/at2/schemas", "file:/at/sources/0", False),
        ("/schemas", "file:/at/sources/0", False),
        ("s3://bucket/at", "file:/at/sources/0", False),
        ("s3://other/at/s", "s3a://bucket/at/sources/0", False),
        ("hdfs://host/at/s", "file:/at/sources/0", False),
        ("/at/sources/s", "file:/at/sources/sources/0", True),
    ],
)
def test_a_log_lies_below_the_checkpoint(location: str, source_path: str, is_below: bool) -> None:
    if is_below:
        check_below_checkpoint(location, source_path, "t")
        return
    with pytest.raises(InvalidRequest, match="checkpoint") as caught:
        check_below_checkpoint(location, source_path, "t")
    assert caught.value.code == "DELTA_STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT"


PREFIX = "spark.databricks.delta.streaming."


def session_with(settings: dict[str, str]) -> Any:
    """The part of a session used here: one setting by its name."""
    return SimpleNamespace(conf=settings)


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Table:
    # Of a session only its settings for storage are asked, which a local folder has none of.
    monkeypatch.setattr(schema_logs, "table_at", lambda _spark, path, _options: Table(path))
    return Table.create(tmp_path / "t", pa.schema([("id", pa.int64())]), properties={"delta.columnMapping.mode": "name"})


def code_of_a_start(
    monkeypatch: pytest.MonkeyPatch, table: Table, location: Path, place: str, settings: dict[str, str]
) -> str | None:
    monkeypatch.setattr(schema_logs, "settings_of", lambda _spark: settings)
    options = SourceOptions(schema_tracking_location=str(location))
    try:
        assert tracking_of(session_with(settings), table.snapshot(), options, {}, place) is not None
    except InvalidRequest as error:
        return error.code
    return None


def test_settings_of_where_a_log_may_lie_and_whose_it_is(monkeypatch: pytest.MonkeyPatch, table: Table, tmp_path: Path) -> None:
    place, outside = f"file:{tmp_path}/at/sources/0", tmp_path / "outside"
    anywhere = {PREFIX + "allowSchemaLocationOutsideCheckpointLocation": "true"}
    assert code_of_a_start(monkeypatch, table, outside, place, {}) == "DELTA_STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT"
    assert code_of_a_start(monkeypatch, table, outside, place, anywhere) is None
    log = SchemaLog(Table(log_folder(str(outside), table.snapshot().metadata.id, None)).store, table.url)
    log.add(TrackedMetadata.of(table.snapshot().config, 0, "file:/another/sources/0"))
    assert code_of_a_start(monkeypatch, table, outside, place, anywhere) == "DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT"
    unchecked = {**anywhere, PREFIX + "schemaTracking.metadataPathCheck.enabled": "false"}
    assert code_of_a_start(monkeypatch, table, outside, place, unchecked) is None


def test_changes_in_a_row_are_taken_as_one_unless_a_setting_says_no(table: Table, tmp_path: Path) -> None:
    log = SchemaLog(Table(log_folder(str(tmp_path / "s"), table.snapshot().metadata.id, None)).store, table.url)
    log.add(TrackedMetadata.of(table.snapshot().config, 0, "s"))
    table.rename_column("id", "b")
    options = SourceOptions(schema_tracking_location=str(tmp_path / "s"))
    for setting, names in (("false", ["id"]), ("true", ["b"])):
        settings = {PREFIX + "schemaTracking.mergeConsecutiveSchemaChanges.enabled": setting}
        assert read_for_columns(session_with(settings), table.snapshot(), options, {}).schema.names == names
    assert read_for_columns(session_with({}), table.snapshot(), SourceOptions(), {}).schema.names == ["b"]


@pytest.mark.parametrize("kind", ["allowSourceColumnRename", "allowSourceColumnRenameAndDrop"])
def test_a_setting_lets_a_stream_continue(monkeypatch: pytest.MonkeyPatch, table: Table, tmp_path: Path, kind: str) -> None:
    place = f"file:{tmp_path}/at/sources/0"
    log = SchemaLog(Table(log_folder(str(tmp_path / "at"), table.snapshot().metadata.id, None)).store, table.url)
    log.add(TrackedMetadata.of(table.snapshot().config, 0, place))
    table.rename_column("id", "b")
    log.add(TrackedMetadata.of(table.snapshot().config, 1, place))
    blocked = "DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION"
    others = {PREFIX + "allowSourceColumnDrop": "always", PREFIX + "allowSourceColumnTypeChange": "always"}
    assert code_of_a_start(monkeypatch, table, tmp_path / "at", place, others) == blocked
    assert code_of_a_start(monkeypatch, table, tmp_path / "at", place, {PREFIX + kind: "always"}) is None


def test_the_portable_source_keeps_no_log(table: Table) -> None:
    columns = StructType([StructField("id", LongType())])
    with pytest.raises(Unsupported, match="'schemaTrackingLocation' is not supported here") as caught:
        stream_reader(table, None, columns, {"path": table.url, "schemaTrackingLocation": "/at/s"})
    assert caught.value.code == "TAHOE_OPTION_NOT_SUPPORTED"
