"""Scalar expressions as frozen, typed values: columns, constants, calls and CASE.

Each node has its Delta type; operands already have the types of the operation, by casts that are marked as implicit.
Nothing in an expression can run code: a call names a function of `tahoe.expr.tree.functions`. `str(expression)` is SQL that Spark reads
back with the same meaning, with every name in back-ticks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tahoe.expr.tree.common_types import BOOLEAN, ENGINE_TYPE, VOID, decimal_type_of
from tahoe.expr.tree.predicate import Literal, quote_identifier, quote_literal
from tahoe.schema.types import ArrayType, DataType, DecimalType, MapType, PrimitiveType, StructType

__all__ = [
    "OPERATORS",
    "PLUS_INTERVAL",
    "PLUS_MICROSECONDS",
    "PLUS_MONTHS",
    "Call",
    "Case",
    "Cast",
    "EngineText",
    "Expression",
    "Literal",
    "Reference",
    "children",
    "columns",
    "compared_by_bytes",
    "conjuncts_of",
    "engine_text_in",
    "levels_of",
    "references_of",
    "sql_of_expression",
    "sql_type",
    "walk",
]


@dataclass(frozen=True, slots=True)
class Reference:
    """A column, or a field inside its structs.

    Args:
        path: names as the schema spells them.
        qualifier: which of several tables the column belongs to, as ``source`` or ``target``; None where there is but one.
        by_bytes: its texts compare by their bytes (`tahoe.schema.collations`).
    """

    path: tuple[str, ...]
    data_type: DataType
    qualifier: str | None = None
    by_bytes: bool = True

    @property
    def column_name(self) -> str:
        """The name of the value's column in the Arrow table: ``name``, or ``qualifier.name``."""
        return self.path[0] if self.qualifier is None else f"{self.qualifier}.{self.path[0]}"

    def __str__(self) -> str:
        names = self.path if self.qualifier is None else (self.qualifier, *self.path)
        return ".".join(quote_identifier(name) for name in names)


@dataclass(frozen=True, slots=True)
class Cast:
    """`CAST(child AS data_type)`.

    Args:
        time_zone: of the session, for texts and dates that become timestamps and the other way round.
        implicit: put in because an operation needs the type; SQL text leaves it out.
        lenient: TRY_CAST: NULL in place of an error.
    """

    child: Expression
    data_type: DataType
    time_zone: str = "UTC"
    implicit: bool = False
    lenient: bool = False

    def __str__(self) -> str:
        if self.implicit:
            return _text(self.child)
        return f"{'TRY_CAST' if self.lenient else 'CAST'}({_text(self.child)} AS {sql_type(self.data_type)})"


@dataclass(frozen=True, slots=True)
class Call:
    """A function or an operator of the allow-list over its arguments.

    Args:
        function: the name in `tahoe.expr.tree.functions`, in lower case; an operator is its sign.
        time_zone: of the session, for functions that look at a timestamp's wall clock.
    """

    function: str
    arguments: tuple[Expression, ...]
    data_type: DataType
    time_zone: str = "UTC"

    def __str__(self) -> str:
        operands = [_operand(argument) for argument in self.arguments]
        match self.function:
            case "is null" | "is not null":
                return f"{operands[0]} {self.function.upper()}"
            case "not":
                return f"NOT {operands[0]}"
            case "negative":
                return f"- {operands[0]}"
            case "~":
                return f"~ {operands[0]}"
            case "in":
                return f"{operands[0]} IN ({', '.join(map(_text, self.arguments[1:]))})"
            case "[]":
                return f"{operands[0]}[{_text(self.arguments[1])}]"
            case "field":
                name = self.arguments[1]
                assert isinstance(name, Literal)
                return f"{operands[0]}.{quote_identifier(name.value)}"
            case name if name in PLUS_INTERVAL:
                return f"{operands[0]} + INTERVAL {self.arguments[1]} {PLUS_INTERVAL[name]}"
            case name if name in OPERATORS:
                return f" {name.upper()} ".join(operands)
        return f"{self.function}({', '.join(map(_text, self.arguments))})"


@dataclass(frozen=True, slots=True)
class Case:
    """`CASE WHEN condition THEN value … ELSE otherwise END`; only the value that is chosen is computed."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression
    data_type: DataType

    def __str__(self) -> str:
        parts = " ".join(f"WHEN {_text(condition)} THEN {_text(value)}" for condition, value in self.branches)
        return f"CASE {parts} ELSE {_text(self.otherwise)} END"


@dataclass(frozen=True, slots=True)
class EngineText:
    """An expression stored in a table that Tahoe's evaluator does not support, but Spark may.

    Only `tahoe.spark.write.stored_expressions` passes the text to Spark, after a check of the plan that Spark's parser returns.

    Args:
        text: as stored in the table.
        reads: every column and struct field whose name occurs in the text; the expression reads no others.
        code, reason: of the error that explains why Tahoe does not support it.
    """

    text: str
    reads: tuple[Reference, ...]
    code: str
    reason: str

    @property
    def data_type(self) -> DataType:
        """`ENGINE_TYPE`: Catalyst decides on the type."""
        return ENGINE_TYPE

    def __str__(self) -> str:
        # A line of its own for the bracket: a comment may end the text.
        return f"({self.text}\n)" if "--" in self.text else f"({self.text})"


Expression = Literal | Reference | Cast | Call | Case | EngineText

OPERATORS = frozenset(
    {
        *("+", "-", "*", "/", "%", "div", "&", "|", "^", "||"),
        *("=", "<=>", "<", "<=", ">", ">=", "!="),
        *("and", "or", "like", "rlike"),
    }
)
"""Functions that are written between their operands."""

PLUS_MONTHS, PLUS_MICROSECONDS = "plus months", "plus microseconds"
PLUS_INTERVAL = {PLUS_MONTHS: "MONTH", PLUS_MICROSECONDS: "MICROSECOND"}
"""A timestamp plus a number of units: the function, and the unit in ``+ INTERVAL 3 MONTH``."""


def children(expression: Expression) -> tuple[Expression, ...]:
    """The expressions directly inside one, in the order of the text."""
    match expression:
        case Cast(child):
            return (child,)
        case Call(_, arguments):
            return arguments
        case Case(branches, otherwise):
            return (*(part for branch in branches for part in branch), otherwise)
        case EngineText():
            return expression.reads
    return ()


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and everything in it."""
    pending = [expression]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(children(node))


def levels_of(expression: Expression) -> int:
    """Return the greatest nesting depth of operations."""
    levels, level = 0, [expression]
    while level:
        levels += 1
        level = [child for node in level for child in children(node)]
    return levels


def references_of(expression: Expression) -> tuple[Reference, ...]:
    """Every column that the expression reads, once each."""
    by_name: dict[tuple[str | None, tuple[str, ...]], Reference] = {}
    for node in walk(expression):
        if isinstance(node, Reference):
            # By name: the type of a struct cannot be hashed.
            by_name.setdefault((node.qualifier, node.path), node)
    return tuple(by_name.values())


def compared_by_bytes(expression: Expression) -> Iterator[Reference]:
    """The columns with a collation whose texts the expression looks at; whether one is NULL is no matter of a collation."""
    pending: list[Expression] = [] if isinstance(expression, Reference) else [expression]
    while pending:
        node = pending.pop()
        if isinstance(node, Reference) and not node.by_bytes:
            yield node
        asks_for_null = isinstance(node, Call) and node.function in ("is null", "is not null")
        pending += [child for child in children(node) if not (asks_for_null and isinstance(child, Reference))]


def engine_text_in(expression: Expression) -> EngineText | None:
    """The part of an expression that only Spark can evaluate; None where there is none."""
    return next((node for node in walk(expression) if isinstance(node, EngineText)), None)


def columns(expression: Expression) -> frozenset[tuple[str | None, str]]:
    """The top-level columns that the expression reads, each with its qualifier."""
    return frozenset((node.qualifier, node.path[0]) for node in references_of(expression))


def conjuncts_of(expression: Expression) -> tuple[Expression, ...]:
    """The parts that must all be TRUE for the expression to be."""
    if isinstance(expression, Call) and expression.function == "and":
        return tuple(part for argument in expression.arguments for part in conjuncts_of(argument))
    return () if expression == Literal(True, BOOLEAN) else (expression,)


def sql_of_expression(expression: Expression) -> str:
    """SQL that reads back as the same expression, the types of constants included."""
    return _text(expression)


def sql_type(data_type: DataType) -> str:
    """The type as SQL writes it."""
    match data_type:
        case DecimalType(precision, scale):
            return f"DECIMAL({precision}, {scale})"
        case PrimitiveType(name):
            return _SQL_TYPES.get(name, name.upper())
        case ArrayType(element):
            return f"ARRAY<{sql_type(element)}>"
        case MapType(key, value):
            return f"MAP<{sql_type(key)}, {sql_type(value)}>"
        case StructType(fields):
            parts = (f"{quote_identifier(part.name)}: {sql_type(part.data_type)}" for part in fields)
            return f"STRUCT<{', '.join(parts)}>"


_SQL_TYPES = {"byte": "TINYINT", "short": "SMALLINT", "integer": "INT", "long": "BIGINT"}
_SUFFIXES: dict[Any, str] = {"byte": "Y", "short": "S", "long": "L"}


def _text(expression: Expression) -> str:
    """SQL of the expression; a constant keeps its type."""
    if not isinstance(expression, Literal):
        return str(expression)
    value, data_type = expression.value, expression.data_type
    if value is None:
        return "NULL" if data_type == VOID else f"CAST(NULL AS {sql_type(data_type)})"
    text = quote_literal(expression)
    if isinstance(data_type, DecimalType) and data_type != decimal_type_of(value):
        return f"CAST({text} AS {sql_type(data_type)})"
    return text + (_SUFFIXES.get(str(data_type), "") if isinstance(value, int) else "")


def _operand(expression: Expression) -> str:
    """The expression as an operand: in parentheses unless it is one thing already."""
    while isinstance(expression, Cast) and expression.implicit:
        expression = expression.child
    if isinstance(expression, Call):
        name = expression.function
        # An index right after array(…) is not read back.
        closed = not (
            name in OPERATORS
            or name in PLUS_INTERVAL
            or name == "array"
            or name in ("is null", "is not null", "not", "negative", "~", "in")
        )
        return str(expression) if closed else f"({expression})"
    text = _text(expression)
    return f"({text})" if text.startswith("-") else text
