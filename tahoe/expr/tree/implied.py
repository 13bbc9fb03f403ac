"""Converts expressions to predicates: to one that the expression implies, for skipping files, or to an equivalent one."""

from __future__ import annotations

from dataclasses import dataclass

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
    implied = _Converter(qualifier, time_zone).implied(expression)
    return None if implied == TRUE else implied


def exact_predicate(expression: Expression, time_zone: str = "UTC") -> Predicate | None:
    """Return the predicate with the same result, NULL included, for every row; None if there is none, or if a row may fail."""
    return _Converter(None, time_zone).exact(expression)


_FLIPPED = {"=": "=", "!=": "!=", "<=>": "<=>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class _Converter:
    """Converts expressions to predicates on one table.

    Args:
        qualifier: the table, for expressions over several tables.
        time_zone: the time zone of the session, for strings that become timestamps.
    """

    qualifier: str | None
    time_zone: str

    def exact(self, expression: Expression) -> Predicate | None:
        """Return the predicate with the same result for every row; None if there is none."""
        match expression:
            case Literal(value) if value is None or isinstance(value, bool):
                return Constant(value)
            case Reference():
                return self._is(expression, True)
            case Call("and" | "or" as name, arguments):
                parts = [self.exact(part) for part in arguments]
                exact = [part for part in parts if part is not None]
                if len(exact) < len(parts):
                    return None
                return all_of(exact) if name == "and" else any_of(exact)
            case Call("not", (part,)):
                inner = self.exact(part)
                return None if inner is None else normalise(Not(inner))
            case Call():
                return self._leaf(expression)
        return None

    def implied(self, expression: Expression) -> Predicate:
        """Return a predicate that is TRUE wherever the expression is TRUE; the constant TRUE if nothing is known."""
        match expression:
            case Literal(value):
                return TRUE if value is True else FALSE
            case Reference():
                return self._is(expression, True) or TRUE
            case Call("and", arguments):
                return all_of(map(self.implied, arguments))
            case Call("or", arguments):
                return any_of(map(self.implied, arguments))
            case Call("not", (part,)):
                return self._denied(part)
            case Call():
                return self._leaf(expression) or self._weaker(expression)
        return TRUE

    def _denied(self, expression: Expression) -> Predicate:
        """Return a predicate that is TRUE wherever the expression is FALSE."""
        match expression:
            case Call("not", (part,)):
                return self.implied(part)
            case Call("and", arguments):
                return any_of(map(self._denied, arguments))
            case Call("or", arguments):
                return all_of(map(self._denied, arguments))
            case Call():
                leaf = self._leaf(expression)
                return TRUE if leaf is None else normalise(Not(leaf))
            case Literal(value):
                return Constant(value is False)
            case Reference():
                return self._is(expression, False) or TRUE
        return TRUE

    def _is(self, reference: Reference, value: bool) -> Predicate | None:
        """Return the predicate that a boolean column has a value; None for a column of another table."""
        column = self._column(reference)
        data_type = reference.data_type
        return None if column is None else compare("=", column, data_type, Literal(value, data_type), self.time_zone)

    def _leaf(self, call: Call) -> Predicate | None:
        """Return the predicate with the same result for every row; None for a call that predicates cannot express."""
        name, arguments = call.function, call.arguments
        column = self._column(arguments[0]) if arguments else None
        try:
            if name in _FLIPPED:
                if column is None:
                    column, arguments, name = self._column(arguments[1]), arguments[::-1], _FLIPPED[name]
                if column is None or not isinstance(arguments[1], Literal):
                    return None
                return compare(name, column, _bare(arguments[0]).data_type, arguments[1], self.time_zone)
            if column is None:
                return None
            is_text = _bare(arguments[0]).data_type == STRING
            match name, arguments[1:]:
                case "in", options if all(isinstance(option, Literal) for option in options):
                    literals = tuple(option for option in options if isinstance(option, Literal))
                    return is_in(column, _bare(arguments[0]).data_type, literals, self.time_zone)
                case "is null", ():
                    return IsNull(column)
                case "is not null", ():
                    return IsNotNull(column)
                case "startswith", (Literal(str(prefix)),) if is_text:
                    return StartsWith(column, prefix)
                case "like", (Literal(str(pattern)),) if is_text and pattern.endswith("%") and _prefix(pattern) == pattern[:-1]:
                    return StartsWith(column, pattern[:-1])
        except InvalidRequest:
            return None  # predicates cannot express this comparison
        return None

    def _weaker(self, call: Call) -> Predicate:
        """Return a predicate that is TRUE wherever the call is, and perhaps elsewhere."""
        column = self._column(call.arguments[0]) if call.arguments else None
        match call.function, call.arguments[1:]:
            case "like", (Literal(str(pattern)),) if column is not None and _bare(call.arguments[0]).data_type == STRING:
                prefix = _prefix(pattern)
                return StartsWith(column, prefix) if prefix else IsNotNull(column)
        return TRUE

    def _column(self, expression: Expression) -> Column | None:
        bare = _bare(expression)
        return Column(bare.path) if isinstance(bare, Reference) and bare.qualifier == self.qualifier else None


def _prefix(pattern: str) -> str:
    """Return the literal prefix of a LIKE pattern, before its first special character."""
    return pattern[: min((pattern.find(mark) for mark in "%_\\" if mark in pattern), default=len(pattern))]


def _bare(expression: Expression) -> Expression:
    """The expression without the casts that a comparison put around it."""
    while isinstance(expression, Cast) and expression.implicit:
        expression = expression.child
    return expression
