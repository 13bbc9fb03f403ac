"""Operations that happen once however often they are sent: an application's name and a number that it counts up, kept in the table's log
(PROTOCOL.md, "Transaction Identifiers"). A writer's options give them, or the session's settings, which hold for UPDATE, DELETE and MERGE
too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

from tahoe.exceptions import InvalidRequest
from tahoe.ops.rows.insert import already_written
from tahoe.ops.rows.row_changes import RowsChanged
from tahoe.spark.names.settings import is_on
from tahoe.txn.after_commit import logged_after_commit
from tahoe.txn.transaction import Transaction

__all__ = ["application", "application_of_session", "once", "resetting_version"]

_APP, _VERSION = "spark.databricks.delta.write.txnAppId", "spark.databricks.delta.write.txnVersion"
_RESETS = f"{_VERSION}.autoReset.enabled"


def application(app: str | None, version: str | None) -> tuple[str, int] | None:
    """What was given, checked; None where nothing was."""
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
    """What the session's settings say."""
    return application(settings.get(_APP), settings.get(_VERSION))


def once(spark: SparkSession, transaction: Transaction, run: Callable[[], RowsChanged]) -> RowsChanged:
    """Run an operation on rows, unless the table has the session's number of it already: then nothing is done.

    Args:
        transaction: of the operation; the number goes with its commit.
        run: stages and commits.
    """
    asked = application(spark.conf.get(_APP, None), spark.conf.get(_VERSION, None))
    if asked is None:
        return run()
    with resetting_version(spark):
        if already_written(transaction, asked):
            return RowsChanged(None, 0, 0, 0, {})
        transaction.stage_app(*asked)
        return run()


@contextmanager
def resetting_version(spark: SparkSession) -> Iterator[None]:
    """Run an operation, and then forget the number, where the session asks for that, so that the next operation is not taken for the same.
    An operation that fails leaves it.
    """
    resets = is_on(spark, _RESETS)
    yield
    if resets:
        with logged_after_commit("The operation is done, but the setting %s could not be unset", _VERSION):
            spark.conf.unset(_VERSION)
