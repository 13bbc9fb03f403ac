"""The schemas of a MERGE: what evolution makes of the target's, and which columns ``*`` stands for. Pure; with Spark and without."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tahoe.exceptions import InvalidRequest
from tahoe.expr.parse.parse_expression import parse_expression
from tahoe.expr.tree.expression import Reference
from tahoe.ops.merge.clauses import Action, Clause
from tahoe.protocol.column_values.identity import refuse_explicit, refuse_update
from tahoe.protocol.config import TableConfig
from tahoe.protocol.constraints import is_filled_in
from tahoe.schema.evolve import Storing, as_nullable, can_store, check_writable, merge_schemas
from tahoe.schema.types import ArrayType, DataType, MapType, PrimitiveType, StructType
from tahoe.schema.widening import NO_WIDENING, Widening, fresh, widened

__all__ = ["StarPair", "check_identity", "evolved_schema", "star_pairs"]


@dataclass(frozen=True, slots=True)
class StarPair:
    """A column, or a field of a struct, and the one of the source whose value it gets. Names are spelled as each side spells them."""

    target: tuple[str, ...]
    target_type: DataType
    source: tuple[str, ...]
    source_type: DataType


def evolved_schema(
    target: StructType,
    source: StructType,
    clauses: Sequence[Clause[Any]],
    target_alias: str | None,
    widening: Widening = NO_WIDENING,
    stores: Storing = can_store,
) -> StructType:
    """The target's schema with the columns, and the fields of structs, that its clauses may add: all of the source's for ``*``, else those
    assigned to. Columns that are assigned to become as wide as the source's of the same name, where the table allows it.

    Args:
        stores: which types of the source may be written to which of the target.

    Raises:
        SchemaMismatch: types that cannot be brought together.
        InvalidRequest: an assignment to what is a column of neither.
    """
    if any(clause.is_star for clause in clauses):
        return merge_schemas(target, source, widening, stores)
    whole = _with_fields(target, source)
    seen = whole if target_alias is None else {target_alias: whole}
    places = [parse_expression(key, seen) for clause in clauses for key, _ in clause.values or ()]
    paths = [place.path for place in places if isinstance(place, Reference)]
    given = _assigned(source, paths)
    wider: StructType = widened(_with_fields(target, given), given, widening)
    return wider


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
    action: Action, source: StructType, schema: StructType, *, evolving: bool, stores: Storing = can_store
) -> tuple[StarPair, ...]:
    """What ``UPDATE SET *`` or ``INSERT *`` assigns: every column of the table, or with schema evolution those that the source has.

    With evolution, an update leaves fields of structs alone that the source's structs lack, as it leaves such columns alone.

    Args:
        schema: the table's, as it will be.
        stores: as of `evolved_schema`.

    Raises:
        InvalidRequest: ``DELTA_MERGE_UNRESOLVED_EXPRESSION``, a column that the source lacks, without evolution.
        SchemaMismatch: a column of the source that does not fit.
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
    check_writable(StructType(tuple(found for _, found in given)), StructType(tuple(column for column, _ in given)), stores)
    pairs = (StarPair((column.name,), column.data_type, (other.name,), other.data_type) for column, other in given)
    if not evolving or action != Action.UPDATE:
        return tuple(pairs)
    return tuple(part for pair in pairs for part in _taken_apart(pair))


def _taken_apart(pair: StarPair) -> Iterator[StarPair]:
    """The pair, or where the source's struct lacks fields the pairs of those that it has."""
    target, source = pair.target_type, pair.source_type
    if not isinstance(target, StructType) or not isinstance(source, StructType) or not _lacks(source, target):
        yield pair
        return
    for field in target:
        other = source.find(field.name)
        if other is not None:
            yield from _taken_apart(
                StarPair((*pair.target, field.name), field.data_type, (*pair.source, other.name), other.data_type)
            )


def _lacks(source: StructType, target: StructType) -> bool:
    """Whether a field of the target's struct, at any depth of structs, is none of the source's."""
    for field in target:
        other = source.find(field.name)
        if other is None:
            return True
        if (
            isinstance(field.data_type, StructType)
            and isinstance(other.data_type, StructType)
            and _lacks(other.data_type, field.data_type)
        ):
            return True
    return False
