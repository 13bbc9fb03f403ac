"""Translates a filter of Polars into a predicate that it implies, which can skip files, row groups and rows.

Polars serializes an expression as JSON in a private form that may change. Unknown parts imply nothing, and Polars filters the rows again,
so only a translation that is TRUE for too few rows would be wrong. Comparisons whose semantics might differ are not translated: the
literal must be of the column's own family of types.
"""

from __future__ import annotations

import json
import math
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.tree.coerce import compare
from tahoe.expr.tree.predicate import TRUE, Column, IsNotNull, IsNull, Literal, Predicate, all_of, any_of
from tahoe.schema.collations import compares_by_bytes
from tahoe.schema.types import PrimitiveType, StructType

if TYPE_CHECKING:
    import polars as pl


def implied_predicate(expression: pl.Expr, schema: StructType) -> Predicate:
    """TRUE wherever the expression is, and perhaps elsewhere."""
    import polars as pl

    try:
        tree = json.loads(expression.meta.serialize(format="json"))
    except (pl.exceptions.PolarsError, ValueError, TypeError):
        return TRUE
    return _implied(tree, schema)


def _implied(tree: Any, schema: StructType) -> Predicate:
    match tree:
        case {"BinaryExpr": {"left": left, "op": "And" | "LogicalAnd", "right": right}}:
            return all_of((_implied(left, schema), _implied(right, schema)))
        case {"BinaryExpr": {"left": left, "op": "Or" | "LogicalOr", "right": right}}:
            return any_of((_implied(left, schema), _implied(right, schema)))
        case {"BinaryExpr": {"left": {"Column": str(name)}, "op": str(op), "right": {"Literal": literal}}} if op in _OPERATORS:
            return _comparison(_OPERATORS[op], name, literal, schema)
        case {"BinaryExpr": {"left": {"Literal": literal}, "op": str(op), "right": {"Column": str(name)}}} if op in _OPERATORS:
            return _comparison(_FLIPPED[_OPERATORS[op]], name, literal, schema)
        case {"Function": {"input": [{"Column": str(name)}], "function": {"Boolean": "IsNull" | "IsNotNull" as kind}}}:
            if schema.find(name) is None:
                return TRUE
            return IsNull(Column((name,))) if kind == "IsNull" else IsNotNull(Column((name,)))
    return TRUE


def _comparison(op: str, name: str, tree: Any, schema: StructType) -> Predicate:
    field = schema.find(name)
    literal = None if field is None else _literal(tree, str(field.data_type))
    if field is None or literal is None or not compares_by_bytes(field):
        return TRUE
    try:
        return compare(op, Column((field.name,)), field.data_type, literal)
    except InvalidRequest:
        return TRUE


def _literal(tree: Any, column_type: str) -> Literal | None:
    """The literal, where it is of the same family as the column."""
    match tree:
        case {"Dyn": {"Int": int(value)}} | {"Scalar": {"Int64": int(value)}} | {"Scalar": {"Int32": int(value)}} if (
            column_type in _WHOLE
        ):
            return Literal(value, PrimitiveType("long")) if -(1 << 63) <= value < 1 << 63 else None
        case {"Dyn": {"Float": float(value)}} | {"Scalar": {"Float64": float(value)}} if column_type == "double":
            return Literal(value, PrimitiveType("double")) if math.isfinite(value) else None
        case {"Scalar": {"String": str(value)}} | {"Dyn": {"Str": str(value)}} if column_type == "string":
            return Literal(value, PrimitiveType("string"))
        case {"Scalar": {"Date": int(days)}} if column_type == "date":
            return Literal(date(1970, 1, 1) + timedelta(days), PrimitiveType("date"))
        case {"Scalar": {"Boolean": bool(value)}} if column_type == "boolean":
            return Literal(value, PrimitiveType("boolean"))
    return None


_OPERATORS = {"Eq": "=", "NotEq": "!=", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}
_FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_WHOLE = frozenset({"byte", "short", "integer", "long"})
