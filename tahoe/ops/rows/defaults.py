"""Replace the keyword DEFAULT in the values of an UPDATE or a MERGE, with and without Spark, by the column's default."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from tahoe.base.exceptions import InvalidRequest
from tahoe.ops.rows.assigned_places import Columns, place_of
from tahoe.protocol.column_values.default_values import Default, Moment, default_of, is_keyword
from tahoe.protocol.config import TableConfig

Term = TypeVar("Term")


def text_of(default: Default) -> str:
    """Return the SQL text of a default, for Tahoe's own evaluator."""
    return default.sql


def with_defaults(
    values: Sequence[tuple[str, Term | str]],
    config: TableConfig,
    moment: Moment,
    columns: Columns | None = None,
    written: Callable[[Default], str] = text_of,
) -> tuple[tuple[str, Term | str], ...]:
    """Replace each value that is the keyword DEFAULT by SQL text: the column's default, or NULL if it has none.

    Args:
        values: pairs of a column and an expression.
        columns: the columns of the table with their qualifiers; by default without qualifiers.
        written: returns the SQL text of a default.

    Raises:
        InvalidRequest: DEFAULT for a field of a struct, or for a name that is not a column; a default that cannot be used.
    """
    columns = columns or Columns.of(config.schema)
    return tuple((key, _default(key, config, moment, columns, written) if is_keyword(term) else term) for key, term in values)


def _default(key: str, config: TableConfig, moment: Moment, columns: Columns, written: Callable[[Default], str]) -> str:
    place = place_of(key, [columns])
    if len(place.path) > 1:
        raise InvalidRequest(
            f"'{key}' of table {config.table} is a field of a struct, and only columns have default values. Write the value itself.",
            code="DEFAULT_PLACEMENT_INVALID",
            table=config.table,
            column=key,
        )
    default = default_of(config.schema.field(place.path[0]), config.table, moment)
    return "NULL" if default is None else written(default)
