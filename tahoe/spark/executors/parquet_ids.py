"""Adds field ids for list elements, map keys and map values to the footer of an existing Parquet file.

Spark's Parquet writer gives ids to fields, but not to the contents of arrays and maps; Iceberg readers need those (PROTOCOL.md, "Writer
Requirements for IcebergCompatV2"). Only the footer is rewritten: column chunks stay byte for byte unchanged.

The footer uses Thrift's compact protocol; it is parsed to plain values, `SchemaElement`s get their ``field_id``, and it is serialized
again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tahoe.protocol.statistics.thrift import I32, footer_of, with_footer
from tahoe.schema.mapping import nested_ids_of
from tahoe.schema.types import ArrayType, DataType, MapType, StructType

# From the Parquet specification (parquet.thrift): members of FileMetaData and of SchemaElement.
_SCHEMA, _NAME, _NUM_CHILDREN, _FIELD_ID = 2, 4, 5, 9


def with_nested_ids(content: bytes, schema: StructType) -> bytes:
    """Return the bytes of the file with an id on each list element, map key and map value for which the schema has one.

    Args:
        schema: logical, with column mapping metadata.

    Raises:
        CorruptTable: the bytes are no Parquet file with a plain footer.
    """
    start, metadata = footer_of(content)
    ids = dict(_ids(schema))
    for path, element in _elements(metadata[_SCHEMA][1]):
        if path in ids:
            element[_FIELD_ID] = (I32, ids[path])
    return content[:start] + with_footer(metadata)


def _ids(schema: StructType) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield ids by the path in the Parquet schema: physical names with ``list.element``, ``key_value.key``, ``key_value.value``
    in between.
    """

    def walk(data_type: DataType, path: tuple[str, ...], key: str, nested_ids: Any) -> Iterator[tuple[tuple[str, ...], int]]:
        match data_type:
            case StructType():
                for column in data_type:
                    yield from walk(column.data_type, (*path, column.physical_name), column.physical_name, nested_ids_of(column))
            case ArrayType(element):
                yield from part(element, (*path, "list", "element"), f"{key}.element", nested_ids)
            case MapType(map_key, value):
                yield from part(map_key, (*path, "key_value", "key"), f"{key}.key", nested_ids)
                yield from part(value, (*path, "key_value", "value"), f"{key}.value", nested_ids)

    def part(data_type: DataType, path: tuple[str, ...], key: str, nested_ids: Any) -> Iterator[tuple[tuple[str, ...], int]]:
        if key in nested_ids:
            yield path, nested_ids[key]
        yield from walk(data_type, path, key, nested_ids)

    yield from walk(schema, (), "", {})


def _elements(flat: tuple[int, list[Any]]) -> Iterator[tuple[tuple[str, ...], dict[int, Any]]]:
    """Yield each `SchemaElement` with its path; the list is the tree in depth-first order, root first."""
    elements = iter(flat[1])

    def children(count: int, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], dict[int, Any]]]:
        for _ in range(count):
            element = next(elements)
            inner = (*path, element[_NAME][1].decode())
            yield inner, element
            if _NUM_CHILDREN in element:
                yield from children(element[_NUM_CHILDREN][1], inner)

    root = next(elements)
    yield from children(root[_NUM_CHILDREN][1], ())
