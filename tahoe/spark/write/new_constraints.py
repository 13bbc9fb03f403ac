"""ADD CONSTRAINT on Spark: the rows that violate the condition are counted with Spark if only Spark can evaluate it."""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import BooleanType

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest
from tahoe.base.progress import Progress, shown
from tahoe.expr.tree.expression import EngineText, engine_text_in
from tahoe.ops.tables.constrain import count_violations, stage_add_constraint
from tahoe.protocol.constraints import Check, Constraints
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.jvm.bridge import Jvm, is_classic
from tahoe.spark.jvm.job_progress import jobs_shown_by
from tahoe.spark.write.enforce import in_session_zone
from tahoe.spark.write.server_rules import ServerText, server_condition
from tahoe.spark.write.stored_expressions import StoredExpressions, session_of_stored_expressions
from tahoe.sql.expression_text import in_brackets


def add_constraint(spark: SparkSession, table: Table, name: str, condition: str) -> int:
    """Add a CHECK constraint after counting the rows that violate it; return the new version.

    Raises:
        The errors of `tahoe.ops.tables.constrain.stage_add_constraint` and of `StoredTrees.bound`; in a session of Spark Connect those of
            `server_column`.
    """

    def count(progress: Progress, snapshot: Snapshot, added: Constraints) -> int:
        [check] = added.checks
        engine = engine_text_in(check.condition)
        if engine is None:
            return count_violations(snapshot, added, progress)
        if not is_classic(spark):
            return _counted_by_server(spark, snapshot, check, engine)
        return _counted_by_catalyst(spark, progress, snapshot, check)

    transaction = in_session_zone(spark, table.begin())
    with shown(table.clock) as progress:
        operation = stage_add_constraint(transaction, transaction.existing(), name, condition, partial(count, progress))
    return table.commit(transaction, operation).version


def _rows_of(spark: SparkSession, snapshot: Snapshot) -> DataFrame:
    return spark.read.format("delta").option("versionAsOf", snapshot.version).load(snapshot.store.url)


def _counted_by_server(spark: SparkSession, snapshot: Snapshot, check: Check, engine: EngineText) -> int:
    holds, rows = server_condition(spark, snapshot.config, ServerText.of_check(check)), _rows_of(spark, snapshot)
    data_type = rows.select(sf.expr(str(engine))).schema[0].dataType
    if data_type != BooleanType():
        raise InvalidRequest(
            f"Table {snapshot.store.url}: the condition of CHECK constraint '{check.name}' ({check.text[:200]}) is of type "
            f"{data_type.simpleString()}. Give one that is true or false.",
            code="DELTA_NON_BOOLEAN_CHECK_CONSTRAINT",
            table=snapshot.store.url,
            constraint=check.name,
        )
    return rows.where(~holds).count()


def _counted_by_catalyst(spark: SparkSession, progress: Progress, snapshot: Snapshot, check: Check) -> int:
    jvm = Jvm.of(spark)
    jvm.parsed_expression(spark._jsparkSession, in_brackets(check.text))  # raises the error for a text that ends early
    holds = StoredExpressions(spark, snapshot.config, by_statement=True).condition(check)
    analyzed = _rows_of(spark, snapshot)._jdf.queryExecution().analyzed()
    frame = jvm.frame(session_of_stored_expressions(spark), analyzed, spark)
    with jobs_shown_by(spark, progress):
        return frame.where(~sf.coalesce(holds, sf.lit(False))).count()
