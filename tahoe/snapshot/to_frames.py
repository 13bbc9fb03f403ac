"""Converts a `Scan` to the forms of other libraries: pandas, Polars, DuckDB, and any consumer of Arrow's PyCapsule stream.

All of them read the snapshot of the scan, also when they read repeatedly, and in bounded memory if the library allows it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.expr.tree.coerce import compare
from tahoe.expr.tree.predicate import TRUE, Column, IsNotNull, IsNull, Literal, Predicate, all_of, any_of
from tahoe.schema.arrow_values import empty_table
from tahoe.schema.collations import compares_by_bytes
from tahoe.schema.types import PrimitiveType, StructType
from tahoe.snapshot.scan import Scan

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl


@dataclass(frozen=True)
class ScanStream:
    """A scan behind Arrow's PyCapsule interface: each request for a stream reads the rows again.

    Args:
        limit: the greatest number of rows.
    """

    scan: Scan
    limit: int | None = None

    def __arrow_c_schema__(self) -> object:
        """The schema, without reading a row."""
        return self.scan.arrow_schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as a stream; with a requested schema its columns only, in its order and types.

        Raises `InvalidRequest` for a requested column that the table does not have.
        """
        if requested_schema is None:
            return self.scan.to_batches(self.limit).__arrow_c_stream__()
        schema = pa.Schema._import_from_c_capsule(requested_schema)
        scan = self.scan if schema.names == self.scan.arrow_schema.names else replace(self.scan, columns=tuple(schema.names))
        try:
            return scan.to_batches(self.limit).cast(schema).__arrow_c_stream__()
        except (pa.ArrowTypeError, pa.ArrowInvalid, ValueError, NotImplementedError) as error:
            raise InvalidRequest(
                f"The rows of table {scan.snapshot.store.url} cannot be read in the requested schema: {error}. "
                "Ask for types that the columns can be cast to.",
                code="TAHOE_CANNOT_CAST_ROWS",
                table=scan.snapshot.store.url,
            ) from error


def to_pandas(scan: Scan, limit: int | None = None) -> pd.DataFrame:
    """The rows as a pandas frame with a plain index; see `tahoe.api.table.Table.to_pandas`."""
    try:
        import pandas as pd  # noqa: F401
    except ModuleNotFoundError as error:
        raise _missing("pandas", "to_pandas") from error
    rows = pa.Table.from_batches(scan.batches(limit), scan.arrow_schema)
    # Arrow's memory is released column by column, as soon as pandas has its copy.
    return rows.to_pandas(split_blocks=True, self_destruct=True, ignore_metadata=True)


def to_duckdb(
    scan: Scan, limit: int | None = None, connection: duckdb.DuckDBPyConnection | None = None
) -> duckdb.DuckDBPyRelation:
    """The rows as a relation of DuckDB; see `tahoe.api.table.Table.to_duckdb`."""
    try:
        import duckdb
    except ModuleNotFoundError as error:
        raise _missing("duckdb", "to_duckdb") from error
    return (connection or duckdb.default_connection()).from_arrow(ScanStream(scan, limit))


def to_polars(scan: Scan, limit: int | None = None) -> pl.LazyFrame:
    """The rows as a lazy frame of Polars; see `tahoe.api.table.Table.to_polars`."""
    try:
        import polars as pl
        from polars.io.plugins import register_io_source
    except ModuleNotFoundError as error:
        raise _missing("polars", "to_polars") from error

    def read(columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, _: int | None) -> Iterator[pl.DataFrame]:
        most = min((most_rows for most_rows in (limit, rows) if most_rows is not None), default=None)
        narrow = scan
        if predicate is not None and most is None:
            # A limit counts the rows before the filter, so nothing may be left out before it.
            implied = implied_predicate(predicate, scan.schema)
            narrow = replace(scan, predicate=all_of([scan.predicate, implied] if scan.predicate is not None else [implied]))
        if columns is not None:
            narrow = _narrowed(narrow, columns)
        for batch in narrow.batches(most):
            frame = pl.DataFrame(pa.Table.from_batches([batch]))
            # The translated predicate may keep too many rows, so Polars applies its own.
            frame = frame if predicate is None else frame.filter(predicate)
            yield frame if columns is None else frame.select(columns)

    schema: Mapping[str, Any] = pl.DataFrame(empty_table(scan.arrow_schema)).schema
    return register_io_source(read, schema=dict(schema), explain_name="Tahoe")


def _narrowed(scan: Scan, columns: list[str]) -> Scan:
    """Return the scan of these columns only; the row id columns, which are not the table's, are included all or not at all."""
    names = tuple(name for name in columns if scan.schema.find(name) is not None)
    return replace(scan, columns=names, row_ids=len(names) < len(columns))


def _missing(package: str, method: str) -> Unsupported:
    return Unsupported(
        f"{method} needs {package}, which is not installed: pip install {package}", code="TAHOE_LIBRARY_MISSING", package=package
    )


def implied_predicate(expression: pl.Expr, schema: StructType) -> Predicate:
    """TRUE wherever the expression is, and perhaps elsewhere."""
    import polars as pl

    try:
        tree = json.loads(expression.meta.serialize(format="json"))
    except (pl.exceptions.PolarsError, ValueError, TypeError):
        return TRUE
    return _implied(tree, schema)


def _implied(tree: object, schema: StructType) -> Predicate:
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


def _comparison(op: str, name: str, tree: object, schema: StructType) -> Predicate:
    field = schema.find(name)
    literal = None if field is None else _literal(tree, str(field.data_type))
    if field is None or literal is None or not compares_by_bytes(field):
        return TRUE
    try:
        return compare(op, Column((field.name,)), field.data_type, literal)
    except InvalidRequest:
        return TRUE


def _literal(tree: object, column_type: str) -> Literal | None:
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
