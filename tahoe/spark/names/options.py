"""Converts reader options, as users spell them, to requests. Pure: nothing is looked up.

Names are case-insensitive. Options of neither Delta nor Tahoe are passed to Hadoop and to the Parquet writer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.schema.widening import WIDENING_MODES
from tahoe.settings.dataframe_options import FEED_RANGE, STREAM_READER_OPTIONS, check_reader_options
from tahoe.settings.warn_once import warn_once
from tahoe.store.location import table_url

AUTO_MERGE = "spark.databricks.delta.schema.autoMerge.enabled"
"""The session setting that enables schema evolution for every write and MERGE."""
AUTOMATIC_WIDENING = "spark.databricks.delta.typeWidening.allowAutomaticWidening"
"""The session setting for `widening_mode`."""

_CHANGE_FEED = ("readchangefeed", "readchangedata")


@dataclass(frozen=True, slots=True)
class ChangeRange:
    """The requested commits of the change data feed (`tahoe.snapshot.changes.Bounds`); timestamps are text that Spark parses."""

    start_version: int | None = None
    end_version: int | None = None
    start_timestamp: str | None = None
    end_timestamp: str | None = None

    def as_options(self) -> dict[str, str]:
        """Return the options of a reader of this range."""
        options = {
            "startingVersion": self.start_version,
            "endingVersion": self.end_version,
            "startingTimestamp": self.start_timestamp,
            "endingTimestamp": self.end_timestamp,
        }
        return {"readChangeFeed": "true", **{name: str(value) for name, value in options.items() if value is not None}}

    def with_versions_first(self) -> ChangeRange:
        """Return the range without the timestamp of a bound that also has a version: in ``load`` of a path, the version takes precedence,
        as in delta-spark.
        """
        start = None if self.start_version is not None else self.start_timestamp
        end = None if self.end_version is not None else self.end_timestamp
        if (start, end) != (self.start_timestamp, self.end_timestamp):
            warn_once(
                "a version and a timestamp of the change data feed",
                "A version and a timestamp are given for one end of the change data feed: the version counts. Leave the timestamp out.",
            )
        return replace(self, start_timestamp=start, end_timestamp=end)


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """The request of a reader: at most one of `version` and `timestamp`; `timestamp` is text that Spark parses.

    Args:
        changes: the requested change data feed; None to read the table.
    """

    path: str
    version: int | None = None
    timestamp: str | None = None
    changes: ChangeRange | None = None
    hadoop: Mapping[str, str] = field(default_factory=dict)


def read_request(path: str, options: Mapping[str, str], has_schema: bool) -> ReadRequest:
    """Return the request of ``spark.read.format("delta")``.

    Raises:
        InvalidRequest: options that exclude each other, invalid numbers, or a schema.
    """
    refuse_schema(has_schema)
    check_reader_options(options)
    lowered = {key.lower(): value for key, value in options.items()}
    version, timestamp = lowered.get("versionasof"), lowered.get("timestampasof")
    if version is not None and timestamp is not None:
        raise InvalidRequest(
            f"Give versionAsOf or timestampAsOf, not both: found '{version}' and '{timestamp}'.", code="DELTA_ONEOF_IN_TIMETRAVEL"
        )
    if any(boolean_option(lowered, name, False) for name in _CHANGE_FEED):
        for name, value in (("versionAsOf", version), ("timestampAsOf", timestamp)):
            if value is not None:
                raise InvalidRequest(
                    f"The option '{name}' = '{value}' does not go with readChangeFeed; use endingVersion or endingTimestamp.",
                    code="DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS",
                    option=name,
                )
        return ReadRequest(path, changes=_change_range(lowered), hadoop=hadoop_options(options))
    number = None if version is None else version_of(version)
    return ReadRequest(path, number, timestamp, hadoop=hadoop_options(options))


def refuse_schema(has_schema: bool) -> None:
    """Raise `InvalidRequest` (``DELTA_UNSUPPORTED_SCHEMA_DURING_READ``) for a reader with a schema."""
    if has_schema:
        raise InvalidRequest(
            "A Delta table has its own schema; leave schema(…) out and select or cast columns instead.",
            code="DELTA_UNSUPPORTED_SCHEMA_DURING_READ",
        )


def version_of(text: str) -> int:
    """Return the version in a text. Raises `InvalidRequest` (``DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE``) for an invalid one."""
    if not (text.isascii() and text.isdecimal()):
        raise InvalidRequest(
            f"The option 'versionAsOf' must be a version, a number of 0 or more, found '{text}'.",
            code="DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE",
            option="versionAsOf",
        )
    return int(text)


def _change_range(lowered: Mapping[str, str]) -> ChangeRange:
    def version(name: str) -> int | None:
        text = lowered.get(name.lower())
        if text is None:
            return None
        if not text.strip().isdecimal():
            raise InvalidRequest(
                f"The option '{name}' must be a version, a number of 0 or more, found '{text}'.",
                code="DELTA_VERSION_INVALID",
                option=name,
            )
        return int(text)

    return ChangeRange(
        version("startingVersion"), version("endingVersion"), lowered.get("startingtimestamp"), lowered.get("endingtimestamp")
    )


def travelling(request: ReadRequest) -> ReadRequest | None:
    """Return the request for a path like ``path@v3`` or ``path@20260131120000000``, if no table has the full path.

    Raises `InvalidRequest` if an option names a version too.
    """
    match = _IN_PATH.fullmatch(request.path)
    if match is None:
        return None
    if request.version is not None or request.timestamp is not None:
        raise InvalidRequest(
            f"The version is given twice, in the path '{request.path}' and in an option; leave one out.",
            code="DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS",
        )
    if match["version"] is not None:
        return replace(request, path=match["path"], version=int(match["version"]))
    digits = match["time"]
    date, clock, fraction = (
        f"{digits[:4]}-{digits[4:6]}-{digits[6:8]}",
        f"{digits[8:10]}:{digits[10:12]}:{digits[12:14]}",
        digits[14:],
    )
    return replace(request, path=match["path"], timestamp=f"{date} {clock}.{fraction}")


_IN_PATH = re.compile(r"(?P<path>.+)@(?:[vV](?P<version>\d+)|(?P<time>\d{17}))", re.DOTALL)


def widening_mode(text: str | None) -> str:
    """Return the types that the session lets schema evolution widen, one of `WIDENING_MODES`; all widenable types by default.

    Raises `InvalidRequest` for another text.
    """
    mode = "ALWAYS" if text is None else text.strip().upper()
    if mode not in WIDENING_MODES:
        raise illegal_option(AUTOMATIC_WIDENING, str(text), f"must be one of {', '.join(WIDENING_MODES)}")
    return mode


def path_option(options: Mapping[str, str]) -> str | None:
    """Return the path in the options."""
    return next((value for key, value in options.items() if key.lower() == "path"), None)


def path_of_client(path: str) -> str:
    """Return a relative path as the URL below this process's working directory, where the client commits; a server has another directory."""
    return path if path.startswith("/") or ":" in path.partition("/")[0] else table_url(path)


def resolve_path_option(options: MutableMapping[str, str]) -> None:
    """Apply `path_of_client` to the path in the options."""
    for key in [key for key in options if key.lower() == "path"]:
        options[key] = path_of_client(options[key])


def milliseconds(timestamp: datetime) -> int:
    """Return a timestamp in milliseconds since the epoch, rounded down as the timestamps of commits."""
    return int(timestamp.timestamp() * 1000)


def boolean_option(options: Mapping[str, str], name: str, default: bool) -> bool:
    """Return an option that is ``true`` or ``false``. Raises `InvalidRequest` (`DELTA_ILLEGAL_OPTION`) for other text.

    Args:
        options: the options, by lower-case names.
    """
    text = options.get(name.lower())
    if text is None:
        return default
    if text.lower() not in ("true", "false"):
        raise illegal_option(name, text, "must be 'true' or 'false'")
    return text.lower() == "true"


def illegal_option(name: str, value: str, rule: str) -> InvalidRequest:
    """Return the error for an invalid value of an option."""
    return InvalidRequest(f"The option '{name}' {rule}, found '{value}'.", code="DELTA_ILLEGAL_OPTION", option=name)


_OURS = frozenset(
    [
        *("path", "versionasof", "timestampasof", *_CHANGE_FEED),
        *map(str.lower, FEED_RANGE),
        *("replacewhere", "mergeschema", "overwriteschema", "partitionoverwritemode", "txnappid", "txnversion", "usermetadata"),
        *("maxrecordsperfile", "datachange", "optimizewrite", "compression"),
        *("replaceon", "replaceusing", "targetalias", "usenullintolerantequalitywithdpo"),
        *(option.name.lower() for option in STREAM_READER_OPTIONS if not option.name.endswith(".")),
    ]
)


_OF_OBJECT_STORES = ("aws_", "azure_", "google_")


def hadoop_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options that are passed to Hadoop and to the Parquet writer.

    Raises `Unsupported` (``TAHOE_OPTION_NOT_SUPPORTED``) for storage options of `tahoe.Table`, which nothing on Spark reads.
    """
    foreign = next((key for key in options if key.lower().startswith(_OF_OBJECT_STORES)), None)
    if foreign is not None:
        raise Unsupported(
            f"The option '{foreign}' is one of tahoe.Table(…, storage_options=…). Readers and writers of Spark take Hadoop's settings, such "
            "as fs.s3a.access.key (docs/storage.md).",
            code="TAHOE_OPTION_NOT_SUPPORTED",
            option=foreign,
        )
    return {key: value for key, value in options.items() if key.lower() not in _OURS and not key.lower().startswith("delta.")}
