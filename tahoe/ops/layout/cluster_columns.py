"""The columns that rows are to be clustered by: what their names mean, and which the reference refuses. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TypeAlias

from tahoe.exceptions import InvalidRequest, Unsupported
from tahoe.protocol.statistics.collect import indexed_columns, multipart_names
from tahoe.schema.types import DataType, DecimalType, PrimitiveType, StructField, StructType
from tahoe.snapshot.snapshot import Snapshot

__all__ = ["Path", "cluster_columns", "refuse_clustered"]

Path: TypeAlias = tuple[str, ...]
"""The names of a column and of the structs around it, from the top down, in the schema's own spelling."""


def cluster_columns(snapshot: Snapshot, names: Sequence[str], *, need_statistics: bool) -> tuple[Path, ...]:
    """The columns of these names, nested ones as ``a.b``, checked in the reference's order.

    Args:
        need_statistics: refuse columns without statistics, for which no file can be skipped.

    Raises:
        InvalidRequest: `DELTA_ZORDERING_ON_PARTITION_COLUMN`, `DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST`,
            `DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS`; a type that has no order.
    """
    config = snapshot.config
    indexed = indexed_columns(snapshot.schema, config.partition_columns, config.metadata.configuration)
    with_statistics = {tuple(column.name for column in leaf) for leaf in indexed}
    found = {_checked(snapshot, name): name for name in names}
    without = [name for path, name in found.items() if path not in with_statistics]
    if without and need_statistics:
        raise InvalidRequest(
            f"Z-Ordering on [{', '.join(without)}] will be ineffective, because table {config.table} collects no statistics for these "
            "columns. Have delta.dataSkippingStatsColumns or delta.dataSkippingNumIndexedCols cover them, or cluster by others.",
            code="DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS",
            table=config.table,
            columns=without,
        )
    return tuple(found)


def refuse_clustered(snapshot: Snapshot, *, where: bool, zorder_by: Sequence[str]) -> None:
    """Refuse to lay out a table that says itself by which columns it is clustered: this version of Tahoe does not cluster so.

    Args:
        where: whether only some partitions are meant.

    Raises:
        InvalidRequest: what the reference refuses too (`DELTA_CLUSTERING_WITH_PARTITION_PREDICATE`, `DELTA_CLUSTERING_WITH_ZORDER_BY`).
        Unsupported: the rest.
    """
    domain = snapshot.state.domains.get("delta.clustering")
    columns = [] if domain is None or domain.removed else json.loads(domain.configuration).get("clusteringColumns", [])
    if not columns:
        return
    table, shown = snapshot.config.table, ", ".join(".".join(column) for column in columns)
    if where:
        raise InvalidRequest(
            f"Table {table} is clustered by {shown}; OPTIMIZE of a clustered table takes no condition. Leave WHERE out.",
            code="DELTA_CLUSTERING_WITH_PARTITION_PREDICATE",
            table=table,
        )
    if zorder_by:
        raise InvalidRequest(
            f"Table {table} is clustered by {shown}; OPTIMIZE of a clustered table takes no ZORDER BY. Leave it out.",
            code="DELTA_CLUSTERING_WITH_ZORDER_BY",
            table=table,
        )
    raise Unsupported(
        f"Table {table} is clustered by {shown} (CLUSTER BY), and this version of Tahoe does not keep such a table clustered. Use another "
        "Delta client to optimize it.",
        code="DELTA_OPERATION_NOT_ALLOWED",
        table=table,
    )


def _checked(snapshot: Snapshot, name: str) -> Path:
    table, columns = snapshot.config.table, snapshot.schema
    parts = _parts(name)
    if parts[0].lower() in {column.lower() for column in snapshot.partition_columns}:
        raise InvalidRequest(
            f"{name} is a partition column. Z-Ordering can only be performed on data columns (table {table}).",
            code="DELTA_ZORDERING_ON_PARTITION_COLUMN",
            table=table,
            column=name,
        )
    fields = _fields(columns, parts)
    if not fields:
        raise InvalidRequest(
            f"Z-Ordering column {name} does not exist in data schema (table {table}; it has {', '.join(columns.names)}).",
            code="DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST",
            table=table,
            column=name,
        )
    data_type = fields[-1].data_type
    if not isinstance(data_type, PrimitiveType | DecimalType) or data_type == PrimitiveType("void"):
        raise InvalidRequest(
            f"Rows of table {table} cannot be clustered by column {name}: its type {data_type} has no order. Name another.",
            code="DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED",
            table=table,
            column=name,
        )
    return tuple(column.name for column in fields)


def _parts(name: str) -> tuple[str, ...]:
    try:
        parts = list(multipart_names(name))
    except InvalidRequest:
        return (name,)
    return parts[0] if len(parts) == 1 else (name,)


def _fields(schema: StructType, parts: Sequence[str]) -> list[StructField]:
    """The fields from the top down to a column; none where there is no column of that name."""
    fields: list[StructField] = []
    inner: DataType = schema
    for name in parts:
        column = inner.find(name) if isinstance(inner, StructType) else None
        if column is None:
            return []
        fields.append(column)
        inner = column.data_type
    return fields
