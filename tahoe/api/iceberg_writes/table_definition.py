"""The definition of a table as an Iceberg client requests it: columns, partitioning and properties, translated to Delta's."""

from __future__ import annotations

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.ops.copies.iceberg_columns import delta_schema
from tahoe.schema.mapping import check_mapping_of_columns
from tahoe.schema.types import StructType
from tahoe.uniform.commits.commit_requests import NewTable
from tahoe.uniform.commits.json_fields import invalid
from tahoe.uniform.formats.metadata import CONFIG_PREFIX

_UNIFORM = {"delta.universalFormat.enabledFormats": "iceberg", "delta.columnMapping.mode": "name"}
_COMPAT = {"1": "delta.enableIcebergCompatV2", "2": "delta.enableIcebergCompatV2", "3": "delta.enableIcebergCompatV3"}
"""By Iceberg's format version; tables of version 1 are created in version 2, which every client supports."""

_COMMENT = "comment"
_FORMAT_VERSION = "format-version"


def create_table(table: Table, definition: NewTable) -> int:
    """Create a Delta table with UniForm; return its version.

    The columns keep their ids, and files name them as the client does: so readers of both formats read files of both.

    Raises:
        InvalidRequest: invalid columns, ids, partitions or location.
        Unsupported: a type or property that Delta does not have.
    """
    if definition.is_staged:
        raise Unsupported("This server does not stage the creation of a table yet.", code="TAHOE_ICEBERG_UPDATE")
    if definition.location is not None and definition.location.rstrip("/") != table.url:
        raise InvalidRequest(
            f"A table of this catalog is in the folder of its name, {table.url}; the request has the location {definition.location}. Leave "
            "it out.",
            code="TAHOE_ICEBERG_LOCATION",
            table=table.url,
        )
    schema = _columns(definition, table.url)
    properties = delta_properties(definition.properties)
    created = Table.create(
        table.url,
        schema,
        partition_by=[_named(schema, number) for number in definition.partition_by],
        properties=properties,
        description=definition.properties.get(_COMMENT),
        store=table.store,
        clock=table.clock,
    )
    return created.version()


def delta_properties(properties: dict[str, str] | object) -> dict[str, str]:
    """Return the Delta properties of a new table: UniForm, and Iceberg's own properties for Iceberg's readers.

    Raises `Unsupported` for a format version that Delta's UniForm does not have, and for properties of Delta.
    """
    assert isinstance(properties, dict)
    version = properties.get(_FORMAT_VERSION, "2")
    if version not in _COMPAT:
        raise Unsupported(f"Delta's UniForm has no Iceberg format version {version:.20}.", code="TAHOE_ICEBERG_PROPERTY")
    kept = {key: value for key, value in properties.items() if key not in (_FORMAT_VERSION, _COMMENT)}
    return {**_UNIFORM, _COMPAT[version]: "true", **{_iceberg_key(key): value for key, value in kept.items()}}


def _iceberg_key(key: str) -> str:
    if key.lower().startswith("delta."):
        raise Unsupported(
            f"The property '{key}' is Delta's, and Iceberg clients do not set it here. Set it through Delta.",
            code="TAHOE_ICEBERG_PROPERTY",
        )
    return f"{CONFIG_PREFIX}{key}"


def _columns(definition: NewTable, table: str) -> StructType:
    """Return the columns in Delta's types with their ids."""
    try:
        schema = delta_schema(definition.schema, table)
        check_mapping_of_columns(schema, "name")
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise invalid(f"The schema of the request cannot be read: {type(error).__name__} {error}.") from error
    return schema


def _named(schema: StructType, number: int) -> str:
    for column in schema:
        if column.field_id == number:
            return column.name
    raise invalid(f"The partition spec of the request names the source column {number}, which is no column outside structs.")
