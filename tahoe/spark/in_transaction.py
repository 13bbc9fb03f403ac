"""A table of a Spark session in a multi-table transaction (`tahoe.transaction`, docs/design/034): DataFrames are written, and the commit is
deferred.

Statements stage and write as outside a transaction; only the commit waits until the commits of all tables are sent. The Spark jobs run
within the block.
"""

# ruff: noqa: N802, N803 - the names are delta-spark's

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.utils import to_str

from tahoe.api.several_tables import HeldTable
from tahoe.base.argument_checks import checked_arguments
from tahoe.spark.commands.checked_arguments import check_kind, checked_expression, checked_expressions
from tahoe.spark.commands.delete import delete
from tahoe.spark.commands.insert import insert
from tahoe.spark.commands.merge.builder import DeltaMergeBuilder, merge_builder
from tahoe.spark.commands.row_command import CommandTarget, refuse_connect
from tahoe.spark.commands.update import update
from tahoe.spark.commands.write_options import WriterCall, insert_request
from tahoe.spark.names.settings import settings_of
from tahoe.spark.scan.relation import Alias, named, read_snapshot


class DeltaTableInTransaction:
    """One `tahoe.DeltaTable` in a multi-table transaction: read as of its beginning, and changed once.

    ::

        with tahoe.transaction(orders, stock) as t:
            t[orders].append(new_orders)
            t[stock].alias("s").merge(sold.alias("n"), "s.item = n.item").whenMatchedUpdate(set={"left": "s.left - n.sold"}).execute()

    A DataFrame that reads a table directly reads its newest version; only `toDF` reads the transaction's version.
    """

    def __init__(self, spark: SparkSession, table: HeldTable, options: Mapping[str, str], alias: Alias | None) -> None:
        refuse_connect(spark, "A transaction over several tables")
        self._spark = spark
        self._table = table
        self._options = dict(options)
        self._alias = alias

    def __repr__(self) -> str:
        return f"DeltaTableInTransaction({self._table!r})"

    def toDF(self) -> DataFrame:
        """Return the version at the beginning of the transaction. The whole table counts as read: a concurrent commit that changes it is a
        conflict.
        """
        self._table.is_read = True
        frame = read_snapshot(self._spark, self._table.snapshot(), options=self._options)
        return named(frame, self._alias)

    @checked_arguments
    def alias(self, aliasName: str) -> DeltaTableInTransaction:
        """Return the same table under a name for conditions."""
        return DeltaTableInTransaction(self._spark, self._table, self._options, aliasName)

    def append(self, data: DataFrame, **options: object) -> None:
        """Add rows, as ``data.write.format("delta").mode("append")`` does; without rows nothing is committed.

        Args:
            options: of the writer, such as ``mergeSchema=True``.

        Raises: see `tahoe.spark.commands.insert.insert`; ``TAHOE_ONE_CHANGE_A_TABLE`` for a second change of the table.
        """
        self._insert("Append", data, options)

    def overwrite(self, data: DataFrame, **options: object) -> None:
        """Replace all rows, or those of ``replaceWhere``, as ``data.write.format("delta").mode("overwrite")`` does.

        Args:
            options: of the writer, such as ``replaceWhere="day = 3"``.

        Raises: see `append`.
        """
        self._insert("Overwrite", data, options)

    def delete(self, condition: str | Column | None = None) -> None:
        """See `tahoe.DeltaTable.delete`, and `append`."""
        checked_expression(condition)
        delete(self._target(), condition)

    def update(self, condition: str | Column | None = None, set: Mapping[str, str | Column] | None = None) -> None:
        """See `tahoe.DeltaTable.update`, and `append`."""
        values = checked_expressions(set, "set")
        checked_expression(condition)
        update(self._target(), values, condition)

    def merge(self, source: DataFrame, condition: str | Column) -> DeltaMergeBuilder:
        """See `tahoe.DeltaTable.merge`, and `append`; it must be executed before the block ends."""
        return merge_builder(self._target(), source, condition)

    def _target(self) -> CommandTarget:
        return CommandTarget(self._spark, self._table, self._alias, self._options)

    def _insert(self, mode: str, data: DataFrame, options: Mapping[str, object]) -> None:
        check_kind(data, "data", DataFrame)
        text_options = {key: text for key, value in options.items() if (text := to_str(value)) is not None}
        insert(self._table, data, insert_request(WriterCall(mode, {**self._options, **text_options}), settings_of(self._spark)))
