"""Default values of columns (PROTOCOL.md, "Default Columns"): the parsed text in a column's metadata. Pure.

A default is no code: its text passes the allow-list of `tahoe.expr.parse.parse_expression`, and may not read a column. It may also be
the time of the statement, under the names of Spark's functions for it. A text outside that list becomes an `EngineText`: Spark
may evaluate it, after a check (`tahoe.spark.jvm.stored_trees`); without Spark it is an error of the first row that lacks the column.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tahoe.base.clock import Moment
from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.parse.engine_text import engine_text
from tahoe.expr.parse.parse_expression import parse_expression
from tahoe.expr.tree.expression import EngineText, Expression, sql_of_expression
from tahoe.expr.tree.predicate import Literal
from tahoe.expr.tree.signatures import cast_to
from tahoe.schema.evolve import can_coerce, can_store
from tahoe.schema.text_limits import TextLimit, limits_of
from tahoe.schema.types import DataType, DecimalType, PrimitiveType, StructField, StructType

CURRENT_DEFAULT, EXISTS_DEFAULT = "CURRENT_DEFAULT", "EXISTS_DEFAULT"
"""The keys of a column's metadata. Tables have only the first: rows written before the column was added always have NULL."""
_NO_COLUMNS = StructType(())
_ZONES, _LATER_MS = ("Etc/GMT+12", "UTC", "Pacific/Kiritimati"), 1_000_000_000_000


@dataclass(frozen=True, slots=True)
class Default:
    """A column's default value.

    Args:
        text: as in the table's metadata.
        value: in the column's type; a constant, or made of constants; the type of an `EngineText` is determined by Spark.
    """

    column: StructField
    text: str
    value: Expression

    @property
    def sql(self) -> str:
        """The value as SQL, generated from the parsed text."""
        return "NULL" if _is_null(self.value) else sql_of_expression(self.value)


def is_keyword(term: object) -> bool:
    """Whether the value assigned to a column is the keyword DEFAULT."""
    return isinstance(term, str) and term.strip().upper() == "DEFAULT"


def defaults_of(schema: StructType, table: str, moment: Moment) -> Iterator[Default]:
    """Yield the defaults of a table's columns; raises as `default_of`."""
    for column in schema:
        default = default_of(column, table, moment)
        if default is not None:
            yield default


def constant_default(column: StructField, table: str, now_ms: int | None = None, time_zone: str | None = None) -> Default | None:
    """Return a column's default if it is one value; None if it is not, or there is none.

    Args:
        now_ms: the time of the statement; None for a value that is valid at all times.
        time_zone: of the session; None for a value that is valid in every time zone.

    Raises: as `default_of`.
    """
    times, zones = (0, _LATER_MS) if now_ms is None else (now_ms,), _ZONES if time_zone is None else (time_zone,)
    moments = [Moment(ms, zone) for ms in times for zone in zones]
    defaults = [default_of(column, table, moment) for moment in moments]
    first = defaults[0]
    if first is not None and isinstance(first.value, EngineText):
        return None
    return first if first is not None and all(default is not None and default.sql == first.sql for default in defaults) else None


def default_of(column: StructField, table: str, moment: Moment) -> Default | None:
    """Return a column's default; None if it has none, which means NULL.

    Raises:
        InvalidRequest: ``INVALID_DEFAULT_VALUE``: not a value of the column's type;
            ``TAHOE_EXPRESSION_TOO_LONG`` and ``…_TOO_DEEP``.
    """
    text = column.metadata.get(CURRENT_DEFAULT)
    if text is None:
        return None
    try:
        value = parse_expression(str(text), _NO_COLUMNS, moment.time_zone, moment.ms)
    except InvalidRequest as error:
        if error.code in _NOT_FOR_SPARK:
            raise _refused(column, table, error.code, error.message) from error
        code = error.code if error.code == "TAHOE_EXPRESSION_NOT_ALLOWED" else UNRESOLVED
        reason = _reason(column, table, f"{error.message} Without Spark, rows cannot be filled in.")
        return Default(column, str(text), engine_text(str(text), _NO_COLUMNS, code, reason))
    if not _is_null(value) and not _can_be_default(value, column.data_type):
        mismatch = type_refused(column, table, value.data_type)
        if isinstance(column.data_type, PrimitiveType | DecimalType):
            raise mismatch
        return Default(column, str(text), engine_text(str(text), _NO_COLUMNS, mismatch.code, mismatch.message))
    try:
        return Default(column, str(text), cast_to(value, column.data_type, moment.time_zone))
    except InvalidRequest as error:
        code = _DATA_TYPE if value.data_type == _STRING else UNRESOLVED
        raise _refused(column, table, code, error.message) from error


def _can_be_default(value: Expression, target: DataType) -> bool:
    """Whether a value can be stored, or is a text that is cast once, such as ``'2026-01-31'`` for a date."""
    is_text = isinstance(value, Literal) and value.data_type == _STRING
    return can_store(value.data_type, target) or (is_text and can_coerce(_STRING, target))


def check_length(default: Default, table: str) -> None:
    """Raise `InvalidRequest` (``EXCEED_LIMIT_LENGTH``) for a text that is longer than its ``char(n)`` or ``varchar(n)``."""
    limit, value = limits_of(default.column), default.value
    text = value.value if isinstance(value, Literal) else None
    if isinstance(limit, TextLimit) and isinstance(text, str) and len(text.rstrip(" ")) > limit.most:
        raise _refused(default.column, table, "EXCEED_LIMIT_LENGTH", f"It is longer than {limit}.")


_NOT_FOR_SPARK = ("TAHOE_EXPRESSION_TOO_LONG", "TAHOE_EXPRESSION_TOO_DEEP")
UNRESOLVED, _DATA_TYPE = "INVALID_DEFAULT_VALUE.UNRESOLVED_EXPRESSION", "INVALID_DEFAULT_VALUE.DATA_TYPE"
_STRING = PrimitiveType("string")


def type_refused(column: StructField, table: str, data_type: DataType) -> InvalidRequest:
    """Return the error for a default whose type the column cannot store."""
    why = f"It is {data_type}, which is not stored in {column.data_type}."
    return _refused(column, table, _DATA_TYPE, why)


def _refused(column: StructField, table: str, code: str | None, why: str) -> InvalidRequest:
    return InvalidRequest(_reason(column, table, why), code=code, table=table, column=column.name)


def _reason(column: StructField, table: str, why: str) -> str:
    text = str(column.metadata[CURRENT_DEFAULT])
    return (
        f"The default value ({text[:200]}) of column '{column.name}' ({column.data_type}) of table {table} cannot be used. {why} Set another "
        "one, made of constants: ALTER TABLE … ALTER COLUMN … SET DEFAULT."
    )


def _is_null(value: Expression) -> bool:
    return isinstance(value, Literal) and value.value is None
