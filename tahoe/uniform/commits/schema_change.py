"""An Iceberg schema that a client makes current, as a change of the Delta schema: columns are the same if their ids are. Pure.

Columns that stay keep their metadata, above all the physical name, which files know. Delta's rules decide which types may become wider.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from tahoe.base.exceptions import Unsupported
from tahoe.base.json_values import JsonMapping
from tahoe.protocol.config import TableConfig
from tahoe.schema.column_edits import Path, name_of
from tahoe.schema.mapping import explode, nested_ids_of
from tahoe.schema.types import ArrayType, DataType, MapType, StructField, StructType
from tahoe.schema.widening import is_iceberg_widening, is_widening
from tahoe.uniform.commits.json_fields import invalid
from tahoe.uniform.formats.single_values import iceberg_primitive

_COMMENT = "comment"


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """The new schema, and the columns that rules of the table may concern, by their paths in the old schema.

    Args:
        schema: the new schema in Delta's types.
        renamed: with the new path of each.
        required: by their new paths, columns that need a value in each row from now on; with the problem for existing rows.
    """

    schema: StructType
    dropped: tuple[Path, ...] = ()
    renamed: tuple[tuple[Path, Path], ...] = ()
    retyped: tuple[Path, ...] = ()
    required: tuple[tuple[Path, str], ...] = ()


@dataclass(slots=True)
class _Seen:
    dropped: list[Path] = field(default_factory=list)
    renamed: list[tuple[Path, Path]] = field(default_factory=list)
    retyped: list[Path] = field(default_factory=list)
    required: list[tuple[Path, str]] = field(default_factory=list)


def changed_schema(config: TableConfig, target: StructType) -> SchemaChange:
    """Return the change from the table's schema to another.

    Args:
        target: the client's schema in Delta's types, with its ids (`tahoe.ops.copies.iceberg_columns.delta_schema`).

    Raises:
        InvalidRequest: an id of another column is used again, or the parts of a list or map have other ids.
        Unsupported: a type change, or required elements of a list or map.
    """
    seen = _Seen()
    schema = _Merge(config, seen).struct(config.schema, target, (), ())
    return SchemaChange(schema, tuple(seen.dropped), tuple(seen.renamed), tuple(seen.retyped), tuple(seen.required))


def refuse_required(config: TableConfig, change: SchemaChange) -> None:
    """Raise `Unsupported` if the change of a table with rows makes a column required."""
    for path, problem in change.required:
        raise _unsupported(config, path, problem)


def has_dropped_columns(config: TableConfig) -> bool:
    """Whether a column of the table may have been dropped: then files may have values under any name that is free now."""
    return len(set(ids_of(config.schema))) != config.properties.max_column_id


def ids_of(schema: StructType) -> Iterator[int]:
    """Yield the ids of all columns, elements, keys and values; -1 for a column without."""
    for _, column in explode(schema):
        yield from (-1 if column.field_id is None else column.field_id, *nested_ids_of(column).values())


def defaults_of(schema: JsonMapping) -> dict[int, object]:
    """Return the defaults for new rows (``write-default``) of all columns of an Iceberg schema that have one, by id."""
    defaults: dict[int, object] = {}
    parts: list[object] = [schema]
    while parts:
        part = parts.pop()
        if isinstance(part, list):
            parts += part
        elif isinstance(part, Mapping):
            if part.get("write-default") is not None and isinstance(part.get("id"), int):
                defaults[part["id"]] = part["write-default"]
            parts += [part.get(key) for key in ("fields", "type", "element", "key", "value")]
    return defaults


@dataclass(frozen=True, slots=True)
class _Merge:
    config: TableConfig
    seen: _Seen

    def struct(self, old: StructType, new: StructType, path: Path, new_path: Path) -> StructType:
        by_id = {column.field_id: column for column in old}
        fields = []
        for column in new:
            before = by_id.pop(column.field_id, None)
            inner = (*new_path, column.name)
            fields.append(self.added(column, inner) if before is None else self.kept(before, column, (*path, before.name), inner))
        self.seen.dropped += [(*path, column.name) for column in by_id.values()]
        return StructType(tuple(fields))

    def added(self, column: StructField, path: Path) -> StructField:
        last = self.config.properties.max_column_id
        used = [number for number in ids_of(StructType((column,))) if number <= last]
        if used:
            raise invalid(
                f"The new column {name_of(path)} has the id {used[0]}, and new ids are above {last}, the last one assigned."
            )
        if not column.nullable:
            self.seen.required.append((path, "is new and required, and existing rows have no value for it. Add it as optional"))
        return column

    def kept(self, old: StructField, new: StructField, path: Path, new_path: Path) -> StructField:
        if old.nullable and not new.nullable:
            self.seen.required.append((new_path, "becomes required, which needs a check of all rows. Set NOT NULL through Delta"))
        if old.name != new.name:
            self.seen.renamed.append((path, new_path))
        metadata = {key: value for key, value in old.metadata.items() if key != _COMMENT}
        if _COMMENT in new.metadata:
            metadata[_COMMENT] = new.metadata[_COMMENT]
        if nested_ids_of(old) != nested_ids_of(new):
            raise invalid(f"The elements, keys or values of column {name_of(new_path)} have other ids than in the table.")
        kind = self.type(old.data_type, new.data_type, path, new_path)
        return replace(old, name=new.name, nullable=new.nullable, metadata=metadata, data_type=kind)

    def type(self, old: DataType, new: DataType, path: Path, new_path: Path) -> DataType:
        match old, new:
            case StructType(), StructType():
                return self.struct(old, new, path, new_path)
            case ArrayType(), ArrayType():
                element = self.type(old.element_type, new.element_type, (*path, "element"), (*new_path, "element"))
                return replace(
                    old, element_type=element, contains_null=self.looser(old.contains_null, new.contains_null, new_path)
                )
            case MapType(), MapType():
                key = self.type(old.key_type, new.key_type, (*path, "key"), (*new_path, "key"))
                value = self.type(old.value_type, new.value_type, (*path, "value"), (*new_path, "value"))
                nulls = self.looser(old.value_contains_null, new.value_contains_null, new_path)
                return replace(old, key_type=key, value_type=value, value_contains_null=nulls)
            case (StructType() | ArrayType() | MapType(), _) | (_, StructType() | ArrayType() | MapType()):
                raise _unsupported(self.config, new_path, f"cannot change from {old} to {new}")
        if iceberg_primitive(old) == iceberg_primitive(new):
            return old
        if not is_widening(old, new) or not is_iceberg_widening(old, new):
            raise _unsupported(self.config, new_path, f"cannot change from {old} to {new}")
        if not self.config.properties.enable_type_widening:
            raise _unsupported(
                self.config,
                new_path,
                f"changes from {old} to {new}, which needs 'delta.enableTypeWidening' = 'true'. Set it through Delta first; readers then "
                "need the feature typeWidening",
            )
        self.seen.retyped.append(path)
        return new

    def looser(self, old: bool, new: bool, path: Path) -> bool:
        if old and not new:
            raise _unsupported(self.config, path, "has elements or values that become required, which needs a check of all rows")
        return new


def _unsupported(config: TableConfig, path: Path, problem: str) -> Unsupported:
    name = name_of(path)
    return Unsupported(
        f"Column {name} of table {config.table} {problem}.", code="TAHOE_ICEBERG_SCHEMA", table=config.table, column=name
    )
