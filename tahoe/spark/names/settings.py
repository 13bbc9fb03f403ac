"""A session's settings, checked when it first accesses a Delta table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from weakref import WeakSet

from pyspark.sql import SparkSession

from tahoe.base.exceptions import InvalidRequest
from tahoe.settings.session_settings import KIND, PREFIX, check_session_settings
from tahoe.settings.setting import Setting, State, check_setting
from tahoe.spark.jvm.bridge import Jvm, is_classic

_LOOKED_AT: WeakSet[SparkSession] = WeakSet()


@dataclass(slots=True)
class _ReadOnce:
    """The settings of a session of Spark Connect during one operation.

    Args:
        values: None until a setting is read.
    """

    spark: SparkSession
    values: dict[str, str] | None = None


_READ_ONCE: ContextVar[_ReadOnce | None] = ContextVar("settings of one operation", default=None)


@contextmanager
def settings_read_once(spark: SparkSession) -> Iterator[None]:
    """Read the settings of a session of Spark Connect at most once in this block: each time is a request to the server."""
    outer = _READ_ONCE.get()
    if is_classic(spark) or (outer is not None and outer.spark is spark):
        yield
        return
    token = _READ_ONCE.set(_ReadOnce(spark))
    try:
        yield
    finally:
        _READ_ONCE.reset(token)


def setting_of(spark: SparkSession, name: str) -> str | None:
    """Return a setting that the session or its builder has; None if there is none, also for one with a default value of Spark."""
    read = _READ_ONCE.get()
    return spark.conf.get(name, None) if read is None or read.spark is not spark else settings_of(spark).get(name)


def settings_named(spark: SparkSession, names: Iterable[str]) -> dict[str, str]:
    """Return the settings with these names, without those that are not set (`setting_of`)."""
    return {name: value for name in names if (value := setting_of(spark, name)) is not None}


def unset_setting(spark: SparkSession, name: str) -> None:
    """Remove a setting from the session."""
    spark.conf.unset(name)
    read = _READ_ONCE.get()
    if read is not None and read.spark is spark and read.values is not None:
        read.values.pop(name, None)


def settings_of(spark: SparkSession) -> dict[str, str]:
    """Return all settings of the session, as text."""
    if not is_classic(spark):
        read = _READ_ONCE.get()
        if read is None or read.spark is not spark:
            return _from_server(spark)
        if read.values is None:
            read.values = _from_server(spark)
        return dict(read.values)
    return Jvm.of(spark).dictionary(spark._jsparkSession.conf().getAll())


def _from_server(spark: SparkSession) -> dict[str, str]:
    return {str(key): str(value) for key, value in spark.conf.getAll.items()}


def is_on(spark: SparkSession, name: str, *, usual: bool = False) -> bool:
    """Return whether a session setting is ``true`` (`is_true`).

    Args:
        usual: the default.
    """
    text = setting_of(spark, name)
    return is_true(name, str(usual) if text is None else text)


def is_true(name: str, text: str) -> bool:
    """Return whether the text of a session setting is ``true``, case-insensitively.

    Raises `InvalidRequest` (``INVALID_CONF_VALUE.TYPE_MISMATCH``) for a setting that is neither ``true`` nor ``false``.
    """
    value = text.strip().lower()
    if value not in ("true", "false"):
        raise InvalidRequest(
            f"The session setting '{name}' must be 'true' or 'false', found '{text}'. Set it again, or unset it.",
            code="INVALID_CONF_VALUE.TYPE_MISMATCH",
            setting=name,
            value=text,
        )
    return value == "true"


def look_at_settings(spark: SparkSession) -> None:
    """Check the session's settings (`check_session_settings`) once per session, because reading them takes Spark some milliseconds.

    Writers of DataFrames need the settings anyway and check them each time.
    """
    if spark not in _LOOKED_AT:
        settings = settings_of(spark)
        check_session_settings(settings)
        if not is_classic(spark):
            _check_on_connect(settings)
        _LOOKED_AT.add(spark)


_NOT_ON_CONNECT = {
    f"{PREFIX}optimizeWrite.binSize": "In a session of Spark Connect, spark.sql.adaptive.advisoryPartitionSizeInBytes is the size.",
    f"{PREFIX}optimizeWrite.maxShufflePartitions": "In a session of Spark Connect, Spark's adaptive execution chooses the number.",
}
"""Settings that have no effect in a session of Spark Connect, and why."""


def _check_on_connect(settings: Mapping[str, str]) -> None:
    for name in settings.keys() & _NOT_ON_CONNECT.keys():
        check_setting(Setting(name, State.NO_EFFECT, _NOT_ON_CONNECT[name], KIND), settings[name])


def user_metadata_of(spark: SparkSession) -> str | None:
    """Return the user metadata that the session sets for its commits, or None."""
    return setting_of(spark, f"{PREFIX}commitInfo.userMetadata")


LATE_RANGES = f"{PREFIX}changeDataFeed.timestampOutOfRange.enabled"
"""The setting that lets a range of the change data feed, and a stream, start or end after the newest commit."""


def assumes_if_exists(spark: SparkSession) -> bool:
    """Return whether DROP CONSTRAINT ignores a missing constraint in this session, as IF EXISTS does."""
    return is_on(spark, "spark.databricks.delta.constraints.assumesDropIfExists.enabled")


def is_case_sensitive(spark: SparkSession) -> bool:
    """Return whether names are case-sensitive in this session."""
    return is_on(spark, "spark.sql.caseSensitive")
