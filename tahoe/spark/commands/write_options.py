"""Converts writer options, as users spell them, to requests. Pure: nothing is looked up.

Names are case-insensitive. Options of neither Delta nor Tahoe are passed to Hadoop and to the Parquet writer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.ops.rows.insert import WriteOptions
from tahoe.schema.evolve import Storing, can_store
from tahoe.settings.dataframe_options import check_writer_options, warn_of_kept_schema
from tahoe.settings.session_settings import check_session_settings
from tahoe.spark.names.options import AUTOMATIC_WIDENING, boolean_option, hadoop_options, illegal_option, widening_mode
from tahoe.spark.write.idempotent import application, application_of_session
from tahoe.spark.write.writer import FileOptions

_SPARK_MODES = {"Append": "append", "Overwrite": "overwrite", "ErrorIfExists": "error", "Ignore": "ignore"}
_DEFAULTS = "spark.databricks.delta.properties.defaults."
_CONF = "spark.databricks.delta."
_DYNAMIC = "spark.sql.sources.partitionOverwriteMode"
_WITH_DYNAMIC = "DELTA_DYNAMIC_PARTITION_OVERWRITE_INCOMPATIBLE_REPLACE_ON_OR_USING"


@dataclass(frozen=True, slots=True)
class Matching:
    """The rows that an overwrite replaces: those that match a source row. Either `on` or `using` is set.

    Args:
        on: ``replaceOn``, a condition on both sides, in SQL.
        using: ``replaceUsing``, in the user's spelling.
        columns: the names in `using`; both sides have equal values in all of them.
        by_position: whether the source's columns correspond to the table's by position.
    """

    on: str | None = None
    using: str | None = None
    columns: tuple[str, ...] = ()
    by_position: bool = False

    @property
    def option(self) -> str:
        """The name of the option."""
        return "replaceUsing" if self.on is None else "replaceOn"

    @property
    def text(self) -> str:
        """The text of the option."""
        return self.on or self.using or ""


@dataclass(frozen=True, slots=True)
class Insert:
    """The arguments of a write.

    Args:
        mode: ``append``, ``overwrite``, ``error`` (the table must not exist) or ``ignore`` (if it exists, nothing is done).
        options: options for the table; their mode is ``overwrite`` for ``overwrite`` and ``append`` for the others.
        files: options for the data files.
        user_metadata: for commitInfo: the session's when a stream starts, and not that of its later commits; empty for none.
        predicate: the text of ``replaceWhere``, for the history, even if the mode does not replace.
        matching: the rows to replace; None if `options` define them.
        alias: a name for the table in ``replaceWhere`` and ``replaceOn``.
    """

    mode: str
    options: WriteOptions
    files: FileOptions = field(default_factory=FileOptions)
    user_metadata: str = ""
    predicate: str | None = None
    matching: Matching | None = None
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class WriterCall:
    """A call of a DataFrame writer, as the user spelled it.

    Args:
        mode: the name of Spark's ``SaveMode``.
        partition_by: columns; None if not specified.
        cluster_by: the columns of ``clusterBy``; None if it was not called.
        evolves: whether ``withSchemaEvolution()`` was called.
    """

    mode: str
    options: Mapping[str, str] = field(default_factory=dict)
    partition_by: Sequence[str] | None = None
    cluster_by: Sequence[str] | None = None
    evolves: bool = False


def insert_request(
    call: WriterCall,
    settings: Mapping[str, str],
    *,
    same_types: bool = True,
    stores: Storing = can_store,
    replaces_table: bool = False,
) -> Insert:
    """Return the request of ``df.write.format("delta")``.

    Args:
        settings: of the session; writer options take precedence.
        same_types: True for a write by path; delta-spark casts rows written by a table's name (``saveAsTable``, ``writeTo``,
            ``insertInto``).
        stores: decides which types are cast to which, unless they must be the same.
        replaces_table: True for an overwrite by ``saveAsTable``: with ``overwriteSchema`` it replaces the whole table, even if overwrites
            are dynamic.

    Raises:
        InvalidRequest: options that exclude each other, or invalid values.
        Unsupported: options that this version of Tahoe does not support.
    """
    options, partition_by, cluster_by = call.options, call.partition_by, call.cluster_by
    lowered = {key.lower(): value for key, value in options.items()}
    check_writer_options(options, overwrites=call.mode == "Overwrite")
    check_session_settings(settings)
    matching = _matching(lowered, settings, overwrites=call.mode == "Overwrite")
    chosen, replace_where = _SPARK_MODES[call.mode], lowered.get("replacewhere")
    overwrite_schema = sets_schema(call) and chosen == "overwrite" and replace_where is None
    may_merge = call.evolves or boolean_option(lowered, "mergeSchema", _setting(settings, "schema.autoMerge.enabled") == "true")
    if partition_by is None and overwrite_schema:
        partition_by = ()
    write = WriteOptions(
        mode="overwrite" if chosen == "overwrite" else "append",
        partition_by=None if partition_by is None else tuple(partition_by),
        cluster_by=None if cluster_by is None else tuple(cluster_by),
        properties={**_property_defaults(settings), **{k: v for k, v in options.items() if k.lower().startswith("delta.")}},
        merge_schema=may_merge,
        overwrite_schema=overwrite_schema,
        **_replacing(lowered, settings, overwrites=chosen == "overwrite", whole_table=replaces_table and overwrite_schema),
        app=application(lowered.get("txnappid"), lowered.get("txnversion")) or application_of_session(settings),
        data_change=boolean_option(lowered, "dataChange", True),
        same_types=same_types,
        stores=stores,
        automatic_widening=widening_mode(settings.get(AUTOMATIC_WIDENING)),
    )
    user_metadata = lowered.get("usermetadata") or _setting(settings, "commitInfo.userMetadata") or ""
    matched = matching if chosen == "overwrite" else None
    return Insert(chosen, write, _files(options, lowered), user_metadata, replace_where, matched, lowered.get("targetalias"))


def sets_schema(call: WriterCall) -> bool:
    """Whether ``overwriteSchema`` is set. delta-spark then casts nothing, not even the rows of an append by a table's name."""
    return boolean_option({key.lower(): value for key, value in call.options.items()}, "overwriteSchema", False)


def call_of_insert(call: WriterCall) -> WriterCall:
    """Return the call of ``insertInto``, which takes columns by position: it has no partitioning, and keeps the table's schema.

    As in delta-spark, ``overwriteSchema`` has no effect; a warning says so.
    """
    if sets_schema(call):
        warn_of_kept_schema()
    options = {key: value for key, value in call.options.items() if key.lower() != "overwriteschema"}
    return replace(call, options=options, partition_by=None, cluster_by=None)


def refuse_dynamic(settings: Mapping[str, str]) -> None:
    """Raise `InvalidRequest` if the session's overwrites replace whole partitions, which conflicts with ``replaceOn`` and
    ``replaceUsing``.
    """
    if settings.get(_DYNAMIC, "static").lower() == "dynamic":
        raise _excluded(_DYNAMIC, "replaceOn or replaceUsing", _WITH_DYNAMIC)


def refuse_buckets(is_bucketed: bool) -> None:
    """Raise `Unsupported` for ``bucketBy``."""
    if is_bucketed:
        raise Unsupported(
            "bucketBy of a Delta table is not supported; leave it out, or use partitionBy or clusterBy.",
            code="DELTA_OPERATION_NOT_ALLOWED_DETAIL",
        )


def partitioned_by_expression(column: object) -> Unsupported:
    """Return the error for ``partitionedBy(years("d"))``, for instance."""
    return Unsupported(
        f"Partitioning by expressions ({column}) is not supported for Delta tables; use plain columns.",
        code="DELTA_OPERATION_NOT_ALLOWED",
    )


def matching_option(options: Mapping[str, str]) -> str | None:
    """Return the key of ``replaceOn`` or ``replaceUsing`` in the options; None if they have neither."""
    return next((key for key in options if key.lower() in ("replaceon", "replaceusing")), None)


def overwrite_of_matches(text: str) -> Unsupported:
    """Return the error for INSERT OVERWRITE with the option ``replaceOn`` or ``replaceUsing``.

    Args:
        text: of the option.
    """
    return Unsupported(
        f"INSERT OVERWRITE replaces all rows, and not those that match '{text}'. Use df.write.mode('overwrite').insertInto with the option.",
        code="DELTA_OPERATION_NOT_ALLOWED",
    )


def refuse_matching(options: Mapping[str, str]) -> None:
    """Raise `InvalidRequest` for ``replaceOn`` and ``replaceUsing`` in a writer that creates or replaces a whole table."""
    name = matching_option(options)
    if name is not None:
        raise InvalidRequest(
            f"The option {name} is for overwrites of some rows of a table, and create(), replace() and createOrReplace() make a "
            "whole table. Leave it out, or use df.write.mode('overwrite').saveAsTable.",
            code="DELTA_DFV2_CREATE_REPLACE_INCOMPATIBLE_REPLACE_ON_OR_USING",
            option=name,
        )


def _files(options: Mapping[str, str], lowered: Mapping[str, str]) -> FileOptions:
    return FileOptions(
        compression=lowered.get("compression"),
        max_records_per_file=_count(lowered, "maxRecordsPerFile"),
        hadoop=hadoop_options(options),
        optimized=boolean_option(lowered, "optimizeWrite", False) if "optimizewrite" in lowered else None,
    )


def _replacing(lowered: Mapping[str, str], settings: Mapping[str, str], *, overwrites: bool, whole_table: bool) -> dict[str, Any]:
    """Return the arguments of `WriteOptions` that define the replaced rows.

    Args:
        whole_table: whether all rows are replaced, even if overwrites are dynamic.
    """
    where = lowered.get("replacewhere")
    has_condition = where is not None or "replaceon" in lowered or "replaceusing" in lowered
    dynamic = _dynamic(lowered, settings, overwrites and not whole_table, has_condition)
    return {
        # Other modes replace nothing; delta-spark only writes the condition into the history.
        "replace_where": where if overwrites else None,
        "replaces_data": not _is_off(settings, "replaceWhere.dataColumns.enabled"),
        "checks_rows": not _is_off(settings, "replaceWhere.constraintCheck.enabled"),
        "replaces_matches": "replaceon" in lowered or "replaceusing" in lowered,
        "dynamic_partitions": dynamic,
        "keeps_null_partitions": _keeps_null_partitions(lowered, replaces_all=overwrites and not (dynamic or has_condition)),
    }


def _matching(lowered: Mapping[str, str], settings: Mapping[str, str], *, overwrites: bool) -> Matching | None:
    """Return the rows that ``replaceOn`` or ``replaceUsing`` select; None without these options.

    Raises:
        Unsupported: the session does not allow it (``DELTA_OPERATION_NOT_ALLOWED``).
        InvalidRequest: options that exclude each other; an empty name.
    """
    on, using = lowered.get("replaceon"), lowered.get("replaceusing")
    if on is None and using is None:
        return None
    name = "replaceUsing" if on is None else "replaceOn"
    if _is_off(settings, f"{name}.dataframe.writer.enabled"):
        raise Unsupported(
            f"{name} is not allowed in this session: spark.databricks.delta.{name}.dataframe.writer.enabled is false.",
            code="DELTA_OPERATION_NOT_ALLOWED",
            option=name,
        )
    if on is not None and using is not None:
        raise _excluded("replaceOn", "replaceUsing", "DELTA_INCOMPATIBLE_DATAFRAME_OPTIONS")
    if "replacewhere" in lowered:
        raise _excluded("replaceWhere", name, "DELTA_OVERWRITE_BY_FILTER_INCOMPATIBLE_REPLACE_ON_OR_USING")
    if "partitionoverwritemode" in lowered:
        raise _excluded("partitionOverwriteMode", name, _WITH_DYNAMIC)
    if overwrites and boolean_option(lowered, "overwriteSchema", False):
        raise _excluded("overwriteSchema", name, "DELTA_INCOMPATIBLE_DATAFRAME_OPTIONS")
    if not boolean_option(lowered, "dataChange", True):
        raise _excluded("dataChange", name, "DELTA_INCOMPATIBLE_DATAFRAME_OPTIONS")
    if using is None:
        return Matching(on)
    columns = tuple(dict.fromkeys(part.strip() for part in using.split(",")))
    if "" in columns:
        raise illegal_option("replaceUsing", using, "must not have an empty name among its columns")
    return Matching(using=using, columns=columns)


def _excluded(option: str, other: str, code: str) -> InvalidRequest:
    return InvalidRequest(f"The options {option} and {other} exclude each other; use one of the two.", code=code, option=option)


def _keeps_null_partitions(lowered: Mapping[str, str], *, replaces_all: bool) -> bool:
    name = "useNullIntolerantEqualityWithDPO"
    if replaces_all and name.lower() in lowered:
        raise illegal_option(name, lowered[name.lower()], "goes with partitionOverwriteMode 'dynamic' only")
    return boolean_option(lowered, name, False)


def _dynamic(lowered: Mapping[str, str], settings: Mapping[str, str], overwrite: bool, has_condition: bool) -> bool:
    """Return whether the write replaces the partitions of its rows.

    Args:
        has_condition: whether an option selects the replaced rows; it takes precedence over the session's setting.
    """
    text = lowered.get("partitionoverwritemode")
    if text is not None and text.lower() not in ("static", "dynamic"):
        raise illegal_option("partitionOverwriteMode", text, "must be 'static' or 'dynamic'")
    if text is None and has_condition:
        return False
    mode = text or settings.get(_DYNAMIC, "static")
    is_dynamic = overwrite and mode.lower() == "dynamic"
    if is_dynamic and _is_off(settings, "dynamicPartitionOverwrite.enabled"):
        raise Unsupported(
            "Overwrites of the partitions that the rows have are not allowed in this session: "
            "spark.databricks.delta.dynamicPartitionOverwrite.enabled is false.",
            code="DELTA_DYNAMIC_PARTITION_OVERWRITE_DISABLED",
        )
    return is_dynamic


def _count(lowered: Mapping[str, str], name: str) -> int | None:
    text = lowered.get(name.lower())
    if text is None:
        return None
    try:
        count = int(text)
    except ValueError:
        raise illegal_option(name, text, "must be an integer") from None
    # As in Spark, zero or less means no limit.
    return count if count > 0 else None


def _setting(settings: Mapping[str, str], name: str) -> str | None:
    value = settings.get(_CONF + name)
    return None if value is None else str(value)


def _is_off(settings: Mapping[str, str], name: str) -> bool:
    return (_setting(settings, name) or "").strip().lower() == "false"


def _property_defaults(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that the session sets for new tables (``spark.databricks.delta.properties.defaults.…``)."""
    return {f"delta.{key.removeprefix(_DEFAULTS)}": str(value) for key, value in settings.items() if key.startswith(_DEFAULTS)}
