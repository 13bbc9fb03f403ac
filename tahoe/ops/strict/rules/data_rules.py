"""Rules of the files that the newest version names: data files by their footers, deletion vectors, change files."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tahoe.base.exceptions import TahoeError
from tahoe.base.lazy import pq
from tahoe.ops.strict.held.in_force import Settings
from tahoe.ops.strict.held.rule import Breaches, Rule, rule
from tahoe.ops.strict.rules.file_rules import statistics_of
from tahoe.ops.strict.rules.iceberg_rules import active_version
from tahoe.ops.strict.rules.schema_rules import is_widening
from tahoe.protocol.actions import DeletionVectorDescriptor
from tahoe.protocol.dv import decode, file_name
from tahoe.protocol.features import Feature
from tahoe.store.location import decode_path
from tahoe.store.log_store import LogStore

if TYPE_CHECKING:
    from pyroaring import BitMap64

__all__ = [
    "CHANGE_RULES",
    "RULES",
    "VECTOR_RULES",
    "NamedFile",
    "change_files_have_their_size",
    "change_files_tell_the_type_of_change",
    "columns_have_the_types_of_the_schema",
    "columns_of_files_have_ids",
    "live_files_are_parquet",
    "live_files_are_there",
    "live_files_have_their_size",
    "partition_columns_are_materialised",
    "record_counts_are_those_of_files",
    "required_columns_have_no_nulls",
    "timestamps_are_not_int96",
    "vector_files_are_named_by_their_id",
    "vector_files_have_their_version",
    "vectors_can_be_read",
    "vectors_mark_rows_that_there_are",
]


@dataclass(frozen=True)
class NamedFile:
    """A file that an `add` or `cdc` action names.

    Args:
        settings: those in force now.
        written_under: the settings in force when the file was first added; None if unknown.
    """

    store: LogStore
    action: dict[str, Any]
    settings: Settings
    written_under: Settings | None

    @cached_property
    def name(self) -> str | None:
        """The store's name; None for an invalid path, which another rule reports."""
        try:
            return decode_path(str(self.action.get("path")), self.store.url, outside=True)
        except TahoeError:
            return None

    @cached_property
    def size(self) -> int | None:
        """The file's size in storage; None if it is missing."""
        held = None if self.name is None else self.store.head(self.name)
        return None if held is None else held.size

    @cached_property
    def footer(self) -> Any:
        """The file's Parquet metadata; None if it is missing or unreadable."""
        try:
            return None if self.name is None or self.size is None else pq.ParquetFile(self.store.open_input(self.name)).metadata
        except (TahoeError, pa.ArrowException, OSError):
            return None

    @cached_property
    def columns(self) -> dict[Any, pa.Field]:
        """The file's top-level columns by name, and by Parquet field id."""
        if self.footer is None:
            return {}
        found: dict[Any, pa.Field] = {}
        for each in self.footer.schema.to_arrow_schema():
            found[each.name] = each
            number = (each.metadata or {}).get(b"PARQUET:field_id")
            if number is not None:
                found[int(number)] = each
        return found

    @cached_property
    def vector(self) -> BitMap64 | str | None:
        """The deleted rows, or the fault of the vector; None without one."""
        held = self.action.get("deletionVector")
        if not isinstance(held, dict):
            return None
        try:
            descriptor = _descriptor(held)
            return decode(descriptor, self.store.get, self.store.url)
        except (TahoeError, KeyError, TypeError, ValueError) as error:
            return error.message if isinstance(error, TahoeError) else str(error)


def _descriptor(held: dict[str, Any]) -> DeletionVectorDescriptor:
    return DeletionVectorDescriptor(
        storage_type=held["storageType"],
        path_or_inline_dv=held["pathOrInlineDv"],
        size_in_bytes=held["sizeInBytes"],
        cardinality=held["cardinality"],
        offset=held.get("offset"),
    )


# -- data files ------------------------------------------------------------------------------------------------------------


@rule("Data Files")
def live_files_are_there(held: NamedFile) -> Breaches:
    """Live files exist in storage."""
    if held.name is not None and held.size is None:
        yield "the data file is missing"


@rule("Add File and Remove File")
def live_files_have_their_size(held: NamedFile) -> Breaches:
    """The size in storage is the one in the log."""
    if held.size is not None and held.size != held.action.get("size"):
        yield f"the data file has {held.size} bytes, the log says {held.action.get('size')}"


@rule("Data Files")
def live_files_are_parquet(held: NamedFile) -> Breaches:
    """The footer of each live file can be read."""
    if held.size is not None and held.footer is None:
        yield "the data file is no Parquet file that can be read"


@rule("Per-file Statistics")
def record_counts_are_those_of_files(held: NamedFile) -> Breaches:
    """`numRecords` equals the footer's row count, deleted rows included."""
    said = (statistics_of(held.action) or {}).get("numRecords")
    if held.footer is not None and said is not None and said != held.footer.num_rows:
        yield f"numRecords is {said}, the file has {held.footer.num_rows} rows"


@rule("Consistency Between Table Metadata and Data Files")
def columns_have_the_types_of_the_schema(held: NamedFile) -> Breaches:
    """The types are those of the schema, or narrower ones if types may widen."""
    widens = held.settings.supports(Feature.TYPE_WIDENING) or held.settings.supports(Feature.TYPE_WIDENING_PREVIEW)
    for name, field in held.settings.columns.items():
        if not isinstance(field.type, str) or name in held.settings.partition_columns:
            continue
        found = _column(held, name)
        names = _DELTA_TYPES(found.type) if found is not None else ()
        stored = "binary" if field.type.startswith(("geometry", "geography")) else field.type
        if names and stored not in names and not (widens and any(is_widening(each, field.type) for each in names)):
            yield f"column {name} is {field.type}, and {found.type if found is not None else None} in the file"


def _column(held: NamedFile, name: str) -> pa.Field | None:
    if held.settings.mapping_mode == "id":
        return held.columns.get(held.settings.columns[name].metadata.get("delta.columnMapping.id"))
    return held.columns.get(held.settings.physical_name(name))


def _DELTA_TYPES(kind: pa.DataType) -> tuple[str, ...]:  # noqa: N802 - a table, with one row that is computed
    if pa.types.is_timestamp(kind):
        return ("timestamp", "timestamp_ntz") if kind.unit == "ns" else ("timestamp" if kind.tz else "timestamp_ntz",)
    if pa.types.is_decimal(kind):
        return (f"decimal({kind.precision},{kind.scale})",)
    return _NAMES.get(kind, ())


_NAMES: dict[pa.DataType, tuple[str, ...]] = {
    pa.bool_(): ("boolean",),
    pa.int8(): ("byte",),
    pa.int16(): ("short",),
    pa.int32(): ("integer",),
    pa.int64(): ("long",),
    pa.float32(): ("float",),
    pa.float64(): ("double",),
    pa.string(): ("string",),
    pa.large_string(): ("string",),
    pa.binary(): ("binary",),
    pa.large_binary(): ("binary",),
    pa.date32(): ("date",),
}


@rule("Writer Requirements for Column Mapping")
def columns_of_files_have_ids(held: NamedFile) -> Breaches:
    """The `field_id` of a column is the schema's, if columns are mapped by id."""
    if held.settings.mapping_mode != "id" or held.footer is None:
        return
    for name, field in held.settings.columns.items():
        found = held.columns.get(field.physical[0])
        number = None if found is None else (found.metadata or {}).get(b"PARQUET:field_id")
        if found is not None and number is not None and int(number) != field.metadata.get("delta.columnMapping.id"):
            yield f"column {name} has the id {field.metadata.get('delta.columnMapping.id')}, and {int(number)} in the file"
    if held.columns and not any(isinstance(key, int) for key in held.columns):
        yield "columns are found by ids, and the file has none"


@rule("Struct Field")
def required_columns_have_no_nulls(held: NamedFile) -> Breaches:
    """Checked by the statistics in the file's own footer."""
    if held.footer is None or held.action.get("deletionVector"):
        return
    required = {
        (found.name if (found := _column(held, name)) is not None else name): name
        for name, field in held.settings.columns.items()
        if field.raw.get("nullable") is False and isinstance(field.type, str)
    }
    for group in range(held.footer.num_row_groups):
        for position in range(held.footer.num_columns) if required else ():
            column = held.footer.row_group(group).column(position)
            statistics = column.statistics
            if (
                column.path_in_schema in required
                and statistics is not None
                and statistics.has_null_count
                and statistics.null_count
            ):
                yield f"column {required[column.path_in_schema]} is not nullable, and {statistics.null_count} of its values are null"


@rule("Writer Requirements for IcebergCompatV2")
def partition_columns_are_materialised(held: NamedFile) -> Breaches:
    """With version 1, in every file of the table; with a later version, in the files written while it is active."""
    if held.footer is None or not (active_version(held.settings) == 1 or _written_for_iceberg(held)):
        return
    for name in held.settings.partition_columns:
        if held.settings.physical_name(name) not in held.columns:
            yield f"icebergCompat is active, and the file lacks the partition column {name}"


@rule("Writer Requirements for IcebergCompatV2")
def timestamps_are_not_int96(held: NamedFile) -> Breaches:
    """They are int64 in the files written while version 2 or 3 is active."""
    if held.footer is None or not _written_for_iceberg(held):
        return
    for position in range(held.footer.num_columns):
        column = held.footer.schema.column(position)
        if column.physical_type == "INT96":
            yield f"icebergCompat is active, and column {column.path} is written as int96"


def _written_for_iceberg(held: NamedFile) -> bool:
    return held.written_under is not None and active_version(held.written_under) in (2, 3)


RULES: tuple[Rule[NamedFile], ...] = (
    live_files_are_there,
    live_files_have_their_size,
    live_files_are_parquet,
    record_counts_are_those_of_files,
    columns_have_the_types_of_the_schema,
    columns_of_files_have_ids,
    required_columns_have_no_nulls,
    partition_columns_are_materialised,
    timestamps_are_not_int96,
)


# -- deletion vectors ------------------------------------------------------------------------------------------------------


@rule("Deletion Vector Format")
def vectors_can_be_read(held: NamedFile) -> Breaches:
    """Magic number, size, checksum and cardinality are right."""
    if isinstance(held.vector, str):
        yield held.vector


@rule("Deletion Vector Format")
def vectors_mark_rows_that_there_are(held: NamedFile) -> Breaches:
    """Positions are within the file."""
    vector = held.vector
    if (
        vector is not None
        and not isinstance(vector, str)
        and held.footer is not None
        and len(vector)
        and vector.max() >= held.footer.num_rows
    ):
        yield f"the deletion vector marks row {vector.max()} of {held.footer.num_rows}"


@rule("Deletion Vector File Storage Format")
def vector_files_have_their_version(held: NamedFile) -> Breaches:
    """The first byte is 1; each vector is followed by its CRC-32."""
    content = _vector_file(held)
    if content is None:
        return
    if content[:1] != b"\1":
        yield f"the deletion vector's file begins with {content[:1]!r}, expected the version 1"
    held_vector = held.action["deletionVector"]
    at, size = held_vector.get("offset") or 0, held_vector.get("sizeInBytes") or 0
    data = content[at + 4 : at + 4 + size]
    stored = content[at + 4 + size : at + 8 + size]
    if at and len(stored) == 4 and struct.unpack(">I", stored)[0] != zlib.crc32(data):
        yield "the CRC-32 behind the deletion vector is not that of its bytes"


def _vector_file(held: NamedFile) -> bytes | None:
    vector = held.action.get("deletionVector")
    if not isinstance(vector, dict) or vector.get("storageType") not in ("u", "p"):
        return None
    try:
        name = file_name(_descriptor(vector), held.store.url)
        return None if name is None else held.store.get(name)
    except (TahoeError, KeyError, TypeError, ValueError):
        return None  # reported where it is decoded


@rule("Deletion Vector Files")
def vector_files_are_named_by_their_id(held: NamedFile) -> Breaches:
    """A relative one is in the table's root, at most below its random prefix."""
    vector = held.action.get("deletionVector")
    if isinstance(vector, dict) and vector.get("storageType") == "u":
        prefix = str(vector.get("pathOrInlineDv"))[:-20]
        if not re.fullmatch(r"[0-9A-Za-z_-]*", prefix):
            yield f"the prefix {prefix!r:.40} of the deletion vector's path is no folder's name"


VECTOR_RULES: tuple[Rule[NamedFile], ...] = (
    vectors_can_be_read,
    vectors_mark_rows_that_there_are,
    vector_files_have_their_version,
    vector_files_are_named_by_their_id,
)


# -- change files ----------------------------------------------------------------------------------------------------------

_CHANGE_TYPES = frozenset({"insert", "delete", "update_preimage", "update_postimage"})


@rule("Change Data Files")
def change_files_tell_the_type_of_change(held: NamedFile) -> Breaches:
    """It is in the column ``_change_type``. Files that VACUUM deleted are ignored."""
    if held.footer is None:
        return
    if "_change_type" not in held.columns:
        yield "the change file has no column _change_type"
        return
    wrong = set(_read(held, lambda file: file.read(["_change_type"])["_change_type"].to_pylist())) - _CHANGE_TYPES
    if wrong:
        yield f"the change file has rows of the types {sorted(map(str, wrong))}"


def _read(held: NamedFile, wanted: Callable[[Any], list[Any]]) -> Iterator[Any]:
    assert held.name is not None
    yield from wanted(pq.ParquetFile(held.store.open_input(held.name)))


@rule("Add CDC File")
def change_files_have_their_size(held: NamedFile) -> Breaches:
    """The size in storage is the one in the log."""
    if held.size is not None and held.size != held.action.get("size"):
        yield f"the change file has {held.size} bytes, the log says {held.action.get('size')}"


CHANGE_RULES: tuple[Rule[NamedFile], ...] = (change_files_tell_the_type_of_change, change_files_have_their_size)
