"""SQL text to sqlglot's tree, and the parts of it that filters and expressions read alike."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, ClassVar

from tahoe.exceptions import InvalidRequest
from tahoe.expr.tree.predicate import Literal
from tahoe.schema.types import DataType, DecimalType, PrimitiveType

if TYPE_CHECKING:
    from sqlglot.expressions import Expr
    from sqlglot.tokenizer_core import Token

__all__ = [
    "MAX_LENGTH",
    "MOST_LEVELS",
    "MOST_PARENTHESES",
    "check_length",
    "decimal_type_of",
    "flat_operands",
    "hexadecimal_literal",
    "names_of",
    "no_condition",
    "number_literal",
    "refuse_more_than",
    "refused",
    "short",
    "sql_of",
    "syntax_tree",
    "too_deep",
    "type_of",
]

MAX_LENGTH = 4_000_000
"""Characters that a text may have: a bound on the work that it can ask for."""


MOST_LEVELS = 100
"""Operations inside one another: what is made of an expression follows it down, and Python follows so far from anywhere."""
MOST_PARENTHESES = 30


def check_length(text: str) -> None:
    if len(text) > MAX_LENGTH:
        raise InvalidRequest(f"The condition has {len(text)} characters; at most {MAX_LENGTH} are read. Shorten it.")


def too_deep(text: str, levels: int | None = None) -> InvalidRequest:
    """The error for an expression that is nested deeper than Python can follow.

    Args:
        levels: of the expression; None where it could not be read so far.
    """
    found = (
        f"{levels} operations stand inside one another" if levels else f"{_open_parentheses(text)} parentheses are open at once"
    )
    return InvalidRequest(
        f"'{short(text)}' ({len(text)} characters) is nested too deep: {found}; {MOST_LEVELS} operations inside one another are allowed, "
        f"and {MOST_PARENTHESES} of parentheses, NOT and CASE. Chains of AND and OR count once, however long they are: write it flatter, "
        "or store a part of it in a column.",
        code="TAHOE_EXPRESSION_TOO_DEEP",
        condition=text[:1000],
    )


def _open_parentheses(text: str) -> int:
    opened = deepest = 0
    for sign in text:
        opened += (sign == "(") - (sign == ")")
        deepest = max(deepest, opened)
    return deepest


def syntax_tree(text: str, *, plain_functions: bool = False) -> Expr:
    """The tree of one expression.

    Args:
        plain_functions: leave calls as they are written, name and arguments, in place of sqlglot's own idea of each function.
    """
    from sqlglot import expressions as e
    from sqlglot.dialects.dialect import Dialect
    from sqlglot.errors import SqlglotError

    dialect = Dialect.get_or_raise("databricks")
    parser = _plain_parser(dialect) if plain_functions else dialect.parser()
    try:
        tokens = _join_doubled_quotes(dialect.tokenize(text), text)
        found = parser.parse_into(e.Condition, tokens, text)
    except SqlglotError as error:
        raise no_condition(text, str(error.__cause__ or error).split("\n")[0].split(". Line")[0][:200]) from error
    if len(found) != 1 or found[0] is None:
        raise no_condition(text, "there must be one, and nothing else")
    return found[0]


def flat_operands(node: Expr, kind: type[Expr]) -> list[Expr]:
    """The operands of a chain of one operator; a long chain is a deep tree, so no recursion."""
    operands: list[Expr] = []
    pending = [node]
    while pending:
        current = pending.pop()
        if type(current) is kind:
            pending += [current.expression, current.this]
        else:
            operands.append(current)
    return operands


def names_of(node: Expr, e: Any) -> list[str]:
    if isinstance(node, e.Dot):
        if not isinstance(node.expression, e.Identifier) or type(node.this) not in (e.Column, e.Dot, e.Identifier):
            raise refused(node)
        return [*names_of(node.this, e), str(node.expression.name)]
    if isinstance(node, e.Identifier):
        return [str(node.name)]
    parts = [node.args.get(name) for name in ("catalog", "db", "table", "this")]
    if any(part is not None and not isinstance(part, e.Identifier) for part in parts) or node.args.get("join_mark"):
        raise refused(node)
    return [str(part.name) for part in parts if part is not None]


def number_literal(text: str) -> Literal:
    try:
        if "e" in text.lower():
            return Literal(float(text), PrimitiveType("double"))
        number = Decimal(text)
    except (ValueError, InvalidOperation) as error:
        raise InvalidRequest(f"'{text[:100]}' is no number.", code="PARSE_SYNTAX_ERROR") from error
    if "." not in text and number == number.to_integral_value():
        whole = int(number)
        return Literal(whole, PrimitiveType("integer" if -(1 << 31) <= whole < 1 << 31 else "long"))
    return Literal(number, decimal_type_of(number))


def decimal_type_of(number: Decimal) -> DecimalType:
    """The narrowest type that holds the number as it is written."""
    _, digits, exponent = number.as_tuple()
    scale = max(-int(exponent), 0)
    return DecimalType(max(len(digits), scale, 1), scale)


def hexadecimal_literal(node: Expr) -> Literal:
    text = str(node.this)
    try:
        return Literal(bytes.fromhex(text.rjust(len(text) + len(text) % 2, "0")), PrimitiveType("binary"))
    except ValueError as error:
        raise refused(node, "X'…' needs hexadecimal digits") from error


def type_of(node: Expr, cast: Expr, e: Any) -> DataType:
    known = (
        isinstance(node, e.DataType) and isinstance(node.this, e.DType) and not (_set_arguments(node) - {"this", "expressions"})
    )
    name = node.this.name if known else ""
    if name == "DECIMAL":
        sizes = [int(part.this.this) for part in node.expressions]
        return DecimalType(*(sizes if len(sizes) == 2 else [*sizes, 0] if sizes else [10, 0]))
    if name not in _TYPES or (node.expressions and name != "VARCHAR"):
        raise refused(cast, "the type of the cast is not on the list")
    return PrimitiveType(_TYPES[name])


def refused(node: Expr, reason: str = "this is not on the list of what a filter may hold") -> InvalidRequest:
    text = sql_of(node)
    message = f"The condition holds '{short(text)}': {reason}."
    return InvalidRequest(message, code="TAHOE_EXPRESSION_NOT_ALLOWED", expression=text[:1000])


def no_condition(text: str, reason: str) -> InvalidRequest:
    return InvalidRequest(f"'{short(text)}' is no SQL condition: {reason}.", code="PARSE_SYNTAX_ERROR", condition=text[:1000])


def refuse_more_than(node: Expr, known: frozenset[str] | set[str], reason: str) -> None:
    """Raise where the node says more than its reader looks at."""
    if _set_arguments(node) - known:
        raise refused(node, reason)


def sql_of(node: Expr) -> str:
    """The part of the condition that a message speaks of."""
    return node.sql("databricks")


def short(text: str) -> str:
    return text if len(text) <= 120 else text[:117] + "..."


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


def _set_arguments(node: Expr) -> set[str]:
    return {name for name, value in node.args.items() if value is not None and value is not False and value != []}


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


def _plain_parser(dialect: Any) -> Any:
    """A parser without knowledge of functions, but for those that have a grammar of their own."""
    known = type(dialect).parser_class

    class Plain(known):  # type: ignore[misc, valid-type]
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {name: known.FUNCTION_PARSERS[name] for name in _WITH_GRAMMAR}

    return Plain(dialect=dialect)


_WITH_GRAMMAR = ("CAST", "TRY_CAST", "EXTRACT", "POSITION", "SUBSTRING", "TRIM")
