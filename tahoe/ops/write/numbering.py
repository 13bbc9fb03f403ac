"""The identity columns that rows come without, on their way into a table: which these are, what they get, and how far that came.

One value stands for one set of rows of one transaction. Without Spark, `values` numbers them as they pass; Spark's tasks number theirs
themselves, and what they have come to is read from the files (`tahoe.spark.write.numbered`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from tahoe.exceptions import Unsupported
from tahoe.lazy import pc
from tahoe.protocol.column_values.identity import IdentityColumn, further, identity_columns
from tahoe.protocol.config import TableConfig
from tahoe.txn.prepare import future_config
from tahoe.txn.transaction import Transaction

__all__ = ["Numbering", "refuse_numbering"]


class Numbering:
    """Hands out the values of identity columns to rows that lack them.

    Args:
        transaction: notes how far the values came; what it noted before is not handed out again.
        given: the columns that the rows bring, without regard to case.
    """

    def __init__(self, transaction: Transaction, given: Iterable[str]) -> None:
        names = {name.lower() for name in given}
        self._transaction = transaction
        self._table = transaction.store.url
        self._rows = 0
        found = identity_columns(future_config(transaction).schema, self._table)
        self.columns: tuple[IdentityColumn, ...] = tuple(one for one in found if one.name.lower() not in names)

    def values(self, count: int) -> dict[str, pa.Array]:
        """For so many further rows the values of each column, by its name.

        Raises:
            InvalidRequest: ``ARITHMETIC_OVERFLOW``.
        """
        first, self._rows = self._rows, self._rows + count
        found = {}
        for one in self.columns if count else ():
            base, last = one.value(first, self._table), one.value(self._rows - 1, self._table)
            self._transaction.number(one.physical_name, last)
            steps = pa.arange(0, count)
            found[one.name] = pc.add(pc.multiply(steps, one.step), base)
        return found or {one.name: pa.nulls(0, pa.int64()) for one in self.columns}

    def note(self, found: Iterable[Mapping[str, int]]) -> None:
        """Note the values that were handed out elsewhere.

        Args:
            found: of each set of rows, by physical name the value furthest in the direction of the step.
        """
        sets = list(found)
        for one in self.columns:
            values = [values[one.physical_name] for values in sets if one.physical_name in values]
            if values:
                self._transaction.number(one.physical_name, further(one.step, values))


def refuse_numbering(config: TableConfig, given: Iterable[str], who: str, remedy: str) -> None:
    """Refuse rows without their identity columns where nobody can hand out values.

    Args:
        given: the columns that the rows bring.
        who: that cannot, for the message.

    Raises:
        Unsupported: ``TAHOE_IDENTITY_NOT_NUMBERED``.
    """
    names = {name.lower() for name in given}
    for one in identity_columns(config.schema, config.table):
        if one.name.lower() not in names:
            raise Unsupported(
                f"{who} cannot hand out values of identity column '{one.name}' of table {config.table}, which the rows lack. {remedy}",
                code="TAHOE_IDENTITY_NOT_NUMBERED",
                table=config.table,
                column=one.name,
            )
