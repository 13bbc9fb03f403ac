"""Metadata changes between two versions for a stream that tracks the schema, and which of them its user allows.

A stream continues with an added column. Columns that are renamed, dropped or widened change the meaning of rows for their consumer, so
the stream continues only if its user allows it, by an option of the reader or by a session setting.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from tahoe.base.exceptions import InvalidRequest
from tahoe.protocol.config import TableConfig
from tahoe.schema.mapping import explode, transform_fields
from tahoe.schema.types import GENERATION_EXPRESSION, ArrayType, DataType, MapType, StructField, StructType
from tahoe.schema.widening import is_widening
from tahoe.stream.schema_changes import reads

SETTINGS = "spark.databricks.delta.streaming."
"""The prefix of the session settings."""
_RENAME, _DROP, _TYPE_CHANGE = "allowSourceColumnRename", "allowSourceColumnDrop", "allowSourceColumnTypeChange"
_BOTH = "allowSourceColumnRenameAndDrop"
_ALWAYS = "always"


def differ(read: TableConfig, other: TableConfig) -> bool:
    """Whether a stream that reads with `read` must be restarted to read with `other`: by their schemas, partition columns, Delta
    properties, or protocols. Column metadata for writers only, such as that of identity columns, does not count."""
    return (
        read.protocol != other.protocol
        or _of_readers(read.schema) != _of_readers(other.schema)
        or read.metadata.partition_columns != other.metadata.partition_columns
        or _of_delta(read) != _of_delta(other)
    )


def _of_readers(schema: StructType) -> StructType:
    return StructType(tuple(replace(column, metadata=_of_reader(column.metadata)) for column in schema))


def _of_reader(metadata: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in metadata.items() if name not in _OF_WRITERS and not name.startswith("delta.identity.")}


_OF_WRITERS = frozenset({GENERATION_EXPRESSION})


def _of_delta(config: TableConfig) -> dict[str, str]:
    return {name: value for name, value in config.metadata.configuration.items() if name.startswith("delta.")}


@dataclass(frozen=True, slots=True)
class NonAdditiveChanges:
    """Changes of columns and nested fields, which are matched by their physical names.

    Args:
        renamed: the old and the new name, dotted.
        dropped: names, dotted.
        widened: name, old and new type.
    """

    renamed: tuple[tuple[str, str], ...] = ()
    dropped: tuple[str, ...] = ()
    widened: tuple[tuple[str, DataType, DataType], ...] = ()

    @classmethod
    def between(cls, old: StructType, new: StructType) -> NonAdditiveChanges:
        """Return the non-additive changes from the old schema to the new one."""
        before, after = dict(_by_physical_names(old)), dict(_by_physical_names(new))
        common = [(before[path], after[path]) for path in before if path in after]
        widened = [
            (".".join((*names, *inside)), was, now)
            for (_, old_field), (names, new_field) in common
            for inside, was, now in _widened(old_field.data_type, new_field.data_type)
        ]
        return cls(
            tuple((".".join(was), ".".join(now)) for (was, _), (now, _) in common if was[-1] != now[-1]),
            tuple(".".join(names) for path, (names, _) in before.items() if path not in after),
            tuple(widened),
        )

    def __bool__(self) -> bool:
        return bool(self.renamed or self.dropped or self.widened)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The options that allow it, one for each kind of change."""
        changes_of = ((_RENAME, self.renamed), (_DROP, self.dropped), (_TYPE_CHANGE, self.widened))
        return tuple(kind for kind, changes in changes_of if changes)

    def __str__(self) -> str:
        parts = [f"'{old}' was renamed to '{new}'" for old, new in self.renamed]
        parts += [f"'{name}' was dropped" for name in self.dropped]
        parts += [f"'{name}' became {new} from {old}" for name, old, new in self.widened]
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class AllowedChanges:
    """The changes that the user of a stream allows: ``always``, or the version up to which changes are allowed.

    Args:
        options: the reader's options, by name.
        settings: the session's settings, by name; unrelated ones are ignored.
    """

    options: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)

    def allows(self, kind: str, path_hash: int, version: int) -> bool:
        """Whether one kind of change is allowed.

        Args:
            kind: the option's name.
            path_hash: `source_hash` of the source's folder in the checkpoint.
            version: the version of the last change.
        """
        names = (kind,) if kind == _TYPE_CHANGE else (kind, _BOTH)
        of_stream = [self._set(f"{name}.ckpt_{path_hash}") for name in names]
        return (
            self.options.get(kind, "").lower() in (_ALWAYS, str(version))
            or any(self._set(name) == _ALWAYS for name in names)
            or any(value in (_ALWAYS, str(version)) for value in of_stream)
        )

    def _set(self, name: str) -> str:
        # In SQL, users quote texts, and Spark includes the quotation marks in the value.
        return self.settings.get(f"{SETTINGS}{name}", "").strip("\"'").lower()


def check_goes_on(
    old: TableConfig, new: TableConfig, versions: tuple[int, int], allowed: AllowedChanges, source_path: str
) -> None:
    """Check that a stream that read with the old metadata may continue with the new one.

    Args:
        versions: the versions of both.
        source_path: the folder of the source in the query's checkpoint.

    Raises `InvalidRequest`: ``DELTA_SCHEMA_CHANGED_WITH_VERSION`` if a type became another that is not wider,
    ``DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION`` if the user has not allowed the changes.
    """
    if not reads(_physical(old.schema), _physical(new.schema), widens=True, whole=False):
        raise InvalidRequest(
            f"The schema of table {new.table} at version {versions[1]} cannot represent the rows of version {versions[0]}: a column has a "
            f"type that is not wider, or is not nullable any more. It had {old.schema}; version {versions[1]} has {new.schema}. Start a new "
            f"stream, without the old checkpoint and schema log, from version {versions[1]} on.",
            code="DELTA_SCHEMA_CHANGED_WITH_VERSION",
            table=new.table,
            version=versions[1],
        )
    changes, path_hash = NonAdditiveChanges.between(old.schema, new.schema), source_hash(source_path)
    missing = [kind for kind in changes.kinds if not allowed.allows(kind, path_hash, versions[1])]
    if not missing:
        return
    options = " and ".join(f"'{kind}' to '{versions[1]}' (for these changes) or 'always'" for kind in missing)
    settings = ", ".join(f"{SETTINGS}{kind}.ckpt_{path_hash}" for kind in missing)
    raise InvalidRequest(
        f"Between version {versions[0]} and version {versions[1]} of table {new.table}, {changes}. The meaning of later rows changes for "
        "their consumer, so the stream continues only if you allow it. Adapt the consumer if necessary, and set the "
        f"option {options} on spark.readStream; or for this stream the session setting {settings}, with the same values.",
        code="DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION",
        table=new.table,
        version=versions[1],
    )


def source_hash(source_path: str) -> int:
    """Return the number that identifies a source's folder in setting names: Java's hash of its text."""
    units, result = source_path.encode("utf-16-be"), 0
    for first, second in zip(units[::2], units[1::2], strict=True):
        result = (31 * result + (first << 8) + second) & 0xFFFFFFFF
    return result - (1 << 32) if result >> 31 else result


def _physical(schema: StructType) -> StructType:
    return transform_fields(schema, lambda column: replace(column, name=column.physical_name))


def _by_physical_names(schema: StructType) -> Iterator[tuple[tuple[str, ...], tuple[tuple[str, ...], StructField]]]:
    for (path, _), logical in zip(explode(_physical(schema)), explode(schema), strict=True):
        yield path, logical


def _widened(old: DataType, new: DataType) -> Iterator[tuple[tuple[str, ...], DataType, DataType]]:
    """Yield the types that became wider in one field; the fields of a struct are visited separately."""
    match old, new:
        case ArrayType(), ArrayType():
            inside = {"element": (old.element_type, new.element_type)}
        case MapType(), MapType():
            inside = {"key": (old.key_type, new.key_type), "value": (old.value_type, new.value_type)}
        case _:
            if is_widening(old, new):
                yield (), old, new
            return
    for name, (old_inner, new_inner) in inside.items():
        for path, was, now in _widened(old_inner, new_inner):
            yield (name, *path), was, now
