"""Converts between Spark and Tahoe: schemas in both directions through their common JSON, and Catalyst's filters to predicates.

A filter is transferred as one JSON text. A part that cannot be expressed as a predicate is not used to skip files; Spark applies it to the
rows anyway. Only filters on partition columns must be translated exactly, because Catalyst drops those.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any, TypeVar

from pyspark.sql.types import ArrayType as SparkArray
from pyspark.sql.types import CharType, StringType, UserDefinedType, VarcharType
from pyspark.sql.types import DataType as SparkType
from pyspark.sql.types import MapType as SparkMap
from pyspark.sql.types import StructField as SparkField
from pyspark.sql.types import StructType as SparkStruct

from tahoe.base.exceptions import CorruptTable, TahoeError, Unsupported
from tahoe.expr.parse.refused import MOST_LEVELS
from tahoe.expr.tree.constant_cast import float32
from tahoe.expr.tree.predicate import (
    Column,
    Comparison,
    Constant,
    In,
    IsNotNull,
    IsNull,
    Literal,
    Not,
    Predicate,
    StartsWith,
    all_of,
    any_of,
    quote_identifier,
)
from tahoe.schema.collations import compares_by_bytes
from tahoe.schema.mapping import transform_fields
from tahoe.schema.text_limits import DECLARED_TYPE
from tahoe.schema.types import DataType, DecimalType, PrimitiveType, StructField, StructType, schema_from_json
from tahoe.spark.jvm.bridge import JavaObject
from tahoe.spark.versions.column_types import check_column_types

_Type = TypeVar("_Type", bound=DataType)
# Column metadata for writers; Spark would act on some of it, or show it as if it were the user's.
_HIDDEN_KEYS = ("CURRENT_DEFAULT", "EXISTS_DEFAULT", "parquet.field.id", "parquet.field.nested.ids")
# Spark's own mark of the event time column of a running query.
_WATERMARK = "spark.watermarkDelayMs"


def to_spark_schema(schema: StructType) -> SparkStruct:
    """Return the Spark schema for a table's schema, including field metadata.

    Raises: the errors of `check_column_types`.
    """
    check_column_types(schema)
    # Of a copy: PySpark removes collations from the metadata that it is passed.
    return SparkStruct.fromJson(json.loads(schema.to_json()))


def to_spark_type(data_type: DataType) -> SparkType:
    """Return the Spark type for a Delta type."""
    return to_spark_schema(StructType((StructField("value", data_type),))).fields[0].dataType


def from_spark_schema(schema: SparkStruct) -> StructType:
    """Return the Delta schema for a DataFrame's schema. Raises `Unsupported` with the column's name for a type that Delta lacks, and for
    one that this Spark version cannot write to files.
    """
    plain = SparkStruct([_as_stored(column) for column in schema.fields])
    for column in plain.fields:
        try:
            schema_from_json(SparkStruct([column]).json())
        except (Unsupported, CorruptTable) as error:
            raise Unsupported(
                f"Column '{column.name}' has the type {column.dataType.simpleString()}, which Tahoe cannot store in a Delta table. "
                "Cast it to another type, or drop it.",
                code="DELTA_GEOSPATIAL_SRID_NOT_SUPPORTED" if _is_mixed(error) else "DELTA_UNSUPPORTED_DATA_TYPES",
                column=column.name,
            ) from error
    converted = schema_from_json(plain.json())
    check_column_types(converted)
    return converted


def _is_mixed(error: TahoeError) -> bool:
    return error.code == "DELTA_GEOSPATIAL_SRID_NOT_SUPPORTED"


def shown_metadata(column: StructField) -> dict[str, Any]:
    """Return the metadata of a column that users may see: comments and the like, nothing of the protocol."""
    return {key: value for key, value in column.metadata.items() if not key.startswith("delta.") and key not in _HIDDEN_KEYS}


def with_shown_metadata(data_type: _Type) -> _Type:
    """Return the type with only `shown_metadata`, at every depth."""
    return transform_fields(data_type, lambda column: replace(column, metadata=shown_metadata(column)))


@dataclass(frozen=True)
class Names:
    """Resolves the names in a relation's filters: physical names in Spark, logical names here.

    Args:
        schema: the table's logical schema, partition columns included.
        opaque: logical columns on which no filter is translated.
    """

    schema: StructType
    opaque: frozenset[str] = field(default_factory=frozenset)

    def resolve(self, path: Sequence[str]) -> tuple[Column, DataType] | None:
        """Return the column and type for a path of physical names; None if it is no column of the table."""
        at: DataType = self.schema
        logical: list[str] = []
        column: StructField | None = None
        for name in path:
            if not isinstance(at, StructType):
                return None
            column = _physical(at, name)
            if column is None:
                return None
            logical.append(column.name)
            at = column.data_type
        if column is None or not compares_by_bytes(column):
            return None  # Catalyst's JSON does not contain collations, and comparing bytes is wrong for them
        return None if logical[0] in self.opaque else (Column(tuple(logical)), at)


@dataclass(frozen=True, slots=True)
class Filter:
    """A Catalyst expression that filters rows.

    Args:
        text: its JSON, from ``TreeNode.toJSON``.
        java: returns the expression itself, for details missing in the JSON.
    """

    text: str
    java: Callable[[], JavaObject]


def to_predicate(expression: JavaObject, names: Names, *, exact: bool) -> Predicate | None:
    """Return the predicate for a Catalyst expression.

    Args:
        expression: a filter on the columns of the relation.
        exact: whether the predicate must accept exactly the rows that the expression accepts; otherwise it may accept more.

    Returns:
        None if the expression cannot be translated.
    """
    return filter_predicate(Filter(str(expression.toJSON()), lambda: expression), names, exact=exact)


def filter_predicate(condition: Filter, names: Names, *, exact: bool) -> Predicate | None:
    """Like `to_predicate`, for an expression whose JSON is available."""
    return _translated(_tree(json.loads(condition.text), condition.java), names, exact)


def to_column(expression: JavaObject, names: Names) -> tuple[Column, DataType] | None:
    """Return the column and type of a Catalyst expression that is a column, possibly cast from an integral type to a wider one.

    Returns:
        None if the expression is no column that file statistics cover.
    """
    nodes: list[dict[str, Any]] = json.loads(expression.toJSON())
    node = _tree(nodes, lambda: expression)
    if node.kind != "Cast":
        return _column(node, names)
    column, wider = _column(node.children[0], names), node.values["dataType"]
    if column is None or str(column[1]) not in _INTEGRALS or wider not in _INTEGRALS:
        return None
    return column if _INTEGRALS.index(wider) > _INTEGRALS.index(str(column[1])) else None


_INTEGRALS = ("byte", "short", "integer", "long")


@dataclass(frozen=True)
class _Node:
    """One Catalyst node. `java` returns the JVM object, for details missing in the JSON."""

    kind: str
    values: Mapping[str, Any]
    children: tuple[_Node, ...]
    java: Callable[[], JavaObject]


def _tree(nodes: Sequence[dict[str, Any]], root: Callable[[], JavaObject]) -> _Node:
    """Return the tree for Catalyst's list of nodes in prefix order; not recursive, because Catalyst makes a deep tree from a long chain."""
    parents = _parents(nodes)

    def java(index: int) -> JavaObject:
        positions = []
        while index:
            index, position = parents[index]
            positions.append(position)
        at = root()
        for position in reversed(positions):
            at = at.children().apply(position)
        return at

    trees: list[_Node] = []
    for index in reversed(range(len(nodes))):
        values = nodes[index]
        # In reverse order, the node created last is the first child.
        children = tuple(trees.pop() for _ in range(values["num-children"]))
        trees.append(_Node(str(values["class"]).rpartition(".")[2], values, children, partial(java, index)))
    return trees.pop()


def _parents(nodes: Sequence[dict[str, Any]]) -> list[tuple[int, int]]:
    """Return for each node its parent and its position among the parent's children; for the root, itself."""
    parents, opened = [(0, 0)], [[0, 0]]
    for index in range(1, len(nodes)):
        while opened[-1][1] == nodes[opened[-1][0]]["num-children"]:
            opened.pop()
        parents.append((opened[-1][0], opened[-1][1]))
        opened[-1][1] += 1
        opened.append([index, 0])
    return parents


def _translated(root: _Node, names: Names, exact: bool) -> Predicate | None:
    """Return the predicate for a tree, children before parents on a stack; None if it is nested too deeply for the predicate's readers."""
    pending: list[tuple[_Node, bool, int]] = [(root, exact, -1)]
    done: list[tuple[Predicate | None, int]] = []
    while pending:
        node, exact, count = pending.pop()
        if node.kind not in _JOINS:
            done.append((_leaf(node, names), 1))
        elif count < 0:
            operands = _operands(node)
            pending.append((node, exact, len(operands)))
            pending += [(operand, exact or node.kind == "Not", -1) for operand in operands]
        else:
            parts = [done.pop() for _ in range(count)]
            level = 1 + max(level for _, level in parts)
            joined = None if level > MOST_LEVELS else _joined(node.kind, [part for part, _ in parts], exact)
            done.append((joined, 1 if joined is None else level))
    return done.pop()[0]


_JOINS = ("And", "Or", "Not")


def _operands(node: _Node) -> list[_Node]:
    """Return the operands of a chain of one operator, in order."""
    operands, pending = [], [*reversed(node.children)]
    while pending:
        part = pending.pop()
        if part.kind == node.kind != "Not":
            pending += reversed(part.children)
        else:
            operands.append(part)
    return operands


def _joined(kind: str, parts: Sequence[Predicate | None], exact: bool) -> Predicate | None:
    operands = [part for part in parts if part is not None]
    if kind == "And":
        return None if not operands or (exact and len(operands) < len(parts)) else all_of(operands)
    if len(operands) < len(parts):
        return None
    return Not(operands[0]) if kind == "Not" else any_of(operands)


def _leaf(node: _Node, names: Names) -> Predicate | None:
    match node.kind:
        case "Literal" if node.values["dataType"] == "boolean" and node.values["value"] is not None:
            return Constant(node.values["value"] == "true")
        case "IsNull" | "IsNotNull":
            column = _column(node.children[0], names)
            return None if column is None else (IsNull if node.kind == "IsNull" else IsNotNull)(column[0])
        case "AttributeReference" | "GetStructField":
            column = _column(node, names)
            boolean = PrimitiveType("boolean")
            return Comparison("=", column[0], Literal(True, boolean)) if column and column[1] == boolean else None
        case "StartsWith":
            return _starts_with(node, names)
        case "In":
            return _in(node, names)
        case "InSet":
            return _in_set(node, names)
        case kind if kind in _OPERATORS:
            return _comparison(node, names)
    return None


_OPERATORS = {
    "EqualTo": ("=", "="),
    "EqualNullSafe": ("<=>", "<=>"),
    "LessThan": ("<", ">"),
    "LessThanOrEqual": ("<=", ">="),
    "GreaterThan": (">", "<"),
    "GreaterThanOrEqual": (">=", "<="),
}
"""Each comparison operator, and the operator with exchanged sides."""


def _comparison(node: _Node, names: Names) -> Predicate | None:
    left, right = node.children
    operator, mirrored = _OPERATORS[node.kind]
    if left.kind == "Literal":
        left, right, operator = right, left, mirrored
    column = _column(left, names)
    literal = None if column is None else _literal(right, column[1])
    return None if column is None or literal is None else Comparison(operator, column[0], literal)


def _starts_with(node: _Node, names: Names) -> Predicate | None:
    column, prefix = _column(node.children[0], names), node.children[1]
    if column is None or column[1] != PrimitiveType("string") or prefix.kind != "Literal":
        return None
    value = prefix.values["value"]
    return StartsWith(column[0], value) if isinstance(value, str) and prefix.values["dataType"] == "string" else None


def _in(node: _Node, names: Names) -> Predicate | None:
    column = _column(node.children[0], names)
    if column is None:
        return None
    literals = [_literal(child, column[1]) for child in node.children[1:]]
    return None if None in literals else In(column[0], tuple(literal for literal in literals if literal is not None))


def _in_set(node: _Node, names: Names) -> Predicate | None:
    """Translate `In` with many values, which Catalyst stores as a set of internal values."""
    column = _column(node.children[0], names)
    read = None if column is None else _INTERNAL.get(str(column[1]))
    if column is None or read is None:
        return None
    values = node.java().hset()
    if values.contains(None):
        return None
    texts = str(values.mkString("\0")).split("\0")
    if len(texts) != values.size():
        return None
    try:
        return In(column[0], tuple(Literal(read(text), column[1]) for text in texts))
    except (ValueError, OverflowError):
        return None


def _column(node: _Node, names: Names) -> tuple[Column, DataType] | None:
    path: list[str] = []
    while node.kind == "GetStructField":
        child_type = node.children[0].values.get("dataType")
        name = node.values.get("name")
        if name is None and isinstance(child_type, dict):
            name = child_type["fields"][node.values["ordinal"]]["name"]
        if name is None:
            return None
        path.append(name)
        node = node.children[0]
    if node.kind != "AttributeReference" or _is_of_file(node):
        return None
    return names.resolve([node.values["name"], *reversed(path)])


FIELDS_OF_FILES = {
    "file_path": "string",
    "file_name": "string",
    "file_size": "long",
    "file_block_start": "long",
    "file_block_length": "long",
    "file_modification_time": "timestamp",
    "row_index": "long",
}
"""The fields of Spark's `_metadata` for all tables, with their types."""


def _is_of_file(node: _Node) -> bool:
    """Return whether a column of a scan is a field of Spark's `_metadata`, which may have the name of a column. The JSON does not tell."""
    return node.values["name"].lower() in FIELDS_OF_FILES and "__file_source_" in str(node.java().metadata().json())


def _literal(node: _Node, data_type: DataType) -> Literal | None:
    """Return the constant, if it has the column's type and Python can represent it."""
    if node.kind != "Literal" or node.values["dataType"] != data_type.to_json_value():
        return None
    text = node.values["value"]
    if text is None:
        return Literal(None, data_type)
    try:
        match data_type:
            case DecimalType():
                return Literal(Decimal(text), data_type)
            case PrimitiveType("timestamp" | "timestamp_ntz" as name):
                # The JSON contains the session's local time, which is ambiguous when clocks are set back.
                return Literal(_moment(node.java().value(), name == "timestamp"), data_type)
            case PrimitiveType("binary"):
                return Literal(bytes(node.java().value()), data_type)
            case PrimitiveType("date"):
                return Literal(date.fromisoformat(text), data_type)
            case PrimitiveType(name) if name in _TEXTS:
                return Literal(_TEXTS[name](text), data_type)
    except (ValueError, OverflowError):
        # Python has no value for a date beyond the year 9999, for example, so the filter is not used on files.
        return None
    return None


_TEXTS: dict[str, Callable[[str], Any]] = {
    "string": str,
    "long": int,
    "integer": int,
    "short": int,
    "byte": int,
    "float": lambda text: float32(float(text)),  # Java's text has the fewest digits, which are another number as a double
    "double": float,
    "boolean": lambda text: text == "true",
}
_INTERNAL: dict[str, Callable[[str], Any]] = {
    **{name: _TEXTS[name] for name in ("string", "long", "integer", "short", "byte", "float", "double")},
    "date": lambda text: date(1970, 1, 1) + timedelta(days=int(text)),
    "timestamp": lambda text: _moment(int(text), True),
    "timestamp_ntz": lambda text: _moment(int(text), False),
}
"""Parsers for the text of Catalyst's internal values."""


def _moment(microseconds: int, in_utc: bool) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC if in_utc else None) + timedelta(microseconds=microseconds)


def _physical(schema: StructType, name: str) -> StructField | None:
    lowered = name.lower()
    exact = next((column for column in schema if column.physical_name == name), None)
    return exact or next((column for column in schema if column.physical_name.lower() == lowered), None)


def _as_stored(column: SparkField, *, is_nested: bool = False) -> SparkField:
    metadata = {key: value for key, value in column.metadata.items() if key != _WATERMARK}
    if not is_nested and _CHAR_OR_VARCHAR.search(column.dataType.simpleString()):
        # Like Spark: a string, with the declared type in the metadata.
        metadata[DECLARED_TYPE] = catalog_string(column.dataType)
    return SparkField(column.name, _plain_type(column.dataType), column.nullable, metadata)


def _plain_type(data_type: SparkType) -> SparkType:
    """Return the type with user-defined types replaced by their storage types."""
    match data_type:
        case UserDefinedType():
            return _plain_type(data_type.sqlType())
        case CharType() | VarcharType():
            return StringType()
        case SparkStruct():
            return SparkStruct([_as_stored(column, is_nested=True) for column in data_type.fields])
        case SparkArray():
            return SparkArray(_plain_type(data_type.elementType), data_type.containsNull)
        case SparkMap():
            return SparkMap(_plain_type(data_type.keyType), _plain_type(data_type.valueType), data_type.valueContainsNull)
    return data_type


_CHAR_OR_VARCHAR = re.compile(r"\b(var)?char\(\d+\)")


def catalog_string(data_type: SparkType, named: Callable[[str], str] | None = None) -> str:
    """Return Spark's ``catalogString``, which is also DDL.

    Args:
        named: writes the names of nested fields; by default in back-ticks where they need them.
    """
    written = named or _name
    match data_type:
        case SparkStruct():
            parts = (f"{written(column.name)}:{catalog_string(column.dataType, named)}" for column in data_type.fields)
            return f"struct<{','.join(parts)}>"
        case SparkArray():
            return f"array<{catalog_string(data_type.elementType, named)}>"
        case SparkMap():
            return f"map<{catalog_string(data_type.keyType, named)},{catalog_string(data_type.valueType, named)}>"
    return data_type.simpleString()


def _name(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else quote_identifier(name)
