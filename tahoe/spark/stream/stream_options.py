"""Converts options of ``spark.readStream`` to `SourceOptions`. Pure, except for timestamps, which Spark parses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Literal

from tahoe.base.exceptions import InvalidRequest
from tahoe.settings.dataframe_options import SCHEMA_CHANGE_OPTIONS, check_stream_reader_options
from tahoe.spark.names.options import boolean_option, illegal_option
from tahoe.stream.source_options import SourceOptions

__all__ = ["no_travel", "stream_options"]


def stream_options(options: Mapping[str, str], moment: Callable[[str], datetime]) -> SourceOptions:
    """Parse the options of a stream reader.

    Args:
        moment: parses the text of a timestamp (`tahoe.spark.names.snapshots.moment`).

    Raises:
        InvalidRequest: ``DELTA_ILLEGAL_OPTION``, ``DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET``, ``DELTA_TIMESTAMP_INVALID``, and
            ``DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS`` for the options of a reader of one version.
        Unsupported: ``TAHOE_OPTION_NOT_SUPPORTED``.
    """
    check_stream_reader_options(options)
    given = {key.lower(): value for key, value in options.items()}
    for name in ("versionAsOf", "timestampAsOf"):
        if name.lower() in given:
            raise no_travel(f"the option '{name}'")
    timestamp = given.get("startingtimestamp")
    feeds = [boolean_option(given, name, False) for name in ("readChangeFeed", "readChangeData")]
    return SourceOptions(
        starting_version=_starting_version(given.get("startingversion")),
        starting_timestamp_ms=None if timestamp is None else _milliseconds(moment(timestamp)),
        max_files_per_trigger=_count(given, "maxFilesPerTrigger"),
        max_bytes_per_trigger=_bytes(given, "maxBytesPerTrigger"),
        ignore_deletes=boolean_option(given, "ignoreDeletes", False),
        ignore_changes=boolean_option(given, "ignoreChanges", False),
        ignore_file_deletion=boolean_option(given, "ignoreFileDeletion", False),
        skip_change_commits=boolean_option(given, "skipChangeCommits", False),
        exclude_regex=given.get("excluderegex"),
        fail_on_data_loss=boolean_option(given, "failOnDataLoss", True),
        read_change_feed=any(feeds),
        schema_tracking_location=_tracking_location(given),
        streaming_source_tracking_id=given.get("streamingsourcetrackingid"),
        allowed_changes={name: given[name.lower()].strip() for name in SCHEMA_CHANGE_OPTIONS if name.lower() in given},
        with_event_time_order=boolean_option(given, "withEventTimeOrder", False) if "witheventtimeorder" in given else None,
    )


def no_travel(what: str) -> InvalidRequest:
    """Return the error for a stream of one version of its table."""
    return InvalidRequest(
        f"A stream reads its table from some version on, and not one version of it, as {what} asks for. Say where it shall begin with "
        "'startingVersion' or 'startingTimestamp', or read the version with spark.read.",
        code="DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS",
    )


def _tracking_location(given: Mapping[str, str]) -> str | None:
    found = {name: given[name.lower()] for name in ("schemaTrackingLocation", "schemaLocation") if name.lower() in given}
    if len(set(found.values())) > 1:
        raise illegal_option(
            "schemaLocation", given["schemalocation"], "is another name of 'schemaTrackingLocation': give one of them"
        )
    location = next(iter(found.values()), None)
    if location is not None and not location.strip():
        raise illegal_option(next(iter(found)), location, "must be a folder below the query's checkpoint")
    return location


def _starting_version(text: str | None) -> int | Literal["latest"] | None:
    if text is None:
        return None
    if text.strip().lower() == "latest":
        return "latest"
    if not text.strip().isdecimal():
        raise illegal_option("startingVersion", text, "must be a version, a number of 0 or more, or 'latest'")
    return int(text)


def _count(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name.lower())
    if text is None:
        return None
    if not text.strip().isdecimal() or int(text) < 1:
        raise illegal_option(name, text, "must be a number of files, 1 or more")
    return int(text)


_UNITS: dict[str, int] = {"": 1, "b": 1} | {
    f"{letter}{end}": 1 << (10 * power) for power, letter in enumerate("kmgtp", start=1) for end in ("", "b", "ib")
}


def _bytes(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name.lower())
    if text is None:
        return None
    digits = text.strip().lower().rstrip("kmgtpib")
    factor = _UNITS.get(text.strip().lower()[len(digits) :])
    if not digits.isdecimal() or factor is None or int(digits) < 1:
        raise illegal_option(name, text, "must be a size, 1 byte or more, as '500000' or '512m'")
    return int(digits) * factor


def _milliseconds(moment: datetime) -> int:
    # A commit's timestamp has whole milliseconds.
    return int(moment.timestamp() * 1000)
