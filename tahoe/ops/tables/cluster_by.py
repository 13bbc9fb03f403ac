"""CLUSTER BY: validation of clustering columns, and the metadata that records them. Nothing is committed here.

    names ─► existing columns, each once, at most four ─► with statistics? ─► the domain ``delta.clustering`` and the feature

No file changes: rows are clustered by the next OPTIMIZE (`tahoe.ops.layout.cubes`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tahoe.base.exceptions import InvalidRequest
from tahoe.protocol.actions import DomainMetadata, Metadata
from tahoe.protocol.clustering import (
    ENABLING,
    MOST_COLUMNS,
    Path,
    clustering_domain,
    clustering_paths,
    field_chain,
    logical_path,
    named_path,
    refuse_enabling,
    shown_path,
)
from tahoe.protocol.config import TableConfig
from tahoe.protocol.features import Feature
from tahoe.protocol.statistics.bounds import has_bounds
from tahoe.protocol.statistics.collect import indexed_columns
from tahoe.schema.column_edits import name_of
from tahoe.schema.types import StructType
from tahoe.snapshot.snapshot import Snapshot
from tahoe.txn.prepare import future_config
from tahoe.txn.transaction import Operation, Transaction


def is_clustered(snapshot: Snapshot) -> bool:
    """Whether the table is clustered, including one without columns (``CLUSTER BY NONE``)."""
    return Feature.CLUSTERING in snapshot.config.features


def clustering_columns(snapshot: Snapshot) -> tuple[Path, ...]:
    """Return the logical names of the clustering columns; empty if the table is not clustered."""
    if not is_clustered(snapshot):
        return ()
    paths = clustering_paths(snapshot.state.domains, snapshot.config.table) or ()
    return tuple(logical_path(snapshot.schema, path) for path in paths)


def clustered_by(snapshot: Snapshot) -> list[str]:
    """Return the clustering columns as they are shown."""
    return [shown_path(path) for path in clustering_columns(snapshot)]


def stage_clustering(transaction: Transaction, names: Sequence[str] | None) -> list[str]:
    """Stage the clustering columns of a table that is created or replaced; its metadata is already staged.

    Args:
        names: of columns, nested ones as ``a.b``; None for a table without clustering: one that was clustered keeps the feature, and
            has no columns.

    Returns:
        The columns as they are shown.

    Raises:
        InvalidRequest: a column that does not exist (`DELTA_COLUMN_NOT_FOUND_IN_SCHEMA`), is named twice
            (`DELTA_DUPLICATE_COLUMNS_FOUND.CLUSTER_BY`), whose type has no order (`DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED`), or
            that has no statistics (`DELTA_CLUSTERING_COLUMN_MISSING_STATS`); too many (`DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS`); a
            partitioned table (`DELTA_CLUSTER_BY_WITH_PARTITIONED_BY`, `DELTA_CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE`).
    """
    metadata, snapshot = transaction.metadata, transaction.snapshot
    assert metadata is not None
    refuse_enabling(metadata.configuration)
    _refuse_partitioned(transaction, metadata, names)
    if names is None:
        if snapshot is not None and clustering_paths(snapshot.state.domains, snapshot.config.table) is not None:
            transaction.stage(clustering_domain(()))
        return []
    config = future_config(transaction)
    paths = _checked(config, names)
    _check_statistics(config, config.metadata, paths)
    _enable(transaction, metadata)
    transaction.stage(_domain(config.schema, paths))
    return [shown_path(path) for path in paths]


def stage_cluster_by(transaction: Transaction, snapshot: Snapshot, names: Sequence[str]) -> Operation | None:
    """Stage new clustering columns, or none; None if the table was never clustered and no columns are named.

    Args:
        snapshot: of the transaction.
        names: as for `stage_clustering`; empty for ``CLUSTER BY NONE``.

    Raises `InvalidRequest`: as `stage_clustering`; `DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED`.
    """
    config = snapshot.config
    paths = _checked(config, names)
    if config.partition_columns:
        raise InvalidRequest(
            f"ALTER TABLE CLUSTER BY cannot be applied to a partitioned table: {config.table} is partitioned by "
            f"{', '.join(config.partition_columns)}. Write the rows to a new table with CLUSTER BY.",
            code="DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED",
            table=config.table,
        )
    if not names and not is_clustered(snapshot):
        return None
    _check_statistics(config, config.metadata, paths)
    if not is_clustered(snapshot):
        _enable(transaction, config.metadata)
    transaction.stage(_domain(config.schema, paths))
    before, after = clustered_by(snapshot), [shown_path(path) for path in paths]
    return Operation("CLUSTER BY", {"oldClusteringColumns": ",".join(before), "newClusteringColumns": ",".join(after)})


def check_same_clustering(snapshot: Snapshot, names: Sequence[str]) -> None:
    """Refuse rows for a table whose clustering differs from the writer's.

    Raises `InvalidRequest` (`DELTA_CLUSTERING_COLUMNS_MISMATCH`)."""
    config = snapshot.config
    expected = _checked(config, names)
    if expected != clustering_columns(snapshot):
        raise InvalidRequest(
            f"The provided clustering columns do not match the existing table's ({config.table}). Provided: "
            f"{', '.join(map(shown_path, expected))}; existing: {', '.join(clustered_by(snapshot)) or 'none'}. Leave clusterBy out, or "
            "change the table first: ALTER TABLE … CLUSTER BY (…).",
            code="DELTA_CLUSTERING_COLUMNS_MISMATCH",
            table=config.table,
        )


def check_still_clusterable(snapshot: Snapshot, metadata: Metadata) -> None:
    """Refuse metadata under which a clustering column would lose its statistics, which the specification requires.

    Args:
        metadata: the new metadata, with the same columns, perhaps in another order or with other properties.

    Raises `InvalidRequest`: `DELTA_CLUSTERING_COLUMN_MISSING_STATS`.
    """
    columns = clustering_columns(snapshot)
    if columns:
        before = _without_statistics(snapshot.config, snapshot.metadata, columns)
        after = _without_statistics(snapshot.config, metadata, columns)
        _refuse_without_statistics(snapshot.config, [path for path in after if path not in before])


def restored_clustering(newest: Snapshot, target: Snapshot) -> list[DomainMetadata]:
    """Return the domain actions of a RESTORE that restore the older version's clustering columns, or remove clustering."""
    now = clustering_paths(newest.state.domains, newest.config.table)
    then = clustering_paths(target.state.domains, target.config.table) or ()
    return [] if now == then or (now is None and not then) else [clustering_domain(then)]


# -- columns -----------------------------------------------------------------------------------------------------------------


def _checked(config: TableConfig, names: Sequence[str]) -> tuple[Path, ...]:
    """Return the columns in the schema's spelling."""
    schema, table, paths = config.schema, config.table, list[Path]()
    for name in names:
        parts = named_path(name)
        fields = field_chain(schema, parts)
        if not fields:
            raise InvalidRequest(
                f"Couldn't find column {name} to cluster by in table {table}; it has {', '.join(schema.names)}.",
                code="DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
                table=table,
                column=name,
            )
        paths.append(tuple(field.name for field in fields))
    twice = sorted({name_of(path) for path in paths if paths.count(path) > 1})
    if twice:
        raise InvalidRequest(
            f"Found duplicate column(s): {', '.join(twice)}. The duplicate was found in CLUSTER BY (table {table}). Name each once.",
            code="DELTA_DUPLICATE_COLUMNS_FOUND.CLUSTER_BY",
            table=table,
            columns=twice,
        )
    if len(paths) > MOST_COLUMNS:
        raise InvalidRequest(
            f"CLUSTER BY supports up to {MOST_COLUMNS} clustering columns, but table {table} would have {len(paths)}. Please remove the "
            "extra clustering columns.",
            code="DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS",
            table=table,
        )
    return tuple(paths)


def _check_statistics(config: TableConfig, metadata: Metadata, paths: Sequence[Path]) -> None:
    without = _without_statistics(config, metadata, paths)
    odd = [path for path in without if not has_bounds(field_chain(config.schema, path)[-1].data_type)]
    if odd:
        listing = ", ".join(f"{name_of(path)} : {field_chain(config.schema, path)[-1].data_type}" for path in odd)
        raise InvalidRequest(
            f"CLUSTER BY is not supported because the following column(s): {listing} don't support data skipping (table {config.table}). "
            "Name columns of numbers, texts, dates or times.",
            code="DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED",
            table=config.table,
            columns=[name_of(path) for path in odd],
        )
    _refuse_without_statistics(config, without)


def _refuse_without_statistics(config: TableConfig, without: Sequence[Path]) -> None:
    if without:
        raise InvalidRequest(
            f"Clustering requires clustering columns to have stats. Couldn't find clustering column(s) "
            f"'{', '.join(map(name_of, without))}' in the statistics of table {config.table}. Have delta.dataSkippingStatsColumns or "
            "delta.dataSkippingNumIndexedCols cover them, or cluster by others.",
            code="DELTA_CLUSTERING_COLUMN_MISSING_STATS",
            table=config.table,
            columns=[name_of(path) for path in without],
        )


def _without_statistics(config: TableConfig, metadata: Metadata, paths: Sequence[Path]) -> list[Path]:
    schema = TableConfig(config.protocol, metadata, config.table).schema
    indexed = indexed_columns(schema, metadata.partition_columns, metadata.configuration)
    bounded = {tuple(column.name.lower() for column in leaf) for leaf in indexed if has_bounds(leaf[-1].data_type)}
    return [path for path in paths if tuple(name.lower() for name in path) not in bounded]


def _domain(schema: StructType, paths: Sequence[Path]) -> DomainMetadata:
    return clustering_domain([tuple(field.physical_name for field in field_chain(schema, path)) for path in paths])


def _enable(transaction: Transaction, metadata: Metadata) -> None:
    configuration: Mapping[str, str] = {**metadata.configuration, ENABLING: "supported"}
    transaction.set_metadata(replace(metadata, configuration=configuration))


def _refuse_partitioned(transaction: Transaction, metadata: Metadata, names: Sequence[str] | None) -> None:
    if not metadata.partition_columns:
        return
    table = transaction.store.url
    if names is not None:
        raise InvalidRequest(
            f"Clustering and partitioning cannot both be specified (table {table}). Please remove partitionedBy if you want to create a "
            "Delta table with clustering.",
            code="DELTA_CLUSTER_BY_WITH_PARTITIONED_BY",
            table=table,
        )
    if transaction.snapshot is not None and is_clustered(transaction.snapshot):
        raise InvalidRequest(
            f"Replacing a clustered Delta table with a partitioned table is not allowed ({table}). Leave PARTITIONED BY out, or drop the "
            "table first.",
            code="DELTA_CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE",
            table=table,
        )
