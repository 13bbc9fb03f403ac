"""REPLACE COLUMNS: the check that these columns can replace the table's while its files stay unchanged. Pure."""

from __future__ import annotations

from dataclasses import replace

from tahoe.base.exceptions import InvalidRequest
from tahoe.protocol.config import TableConfig
from tahoe.schema.column_edits import Path, name_of
from tahoe.schema.types import ArrayType, DataType, MapType, PrimitiveType, StructField, StructType
from tahoe.schema.widening import is_widening

__all__ = ["replaced_columns"]


def replaced_columns(config: TableConfig, wanted: StructType) -> tuple[StructType, list[Path]]:
    """Return the new schema, in which existing columns keep their ids, and the paths of removed columns.

    Raises:
        InvalidRequest: ``DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP``: another type, NOT NULL where NULL was allowed, a removed column
            without column mapping; ``DELTA_AMBIGUOUS_DATA_TYPE_CHANGE``: columns are both added and removed, which might mean a rename.
    """
    replacing = _Replacing(config)
    schema = replacing.struct(config.schema, wanted, ())
    return schema, replacing.gone


class _Replacing:
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
                self._need(column.nullable, f"adding non-nullable column {name_of((*path, column.name))}")
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
        self._need(
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
        self._need(widens or old in (new, PrimitiveType("void")), f"changing data type of {name_of(path)} from {old} to {new}")
        return new

    def _loosens(self, before: bool, after: bool, path: Path) -> None:
        self._need(after or not before, f"tightening nullability of {name_of(path)}")

    def _need(self, holds: bool, change: str) -> None:
        if not holds:
            raise InvalidRequest(
                f"Unsupported ALTER TABLE REPLACE COLUMNS operation on table {self._config.table}. Reason: Cannot change data type: "
                f"{change}. Leave that change out; to drop a column, enable column mapping ('delta.columnMapping.mode' = 'name').",
                code="DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP",
                table=self._config.table,
            )
