"""Operations that are applied once however often they are sent: the table's log records an application id and a version that it increments
(PROTOCOL.md, "Transaction Identifiers"). They come from writer options or from the session's settings, which also apply to UPDATE, DELETE
and MERGE.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

from tahoe.base.exceptions import InvalidRequest
from tahoe.ops.rows.insert import already_written
from tahoe.spark.names.settings import is_on, setting_of, unset_setting
from tahoe.txn.after_commit import logged_after_commit
from tahoe.txn.transaction import Transaction

_APP, _VERSION = "spark.databricks.delta.write.txnAppId", "spark.databricks.delta.write.txnVersion"
_RESETS = f"{_VERSION}.autoReset.enabled"


def application(app: str | None, version: str | None) -> tuple[str, int] | None:
    """Return the checked application id and version; None if neither is set."""
    if (app is None) != (version is None):
        raise InvalidRequest(
            "An idempotent write needs both txnAppId and txnVersion; give both or neither.",
            code="DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS",
        )
    if app is None or version is None:
        return None
    if not (version.isascii() and version.isdecimal()):
        raise InvalidRequest(
            f"The option 'txnVersion' must be a non-negative integer, found '{version}'.",
            code="DELTA_ILLEGAL_OPTION",
            option="txnVersion",
        )
    return app, int(version)


def application_of_session(settings: Mapping[str, str]) -> tuple[str, int] | None:
    """Return the application id and version in the session's settings."""
    return application(settings.get(_APP), settings.get(_VERSION))


def without_application(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the session's settings for an operation that writes no rows, or numbers its commits itself."""
    return {key: text for key, text in settings.items() if key not in (_APP, _VERSION)}


@contextmanager
def applied_once(spark: SparkSession, transaction: Transaction) -> Iterator[bool]:
    """Provide whether a row operation is to be applied: not if the table has already recorded the session's version.

    Args:
        transaction: of the operation; its commit records the version.
    """
    application_version = application(setting_of(spark, _APP), setting_of(spark, _VERSION))
    if application_version is None:
        yield True
        return
    with resetting_version(spark):
        is_new = not already_written(transaction, application_version)
        if is_new:
            transaction.stage_app(*application_version)
        yield is_new


@contextmanager
def resetting_version(spark: SparkSession) -> Iterator[None]:
    """Run an operation, and then unset the version if the session requires it, so that the next operation is not taken for a repetition.

    A failed operation leaves the version set.
    """
    resets = is_on(spark, _RESETS)
    yield
    if resets:
        with logged_after_commit("The operation is done, but the setting %s could not be unset", _VERSION):
            unset_setting(spark, _VERSION)
