"""A MERGE statement as values: its clauses, the rules for them, and the builder of the Python API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Generic, TypeVar

from tahoe.base.argument_checks import checked_arguments
from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.tree.python_values import SqlValues, sql_texts
from tahoe.ops.merge.explained import MergeExplained
from tahoe.ops.rows.row_changes import RowsChanged
from tahoe.ops.write.arrow_data import ArrowData

Term = TypeVar("Term")
"""The type of conditions and values: SQL text; with Spark, SQL text or a column."""


class Kind(Enum):
    """The kind of rows to which a clause applies; the values are the names of the operation parameters in the history."""

    MATCHED = "matchedPredicates"
    NOT_MATCHED = "notMatchedPredicates"
    NOT_MATCHED_BY_SOURCE = "notMatchedBySourcePredicates"

    @property
    def words(self) -> str:
        """The SQL words of the kind: ``NOT MATCHED BY SOURCE``."""
        return self.name.replace("_", " ")


class Action(Enum):
    """The action of a clause."""

    UPDATE = "update"
    DELETE = "delete"
    INSERT = "insert"


@dataclass(frozen=True, slots=True)
class Clause(Generic[Term]):
    """A WHEN clause.

    Args:
        condition: None for every row of its kind.
        values: pairs of a column and an expression; None for ``UPDATE SET *`` and ``INSERT *``.
    """

    kind: Kind
    action: Action
    condition: Term | None = None
    values: tuple[tuple[str, Term], ...] | None = ()

    @property
    def is_star(self) -> bool:
        """Whether it is ``UPDATE SET *`` or ``INSERT *``, which assign columns by name."""
        return self.values is None


def of_kind(clauses: Iterable[Clause[Term]], kind: Kind) -> list[Clause[Term]]:
    """Return the clauses of a kind, in their order."""
    return [clause for clause in clauses if clause.kind == kind]


def only_inserts(clauses: Iterable[Clause[Any]]) -> bool:
    """Whether all clauses insert, so that no row of the target can change."""
    return all(clause.action == Action.INSERT for clause in clauses)


def may_match_often(clauses: Sequence[Clause[Any]]) -> bool:
    """Whether several rows of the source may match one row of the target: if all matched rows are deleted, or none can change.

    Conditions of clauses are ignored, as in delta-spark: a row with two matches is an error even if only one match satisfies the condition
    of a clause.
    """
    matched = of_kind(clauses, Kind.MATCHED)
    deletes_all = len(matched) == 1 and matched[0].action == Action.DELETE and matched[0].condition is None
    return deletes_all or only_inserts(clauses)


def check_clauses(clauses: Sequence[Clause[Any]]) -> None:
    """Raise `InvalidRequest` if the clauses violate a rule."""
    if not clauses:
        raise InvalidRequest("A MERGE needs at least one WHEN clause.", code="DELTA_MERGE_MISSING_WHEN")
    for kind in Kind:
        if any(clause.condition is None for clause in of_kind(clauses, kind)[:-1]):
            raise InvalidRequest(
                f"When there is more than one {kind.words} clause in a MERGE, only the last may omit its condition.",
                code=f"DELTA_NON_LAST_{kind.name}_CLAUSE_OMIT_CONDITION",
            )


@dataclass(frozen=True, slots=True)
class MergeStatement:
    """A complete MERGE statement.

    Args:
        source: Arrow data; read once.
        on: SQL text over both sides; if it is true, a row of the source matches a row of the target.
        schema_evolution: whether ``UPDATE SET *``, ``INSERT *`` and assignments may add columns that only the source has.
        source_alias, target_alias: the names of the two sides in all expressions.
    """

    source: ArrowData
    on: str
    clauses: tuple[Clause[str], ...] = ()
    schema_evolution: bool = False
    source_alias: str = "source"
    target_alias: str = "target"

    def check(self) -> None:
        """Raise `InvalidRequest` if the statement violates a rule."""
        check_clauses(self.clauses)
        if self.source_alias.lower() == self.target_alias.lower():
            raise InvalidRequest(
                f"Source and target of a MERGE need different names, both are '{self.source_alias}'.",
                code="TAHOE_MERGE_SAME_NAMES",
            )


@dataclass(frozen=True, slots=True)
@checked_arguments
class MergeBuilder:
    """Builds a MERGE clause by clause; `execute` runs it, `explain` predicts the result. Each method returns a new builder.

    Conditions and values are SQL; ``source.x`` and ``target.x`` are the columns of the two sides. The clauses of each kind are evaluated in
    the order in which they were added, and the first one whose condition is true applies to the row.
    """

    statement: MergeStatement
    run: Callable[[MergeStatement], RowsChanged]
    look: Callable[[MergeStatement], MergeExplained]
    _url_in_errors: str = ""
    """The table's URL (`tahoe.base.argument_checks`)."""

    def when_matched_update(self, set: SqlValues, condition: str | None = None) -> MergeBuilder:
        """Update matched rows: column or nested field → expression over both sides."""
        return self._with(Clause(Kind.MATCHED, Action.UPDATE, condition, tuple(sql_texts(set).items())))

    def when_matched_update_all(self, condition: str | None = None) -> MergeBuilder:
        """Update matched rows with the values of the source's columns of the same names."""
        return self._with(Clause(Kind.MATCHED, Action.UPDATE, condition, None))

    def when_matched_delete(self, condition: str | None = None) -> MergeBuilder:
        """Delete matched rows."""
        return self._with(Clause(Kind.MATCHED, Action.DELETE, condition))

    def when_not_matched_insert(self, values: SqlValues, condition: str | None = None) -> MergeBuilder:
        """Insert a row for each unmatched row of the source: column → expression over the source; other columns are NULL."""
        return self._with(Clause(Kind.NOT_MATCHED, Action.INSERT, condition, tuple(sql_texts(values).items())))

    def when_not_matched_insert_all(self, condition: str | None = None) -> MergeBuilder:
        """Insert each unmatched row of the source, by column names."""
        return self._with(Clause(Kind.NOT_MATCHED, Action.INSERT, condition, None))

    def when_not_matched_by_source_update(self, set: SqlValues, condition: str | None = None) -> MergeBuilder:
        """Update rows of the target that no row of the source matches: column or nested field → expression over the target."""
        return self._with(Clause(Kind.NOT_MATCHED_BY_SOURCE, Action.UPDATE, condition, tuple(sql_texts(set).items())))

    def when_not_matched_by_source_delete(self, condition: str | None = None) -> MergeBuilder:
        """Delete rows of the target that no row of the source matches."""
        return self._with(Clause(Kind.NOT_MATCHED_BY_SOURCE, Action.DELETE, condition))

    def with_schema_evolution(self) -> MergeBuilder:
        """Allow the clauses to add columns that only the source has."""
        return replace(self, statement=replace(self.statement, schema_evolution=True))

    def execute(self) -> RowsChanged:
        """Run the MERGE. Raises the errors of `tahoe.ops.merge.merge.stage_merge`."""
        return self.run(self.statement)

    def explain(self) -> MergeExplained:
        """Predict the result of `execute`, clause by clause, without writing. Raises the errors that `execute` raises before it writes."""
        return self.look(self.statement)

    def _with(self, clause: Clause[str]) -> MergeBuilder:
        return replace(self, statement=replace(self.statement, clauses=(*self.statement.clauses, clause)))
