"""The check of ``char(n)`` and ``varchar(n)`` for texts that are written without Spark (`tahoe.schema.text_limits`)."""

from __future__ import annotations

import pyarrow as pa

from tahoe.base.lazy import pc
from tahoe.schema.arrow_values import scalar
from tahoe.schema.text_limits import Limits, TextLimit, limits_of, too_long
from tahoe.schema.types import ArrayType, DataType, MapType, StructType

__all__ = ["LimitedTexts"]


class LimitedTexts:
    """Checks the texts of one table's rows against their length limits.

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
        self._limits = {one.physical_name: (one, limits) for one in schema if (limits := limits_of(one)) is not None}

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
            children = [self._limited(child, one.data_type, limit, (*path, one.name)) for child, one, limit in parts]
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
