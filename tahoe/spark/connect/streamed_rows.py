"""The rows of a stream that is written in a session of Spark Connect, with the columns that the server computes for the writer's tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from tahoe.protocol.config import TableConfig
from tahoe.protocol.engine_rules import engine_rules_of
from tahoe.spark.executors.evaluated_rules import EvaluatedRules
from tahoe.spark.portable.data_source_options import EVALUATED_RULES
from tahoe.spark.write.server_defaults import with_defaults_of_batches
from tahoe.spark.write.server_rules import checked_by_server


@dataclass(frozen=True, slots=True)
class StreamedRows:
    """Rows, and the options with which the writer understands their columns."""

    frame: DataFrame
    options: Mapping[str, str] = field(default_factory=dict)


def evaluated_by_server(rows: DataFrame, config: TableConfig) -> StreamedRows:
    """Return the rows with the defaults that vary, the generated columns, and the flags of constraints that only Spark can evaluate.

    Raises the errors of `with_defaults_of_batches` and `checked_by_server`.
    """
    completed = with_defaults_of_batches(rows, config)
    checked = checked_by_server(completed, config)
    if checked.config == config:
        return StreamedRows(completed)
    evaluated = EvaluatedRules(engine_rules_of(config), checked.checks)
    return StreamedRows(checked.rows, {EVALUATED_RULES: evaluated.to_option()})
