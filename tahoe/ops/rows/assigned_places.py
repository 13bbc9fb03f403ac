"""Resolve the keys of a SET or VALUES clause to columns of the target and fields inside them, for UPDATE and MERGE with and without Spark.

t.s.a ─► a column with a matching qualifier, else without one ─► the fields inside it
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tahoe.base.exceptions import InvalidRequest, SchemaMismatch
from tahoe.base.wording import suggestion
from tahoe.expr.parse.column_names import name_parts
from tahoe.expr.tree.expression import Reference
from tahoe.expr.tree.predicate import quote_identifier
from tahoe.schema.types import ArrayType, DataType, MapType, StructField, StructType

Qualifier = tuple[str, ...]


class UnresolvedColumn(InvalidRequest):
    """A name that is not a column of any of the candidate schemas."""

    default_code = "UNRESOLVED_COLUMN.WITH_SUGGESTION"


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns that a key may refer to.

    Args:
        fields: each column with its full qualifier, of which a suffix may precede the name: ``spark_catalog.db.t``, ``db.t`` or ``t``.
        case_sensitive: whether names are case-sensitive.
    """

    fields: tuple[tuple[Qualifier, StructField], ...]
    case_sensitive: bool = False

    @staticmethod
    def of(schema: StructType, qualifier: str | Qualifier | None = None, *, case_sensitive: bool = False) -> Columns:
        """Return the columns of a table, with one qualifier or without any."""
        parts = () if qualifier is None else (qualifier,) if isinstance(qualifier, str) else qualifier
        return Columns(tuple((parts, column) for column in schema), case_sensitive)

    @property
    def names(self) -> list[str]:
        """The qualified names of the columns, for error messages."""
        return [".".join(map(quote_identifier, (*qualifier[-1:], column.name))) for qualifier, column in self.fields]

    def matching(self, parts: Qualifier) -> tuple[list[StructField], Qualifier]:
        """Resolve a name as Spark does: return the matching columns for the longest matching qualifier, and the names of nested fields."""
        for length in range(min(_MOST_QUALIFIERS, len(parts) - 1), -1, -1):
            matches = [
                column
                for qualifier, column in self.fields
                if self.same(column.name, parts[length]) and self._ends_with(qualifier, parts[:length])
            ]
            if matches:
                return matches, parts[length + 1 :]
        return [], ()

    def same(self, first: str, second: str) -> bool:
        """Whether two names are equal under the rule for case."""
        return first == second if self.case_sensitive else first.lower() == second.lower()

    def _ends_with(self, qualifier: Qualifier, names: Qualifier) -> bool:
        tail = qualifier[len(qualifier) - len(names) :]
        return len(tail) == len(names) and all(map(self.same, tail, names))


_MOST_QUALIFIERS = 3


def assigned_places(keys: Iterable[str], targets: Sequence[Columns], *, inserts: bool = False) -> list[Reference]:
    """Resolve the keys to columns or nested fields.

    Args:
        targets: the candidates, of which the first with a matching column is used; later ones are for columns that schema evolution may add.
        inserts: whether the values are for new rows.

    Raises:
        UnresolvedColumn: a key matches no column.
        InvalidRequest: the errors of `place_of`; two assignments to the same column or field, ``DELTA_DUPLICATE_COLUMNS_ON_INSERT`` for new
            rows and ``DELTA_CONFLICT_SET_COLUMN`` otherwise.
    """
    places: list[Reference] = []
    for key in keys:
        place = place_of(key, targets)
        for other in places:
            shorter = min(len(other.path), len(place.path))
            if _lowered(other.path[:shorter]) == _lowered(place.path[:shorter]):
                raise _assigned_twice(other, place, inserts)
        places.append(place)
    return places


def place_of(key: str, targets: Sequence[Columns]) -> Reference:
    """Resolve a key to a column or nested field, in the spelling of its schema.

    Raises:
        UnresolvedColumn: the key matches no column.
        InvalidRequest: the key is not a name (``TAHOE_NOT_ASSIGNABLE``) or matches several columns (``AMBIGUOUS_REFERENCE``); the field is
            missing in the struct (``FIELD_NOT_FOUND``), is inside an array or a map (``DELTA_UNSUPPORTED_NESTED_FIELD_IN_UPDATE``), or its
            parent has no fields (``INVALID_EXTRACT_BASE_FIELD_TYPE``).
    """
    parts = name_parts(key)
    if parts is None:
        raise InvalidRequest(f"'{key}' is no column that a value could be assigned to.", code="TAHOE_NOT_ASSIGNABLE", column=key)
    *targets_before, last = targets
    for columns in targets_before:
        try:
            return _place_in(columns, key, parts)
        except InvalidRequest:
            continue  # the last one raises the error
    return _place_in(last, key, parts)


def check_assignable(value: DataType, target: DataType, path: tuple[str, ...], *, may_lack_fields: bool = False) -> None:
    """Refuse a struct whose fields differ from those of its target: the value of an omitted field would be lost.

    Args:
        value: the type of the value.
        may_lack_fields: whether missing fields of the value become NULL, as with schema evolution.

    Raises:
        SchemaMismatch: ``DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION``.
    """
    match value, target:
        case StructType(), StructType():
            lacks = any(value.find(field.name) is None for field in target)
            if (lacks and not may_lack_fields) or any(target.find(field.name) is None for field in value):
                raise SchemaMismatch(
                    f"Cannot cast struct<{', '.join(value.names)}> to struct<{', '.join(target.names)}>, the type of '{'.'.join(path)}'. All "
                    "nested columns must match. Give all fields of the struct, by name.",
                    code="DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION",
                    column=".".join(path),
                )
            for field in target:
                other = value.find(field.name)
                if other is not None:
                    check_assignable(other.data_type, field.data_type, (*path, field.name), may_lack_fields=may_lack_fields)
        case ArrayType(one), ArrayType(other_element):
            check_assignable(one, other_element, (*path, "element"), may_lack_fields=may_lack_fields)
        case MapType(), MapType():
            check_assignable(value.key_type, target.key_type, (*path, "key"), may_lack_fields=may_lack_fields)
            check_assignable(value.value_type, target.value_type, (*path, "value"), may_lack_fields=may_lack_fields)


def lacks_fields(value: StructType, target: StructType) -> bool:
    """Whether the value lacks a field of the target, at any depth of structs."""
    for field in target:
        other = value.find(field.name)
        if other is None:
            return True
        inner, other_type = field.data_type, other.data_type
        if isinstance(inner, StructType) and isinstance(other_type, StructType) and lacks_fields(other_type, inner):
            return True
    return False


def _place_in(columns: Columns, key: str, parts: Qualifier) -> Reference:
    matches, inside = columns.matching(parts)
    if not matches:
        raise UnresolvedColumn(
            f"A column, variable, or function parameter with name {key} cannot be resolved. The columns are: {', '.join(columns.names)}."
            f"{suggestion(parts[-1], [(name_parts(name) or (name,))[-1] for name in columns.names])}",
            column=key,
        )
    if len(matches) > 1:
        raise InvalidRequest(
            f"Reference {key} is ambiguous: {len(matches)} columns have this name. Put the name of the table before it.",
            code="AMBIGUOUS_REFERENCE",
            column=key,
        )
    path, at = [matches[0].name], matches[0].data_type
    for name in inside:
        field = _field(columns, at, name, key)
        path.append(field.name)
        at = field.data_type
    return Reference(tuple(path), at)


def _field(columns: Columns, of: DataType, name: str, key: str) -> StructField:
    """Return the field of a struct by name."""
    struct = of.element_type if isinstance(of, ArrayType) else of
    fields = [field for field in struct if columns.same(field.name, name)] if isinstance(struct, StructType) else []
    if isinstance(of, MapType) or (isinstance(of, ArrayType) and fields):
        raise InvalidRequest(
            f"Nested field is only supported for updates when the parent is a struct, and {key} leads into {of}. "
            "Assign a new value to the whole column.",
            code="DELTA_UNSUPPORTED_NESTED_FIELD_IN_UPDATE",
            column=key,
        )
    if not isinstance(struct, StructType):
        raise InvalidRequest(
            f"Can't extract a field from {key}: {of} has no fields. Assign a new value to the whole column.",
            code="INVALID_EXTRACT_BASE_FIELD_TYPE",
            column=key,
        )
    if len(fields) != 1:
        many = len(fields) > 1
        raise InvalidRequest(
            f"{'Ambiguous reference to the field' if many else 'No such struct field'} {name} in {', '.join(struct.names)}. "
            f"Correct the name in {key}.",
            code="AMBIGUOUS_REFERENCE_TO_FIELDS" if many else "FIELD_NOT_FOUND",
            column=key,
        )
    return fields[0]


def _assigned_twice(first: Reference, second: Reference, inserts: bool) -> InvalidRequest:
    names = [quote_identifier(".".join(place.path)) for place in (first, second)]
    if inserts:
        return InvalidRequest(
            f"Duplicate column names in INSERT clause: {', '.join(names)}. List each column once.",
            code="DELTA_DUPLICATE_COLUMNS_ON_INSERT",
            column=".".join(second.path),
        )
    return InvalidRequest(
        f"There is a conflict from these SET columns: [{', '.join(names)}]. Assign to each column or field once.",
        code="DELTA_CONFLICT_SET_COLUMN",
        column=".".join(second.path),
    )


def _lowered(path: Qualifier) -> list[str]:
    return [name.lower() for name in path]
