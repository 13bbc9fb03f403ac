"""Checks strings that Spark writes to data files against ``char(n)`` and ``varchar(n)`` (`tahoe.schema.text_limits`)."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

from tahoe.base.exceptions import InvariantViolation
from tahoe.expr.tree.predicate import quote_identifier
from tahoe.protocol.config import TableConfig
from tahoe.schema.text_limits import Limits, TextLimit, limits_of, too_long
from tahoe.schema.types import ArrayType, DataType, MapType, StructType
from tahoe.spark.executors.file_settings import AS_STRING
from tahoe.spark.jvm.errors import raising_with_values
from tahoe.spark.names.settings import is_on
from tahoe.spark.write.fitting import Place


def limited_columns(spark: SparkSession, config: TableConfig, *, refuses: bool = True) -> dict[str, Column]:
    """Return the columns that length limits change, by name, with blanks cut off or padded.

    A string that is too long makes the query fail with `InvariantViolation`. Empty if the session treats char and varchar as strings.

    Args:
        refuses: False for rows that come from the table: strings that are too long in them stay.
    """
    columns = dict(_columns(config, refuses))
    return {} if columns and is_on(spark, AS_STRING) else columns


def _columns(config: TableConfig, refuses: bool) -> Iterator[tuple[str, Column]]:
    for column in config.schema:
        limits = limits_of(column)
        if limits is not None:
            place = Place(config.table, (column.name,)) if refuses else None
            yield column.name, _limited(sf.col(quote_identifier(column.name)), column.data_type, limits, place)


def _limited(values: Column, data_type: DataType, limits: TextLimit | Limits | None, place: Place | None) -> Column:
    """Return the limited values; without `place` no error is raised."""

    def inside(name: str) -> Place | None:
        return None if place is None else place.inside(name)

    if limits is None:
        return values
    if isinstance(limits, TextLimit):
        return _text(values, limits, place)
    match data_type:
        case StructType(fields):
            parts = [
                _limited(values.getField(field.name), field.data_type, limit, inside(field.name)).alias(field.name)
                for field, limit in zip(fields, limits.parts, strict=True)
            ]
            return sf.when(values.isNotNull(), sf.struct(*parts))
        case ArrayType(element):
            return sf.transform(values, lambda item: _limited(item, element, limits.parts[0], inside("element")))
        case MapType(key, value):
            if limits.parts[0] is not None:
                values = sf.transform_keys(values, lambda item, _: _limited(item, key, limits.parts[0], inside("key")))
            if limits.parts[1] is not None:
                values = sf.transform_values(values, lambda _, item: _limited(item, value, limits.parts[1], inside("value")))
    return values


def _text(values: Column, limit: TextLimit, place: Place | None) -> Column:
    most = sf.lit(limit.most)
    short = sf.rpad(values, limit.most, " ") if limit.padded else values
    cut = sf.when(sf.length(sf.rtrim(values)) <= most, sf.substring(values, 1, limit.most))
    rest = values if place is None else _failing(values, limit, place)
    return sf.when(values.isNotNull(), sf.when(sf.length(values) <= most, short).otherwise(cut.otherwise(rest)))


def _failing(values: Column, limit: TextLimit, place: Place) -> Column:
    def made(texts: list[str | None]) -> InvariantViolation:
        return too_long(place.table, ".".join(place.path), limit, texts[0])

    return raising_with_values(made)([values])
