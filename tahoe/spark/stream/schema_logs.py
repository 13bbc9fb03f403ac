"""Applies Spark's options and settings to the schema log of a stream (`tahoe.stream.schema_log`).

The log is read twice: by ``spark.readStream``, which needs the columns of a DataFrame, and by each query that starts, which knows its
checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.jvm.storage import table_at
from tahoe.spark.names.settings import is_on, settings_of
from tahoe.store.location import table_url
from tahoe.stream.schema_log import SchemaLog, log_folder
from tahoe.stream.schema_tracking import SchemaTracking, check_log, check_log_table, combine_upcoming_changes, read_with
from tahoe.stream.source_options import SourceOptions
from tahoe.stream.tracked_changes import SETTINGS, AllowedChanges

_ANYWHERE = f"{SETTINGS}allowSchemaLocationOutsideCheckpointLocation"
_MERGES = f"{SETTINGS}schemaTracking.mergeConsecutiveSchemaChanges.enabled"
_CHECKS_PATH = f"{SETTINGS}schemaTracking.metadataPathCheck.enabled"


def read_for_columns(spark: SparkSession, snapshot: Snapshot, options: SourceOptions, hadoop: Mapping[str, str]) -> Snapshot:
    """Return the table as a stream that starts now reads it, for the columns of its DataFrame.

    Consecutive metadata changes without rows in between are merged into one, which is written to the log.

    Args:
        hadoop: reader options for Hadoop (``fs.…``).

    Raises: the errors of `tahoe.stream.schema_log.SchemaLog` and `tahoe.stream.schema_tracking.check_log_table`.
    """
    if options.schema_tracking_location is None:
        return snapshot
    log = _log(spark, snapshot, options, hadoop)
    check_log_table(log, snapshot.config)
    if log.current is not None and is_on(spark, _MERGES, usual=True):
        ahead = combine_upcoming_changes(snapshot.store, log.current)
        if ahead is not None:
            log.add(ahead, replaces=True)
    return read_with(snapshot, log.current)


def tracking_of(
    spark: SparkSession, snapshot: Snapshot, options: SourceOptions, hadoop: Mapping[str, str], source_path: str
) -> SchemaTracking | None:
    """Return the schema tracking of a starting query; None without a schema log.

    Args:
        source_path: the query's folder for the source, ``<checkpoint>/sources/<source>``.

    Raises: the errors of `read_for_columns`, `check_below_checkpoint` and `tahoe.stream.schema_tracking.check_log`.
    """
    location = options.schema_tracking_location
    if location is None:
        return None
    if not is_on(spark, _ANYWHERE):
        check_below_checkpoint(location, source_path, snapshot.store.url)
    log = _log(spark, snapshot, options, hadoop)
    allowed = AllowedChanges(options.allowed_changes, settings_of(spark))
    check_log(log, snapshot.config, source_path, allowed, checks_path=is_on(spark, _CHECKS_PATH, usual=True))
    return SchemaTracking(log, source_path)


def check_below_checkpoint(location: str, source_path: str, table: str) -> None:
    """Raise `InvalidRequest` (``DELTA_STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT``) if a schema log would outlive its checkpoint.

    Args:
        table: the URL of the source table, for the message.
    """
    checkpoint = source_path.rpartition("/sources/")[0]
    try:
        inside = f"{table_url(location)}/".startswith(f"{table_url(checkpoint)}/")
    except (InvalidRequest, Unsupported):
        inside = False  # a location without a supported store is not below one with a store
    if not inside:
        raise InvalidRequest(
            f"The option 'schemaTrackingLocation' of a stream of table {table} is {location}, and must be a folder below the query's "
            f"checkpoint {checkpoint}, so that both are kept and deleted together.",
            code="DELTA_STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT",
            table=table,
        )


def _log(spark: SparkSession, snapshot: Snapshot, options: SourceOptions, hadoop: Mapping[str, str]) -> SchemaLog:
    assert options.schema_tracking_location is not None
    folder = log_folder(options.schema_tracking_location, snapshot.metadata.id, options.streaming_source_tracking_id)
    return SchemaLog(table_at(spark, folder, hadoop).store, snapshot.store.url)
