"""Table properties: spelling, values, defaults."""

from __future__ import annotations

import pytest

from tahoe.base.exceptions import CorruptTable, InvalidRequest
from tahoe.protocol.properties import TableProperties, parse_interval_ms, validate_properties

DAY = 86_400_000
CODES = {
    "delta.columnMapping.mode": "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
    "delta.logRetentionDuration": "DELTA_INVALID_INTERVAL",
    "delta.isolationLevel": "DELTA_INVALID_ISOLATION_LEVEL",
}
"""The error classes of values that the reference names."""


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("interval 30 days", 30 * DAY),
        ("1 week", 7 * DAY),
        ("INTERVAL 1 day 12 hours", 36 * 3_600_000),
        ("interval 0 hours", 0),
        ("5 milliseconds", 5),
    ],
)
def test_intervals_are_read(text, milliseconds):
    assert parse_interval_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["", "interval", "1 month", "2 years", "-1 day", "1 day and a half", "days 3", "30"])
def test_invalid_intervals_are_refused(text):
    with pytest.raises(ValueError, match=f"^{text}$"):
        parse_interval_ms(text)


def test_defaults_are_the_reference_s():
    properties = TableProperties({})
    assert properties.checkpoint_interval == 10
    assert properties.log_retention_ms == 30 * DAY
    assert properties.deleted_file_retention_ms == 7 * DAY
    assert properties.write_stats_as_struct and properties.write_stats_as_json
    assert properties.universal_format_enabled_formats == ()


def test_keys_are_matched_without_regard_to_case_and_spelled_as_the_reference_does():
    assert validate_properties({"DELTA.APPENDONLY": "TRUE"}) == {"delta.appendOnly": "TRUE"}
    assert TableProperties({"delta.appendonly": "true"}).append_only


def test_an_unknown_delta_key_is_refused_and_a_key_of_one_s_own_is_kept():
    with pytest.raises(InvalidRequest, match=r"delta\.apendOnly") as caught:
        validate_properties({"delta.apendOnly": "true"})
    assert caught.value.code == "DELTA_UNKNOWN_CONFIGURATION"
    assert validate_properties({"team": "ice"}) == {"team": "ice"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("delta.appendOnly", "yes"),
        ("delta.checkpointInterval", "0"),
        ("delta.checkpointInterval", "ten"),
        ("delta.columnMapping.mode", "names"),
        ("delta.universalFormat.enabledFormats", "iceberg,iceberg"),
        ("delta.universalFormat.enabledFormats", "iceberg, hudi"),
        ("delta.logRetentionDuration", "2 months"),
        ("delta.parquet.compression.codec", "rar"),
        ("delta.isolationLevel", "None"),
        ("delta.minReaderVersion", "99"),
    ],
)
def test_a_value_that_is_not_allowed_is_refused_naming_the_property(key, value):
    with pytest.raises(InvalidRequest, match=key.replace(".", r"\.")) as raised:
        validate_properties({key: value})
    assert raised.value.code == CODES.get(key, "TAHOE_TABLE_PROPERTY")


def test_a_log_retention_shorter_than_that_of_deleted_files_is_refused():
    with pytest.raises(InvalidRequest, match="logRetentionDuration"):
        validate_properties({"delta.logRetentionDuration": "interval 1 day"})


def test_nonsense_that_a_table_holds_is_a_corrupt_table():
    with pytest.raises(CorruptTable, match="checkpointInterval"):
        _ = TableProperties({"delta.checkpointInterval": "many"}).checkpoint_interval
