"""The values of identity columns, handed out by the tasks that write the rows.

    task p of n ─► base + (p + k·n)·step for its row number k from 0

No task needs to know what another one does, and no two give one value; there are gaps where tasks have not equally many rows, as in the
reference. How far the values came is read from the footers of the files (`tahoe.spark.executors.footers`).
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as sf

from tahoe.protocol.column_values.identity import IdentityColumn, overflow
from tahoe.spark.jvm.bridge import Jvm
from tahoe.spark.jvm.errors import raising

__all__ = ["identity_values"]

_ROW_OF_TASK = (1 << 33) - 1
"""The bits of `monotonically_increasing_id` that count the rows of a task; above them stands its number."""


def identity_values(jvm: Jvm, column: IdentityColumn, table: str) -> Column:
    """The column's values, for a projection through which each row goes once on its way into a file.

    Between the projection and the task that runs it must be nothing that puts rows of many tasks into one (a union, `coalesce`).
    """
    row = sf.monotonically_increasing_id().bitwiseAND(sf.lit(_ROW_OF_TASK))
    number = row * _tasks(jvm).cast("long") + sf.spark_partition_id()
    beyond = sf.try_multiply(number, sf.lit(column.step).cast("long"))
    value = sf.try_add(beyond, sf.lit(column.base).cast("long"))
    return sf.coalesce(value, raising(overflow(column.name, table)).cast("long"))


def _tasks(jvm: Jvm) -> Column:
    """How many tasks the stage has in which the expression is evaluated; one where the driver evaluates it."""
    task = "org.apache.spark.TaskContext"
    kind = jvm.java_class("org.apache.spark.sql.types.ObjectType")(jvm.reflected(task))
    # Neither is deterministic, so that nobody works them out but the task.
    context = jvm.catalyst("expressions.objects.StaticInvoke")(
        jvm.reflected(task), kind, "get", jvm.seq(), jvm.seq(), True, True, False, jvm.option(None)
    )
    count = jvm.catalyst("expressions.objects.Invoke")(
        context, "numPartitions", jvm.data_type('"integer"'), jvm.seq(), jvm.seq(), True, True, False
    )
    return sf.coalesce(jvm.column(count), sf.lit(1))
