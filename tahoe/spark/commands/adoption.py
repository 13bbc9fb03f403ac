"""Adopts an existing table under a new name: checks that the definition in the statement matches the table. Nothing is committed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tahoe.base.exceptions import InvalidRequest
from tahoe.ops.tables.cluster_by import clustered_by
from tahoe.protocol.clustering import field_chain, named_path, shown_path
from tahoe.protocol.properties import validate_properties
from tahoe.schema.types import GENERATION_EXPRESSION, ArrayType, DataType, MapType, StructField, StructType
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.commands.create import TableDefinition
from tahoe.spark.jvm.translate import shown_metadata

_OF_MAPPING = frozenset({"delta.columnMapping.maxColumnId", "delta.columnMapping.maxcolumnid"})


def check_agrees(snapshot: Snapshot, definition: TableDefinition, properties: Mapping[str, str]) -> None:
    """Reject a schema, partitioning or properties that differ from the table's.

    Omitted parts are not compared. A definition with columns always defines the partitioning: without a PARTITIONED BY clause, there is
    none. A definition without columns may not have a partitioning.

    Args:
        properties: the properties in the statement.

    Raises `InvalidRequest`: ``DELTA_CREATE_TABLE_SCHEME_MISMATCH``, ``DELTA_CREATE_TABLE_WITH_DIFFERENT_PARTITIONING``,
    ``DELTA_CREATE_TABLE_WITH_DIFFERENT_CLUSTERING``, ``DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY``.
    """
    if definition.schema.fields:
        differences = list(_differences(snapshot.schema, definition.schema))
        if differences:
            raise _refused(
                snapshot, "schema is another than the one given: " + "; ".join(differences), "DELTA_CREATE_TABLE_SCHEME_MISMATCH"
            )
        partition_by = tuple(definition.schema.field(name).name for name in definition.partition_by)
        if partition_by != snapshot.partition_columns:
            existing, requested = (f"({', '.join(names)})" for names in (snapshot.partition_columns, partition_by))
            raise _refused(
                snapshot,
                f"partition columns are {existing}, given were {requested}",
                "DELTA_CREATE_TABLE_WITH_DIFFERENT_PARTITIONING",
            )
        cluster_by = [shown_path(_spelled(definition.schema, name)) for name in definition.cluster_by or ()]
        if cluster_by != clustered_by(snapshot):
            existing, requested = (f"({', '.join(names)})" for names in (clustered_by(snapshot), cluster_by))
            raise _refused(
                snapshot,
                f"clustering columns are {existing}, given were {requested}",
                "DELTA_CREATE_TABLE_WITH_DIFFERENT_CLUSTERING",
            )
    elif definition.partition_by or definition.cluster_by:
        raise InvalidRequest(
            f"CREATE TABLE gives no columns, but a partitioning or clustering, for the Delta table at {snapshot.store.url}. Leave it out to "
            "adopt the table as it is.",
            code="DELTA_SCHEMA_NOT_PROVIDED",
            table=snapshot.store.url,
        )
    if properties:
        expected, actual = _comparable(validate_properties(properties)), _comparable(snapshot.metadata.configuration)
        if expected != actual:
            raise _refused(
                snapshot, f"properties are {actual}, given were {expected}", "DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY"
            )


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


def _differences(table: StructType, definition: StructType, prefix: str = "") -> Iterator[str]:
    missing = [name for name in table.names if name not in definition.names]
    extra = [name for name in definition.names if name not in table.names]
    if missing:
        yield f"missing are {', '.join(prefix + name for name in missing)}"
    if extra:
        yield f"not in the table are {', '.join(prefix + name for name in extra)}"
    for column in table:
        defined = definition.find(column.name)
        if defined is not None and defined.name == column.name:
            yield from _difference(column, defined, prefix)


def _difference(column: StructField, defined: StructField, prefix: str) -> Iterator[str]:
    name = prefix + column.name
    if column.nullable != defined.nullable:
        yield f"column {name} is {'' if column.nullable else 'NOT '}NULL in the table"
    if _metadata(column) != _metadata(defined):
        yield f"column {name} has the metadata {_metadata(column)} in the table, given was {_metadata(defined)}"
    yield from _of_types(column.data_type, defined.data_type, name)


def _of_types(data_type: DataType, defined: DataType, name: str) -> Iterator[str]:
    match data_type, defined:
        case StructType(), StructType():
            yield from _differences(data_type, defined, f"{name}.")
        case ArrayType(), ArrayType():
            yield from _of_types(data_type.element_type, defined.element_type, f"{name}[]")
            if data_type.contains_null != defined.contains_null:
                yield f"elements of {name} {'may' if data_type.contains_null else 'may not'} be NULL in the table"
        case MapType(), MapType():
            yield from _of_types(data_type.key_type, defined.key_type, f"{name}[key]")
            yield from _of_types(data_type.value_type, defined.value_type, f"{name}[value]")
            if data_type.value_contains_null != defined.value_contains_null:
                yield f"values of {name} {'may' if data_type.value_contains_null else 'may not'} be NULL in the table"
        case _:
            if data_type != defined:
                yield f"column {name} is of type {data_type} in the table, given was {defined}"


def _metadata(column: StructField) -> dict[str, object]:
    """Return the metadata that users define; ids and physical names are internal."""
    generated = {key: value for key, value in column.metadata.items() if key == GENERATION_EXPRESSION}
    return {**shown_metadata(column), **generated}


def _spelled(schema: StructType, name: str) -> tuple[str, ...]:
    """Return the path of a column in the schema's spelling; if there is no such column, in the given spelling."""
    parts = named_path(name)
    return tuple(field.name for field in field_chain(schema, parts)) or parts
