"""Column changes of ALTER TABLE on an existing table: ADD, DROP, RENAME, CHANGE and REPLACE. Nothing is committed here.

Only the metadata changes, never a file. So these commits record no reads: rows added concurrently are valid before and after the change,
while a writer that prepared for the old columns fails with the conflict that the metadata changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tahoe.base.exceptions import InvalidRequest
from tahoe.base.json_values import compact_json
from tahoe.base.progress import Progress, silent
from tahoe.expr.tree.predicate import quote_identifier
from tahoe.ops.tables.cluster_by import check_still_clusterable
from tahoe.ops.tables.constrain import validate_not_null
from tahoe.ops.tables.create import with_schema
from tahoe.ops.tables.dependents import refuse_altering, refuse_clustering, refuse_dependents, refuse_replacing
from tahoe.protocol.actions import Metadata
from tahoe.protocol.column_values.default_values import CURRENT_DEFAULT, EXISTS_DEFAULT
from tahoe.protocol.config import TableConfig
from tahoe.protocol.constraints import check_default
from tahoe.protocol.features import ENFORCED, Feature
from tahoe.protocol.statistics.collect import multipart_names
from tahoe.schema.column_edits import (
    NewColumn,
    Path,
    Position,
    field_at,
    name_of,
    not_there,
    with_columns,
    with_field,
    without_column,
)
from tahoe.schema.text_limits import DECLARED_TYPE, may_become
from tahoe.schema.types import ArrayType, DataType, MapType, PrimitiveType, StructField, StructType
from tahoe.schema.widening import fresh, is_up_cast, is_widening
from tahoe.snapshot.snapshot import Snapshot
from tahoe.txn.transaction import Operation, Transaction

_STATS_COLUMNS = "delta.dataSkippingStatsColumns"
_COMMENT = "comment"
_NO_CHANGE, _NO_CAST = "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP", "NOT_SUPPORTED_CHANGE_COLUMN"
"""Error classes: changes that Delta does not support, and those that Spark refuses because values might not fit the new type."""
_PART_BY_PART: tuple[tuple[type, str, str], ...] = (
    (StructType, "STRUCT", "add, drop or change its fields"),
    (MapType, "MAP", "change {name}.key or {name}.value"),
    (ArrayType, "ARRAY", "change {name}.element"),
)


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """The changes to one column; None leaves a setting unchanged.

    Args:
        path: of the column, or of a nested one.
        data_type: the new type.
        declared: with it, the declared type if it contains a ``char(n)`` or a ``varchar(n)`` (`tahoe.schema.text_limits`).
        nullable: True drops NOT NULL; False sets it, after every row of the table was validated.
        comment: its description; empty for none.
        position: its new place among its siblings.
        default: the text of its default value; empty drops it.
        by_spark: checks a default that only Spark can evaluate; None without Spark.
    """

    path: Path
    data_type: DataType | None = None
    nullable: bool | None = None
    comment: str | None = None
    position: Position | None = None
    default: str | None = None
    declared: str | None = None
    by_spark: Callable[[StructField, TableConfig], None] | None = None


def stage_add_columns(transaction: Transaction, snapshot: Snapshot, columns: Sequence[NewColumn]) -> Operation:
    """Stage new columns, or fields of structs. They are NULL in existing rows.

    Raises:
        InvalidRequest: a column that must not be null, a parent or sibling that does not exist; `SchemaMismatch` for a repeated name.
    """
    for new in columns:
        if {CURRENT_DEFAULT, EXISTS_DEFAULT} & new.column.metadata.keys():
            raise InvalidRequest(
                f"Failed to execute ALTER TABLE command on table {snapshot.config.table}: column {name_of(new.path)} would be added with a "
                "DEFAULT value, which no Delta table can do, as the rows that are there have none. Add it without, then ALTER COLUMN … SET "
                "DEFAULT.",
                code="WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED",
                column=name_of(new.path),
            )
    added = [replace(new, column=fresh(StructType((new.column,))).fields[0]) for new in columns]
    for new in added:
        if _demands_values(StructType((new.column,))):
            raise InvalidRequest(
                f"Operation not allowed: `NOT NULL in ALTER TABLE ADD COLUMNS` is not supported for Delta tables: column {name_of(new.path)} "
                f"of table {snapshot.config.table} would be null in the rows that are there. Leave NOT NULL out.",
                code="DELTA_OPERATION_NOT_ALLOWED",
                column=name_of(new.path),
            )
    transaction.enforces = ENFORCED  # constraints apply to new rows only; existing rows have NULL
    schema = with_columns(snapshot.schema, added)
    metadata = with_schema(snapshot.config, schema, transaction.clock)
    check_still_clusterable(snapshot, metadata)
    transaction.set_metadata(metadata)
    described = [
        {"column": _column_json(new.parent, new.column), **({} if new.position is None else {"position": str(new.position)})}
        for new in added
    ]
    return Operation("ADD COLUMNS", {"columns": compact_json(described)})


def stage_drop_columns(
    transaction: Transaction, snapshot: Snapshot, paths: Sequence[Path], *, if_exists: bool = False
) -> Operation | None:
    """Stage the removal of columns, or fields of structs; their values stay in the files, unread. None if there is nothing to drop.

    Raises:
        InvalidRequest: the table has no column mapping, or a column partitions or clusters it, or a constraint or a generated column reads
            one.
    """
    config = snapshot.config
    if not if_exists:
        for path in paths:
            _existing(snapshot, path)
    _need_mapping(snapshot, "DELTA_UNSUPPORTED_DROP_COLUMN", "DROP COLUMN is not supported for your Delta table")
    there = [path for path in paths if not if_exists or field_at(snapshot.schema, path) is not None]
    if not there:
        return None
    schema, configuration = snapshot.schema, dict(config.metadata.configuration)
    partitioned = {name.lower() for name in config.partition_columns}
    for path in there:
        schema = without_column(schema, path)
        if len(path) == 1 and path[0].lower() in partitioned:
            raise InvalidRequest(
                f"Dropping partition columns ({path[0]}) is not allowed (table {config.table}). Write the rows to a new table that is "
                "partitioned otherwise.",
                code="DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN",
                column=path[0],
            )
        refuse_clustering(snapshot, path)
        refuse_dependents(config, path)
        configuration = with_stats_columns(configuration, path, None)
    metadata = with_schema(config, schema, transaction.clock)
    transaction.set_metadata(with_stats_of(metadata, configuration))
    return Operation("DROP COLUMNS", {"columns": compact_json([name_of(path) for path in there])})


def stage_rename_column(transaction: Transaction, snapshot: Snapshot, path: Path, name: str) -> Operation:
    """Stage a new name of a column, or of a field of a struct. Files, statistics and partition values keep its physical name.

    Raises:
        InvalidRequest: the table has no column mapping; a constraint or a generated column reads the column; ``FIELD_ALREADY_EXISTS``.
    """
    config = snapshot.config
    column = _existing(snapshot, path)
    if _holder(snapshot.schema, path) is None:
        raise InvalidRequest(
            f"{name_of(path)} of table {config.table} is the element of an array or a map, and has no name to change. Name a column.",
            code="INVALID_FIELD_NAME",
            column=name_of(path),
        )
    _refuse_name_in_use(snapshot, path, name)
    _need_mapping(snapshot, "DELTA_UNSUPPORTED_RENAME_COLUMN", "Column rename is not supported for your Delta table")
    spelled = _spelled(snapshot.schema, path)
    refuse_dependents(config, path)
    transaction.enforces = ENFORCED  # the column's constraints are unchanged, under another name
    schema = with_field(snapshot.schema, path, replace(column, name=name))
    is_top = len(path) == 1
    partitioned = [
        name if is_top and partition_column == column.name else partition_column for partition_column in config.partition_columns
    ]
    new = (*spelled[:-1], name)
    configuration = with_stats_columns(dict(config.metadata.configuration), spelled, new)
    metadata = with_schema(config, schema, transaction.clock, partitioned)
    transaction.set_metadata(with_stats_of(metadata, configuration))
    return Operation("RENAME COLUMN", {"oldColumnPath": name_of(spelled), "newColumnPath": name_of(new)})


def stage_change_columns(
    transaction: Transaction, snapshot: Snapshot, changes: Sequence[ColumnChange], progress: Progress = silent
) -> Operation | None:
    """Stage changes of comment, place, NOT NULL or type of columns, each at most once. None if they name only types that the columns have.

    Args:
        progress: called with the number of new NOT NULL columns checked.

    Raises:
        InvalidRequest: the files do not allow the new type; NOT NULL inside an array or a map; a change of an identity column other than
            its comment or its place.
        InvariantViolation: ``DELTA_NEW_NOT_NULL_VIOLATION``: NOT NULL on a column in which rows have NULL.
    """
    schema, described, changes_nothing = snapshot.schema, [], True
    _refuse_changing_twice(snapshot, changes)
    if any(change.default is not None or change.data_type is not None for change in changes):
        transaction.enforces = ENFORCED  # the column's constraints are checked here; no row is added
    for change in changes:
        column = _existing(snapshot, change.path)
        refuse_altering(
            snapshot.config, column, any(value is not None for value in (change.data_type, change.nullable, change.default))
        )
        new = _changed(snapshot, column, change)
        changes_nothing &= new == column and change == ColumnChange(
            change.path, change.data_type, declared=change.declared, by_spark=change.by_spark
        )
        schema = with_field(schema, change.path, new, change.position)
        where = {} if change.position is None else {"position": str(change.position)}
        described.append((_column_json(_spelled(snapshot.schema, change.path)[:-1], new), where))
    if changes_nothing:
        return None
    metadata = with_schema(snapshot.config, schema, transaction.clock)
    check_still_clusterable(snapshot, metadata)
    transaction.set_metadata(metadata)
    required = [change.path for change in changes if change.nullable is False and _existing(snapshot, change.path).nullable]
    if required:
        validate_not_null(transaction, snapshot, [_spelled(snapshot.schema, path) for path in required], progress)
    if len(described) == 1:
        return Operation("CHANGE COLUMN", {"column": compact_json(described[0][0]), **described[0][1]})
    return Operation("CHANGE COLUMNS", {"columns": compact_json([{**column, **where} for column, where in described])})


def stage_replace_columns(transaction: Transaction, snapshot: Snapshot, columns: StructType) -> Operation:
    """Stage the replacement of the table's columns: new ones, another order, comments and looser nullability. With column mapping columns can
    also be removed.

    Raises:
        InvalidRequest: the files do not allow it; ``DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP`` names the reason.
    """
    config, target = snapshot.config, fresh(columns)
    refuse_replacing(config)
    with_columns(StructType(()), [NewColumn((), column) for column in target])  # refuses a repeated name
    schema, gone = _replaced_columns(config, target)
    for path in gone:
        refuse_clustering(snapshot, path)
        refuse_dependents(config, path)
    metadata = with_schema(config, schema, transaction.clock)
    check_still_clusterable(snapshot, metadata)
    transaction.set_metadata(metadata)
    return Operation("REPLACE COLUMNS", {"columns": compact_json([_column_json((), column) for column in target])})


# -- one column --------------------------------------------------------------------------------------------------------------


def _changed(snapshot: Snapshot, column: StructField, change: ColumnChange) -> StructField:
    new, name = column, name_of(change.path)
    in_collection = _holder(snapshot.schema, change.path) is None
    if change.comment is not None:
        if in_collection:
            raise InvalidRequest(
                f"Can't add a comment to {name}. Adding a comment to a map key/value or array element is not supported. Comment on the "
                "column that contains it.",
                code="DELTA_UNSUPPORTED_COMMENT_MAP_ARRAY",
                column=name,
            )
        new = replace(new, metadata={**new.metadata, _COMMENT: change.comment})
    if change.default is not None:
        new = _with_default(snapshot, new, change)
    if change.nullable is not None:
        new = replace(new, nullable=change.nullable)
    if change.data_type is not None and _definition(column.data_type) != _definition(change.data_type):
        new = replace(new, data_type=change.data_type)
        _check_type(snapshot, column, change.data_type, change)
    if change.data_type is not None and change.declared != column.metadata.get(DECLARED_TYPE):
        new = _with_declared(snapshot, column, new, change)
    if in_collection and new.nullable != column.nullable:
        raise _unsupported_change(snapshot, name, column, new)
    return new


def _with_declared(snapshot: Snapshot, column: StructField, new: StructField, change: ColumnChange) -> StructField:
    """Return the column with another length limit of its texts, which every existing text must satisfy already."""
    _refuse_nested(snapshot, column.data_type, name_of(change.path))
    old = column.metadata.get(DECLARED_TYPE)
    fits = may_become(None if old is None else str(old), change.declared)
    if not fits or (change.declared and len(change.path) > 1):
        raise InvalidRequest(
            f"ALTER TABLE CHANGE COLUMN is not supported for changing column {name_of(change.path)} of table {snapshot.config.table} from "
            f"{old or column.data_type} to {change.declared}: a varchar may become longer, a char a varchar, and both a string; the limits "
            "of nested texts stay. Write the rows to a new column or table.",
            code=_NO_CHANGE if fits else _NO_CAST,
            column=name_of(change.path),
        )
    metadata = {key: value for key, value in new.metadata.items() if key != DECLARED_TYPE}
    return replace(new, metadata=metadata if change.declared is None else {**metadata, DECLARED_TYPE: change.declared})


def _with_default(snapshot: Snapshot, column: StructField, change: ColumnChange) -> StructField:
    config, name = snapshot.config, name_of(change.path)
    if len(change.path) > 1 or column.is_generated:
        raise InvalidRequest(
            f"ALTER TABLE cannot give {name} of table {config.table} a default value: fields of structs and generated columns have none. "
            "Name a column whose values rows bring.",
            code=_NO_CHANGE,
            column=name,
        )
    metadata = {key: value for key, value in column.metadata.items() if key not in (CURRENT_DEFAULT, EXISTS_DEFAULT)}
    if change.default:
        metadata[CURRENT_DEFAULT] = change.default
    new = replace(column, metadata=metadata)
    enabled, by_spark = Feature.ALLOW_COLUMN_DEFAULTS in config.features, change.by_spark is not None
    check_default(new, config.table, enabled=enabled, statement="ALTER TABLE", by_spark=by_spark)
    if change.by_spark is not None:
        change.by_spark(new, config)
    return new


def _definition(data_type: DataType) -> object:
    """Return what a statement defines of a type: of structs the names, NOT NULL, comments and types of the fields, in their order."""
    match data_type:
        case StructType(fields):
            return tuple(
                (field.name, field.nullable, field.metadata.get(_COMMENT), _definition(field.data_type)) for field in fields
            )
        case ArrayType(element):
            return ArrayType, _definition(element)
        case MapType(key, value):
            return MapType, _definition(key), _definition(value)
    return data_type


def _refuse_nested(snapshot: Snapshot, data_type: DataType, name: str) -> None:
    for kind, code, remedy in _PART_BY_PART:
        if isinstance(data_type, kind):
            raise InvalidRequest(
                f"Cannot update {snapshot.config.table} field {name} type: {code.lower()} types are changed part by part: "
                f"{remedy.format(name=name)}.",
                code=f"CANNOT_UPDATE_FIELD.{code}_TYPE",
                column=name,
            )


def _check_type(snapshot: Snapshot, column: StructField, data_type: DataType, change: ColumnChange) -> None:
    old, name = column.data_type, name_of(change.path)
    _refuse_nested(snapshot, data_type, name)
    if change.declared is not None or not is_up_cast(old, data_type):
        raise _unsupported_change(snapshot, name, column, replace(column, data_type=data_type), _NO_CAST)
    if old != PrimitiveType("void") and not (snapshot.config.properties.enable_type_widening and is_widening(old, data_type)):
        raise _unsupported_change(snapshot, name, column, replace(column, data_type=data_type))
    if column.is_generated:
        raise InvalidRequest(
            f"The column {name} of table {snapshot.config.table} is generated, and its expression is {old}: the type cannot become "
            f"{data_type}. Add another column.",
            code="DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH",
            column=name,
        )
    refuse_dependents(snapshot.config, change.path)


def _unsupported_change(
    snapshot: Snapshot, name: str, old: StructField, new: StructField, code: str = _NO_CHANGE
) -> InvalidRequest:
    def shown(column: StructField) -> str:
        return f"{column.data_type}{'' if column.nullable else ' NOT NULL'}"

    if old.data_type == new.data_type:
        remedy = "Elements of an array or a map may always be NULL; NOT NULL is for columns and fields of structs."
    elif is_widening(old.data_type, new.data_type):
        remedy = "Set 'delta.enableTypeWidening' = 'true' on the table first; readers then need the feature typeWidening."
    else:
        remedy = (
            "That is no wider type as the feature typeWidening knows them; overwrite the table with overwriteSchema to change it."
        )
    return InvalidRequest(
        f"ALTER TABLE CHANGE COLUMN is not supported for changing column {name} of table {snapshot.config.table} from {shown(old)} to "
        f"{shown(new)}. {remedy}",
        code=code,
        column=name,
    )


def _existing(snapshot: Snapshot, path: Path) -> StructField:
    column = field_at(snapshot.schema, path)
    if column is None:
        raise not_there(snapshot.schema, path)
    return column


def _holder(schema: StructType, path: Path) -> StructType | None:
    """The struct that contains the column; None for the parts of an array or a map."""
    parent = field_at(schema, path[:-1])
    at: DataType | None = schema if len(path) == 1 else None if parent is None else parent.data_type
    return at if isinstance(at, StructType) else None


def _refuse_changing_twice(snapshot: Snapshot, changes: Sequence[ColumnChange]) -> None:
    """Refuse to change a column together with a field inside it, or twice: the outcome would depend on the order."""
    paths = [tuple(part.lower() for part in change.path) for change in changes]
    for place, path in enumerate(paths):
        met = next((other for other in paths[:place] if path[: len(other)] == other or other[: len(path)] == path), None)
        if met is not None:
            raise InvalidRequest(
                f"ALTER TABLE CHANGE COLUMN is not supported for changing column {name_of(changes[place].path)} of table "
                f"{snapshot.config.table} more than once, or together with its nested fields, in one statement. Write several.",
                code=f"NOT_SUPPORTED_CHANGE_{'SAME' if met == path else 'PARENT_CHILD'}_COLUMN",
                column=name_of(changes[place].path),
            )


def _refuse_name_in_use(snapshot: Snapshot, path: Path, name: str) -> None:
    """Refuse a name that is in use, including the column's own name in any case."""
    holder = _holder(snapshot.schema, path)
    if holder is not None and holder.find(name) is not None:
        raise InvalidRequest(
            f"Cannot rename column {name_of(path)} of table {snapshot.config.table}, because {quote_identifier(name)} already exists. Choose "
            "another name.",
            code="FIELD_ALREADY_EXISTS",
            column=name_of(path),
        )


def _spelled(schema: StructType, path: Path) -> Path:
    """Return the path in the schema's spelling."""
    fields = [field_at(schema, path[: length + 1]) for length in range(len(path))]
    return tuple(part if column is None else column.name for part, column in zip(path, fields, strict=True))


def _need_mapping(snapshot: Snapshot, code: str, operation: str) -> None:
    if snapshot.config.column_mapping_mode == "none":
        raise InvalidRequest(
            f"{operation} {snapshot.config.table}. Please enable Column Mapping on it with mapping mode 'name': ALTER TABLE … SET "
            "TBLPROPERTIES ('delta.columnMapping.mode' = 'name'), or Table.set_properties. Readers then need reader version 2, writers "
            "writer version 5, or the feature columnMapping.",
            code=code,
            table=snapshot.config.table,
        )


def _demands_values(schema: StructType) -> bool:
    """Whether a field at any depth must not be null."""

    def demands(data_type: DataType) -> bool:
        match data_type:
            case StructType():
                return any(not column.nullable or demands(column.data_type) for column in data_type)
            case ArrayType():
                return demands(data_type.element_type)
            case MapType():
                return demands(data_type.key_type) or demands(data_type.value_type)
        return False

    return demands(schema)


# -- settings that follow a column -------------------------------------------------------------------------------------------


def with_stats_columns(configuration: dict[str, str], path: Path, new: Path | None) -> dict[str, str]:
    """Return the properties with a renamed or removed column replaced in the list of columns with statistics."""
    key = next((key for key in configuration if key.lower() == _STATS_COLUMNS.lower()), None)
    if key is None:
        return configuration
    lowered, remaining_columns = [part.lower() for part in path], []
    for listed in multipart_names(configuration[key]):
        follows = [part.lower() for part in listed[: len(path)]] == lowered
        if not follows:
            remaining_columns.append(listed)
        elif new is not None:
            remaining_columns.append((*new, *listed[len(path) :]))
    return {**configuration, key: ",".join(".".join(quote_identifier(part) for part in names) for names in remaining_columns)}


def with_stats_of(metadata: Metadata, configuration: dict[str, str]) -> Metadata:
    """Return the metadata with the list of columns with statistics from `configuration`."""
    key = next((key for key in configuration if key.lower() == _STATS_COLUMNS.lower()), None)
    if key is None:
        return metadata
    return replace(metadata, configuration={**metadata.configuration, key: configuration[key]})


def _column_json(parent: Path, column: StructField) -> dict[str, Any]:
    """A column as the history shows it."""
    match column.data_type:
        case StructType():
            kind = "struct"
        case ArrayType():
            kind = "array"
        case MapType():
            kind = "map"
        case other:
            kind = str(other)
    metadata = dict(column.metadata)
    return {"name": name_of((*parent, column.name)), "type": kind, "nullable": column.nullable, "metadata": metadata}


def _replaced_columns(config: TableConfig, target: StructType) -> tuple[StructType, list[Path]]:
    """Return the new schema, in which existing columns keep their ids, and the paths of removed columns.

    Raises:
        InvalidRequest: ``DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP``: another type, NOT NULL where NULL was allowed, a removed column
            without column mapping; ``DELTA_AMBIGUOUS_DATA_TYPE_CHANGE``: columns are both added and removed, which might mean a rename.
    """
    replacing = _ColumnReplacement(config)
    schema = replacing.struct(config.schema, target, ())
    return schema, replacing.gone


class _ColumnReplacement:
    """One comparison; it adds removed columns to `gone`."""

    def __init__(self, config: TableConfig) -> None:
        self._config = config
        self.gone: list[Path] = []

    def struct(self, old: StructType, new: StructType, path: Path) -> StructType:
        fields, adds = [], False
        left = {column.name for column in old}
        for column in new:
            before = old.find(column.name)
            if before is None:
                adds = True
                self._require(column.nullable, f"adding non-nullable column {name_of((*path, column.name))}")
                fields.append(column)
                continue
            left.discard(before.name)
            fields.append(self._column(before, column, (*path, before.name)))
        missing = [column.name for column in old if column.name in left]
        if missing and adds:
            raise InvalidRequest(
                f"Cannot change data type of {name_of(path) or self._config.table} from {old} to {new}. This change contains column removals "
                "and additions, therefore they are ambiguous. Please make these changes individually using ALTER TABLE [ADD | DROP | "
                "RENAME] COLUMN.",
                code="DELTA_AMBIGUOUS_DATA_TYPE_CHANGE",
                table=self._config.table,
            )
        inside = f" from {name_of(path)}" if path else ""
        self._require(
            not missing or self._config.column_mapping_mode != "none", f"dropping column(s) [{', '.join(missing)}]{inside}"
        )
        self.gone += [(*path, name) for name in missing]
        return StructType(tuple(fields))

    def _column(self, old: StructField, new: StructField, path: Path) -> StructField:
        self._loosens(old.nullable, new.nullable, path)
        comment = {"comment": new.metadata["comment"]} if "comment" in new.metadata else {}
        data_type = self._type(old.data_type, new.data_type, path)
        return replace(old, data_type=data_type, nullable=new.nullable, metadata={**old.metadata, **comment})

    def _type(self, old: DataType, new: DataType, path: Path) -> DataType:
        match old, new:
            case StructType(), StructType():
                return self.struct(old, new, path)
            case ArrayType(), ArrayType():
                self._loosens(old.contains_null, new.contains_null, path)
                return replace(old, element_type=self._type(old.element_type, new.element_type, (*path, "element")))
            case MapType(), MapType():
                self._loosens(old.value_contains_null, new.value_contains_null, path)
                key = self._type(old.key_type, new.key_type, (*path, "key"))
                return replace(old, key_type=key, value_type=self._type(old.value_type, new.value_type, (*path, "value")))
        widens = self._config.properties.enable_type_widening and is_widening(old, new)
        self._require(widens or old in (new, PrimitiveType("void")), f"changing data type of {name_of(path)} from {old} to {new}")
        return new

    def _loosens(self, before: bool, after: bool, path: Path) -> None:
        self._require(after or not before, f"tightening nullability of {name_of(path)}")

    def _require(self, holds: bool, change: str) -> None:
        if not holds:
            raise InvalidRequest(
                f"Unsupported ALTER TABLE REPLACE COLUMNS operation on table {self._config.table}. Reason: Cannot change data type: "
                f"{change}. Leave that change out; to drop a column, enable column mapping ('delta.columnMapping.mode' = 'name').",
                code="DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP",
                table=self._config.table,
            )
