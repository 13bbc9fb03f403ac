"""A session's settings, checked when it first accesses a Delta table."""

from __future__ import annotations

from collections.abc import Mapping
from weakref import WeakSet

from pyspark.sql import SparkSession

from tahoe.base.exceptions import InvalidRequest
from tahoe.settings.session_settings import KIND, PREFIX, check_session_settings
from tahoe.settings.setting import Setting, State, check_setting
from tahoe.spark.jvm.bridge import Jvm, is_classic

_LOOKED_AT: WeakSet[SparkSession] = WeakSet()


def settings_of(spark: SparkSession) -> dict[str, str]:
    """Return all settings of the session, as text."""
    if not is_classic(spark):
        return {str(key): str(value) for key, value in spark.conf.getAll.items()}
    return Jvm.of(spark).dictionary(spark._jsparkSession.conf().getAll())


def is_on(spark: SparkSession, name: str, *, usual: bool = False) -> bool:
    """Return whether a session setting is ``true`` (`is_true`).

    Args:
        usual: the default.
    """
    return is_true(name, str(spark.conf.get(name, str(usual))))


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
    f"{PREFIX}changeDataFeed.timestampOutOfRange.enabled": "A process of the Spark Connect server reads the feed.",
    f"{PREFIX}optimizeWrite.binSize": "In a session of Spark Connect, spark.sql.adaptive.advisoryPartitionSizeInBytes is the size.",
    f"{PREFIX}optimizeWrite.maxShufflePartitions": "In a session of Spark Connect, Spark's adaptive execution chooses the number.",
}
"""Settings that have no effect in a session of Spark Connect, and why."""


def _check_on_connect(settings: Mapping[str, str]) -> None:
    for name in settings.keys() & _NOT_ON_CONNECT.keys():
        check_setting(Setting(name, State.NO_EFFECT, _NOT_ON_CONNECT[name], KIND), settings[name])


def assumes_if_exists(spark: SparkSession) -> bool:
    """Return whether DROP CONSTRAINT ignores a missing constraint in this session, as IF EXISTS does."""
    return is_on(spark, "spark.databricks.delta.constraints.assumesDropIfExists.enabled")


def is_case_sensitive(spark: SparkSession) -> bool:
    """Return whether names are case-sensitive in this session."""
    return is_on(spark, "spark.sql.caseSensitive")
