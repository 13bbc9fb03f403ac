"""delta-spark's options of DataFrame readers and writers, one row each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tahoe.base.wording import suggestion
from tahoe.settings.setting import Setting, State, check_setting
from tahoe.settings.warn_once import warn_once

_STREAM = "It applies to streams only (spark.readStream)."
_TRACKING = "It requires schemaTrackingLocation, the schema log of a stream."
_TO_AN_END = "A stream has no end: stop the query, or read a range of the change data feed with spark.read."
_REPLACING = ("replaceWhere", "replaceOn", "replaceUsing")
_APPENDED = "Only mode 'overwrite' replaces rows; this write appends."


def _works(kind: str, *names: str) -> list[Setting]:
    return [Setting(name, State.WORKS, kind=kind) for name in names]


_WRITER, _READER, _STREAM_READER = "writer's option", "reader's option", "stream reader's option"
SCHEMA_CHANGE_OPTIONS = ("allowSourceColumnDrop", "allowSourceColumnRename", "allowSourceColumnTypeChange")
"""Options that let a stream with schema tracking read past schema changes."""
WRITER_OPTIONS: tuple[Setting, ...] = (
    *_works(_WRITER, "path", "mergeSchema", "overwriteSchema", "replaceWhere", "partitionOverwriteMode", "dataChange"),
    *_works(
        _WRITER, "txnAppId", "txnVersion", "userMetadata", "maxRecordsPerFile", "compression", "delta.", "fs.", "dfs.", "parquet."
    ),
    *_works(_WRITER, "optimizeWrite", "replaceOn", "replaceUsing", "targetAlias", "useNullIntolerantEqualityWithDPO"),
    Setting(
        "writePartitionColumns",
        State.PLANNED,
        "Partition columns are written into data files only if the table requires it.",
        _WRITER,
    ),
)
"""A name that ends with a dot is a prefix."""

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
    Setting("mergeSchema", State.NO_EFFECT, "A table has one schema, independent of its files.", _READER),
)
"""A name that ends with a dot is a prefix."""

STREAM_READER_OPTIONS: tuple[Setting, ...] = (
    *_works(_STREAM_READER, "path", "readChangeFeed", "readChangeData", "fs.", "dfs.", "parquet."),
    *_works(_STREAM_READER, "startingVersion", "startingTimestamp", "maxFilesPerTrigger", "maxBytesPerTrigger", "excludeRegex"),
    *_works(_STREAM_READER, "ignoreDeletes", "ignoreChanges", "ignoreFileDeletion", "skipChangeCommits", "failOnDataLoss"),
    *_works(_STREAM_READER, "schemaTrackingLocation", "schemaLocation", "streamingSourceTrackingId", *SCHEMA_CHANGE_OPTIONS),
    *_works(_STREAM_READER, "withEventTimeOrder"),
    *(Setting(name, State.REFUSED, _TO_AN_END, _STREAM_READER) for name in ("endingVersion", "endingTimestamp")),
    Setting("mergeSchema", State.NO_EFFECT, "A table has one schema, independent of its files.", _STREAM_READER),
)
"""Options of ``spark.readStream``."""

FEED_RANGE = ("startingVersion", "startingTimestamp", "endingVersion", "endingTimestamp")
"""The options of a reader for the range of the change data feed."""
_TRACKING_OPTIONS = ("streamingSourceTrackingId", *SCHEMA_CHANGE_OPTIONS)
_FEED = ("readchangefeed", "readchangedata")
_WRITERS = {setting.name.lower(): setting for setting in WRITER_OPTIONS}
_READERS = {setting.name.lower(): setting for setting in READER_OPTIONS}
_STREAM_READERS = {setting.name.lower(): setting for setting in STREAM_READER_OPTIONS}


def check_writer_options(options: Mapping[str, str], *, overwrites: bool) -> None:
    """Check a writer's options: warn once about each option of delta-spark without effect, raise for refused ones.

    Raises `Unsupported` (``TAHOE_OPTION_NOT_SUPPORTED``).
    """
    for name, value in options.items():
        setting = _known(name, value, WRITER_OPTIONS, _WRITERS)
        if setting is not None and setting.name in _REPLACING and not overwrites:
            check_setting(Setting(setting.name, State.NO_EFFECT, _APPENDED, _WRITER), value)


def warn_of_kept_schema() -> None:
    """Warn once that ``overwriteSchema`` has no effect on ``insertInto``."""
    why = "insertInto keeps the schema of the table; use saveAsTable to replace it."
    check_setting(Setting("overwriteSchema", State.NO_EFFECT, why, _WRITER), "true")


def check_reader_options(options: Mapping[str, str]) -> None:
    """Check a reader's options; see `check_writer_options`."""
    for name, value in options.items():
        _known(name, value, READER_OPTIONS, _READERS)


def warn_of_range_without_feed(options: Mapping[str, str]) -> None:
    """Warn of the options for the range of a change data feed if none is read. A stream reads by some of them without a feed too."""
    lowered = {name.lower(): value for name, value in options.items()}
    if any(lowered.get(name, "").lower() == "true" for name in _FEED):
        return
    for name in FEED_RANGE:
        if name.lower() in lowered:
            why = "It requires readChangeFeed; use versionAsOf or timestampAsOf to read a version of the table."
            check_setting(Setting(name, State.NO_EFFECT, why, _READER), lowered[name.lower()])


def check_stream_reader_options(options: Mapping[str, str]) -> None:
    """Check a stream reader's options; see `check_writer_options`."""
    tracks = not {"schematrackinglocation", "schemalocation"}.isdisjoint(name.lower() for name in options)
    for name, value in options.items():
        setting = _known(name, value, STREAM_READER_OPTIONS, _STREAM_READERS)
        if setting is not None and setting.name in _TRACKING_OPTIONS and not tracks:
            check_setting(Setting(setting.name, State.NO_EFFECT, _TRACKING, _STREAM_READER), value)


def _known(name: str, value: str, all_of_kind: Sequence[Setting], by_name: Mapping[str, Setting]) -> Setting | None:
    """Return the setting of an option after its check. Of an option that is none, but resembles one, warn once: Spark ignores it."""
    setting = by_name.get(name.lower())
    if setting is not None:
        check_setting(setting, value)
    elif "." not in name:
        similar = suggestion(name, (setting.name for setting in all_of_kind), _MISSPELLED)
        kind = all_of_kind[0].kind
        if similar:
            warn_once(f"{kind} {name.lower()}", f"There is no {kind} '{name}', so it is not followed.{similar}")
    return setting


_MISSPELLED = 0.85
"""The similarity of a misspelled name; options of other formats that share a word with one of Delta's are less similar."""
