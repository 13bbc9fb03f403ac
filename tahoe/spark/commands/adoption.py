"""Adopts an existing table under a new name: checks that the definition in the statement matches the table. Nothing is committed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tahoe.base.exceptions import InvalidRequest
from tahoe.ops.tables.cluster_by import clustered_by
from tahoe.protocol.clustering import field_chain, named_path, shown_path
from tahoe.protocol.properties import validate_properties
from tahoe.schema.types import ArrayType, DataType, MapType, StructField, StructType
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.commands.create import TableDefinition
from tahoe.spark.jvm.translate import shown_metadata

__all__ = ["check_agrees"]

_GENERATED = "delta.generationExpression"
_OF_MAPPING = frozenset({"delta.columnMapping.maxColumnId", "delta.columnMapping.maxcolumnid"})


def check_agrees(snapshot: Snapshot, given: TableDefinition, properties: Mapping[str, str]) -> None:
    """Reject a schema, partitioning or properties that differ from the table's.

    Omitted parts are not compared. A definition with columns always defines the partitioning: without a PARTITIONED BY clause, there is
    none. A definition without columns may not have a partitioning.

    Args:
        properties: the properties in the statement.

    Raises `InvalidRequest`: ``DELTA_CREATE_TABLE_SCHEME_MISMATCH``, ``DELTA_CREATE_TABLE_WITH_DIFFERENT_PARTITIONING``,
    ``DELTA_CREATE_TABLE_WITH_DIFFERENT_CLUSTERING``, ``DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY``.
    """
    if given.schema.fields:
        differences = list(_differences(snapshot.schema, given.schema))
        if differences:
            raise _refused(
                snapshot, "schema is another than the one given: " + "; ".join(differences), "DELTA_CREATE_TABLE_SCHEME_MISMATCH"
            )
        partition_by = tuple(given.schema.field(name).name for name in given.partition_by)
        if partition_by != snapshot.partition_columns:
            there, said = (f"({', '.join(names)})" for names in (snapshot.partition_columns, partition_by))
            raise _refused(
                snapshot, f"partition columns are {there}, given were {said}", "DELTA_CREATE_TABLE_WITH_DIFFERENT_PARTITIONING"
            )
        cluster_by = [shown_path(_spelled(given.schema, name)) for name in given.cluster_by or ()]
        if cluster_by != clustered_by(snapshot):
            there, said = (f"({', '.join(names)})" for names in (clustered_by(snapshot), cluster_by))
            raise _refused(
                snapshot, f"clustering columns are {there}, given were {said}", "DELTA_CREATE_TABLE_WITH_DIFFERENT_CLUSTERING"
            )
    elif given.partition_by or given.cluster_by:
        raise InvalidRequest(
            f"CREATE TABLE gives no columns, but a partitioning or clustering, for the Delta table at {snapshot.store.url}. Leave it out to "
            "adopt the table as it is.",
            code="DELTA_SCHEMA_NOT_PROVIDED",
            table=snapshot.store.url,
        )
    if properties:
        wanted, has = _comparable(validate_properties(properties)), _comparable(snapshot.metadata.configuration)
        if wanted != has:
            raise _refused(snapshot, f"properties are {has}, given were {wanted}", "DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY")


def _refused(snapshot: Snapshot, reason: str, code: str) -> InvalidRequest:
    url = snapshot.store.url
    return InvalidRequest(
        f"There is a Delta table at {url} already, and its {reason}. Leave that out of CREATE TABLE to adopt the table as it is, give what "
        "it has, or choose another location.",
        code=code,
        table=url,
    )


def _comparable(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties without those of the protocol and of column mapping."""
    return {
        key: value
        for key, value in properties.items()
        if key not in _OF_MAPPING
        and not key.startswith("delta.feature.")
        and key not in ("delta.minReaderVersion", "delta.minWriterVersion")
    }


def _differences(there: StructType, given: StructType, prefix: str = "") -> Iterator[str]:
    missing = [name for name in there.names if name not in given.names]
    extra = [name for name in given.names if name not in there.names]
    if missing:
        yield f"missing are {', '.join(prefix + name for name in missing)}"
    if extra:
        yield f"not in the table are {', '.join(prefix + name for name in extra)}"
    for one in there:
        other = given.find(one.name)
        if other is not None and other.name == one.name:
            yield from _difference(one, other, prefix)


def _difference(there: StructField, given: StructField, prefix: str) -> Iterator[str]:
    name = prefix + there.name
    if there.nullable != given.nullable:
        yield f"column {name} is {'' if there.nullable else 'NOT '}NULL in the table"
    if _metadata(there) != _metadata(given):
        yield f"column {name} has the metadata {_metadata(there)} in the table, given was {_metadata(given)}"
    yield from _of_types(there.data_type, given.data_type, name)


def _of_types(there: DataType, given: DataType, name: str) -> Iterator[str]:
    match there, given:
        case StructType(), StructType():
            yield from _differences(there, given, f"{name}.")
        case ArrayType(), ArrayType():
            yield from _of_types(there.element_type, given.element_type, f"{name}[]")
            if there.contains_null != given.contains_null:
                yield f"elements of {name} {'may' if there.contains_null else 'may not'} be NULL in the table"
        case MapType(), MapType():
            yield from _of_types(there.key_type, given.key_type, f"{name}[key]")
            yield from _of_types(there.value_type, given.value_type, f"{name}[value]")
            if there.value_contains_null != given.value_contains_null:
                yield f"values of {name} {'may' if there.value_contains_null else 'may not'} be NULL in the table"
        case _:
            if there != given:
                yield f"column {name} is of type {there} in the table, given was {given}"


def _metadata(column: StructField) -> dict[str, object]:
    """Return the metadata that users define; ids and physical names are internal."""
    kept = {key: value for key, value in column.metadata.items() if key == _GENERATED}
    return {**shown_metadata(column), **kept}


def _spelled(schema: StructType, name: str) -> tuple[str, ...]:
    """Return the path of a column in the schema's spelling; if there is no such column, in the given spelling."""
    parts = named_path(name)
    return tuple(field.name for field in field_chain(schema, parts)) or parts
