"""Creates the action that adds a file written by Spark: with statistics from its footer, and its greatest identity values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tahoe.base.exceptions import CorruptTable
from tahoe.base.lazy import pq
from tahoe.protocol.actions import AddFile
from tahoe.protocol.column_values.identity import IdentityColumn
from tahoe.protocol.config import TableConfig
from tahoe.protocol.nan_bounds import with_statistics
from tahoe.protocol.statistics.bounds import Leaf
from tahoe.protocol.statistics.collect import indexed_columns, statistics_of_footer, string_prefix_length
from tahoe.protocol.statistics.file_statistics import FileStatistics
from tahoe.protocol.statistics.thrift import I32, footer_of, with_footer
from tahoe.schema.mapping import explode, nested_ids_of
from tahoe.schema.types import ArrayType, DataType, MapType, StructType
from tahoe.store.log_store import Entry, LogStore


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file in storage, and the partition values of its rows, by physical name."""

    entry: Entry
    partition_values: dict[str, str | None]


@dataclass(frozen=True, slots=True)
class DescribedFile:
    """The description of a file.

    Args:
        furthest: the greatest values of identity columns that were generated, by physical name.
    """

    add: AddFile
    furthest: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Describe:
    """Describes the files of one job; it may be sent to executors.

    Args:
        numbered: the identity columns whose values the job generates; `numbers` has their leaf columns.
        indexed: the leaf columns that have statistics.
        patches: whether footers get the ids of array elements, map keys and map values.
    """

    store: LogStore
    config: TableConfig
    numbered: tuple[IdentityColumn, ...]
    numbers: Sequence[Leaf]
    indexed: Sequence[Leaf]
    prefix_length: int
    patches: bool

    @classmethod
    def of(cls, store: LogStore, config: TableConfig, numbered: Sequence[IdentityColumn]) -> Describe:
        """Compute the values that all files share."""
        configuration, names = config.metadata.configuration, {column.name for column in numbered}
        return cls(
            store,
            config,
            tuple(numbered),
            [(column,) for column in config.schema if column.name in names],
            indexed_columns(config.schema, config.partition_columns, configuration),
            string_prefix_length(configuration),
            config.iceberg_compat_version is not None and any(nested_ids_of(column) for _, column in explode(config.schema)),
        )


def described_file(describe: Describe, file: WrittenFile) -> DescribedFile | None:
    """Read a file's footer; return None for a file without rows."""
    entry, store, schema = file.entry, describe.store, describe.config.schema
    with store.open_input(entry.name) as source:
        metadata = pq.read_metadata(source)
    if metadata.num_rows == 0:
        return None
    size = entry.size
    if describe.patches:
        content = with_nested_ids(store.get(entry.name), schema)
        store.put(entry.name, content)
        size = len(content)
    statistics = statistics_of_footer(metadata, schema, describe.indexed, prefix_length=describe.prefix_length)
    add = with_statistics(AddFile(entry.name, file.partition_values, size, entry.modified_ms, True), statistics, describe.indexed)
    if not describe.numbered:
        return DescribedFile(add, {})
    numbers = statistics_of_footer(metadata, schema, describe.numbers)
    return DescribedFile(add, _furthest(numbers, describe.numbered, entry.name))


def _furthest(statistics: FileStatistics, columns: Iterable[IdentityColumn], file: str) -> Mapping[str, int]:
    """Return the greatest value of each identity column in a file (the least for a negative step), by physical name.

    Args:
        statistics: of these columns.

    Raises:
        CorruptTable: a footer without bounds, which Spark writes for every integer column.
    """
    furthest = {}
    for column in columns:
        bounds = statistics.max_values if column.step > 0 else statistics.min_values
        if column.physical_name not in bounds:
            raise CorruptTable(
                f"File {file}, which Spark has just written, does not say between which values its column '{column.name}' lies. Write again "
                "without options that turn statistics of Parquet off.",
                code="TAHOE_NO_BOUNDS",
                file=file,
                column=column.name,
            )
        furthest[column.physical_name] = int(bounds[column.physical_name])
    return furthest


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

    def walk(data_type: DataType, path: tuple[str, ...], key: str, nested_ids: object) -> Iterator[tuple[tuple[str, ...], int]]:
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
