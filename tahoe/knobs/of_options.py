"""Options of readers and writers of the reference, one row each."""

from __future__ import annotations

from collections.abc import Mapping

from tahoe.knobs.knob import Knob, State, turned

__all__ = [
    "ALLOWING",
    "READER_OPTIONS",
    "STREAM_READER_OPTIONS",
    "WRITER_OPTIONS",
    "reader_given",
    "stream_reader_given",
    "writer_given",
]

_STREAM = "It is for streams (spark.readStream); a reader of rows has no use for it."
_TRACKING = "It goes with schemaTrackingLocation, by which a stream notes the schemas that it reads with."
_TO_AN_END = "A stream has no end; stop the query, or read a range of the feed with spark.read."
_REPLACING = "Rows are replaced by replaceWhere or by partitions."


def _works(kind: str, *names: str) -> list[Knob]:
    return [Knob(name, State.WORKS, kind=kind) for name in names]


_WRITER, _READER, _STREAM_READER = "writer's option", "reader's option", "stream reader's option"
ALLOWING = ("allowSourceColumnDrop", "allowSourceColumnRename", "allowSourceColumnTypeChange")
"""What of a stream's reader lets it read past changes of the schema, where it tracks that."""
WRITER_OPTIONS: tuple[Knob, ...] = (
    *_works(_WRITER, "path", "mergeSchema", "overwriteSchema", "replaceWhere", "partitionOverwriteMode", "dataChange"),
    *_works(
        _WRITER, "txnAppId", "txnVersion", "userMetadata", "maxRecordsPerFile", "compression", "delta.", "fs.", "dfs.", "parquet."
    ),
    *_works(_WRITER, "optimizeWrite"),
    *(
        Knob(name, State.REFUSED, _REPLACING, _WRITER)
        for name in ("replaceOn", "replaceUsing", "targetAlias", "useNullIntolerantEqualityWithDPO")
    ),
    Knob(
        "writePartitionColumns",
        State.LATER,
        "Partition columns are written into data files only where the table demands it.",
        _WRITER,
    ),
)
"""A name that ends with a point stands for all that begin so."""

READER_OPTIONS: tuple[Knob, ...] = (
    *_works(_READER, "path", "versionAsOf", "timestampAsOf", "readChangeFeed", "readChangeData", "fs.", "dfs.", "parquet."),
    *_works(_READER, "startingVersion", "startingTimestamp", "endingVersion", "endingTimestamp"),
    *(
        Knob(name, State.NOTHING, _STREAM, _READER)
        for name in (
            *("maxFilesPerTrigger", "maxBytesPerTrigger", "excludeRegex", "ignoreFileDeletion", "ignoreChanges", "ignoreDeletes"),
            *("skipChangeCommits", "failOnDataLoss", "schemaTrackingLocation", "schemaLocation", "streamingSourceTrackingId"),
            *("allowSourceColumnDrop", "allowSourceColumnRename", "allowSourceColumnTypeChange", "withEventTimeOrder"),
        )
    ),
    Knob("mergeSchema", State.NOTHING, "A table has one schema, whatever its files hold.", _READER),
)
"""A name that ends with a point stands for all that begin so."""

STREAM_READER_OPTIONS: tuple[Knob, ...] = (
    *_works(_STREAM_READER, "path", "readChangeFeed", "readChangeData", "fs.", "dfs.", "parquet."),
    *_works(_STREAM_READER, "startingVersion", "startingTimestamp", "maxFilesPerTrigger", "maxBytesPerTrigger", "excludeRegex"),
    *_works(_STREAM_READER, "ignoreDeletes", "ignoreChanges", "ignoreFileDeletion", "skipChangeCommits", "failOnDataLoss"),
    *_works(_STREAM_READER, "schemaTrackingLocation", "schemaLocation", "streamingSourceTrackingId", *ALLOWING),
    *_works(_STREAM_READER, "withEventTimeOrder"),
    *(Knob(name, State.REFUSED, _TO_AN_END, _STREAM_READER) for name in ("endingVersion", "endingTimestamp")),
    Knob("mergeSchema", State.NOTHING, "A table has one schema, whatever its files hold.", _STREAM_READER),
)
"""Those of ``spark.readStream``."""

_OF_CHANGES = ("startingversion", "startingtimestamp", "endingversion", "endingtimestamp")
_OF_TRACKING = ("streamingSourceTrackingId", *ALLOWING)
_FEED = ("readchangefeed", "readchangedata")
_WRITERS = {knob.name.lower(): knob for knob in WRITER_OPTIONS}
_READERS = {knob.name.lower(): knob for knob in READER_OPTIONS}
_STREAM_READERS = {knob.name.lower(): knob for knob in STREAM_READER_OPTIONS}


def writer_given(options: Mapping[str, str], *, overwrites: bool) -> None:
    """A writer has these options: tell once of each of the reference's that changes nothing, or refuse it.

    Raises `Unsupported` (``TAHOE_OPTION_NOT_SUPPORTED``).
    """
    for name, value in options.items():
        knob = _WRITERS.get(name.lower())
        if knob is not None:
            turned(knob, value)
        if name.lower() == "replacewhere" and not overwrites:
            turned(Knob("replaceWhere", State.NOTHING, "Only mode 'overwrite' replaces rows; these are added.", _WRITER), value)


def reader_given(options: Mapping[str, str]) -> None:
    """As `writer_given`, for a reader."""
    given = {name.lower(): value for name, value in options.items()}
    reads_changes = any(given.get(name, "").lower() == "true" for name in _FEED)
    for name, value in options.items():
        knob = _READERS.get(name.lower())
        if knob is not None:
            turned(knob, value)
        if name.lower() in _OF_CHANGES and not reads_changes:
            why = "It goes with readChangeFeed; a version of the table is asked for by versionAsOf or timestampAsOf."
            turned(Knob(knob.name if knob else name, State.NOTHING, why, _READER), value)


def stream_reader_given(options: Mapping[str, str]) -> None:
    """As `writer_given`, for the reader of a stream."""
    tracks = not {"schematrackinglocation", "schemalocation"}.isdisjoint(name.lower() for name in options)
    for name, value in options.items():
        knob = _STREAM_READERS.get(name.lower())
        if knob is not None:
            turned(knob, value)
            if knob.name in _OF_TRACKING and not tracks:
                turned(Knob(knob.name, State.NOTHING, _TRACKING, _STREAM_READER), value)
