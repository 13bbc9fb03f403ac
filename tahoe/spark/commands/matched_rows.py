"""Finds the table rows that match a source row: ``replaceOn`` and ``replaceUsing`` of an overwrite.

source, stored ─► its keys ─► files that may have such rows ─► target ⋉ source ─► bitmaps, file by file
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import and_

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame

from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.tree.predicate import quote_identifier
from tahoe.ops.rows.row_changes import FileChange
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.commands.row_changes import TableVersion, changes_of
from tahoe.spark.commands.source_keys import candidates
from tahoe.spark.commands.source_rows import StoredRows, sent_to_all
from tahoe.spark.commands.write_options import Matching
from tahoe.spark.jvm.bridge import JavaObject
from tahoe.spark.names.frame_columns import column_of
from tahoe.spark.scan.relation import named
from tahoe.txn.transaction import Transaction

_CODES = {
    "AMBIGUOUS_REFERENCE": "DELTA_INSERT_REPLACE_ON_AMBIGUOUS_COLUMNS_IN_CONDITION",
    "UNRESOLVED_COLUMN": "DELTA_INSERT_REPLACE_ON_UNRESOLVED_COLUMNS_IN_CONDITION",
}


@dataclass(frozen=True)
class MatchCondition:
    """A condition, as a Catalyst expression, on the columns of `target` and of the source."""

    target: DataFrame
    expression: JavaObject


@dataclass(frozen=True)
class MatchedRows:
    """The rows of a version that match a row of a source.

    Args:
        source: the user's query, before its columns were mapped to the table's.
    """

    version: TableVersion
    source: StoredRows
    matching: Matching

    def resolved(self) -> MatchCondition:
        """Resolve the condition without running a query.

        Raises:
            InvalidRequest: ``UNRESOLVED_INSERT_REPLACE_USING_COLUMN``, ``INSERT_REPLACE_USING_DISALLOW_MISALIGNED_COLUMNS``,
                ``DELTA_INSERT_REPLACE_ON_AMBIGUOUS_COLUMNS_IN_CONDITION``, ``DELTA_INSERT_REPLACE_ON_UNRESOLVED_COLUMNS_IN_CONDITION``,
                ``INVALID_NON_DETERMINISTIC_EXPRESSIONS``.
            AnalysisException: PySpark's own, for an invalid condition.
        """
        check_matching_columns(self.matching, self.version.snapshot, self.source.frame)
        target = self.version.shape()
        return MatchCondition(target, self._resolved(target))

    def find(self, transaction: Transaction, condition: MatchCondition) -> list[FileChange]:
        """Return the matching rows of each file; registers the read predicate."""
        snapshot = self.version.snapshot
        predicate = candidates(snapshot, condition.target, self.source, condition.expression).predicate
        transaction.read(predicate)
        files = snapshot.files_matching(predicate)
        if not len(files):
            return []
        target = named(self.version.with_positions(files, metadata=False), self.version.alias)
        source = sent_to_all(self.source)
        return changes_of(snapshot, files, target.join(source, self._condition(target, source), "left_semi")).changes

    def _condition(self, target: DataFrame, source: DataFrame) -> Column:
        if self.matching.on is not None:
            return column_of(self.matching.on)
        names = map(quote_identifier, self.matching.columns)
        return reduce(and_, (target[name] == source[name] for name in names))

    def _resolved(self, target: DataFrame) -> JavaObject:
        source = self.source.frame
        pairs = resolve_pairs(target, source, self._condition(target, source), self.matching)
        condition = pairs._jdf.queryExecution().analyzed().condition()
        if not condition.deterministic():
            raise InvalidRequest(
                f"The condition of replaceOn may not use functions that are not deterministic: {self.matching.text}. Compute their values "
                "in the source first.",
                code="INVALID_NON_DETERMINISTIC_EXPRESSIONS",
            )
        return condition


def resolve_pairs(target: DataFrame, source: DataFrame, condition: Column, matching: Matching) -> DataFrame:
    """Return the pairs of rows that fulfil the condition of `matching`; raise the errors of `MatchedRows.resolved`."""
    try:
        pairs = target.crossJoin(source).where(condition)
        _ = pairs.columns  # a session of Spark Connect resolves nothing before
    except ParseException:
        raise
    except AnalysisException as error:
        code = _CODES.get(str(error.getCondition()).partition(".")[0])
        if code is None:
            raise
        raise InvalidRequest(
            f"The condition of replaceOn cannot be resolved: {matching.text}. {str(error).partition(' SQLSTATE')[0]} Name the source by "
            "df.alias('s') and the table by the option targetAlias, as in 't.id = s.id'.",
            code=code,
        ) from error
    return pairs


def check_matching_columns(matching: Matching, snapshot: Snapshot, source: DataFrame) -> None:
    """Reject ``replaceUsing`` with a column that the table or the source lacks, or that is at another position if positions count."""
    url = snapshot.store.url
    table_columns, source_columns = ([name.lower() for name in names] for names in (snapshot.schema.names, source.columns))
    for name in matching.columns:
        for side, names in (("table", table_columns), ("source", source_columns)):
            if name.lower() not in names:
                raise InvalidRequest(
                    f"replaceUsing '{matching.using}' names '{name}', which is no column of the {side} of the write to {url}; its columns "
                    f"are {', '.join(sorted(names))}.",
                    code="UNRESOLVED_INSERT_REPLACE_USING_COLUMN",
                    column=name,
                )
        if matching.by_position and table_columns.index(name.lower()) != source_columns.index(name.lower()):
            raise InvalidRequest(
                f"Column '{name}' of replaceUsing is at different places in the table {url} and in the source, whose columns are taken by "
                "their places. Select them in the table's order, or use saveAsTable.",
                code="INSERT_REPLACE_USING_DISALLOW_MISALIGNED_COLUMNS",
                column=name,
            )
