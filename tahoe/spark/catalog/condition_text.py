"""Converts the condition of an overwrite, which Spark passes to a table as a tree of named predicates, to equivalent SQL."""

from __future__ import annotations

from tahoe.base.exceptions import Unsupported
from tahoe.expr.tree.predicate import quote_identifier
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.compiled import compiled_object

__all__ = ["condition_text"]

_INFIX = ("AND", "OR", "=", "<=>", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%")
_FUNCTIONS = ("ABS", "CEIL", "CHAR_LENGTH", "COALESCE", "CONCAT", "FLOOR", "GREATEST", "LEAST", "LOWER", "SUBSTRING", "UPPER")
_PATTERNS = {"STARTS_WITH": "startswith", "ENDS_WITH": "endswith", "CONTAINS": "contains"}


def condition_text(jvm: Jvm, node: JavaObject) -> str:
    """Return the SQL text of a predicate or of a part of it.

    Raises:
        Unsupported: an unsupported function; the message contains its name.
    """
    kind = str(node.getClass().getSimpleName())
    if kind == "LiteralValue":
        return _literal(jvm, node)
    if kind == "FieldReference":
        return ".".join(_quoted(str(part)) for part in node.fieldNames())
    if kind in ("AlwaysTrue", "AlwaysFalse"):
        return kind.removeprefix("Always").upper()
    if kind == "Cast":
        return f"CAST({condition_text(jvm, node.expression())} AS {node.dataType().sql()})"
    if kind == "Extract":
        return f"EXTRACT({node.field()} FROM {condition_text(jvm, node.source())})"
    if not kind.endswith(("Predicate", "And", "Or", "Not", "ScalarExpression")):
        raise _unknown(node, kind)
    parts, name = [condition_text(jvm, child) for child in node.children()], str(node.name())
    if name in _INFIX and len(parts) == 2:
        return f"({parts[0]} {name} {parts[1]})"
    if name in _FUNCTIONS:
        return f"{name.lower()}({', '.join(parts)})"
    if name in _PATTERNS:
        return f"{_PATTERNS[name]}({parts[0]}, {parts[1]})"
    match name:
        case "NOT":
            return f"(NOT {parts[0]})"
        case "IS_NULL":
            return f"({parts[0]} IS NULL)"
        case "IS_NOT_NULL":
            return f"({parts[0]} IS NOT NULL)"
        case "IN":
            return f"({parts[0]} IN ({', '.join(parts[1:])}))"
    raise _unknown(node, name)


def _unknown(node: JavaObject, name: str) -> Unsupported:
    return Unsupported(
        f"The condition of an overwrite may not hold {name} ({str(node.toString())[:200]}). Compare columns with constants, or DELETE the "
        "rows first.",
        code="DELTA_UNSUPPORTED_EXPRESSION",
        expression=name,
    )


def _literal(jvm: Jvm, node: JavaObject) -> str:
    return str(compiled_object(jvm, "LiteralText", node).toString())


def _quoted(name: str) -> str:
    return name if name.isidentifier() else quote_identifier(name)
