"""The schemas of a MERGE: what evolution makes of the target's, and which columns ``*`` stands for. Pure; with Spark and without."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tahoe.exceptions import InvalidRequest, Unsupported
from tahoe.expr.parse.column_names import name_parts
from tahoe.ops.merge.clauses import Action, Clause, Kind
from tahoe.ops.rows.assigned_places import Columns, UnresolvedColumn, assigned_places, check_assignable, lacks_fields
from tahoe.protocol.column_values.identity import refuse_explicit, refuse_update
from tahoe.protocol.config import TableConfig
from tahoe.protocol.constraints import is_filled_in
from tahoe.schema.evolve import Storing, as_nullable, can_store, check_writable, merge_schemas
from tahoe.schema.types import ArrayType, DataType, MapType, PrimitiveType, StructField, StructType
from tahoe.schema.widening import NO_WIDENING, Widening, fresh, widened

__all__ = ["StarPair", "check_identity", "check_target", "evolved_schema", "star_pairs", "with_places"]

_ASSIGNED_TWICE = ("DELTA_CONFLICT_SET_COLUMN", "DELTA_DUPLICATE_COLUMNS_ON_INSERT")


@dataclass(frozen=True, slots=True)
class StarPair:
    """A column and the one of the source whose value it gets. Names are spelled as each side spells them.

    Args:
        keeps_fields: the fields that the source's structs lack keep what they have.
    """

    target: tuple[str, ...]
    target_type: DataType
    source: tuple[str, ...]
    source_type: DataType
    keeps_fields: bool = False


def with_places(
    clauses: Sequence[Clause[Any]], target: Columns, source: Callable[[], Columns], *, evolving: bool
) -> tuple[Clause[Any], ...]:
    """The clauses with the keys of their values as the target spells them, without qualifiers.

    Args:
        source: what the keys of UPDATE and INSERT may name too where the schema may evolve; asked for where the target has no such column.

    Raises:
        InvalidRequest: ``DELTA_MERGE_UNRESOLVED_EXPRESSION`` for a key that names no column; a nested field of a new row; as of
            `assigned_places`.
    """
    return tuple(_with_places(clause, target, source, evolving=evolving) if clause.values else clause for clause in clauses)


def _with_places(clause: Clause[Any], target: Columns, source: Callable[[], Columns], *, evolving: bool) -> Clause[Any]:
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
    return replace(clause, values=tuple((str(place), value) for place, (_, value) in zip(places, clause.values, strict=True)))


def check_target(schema: StructType, table: str, *, evolving: bool) -> None:
    """Raises `InvalidRequest`, ``DELTA_MERGE_INTO_EMPTY_SCHEMA_TARGET``, for a table without columns, unless the MERGE may add some."""
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
    """The target's schema with the columns, and the fields of structs, that its clauses may add: all of the source's for ``*``, else those
    assigned to. Columns that are assigned to become as wide as the source's of the same name, where the table allows it. Clauses for rows
    that no row of the source matches add nothing.

    Args:
        clauses: as `with_places` gives them.
        stores: which types of the source may be written to which of the target.

    Raises:
        SchemaMismatch: types that cannot be brought together.
    """
    if any(clause.is_star for clause in _seeing_source(clauses)):
        return merge_schemas(target, source, widening, stores)
    paths = [name_parts(key) or () for clause in _seeing_source(clauses) for key, _ in clause.values or ()]
    given = _assigned(source, paths)
    wider: StructType = widened(_with_fields(target, given), given, widening)
    return wider


def _seeing_source(clauses: Sequence[Clause[Any]]) -> list[Clause[Any]]:
    return [clause for clause in clauses if clause.kind != Kind.NOT_MATCHED_BY_SOURCE]


def _assigned(source: StructType, paths: Sequence[tuple[str, ...]]) -> StructType:
    """The source's columns, and fields of its structs, of the names that are assigned to."""
    kept = []
    for column in source:
        below = [path[1:] for path in paths if path[0].lower() == column.name.lower()]
        if () in below:
            kept.append(column)
        elif below and isinstance(column.data_type, StructType):
            kept.append(replace(column, data_type=_assigned(column.data_type, below)))
    return StructType(tuple(kept))


def _with_fields(target: DataType, source: DataType) -> Any:
    """The target's type with the fields that only the source's structs have, and the source's for void; other types stay as they are."""
    match target, source:
        case PrimitiveType("void"), _:
            return as_nullable(source)
        case StructType(), StructType():
            pairs = ((field, source.find(field.name)) for field in target)
            kept = (
                field if other is None else replace(field, data_type=_with_fields(field.data_type, other.data_type))
                for field, other in pairs
            )
            added = as_nullable(fresh(StructType(tuple(field for field in source if target.find(field.name) is None))))
            return StructType((*kept, *added))
        case ArrayType(element), ArrayType(other):
            return replace(target, element_type=_with_fields(element, other))
        case MapType(key, value), MapType(other_key, other_value):
            return replace(target, key_type=_with_fields(key, other_key), value_type=_with_fields(value, other_value))
    return target


def check_identity(config: TableConfig, action: Action, assigned: Iterable[str]) -> None:
    """Refuse a clause that gives an identity column values which only the table gives.

    Args:
        config: of the table as it will be.
        assigned: the columns that the clause assigns to, as a whole or in part.
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
    """What ``UPDATE SET *`` or ``INSERT *`` assigns: every column of the table, or with schema evolution those that the source has.

    With evolution, an update leaves fields of structs alone that the source's structs lack, as it leaves such columns alone; a struct is
    NULL afterwards where it was NULL and the source's is.

    Args:
        schema: the table's, as it will be.
        stores: as of `evolved_schema`.
        by_name: whether fields of structs are matched by their names; else by their order, and whoever writes them checks them.

    Raises:
        InvalidRequest: ``DELTA_MERGE_UNRESOLVED_EXPRESSION``, a column that the source lacks, without evolution.
        SchemaMismatch: a column of the source that does not fit (`check_assignable`, `check_writable`).
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
    given = [(column, found) for column in schema if (found := source.find(column.name)) is not None]
    if not by_name:
        return tuple(StarPair((column.name,), column.data_type, (other.name,), other.data_type) for column, other in given)
    for column, other in given:
        check_assignable(other.data_type, column.data_type, (column.name,), may_lack_fields=evolving)
    check_writable(StructType(tuple(found for _, found in given)), StructType(tuple(column for column, _ in given)), stores)
    return tuple(_pair(column, other, keeps=evolving and action == Action.UPDATE) for column, other in given)


def _pair(column: StructField, other: StructField, *, keeps: bool) -> StarPair:
    one, two = column.data_type, other.data_type
    lacks = isinstance(one, StructType) and isinstance(two, StructType) and lacks_fields(two, one)
    return StarPair((column.name,), one, (other.name,), two, keeps and lacks)
