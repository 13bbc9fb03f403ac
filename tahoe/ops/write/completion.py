"""Values for the columns that rows lack and that the table fills in during a write: identity columns and columns with a default.

One `Completion` serves one set of rows of one transaction. Without Spark, `values` fills in the rows as they pass. Spark's tasks number
their rows themselves, and the last values are read from the files (`tahoe.spark.write.enforce`). Tasks of the Python data source, which
do not communicate, number theirs by `TaskCompletion`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from tahoe.base.clock import Moment
from tahoe.base.exceptions import Unsupported
from tahoe.base.lazy import pc
from tahoe.expr.compute.compute import compute
from tahoe.expr.compute.constant_folding import ONE_ROW
from tahoe.protocol.column_values.default_values import Default, defaults_of
from tahoe.protocol.column_values.identity import IdentityColumn, further, identity_columns
from tahoe.protocol.column_values.task_numbers import numbers_of_task
from tahoe.protocol.config import TableConfig
from tahoe.txn.prepare import future_config
from tahoe.txn.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Defaults:
    """Fills in defaults only: a plain value, for independent tasks.

    Args:
        defaults: of the columns that rows lack.
    """

    defaults: tuple[Default, ...]

    def values(self, count: int) -> dict[str, pa.Array]:
        """Return values as `Completion.values` does."""
        if not self.defaults:
            return {}
        return {default.column.name: pa.repeat(compute(default.value, ONE_ROW)[0], count) for default in self.defaults}


class TaskCompletion:
    """Fills in missing columns for the rows of one task, with numbers that no other task uses.

    Args:
        defaults, identities: of the columns that rows lack.
        task: its number from 0 among those that write for one commit.
        table: for errors.

    Attributes:
        furthest: by physical name, the last value assigned, which the commit has to record.
    """

    def __init__(self, defaults: Defaults, identities: tuple[IdentityColumn, ...], task: int, table: str) -> None:
        self.furthest: dict[str, int] = {}
        self._defaults, self._identities = defaults, identities
        self._task, self._table, self._rows = task, table, 0

    def values(self, count: int) -> dict[str, pa.Array]:
        """Return values as `Completion.values` does."""
        numbers = numbers_of_task(self._task, self._rows, count)
        self._rows += count
        values = self._defaults.values(count)
        for identity in self._identities:
            values[identity.name] = _values(identity, numbers, self._table)
            if numbers:
                self.furthest[identity.physical_name] = identity.value(numbers[-1], self._table)
        return values


class Completion:
    """Fills in the columns that rows lack.

    Args:
        transaction: records the last values of identity columns; recorded values are not assigned again.
        present: the columns that the rows have, without regard to case.

    Attributes:
        identities, defaults: the columns that are filled in.
    """

    def __init__(self, transaction: Transaction, present: Iterable[str]) -> None:
        names = {name.lower() for name in present}
        self._transaction = transaction
        self._table = transaction.store.url
        self._rows = 0
        schema, timestamp = future_config(transaction).schema, transaction.moment()
        identities = identity_columns(schema, self._table)
        self.identities: tuple[IdentityColumn, ...] = tuple(column for column in identities if column.name.lower() not in names)
        absent = (column for column in defaults_of(schema, self._table, timestamp) if column.column.name.lower() not in names)
        self.defaults: tuple[Default, ...] = tuple(absent)

    def values(self, count: int) -> dict[str, pa.Array]:
        """Return the values of each filled-in column for the next `count` rows, by column name.

        Raises:
            InvalidRequest: ``ARITHMETIC_OVERFLOW``: an identity column has no values left; a default that cannot be computed.
        """
        first, self._rows = self._rows, self._rows + count
        return {**Defaults(self.defaults).values(count), **self._numbers(first, count)}

    def _numbers(self, first: int, count: int) -> dict[str, pa.Array]:
        numbers = range(first, first + count)
        values = {identity.name: _values(identity, numbers, self._table) for identity in self.identities}
        for identity in self.identities if count else ():
            self._transaction.number(identity.physical_name, identity.value(numbers[-1], self._table))
        return values

    def note(self, last_values: Iterable[Mapping[str, int]]) -> None:
        """Record the values of identity columns that were assigned elsewhere.

        Args:
            last_values: for each set of rows, by physical name, the value furthest in the direction of the step.
        """
        sets = list(last_values)
        for identity in self.identities:
            values = [values[identity.physical_name] for values in sets if identity.physical_name in values]
            if values:
                self._transaction.number(identity.physical_name, further(identity.step, values))


def _values(identity: IdentityColumn, numbers: range, table: str) -> pa.Array:
    """Return the values for these numbers; raises as `IdentityColumn.value`."""
    if not numbers:
        return pa.nulls(0, pa.int64())
    first, _ = identity.value(numbers[0], table), identity.value(numbers[-1], table)
    step = (identity.step * numbers.step + 2**63) % 2**64 - 2**63  # wraps around as 64-bit integers do
    return pc.add(pc.multiply(pa.arange(0, len(numbers)), step), first)


def refuse_incomplete(config: TableConfig, present: Iterable[str], who: str, remedy: str) -> None:
    """Refuse rows without columns that the table fills in, where the writer cannot fill them in.

    Args:
        present: the columns that the rows have.
        who: the writer that cannot, for the message.

    Raises:
        Unsupported: ``TAHOE_COLUMN_NOT_FILLED_IN``.
    """
    names = {name.lower() for name in present}
    filled = [column.name for column in identity_columns(config.schema, config.table)]
    filled += [column.column.name for column in defaults_of(config.schema, config.table, Moment(0))]
    for name in filled:
        if name.lower() not in names:
            raise Unsupported(
                f"{who} cannot fill in column '{name}' of table {config.table}, an identity or one with a default value, which the rows "
                f"lack. {remedy}",
                code="TAHOE_COLUMN_NOT_FILLED_IN",
                table=config.table,
                column=name,
            )
