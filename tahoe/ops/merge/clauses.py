"""What a MERGE is asked to do, as values: its clauses, the rules among them, and the builder that users write them with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Generic, TypeVar

from tahoe.argument_checks import checked_arguments
from tahoe.exceptions import InvalidRequest
from tahoe.expr.tree.python_values import SqlValues, sql_texts
from tahoe.ops.merge.explained import MergeExplained
from tahoe.ops.rows.defaults import text_of, with_defaults
from tahoe.ops.rows.row_changes import RowsChanged
from tahoe.ops.write.arrow_data import ArrowData
from tahoe.protocol.column_values.default_values import Default, Moment, is_keyword
from tahoe.protocol.config import TableConfig

__all__ = [
    "Action",
    "Clause",
    "Kind",
    "MergeBuilder",
    "MergeStatement",
    "check_clauses",
    "may_match_often",
    "with_default_values",
    "of_kind",
    "only_inserts",
]

Term = TypeVar("Term")
"""How a condition or a value is written: as SQL text; on Spark as text or as a column."""


class Kind(Enum):
    """Which rows a clause is for; the values are the names of the parameters that the history shows."""

    MATCHED = "matchedPredicates"
    NOT_MATCHED = "notMatchedPredicates"
    NOT_MATCHED_BY_SOURCE = "notMatchedBySourcePredicates"

    @property
    def words(self) -> str:
        """As SQL spells it: ``NOT MATCHED BY SOURCE``."""
        return self.name.replace("_", " ")


class Action(Enum):
    """What a clause does."""

    UPDATE = "update"
    DELETE = "delete"
    INSERT = "insert"


@dataclass(frozen=True, slots=True)
class Clause(Generic[Term]):
    """One WHEN clause.

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
        """Whether it is ``UPDATE SET *`` or ``INSERT *``: columns go by name."""
        return self.values is None


def of_kind(clauses: Iterable[Clause[Term]], kind: Kind) -> list[Clause[Term]]:
    """The clauses of a kind, in their order."""
    return [clause for clause in clauses if clause.kind == kind]


def only_inserts(clauses: Iterable[Clause[Any]]) -> bool:
    """Whether no row of the target can be changed."""
    return all(clause.action == Action.INSERT for clause in clauses)


def with_default_values(
    clauses: Iterable[Clause[Any]], config: TableConfig, moment: Moment, written: Callable[[Default], str] = text_of
) -> tuple[Clause[Any], ...]:
    """The clauses, with SQL text in the place of the word DEFAULT (`tahoe.ops.rows.defaults.with_defaults`).

    Args:
        clauses: their keys without qualifiers (`tahoe.ops.merge.schema.with_places`).
        config: of the table as it is.
        written: gives the SQL text of a default.
    """

    def filled(clause: Clause[Any]) -> Clause[Any]:
        values = clause.values or ()
        if not any(is_keyword(value) for _, value in values):
            return clause
        return replace(clause, values=with_defaults(values, config, moment, written=written))

    return tuple(map(filled, clauses))


def may_match_often(clauses: Sequence[Clause[Any]]) -> bool:
    """Whether several rows of the source may match one row of the target: if all matched rows are deleted, or none can change.

    Conditions of clauses do not count, as in delta-spark: a row with two matches is an error even where only one of them satisfies the
    condition of a clause.
    """
    matched = of_kind(clauses, Kind.MATCHED)
    deletes_all = len(matched) == 1 and matched[0].action == Action.DELETE and matched[0].condition is None
    return deletes_all or only_inserts(clauses)


def check_clauses(clauses: Sequence[Clause[Any]]) -> None:
    """Raises `InvalidRequest` where the clauses break a rule."""
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
    """A MERGE, complete.

    Args:
        source: Arrow data; read once.
        on: SQL text over both sides; where it is true, a row of the source matches a row of the target.
        schema_evolution: ``UPDATE SET *``, ``INSERT *`` and assignments may add columns that only the source has.
        source_alias, target_alias: the names of the two sides in all expressions.
    """

    source: ArrowData
    on: str
    clauses: tuple[Clause[str], ...] = ()
    schema_evolution: bool = False
    source_alias: str = "source"
    target_alias: str = "target"
    time_zone: str = "UTC"

    def check(self) -> None:
        """Raises `InvalidRequest` where the statement breaks a rule."""
        check_clauses(self.clauses)
        if self.source_alias.lower() == self.target_alias.lower():
            raise InvalidRequest(
                f"Source and target of a MERGE need different names, both are '{self.source_alias}'.",
                code="TAHOE_MERGE_SAME_NAMES",
            )


@dataclass(frozen=True, slots=True)
@checked_arguments
class MergeBuilder:
    """Clauses are added in the order in which they are tried; `execute` runs them, `explain` only looks. Each method gives a new builder.

    Conditions and values are SQL; ``source.x`` and ``target.x`` are the columns of the two sides. For every row the first clause
    of its kind counts whose condition is true.
    """

    statement: MergeStatement
    run: Callable[[MergeStatement], RowsChanged]
    look: Callable[[MergeStatement], MergeExplained]

    def when_matched_update(self, set: SqlValues, condition: str | None = None) -> MergeBuilder:
        """Give matched rows new values: column, or nested field → expression over both sides."""
        return self._with(Clause(Kind.MATCHED, Action.UPDATE, condition, tuple(sql_texts(set).items())))

    def when_matched_update_all(self, condition: str | None = None) -> MergeBuilder:
        """Give matched rows the source's values, column by column of the same name."""
        return self._with(Clause(Kind.MATCHED, Action.UPDATE, condition, None))

    def when_matched_delete(self, condition: str | None = None) -> MergeBuilder:
        """Delete matched rows."""
        return self._with(Clause(Kind.MATCHED, Action.DELETE, condition))

    def when_not_matched_insert(self, values: SqlValues, condition: str | None = None) -> MergeBuilder:
        """Insert a row for each row of the source that matches none: column → expression over the source; others are null."""
        return self._with(Clause(Kind.NOT_MATCHED, Action.INSERT, condition, tuple(sql_texts(values).items())))

    def when_not_matched_insert_all(self, condition: str | None = None) -> MergeBuilder:
        """Insert each row of the source that matches none, column by column of the same name."""
        return self._with(Clause(Kind.NOT_MATCHED, Action.INSERT, condition, None))

    def when_not_matched_by_source_update(self, set: SqlValues, condition: str | None = None) -> MergeBuilder:
        """Give rows of the target that no row of the source matches new values, over the target only."""
        return self._with(Clause(Kind.NOT_MATCHED_BY_SOURCE, Action.UPDATE, condition, tuple(sql_texts(set).items())))

    def when_not_matched_by_source_delete(self, condition: str | None = None) -> MergeBuilder:
        """Delete rows of the target that no row of the source matches."""
        return self._with(Clause(Kind.NOT_MATCHED_BY_SOURCE, Action.DELETE, condition))

    def with_schema_evolution(self) -> MergeBuilder:
        """Let the clauses add columns that only the source has."""
        return replace(self, statement=replace(self.statement, schema_evolution=True))

    def execute(self) -> RowsChanged:
        """Run it; see `tahoe.ops.merge.merge.stage_merge` for what it raises."""
        return self.run(self.statement)

    def explain(self) -> MergeExplained:
        """What `execute` would do now, clause by clause. Nothing is written; raises what `execute` raises before it writes."""
        return self.look(self.statement)

    def _with(self, clause: Clause[str]) -> MergeBuilder:
        return replace(self, statement=replace(self.statement, clauses=(*self.statement.clauses, clause)))
