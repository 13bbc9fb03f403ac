"""Clustered tables: a table's clustering columns, and how a file was clustered (PROTOCOL.md, "Clustered Table").

    the domain ``delta.clustering`` ─► physical paths of columns ─► their names      tags of a file ─► `Cube`: its files and columns

A metadata domain contains the columns under their physical names, so that renaming a column does not affect clustering. A clustered file
has the provider ``liquid``, and tags that identify its *cube*: the files that were clustered together.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from tahoe.base.exceptions import CorruptTable, InvalidRequest
from tahoe.base.json_values import compact_json
from tahoe.protocol.actions import AddFile, DomainMetadata
from tahoe.protocol.config import TableConfig
from tahoe.protocol.features import Feature
from tahoe.protocol.statistics.collect import multipart_names
from tahoe.schema.types import DataType, StructField, StructType

Path: TypeAlias = tuple[str, ...]
"""The names from the top-level column down to a nested column."""

DOMAIN = "delta.clustering"
ENABLING = f"delta.feature.{Feature.CLUSTERING}"
"""The property with which a commit enables the feature; it is kept in the protocol, not in the table's properties."""
PROVIDER = "liquid"
MOST_COLUMNS = 4
"""The maximum number of clustering columns: the reference's limit, unless its session sets another."""

_ID, _BY, _CURVE = "ZCUBE_ID", "ZCUBE_ZORDER_BY", "ZCUBE_ZORDER_CURVE"


@dataclass(frozen=True, slots=True)
class Cube:
    """How a file was clustered, from its tags.

    Args:
        id: the same in all files that were clustered together.
        columns: names at the time of clustering, nested ones as ``a.b``.
        curve: the space-filling curve; None if the writer did not record it, as the reference does not.
    """

    id: str
    columns: tuple[str, ...]
    curve: str | None = None


def clustering_paths(domains: Mapping[str, DomainMetadata], table: str) -> tuple[Path, ...] | None:
    """Return the physical paths of the clustering columns; empty after ``CLUSTER BY NONE``, None if the table was never clustered.

    Args:
        domains: of a version.
        table: for the message.

    Raises `CorruptTable`: the domain cannot be read.
    """
    domain = domains.get(DOMAIN)
    if domain is None or domain.removed:
        return None
    try:
        columns = json.loads(domain.configuration).get("clusteringColumns", [])
        # The specification's own example has names, the reference writes paths.
        return tuple((path,) if isinstance(path, str) else tuple(map(str, path)) for path in columns)
    except (ValueError, AttributeError, TypeError) as error:
        raise CorruptTable(
            f"The metadata domain {DOMAIN} of table {table} contains {domain.configuration!r}, which is not "
            '{"clusteringColumns":[["column"], …]}. Set it again: ALTER TABLE … CLUSTER BY (…).',
            code="DELTA_STATE_RECOVER_ERROR",
            table=table,
        ) from error


def clustering_domain(paths: Sequence[Path]) -> DomainMetadata:
    """Return the action that records the clustering columns, as the reference writes it.

    Args:
        paths: physical; empty for a table that is no longer clustered.
    """
    value = {"clusteringColumns": [list(path) for path in paths], "domainName": DOMAIN}
    return DomainMetadata(DOMAIN, compact_json(value))


def logical_path(schema: StructType, physical: Path) -> Path:
    """Return the logical names of a physical path; the physical names if the schema has no such column."""
    fields = field_chain(schema, physical, physical=True)
    return tuple(field.name for field in fields) if fields else physical


def field_chain(schema: StructType, path: Path, *, physical: bool = False) -> list[StructField]:
    """Return the fields from the top-level column down to a column inside structs; empty if there is no such column.

    Args:
        physical: the path consists of physical names.
    """
    fields: list[StructField] = []
    inner: DataType = schema
    for name in path:
        if not isinstance(inner, StructType):
            return []
        if physical:
            column = next((field for field in inner if field.physical_name.lower() == name.lower()), None)
        else:
            column = inner.find(name)
        if column is None:
            return []
        fields.append(column)
        inner = column.data_type
    return fields


def named_path(name: str) -> Path:
    """Parse a column's name: ``a.b`` is a field of a struct, and any part may be in back-ticks."""
    try:
        parts = list(multipart_names(name))
    except InvalidRequest:
        return (name,)
    return parts[0] if len(parts) == 1 else (name,)


def shown_path(path: Path) -> str:
    """Format a path as the reference does in the history, in DESCRIBE and in tags: parts that are not plain names are quoted."""
    return ".".join(part if part.isidentifier() and part.isascii() else "`" + part.replace("`", "``") + "`" for part in path)


def cube_of(add: AddFile) -> Cube | None:
    """Return how a file was clustered; None if it has no such tags."""
    tags = add.tags or {}
    id, by = tags.get(_ID), tags.get(_BY)
    if id is None or by is None:
        return None
    try:
        columns = tuple(map(str, json.loads(by)))
    except (ValueError, TypeError):
        return None
    return Cube(id, columns, tags.get(_CURVE))


def with_cube(adds: Iterable[AddFile], cube: Cube) -> list[AddFile]:
    """Return files that were clustered together, with the tags of their cube."""
    tags = {_ID: cube.id, _BY: compact_json(list(cube.columns))}
    if cube.curve is not None:
        tags[_CURVE] = cube.curve
    return [replace(add, tags={**(add.tags or {}), **tags}, clustering_provider=PROVIDER) for add in adds]


def as_clustered_as(new: AddFile, old: AddFile) -> AddFile:
    """Return `new`, a file with the rows of `old` in the same order, with the clustering tags of `old`."""
    clustering_tags = {key: value for key, value in (old.tags or {}).items() if key in (_ID, _BY, _CURVE)}
    tags = {**(new.tags or {}), **clustering_tags} if clustering_tags else new.tags
    return replace(new, tags=tags, clustering_provider=old.clustering_provider)


def refuse_enabling(properties: Iterable[str], config: TableConfig | None = None) -> None:
    """Refuse a user's property that enables the feature: only CLUSTER BY does.

    Args:
        config: of the table that is altered; None for a new one.

    Raises `InvalidRequest`: `DELTA_CREATE_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED`, or `DELTA_ALTER_TABLE_…`.
    """
    if not any(name.lower() == ENABLING for name in properties):
        return
    if config is None:
        raise InvalidRequest(
            "Cannot enable clustering table feature using TBLPROPERTIES. Please use CREATE OR REPLACE TABLE CLUSTER BY to create a Delta "
            "table with clustering.",
            code="DELTA_CREATE_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED",
        )
    raise InvalidRequest(
        f"Cannot enable clustering table feature using ALTER TABLE SET TBLPROPERTIES (table {config.table}). Please use ALTER TABLE CLUSTER "
        "BY, or CREATE OR REPLACE TABLE CLUSTER BY to create a Delta table with clustering.",
        code="DELTA_ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED",
        table=config.table,
    )
