"""SQL text to typed expressions, by an allow-list: what is not on it is refused by name, and nothing is ever run.

The grammar is that of Spark; where Spark and the parser used here bind operators differently, parentheses are demanded.
Functions are those of `tahoe.expr.tree.functions`. Refused are, besides all that is unknown: subqueries, aggregates, windows, lambdas,
parameters and variables, intervals, and names with a database.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tahoe.exceptions import InvalidRequest
from tahoe.expr.parse.syntax import (
    MOST_LEVELS,
    check_length,
    decimal_type_of,
    flat_operands,
    hexadecimal_literal,
    names_of,
    number_literal,
    refuse_more_than,
    refused,
    sql_of,
    syntax_tree,
    too_deep,
    type_of,
)
from tahoe.expr.tree.chains import without_chains
from tahoe.expr.tree.coerce import zone_of
from tahoe.expr.tree.common_types import BOOLEAN, LONG, STRING, VOID, same_type
from tahoe.expr.tree.constant_cast import cast_value
from tahoe.expr.tree.expression import Case, Cast, Expression, Literal, Reference, levels_of
from tahoe.expr.tree.functions import FUNCTIONS, call, cast_to, condition, meet
from tahoe.schema.types import DecimalType, StructField, StructType

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

__all__ = ["Schemas", "parse_condition", "parse_expression"]

Schemas = StructType | Mapping[str, StructType]
"""One schema, or several by their qualifiers (``source``, ``target``)."""


def parse_expression(text: str, schemas: Schemas, time_zone: str = "UTC") -> Expression:
    """The typed expression of an SQL text.

    Args:
        text: an expression in Spark's dialect.
        schemas: logical; names are found without regard to case and become the schema's own. With several, a name may be
            qualified, and a column that only one of them has need not be.
        time_zone: of the session, for timestamps without one.

    Raises:
        InvalidRequest: the text is no expression, names no column, does not fit its types, or holds something that is not on the
            allow-list.
    """
    check_length(text)
    try:
        found = _Reader(schemas, time_zone).read(syntax_tree(text, plain_functions=True))
    except RecursionError as error:
        raise too_deep(text) from error
    if (levels := levels_of(found)) > MOST_LEVELS:
        raise too_deep(text, levels)
    return found


def parse_condition(text: str, schemas: Schemas, time_zone: str = "UTC") -> Expression:
    """As `parse_expression`, for a text that must be boolean."""
    return condition(parse_expression(text, schemas, time_zone), time_zone)


class _Reader:
    """Turns sqlglot's tree into an expression; every kind of node that it does not know is refused."""

    def __init__(self, schemas: Schemas, time_zone: str) -> None:
        from sqlglot import expressions as e

        self.e: Any = e
        self.schemas = schemas
        self.time_zone = time_zone
        self.zone = zone_of(time_zone)
        self.comparisons = {
            e.EQ: "=",
            e.NEQ: "!=",
            e.LT: "<",
            e.LTE: "<=",
            e.GT: ">",
            e.GTE: ">=",
            e.NullSafeEQ: "<=>",
            e.NullSafeNEQ: "<=>",
        }
        self.arithmetic = {e.Add: "+", e.Sub: "-", e.Mul: "*", e.Div: "/", e.Mod: "%", e.IntDiv: "div"}
        self.tight = {e.DPipe: "||", e.BitwiseAnd: "&", e.BitwiseOr: "|", e.BitwiseXor: "^"}
        self.tests = (*self.comparisons, e.Is, e.In, e.Between, e.Like, e.ILike, e.RegexpLike, e.Escape, e.Not, e.And, e.Or)

    def read(self, node: Expr) -> Expression:
        e = self.e
        kind = type(node)
        refuse_more_than(node, _READ_ARGUMENTS.get(kind.__name__, _OPERANDS), _NOT_ALLOWED)
        if kind is e.Paren:
            return self.read(node.this)
        if kind is e.And or kind is e.Or:
            name = "and" if kind is e.And else "or"
            parts = without_chains(name, [self.read(part) for part in flat_operands(node, kind)])
            return parts[0] if len(parts) == 1 else self.call(name, *parts)
        if kind in self.comparisons:
            found = self.call(self.comparisons[kind], self.operand(node.this), self.operand(node.expression))
            return self.call("not", found) if kind is e.NullSafeNEQ else found
        if kind in self.arithmetic:
            return self.call(self.arithmetic[kind], self.read(node.this), self.read(node.expression))
        if kind in self.tight:
            operands = (node.this, node.expression)
            if any(type(part) in (*self.arithmetic, *self.tight) and type(part) is not kind for part in operands):
                raise refused(node, f"operators next to '{self.tight[kind]}' need parentheses")
            return self.call(self.tight[kind], *(self.read(part) for part in operands))
        if kind is e.Column or kind is e.Dot:
            return self.column(node)
        if kind is e.Anonymous:
            return self.function(node)
        return self.predicate(node) if isinstance(node, self.tests) else self.special(node)

    def call(self, name: str, *arguments: Expression) -> Expression:
        return call(name, arguments, self.time_zone)

    def operand(self, node: Expr) -> Expression:
        """What stands next to a comparison; a test there would be bound by Spark in another way."""
        if isinstance(node, self.tests):
            raise refused(node, "inside another comparison this needs parentheses")
        return self.read(node)

    def predicate(self, node: Expr) -> Expression:
        e = self.e
        match node:
            case e.Not():
                return self.negation(node)
            case e.Is():
                return self.truth(node)
            case e.In():
                if not node.expressions:
                    raise refused(node, "IN needs a list of values")
                found = self.call("in", self.operand(node.this), *(self.read(item) for item in node.expressions))
                return self.call("not", found) if node.args.get("negate") else found
            case e.Between():
                value, low, high = (self.operand(node.args[name]) for name in ("this", "low", "high"))
                return self.call("and", self.call(">=", value, low), self.call("<=", value, high))
            case e.Like() | e.RegexpLike() if not isinstance(node.expression, e.Any | e.All):
                name = "like" if isinstance(node, e.Like) else "rlike"
                found = self.call(name, self.operand(node.this), self.operand(node.expression))
                return self.call("not", found) if node.args.get("negate") else found
        raise refused(node, _NOT_ALLOWED)

    def negation(self, node: Expr) -> Expression:
        inner = node.this
        if isinstance(inner, self.e.Is) and isinstance(inner.expression, self.e.Null):
            return self.call("is not null", self.operand(inner.this))
        return self.call("not", self.read(inner))

    def truth(self, node: Expr) -> Expression:
        value = self.operand(node.this)
        match node.expression:
            case self.e.Null():
                return self.call("is null", value)
            case self.e.Boolean():
                if value.data_type not in (BOOLEAN, VOID):
                    raise refused(node, "IS TRUE and IS FALSE need a boolean")
                return self.call("<=>", value, Literal(bool(node.expression.this), BOOLEAN))
        raise refused(node, _NOT_ALLOWED)

    def special(self, node: Expr) -> Expression:
        e = self.e
        match node:
            case e.Case():
                return self.case(node)
            case e.If():
                if node.args.get("false") is None:
                    raise refused(node, "if takes 3 arguments")
                return self.call("if", *(self.read(node.args[name]) for name in ("this", "true", "false")))
            case e.Neg():
                return self.negative(node)
            case e.BitwiseNot():
                return self.call("~", self.read(node.this))
            case e.Bracket():
                if len(node.expressions) != 1 or type(node.expressions[0]) is e.Slice:
                    raise refused(node, _NOT_ALLOWED)
                return self.call("[]", self.read(node.this), self.read(node.expressions[0]))
            case e.Substring():
                parts = [node.this, node.args.get("start"), node.args.get("length")]
                return self.call("substring", *(self.read(part) for part in parts if part is not None))
            case e.Trim():
                if node.expression is not None or node.args.get("position"):
                    raise refused(node, "trim takes one text; blanks are what it removes")
                return self.call("trim", self.read(node.this))
            case e.StrPosition():
                return self.call("instr", self.read(node.this), self.read(node.args["substr"]))
            case e.Extract():
                name = _PARTS.get(str(node.this.name).lower())
                if name is None:
                    raise refused(node, f"extract knows {', '.join(_PARTS)}")
                return self.call(name, self.read(node.expression))
        return self.literal(node)

    def case(self, node: Expr) -> Expression:
        subject = None if node.this is None else self.read(node.this)
        conditions, values = [], []
        for branch in node.args["ifs"]:
            found = self.read(branch.this)
            conditions.append(condition(found, self.time_zone) if subject is None else self.call("=", subject, found))
            values.append(self.read(branch.args["true"]))
        default = node.args.get("default")
        values.append(Literal(None, VOID) if default is None else self.read(default))
        met = meet("case", tuple(values), self.time_zone)
        return Case(tuple(zip(conditions, met[:-1], strict=True)), met[-1], met[0].data_type)

    def negative(self, node: Expr) -> Expression:
        e = self.e
        inner = node.this
        if type(inner) is e.Literal and not inner.is_string:
            return _number(f"-{inner.this}")
        if (
            type(inner) is e.Cast
            and type(inner.this) is e.Literal
            and not inner.args.get("format")
            and _is_number(inner.this.this)
        ):
            # -128Y and the like: the number without its sign does not fit its type.
            target = type_of(inner.args["to"], inner, e)
            value = Literal(f"-{inner.this.this}", STRING) if inner.this.is_string else _number(f"-{inner.this.this}")
            return Literal(cast_value(value.value, target, self.zone), target)
        return self.call("negative", self.read(inner))

    def literal(self, node: Expr) -> Expression:
        e = self.e
        match node:
            case e.Null():
                return Literal(None, VOID)
            case e.Boolean():
                return Literal(bool(node.this), BOOLEAN)
            case e.RawString():
                return Literal(str(node.this), STRING)
            case e.HexString():
                return hexadecimal_literal(node)
            case e.Literal():
                return Literal(str(node.this), STRING) if node.is_string else _number(str(node.this))
            case e.Cast() if type(node) in (e.Cast, e.TryCast):
                return self.cast(node)
        raise refused(node, _NOT_ALLOWED)

    def cast(self, node: Expr) -> Expression:
        child = self.read(node.this)
        target = type_of(node.args["to"], node, self.e)
        if type(node) is self.e.TryCast:
            return Cast(child, target, self.time_zone, lenient=True)
        if isinstance(child, Literal):
            found = cast_to(child, target, self.time_zone)
            if isinstance(found, Literal):
                return found
        if same_type(child.data_type, target):
            return child
        return Cast(child, target, self.time_zone)

    def function(self, node: Expr) -> Expression:
        name = (node.this if isinstance(node.this, str) else node.this.name).lower()
        if name in _SIGNS_ONLY:
            raise refused(node, _NOT_ALLOWED)
        if name not in FUNCTIONS:
            return self.call(name)  # refused by its name, whatever its arguments are
        return self.call(name, *(self.read(argument) for argument in node.expressions))

    def column(self, node: Expr) -> Expression:
        """A column, or fields inside what another expression gives."""
        e = self.e
        if isinstance(node, e.Dot) and type(node.this) not in (e.Column, e.Dot, e.Identifier):
            if not isinstance(node.expression, e.Identifier):
                raise refused(node, _NOT_ALLOWED)
            return self.call("field", self.read(node.this), Literal(str(node.expression.name), STRING))
        if isinstance(node, e.Dot) and isinstance(node.this, e.Dot) and not _is_name(node.this, e):
            if not isinstance(node.expression, e.Identifier):
                raise refused(node, _NOT_ALLOWED)
            return self.call("field", self.column(node.this), Literal(str(node.expression.name), STRING))
        return self.named(names_of(node, e), node)

    def named(self, names: list[str], node: Expr) -> Expression:
        if isinstance(self.schemas, StructType):
            found = _resolved(self.schemas, names, None)
            if found is not None:
                return found
            raise self.unknown(node, self.schemas.names)
        qualifier = next((key for key in self.schemas if key.lower() == names[0].lower()), None)
        if qualifier is not None and len(names) > 1:
            found = _resolved(self.schemas[qualifier], names[1:], qualifier)
            if found is not None:
                return found
        met = [one for key, schema in self.schemas.items() if (one := _resolved(schema, names, key)) is not None]
        if len(met) > 1:
            raise InvalidRequest(
                f"The column {sql_of(node)} is in more than one of {', '.join(self.schemas)}; put one of these names before it.",
                code="AMBIGUOUS_REFERENCE",
                column=sql_of(node),
            )
        if not met:
            raise self.unknown(node, [f"{key}.{name}" for key, schema in self.schemas.items() for name in schema.names])
        return met[0]

    def unknown(self, node: Expr, known: list[str]) -> InvalidRequest:
        return InvalidRequest(
            f"There is no column {sql_of(node)}; the columns are: {', '.join(known)}.",
            code="DELTA_COLUMN_NOT_FOUND",
            column=sql_of(node),
        )


_NOT_ALLOWED = "this is not on the list of what an expression may hold"
_OPERANDS = frozenset({"this", "expression"})
_READ_ARGUMENTS = {
    "Div": _OPERANDS | {"typed", "safe"},
    "DPipe": _OPERANDS | {"safe"},
    "In": frozenset({"this", "expressions"}),
    "Between": frozenset({"this", "low", "high"}),
    "Like": _OPERANDS | {"negate"},
    "RegexpLike": _OPERANDS | {"negate"},
    "Column": frozenset({"this", "table", "db", "catalog"}),
    "Anonymous": frozenset({"this", "expressions"}),
    "Case": frozenset({"this", "ifs", "default"}),
    "If": frozenset({"this", "true", "false"}),
    "Bracket": frozenset({"this", "expressions", "offset"}),
    "Substring": frozenset({"this", "start", "length"}),
    "Trim": _OPERANDS | {"position"},
    "StrPosition": frozenset({"this", "substr"}),
    "Literal": frozenset({"this", "is_string"}),
    "Cast": frozenset({"this", "to"}),
    "TryCast": frozenset({"this", "to", "safe"}),
}
"""What of each kind of node is read; a node that says more is refused. Others have operands alone."""
_PARTS = {
    **{name: name for name in ("year", "quarter", "month", "day", "hour", "minute", "dayofweek")},
    "week": "weekofyear",
    "doy": "dayofyear",
}
_SIGNS_ONLY = frozenset({"is null", "is not null", "[]", "field", "||"})
"""Rows of the allow-list that are no function's name."""


def _resolved(schema: StructType, names: list[str], qualifier: str | None) -> Reference | None:
    path: list[str] = []
    at: Any = schema
    for name in names:
        column: StructField | None = at.find(name) if isinstance(at, StructType) else None
        if column is None:
            return None
        path.append(column.name)
        at = column.data_type
    return Reference(tuple(path), at, qualifier)


def _is_name(node: Expr, e: Any) -> bool:
    while isinstance(node, e.Dot):
        node = node.this
    return type(node) in (e.Column, e.Identifier)


def _is_number(text: str) -> bool:
    return text[:1].isdigit() or text[:1] == "."


def _number(text: str) -> Literal:
    """A number with its sign: INT, LONG or, beyond that, DECIMAL as Spark reads it."""
    found = number_literal(text)
    if found.data_type == LONG and not -(1 << 63) <= found.value < 1 << 63:
        digits = Decimal(found.value)
        return Literal(digits, decimal_type_of(digits))
    if isinstance(found.data_type, DecimalType) and found.data_type.precision > 38:
        raise InvalidRequest(f"The number {text[:60]} has more than 38 digits.", code="DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION")
    return found
