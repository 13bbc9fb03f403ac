"""SQL text to predicates, by an allow-list: what is not on it is refused by name, and nothing is ever run.

Allowed: `=  ==  <=>  <  <=  >  >=  !=  <>` between a column and a literal either way round, `IN` with literals, `BETWEEN`,
`IS [NOT] NULL`, `IS [NOT] DISTINCT FROM`, `LIKE 'prefix%'`, `startswith(column, 'prefix')`, a boolean column by itself, `true`,
`false`, `AND`, `OR`, `NOT`, parentheses, nested names `a.b` and back-ticks. Literals are those of Spark, and `CAST` of a literal.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from tahoe.exceptions import InvalidRequest
from tahoe.expr.cast import cast_value
from tahoe.expr.coerce import compare, is_in, zone_of
from tahoe.expr.predicate import (
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
from tahoe.schema.types import DataType, DecimalType, PrimitiveType, StructType

if TYPE_CHECKING:
    from sqlglot.expressions import Expr
    from sqlglot.tokenizer_core import Token

__all__ = ["MAX_LENGTH", "parse_predicate"]

MAX_LENGTH = 4_000_000
"""Characters that a predicate may have: a bound on the work that a text can ask for."""


def parse_predicate(text: str, schema: StructType, time_zone: str = "UTC") -> Predicate:
    """The predicate of an SQL condition, its columns found in the schema and its literals in their columns' types.

    Args:
        text: a condition as after WHERE, in Spark's dialect.
        schema: logical; names are found without regard to case and become the schema's own.
        time_zone: of the session, for timestamps without one.

    Raises:
        InvalidRequest: the text is no condition, names no column, or holds something that is not on the allow-list.
    """
    if len(text) > MAX_LENGTH:
        raise InvalidRequest(f"The condition has {len(text)} characters; at most {MAX_LENGTH} are read. Shorten it.")
    try:
        return _Reader(schema, time_zone).predicate(_syntax_tree(text))
    except RecursionError as error:
        raise _no_condition(text, "it is nested too deep; write it flatter") from error


def _syntax_tree(text: str) -> Expr:
    from sqlglot import expressions as e
    from sqlglot.dialects.dialect import Dialect
    from sqlglot.errors import SqlglotError

    dialect = Dialect.get_or_raise("databricks")
    try:
        tokens = _join_doubled_quotes(dialect.tokenize(text), text)
        found = dialect.parser().parse_into(e.Condition, tokens, text)
    except SqlglotError as error:
        raise _no_condition(text, str(error.__cause__ or error).split("\n")[0].split(". Line")[0][:200]) from error
    if len(found) != 1 or found[0] is None:
        raise _no_condition(text, "there must be one, and nothing else")
    return found[0]


def _join_doubled_quotes(tokens: list[Token], text: str) -> list[Token]:
    """`'it''s'` comes as two neighbouring strings; Spark 4 reads one, with the quote in it."""
    from sqlglot.tokenizer_core import TokenType

    joined: list[Token] = []
    for token in tokens:
        last = joined[-1] if joined else None
        if (
            last is not None
            and last.token_type == token.token_type == TokenType.STRING
            and last.end + 1 == token.start
            and text[last.end] == text[token.start]
        ):
            last.text = f"{last.text}{text[token.start]}{token.text}"
            last.end = token.end
        else:
            joined.append(token)
    return joined


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
            parts = [self.predicate(part) for part in _flat(node, kind)]
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
                    raise _refused(node)
                return all_of(parts)
            case e.Like():
                return _not(self.like(node)) if node.args.get("negate") else self.like(node)
            case e.StartsWith():
                prefix = self.literal(node.expression)
                if not isinstance(prefix.value, str):
                    raise _refused(node, "startswith needs a column and a string literal")
                return StartsWith(self.string_column(node.this), prefix.value)
        raise _refused(node)

    def comparison(self, op: str, left: Expr, right: Expr) -> Predicate:
        column, data_type = self.column(left)
        if column is None:
            column, data_type = self.column(right)
            if column is None:
                raise _refused(left, "one side of a comparison must be a column")
            left, right, op = right, left, _FLIPPED[op]
        return compare(op, column, data_type, self.literal(right), self.time_zone)

    def flag(self, node: Expr) -> Predicate:
        column, data_type = self.column(node)
        if column is None or data_type != PrimitiveType("boolean"):
            message = f"{_sql(node)} is of type {data_type}; a condition must be boolean."
            raise InvalidRequest(message, code="DATATYPE_MISMATCH")
        return Comparison("=", column, Literal(True, data_type))

    def is_null(self, node: Expr) -> Predicate:
        e = self.e
        column, data_type = self.column(node.this)
        if column is None:
            raise _refused(node.this, "IS needs a column at its left")
        if isinstance(node.expression, e.Null):
            return IsNull(column)
        if isinstance(node.expression, e.Boolean) and data_type == PrimitiveType("boolean"):
            return Comparison("<=>", column, Literal(bool(node.expression.this), data_type))
        raise _refused(node)

    def membership(self, node: Expr) -> Predicate:
        column, data_type = self.column(node.this)
        if column is None:
            raise _refused(node.this, "IN needs a column at its left")
        if any(node.args.get(name) for name in ("query", "unnest", "field")) or not node.expressions:
            raise _refused(node, "IN needs a list of literals")
        found = is_in(column, data_type, tuple(self.literal(item) for item in node.expressions), self.time_zone)
        return _not(found) if node.args.get("negate") else found

    def like(self, node: Expr) -> Predicate:
        pattern = self.literal(node.expression).value
        if not isinstance(pattern, str) or not pattern.endswith("%") or any(mark in pattern[:-1] for mark in "%_\\"):
            raise _refused(node, "LIKE is allowed with a pattern of plain characters and one '%' at the end")
        return StartsWith(self.string_column(node.this), pattern[:-1])

    def string_column(self, node: Expr) -> Column:
        column, data_type = self.column(node)
        if column is None:
            raise _refused(node, "a column is needed")
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
        for name in _names(node, e):
            field = found.find(name) if isinstance(found, StructType) else None
            if field is None:
                raise InvalidRequest(
                    f"There is no column {_sql(node)}; the columns are: {', '.join(self.schema.names)}.",
                    code="DELTA_COLUMN_NOT_FOUND",
                    column=_sql(node),
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
                return _hexadecimal(node)
            case e.Literal():
                return Literal(str(node.this), PrimitiveType("string")) if node.is_string else _number(str(node.this))
            case e.Neg():
                return _negative(self.literal(node.this), node)
            case e.Cast() if type(node) in (e.Cast, e.TryCast) and not node.args.get("format"):
                return self.cast(node)
        raise _refused(node, "a literal is needed")

    def cast(self, node: Expr) -> Literal:
        inner = self.literal(node.this)
        target = _type(node.args["to"], node, self.e)
        if inner.value is None:
            return Literal(None, target)
        return Literal(cast_value(inner.value, target, self.zone), target)


_FLIPPED = {"=": "=", "!=": "!=", "<=>": "<=>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_TYPES = {
    "TINYINT": "byte",
    "SMALLINT": "short",
    "INT": "integer",
    "BIGINT": "long",
    "FLOAT": "float",
    "DOUBLE": "double",
    "BOOLEAN": "boolean",
    "TEXT": "string",
    "VARCHAR": "string",
    "BINARY": "binary",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMPTZ": "timestamp",
    "TIMESTAMPLTZ": "timestamp",
    "TIMESTAMPNTZ": "timestamp_ntz",
}


def _flat(node: Expr, kind: type[Expr]) -> list[Expr]:
    """The operands of a chain of ANDs or ORs; a long chain is a deep tree, so no recursion."""
    operands: list[Expr] = []
    pending = [node]
    while pending:
        current = pending.pop()
        if type(current) is kind:
            pending += [current.expression, current.this]
        else:
            operands.append(current)
    return operands


def _not(predicate: Predicate) -> Predicate:
    match predicate:
        case IsNull(column):
            return IsNotNull(column)
        case IsNotNull(column):
            return IsNull(column)
    return Not(predicate)


def _names(node: Expr, e: Any) -> list[str]:
    if isinstance(node, e.Dot):
        if not isinstance(node.expression, e.Identifier) or type(node.this) not in (e.Column, e.Dot, e.Identifier):
            raise _refused(node)
        return [*_names(node.this, e), str(node.expression.name)]
    if isinstance(node, e.Identifier):
        return [str(node.name)]
    parts = [node.args.get(name) for name in ("catalog", "db", "table", "this")]
    if any(part is not None and not isinstance(part, e.Identifier) for part in parts) or node.args.get("join_mark"):
        raise _refused(node)
    return [str(part.name) for part in parts if part is not None]


def _number(text: str) -> Literal:
    try:
        if "e" in text.lower():
            return Literal(float(text), PrimitiveType("double"))
        number = Decimal(text)
    except (ValueError, InvalidOperation) as error:
        raise InvalidRequest(f"'{text[:100]}' is no number.", code="PARSE_SYNTAX_ERROR") from error
    if "." not in text and number == number.to_integral_value():
        whole = int(number)
        return Literal(whole, PrimitiveType("integer" if -(1 << 31) <= whole < 1 << 31 else "long"))
    return Literal(number, _decimal_type(number))


def _decimal_type(number: Decimal) -> DecimalType:
    _, digits, exponent = number.as_tuple()
    scale = max(-int(exponent), 0)
    return DecimalType(max(len(digits), scale, 1), scale)


def _negative(inner: Literal, node: Expr) -> Literal:
    if isinstance(inner.value, bool) or not isinstance(inner.value, int | float | Decimal):
        raise _refused(node, "only a number can be negative")
    # A decimal's unary minus would round it to 28 digits.
    return Literal(inner.value.copy_negate() if isinstance(inner.value, Decimal) else -inner.value, inner.data_type)


def _hexadecimal(node: Expr) -> Literal:
    text = str(node.this)
    try:
        return Literal(bytes.fromhex(text.rjust(len(text) + len(text) % 2, "0")), PrimitiveType("binary"))
    except ValueError as error:
        raise _refused(node, "X'…' needs hexadecimal digits") from error


def _type(node: Expr, cast: Expr, e: Any) -> DataType:
    name = node.this.name if isinstance(node, e.DataType) and isinstance(node.this, e.DType) else ""
    if name == "DECIMAL":
        sizes = [int(part.this.this) for part in node.expressions]
        return DecimalType(*(sizes if len(sizes) == 2 else [*sizes, 0] if sizes else [10, 0]))
    if name not in _TYPES or (node.expressions and name != "VARCHAR"):
        raise _refused(cast, "the type of the cast is not on the list")
    return PrimitiveType(_TYPES[name])


def _refused(node: Expr, reason: str = "this is not on the list of what a filter may hold") -> InvalidRequest:
    text = _sql(node)
    message = f"The condition holds '{_short(text)}': {reason}."
    return InvalidRequest(message, code="TAHOE_EXPRESSION_NOT_ALLOWED", expression=text[:1000])


def _no_condition(text: str, reason: str) -> InvalidRequest:
    return InvalidRequest(f"'{_short(text)}' is no SQL condition: {reason}.", code="PARSE_SYNTAX_ERROR", condition=text[:1000])


def _sql(node: Expr) -> str:
    """The part of the condition that a message speaks of."""
    return node.sql("databricks")


def _short(text: str) -> str:
    return text if len(text) <= 120 else text[:117] + "..."
