"""Creates the action that adds a file written by Spark: with statistics from its footer, and its greatest identity values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tahoe.base.exceptions import CorruptTable
from tahoe.base.lazy import pq
from tahoe.protocol.actions import AddFile
from tahoe.protocol.column_values.identity import IdentityColumn
from tahoe.protocol.config import TableConfig
from tahoe.protocol.nan_bounds import with_statistics
from tahoe.protocol.statistics.bounds import Leaf
from tahoe.protocol.statistics.collect import indexed_columns, statistics_of_footer, string_prefix_length
from tahoe.protocol.statistics.file_statistics import FileStatistics
from tahoe.schema.mapping import explode, nested_ids_of
from tahoe.spark.executors.parquet_ids import with_nested_ids
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
