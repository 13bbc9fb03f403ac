"""Whether a stream that reads with one schema can continue when a commit changes the metadata.

An added column stops the stream until it is restarted, and is then read with the newer schema. Data that cannot be read with one schema
(a column dropped, renamed, or of another type) stops the stream permanently.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from tahoe.base.exceptions import InvalidRequest
from tahoe.protocol.config import TableConfig
from tahoe.protocol.features import Feature
from tahoe.schema.types import ArrayType, DataType, MapType, PrimitiveType, StructType
from tahoe.schema.widening import is_widening
from tahoe.stream.position import check_same_table
from tahoe.stream.source_options import IgnoredChanges


@dataclass(frozen=True)
class ReadSchema:
    """The version whose schema all rows of a stream have.

    Args:
        has_start: whether the stream's options set a start, for the remedy.
    """

    config: TableConfig
    version: int
    has_start: bool = False
    ignored: IgnoredChanges = field(default_factory=IgnoredChanges)

    def check(self, data: TableConfig, version: int, *, is_start: bool = False) -> None:
        """Check that rows written with this protocol and metadata can be read with the stream's schema.

        Args:
            is_start: whether the stream starts or continues at this version.

        Raises:
            InvalidRequest: ``DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE``,
                ``DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG`` for a column dropped or renamed by column mapping,
                ``DELTA_SCHEMA_CHANGED_WITH_VERSION``, or ``DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS`` if the stream's options set a
                start.
            Unsupported: this version of Tahoe cannot read the table any more.
        """
        data.ensure_readable()
        is_older = version < self.version
        old, new = (data, self.config) if is_older else (self.config, data)
        check_same_table(self.config.metadata.id, data.metadata.id, data.table)
        ignored = self.ignored
        same_partitions = ignored.partition_columns or old.partition_columns == new.partition_columns
        if not ignored.column_mapping and _renames_or_drops(old, new, same_partitions=same_partitions):
            raise self._error(_TRACKABLE, data, version, can_go_on=False)
        if is_start and ignored.before_start:
            return
        widens = not _WIDENING.isdisjoint(self.config.protocol.reader_features or ())
        loses_columns = ignored.column_mapping and is_older and self.config.column_mapping_mode != "none"
        compares = partial(reads, may_have_nulls=ignored.nullability)
        fits = compares(data.schema, self.config.schema, widens=widens and is_older, whole=not loses_columns)
        if fits and (same_partitions or loses_columns):
            return
        code = "DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS" if self.has_start else "DELTA_SCHEMA_CHANGED_WITH_VERSION"
        widens = not _WIDENING.isdisjoint(data.protocol.reader_features or ())
        can_go_on = not is_older and same_partitions and compares(self.config.schema, data.schema, widens=widens)
        raise self._error(code, data, version, can_go_on=can_go_on)

    def _error(self, code: str, data: TableConfig, version: int, *, can_go_on: bool) -> InvalidRequest:
        if can_go_on:
            remedy = "Start the stream again from its last position: it continues with the newer schema."
        else:
            remedy = f"Start a new stream, without the old position or checkpoint, from version {max(version, self.version)} on"
            remedy += ", with that as its starting version." if self.has_start else "."
            if code == _TRACKABLE:
                remedy += (
                    " A Spark stream can also continue with the option 'schemaTrackingLocation', a folder below its checkpoint: it then "
                    "tracks schema changes."
                )
        return InvalidRequest(
            f"The schema of table {data.table} at version {version} differs from version {self.version}, with which the stream reads. The "
            f"stream has {_described(self.config)}; version {version} has {_described(data)}. {remedy}",
            code=code,
            table=data.table,
            version=version,
        )


_WIDENING = frozenset({Feature.TYPE_WIDENING, Feature.TYPE_WIDENING_PREVIEW})
_VOID = PrimitiveType("void")
_TRACKABLE = "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"


def _described(config: TableConfig) -> str:
    partitioned = f", partitioned by {', '.join(config.partition_columns)}" if config.partition_columns else ""
    return f"{config.schema}{partitioned}"


def _renames_or_drops(old: TableConfig, new: TableConfig, *, same_partitions: bool) -> bool:
    """Whether column mapping renamed or lost a column, or was disabled."""
    if new.column_mapping_mode == "none":
        return old.column_mapping_mode != "none"
    later = dict(_columns(new.schema))
    return not same_partitions or any(later.get(physical) != name for physical, name in _columns(old.schema))


def _columns(data_type: DataType, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield each field at any depth: the physical names on the path to it, and its own name."""
    match data_type:
        case StructType(fields):
            for field in fields:
                path = (*above, field.physical_name)
                yield path, field.name
                yield from _columns(field.data_type, path)
        case ArrayType(element):
            yield from _columns(element, (*above, "element"))
        case MapType(key, value):
            yield from _columns(key, (*above, "key"))
            yield from _columns(value, (*above, "value"))


def reads(data: DataType, read: DataType, *, widens: bool, whole: bool = True, may_have_nulls: bool = False) -> bool:
    """Whether rows of the type `data` can be represented by the type `read`.

    Args:
        widens: whether a type may have become wider.
        whole: whether every field of the rows must be represented.
        may_have_nulls: whether the rows may have nulls that `read` excludes.
    """

    def reads_inner(inner_data: DataType, inner_read: DataType) -> bool:
        return reads(inner_data, inner_read, widens=widens, whole=whole, may_have_nulls=may_have_nulls)

    match data, read:
        case StructType(fields), StructType():
            # A name that differs only in case is another name.
            read_fields = {field.name: field for field in read}
            return all(
                ((target.nullable or may_have_nulls or not field.nullable) and reads_inner(field.data_type, target.data_type))
                if (target := read_fields.get(field.name)) is not None
                else not whole
                for field in fields
            )
        case ArrayType(), ArrayType():
            return (read.contains_null or may_have_nulls or not data.contains_null) and reads_inner(
                data.element_type, read.element_type
            )
        case MapType(), MapType():
            return (
                (read.value_contains_null or may_have_nulls or not data.value_contains_null)
                and reads_inner(data.key_type, read.key_type)
                and reads_inner(data.value_type, read.value_type)
            )
    return data in (read, _VOID) or (widens and is_widening(data, read))
