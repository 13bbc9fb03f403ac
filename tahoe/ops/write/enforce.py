"""What rows lack is filled in, and what the table demands is held against them, on their way into data files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from tahoe.ops.write.completion import Completion, Defaults, TaskCompletion
from tahoe.ops.write.limited_texts import LimitedTexts
from tahoe.protocol.config import TableConfig
from tahoe.protocol.constraints import Constraints, check, constraints_of, generated_values
from tahoe.schema.arrow import to_arrow_type
from tahoe.schema.cast import STORED, conform
from tahoe.schema.types import StructType

__all__ = ["Enforcer"]


@dataclass(frozen=True, slots=True)
class Enforcer:
    """Completes and checks rows, table by table.

    Args:
        limited: holds texts against ``char(n)`` and ``varchar(n)``.
        absent: generated columns that the data does not have, by logical name.
        completion: hands out values of the identity columns that it does not have.
    """

    schema: StructType
    constraints: Constraints
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
    ) -> Enforcer:
        """For data of a schema. Raises for constraints that cannot be enforced, before a row is looked at.

        Args:
            copied: the rows are the table's own, unchanged; what only Spark can check of them was checked when they came in.
        """
        constraints = constraints_of(config)
        if copied:
            constraints = constraints.with_evaluator()
        constraints.require_evaluator()
        given = {name.lower() for name in data_schema.names}
        absent = tuple(one.column.name for one in constraints.generated if one.column.name.lower() not in given)
        return cls(config.schema, constraints, LimitedTexts(config.schema, config.table), absent, completion)

    def checked(self, table: pa.Table, conformed: Callable[[pa.Table], pa.Table]) -> pa.Table:
        """The rows as they are written, generated columns computed.

        Args:
            table: rows as they came, under logical names.
            conformed: gives rows the table's types, and physical names.

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
        check(self.constraints, self._logical(rows))
        return rows

    def _logical(self, rows: pa.Table) -> pa.Table:
        """The columns that constraints read, under logical names at every depth."""
        arrays = {}
        for column in self.schema:
            if column.name not in self.constraints.columns:
                continue
            wanted = to_arrow_type(column.data_type)
            position = rows.schema.get_field_index(column.physical_name)
            if position < 0:
                arrays[column.name] = pa.chunked_array([pa.nulls(rows.num_rows, wanted)])
                continue
            chunks = [conform(chunk, column.data_type, wanted, STORED) for chunk in rows.column(position).chunks]
            arrays[column.name] = pa.chunked_array(chunks, wanted)
        return pa.table(arrays)
