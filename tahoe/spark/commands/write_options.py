"""Options of writers, as their users spell them → requests that say what is meant. Pure: nothing is looked up.

Names are matched without regard to case. What belongs to neither Delta nor Tahoe goes on to Hadoop and to the Parquet writer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tahoe.ops.rows.insert import WriteOptions
from tahoe.schema.evolve import Storing, can_store
from tahoe.settings.dataframe_options import check_writer_options
from tahoe.settings.session_settings import check_session_settings
from tahoe.spark.names.options import AUTOMATIC_WIDENING, boolean_option, hadoop_options, illegal_option, widening_mode
from tahoe.spark.write.idempotent import application, application_of_session
from tahoe.spark.write.writer import FileOptions

__all__ = ["Insert", "insert_request"]

_SPARK_MODES = {"Append": "append", "Overwrite": "overwrite", "ErrorIfExists": "error", "Ignore": "ignore"}
_DEFAULTS = "spark.databricks.delta.properties.defaults."
_CONF = "spark.databricks.delta."


@dataclass(frozen=True, slots=True)
class Insert:
    """What is asked of a write.

    Args:
        mode: ``append``, ``overwrite``, ``error`` (the table must not be there) or ``ignore`` (if it is there, nothing is done).
        options: of the rows' way into the table; their mode is ``overwrite`` for ``overwrite`` and ``append`` for the others.
        files: of the data files.
        user_metadata: for commitInfo.
        predicate: the text of ``replaceWhere``, for the history, also where the mode does not replace.
    """

    mode: str
    options: WriteOptions
    files: FileOptions = field(default_factory=FileOptions)
    user_metadata: str | None = None
    predicate: str | None = None


def insert_request(
    mode: str,
    partition_by: Sequence[str] | None,
    options: Mapping[str, str],
    settings: Mapping[str, str],
    *,
    cluster_by: Sequence[str] | None = None,
    merge_schema: bool = False,
    same_types: bool = True,
    stores: Storing = can_store,
) -> Insert:
    """The request of ``df.write.format("delta")``.

    Args:
        mode: the name of Spark's ``SaveMode``.
        cluster_by: as asked by ``clusterBy``; None where it was not.
        settings: of the session; a writer's option wins over them.
        merge_schema: as asked by ``withSchemaEvolution()``.
        same_types: of a write by path; the reference casts what is written by a table's name (``saveAsTable``, ``writeTo``, ``insertInto``).
        stores: which types are cast to which, where they need not be the same.

    Raises:
        InvalidRequest: options that exclude each other or have no such value.
        Unsupported: options that this version of Tahoe does not know how to follow.
    """
    given = {key.lower(): value for key, value in options.items()}
    check_writer_options(options, overwrites=mode == "Overwrite")
    check_session_settings(settings)
    chosen, replace_where = _SPARK_MODES[mode], given.get("replacewhere")
    overwrite_schema = boolean_option(given, "overwriteSchema", False) and chosen == "overwrite" and replace_where is None
    may_merge = merge_schema or boolean_option(given, "mergeSchema", _setting(settings, "schema.autoMerge.enabled") == "true")
    if partition_by is None and overwrite_schema:
        partition_by = ()
    write = WriteOptions(
        mode="overwrite" if chosen == "overwrite" else "append",
        partition_by=None if partition_by is None else tuple(partition_by),
        cluster_by=None if cluster_by is None else tuple(cluster_by),
        properties={**_property_defaults(settings), **{k: v for k, v in options.items() if k.lower().startswith("delta.")}},
        merge_schema=may_merge,
        overwrite_schema=overwrite_schema,
        # Any other mode replaces nothing; the reference writes the condition into the history, and does no more with it.
        replace_where=replace_where if chosen == "overwrite" else None,
        dynamic_partitions=_dynamic(given, settings, chosen == "overwrite", replace_where),
        app=application(given.get("txnappid"), given.get("txnversion")) or application_of_session(settings),
        data_change=boolean_option(given, "dataChange", True),
        same_types=same_types,
        stores=stores,
        automatic_widening=widening_mode(settings.get(AUTOMATIC_WIDENING)),
    )
    files = FileOptions(
        compression=given.get("compression"),
        max_records_per_file=_count(given, "maxRecordsPerFile"),
        hadoop=hadoop_options(options),
        optimized=boolean_option(given, "optimizeWrite", False) if "optimizewrite" in given else None,
    )
    user_metadata = given.get("usermetadata") or _setting(settings, "commitInfo.userMetadata")
    return Insert(chosen, write, files, user_metadata, replace_where)


def _dynamic(given: Mapping[str, str], settings: Mapping[str, str], overwrite: bool, replace_where: str | None) -> bool:
    asked = given.get("partitionoverwritemode")
    if asked is not None and asked.lower() not in ("static", "dynamic"):
        raise illegal_option("partitionOverwriteMode", asked, "must be 'static' or 'dynamic'")
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
        raise illegal_option(name, text, "must be an integer") from None
    # Spark's own meaning: zero or less is no limit.
    return count if count > 0 else None


def _setting(settings: Mapping[str, str], name: str) -> str | None:
    value = settings.get(_CONF + name)
    return None if value is None else str(value)


def _property_defaults(settings: Mapping[str, str]) -> dict[str, str]:
    """Table properties that the session gives to new tables (``spark.databricks.delta.properties.defaults.…``)."""
    return {f"delta.{key.removeprefix(_DEFAULTS)}": str(value) for key, value in settings.items() if key.startswith(_DEFAULTS)}
