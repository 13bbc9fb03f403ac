"""The condition of a filter, a DELETE or an UPDATE, with the predicate that skips files and the columns that it reads."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from tahoe.base.exceptions import InvalidRequest
from tahoe.base.lazy import pc
from tahoe.expr.compute.compute import compute_mask
from tahoe.expr.compute.constant_folding import ONE_ROW, with_constants
from tahoe.expr.compute.evaluate import evaluate
from tahoe.expr.condition_forms import Condition, predicate_of
from tahoe.expr.parse.parse_expression import parse_condition
from tahoe.expr.tree.expression import Expression, columns
from tahoe.expr.tree.implied import exact_predicate, to_predicate
from tahoe.expr.tree.predicate import TRUE, Constant, IsNotNull, IsNull, Predicate, leaves_of, references
from tahoe.schema.arrow_values import scalar
from tahoe.schema.collations import collation_refused, compares_by_bytes
from tahoe.schema.types import StructType, is_geospatial


@dataclass(frozen=True, slots=True)
class RowCondition:
    """A resolved condition on rows.

    Args:
        text: the user's text; None if every row matches.
        exact: decides for each row: a predicate if the condition can be expressed as one, which is fastest, else the expression.
        predicate: for skipping and the conflict check: true wherever `exact` is true, and perhaps elsewhere.
        columns: the top-level columns that `exact` reads.
    """

    text: str | None
    exact: Predicate | Expression
    predicate: Predicate
    columns: tuple[str, ...]

    @property
    def beyond_predicate(self) -> Expression | None:
        """The expression to evaluate for rows for which `predicate` is true; None if `predicate` is exact."""
        return None if isinstance(self.exact, Predicate) else self.exact

    @property
    def is_for_all_rows(self) -> bool:
        """Whether every row matches, so that no row must be evaluated."""
        return self.exact == TRUE

    def mask(self, rows: pa.Table) -> pa.Array:
        """Return TRUE for the matching rows, otherwise FALSE; never NULL.

        Args:
            rows: the `columns`, by their logical names, and possibly others.
        """
        if not isinstance(self.exact, Predicate):
            return compute_mask(self.exact, rows)
        answers = pc.fill_null(evaluate(self.exact, rows), scalar(False))
        return answers.combine_chunks() if isinstance(answers, pa.ChunkedArray) else answers


def row_condition(where: Condition | None, schema: StructType, time_zone: str = "UTC", now_ms: int | None = None) -> RowCondition:
    """Resolve SQL text, a predicate, or another form that `tahoe.expr.condition_forms` reads.

    Args:
        time_zone, now_ms: as for `parse_expression`.

    Raises `InvalidRequest` for text that cannot be parsed, for a comparison that depends on a collation (``TAHOE_COLLATED_COLUMN``),
    and for a comparison of values that have no order (``DATATYPE_MISMATCH``).
    """
    if where is None:
        return RowCondition(None, TRUE, TRUE, ())
    if not isinstance(where, str):
        where = predicate_of(where, schema, time_zone)
        _check_comparable(where, schema)
        names = tuple(sorted({schema.field(path[0]).name for path in references(where)}))
        return RowCondition(str(where), where, where, names)
    expression = with_constants(parse_condition(where, schema, time_zone, now_ms))
    names = tuple(sorted({name for _, name in columns(expression)}))
    exact = exact_predicate(expression, time_zone)
    if exact is not None:
        return RowCondition(where, exact, exact, names)
    # `1 < 2`, and `true` in any other spelling, means every row, or none.
    if not names:
        constant = Constant(compute_mask(expression, ONE_ROW)[0].as_py())
        return RowCondition(where, constant, constant, ())
    return RowCondition(where, expression, to_predicate(expression, None, time_zone) or TRUE, names)


def _check_comparable(predicate: Predicate, schema: StructType) -> None:
    """Raise `InvalidRequest` if a predicate compares a column whose values do not compare by their bytes, or not at all."""
    for leaf in leaves_of(predicate):
        column = schema.resolve(leaf.column.path)
        if column is None or isinstance(leaf, IsNull | IsNotNull):
            continue
        if not compares_by_bytes(column):
            raise collation_refused(str(leaf.column), str(leaf))
        if is_geospatial(column.data_type):
            raise InvalidRequest(
                f"Column '{leaf.column}' is {column.data_type}, which cannot be compared; only IS NULL and IS NOT NULL are supported, "
                f"found: {str(leaf)[:200]}.",
                code="DATATYPE_MISMATCH",
                column=str(leaf.column),
            )
