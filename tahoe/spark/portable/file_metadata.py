"""The column `_metadata` of the portable data source: the fields of Spark's file sources, and row ids if the table tracks rows.

Spark gives a Python data source no hidden columns, so it is a column like the others, and only there if the option `FILE_METADATA` asks for
it. Tahoe's client of Spark Connect sets the option and hides the column (`tahoe.spark.connect.requests.hidden_metadata`).
"""

from __future__ import annotations

from collections.abc import Mapping

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.protocol.actions import AddFile
from tahoe.protocol.config import TableConfig
from tahoe.protocol.row_tracking import materialized_columns
from tahoe.schema.types import PrimitiveType, StructField, StructType
from tahoe.snapshot.arrow_reader import ExtraColumns
from tahoe.snapshot.scan import Scan, ScannedVersion, read_task
from tahoe.spark.executors.scan_tasks import PER_ROW, MetadataColumn, ScannedFile
from tahoe.spark.jvm.translate import FIELDS_OF_FILES
from tahoe.spark.portable.data_source_options import option_of
from tahoe.store.location import absolute_url

FILE_METADATA = "fileMetadata"
"""The option that adds the column, with the value ``true``."""
METADATA = "_metadata"

_OF_TRACKED_ROWS = ("row_id", "base_row_id", "default_row_commit_version", "row_commit_version")
"""The other fields if the table tracks rows (PROTOCOL.md, "Row Tracking"), of type long."""


def metadata_of(options: Mapping[str, str], config: TableConfig, table: str) -> MetadataColumn | None:
    """Return the column `_metadata` that a read has; None if its options do not ask for it.

    Args:
        table: its URL, for errors.

    Raises:
        InvalidRequest: a column of the table has the name.
        Unsupported: another value of the option.
    """
    value = option_of(options, FILE_METADATA, "")
    if not value:
        return None
    if value != "true":
        raise Unsupported(
            f"The option '{FILE_METADATA}' is not for programs: leave it out; after tahoe.enable(spark) queries may name {METADATA}.",
            code="TAHOE_OPTION_NOT_SUPPORTED",
            option=FILE_METADATA,
        )
    if has_own_metadata(config.schema):
        raise InvalidRequest(
            f"Table {table} has a column '{METADATA}', so the metadata of its files cannot be read. Rename the column.",
            code="COLUMN_ALREADY_EXISTS",
            table=table,
        )
    tracked = materialized_columns(config)
    fields = FIELDS_OF_FILES if tracked is None else FIELDS_OF_FILES | dict.fromkeys(_OF_TRACKED_ROWS, "long")
    struct = StructType(tuple(StructField(name, PrimitiveType(type_name)) for name, type_name in fields.items()))
    per_row = ExtraColumns(row_index_column=PER_ROW["row_index"])
    if tracked is not None:
        per_row = ExtraColumns(
            PER_ROW["row_id"], PER_ROW["row_commit_version"], tracked.row_id, tracked.row_commit_version, PER_ROW["row_index"]
        )
    return MetadataColumn(StructField(METADATA, struct), per_row)


def has_own_metadata(schema: StructType) -> bool:
    """Whether a table has a column with the name of `_metadata`, which hides the metadata of its files."""
    return any(column.name.lower() == METADATA for column in schema)


def scanned_files(scan: Scan) -> list[ScannedFile]:
    """Return the files of a scan with the values of their fields."""
    return [scanned_file(scan.snapshot, add) for add in scan.add_files()]


def scanned_file(version: ScannedVersion, add: AddFile) -> ScannedFile:
    """Return a file of a version with the values of its fields."""
    task = read_task(version, add)
    with version.naming_origins():
        url = absolute_url(version.store.url, task.name).replace("file:///", "file:/", 1)  # as Spark writes it
    return ScannedFile(task, url, add.modification_time)
