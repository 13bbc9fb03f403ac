"""Replace the keyword DEFAULT in the values of an UPDATE or a MERGE, with and without Spark, by the column's default."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tahoe.base.clock import Moment
from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.tree.expression import Reference
from tahoe.ops.rows.assigned_places import Columns, place_of
from tahoe.protocol.column_values.default_values import Default, default_of, is_keyword
from tahoe.protocol.config import TableConfig

Term = TypeVar("Term")


def _text_of(default: Default) -> str:
    """Return the SQL text of a default, for Tahoe's own evaluator."""
    return default.sql


@dataclass(frozen=True, slots=True)
class Defaults:
    """The default values of a table's columns in one statement.

    Args:
        config: the configuration of the table before the statement.
        moment: the time of the statement.
        written: returns the SQL text of a default.
    """

    config: TableConfig
    moment: Moment
    written: Callable[[Default], str] = _text_of

    def text(self, place: Reference) -> str:
        """Return the default of a column as SQL text; NULL if it has none.

        Raises:
            InvalidRequest: the place is a field of a struct; there is no such column; the default cannot be used.
        """
        config = self.config
        if len(place.path) > 1:
            raise InvalidRequest(
                f"'{place}' of table {config.table} is a field of a struct, and only columns have default values. Write the value itself.",
                code="DEFAULT_PLACEMENT_INVALID",
                table=config.table,
                column=".".join(place.path),
            )
        default = default_of(config.schema.field(place.path[0]), config.table, self.moment)
        return "NULL" if default is None else self.written(default)


def with_defaults(
    values: Sequence[tuple[str, Term | str]], columns: Columns, defaults: Defaults
) -> tuple[tuple[str, Term | str], ...]:
    """Replace each value that is the keyword DEFAULT by SQL text (`Defaults.text`).

    Args:
        values: pairs of a column and an expression.
        columns: the columns of the table with their qualifiers.
    """
    return tuple((key, defaults.text(place_of(key, [columns])) if is_keyword(term) else term) for key, term in values)
