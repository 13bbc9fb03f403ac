"""Rules of the files that the newest version names: data files by their footers, deletion vectors, change files."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tahoe.base.exceptions import CorruptTable, TahoeError
from tahoe.base.lazy import pq
from tahoe.ops.check.rules.file_rules import statistics_of
from tahoe.ops.check.rules.iceberg_rules import active_version
from tahoe.ops.check.rules.schema_rules import is_widening
from tahoe.ops.check.subjects.rule import Breaches, RuleList
from tahoe.ops.check.subjects.table_settings import Settings
from tahoe.protocol.actions import DeletionVectorDescriptor
from tahoe.protocol.dv import decode, file_name
from tahoe.protocol.features import Feature
from tahoe.schema.geospatial import is_geospatial_name
from tahoe.store.location import decode_path
from tahoe.store.log_store import LogStore

if TYPE_CHECKING:
    from pyroaring import BitMap64


RULES: RuleList[NamedFile] = RuleList()
VECTOR_RULES: RuleList[NamedFile] = RuleList()
CHANGE_RULES: RuleList[NamedFile] = RuleList()


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

    @property
    def shown(self) -> str:
        """The name for messages: an invalid path as in the log."""
        return self.name or str(self.action.get("path"))

    @cached_property
    def size(self) -> int | None:
        """The file's size in storage; None if it is missing."""
        entry = None if self.name is None else self.store.head(self.name)
        return None if entry is None else entry.size

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
        columns: dict[Any, pa.Field] = {}
        for field in self.footer.schema.to_arrow_schema():
            columns[field.name] = field
            number = (field.metadata or {}).get(b"PARQUET:field_id")
            if number is not None:
                columns[int(number)] = field
        return columns

    @cached_property
    def vector(self) -> BitMap64 | str | None:
        """The deleted rows, or the fault of the vector; None without one."""
        descriptor = self.action.get("deletionVector")
        if not isinstance(descriptor, dict):
            return None
        try:
            return decode(DeletionVectorDescriptor.from_json_value(descriptor), self.store.get, self.store.url)
        except (TahoeError, KeyError, TypeError, ValueError) as error:
            return error.message if isinstance(error, TahoeError) else str(error)


# -- data files ------------------------------------------------------------------------------------------------------------


@RULES.rule("Data Files")
def live_files_are_there(file: NamedFile) -> Breaches:
    """Live files exist in storage."""
    if file.name is not None and file.size is None:
        yield "the data file is missing"


@RULES.rule("Add File and Remove File")
def live_files_have_their_size(file: NamedFile) -> Breaches:
    """The size in storage is the one in the log."""
    if file.size is not None and file.size != file.action.get("size"):
        yield f"the data file has {file.size} bytes, the log says {file.action.get('size')}"


@RULES.rule("Data Files")
def live_files_are_parquet(file: NamedFile) -> Breaches:
    """The footer of each live file can be read."""
    if file.size is not None and file.footer is None:
        yield "the data file is no Parquet file that can be read"


@RULES.rule("Per-file Statistics")
def record_counts_are_those_of_files(file: NamedFile) -> Breaches:
    """`numRecords` equals the footer's row count, deleted rows included."""
    stated = (statistics_of(file.action) or {}).get("numRecords")
    if file.footer is not None and stated is not None and stated != file.footer.num_rows:
        yield f"numRecords is {stated}, the file has {file.footer.num_rows} rows"


@RULES.rule("Consistency Between Table Metadata and Data Files")
def columns_have_the_types_of_the_schema(file: NamedFile) -> Breaches:
    """The types are those of the schema, or narrower ones if types may widen."""
    widens = file.settings.supports(Feature.TYPE_WIDENING) or file.settings.supports(Feature.TYPE_WIDENING_PREVIEW)
    for name, field in file.settings.columns.items():
        if not isinstance(field.type, str) or name in file.settings.partition_columns:
            continue
        column = _column(file, name)
        names = _DELTA_TYPES(column.type) if column is not None else ()
        stored = "binary" if is_geospatial_name(field.type) else field.type
        if names and stored not in names and not (widens and any(is_widening(each, field.type) for each in names)):
            yield f"column {name} is {field.type}, and {column.type if column is not None else None} in the file"


def _column(file: NamedFile, name: str) -> pa.Field | None:
    if file.settings.mapping_mode == "id":
        return file.columns.get(file.settings.columns[name].metadata.get("delta.columnMapping.id"))
    return file.columns.get(file.settings.physical_name(name))


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


@RULES.rule("Writer Requirements for Column Mapping")
def columns_of_files_have_ids(file: NamedFile) -> Breaches:
    """The `field_id` of a column is the schema's, if columns are mapped by id."""
    if file.settings.mapping_mode != "id" or file.footer is None:
        return
    for name, field in file.settings.columns.items():
        column = file.columns.get(field.physical[0])
        number = None if column is None else (column.metadata or {}).get(b"PARQUET:field_id")
        if column is not None and number is not None and int(number) != field.metadata.get("delta.columnMapping.id"):
            yield f"column {name} has the id {field.metadata.get('delta.columnMapping.id')}, and {int(number)} in the file"
    if file.columns and not any(isinstance(key, int) for key in file.columns):
        yield "columns are column by ids, and the file has none"


@RULES.rule("Struct Field")
def required_columns_have_no_nulls(file: NamedFile) -> Breaches:
    """Checked by the statistics in the file's own footer."""
    if file.footer is None or file.action.get("deletionVector"):
        return
    required = {
        (field_of_file.name if (field_of_file := _column(file, name)) is not None else name): name
        for name, field in file.settings.columns.items()
        if field.raw.get("nullable") is False and isinstance(field.type, str)
    }
    for group in range(file.footer.num_row_groups):
        for position in range(file.footer.num_columns) if required else ():
            column = file.footer.row_group(group).column(position)
            statistics = column.statistics
            if (
                column.path_in_schema in required
                and statistics is not None
                and statistics.has_null_count
                and statistics.null_count
            ):
                yield f"column {required[column.path_in_schema]} is not nullable, and {statistics.null_count} of its values are null"


@RULES.rule("Writer Requirements for IcebergCompatV2")
def partition_columns_are_materialised(file: NamedFile) -> Breaches:
    """With version 1, in every file of the table; with a later version, in the files written while it is active."""
    if file.footer is None or not (active_version(file.settings) == 1 or _written_for_iceberg(file)):
        return
    for name in file.settings.partition_columns:
        if file.settings.physical_name(name) not in file.columns:
            yield f"icebergCompat is active, and the file lacks the partition column {name}"


@RULES.rule("Writer Requirements for IcebergCompatV2")
def timestamps_are_not_int96(file: NamedFile) -> Breaches:
    """They are int64 in the files written while version 2 or 3 is active."""
    if file.footer is None or not _written_for_iceberg(file):
        return
    for position in range(file.footer.num_columns):
        column = file.footer.schema.column(position)
        if column.physical_type == "INT96":
            yield f"icebergCompat is active, and column {column.path} is written as int96"


def _written_for_iceberg(file: NamedFile) -> bool:
    return file.written_under is not None and active_version(file.written_under) in (2, 3)


# -- deletion vectors ------------------------------------------------------------------------------------------------------


@VECTOR_RULES.rule("Deletion Vector Format")
def vectors_can_be_read(file: NamedFile) -> Breaches:
    """Magic number, size, checksum and cardinality are right."""
    if isinstance(file.vector, str):
        yield file.vector


@VECTOR_RULES.rule("Deletion Vector Format")
def vectors_mark_rows_that_there_are(file: NamedFile) -> Breaches:
    """Positions are within the file."""
    vector = file.vector
    if (
        vector is not None
        and not isinstance(vector, str)
        and file.footer is not None
        and len(vector)
        and vector.max() >= file.footer.num_rows
    ):
        yield f"the deletion vector marks row {vector.max()} of {file.footer.num_rows}"


@VECTOR_RULES.rule("Deletion Vector File Storage Format")
def vector_files_have_their_version(file: NamedFile) -> Breaches:
    """The first byte is 1; each vector is followed by its CRC-32."""
    content = _vector_file(file)
    if content is None:
        return
    if content[:1] != b"\1":
        yield f"the deletion vector's file begins with {content[:1]!r}, expected the version 1"
    vector = file.action["deletionVector"]
    at, size = vector.get("offset") or 0, vector.get("sizeInBytes") or 0
    data = content[at + 4 : at + 4 + size]
    stored = content[at + 4 + size : at + 8 + size]
    if at and len(stored) == 4 and struct.unpack(">I", stored)[0] != zlib.crc32(data):
        yield "the CRC-32 behind the deletion vector is not that of its bytes"


def _vector_file(file: NamedFile) -> bytes | None:
    vector = file.action.get("deletionVector")
    if not isinstance(vector, dict) or vector.get("storageType") not in ("u", "p"):
        return None
    try:
        name = file_name(DeletionVectorDescriptor.from_json_value(vector), file.store.url)
        return None if name is None else file.store.get(name)
    except (TahoeError, KeyError, TypeError, ValueError):
        return None  # reported where it is decoded


@VECTOR_RULES.rule("Deletion Vector Files")
def vector_files_are_named_by_their_id(file: NamedFile) -> Breaches:
    """A relative one is in the table's root, at most below its random prefix."""
    vector = file.action.get("deletionVector")
    if isinstance(vector, dict) and vector.get("storageType") == "u":
        prefix = str(vector.get("pathOrInlineDv"))[:-20]
        if not re.fullmatch(r"[0-9A-Za-z_-]*", prefix):
            yield f"the prefix {prefix!r:.40} of the deletion vector's path is no folder's name"


# -- change files ----------------------------------------------------------------------------------------------------------

_CHANGE_TYPES = frozenset({"insert", "delete", "update_preimage", "update_postimage"})
_BATCH_ROWS = 65_536


@CHANGE_RULES.rule("Change Data Files", deep="change-data")
def change_files_tell_the_type_of_change(file: NamedFile) -> Breaches:
    """It is in the column ``_change_type``; the page checksums are verified. Files that VACUUM deleted are ignored."""
    if file.name is None or file.size is None or (file.footer is None and file.size != file.action.get("size")):
        return
    with file.store.open_input(file.name) as source, arrow_errors_as_corruption(file.name):
        for batch in parquet_file(source).iter_batches(_BATCH_ROWS, use_threads=False):
            position = batch.schema.get_field_index("_change_type")
            types = {None} if position < 0 else set(batch.column(position).unique().to_pylist())
            if types - _CHANGE_TYPES:
                yield f"change-data file {file.name} has no _change_type in some rows, or one that is not known"
                return


@CHANGE_RULES.rule("Add CDC File", deep="change-data")
def change_files_have_their_size(file: NamedFile) -> Breaches:
    """The size in storage is the one in the log."""
    if file.size is not None and file.size != file.action.get("size"):
        yield f"the change file has {file.size} bytes, the log says {file.action.get('size')}"


def parquet_file(source: pa.NativeFile) -> pq.ParquetFile:
    """Open a file whose page checksums are verified when it is read."""
    return pq.ParquetFile(
        source, page_checksum_verification=True, arrow_extensions_enabled=False, coerce_int96_timestamp_unit="us"
    )


@contextmanager
def arrow_errors_as_corruption(name: str) -> Iterator[None]:
    """Convert errors of Arrow into `CorruptTable` with the file's name."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, TahoeError):
            raise
        raise CorruptTable(
            f"Data file '{name}' cannot be read as Parquet: {error}.", code="TAHOE_DATA_FILE_DAMAGED", file=name
        ) from error
