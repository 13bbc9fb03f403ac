"""Which sign binds how tightly, as in Spark's grammar: OR least, then AND, NOT, the tests, and the operators on values."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["COMPARISON", "INFIX", "NAMES", "NEGATION", "PREDICATE", "PREDICATES", "PREFIX"]

_OR, _AND, NEGATION, PREDICATE, COMPARISON, _BIT_OR, _BIT_XOR, _BIT_AND, _SUM, _PRODUCT, _UNARY = range(1, 12)

INFIX: Mapping[str, int] = {
    "OR": _OR,
    "AND": _AND,
    **dict.fromkeys(("=", "==", "<=>", "<", "<=", ">", ">=", "!=", "<>"), COMPARISON),
    "|": _BIT_OR,
    "^": _BIT_XOR,
    "&": _BIT_AND,
    **dict.fromkeys(("+", "-", "||"), _SUM),
    **dict.fromkeys(("*", "/", "%", "DIV"), _PRODUCT),
}
"""The binary operators with their precedence; all are left-associative."""
PREFIX: Mapping[str, int] = {"NOT": NEGATION, "!": NEGATION, **dict.fromkeys(("-", "+", "~"), _UNARY)}
"""The unary operators with their precedence."""
PREDICATES = frozenset({"IS", "IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "REGEXP"})
"""Words that begin a test after its operand, optionally preceded by NOT."""
NAMES: Mapping[str, str] = {"==": "=", "<>": "!=", "OR": "or", "AND": "and", "DIV": "div"}
"""The names of the allow-list for signs that are spelt otherwise there."""
