"""Matches columns by position, as INSERT matches the columns of a query and the fields of their structs.

Delta-spark matches fields of structs by position only if it adjusts the query to the table: if names of columns or types differ. If they
are the same, fields match by name, as in every write of a DataFrame by name.
"""

from __future__ import annotations

from dataclasses import replace

from tahoe.base.exceptions import SchemaMismatch
from tahoe.schema.types import ArrayType, DataType, MapType, PrimitiveType, StructType
from tahoe.schema.widening import NO_WIDENING, Widening

_VOID = PrimitiveType("void")


def fits_by_name(data: StructType, table: StructType, widening: Widening = NO_WIDENING) -> bool:
    """Whether data with these columns can be written by name unchanged: it has every column and field of the table, with the same spelling
    and type. Columns and fields that only the data has do not matter.
    """
    by_name = {column.name.lower(): column for column in data}
    for target in table:
        source = by_name.get(target.name.lower())
        if source is None or source.name != target.name or not _fits(source.data_type, target.data_type, widening):
            return False
    return True


def renamed_by_position(data: StructType, table: StructType, named: str) -> StructType:
    """Rename the data's columns, and the fields of structs at any depth, to the names in the table at the same positions; additional columns
    and fields of the data keep their names. Types do not change, except for the names in them.

    Args:
        named: the table, for errors.

    Raises:
        SchemaMismatch: fewer columns or fields than the table has (``DELTA_INSERT_COLUMN_ARITY_MISMATCH``), or a struct at the position of
            a field of another type (``DELTA_COLUMN_STRUCT_TYPE_MISMATCH``).
    """
    return _Renaming(named).struct(data, table, ())


def with_fields_by_position(data: StructType, table: StructType, named: str) -> StructType:
    """Rename only the fields of structs, as `renamed_by_position`: columns are matched by name, and may be missing."""
    renaming, columns = _Renaming(named), []
    for column in data:
        target = table.find(column.name)
        data_type = column.data_type if target is None else renaming.type(column.data_type, target.data_type, (target.name,))
        columns.append(replace(column, data_type=data_type))
    return StructType(tuple(columns))


def _fits(source: DataType, target: DataType, widening: Widening) -> bool:
    match source, target:
        case StructType(), StructType():
            return fits_by_name(source, target, widening)
        case ArrayType(), ArrayType():
            return _fits(source.element_type, target.element_type, widening)
        case MapType(), MapType():
            return _fits(source.key_type, target.key_type, widening) and _fits(source.value_type, target.value_type, widening)
    return source == target or target == _VOID or widening.allows(target, source)


class _Renaming:
    """Renames the parts of types.

    Args:
        named: the table, for errors.
    """

    def __init__(self, named: str) -> None:
        self._named = named

    def struct(self, data: StructType, table: StructType, path: tuple[str, ...]) -> StructType:
        targets = table.fields
        if len(data.fields) < len(targets):
            raise self._too_few(len(data.fields), len(targets), path)
        fields = []
        for place, field in enumerate(data):
            if place < len(targets):
                target = targets[place]
                inner = self.type(field.data_type, target.data_type, (*path, target.name))
                field = replace(field, name=target.name, data_type=inner)
            fields.append(field)
        return StructType(tuple(fields))

    def type(self, data: DataType, table: DataType, path: tuple[str, ...]) -> DataType:
        match data, table:
            case StructType(), StructType():
                return self.struct(data, table, path)
            case StructType(), _ if len(path) > 1 and table != _VOID:
                raise self._no_struct(data, table, path)
            case ArrayType(), ArrayType():
                return replace(data, element_type=self.type(data.element_type, table.element_type, (*path, "element")))
            case MapType(), MapType():
                return replace(
                    data,
                    key_type=self.type(data.key_type, table.key_type, (*path, "key")),
                    value_type=self.type(data.value_type, table.value_type, (*path, "value")),
                )
        return data

    def _too_few(self, count: int, expected: int, path: tuple[str, ...]) -> SchemaMismatch:
        where = f"column '{'.'.join(path)}'" if path else "the table"
        parts = "fields" if path else "columns"
        return SchemaMismatch(
            f"Cannot write to {self._named}: {where} has {expected} {parts}, and the query gives {count}. Give all of them, or "
            "write BY NAME.",
            code="DELTA_INSERT_COLUMN_ARITY_MISMATCH",
            table=self._named,
            column=".".join(path),
        )

    def _no_struct(self, data: StructType, table: DataType, path: tuple[str, ...]) -> SchemaMismatch:
        name = ".".join(path)
        return SchemaMismatch(
            f"Cannot write to {self._named}: field '{name}' has type {table}, and the query gives a struct ({data}). Give a value of type "
            f"{table}.",
            code="DELTA_COLUMN_STRUCT_TYPE_MISMATCH",
            table=self._named,
            column=name,
        )
