"""Completion and constraint checks of rows before they are written to data files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa

from tahoe.base.lazy import pc
from tahoe.ops.write.completion import Completion, Defaults, TaskCompletion
from tahoe.protocol.config import TableConfig
from tahoe.protocol.constraints import Constraints, check, constraints_of, generated_values
from tahoe.schema.arrow import to_arrow_type
from tahoe.schema.arrow_values import scalar
from tahoe.schema.cast import STORED, conform
from tahoe.schema.text_limits import Limits, TextLimit, limits_of, too_long
from tahoe.schema.types import ArrayType, DataType, MapType, StructType


@dataclass(frozen=True, slots=True)
class Enforcer:
    """Completes and checks the rows of a table.

    Args:
        checked_rules: the constraints without the generated columns that are computed here. These need no comparison, and would differ where
            the log cannot hold a value: the empty text of a partition.
        limited: checks texts against ``char(n)`` and ``varchar(n)``.
        absent: generated columns that the data lacks, by logical name.
        completion: supplies values of the identity columns that the data lacks.
    """

    schema: StructType
    constraints: Constraints
    checked_rules: Constraints
    limited: LimitedTexts
    absent: tuple[str, ...]
    completion: Completion | Defaults | TaskCompletion | None = None

    @classmethod
    def of(
        cls,
        config: TableConfig,
        data_schema: pa.Schema,
        completion: Completion | Defaults | TaskCompletion | None = None,
        *,
        copied: bool = False,
        time_zone: str = "UTC",
    ) -> Enforcer:
        """Return the enforcer for data with a schema. Raises for unenforceable constraints before the first row is read.

        Args:
            copied: the rows are the table's own, unchanged; their writer checked them, perhaps in another time zone.
            time_zone: in which expressions read the wall clock of a timestamp.
        """
        constraints = Constraints(config.table) if copied else constraints_of(config, time_zone)
        constraints.require_evaluator()
        names = {name.lower() for name in data_schema.names}
        absent = tuple(column.column.name for column in constraints.generated if column.column.name.lower() not in names)
        given = tuple(column for column in constraints.generated if column.column.name not in absent)
        limited = LimitedTexts(config.schema, config.table, refuses=not copied)
        return cls(config.schema, constraints, replace(constraints, generated=given), limited, absent, completion)

    def checked(self, table: pa.Table, conformed: Callable[[pa.Table], pa.Table]) -> pa.Table:
        """Return the rows as they are written, with generated columns computed.

        Args:
            table: rows from the user, under logical names.
            conformed: converts rows to the table's types and physical names.

        Raises:
            InvariantViolation: a row breaks a constraint, or a text is too long.
            InvalidRequest: an expression cannot be computed for a row; an identity column has no values left.
        """
        for name, values in ({} if self.completion is None else self.completion.values(table.num_rows)).items():
            table = table.append_column(name, values)
        rows = self.limited(conformed(table))
        if not self.constraints:
            return rows
        if self.absent:
            for name, values in generated_values(self.constraints, self._logical(rows), self.absent).items():
                table = table.append_column(name, values)
            rows = self.limited(conformed(table))
        check(self.checked_rules, self._logical(rows))
        return rows

    def _logical(self, rows: pa.Table) -> pa.Table:
        """Return the columns that constraints read, under logical names at every depth."""
        arrays = {}
        for column in self.schema:
            if column.name not in self.constraints.columns:
                continue
            arrow_type = to_arrow_type(column.data_type)
            position = rows.schema.get_field_index(column.physical_name)
            if position < 0:
                arrays[column.name] = pa.chunked_array([pa.nulls(rows.num_rows, arrow_type)])
                continue
            chunks = [conform(chunk, column.data_type, arrow_type, STORED) for chunk in rows.column(position).chunks]
            arrays[column.name] = pa.chunked_array(chunks, arrow_type)
        return pa.table(arrays)


class LimitedTexts:
    """Checks the texts of one table's rows against the lengths of ``char(n)`` and ``varchar(n)`` (`tahoe.schema.text_limits`).

    Args:
        schema: logical.
        table: the table's URL, for messages.
        refuses: False for rows that are already in the table: texts in them that are too long stay.

    Raises:
        CorruptTable: a declared type that cannot be parsed.
    """

    def __init__(self, schema: StructType, table: str, *, refuses: bool = True) -> None:
        self._table = table
        self._refuses = refuses
        self._limits = {column.physical_name: (column, limits) for column in schema if (limits := limits_of(column)) is not None}

    def __call__(self, rows: pa.Table) -> pa.Table:
        """Return the rows with trailing blanks cut off, or padded with blanks.

        Args:
            rows: of the table's types, under physical names.

        Raises:
            InvariantViolation: a text is too long.
        """
        for physical_name, (column, limits) in self._limits.items():
            position = rows.schema.get_field_index(physical_name)
            if position >= 0:
                field = rows.schema.field(position)
                chunks = [
                    self._limited(chunk, column.data_type, limits, (column.name,)) for chunk in rows.column(position).chunks
                ]
                rows = rows.set_column(position, field, pa.chunked_array(chunks, field.type))
        return rows

    def _limited(
        self, values: pa.Array, data_type: DataType, limits: TextLimit | Limits | None, path: tuple[str, ...]
    ) -> pa.Array:
        if limits is None:
            return values
        if isinstance(limits, TextLimit):
            return self._text(values, limits, path)
        kind = values.type
        if isinstance(data_type, StructType):
            parts = zip(values.flatten(), data_type, limits.parts, strict=True)
            children = [self._limited(child, field.data_type, limit, (*path, field.name)) for child, field, limit in parts]
            return pa.StructArray.from_arrays(children, fields=kind.fields, mask=values.is_null() if values.null_count else None)
        # `take` drops child values that belong to no row.
        values = values.take(pa.arange(0, len(values)))
        if isinstance(data_type, MapType):
            keys = self._limited(values.keys, data_type.key_type, limits.parts[0], (*path, "key"))
            items = self._limited(values.items, data_type.value_type, limits.parts[1], (*path, "value"))
            below = pa.StructArray.from_arrays([keys, items], fields=[kind.key_field, kind.item_field])
        else:
            assert isinstance(data_type, ArrayType)
            below = self._limited(values.values, data_type.element_type, limits.parts[0], (*path, "element"))
        return pa.Array.from_buffers(kind, len(values), values.buffers()[:2], values.null_count, values.offset, children=[below])

    def _text(self, values: pa.Array, limit: TextLimit, path: tuple[str, ...]) -> pa.Array:
        most = scalar(limit.most, pa.int32())
        is_long = pc.greater(pc.utf8_length(values), most)
        if pc.any(is_long).as_py():
            too_many = pc.greater(pc.utf8_length(pc.utf8_rtrim(values, characters=" ")), most)
            if self._refuses and pc.any(too_many).as_py():
                raise too_long(self._table, ".".join(path), limit, values[pc.index(too_many, scalar(True)).as_py()].as_py())
            values = pc.if_else(pc.and_not(is_long, too_many), pc.utf8_slice_codeunits(values, 0, limit.most), values)
        return pc.utf8_rpad(values, width=limit.most, padding=" ") if limit.padded else values
