"""The layout of a table's rows in data files: columns under physical names, in the types of Parquet. Nothing is written here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from tahoe.base.exceptions import InvalidRequest, SchemaMismatch
from tahoe.base.lazy import pc
from tahoe.protocol.config import TableConfig
from tahoe.protocol.constraints import null_found
from tahoe.protocol.partition import serialize
from tahoe.schema.arrow import to_arrow_type
from tahoe.schema.arrow_values import nulls, scalar
from tahoe.schema.cast import FIELD_ID, GIVEN, CannotCast, conform, find_logical, nulls_where_forbidden
from tahoe.schema.evolve import without_void
from tahoe.schema.geospatial import WellKnownBinary
from tahoe.schema.mapping import nested_ids_of
from tahoe.schema.text_limits import has_char
from tahoe.schema.text_validity import validate
from tahoe.schema.types import ArrayType, DataType, MapType, StructField, StructType, is_geospatial
from tahoe.schema.walk import paths_of_type
from tahoe.schema.well_known_binary import first_fault

Partition = tuple[str | None, ...]
"""The values of a file's partition columns, as in the log."""


def file_schema(config: TableConfig) -> pa.Schema:
    """Return the Arrow schema of new data files: physical names, field ids if columns are mapped, no void columns; partition columns
    at the end if the table materializes them, else absent."""
    layout = Layout.of(config)
    return pa.schema([layout.schema.field(name) for name in layout.file_columns])


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of a table's new files.

    Args:
        columns: logical fields that are stored, data columns first, without void columns at every depth.
        schema: their Arrow schema under physical names.
        partition: those of `columns` that partition the table.
        file_columns: physical names of the columns that go into data files.
        table: the table's URL, for messages.
    """

    columns: tuple[StructField, ...]
    schema: pa.Schema
    partition: tuple[StructField, ...]
    file_columns: list[str]
    table: str

    @classmethod
    def of(cls, config: TableConfig) -> Layout:
        """Return the layout of a table's new files."""
        data_columns = without_void(config.data_schema).fields
        partition = config.partition_schema.fields
        with_ids = config.column_mapping_mode != "none"
        columns = (*data_columns, *partition)
        stored = columns if config.materializes_partition_columns else data_columns
        return cls(
            columns,
            pa.schema([_physical_field(column, with_ids) for column in columns]),
            partition,
            [column.physical_name for column in stored],
            config.table,
        )

    def conformed(self, table: pa.Table, *, are_valid: bool = False) -> pa.Table:
        """Convert rows to this layout; raises for values that do not fit or must not be null.

        Args:
            are_valid: the rows were validated when they were read from the table, so their texts are not checked again.
        """
        source = pa.struct(table.schema)
        arrays = []
        for column, target in zip(self.columns, self.schema, strict=True):
            position = find_logical(source, column)
            if position is None:
                arrays.append(nulls(table.num_rows, target.type))
                continue
            chunks = [self._values(chunk, column, target.type, are_valid) for chunk in table.column(position).chunks]
            arrays.append(chunks[0] if len(chunks) == 1 else pa.chunked_array(chunks, target.type))
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def _values(self, values: pa.Array, column: StructField, target: pa.DataType, are_valid: bool) -> pa.Array:
        try:
            stored = conform(values, column.data_type, target, GIVEN, (column.name,))
            if not are_valid:
                validate(stored)
                _check_geometries(stored, column)
        except CannotCast as error:
            raise _does_not_fit(error, column, self.table) from error
        except pa.ArrowInvalid as error:
            raise InvalidRequest(
                f"The data of column '{column.name}' for table {self.table} is not valid: {error}. "
                "Correct it before it is written.",
                code="TAHOE_INVALID_DATA",
                column=column.name,
            ) from error
        if column in self.partition and stored.null_count < len(stored) and not has_char(column):
            stored = _empty_as_null(stored)
        forbidden: tuple[str, ...] | None = (column.name,) if stored.null_count and not column.nullable else None
        if forbidden is None and pa.types.is_nested(target):
            forbidden = next(nulls_where_forbidden(stored, column.data_type, (column.name,)), None)
        if forbidden is not None:
            raise null_found(forbidden, self.table)
        return stored

    def partitions_of(self, table: pa.Table) -> Iterator[tuple[Partition, pa.Table]]:
        """Yield the rows of each partition, with its values as in the log; rows keep their order."""
        if not self.partition:
            yield (), table
            return
        codes = _codes([table.column(column.physical_name).combine_chunks() for column in self.partition])
        if len(codes.unique()) > 1:
            order = pc.sort_indices(codes)  # stable
            table, codes = table.take(order), codes.take(order)
        start = 0
        for end in pc.run_end_encode(codes).run_ends.to_pylist():
            rows = table.slice(start, end - start)
            first = [rows.column(column.physical_name)[0].as_py() for column in self.partition]
            yield tuple(serialize(v, c.data_type) for v, c in zip(first, self.partition, strict=True)), rows
            start = end


def _codes(columns: list[pa.Array]) -> pa.Array:
    """Return one number per row; rows with equal partition values have equal numbers."""
    codes: pa.Array | None = None
    for column in columns:
        encoded = pc.dictionary_encode(column, null_encoding="encode")
        indices = encoded.indices.cast(pa.int64())
        # Numbers are compacted after each column, so that the product of the columns' sizes cannot overflow.
        codes = (
            indices
            if codes is None
            else pc.dictionary_encode(pc.add(pc.multiply(codes, len(encoded.dictionary)), indices)).indices.cast(pa.int64())
        )
    assert codes is not None
    return codes


def _empty_as_null(values: pa.Array) -> pa.Array:
    """Replace empty texts by null before NOT NULL is checked, because the log does not distinguish them in partition values. A ``char(n)``
    is never empty, as it is padded with blanks."""
    if not (pa.types.is_string(values.type) or pa.types.is_binary(values.type)):
        return values
    return pc.if_else(pc.equal(pc.binary_length(values), scalar(0)), scalar(None, values.type), values)


def _physical_field(column: StructField, with_ids: bool) -> pa.Field:
    nested = nested_ids_of(column) if with_ids else {}
    metadata = {FIELD_ID: str(column.field_id)} if with_ids and column.field_id is not None else None
    data_type = _physical_type(column.data_type, column.physical_name, nested, with_ids)
    return pa.field(column.physical_name, data_type, column.nullable, metadata)


def _physical_type(data_type: DataType, path: str, nested: Mapping[str, int], with_ids: bool) -> pa.DataType:
    """The Arrow type under physical names; `path` and `nested` give the ids of elements, keys and values."""

    def part(name: str, inner: DataType, nullable: bool) -> pa.Field:
        key = f"{path}.{name}"
        metadata = {FIELD_ID: str(nested[key])} if key in nested else None
        return pa.field(name, _physical_type(inner, key, nested, with_ids), nullable, metadata)

    match data_type:
        case StructType(fields):
            return pa.struct([_physical_field(column, with_ids) for column in fields])
        case ArrayType(element, contains_null):
            return pa.list_(part("element", element, contains_null))
        case MapType(key, value, value_contains_null):
            return pa.map_(part("key", key, False), part("value", value, value_contains_null))
    return WellKnownBinary(str(data_type)) if is_geospatial(data_type) else to_arrow_type(data_type)


def _check_geometries(values: pa.Array, column: StructField) -> None:
    if paths_of_type(StructType((column,)), is_geospatial):
        fault = first_fault(values, column.data_type)
        if fault is not None:
            raise CannotCast(pa.binary(), values.type, (column.name,), f"one is no geometry in Well-Known Binary: {fault}")


def _type_name(target: pa.DataType) -> str:
    return target.name if isinstance(target, WellKnownBinary) else str(target)


def _does_not_fit(error: CannotCast, column: StructField, table: str) -> SchemaMismatch:
    name = ".".join(error.path)
    return SchemaMismatch(
        f"Values of column '{name}' ({error.source}) do not fit table {table}, where the column's type is {_type_name(error.target)}"
        f"{f': {error.reason}' if error.reason else ''}. Correct the values or cast the column; nothing was committed.",
        code="DELTA_CAST_OVERFLOW_IN_TABLE_WRITE",
        table=table,
        column=name,
    )
