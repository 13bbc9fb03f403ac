"""Resolve the names of clustering columns, and refuse the columns that delta-spark refuses. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tahoe.base.exceptions import InvalidRequest
from tahoe.ops.tables.cluster_by import clustered_by, is_clustered
from tahoe.protocol.clustering import Path, field_chain, named_path
from tahoe.protocol.statistics.collect import indexed_columns
from tahoe.schema.types import DecimalType, PrimitiveType, is_opaque
from tahoe.snapshot.snapshot import Snapshot


def cluster_columns(snapshot: Snapshot, names: Sequence[str], *, need_statistics: bool) -> tuple[Path, ...]:
    """Resolve column names, nested ones as ``a.b``, with the checks of delta-spark in its order.

    Args:
        need_statistics: refuse columns without statistics, by which no file can be skipped.

    Raises:
        InvalidRequest: `DELTA_ZORDERING_ON_PARTITION_COLUMN`, `DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST`,
            `DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS`; a type that has no order.
    """
    config = snapshot.config
    columns = {_checked(snapshot, name): name for name in names}
    without = [name for path, name in columns.items() if path not in _paths_with_statistics(snapshot)]
    if without and need_statistics:
        raise InvalidRequest(
            f"Z-Ordering on [{', '.join(without)}] will be ineffective, because table {config.table} collects no statistics for these "
            "columns. Have delta.dataSkippingStatsColumns or delta.dataSkippingNumIndexedCols cover them, or cluster by others.",
            code="DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS",
            table=config.table,
            columns=without,
        )
    return tuple(columns)


def _paths_with_statistics(snapshot: Snapshot) -> set[Path]:
    """Return the paths of the columns with statistics."""
    config = snapshot.config
    indexed = indexed_columns(snapshot.schema, config.partition_columns, config.metadata.configuration)
    return {tuple(column.name for column in leaf) for leaf in indexed}


def with_statistics(snapshot: Snapshot, names: Sequence[str]) -> list[str]:
    """Return those of the top-level columns that have statistics."""
    return [name for name in names if (name,) in _paths_with_statistics(snapshot)]


def refuse_for_clustered(snapshot: Snapshot, *, where: bool, zorder_by: Sequence[str], is_full: bool) -> None:
    """Refuse OPTIMIZE options that need a clustered table on any other table, and options that a clustered table does not support.

    Args:
        where: whether there is a condition on partitions.
        is_full: whether files clustered by other columns are to be rewritten too.

    Raises:
        InvalidRequest: `DELTA_CLUSTERING_WITH_PARTITION_PREDICATE`, `DELTA_CLUSTERING_WITH_ZORDER_BY`, `DELTA_OPTIMIZE_FULL_NOT_SUPPORTED`.
    """
    table, columns = snapshot.config.table, clustered_by(snapshot)
    if is_full and not columns:
        raise InvalidRequest(
            f"OPTIMIZE FULL is only supported for clustered tables with non-empty clustering columns; table {table} has none. "
            "Leave FULL out.",
            code="DELTA_OPTIMIZE_FULL_NOT_SUPPORTED",
            table=table,
        )
    if not is_clustered(snapshot):
        return
    listing = ", ".join(columns) or "no column (CLUSTER BY NONE)"
    if where:
        raise InvalidRequest(
            f"Table {table} is clustered by {listing}; OPTIMIZE of a clustered table takes no condition. Leave WHERE out.",
            code="DELTA_CLUSTERING_WITH_PARTITION_PREDICATE",
            table=table,
        )
    if zorder_by:
        raise InvalidRequest(
            f"Table {table} is clustered by {listing}; OPTIMIZE of a clustered table takes no ZORDER BY. Leave it out.",
            code="DELTA_CLUSTERING_WITH_ZORDER_BY",
            table=table,
        )


def _checked(snapshot: Snapshot, name: str) -> Path:
    table, columns = snapshot.config.table, snapshot.schema
    parts = named_path(name)
    if parts[0].lower() in {column.lower() for column in snapshot.partition_columns}:
        raise InvalidRequest(
            f"{name} is a partition column. Z-Ordering can only be performed on data columns (table {table}).",
            code="DELTA_ZORDERING_ON_PARTITION_COLUMN",
            table=table,
            column=name,
        )
    fields = field_chain(columns, parts)
    if not fields:
        raise InvalidRequest(
            f"Z-Ordering column {name} does not exist in data schema (table {table}; it has {', '.join(columns.names)}).",
            code="DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST",
            table=table,
            column=name,
        )
    data_type = fields[-1].data_type
    if not isinstance(data_type, PrimitiveType | DecimalType) or data_type == PrimitiveType("void") or is_opaque(data_type):
        raise InvalidRequest(
            f"Rows of table {table} cannot be clustered by column {name}: its type {data_type} has no order. Name another.",
            code="DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED",
            table=table,
            column=name,
        )
    return tuple(column.name for column in fields)
