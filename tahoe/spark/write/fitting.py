"""Casts a DataFrame's columns to those of a table: matched by name, cast by the session's store assignment policy.

Everything is a Spark expression: nothing is run. `tahoe.spark.write.enforce` checks the table's other rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import TypeAlias, cast

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType as SparkStruct

from tahoe.base.exceptions import SchemaMismatch
from tahoe.expr.tree.predicate import quote_identifier
from tahoe.protocol.column_values.default_values import CURRENT_DEFAULT, EXISTS_DEFAULT
from tahoe.schema.evolve import as_nullable, without_void
from tahoe.schema.mapping import transform_fields
from tahoe.schema.types import ArrayType, DataType, DecimalType, MapType, PrimitiveType, StructField, StructType, is_same_type
from tahoe.spark.jvm.bridge import Jvm
from tahoe.spark.jvm.errors import raising_with_values
from tahoe.spark.jvm.translate import from_spark_schema, to_spark_type
from tahoe.spark.names.settings import is_true
from tahoe.spark.versions.column_types import check_column_types

_VOID, _STRING = PrimitiveType("void"), PrimitiveType("string")
_FLOATS = (PrimitiveType("float"), PrimitiveType("double"))
_STORE_ASSIGNMENT = "spark.sql.storeAssignmentPolicy"
_AS_ANSI = "spark.databricks.delta.updateAndMergeCastingFollowsAnsiEnabledFlag"
_STRUCTS_BY_NAME = "spark.databricks.delta.resolveMergeUpdateStructsByName.enabled"


@dataclass(frozen=True, slots=True)
class Casts:
    """The rules for casting values.

    Args:
        policy: ``ANSI``: like SQL's CAST, and a value that does not fit is an error. ``STRICT``: only types that every value fits.
            ``LEGACY``: like CAST before ANSI, where a value that does not fit becomes NULL or another number.
        overflow: the error class of a number that does not fit.
        by_name: whether struct fields are matched by name, otherwise by order.
    """

    policy: str = "ANSI"
    overflow: str = "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"
    by_name: bool = True


ANSI_CASTS = Casts()
Setting: TypeAlias = Callable[[str, str], "str | None"]
"""Returns the session's setting of a name, or the default in the second argument."""


@dataclass(frozen=True, slots=True)
class Place:
    """A column of a table, or a field inside one, for error messages.

    Args:
        table: the table's URL.
        path: the names from the column to the field.
        casts: the rules for casting its values.
    """

    table: str
    path: tuple[str, ...] = ()
    casts: Casts = ANSI_CASTS

    @property
    def name(self) -> str:
        """The path as one name."""
        return ".".join(self.path)

    def inside(self, name: str) -> Place:
        """Return the place of a field of this column."""
        return replace(self, path=(*self.path, name))


def casts_of_inserts(spark: SparkSession) -> Casts:
    """Return the cast rules of the session's INSERTs, of its streams, and of DataFrame writes by a table's name."""
    return insert_casts(spark.conf.get)


def casts_of_assignments(spark: SparkSession) -> Casts:
    """Return the cast rules of the session's UPDATEs and MERGEs."""
    return assignment_casts(spark.conf.get)


def insert_casts(setting: Setting) -> Casts:
    """Return the rules of `casts_of_inserts`, from the session's settings."""
    return Casts(str(setting(_STORE_ASSIGNMENT, "ANSI")).upper(), "CAST_OVERFLOW_IN_TABLE_INSERT")


def assignment_casts(setting: Setting) -> Casts:
    """Return the rules of `casts_of_assignments`, from the session's settings."""

    def is_on(name: str, usual: str) -> bool:
        return is_true(name, str(setting(name, usual)))

    policy = str(setting(_STORE_ASSIGNMENT, "ANSI")).upper()
    if is_on(_AS_ANSI, "false"):
        policy = "ANSI" if is_on("spark.sql.ansi.enabled", "true") else "LEGACY"
    return Casts(policy, by_name=is_on(_STRUCTS_BY_NAME, "true"))


def fitted(data: DataFrame, table: str, schema: StructType, also: Sequence[str] = (), casts: Casts = ANSI_CASTS) -> DataFrame:
    """Return the rows with the table's columns, by logical name and with their types; columns that the data lacks are null.

    A value that does not fit its column makes the query fail with `SchemaMismatch` (``CAST_INVALID_INPUT`` for text, the error class of
    `casts` for a number).

    Args:
        table: the table's URL, for errors.
        schema: the table's, including void columns; these are dropped, because data files do not have them.
        also: extra columns of the data, which stay unchanged, after the table's.

    Raises:
        SchemaMismatch: a column's type cannot be cast to the table's (``DATATYPE_MISMATCH``), or the policy forbids it.
    """
    check_column_types(schema)
    jvm = Jvm.of(data.sparkSession)
    source = from_spark_schema(SparkStruct([column for column in data.schema if column.name not in also]))
    if data.columns == [*schema.names, *also] and all(_fits(left, right) for left, right in zip(source, schema, strict=True)):
        return data
    columns = []
    for target in without_void(schema):
        column = source.find(target.name)
        values, kind = (None, target.data_type) if column is None else (sf.col(quote_identifier(column.name)), column.data_type)
        place = Place(table, (target.name,), casts)
        columns.append(fitted_value(classic_cast(jvm), values, kind, target.data_type, place).alias(target.name))
    return data.select(*columns, *(sf.col(quote_identifier(name)) for name in also))


Cast: TypeAlias = Callable[[Column | None, DataType, DataType, Place], Column]
"""Casts values from one type to another, neither of which is compared field by field; returns NULL of the second for None."""


def classic_cast(jvm: Jvm) -> Cast:
    """Return the casts of a classic session, whose errors contain the column and the value."""
    return partial(_cast_for, jvm)


def fitted_value(cast: Cast, values: Column | None, source: DataType, target: DataType, place: Place) -> Column:
    """Return one value as `fitted` casts it, its fields, elements, keys and values one by one; NULL of the type for None."""
    if values is None:
        return cast(None, target, target, place)
    return values if is_same_type(source, target) else _value(cast, values, source, target, place)


def cast_or_fail(jvm: Jvm, values: Column, data_type: DataType) -> Column:
    """Return a cast that fails if a value does not fit, whatever the session's ANSI setting: storing null instead would lose data."""
    return _cast(jvm, values, data_type, "ANSI")


def columns_of(data: DataFrame) -> StructType:
    """Return the columns of a DataFrame as those of a table (`nullable_schema`)."""
    return nullable_schema(from_spark_schema(data.schema))


def nullable_schema(schema: StructType) -> StructType:
    """Return the schema with everything nullable, at every depth, and without default values: a DataFrame's do not define the table's."""
    nullable = as_nullable(schema)
    assert isinstance(nullable, StructType)
    return StructType(tuple(replace(column, metadata=_without_defaults(column.metadata)) for column in nullable))


def _without_defaults(metadata: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in metadata.items() if key not in (CURRENT_DEFAULT, EXISTS_DEFAULT)}


def stored(jvm: Jvm, values: Column, column: StructField, *, with_ids: bool) -> Column:
    """Return the values in the form of data files: nested fields with physical names, and with field ids if columns are mapped."""

    def physical(field: StructField) -> StructField:
        metadata = {"parquet.field.id": field.field_id} if with_ids and field.field_id is not None else {}
        return replace(field, name=field.physical_name, nullable=True, metadata=metadata)

    if isinstance(column.data_type, StructType | ArrayType | MapType) and with_ids:
        values = cast_or_fail(jvm, values, transform_fields(as_nullable(column.data_type), physical))
    metadata = physical(column).metadata
    return values.alias(column.physical_name, metadata=dict(metadata)) if metadata else values.alias(column.physical_name)


def _fits(source: StructField, target: StructField) -> bool:
    """Return whether the column can stay unchanged."""
    if target.data_type == _VOID or not is_same_type(source.data_type, target.data_type):
        return False
    return not isinstance(target.data_type, StructType) or all(
        _fits(field, target_field)
        for field, target_field in zip(cast(StructType, source.data_type), target.data_type, strict=True)
    )


def _cast(jvm: Jvm, values: Column, data_type: DataType, mode: str) -> Column:
    target = jvm.data_type(to_spark_type(data_type).json())
    eval_mode = getattr(jvm.catalyst("expressions.EvalMode"), mode)()
    return jvm.column(jvm.catalyst("expressions.Cast")(jvm.expression(values), target, jvm.option(None), eval_mode))


def _cast_for(jvm: Jvm, values: Column | None, source: DataType, target: DataType, place: Place) -> Column:
    if values is None:
        return _null(jvm, target)
    spark_source, spark_target = (jvm.data_type(to_spark_type(kind).json()) for kind in (source, target))
    cast = jvm.catalyst("expressions.Cast")
    if cast.canUpCast(spark_source, spark_target):
        return cast_or_fail(jvm, values, target)
    if place.casts.policy == "STRICT":
        raise no_cast(source, target, place, "CANNOT_UP_CAST_DATATYPE")
    if place.casts.policy == "LEGACY" and cast.canCast(spark_source, spark_target):
        return _cast(jvm, values, target, "LEGACY")
    if not cast.canAnsiCast(spark_source, spark_target):
        value = jvm.catalyst("expressions.BoundReference")(0, spark_source, True)
        failure = cast(value, spark_target, jvm.option(None), jvm.catalyst("expressions.EvalMode").ANSI()).checkInputDataTypes()
        raise no_cast(source, target, place, f"DATATYPE_MISMATCH.{failure.errorSubClass()}")
    failing = raising_with_values(lambda texts: misfit(texts[0], source, target, place))([values])
    return sf.when(must_fit(values, source, target), sf.coalesce(_cast(jvm, values, target, "TRY"), failing))


def must_fit(values: Column, source: DataType, target: DataType) -> Column:
    """Return whether a value must have a counterpart in the other type; NULL is stored for NULL, and for a NaN or an infinity in a decimal
    column, as Spark does.
    """
    if source in _FLOATS and isinstance(target, DecimalType):
        return sf.abs(values) < sf.lit(float("inf"))
    return values.isNotNull()


def no_cast(source: DataType, target: DataType, place: Place, code: str) -> SchemaMismatch:
    """The error for values that may not be cast to a column's type."""
    policy = f" under {_STORE_ASSIGNMENT} {place.casts.policy}" if place.casts.policy != "ANSI" else ""
    return SchemaMismatch(
        f"Column '{place.name}' of table {place.table} has type {target}, and values of type {source} cannot be cast to it{policy}. "
        f"Give values of type {target}.",
        code=code,
        table=place.table,
        column=place.name,
        table_type=str(target),
        data_type=str(source),
    )


def misfit(text: str | None, source: DataType, target: DataType, place: Place) -> SchemaMismatch:
    """The error for a value, as text, that does not fit a column."""
    is_malformed = source == _STRING and not (isinstance(target, DecimalType) and _is_number(text or ""))
    return SchemaMismatch(
        f"The value {text!r} ({source}) does not fit column '{place.name}' of table {place.table}, whose type is {target}. "
        "Correct the value or cast it; nothing was committed.",
        code="CAST_INVALID_INPUT" if is_malformed else place.casts.overflow,
        table=place.table,
        column=place.name,
    )


def _is_number(text: str) -> bool:
    try:
        return Decimal(text.strip()).is_finite()
    except InvalidOperation:
        return False


def _value(cast: Cast, values: Column, source: DataType, target: DataType, place: Place) -> Column:
    match source, target:
        case StructType(), StructType() if not place.casts.by_name:
            return _by_position(cast, values, source, target, place)
        case StructType(), StructType():
            fields = []
            for field in target:
                old_field = source.find(field.name)
                part, kind = (None, target) if old_field is None else (values.getField(old_field.name), old_field.data_type)
                fields.append(fitted_value(cast, part, kind, field.data_type, place.inside(field.name)).alias(field.name))
            return sf.when(values.isNotNull(), sf.struct(*fields))
        case ArrayType(element_type), ArrayType(target_type):
            inside = place.inside("element")
            return sf.transform(values, lambda element: fitted_value(cast, element, element_type, target_type, inside))
        case MapType() as old, MapType() as new:
            if not is_same_type(old.key_type, new.key_type):
                of_key = place.inside("key")
                values = sf.transform_keys(values, lambda key, _: fitted_value(cast, key, old.key_type, new.key_type, of_key))
            if not is_same_type(old.value_type, new.value_type):
                of_value = place.inside("value")
                values = sf.transform_values(
                    values, lambda _, value: fitted_value(cast, value, old.value_type, new.value_type, of_value)
                )
            return values
    return cast(values, source, target, place)


def _by_position(cast: Cast, values: Column, source: StructType, target: StructType, place: Place) -> Column:
    if len(source.fields) != len(target.fields):
        raise no_cast(source, target, place, "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION")
    fields = [
        fitted_value(cast, values.getField(old.name), old.data_type, new.data_type, place.inside(new.name)).alias(new.name)
        for old, new in zip(source, target, strict=True)
    ]
    return sf.when(values.isNotNull(), sf.struct(*fields))


def _null(jvm: Jvm, data_type: DataType) -> Column:
    return cast_or_fail(jvm, sf.lit(None), as_nullable(data_type))
