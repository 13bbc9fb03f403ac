"""The meaning of the options of a stream's reader."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tahoe.base.exceptions import TahoeError, TahoeWarning
from tahoe.settings.dataframe_options import STREAM_READER_OPTIONS
from tahoe.settings.setting import State
from tahoe.settings.warn_once import reset_warnings
from tahoe.spark.stream.stream_options import stream_options
from tahoe.stream.source_options import SourceOptions

MOMENT = datetime(2026, 1, 31, 12, 0, 0, 123_456, UTC)


def meant(**options: str) -> SourceOptions:
    return stream_options(options, lambda text: MOMENT)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, SourceOptions()),
        ({"STARTINGVERSION": "7"}, SourceOptions(starting_version=7)),
        ({"startingVersion": "Latest"}, SourceOptions(starting_version="latest")),
        ({"startingTimestamp": "2026-01-31 12:00"}, SourceOptions(starting_timestamp_ms=1769860800123)),
        ({"maxFilesPerTrigger": "3", "excludeRegex": "x"}, SourceOptions(max_files_per_trigger=3, exclude_regex="x")),
        ({"maxBytesPerTrigger": "10"}, SourceOptions(max_bytes_per_trigger=10)),
        ({"maxBytesPerTrigger": "10K"}, SourceOptions(max_bytes_per_trigger=10 * 1024)),
        ({"maxBytesPerTrigger": "2gb"}, SourceOptions(max_bytes_per_trigger=2 * 1024**3)),
        ({"maxBytesPerTrigger": "1mib"}, SourceOptions(max_bytes_per_trigger=1024**2)),
        ({"maxBytesPerTrigger": "5b"}, SourceOptions(max_bytes_per_trigger=5)),
        ({"ignoreDeletes": "TRUE", "failOnDataLoss": "false"}, SourceOptions(ignore_deletes=True, fail_on_data_loss=False)),
        ({"readChangeData": "true", "skipChangeCommits": "true"}, SourceOptions(read_change_feed=True, skip_change_commits=True)),
        ({"ignoreChanges": "true", "ignoreFileDeletion": "true"}, SourceOptions(ignore_changes=True, ignore_file_deletion=True)),
        ({"withEventTimeOrder": "false"}, SourceOptions(with_event_time_order=False)),
        ({"WithEventTimeOrder": "True"}, SourceOptions(with_event_time_order=True)),
        (
            {"SchemaLocation": "/at/s", "streamingSourceTrackingId": "x", "allowsourcecolumnrename": "7"},
            SourceOptions(
                schema_tracking_location="/at/s",
                streaming_source_tracking_id="x",
                allowed_changes={"allowSourceColumnRename": "7"},
            ),
        ),
        (
            {"schemaTrackingLocation": "/at/s", "schemaLocation": "/at/s", "allowSourceColumnDrop": "Always"},
            SourceOptions(schema_tracking_location="/at/s", allowed_changes={"allowSourceColumnDrop": "Always"}),
        ),
    ],
    ids=str,
)
def test_options(options: dict[str, str], expected: SourceOptions) -> None:
    assert meant(**options) == expected


@pytest.mark.parametrize("value", ["", "0", "b", "-1", "1.5m", "10x", "1bm", "1 m m"])
def test_invalid_sizes_are_refused(value: str) -> None:
    with pytest.raises(TahoeError) as caught:
        meant(maxBytesPerTrigger=value)
    assert caught.value.code == "DELTA_ILLEGAL_OPTION" and "maxBytesPerTrigger" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"schemaTrackingLocation": "/a", "schemaLocation": "/b"}, "schemaLocation"),
        ({"schemaTrackingLocation": " "}, "schemaTrackingLocation"),
        ({"schemaTrackingLocation": "/a", "allowSourceColumnDrop": "yes"}, "allowSourceColumnDrop"),
        ({"schemaTrackingLocation": "/a", "failOnDataLoss": "false"}, "failOnDataLoss"),
    ],
    ids=str,
)
def test_invalid_schema_tracking_locations_are_refused(options: dict[str, str], named: str) -> None:
    with pytest.raises(TahoeError) as caught:
        meant(**options)
    assert caught.value.code == "DELTA_ILLEGAL_OPTION" and f"'{named}'" in str(caught.value)


def test_options_that_allow_changes_without_tracking_are_reported() -> None:
    reset_warnings()
    with pytest.warns(TahoeWarning, match="It requires schemaTrackingLocation"):
        assert meant(allowSourceColumnDrop="always").schema_tracking_location is None
    reset_warnings()


def test_unknown_options_are_refused_by_name() -> None:
    refused = [option.name for option in STREAM_READER_OPTIONS if option.state is State.REFUSED]
    assert {"endingTimestamp", "endingVersion"} <= set(refused)
    for name in refused:
        with pytest.raises(TahoeError, match=name) as caught:
            meant(**{name: "true"})
        assert caught.value.code == "TAHOE_OPTION_NOT_SUPPORTED"
