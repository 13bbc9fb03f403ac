"""Converts options of ``spark.readStream`` to `SourceOptions`. Pure, except for timestamps, which Spark parses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Literal

from tahoe.base.exceptions import InvalidRequest
from tahoe.settings.dataframe_options import SCHEMA_CHANGE_OPTIONS, check_stream_reader_options
from tahoe.settings.session_settings import PREFIX
from tahoe.spark.names.options import boolean_option, illegal_option, milliseconds
from tahoe.stream.source_options import IgnoredChanges, SourceOptions

_UNSAFE = f"{PREFIX}streaming.unsafeReadOn"
IGNORED_CHANGES = {
    "column_mapping": f"{_UNSAFE}IncompatibleColumnMappingSchemaChanges.enabled",
    "partition_columns": f"{_UNSAFE}PartitionColumnChanges.enabled",
    "nullability": f"{_UNSAFE}NullabilityChange.enabled",
    "before_start": f"{_UNSAFE}IncompatibleSchemaChangesDuringStreamStart.enabled",
}
"""The session's setting for each field of `IgnoredChanges`."""


def stream_options(
    options: Mapping[str, str], moment: Callable[[str], datetime], *, may_start_late: bool = False
) -> SourceOptions:
    """Parse the options of a stream reader.

    Args:
        moment: parses the text of a timestamp (`tahoe.spark.names.snapshots.parsed_timestamp`).
        may_start_late: the session's setting (`tahoe.spark.names.settings.LATE_RANGES`).

    Raises:
        InvalidRequest: ``DELTA_ILLEGAL_OPTION``, ``DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET``, ``DELTA_TIMESTAMP_INVALID``, and
            ``DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS`` for the options of a reader of one version.
        Unsupported: ``TAHOE_OPTION_NOT_SUPPORTED``.
    """
    check_stream_reader_options(options)
    by_name = {key.lower(): value for key, value in options.items()}
    for name in ("versionAsOf", "timestampAsOf"):
        if name.lower() in by_name:
            raise time_travel_error(f"the option '{name}'")
    timestamp = by_name.get("startingtimestamp")
    feeds = [boolean_option(by_name, name, False) for name in ("readChangeFeed", "readChangeData")]
    return SourceOptions(
        starting_version=_starting_version(by_name.get("startingversion")),
        starting_timestamp_ms=None if timestamp is None else milliseconds(moment(timestamp)),
        max_files_per_trigger=_count(by_name, "maxFilesPerTrigger"),
        max_bytes_per_trigger=_bytes(by_name, "maxBytesPerTrigger"),
        ignore_deletes=boolean_option(by_name, "ignoreDeletes", False),
        ignore_changes=boolean_option(by_name, "ignoreChanges", False),
        ignore_file_deletion=boolean_option(by_name, "ignoreFileDeletion", False),
        skip_change_commits=boolean_option(by_name, "skipChangeCommits", False),
        exclude_regex=by_name.get("excluderegex"),
        fail_on_data_loss=boolean_option(by_name, "failOnDataLoss", True),
        read_change_feed=any(feeds),
        schema_tracking_location=_tracking_location(by_name),
        streaming_source_tracking_id=by_name.get("streamingsourcetrackingid"),
        allowed_changes={name: by_name[name.lower()].strip() for name in SCHEMA_CHANGE_OPTIONS if name.lower() in by_name},
        with_event_time_order=boolean_option(by_name, "withEventTimeOrder", False) if "witheventtimeorder" in by_name else None,
        may_start_late=may_start_late,
    )


def with_ignored_changes(options: SourceOptions, is_on: Callable[[str], bool]) -> SourceOptions:
    """Return the options with the schema changes that the session lets its streams ignore.

    A stream that ignores renamed and dropped columns needs no schema log, and writes none.

    Args:
        is_on: returns whether a setting of the session is true.
    """
    ignored = IgnoredChanges(**{change: is_on(name) for change, name in IGNORED_CHANGES.items()})
    location = None if ignored.column_mapping else options.schema_tracking_location
    return replace(options, ignored_changes=ignored, schema_tracking_location=location)


def time_travel_error(request: str) -> InvalidRequest:
    """Return the error for a stream of one version of its table."""
    return InvalidRequest(
        f"A stream reads its table from some version on, and not one version of it, as {request} asks for. Say where it shall begin with "
        "'startingVersion' or 'startingTimestamp', or read the version with spark.read.",
        code="DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS",
    )


def _tracking_location(by_name: Mapping[str, str]) -> str | None:
    locations = {name: by_name[name.lower()] for name in ("schemaTrackingLocation", "schemaLocation") if name.lower() in by_name}
    if len(set(locations.values())) > 1:
        raise illegal_option(
            "schemaLocation", by_name["schemalocation"], "is another name of 'schemaTrackingLocation': give one of them"
        )
    location = next(iter(locations.values()), None)
    if location is not None and not location.strip():
        raise illegal_option(next(iter(locations)), location, "must be a folder below the query's checkpoint")
    return location


def _starting_version(text: str | None) -> int | Literal["latest"] | None:
    if text is None:
        return None
    if text.strip().lower() == "latest":
        return "latest"
    if not text.strip().isdecimal():
        raise illegal_option("startingVersion", text, "must be a version, a number of 0 or more, or 'latest'")
    return int(text)


def _count(by_name: Mapping[str, str], name: str) -> int | None:
    text = by_name.get(name.lower())
    if text is None:
        return None
    if not text.strip().isdecimal() or int(text) < 1:
        raise illegal_option(name, text, "must be a number of files, 1 or more")
    return int(text)


_UNITS: dict[str, int] = {"": 1, "b": 1} | {
    f"{letter}{end}": 1 << (10 * power) for power, letter in enumerate("kmgtp", start=1) for end in ("", "b", "ib")
}


def _bytes(by_name: Mapping[str, str], name: str) -> int | None:
    text = by_name.get(name.lower())
    if text is None:
        return None
    digits = text.strip().lower().rstrip("kmgtpib")
    factor = _UNITS.get(text.strip().lower()[len(digits) :])
    if not digits.isdecimal() or factor is None or int(digits) < 1:
        raise illegal_option(name, text, "must be a size, 1 byte or more, as '500000' or '512m'")
    return int(digits) * factor
