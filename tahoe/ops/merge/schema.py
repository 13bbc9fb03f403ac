"""The schemas of a MERGE: schema evolution of the target, and the columns of ``*``. Pure; with and without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.expr.parse.column_names import name_parts
from tahoe.ops.merge.clauses import Action, Clause, Kind
from tahoe.ops.rows.assigned_places import Columns, UnresolvedColumn, assigned_places, check_assignable, lacks_fields
from tahoe.ops.rows.defaults import Defaults
from tahoe.protocol.column_values.default_values import is_keyword
from tahoe.protocol.column_values.identity import refuse_explicit, refuse_update
from tahoe.protocol.config import TableConfig
from tahoe.protocol.constraints import is_filled_in
from tahoe.schema.evolve import Storing, can_store, check_writable, merge_schemas
from tahoe.schema.types import DataType, StructField, StructType
from tahoe.schema.widening import NO_WIDENING, Widening

_ASSIGNED_TWICE = ("DELTA_CONFLICT_SET_COLUMN", "DELTA_DUPLICATE_COLUMNS_ON_INSERT")


@dataclass(frozen=True, slots=True)
class StarPair:
    """A target column and the source column whose value it gets, each in the spelling of its side.

    Args:
        keeps_fields: whether fields that are missing in the source's structs keep their old values.
    """

    target: tuple[str, ...]
    target_type: DataType
    source: tuple[str, ...]
    source_type: DataType
    keeps_fields: bool = False


def with_places(
    clauses: Sequence[Clause[Any]], target: Columns, source: Callable[[], Columns], defaults: Defaults, *, evolving: bool
) -> tuple[Clause[Any], ...]:
    """Resolve the keys of the clauses' values: the result has the target's spelling, without qualifiers, and default values as SQL text in
    place of the keyword DEFAULT.

    Args:
        source: returns the source's columns, to which the keys of UPDATE and INSERT may also refer with schema evolution; called only if the
            target has no such column.

    Raises:
        InvalidRequest: ``DELTA_MERGE_UNRESOLVED_EXPRESSION``: a key matches no column; the errors of `assigned_places` and of
            `tahoe.ops.rows.defaults.Defaults`.
        Unsupported: a key of an INSERT is a nested field.
    """
    return tuple(_with_places(clause, target, source, defaults, evolving) if clause.values else clause for clause in clauses)


def _with_places(
    clause: Clause[Any], target: Columns, source: Callable[[], Columns], defaults: Defaults, evolving: bool
) -> Clause[Any]:
    assert clause.values is not None
    keys, inserts = [key for key, _ in clause.values], clause.action == Action.INSERT
    try:
        try:
            places = assigned_places(keys, [target], inserts=inserts)
        except InvalidRequest as error:
            if not evolving or clause.kind == Kind.NOT_MATCHED_BY_SOURCE or error.code in _ASSIGNED_TWICE:
                raise
            places = assigned_places(keys, [target, source()], inserts=inserts)
    except UnresolvedColumn as error:
        raise InvalidRequest(
            f"Cannot resolve a column of WHEN {clause.kind.words} THEN {clause.action.name} of a MERGE: {error.message}",
            code="DELTA_MERGE_UNRESOLVED_EXPRESSION",
            **error.facts,
        ) from error
    nested = next((".".join(place.path) for place in places if len(place.path) > 1), None)
    if inserts and nested is not None:
        raise Unsupported(
            f"Nested fields are not supported in the INSERT clause of a MERGE: {nested}. Give the whole column a struct.",
            code="DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION",
            column=nested,
        )
    values = [
        defaults.text(place) if is_keyword(value) else value for place, (_, value) in zip(places, clause.values, strict=True)
    ]
    return replace(clause, values=tuple(zip(map(str, places), values, strict=True)))


def check_target(schema: StructType, table: str, *, evolving: bool) -> None:
    """Raise `InvalidRequest` (``DELTA_MERGE_INTO_EMPTY_SCHEMA_TARGET``) for a table without columns, unless the MERGE may add columns."""
    if not len(schema.fields) and not evolving:
        raise InvalidRequest(
            f"Table {table} has no columns, and a MERGE without schema evolution adds none. Add columns, or use schema evolution.",
            code="DELTA_MERGE_INTO_EMPTY_SCHEMA_TARGET",
            table=table,
        )


def evolved_schema(
    target: StructType,
    source: StructType,
    clauses: Sequence[Clause[Any]],
    widening: Widening = NO_WIDENING,
    stores: Storing = can_store,
) -> StructType:
    """Return the target's schema with the columns and struct fields that the clauses add.

    ``*`` adds all columns of the source, other clauses those that they assign. Assigned columns become as wide as the source's columns of
    the same name, if the table allows it. Clauses with WHEN NOT MATCHED BY SOURCE add nothing.

    Args:
        clauses: the clauses, with keys resolved by `with_places`.
        stores: whether a type of the source may be written to a type of the target.

    Raises:
        SchemaMismatch: the types of a column cannot be merged.
    """
    seeing_source = [clause for clause in clauses if clause.kind != Kind.NOT_MATCHED_BY_SOURCE]
    if not any(clause.is_star for clause in seeing_source):
        source = _assigned(source, [name_parts(key) or () for clause in seeing_source for key, _ in clause.values or ()])
        # The value of an assignment need not have the type of the source's column; it is checked when the assignment is resolved.
        stores = _any_type
    return merge_schemas(target, source, widening, stores)


def _any_type(source: DataType, target: DataType) -> bool:
    return True


def _assigned(source: StructType, paths: Sequence[tuple[str, ...]]) -> StructType:
    """Return the source's columns and struct fields whose names are assigned."""
    fields = []
    for column in source:
        below = [path[1:] for path in paths if path[0].lower() == column.name.lower()]
        if () in below:
            fields.append(column)
        elif below and isinstance(column.data_type, StructType):
            fields.append(replace(column, data_type=_assigned(column.data_type, below)))
    return StructType(tuple(fields))


def check_identity(config: TableConfig, action: Action, assigned: Iterable[str]) -> None:
    """Refuse a clause that assigns an identity column whose values only the table may generate.

    Args:
        config: the configuration of the table after the commit.
        assigned: the columns that the clause assigns, as a whole or in part.
    """
    if action == Action.UPDATE:
        refuse_update(config.schema, assigned, config.table)
    elif action == Action.INSERT:
        refuse_explicit(config.schema, assigned, config.table)


def star_pairs(
    action: Action,
    source: StructType,
    schema: StructType,
    *,
    evolving: bool,
    stores: Storing = can_store,
    by_name: bool = True,
) -> tuple[StarPair, ...]:
    """Return the assignments of ``UPDATE SET *`` or ``INSERT *``: all columns of the table, or with schema evolution those of the source.

    With evolution, an update keeps columns and struct fields that the source lacks; a struct is NULL afterwards if both the old value and
    the source's value are NULL.

    Args:
        schema: the schema of the table after the commit.
        stores: see `evolved_schema`.
        by_name: whether struct fields are matched by name; else they are matched by position, and the writer checks them.

    Raises:
        InvalidRequest: ``DELTA_MERGE_UNRESOLVED_EXPRESSION``: the source lacks a column, without evolution.
        SchemaMismatch: a column of the source does not fit (`check_assignable`, `check_writable`).
    """
    computed = {column.name for column in schema if is_filled_in(column)}
    missing = [column.name for column in schema if source.find(column.name) is None and column.name not in computed]
    if missing and not evolving:
        raise InvalidRequest(
            f"{action.name} * of a MERGE needs every column of the table in the source, which has no '{missing[0]}'. "
            "Name the columns that are meant, or use schema evolution.",
            code="DELTA_MERGE_UNRESOLVED_EXPRESSION",
            column=missing[0],
        )
    pairs = [(column, source_column) for column in schema if (source_column := source.find(column.name)) is not None]
    if not by_name:
        return tuple(StarPair((column.name,), column.data_type, (other.name,), other.data_type) for column, other in pairs)
    for column, other in pairs:
        check_assignable(other.data_type, column.data_type, (column.name,), may_lack_fields=evolving)
    check_writable(
        StructType(tuple(source_column for _, source_column in pairs)), StructType(tuple(column for column, _ in pairs)), stores
    )
    return tuple(_pair(column, other, keeps=evolving and action == Action.UPDATE) for column, other in pairs)


def _pair(column: StructField, other: StructField, *, keeps: bool) -> StarPair:
    first, second = column.data_type, other.data_type
    lacks = isinstance(first, StructType) and isinstance(second, StructType) and lacks_fields(second, first)
    return StarPair((column.name,), first, (other.name,), second, keeps and lacks)
