"""Requests of ``spark.read.changes`` and of CHANGES clauses, which Spark has since 4.2, as options of a reader of the change data feed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.snapshot.changes import CHANGE_TYPE
from tahoe.spark.jvm.bridge import JavaObject
from tahoe.spark.names.options import boolean_option, illegal_option
from tahoe.spark.names.snapshots import parsed_timestamp, time_of_micros

_VERSIONS = {"startingversion": ("startingBoundInclusive", 1), "endingversion": ("endingBoundInclusive", -1)}
_TIMES = {"startingtimestamp": ("startingBoundInclusive", 1), "endingtimestamp": ("endingBoundInclusive", -1)}
_DEDUPLICATION, _UPDATES = "deduplicationMode", "computeUpdates"
_MODES = ("none", "dropcarryovers")
"""Both mean the same here: a change data feed has no rows that were merely copied."""

_OPTIONS = frozenset(
    (*_VERSIONS, *_TIMES, "startingboundinclusive", "endingboundinclusive", _DEDUPLICATION.lower(), _UPDATES.lower())
)
"""The options that request changes, in lower case."""

_AS_TWO_ROWS = {"update_preimage": "delete", "update_postimage": "insert"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class ChangesRequest:
    """The requested changes.

    Args:
        options: of a reader of the change data feed, with both ends of the range included.
        computes_updates: whether an updated row is a row before the update and a row after it; otherwise it is a deleted and an inserted
            row.
    """

    options: Mapping[str, str]
    computes_updates: bool

    def labelled(self, rows: DataFrame) -> DataFrame:
        """Return the rows of the change data feed with the requested kinds of changes."""
        if self.computes_updates:
            return rows
        kind: Column = rows[CHANGE_TYPE.name]
        for update, part in _AS_TWO_ROWS.items():
            kind = sf.when(rows[CHANGE_TYPE.name] == update, part).otherwise(kind)
        return rows.withColumn(CHANGE_TYPE.name, kind)


def changes_request(spark: SparkSession, options: Mapping[str, str]) -> ChangesRequest:
    """Return the request of options as ``spark.read.changes`` takes them; other options stay.

    Raises:
        InvalidRequest: an invalid value (``DELTA_ILLEGAL_OPTION``), a range without a commit (``DELTA_INVALID_CDC_RANGE``), or a time
            that Spark cannot parse (``DELTA_TIMESTAMP_INVALID``).
        Unsupported: the option ``deduplicationMode`` is ``netChanges`` (``TAHOE_OPTION_NOT_SUPPORTED``).
    """
    lowered = {name.lower(): value for name, value in options.items()}
    _check_deduplication(lowered.get(_DEDUPLICATION.lower(), _MODES[0]))
    requested = {"readChangeFeed": "true"}
    for name, value in options.items():
        key = name.lower()
        if key in _VERSIONS:
            requested[name] = _included_version(name, value, _step(lowered, *_VERSIONS[key]))
        elif key in _TIMES:
            requested[name] = _included_time(parsed_timestamp(spark, value), _step(lowered, *_TIMES[key])).isoformat()
        elif key not in _OPTIONS:
            requested[name] = value
    return ChangesRequest(requested, boolean_option(lowered, _UPDATES, False))


def request_of(spark: SparkSession, context: JavaObject, options: Mapping[str, str]) -> ChangesRequest:
    """Return the request of a ``ChangelogContext``, as Spark resolves it, and of the options of its query. Raises as `changes_request`."""
    return changes_request(spark, {**other_options(options), **_options_of(context)})


def other_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options that do not request changes, such as those for Hadoop."""
    return {name: value for name, value in options.items() if name.lower() not in _OPTIONS}


def _check_deduplication(mode: str) -> None:
    if mode.lower() == "netchanges":
        raise Unsupported(
            f"The option '{_DEDUPLICATION}' = '{mode}' is not supported for Delta tables: the change data feed does not identify rows. Leave "
            "the option out, and keep the last change of each key.",
            code="TAHOE_OPTION_NOT_SUPPORTED",
            option=_DEDUPLICATION,
        )
    if mode.lower() not in _MODES:
        raise illegal_option(_DEDUPLICATION, mode, "must be 'none', 'dropCarryovers' or 'netChanges'")


def _step(lowered: Mapping[str, str], option: str, step: int) -> int:
    """Return the distance from a bound to the first commit of the range: 0 if the bound is a part of the range."""
    return 0 if boolean_option(lowered, option, True) else step


def _included_version(name: str, text: str, step: int) -> str:
    if not step or not text.strip().isdecimal():
        return text  # the reader of the feed checks it
    version = int(text) + step
    if version < 0:
        raise InvalidRequest(
            f"The option '{name}' = '{text}' excludes the first version of a table, so that no commit is left. Request a later end.",
            code="DELTA_INVALID_CDC_RANGE",
            option=name,
        )
    return str(version)


def _included_time(bound: datetime, step: int) -> datetime:
    """Return the bound of a range that includes it. Commits have times in milliseconds."""
    if not step:
        return bound
    milliseconds = (bound - _EPOCH) // _MILLISECOND
    if step < 0 and (bound - _EPOCH) % _MILLISECOND:
        return _EPOCH + milliseconds * _MILLISECOND
    return _EPOCH + (milliseconds + step) * _MILLISECOND


def _options_of(context: JavaObject) -> dict[str, str]:
    """Return the options that a ``ChangelogContext`` means; times name their zone."""
    options = {
        "deduplicationMode": str(context.deduplicationMode().value()),
        "computeUpdates": str(context.computeUpdates()).lower(),
    }
    bounds = context.range()
    kind = str(bounds.getClass().getSimpleName())
    if kind == "UnboundedRange":
        return options
    if kind == "VersionRange":
        ends = {"startingVersion": str(bounds.startingVersion()), "endingVersion": bounds.endingVersion().orElse(None)}
    else:
        last = bounds.endingTimestamp().orElse(None)
        first = time_of_micros(bounds.startingTimestamp()).isoformat()
        ends = {"startingTimestamp": first, "endingTimestamp": None if last is None else time_of_micros(last).isoformat()}
    return {
        **options,
        **{name: str(end) for name, end in ends.items() if end is not None},
        "startingBoundInclusive": str(bounds.startingBoundInclusive()).lower(),
        "endingBoundInclusive": str(bounds.endingBoundInclusive()).lower(),
    }
