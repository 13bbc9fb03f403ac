"""Options of readers and writers, as their users spell them → requests that say what is meant. Pure: nothing is looked up.

Names are matched without regard to case. What belongs to neither Delta nor Tahoe goes on to Hadoop and to the Parquet writer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tahoe.exceptions import InvalidRequest, Unsupported
from tahoe.ops.rows.insert import WriteOptions
from tahoe.spark.commands.insert import Insert
from tahoe.spark.write.idempotent import application, application_of_session
from tahoe.spark.write.writer import FileOptions

__all__ = ["ChangeRange", "ReadRequest", "insert_request", "read_request", "travelling"]

_SPARK_MODES = {"Append": "append", "Overwrite": "overwrite", "ErrorIfExists": "error", "Ignore": "ignore"}
_NOT_YET = {
    "replaceon": "replaceOn",
    "replaceusing": "replaceUsing",
    "targetalias": "targetAlias",
    "usenullintolerantequalitywithdpo": "useNullIntolerantEqualityWithDPO",
}
_CHANGE_FEED = ("readchangefeed", "readchangedata")
_DEFAULTS = "spark.databricks.delta.properties.defaults."
_CONF = "spark.databricks.delta."


@dataclass(frozen=True, slots=True)
class ChangeRange:
    """Which commits of the change data feed are asked for (`tahoe.snapshot.changes.Bounds`); timestamps are text for Spark to understand."""

    start_version: int | None = None
    end_version: int | None = None
    start_timestamp: str | None = None
    end_timestamp: str | None = None


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """What is asked of a reader: at most one of `version` and `timestamp`; `timestamp` is text for Spark to understand.

    Args:
        changes: the change data feed is asked for, not the table.
    """

    path: str
    version: int | None = None
    timestamp: str | None = None
    changes: ChangeRange | None = None
    hadoop: Mapping[str, str] = field(default_factory=dict)


def read_request(path: str, options: Mapping[str, str], has_schema: bool) -> ReadRequest:
    """The request of ``spark.read.format("delta")``.

    Raises:
        InvalidRequest: options that exclude each other, or are no numbers; a schema.
    """
    if has_schema:
        raise InvalidRequest(
            "A Delta table has its own schema; leave schema(…) out and select or cast columns instead.",
            code="DELTA_UNSUPPORTED_SCHEMA_DURING_READ",
        )
    given = {key.lower(): value for key, value in options.items()}
    version, timestamp = given.get("versionasof"), given.get("timestampasof")
    if version is not None and timestamp is not None:
        raise InvalidRequest(
            "Give versionAsOf or timestampAsOf, not both.", code="DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS"
        )
    if any(_boolean(given, name, False) for name in _CHANGE_FEED):
        for name, value in (("versionAsOf", version), ("timestampAsOf", timestamp)):
            if value is not None:
                raise _illegal(name, value, "does not go with readChangeFeed; use endingVersion or endingTimestamp")
        return ReadRequest(path, changes=_change_range(given), hadoop=_hadoop(options))
    number = None
    if version is not None:
        try:
            number = int(version.strip())
        except ValueError:
            raise _illegal("versionAsOf", version, "must be a version, a number of 0 or more") from None
        if number < 0:
            raise _illegal("versionAsOf", version, "must be a version, a number of 0 or more")
    return ReadRequest(path, number, timestamp, hadoop=_hadoop(options))


def _change_range(given: Mapping[str, str]) -> ChangeRange:
    def version(name: str) -> int | None:
        text = given.get(name.lower())
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
        version("startingVersion"), version("endingVersion"), given.get("startingtimestamp"), given.get("endingtimestamp")
    )


def travelling(request: ReadRequest) -> ReadRequest | None:
    """The request that a path like ``path@v3`` or ``path@20260131120000000`` means where there is no table of that very name.

    Raises `InvalidRequest` where an option names a version too.
    """
    found = _IN_PATH.fullmatch(request.path)
    if found is None:
        return None
    if request.version is not None or request.timestamp is not None:
        raise InvalidRequest(
            f"The version is given twice, in the path '{request.path}' and in an option; leave one out.",
            code="DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS",
        )
    if found["version"] is not None:
        return replace(request, path=found["path"], version=int(found["version"]))
    digits = found["time"]
    date, clock, fraction = (
        f"{digits[:4]}-{digits[4:6]}-{digits[6:8]}",
        f"{digits[8:10]}:{digits[10:12]}:{digits[12:14]}",
        digits[14:],
    )
    return replace(request, path=found["path"], timestamp=f"{date} {clock}.{fraction}")


_IN_PATH = re.compile(r"(?P<path>.+)@(?:[vV](?P<version>\d+)|(?P<time>\d{17}))", re.DOTALL)


def insert_request(
    mode: str,
    partition_by: Sequence[str] | None,
    options: Mapping[str, str],
    settings: Mapping[str, str],
    *,
    merge_schema: bool = False,
) -> Insert:
    """The request of ``df.write.format("delta")``.

    Args:
        mode: the name of Spark's ``SaveMode``.
        settings: of the session; a writer's option wins over them.
        merge_schema: as asked by ``withSchemaEvolution()``.

    Raises:
        InvalidRequest: options that exclude each other or have no such value.
        Unsupported: options that this version of Tahoe does not know how to follow.
    """
    given = {key.lower(): value for key, value in options.items()}
    for key, name in _NOT_YET.items():
        if key in given:
            raise Unsupported(
                f"The writer's option '{name}' is not supported by this version of Tahoe; leave it out.", option=name
            )
    chosen, replace_where = _SPARK_MODES[mode], given.get("replacewhere")
    overwrite_schema = _boolean(given, "overwriteSchema", False) and chosen == "overwrite" and replace_where is None
    may_merge = merge_schema or _boolean(given, "mergeSchema", _setting(settings, "schema.autoMerge.enabled") == "true")
    if partition_by is None and overwrite_schema:
        partition_by = ()
    write = WriteOptions(
        mode="overwrite" if chosen == "overwrite" else "append",
        partition_by=None if partition_by is None else tuple(partition_by),
        properties={**_property_defaults(settings), **{k: v for k, v in options.items() if k.lower().startswith("delta.")}},
        merge_schema=may_merge,
        overwrite_schema=overwrite_schema,
        replace_where=replace_where,
        dynamic_partitions=_dynamic(given, settings, chosen == "overwrite", replace_where),
        app=application(given.get("txnappid"), given.get("txnversion")) or application_of_session(settings),
        data_change=_boolean(given, "dataChange", True),
    )
    files = FileOptions(
        compression=given.get("compression"),
        max_records_per_file=_count(given, "maxRecordsPerFile"),
        hadoop=_hadoop(options),
    )
    return Insert(chosen, write, files, given.get("usermetadata") or _setting(settings, "commitInfo.userMetadata"))


def _dynamic(given: Mapping[str, str], settings: Mapping[str, str], overwrite: bool, replace_where: str | None) -> bool:
    asked = given.get("partitionoverwritemode")
    if asked is not None and asked.lower() not in ("static", "dynamic"):
        raise _illegal("partitionOverwriteMode", asked, "must be 'static' or 'dynamic'")
    if asked is None and replace_where is not None:
        return False
    mode = asked or settings.get("spark.sql.sources.partitionOverwriteMode", "static")
    return overwrite and mode.lower() == "dynamic"


def _count(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name.lower())
    if text is None:
        return None
    try:
        count = int(text)
    except ValueError:
        raise _illegal(name, text, "must be an integer") from None
    # Spark's own meaning: zero or less is no limit.
    return count if count > 0 else None


def _boolean(given: Mapping[str, str], name: str, default: bool) -> bool:
    text = given.get(name.lower())
    if text is None:
        return default
    if text.lower() not in ("true", "false"):
        raise _illegal(name, text, "must be 'true' or 'false'")
    return text.lower() == "true"


def _illegal(name: str, value: str, rule: str) -> InvalidRequest:
    return InvalidRequest(f"The option '{name}' {rule}, found '{value}'.", code="DELTA_ILLEGAL_OPTION", option=name)


def _setting(settings: Mapping[str, str], name: str) -> str | None:
    found = settings.get(_CONF + name)
    return None if found is None else str(found)


def _property_defaults(settings: Mapping[str, str]) -> dict[str, str]:
    """Table properties that the session gives to new tables (``spark.databricks.delta.properties.defaults.…``)."""
    return {f"delta.{key.removeprefix(_DEFAULTS)}": str(value) for key, value in settings.items() if key.startswith(_DEFAULTS)}


_OURS = frozenset(
    [
        *("path", "versionasof", "timestampasof", *_CHANGE_FEED),
        *("startingversion", "endingversion", "startingtimestamp", "endingtimestamp"),
        *("replacewhere", "mergeschema", "overwriteschema", "partitionoverwritemode", "txnappid", "txnversion", "usermetadata"),
        *("maxrecordsperfile", "datachange", "optimizewrite", "compression"),
    ]
)


def _hadoop(options: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in options.items() if key.lower() not in _OURS and not key.lower().startswith("delta.")}
