"""Converts expressions to predicates: to one that the expression implies, for skipping files, or to an equivalent one."""

from __future__ import annotations

from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.tree.coerce import compare, is_in
from tahoe.expr.tree.common_types import STRING
from tahoe.expr.tree.expression import Call, Cast, Expression, Literal, Reference
from tahoe.expr.tree.predicate import (
    FALSE,
    TRUE,
    Column,
    Constant,
    IsNotNull,
    IsNull,
    Not,
    Predicate,
    StartsWith,
    all_of,
    any_of,
    normalise,
)


def to_predicate(expression: Expression, qualifier: str | None = None, time_zone: str = "UTC") -> Predicate | None:
    """Return a predicate that is TRUE wherever the expression is; None if there is no useful one.

    The predicate may be TRUE where the expression is not: it can only exclude rows, never select them.

    Args:
        qualifier: the table to which the predicate applies, for an expression over several tables.
    """
    implied = _implied(expression, qualifier, time_zone)
    return None if implied == TRUE else implied


def exact_predicate(expression: Expression, time_zone: str = "UTC") -> Predicate | None:
    """Return the predicate with the same result, NULL included, for every row; None if there is none, or if a row may fail."""
    match expression:
        case Literal(value) if value is None or isinstance(value, bool):
            return Constant(value)
        case Reference():
            return compare("=", Column(expression.path), expression.data_type, Literal(True, expression.data_type), time_zone)
        case Call("and" | "or" as name, arguments):
            parts = [exact_predicate(part, time_zone) for part in arguments]
            exact = [part for part in parts if part is not None]
            if len(exact) < len(parts):
                return None
            return all_of(exact) if name == "and" else any_of(exact)
        case Call("not", (part,)):
            inner = exact_predicate(part, time_zone)
            return None if inner is None else normalise(Not(inner))
        case Call():
            return _leaf(expression, None, time_zone)
    return None


_FLIPPED = {"=": "=", "!=": "!=", "<=>": "<=>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _implied(expression: Expression, qualifier: str | None, time_zone: str) -> Predicate:
    """TRUE where nothing can be said."""
    match expression:
        case Literal(value):
            return TRUE if value is True else FALSE
        case Reference():
            column = _column(expression, qualifier)
            if column is None:
                return TRUE
            return compare("=", column, expression.data_type, Literal(True, expression.data_type), time_zone)
        case Call("and", arguments):
            return all_of(_implied(part, qualifier, time_zone) for part in arguments)
        case Call("or", arguments):
            return any_of(_implied(part, qualifier, time_zone) for part in arguments)
        case Call("not", (part,)):
            return _denied(part, qualifier, time_zone)
        case Call():
            leaf = _leaf(expression, qualifier, time_zone)
            return _weaker(expression, qualifier) if leaf is None else leaf
    return TRUE


def _denied(expression: Expression, qualifier: str | None, time_zone: str) -> Predicate:
    """Return a predicate that is TRUE wherever the expression is FALSE."""
    match expression:
        case Call("not", (part,)):
            return _implied(part, qualifier, time_zone)
        case Call("and", arguments):
            return any_of(_denied(part, qualifier, time_zone) for part in arguments)
        case Call("or", arguments):
            return all_of(_denied(part, qualifier, time_zone) for part in arguments)
        case Call():
            leaf = _leaf(expression, qualifier, time_zone)
            return TRUE if leaf is None else normalise(Not(leaf))
        case Literal(value):
            return Constant(value is False)
        case Reference():
            column = _column(expression, qualifier)
            if column is not None:
                return compare("=", column, expression.data_type, Literal(False, expression.data_type), time_zone)
    return TRUE


def _leaf(call: Call, qualifier: str | None, time_zone: str) -> Predicate | None:
    """The call as a filter with the same answer for every row; None where filters do not know it."""
    name, arguments = call.function, call.arguments
    column = _column(arguments[0], qualifier) if arguments else None
    try:
        if name in _FLIPPED:
            if column is None:
                column, arguments, name = _column(arguments[1], qualifier), arguments[::-1], _FLIPPED[name]
            if column is None or not isinstance(arguments[1], Literal):
                return None
            return compare(name, column, _bare(arguments[0]).data_type, arguments[1], time_zone)
        if column is None:
            return None
        is_text = _bare(arguments[0]).data_type == STRING
        match name, arguments[1:]:
            case "in", options if all(isinstance(option, Literal) for option in options):
                literals = tuple(option for option in options if isinstance(option, Literal))
                return is_in(column, _bare(arguments[0]).data_type, literals, time_zone)
            case "is null", ():
                return IsNull(column)
            case "is not null", ():
                return IsNotNull(column)
            case "startswith", (Literal(str(prefix)),) if is_text:
                return StartsWith(column, prefix)
            case "like", (Literal(str(pattern)),) if is_text and pattern.endswith("%") and _prefix(pattern) == pattern[:-1]:
                return StartsWith(column, pattern[:-1])
    except InvalidRequest:
        return None  # a comparison that filters do not know
    return None


def _weaker(call: Call, qualifier: str | None) -> Predicate:
    """Something that is TRUE wherever the call is, though not only there."""
    column = _column(call.arguments[0], qualifier) if call.arguments else None
    match call.function, call.arguments[1:]:
        case "like", (Literal(str(pattern)),) if column is not None and _bare(call.arguments[0]).data_type == STRING:
            prefix = _prefix(pattern)
            return StartsWith(column, prefix) if prefix else IsNotNull(column)
    return TRUE


def _prefix(pattern: str) -> str:
    """Return the literal prefix of a LIKE pattern, before its first special character."""
    return pattern[: min((pattern.find(mark) for mark in "%_\\" if mark in pattern), default=len(pattern))]


def _bare(expression: Expression) -> Expression:
    """The expression without the casts that a comparison put around it."""
    while isinstance(expression, Cast) and expression.implicit:
        expression = expression.child
    return expression


def _column(expression: Expression, qualifier: str | None) -> Column | None:
    bare = _bare(expression)
    return Column(bare.path) if isinstance(bare, Reference) and bare.qualifier == qualifier else None
