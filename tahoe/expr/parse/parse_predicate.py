"""SQL text to predicates, by an allow-list: what is not on it is refused by name, and nothing is ever run.

Allowed: `=  ==  <=>  <  <=  >  >=  !=  <>` between a column and a literal either way round, `IN` with literals, `BETWEEN`,
`IS [NOT] NULL`, `IS [NOT] DISTINCT FROM`, `LIKE 'prefix%'`, `startswith(column, 'prefix')`, a boolean column by itself, `true`,
`false`, `AND`, `OR`, `NOT`, parentheses, nested names `a.b` and back-ticks. Literals are those of Spark, and `CAST` of a literal.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tahoe.exceptions import InvalidRequest
from tahoe.expr.parse.syntax import (
    MAX_LENGTH,
    check_length,
    flat_operands,
    hexadecimal_literal,
    names_of,
    no_condition,
    number_literal,
    refused,
    sql_of,
    syntax_tree,
    type_of,
)
from tahoe.expr.tree.coerce import compare, is_in, zone_of
from tahoe.expr.tree.constant_cast import cast_value
from tahoe.expr.tree.predicate import (
    UNKNOWN,
    Column,
    Comparison,
    Constant,
    IsNotNull,
    IsNull,
    Literal,
    Not,
    Predicate,
    StartsWith,
    all_of,
    any_of,
)
from tahoe.schema.types import DataType, PrimitiveType, StructType

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

__all__ = ["MAX_LENGTH", "parse_predicate"]


def parse_predicate(text: str, schema: StructType, time_zone: str = "UTC") -> Predicate:
    """The predicate of an SQL condition, its columns found in the schema and its literals in their columns' types.

    Args:
        text: a condition as after WHERE, in Spark's dialect.
        schema: logical; names are found without regard to case and become the schema's own.
        time_zone: of the session, for timestamps without one.

    Raises:
        InvalidRequest: the text is no condition, names no column, or holds something that is not on the allow-list.
    """
    check_length(text)
    try:
        return _Reader(schema, time_zone).predicate(syntax_tree(text))
    except RecursionError as error:
        raise no_condition(text, "it is nested too deep; write it flatter") from error


class _Reader:
    """Turns sqlglot's tree into a predicate; every kind of node that it does not know is refused."""

    def __init__(self, schema: StructType, time_zone: str) -> None:
        from sqlglot import expressions

        self.e = expressions
        self.schema = schema
        self.time_zone = time_zone
        self.zone = zone_of(time_zone)
        self.operators: dict[type[Expr], str] = {
            expressions.EQ: "=",
            expressions.NEQ: "!=",
            expressions.LT: "<",
            expressions.LTE: "<=",
            expressions.GT: ">",
            expressions.GTE: ">=",
            expressions.NullSafeEQ: "<=>",
        }

    def predicate(self, node: Expr) -> Predicate:
        e = self.e
        kind = type(node)
        if kind in self.operators:
            return self.comparison(self.operators[kind], node.this, node.expression)
        if kind is e.Paren:
            return self.predicate(node.this)
        if kind is e.And or kind is e.Or:
            parts = [self.predicate(part) for part in flat_operands(node, kind)]
            return all_of(parts) if kind is e.And else any_of(parts)
        if kind is e.Not:
            return _not(self.predicate(node.this))
        if kind is e.NullSafeNEQ:
            return Not(self.comparison("<=>", node.this, node.expression))
        if kind is e.Boolean:
            return Constant(bool(node.this))
        if kind is e.Null:
            return UNKNOWN
        if kind is e.Column or kind is e.Dot:
            return self.flag(node)
        return self.special(node)

    def special(self, node: Expr) -> Predicate:
        e = self.e
        match node:
            case e.Is():
                return self.is_null(node)
            case e.In():
                return self.membership(node)
            case e.Between():
                parts = (self.comparison(">=", node.this, node.args["low"]), self.comparison("<=", node.this, node.args["high"]))
                if node.args.get("symmetric"):
                    raise refused(node)
                return all_of(parts)
            case e.Like():
                return _not(self.like(node)) if node.args.get("negate") else self.like(node)
            case e.StartsWith():
                prefix = self.literal(node.expression)
                if not isinstance(prefix.value, str):
                    raise refused(node, "startswith needs a column and a string literal")
                return StartsWith(self.string_column(node.this), prefix.value)
        raise refused(node)

    def comparison(self, op: str, left: Expr, right: Expr) -> Predicate:
        column, data_type = self.column(left)
        if column is None:
            column, data_type = self.column(right)
            if column is None:
                raise refused(left, "one side of a comparison must be a column")
            left, right, op = right, left, _FLIPPED[op]
        return compare(op, column, data_type, self.literal(right), self.time_zone)

    def flag(self, node: Expr) -> Predicate:
        column, data_type = self.column(node)
        if column is None or data_type != PrimitiveType("boolean"):
            message = f"{sql_of(node)} is of type {data_type}; a condition must be boolean."
            raise InvalidRequest(message, code="DATATYPE_MISMATCH")
        return Comparison("=", column, Literal(True, data_type))

    def is_null(self, node: Expr) -> Predicate:
        e = self.e
        column, data_type = self.column(node.this)
        if column is None:
            raise refused(node.this, "IS needs a column at its left")
        if isinstance(node.expression, e.Null):
            return IsNull(column)
        if isinstance(node.expression, e.Boolean) and data_type == PrimitiveType("boolean"):
            return Comparison("<=>", column, Literal(bool(node.expression.this), data_type))
        raise refused(node)

    def membership(self, node: Expr) -> Predicate:
        column, data_type = self.column(node.this)
        if column is None:
            raise refused(node.this, "IN needs a column at its left")
        if any(node.args.get(name) for name in ("query", "unnest", "field")) or not node.expressions:
            raise refused(node, "IN needs a list of literals")
        found = is_in(column, data_type, tuple(self.literal(item) for item in node.expressions), self.time_zone)
        return _not(found) if node.args.get("negate") else found

    def like(self, node: Expr) -> Predicate:
        pattern = self.literal(node.expression).value
        if not isinstance(pattern, str) or not pattern.endswith("%") or any(mark in pattern[:-1] for mark in "%_\\"):
            raise refused(node, "LIKE is allowed with a pattern of plain characters and one '%' at the end")
        return StartsWith(self.string_column(node.this), pattern[:-1])

    def string_column(self, node: Expr) -> Column:
        column, data_type = self.column(node)
        if column is None:
            raise refused(node, "a column is needed")
        if data_type != PrimitiveType("string"):
            raise InvalidRequest(f"Column {column} is of type {data_type}; a prefix needs a string.", code="DATATYPE_MISMATCH")
        return column

    def column(self, node: Expr) -> tuple[Column | None, DataType]:
        """The column that the node names, with the schema's own spelling; no column where the node is something else."""
        e = self.e
        if isinstance(node, e.Paren):
            return self.column(node.this)
        if type(node) is not e.Column and type(node) is not e.Dot:
            return None, PrimitiveType("void")
        path: list[str] = []
        found: Any = self.schema
        for name in names_of(node, e):
            field = found.find(name) if isinstance(found, StructType) else None
            if field is None:
                raise InvalidRequest(
                    f"There is no column {sql_of(node)}; the columns are: {', '.join(self.schema.names)}.",
                    code="DELTA_COLUMN_NOT_FOUND",
                    column=sql_of(node),
                )
            path.append(field.name)
            found = field.data_type
        return Column(tuple(path)), found

    def literal(self, node: Expr) -> Literal:
        e = self.e
        match node:
            case e.Paren():
                return self.literal(node.this)
            case e.Null():
                return Literal(None, PrimitiveType("void"))
            case e.Boolean():
                return Literal(bool(node.this), PrimitiveType("boolean"))
            case e.RawString():
                return Literal(str(node.this), PrimitiveType("string"))
            case e.HexString():
                return hexadecimal_literal(node)
            case e.Literal():
                return Literal(str(node.this), PrimitiveType("string")) if node.is_string else number_literal(str(node.this))
            case e.Neg():
                return _negative(self.literal(node.this), node)
            case e.Cast() if type(node) in (e.Cast, e.TryCast) and not node.args.get("format"):
                return self.cast(node)
        raise refused(node, "a literal is needed")

    def cast(self, node: Expr) -> Literal:
        inner = self.literal(node.this)
        target = type_of(node.args["to"], node, self.e)
        if inner.value is None:
            return Literal(None, target)
        return Literal(cast_value(inner.value, target, self.zone), target)


_FLIPPED = {"=": "=", "!=": "!=", "<=>": "<=>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _not(predicate: Predicate) -> Predicate:
    match predicate:
        case IsNull(column):
            return IsNotNull(column)
        case IsNotNull(column):
            return IsNull(column)
    return Not(predicate)


def _negative(inner: Literal, node: Expr) -> Literal:
    if isinstance(inner.value, bool) or not isinstance(inner.value, int | float | Decimal):
        raise refused(node, "only a number can be negative")
    # A decimal's unary minus would round it to 28 digits.
    return Literal(inner.value.copy_negate() if isinstance(inner.value, Decimal) else -inner.value, inner.data_type)
