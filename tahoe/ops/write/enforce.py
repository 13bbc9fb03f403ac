"""Completion and constraint checks of rows before they are written to data files."""

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
    """Completes and checks the rows of a table.

    Args:
        limited: checks texts against ``char(n)`` and ``varchar(n)``.
        absent: generated columns that the data lacks, by logical name.
        completion: supplies values of the identity columns that the data lacks.
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
        """Return the enforcer for data with a schema. Raises for unenforceable constraints before the first row is read.

        Args:
            copied: the rows are the table's own, unchanged; constraints that only Spark can check were checked when they were written.
        """
        constraints = constraints_of(config)
        if copied:
            constraints = constraints.with_evaluator()
        constraints.require_evaluator()
        given = {name.lower() for name in data_schema.names}
        absent = tuple(one.column.name for one in constraints.generated if one.column.name.lower() not in given)
        return cls(config.schema, constraints, LimitedTexts(config.schema, config.table), absent, completion)

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
        check(self.constraints, self._logical(rows))
        return rows

    def _logical(self, rows: pa.Table) -> pa.Table:
        """Return the columns that constraints read, under logical names at every depth."""
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
