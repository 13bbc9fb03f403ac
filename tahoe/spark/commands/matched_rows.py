"""Finds the table rows that match a source row: ``replaceOn`` and ``replaceUsing`` of an overwrite.

source, stored ─► its keys ─► files that may have such rows ─► target ⋉ source ─► bitmaps, file by file
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import and_

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.tree.predicate import quote_identifier
from tahoe.ops.rows.row_changes import FileChange
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.commands.row_changes import changes_of, with_positions
from tahoe.spark.commands.source_keys import candidates, conjuncts
from tahoe.spark.commands.source_rows import StoredRows, sent_to_all
from tahoe.spark.commands.write_options import Matching
from tahoe.spark.jvm.bridge import JavaObject
from tahoe.spark.scan.relation import named, shape_of
from tahoe.txn.transaction import Transaction

__all__ = ["MatchedRows", "MatchCondition"]

_CODES = {
    "AMBIGUOUS_REFERENCE": "DELTA_INSERT_REPLACE_ON_AMBIGUOUS_COLUMNS_IN_CONDITION",
    "UNRESOLVED_COLUMN": "DELTA_INSERT_REPLACE_ON_UNRESOLVED_COLUMNS_IN_CONDITION",
}


@dataclass(frozen=True)
class MatchCondition:
    """A condition on the columns of `target` and of the source.

    Args:
        parts: the Catalyst expressions whose conjunction is the condition.
    """

    target: DataFrame
    parts: tuple[JavaObject, ...]


@dataclass(frozen=True)
class MatchedRows:
    """The rows of a version that match a row of a source.

    Args:
        source: the user's query, before its columns were mapped to the table's.
        alias: a name for the table in the condition.
        by_place: whether the source's columns correspond to the table's by position.
        hadoop: options for the table's storage.
    """

    spark: SparkSession
    snapshot: Snapshot
    source: StoredRows
    matching: Matching
    alias: str | None
    by_place: bool
    hadoop: Mapping[str, str]

    def resolved(self) -> MatchCondition:
        """Resolve the condition without running a query.

        Raises:
            InvalidRequest: ``UNRESOLVED_INSERT_REPLACE_USING_COLUMN``, ``INSERT_REPLACE_USING_DISALLOW_MISALIGNED_COLUMNS``,
                ``DELTA_INSERT_REPLACE_ON_AMBIGUOUS_COLUMNS_IN_CONDITION``, ``DELTA_INSERT_REPLACE_ON_UNRESOLVED_COLUMNS_IN_CONDITION``,
                ``INVALID_NON_DETERMINISTIC_EXPRESSIONS``.
            AnalysisException: PySpark's own, for an invalid condition.
        """
        self._check_columns()
        target = named(shape_of(self.spark, self.snapshot), self.alias)
        return MatchCondition(target, tuple(conjuncts(self._resolved(target))))

    def find(self, transaction: Transaction, condition: MatchCondition) -> list[FileChange]:
        """Return the matching rows of each file; registers the read predicate."""
        predicate = candidates(self.snapshot, condition.target, self.source.frame, condition.parts).predicate
        transaction.read(predicate)
        files = self.snapshot.files_matching(predicate)
        if not len(files):
            return []
        target = named(with_positions(self.spark, self.snapshot, files, self.hadoop, metadata=False), self.alias)
        source = sent_to_all(self.source)
        return changes_of(self.snapshot, files, target.join(source, self._condition(target, source), "left_semi")).changes

    def _condition(self, target: DataFrame, source: DataFrame) -> Column:
        if self.matching.on is not None:
            return sf.expr(self.matching.on)
        names = map(quote_identifier, self.matching.columns)
        return reduce(and_, (target[name] == source[name] for name in names))

    def _resolved(self, target: DataFrame) -> JavaObject:
        source = self.source.frame
        try:
            pairs = target.crossJoin(source).where(self._condition(target, source))
        except ParseException:
            raise
        except AnalysisException as error:
            code = _CODES.get(str(error.getCondition()).partition(".")[0])
            if code is None:
                raise
            raise InvalidRequest(
                f"The condition of replaceOn cannot be resolved: {self.matching.text}. {str(error).partition(' SQLSTATE')[0]} Name the "
                "source by df.alias('s') and the table by the option targetAlias, as in 't.id = s.id'.",
                code=code,
            ) from error
        condition = pairs._jdf.queryExecution().analyzed().condition()
        if not condition.deterministic():
            raise InvalidRequest(
                f"The condition of replaceOn may not use functions that are not deterministic: {self.matching.text}. Compute their values "
                "in the source first.",
                code="INVALID_NON_DETERMINISTIC_EXPRESSIONS",
            )
        return condition

    def _check_columns(self) -> None:
        table_columns, source_columns = (
            [name.lower() for name in names] for names in (self.snapshot.schema.names, self.source.frame.columns)
        )
        for name in self.matching.columns:
            for side, names in (("table", table_columns), ("source", source_columns)):
                if name.lower() not in names:
                    raise InvalidRequest(
                        f"replaceUsing '{self.matching.using}' names '{name}', which is no column of the {side} of the write to "
                        f"{self.snapshot.store.url}; its columns are {', '.join(sorted(names))}.",
                        code="UNRESOLVED_INSERT_REPLACE_USING_COLUMN",
                        column=name,
                    )
            if self.by_place and table_columns.index(name.lower()) != source_columns.index(name.lower()):
                raise InvalidRequest(
                    f"Column '{name}' of replaceUsing is at different places in the table {self.snapshot.store.url} and in the source, whose "
                    "columns are taken by their places. Select them in the table's order, or use saveAsTable.",
                    code="INSERT_REPLACE_USING_DISALLOW_MISALIGNED_COLUMNS",
                    column=name,
                )
