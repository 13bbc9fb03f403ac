"""Options of readers and writers of the reference, one row each."""

from __future__ import annotations

from collections.abc import Mapping

from tahoe.settings.setting import Setting, State, check_setting

__all__ = [
    "SCHEMA_CHANGE_OPTIONS",
    "READER_OPTIONS",
    "STREAM_READER_OPTIONS",
    "WRITER_OPTIONS",
    "check_reader_options",
    "check_stream_reader_options",
    "check_writer_options",
]

_STREAM = "It is for streams (spark.readStream); a reader of rows has no use for it."
_TRACKING = "It goes with schemaTrackingLocation, by which a stream notes the schemas that it reads with."
_TO_AN_END = "A stream has no end; stop the query, or read a range of the feed with spark.read."
_REPLACING = "Rows are replaced by replaceWhere or by partitions."


def _works(kind: str, *names: str) -> list[Setting]:
    return [Setting(name, State.WORKS, kind=kind) for name in names]


_WRITER, _READER, _STREAM_READER = "writer's option", "reader's option", "stream reader's option"
SCHEMA_CHANGE_OPTIONS = ("allowSourceColumnDrop", "allowSourceColumnRename", "allowSourceColumnTypeChange")
"""What of a stream's reader lets it read past changes of the schema, where it tracks that."""
WRITER_OPTIONS: tuple[Setting, ...] = (
    *_works(_WRITER, "path", "mergeSchema", "overwriteSchema", "replaceWhere", "partitionOverwriteMode", "dataChange"),
    *_works(
        _WRITER, "txnAppId", "txnVersion", "userMetadata", "maxRecordsPerFile", "compression", "delta.", "fs.", "dfs.", "parquet."
    ),
    *_works(_WRITER, "optimizeWrite"),
    *(
        Setting(name, State.REFUSED, _REPLACING, _WRITER)
        for name in ("replaceOn", "replaceUsing", "targetAlias", "useNullIntolerantEqualityWithDPO")
    ),
    Setting(
        "writePartitionColumns",
        State.PLANNED,
        "Partition columns are written into data files only where the table demands it.",
        _WRITER,
    ),
)
"""A name that ends with a point stands for all that begin so."""

READER_OPTIONS: tuple[Setting, ...] = (
    *_works(_READER, "path", "versionAsOf", "timestampAsOf", "readChangeFeed", "readChangeData", "fs.", "dfs.", "parquet."),
    *_works(_READER, "startingVersion", "startingTimestamp", "endingVersion", "endingTimestamp"),
    *(
        Setting(name, State.NO_EFFECT, _STREAM, _READER)
        for name in (
            *("maxFilesPerTrigger", "maxBytesPerTrigger", "excludeRegex", "ignoreFileDeletion", "ignoreChanges", "ignoreDeletes"),
            *("skipChangeCommits", "failOnDataLoss", "schemaTrackingLocation", "schemaLocation", "streamingSourceTrackingId"),
            *("allowSourceColumnDrop", "allowSourceColumnRename", "allowSourceColumnTypeChange", "withEventTimeOrder"),
        )
    ),
    Setting("mergeSchema", State.NO_EFFECT, "A table has one schema, whatever its files hold.", _READER),
)
"""A name that ends with a point stands for all that begin so."""

STREAM_READER_OPTIONS: tuple[Setting, ...] = (
    *_works(_STREAM_READER, "path", "readChangeFeed", "readChangeData", "fs.", "dfs.", "parquet."),
    *_works(_STREAM_READER, "startingVersion", "startingTimestamp", "maxFilesPerTrigger", "maxBytesPerTrigger", "excludeRegex"),
    *_works(_STREAM_READER, "ignoreDeletes", "ignoreChanges", "ignoreFileDeletion", "skipChangeCommits", "failOnDataLoss"),
    *_works(_STREAM_READER, "schemaTrackingLocation", "schemaLocation", "streamingSourceTrackingId", *SCHEMA_CHANGE_OPTIONS),
    *_works(_STREAM_READER, "withEventTimeOrder"),
    *(Setting(name, State.REFUSED, _TO_AN_END, _STREAM_READER) for name in ("endingVersion", "endingTimestamp")),
    Setting("mergeSchema", State.NO_EFFECT, "A table has one schema, whatever its files hold.", _STREAM_READER),
)
"""Those of ``spark.readStream``."""

_OF_CHANGES = ("startingversion", "startingtimestamp", "endingversion", "endingtimestamp")
_OF_TRACKING = ("streamingSourceTrackingId", *SCHEMA_CHANGE_OPTIONS)
_FEED = ("readchangefeed", "readchangedata")
_WRITERS = {setting.name.lower(): setting for setting in WRITER_OPTIONS}
_READERS = {setting.name.lower(): setting for setting in READER_OPTIONS}
_STREAM_READERS = {setting.name.lower(): setting for setting in STREAM_READER_OPTIONS}


def check_writer_options(options: Mapping[str, str], *, overwrites: bool) -> None:
    """A writer has these options: tell once of each of the reference's that changes nothing, or refuse it.

    Raises `Unsupported` (``TAHOE_OPTION_NOT_SUPPORTED``).
    """
    for name, value in options.items():
        setting = _WRITERS.get(name.lower())
        if setting is not None:
            check_setting(setting, value)
        if name.lower() == "replacewhere" and not overwrites:
            check_setting(
                Setting("replaceWhere", State.NO_EFFECT, "Only mode 'overwrite' replaces rows; these are added.", _WRITER), value
            )


def check_reader_options(options: Mapping[str, str]) -> None:
    """As `check_writer_options`, for a reader."""
    given = {name.lower(): value for name, value in options.items()}
    reads_changes = any(given.get(name, "").lower() == "true" for name in _FEED)
    for name, value in options.items():
        setting = _READERS.get(name.lower())
        if setting is not None:
            check_setting(setting, value)
        if name.lower() in _OF_CHANGES and not reads_changes:
            why = "It goes with readChangeFeed; a version of the table is asked for by versionAsOf or timestampAsOf."
            check_setting(Setting(setting.name if setting else name, State.NO_EFFECT, why, _READER), value)


def check_stream_reader_options(options: Mapping[str, str]) -> None:
    """As `check_writer_options`, for the reader of a stream."""
    tracks = not {"schematrackinglocation", "schemalocation"}.isdisjoint(name.lower() for name in options)
    for name, value in options.items():
        setting = _STREAM_READERS.get(name.lower())
        if setting is not None:
            check_setting(setting, value)
            if setting.name in _OF_TRACKING and not tracks:
                check_setting(Setting(setting.name, State.NO_EFFECT, _TRACKING, _STREAM_READER), value)
