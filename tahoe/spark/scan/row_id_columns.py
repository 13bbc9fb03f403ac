"""Row ids on Spark: `_metadata.row_id` and `_metadata.row_commit_version` of tables with row tracking (PROTOCOL.md, "Row Tracking").

    scan: the table's columns, the two columns in which files store ids, base ids as hidden partition values, the row's position
      └─► inner projection: the columns, and a struct `_metadata` of Spark's own fields and of Tahoe's
            └─► outer projection: only the columns, with the struct as its hidden output

Catalyst itself uses a hidden output for the columns that a natural join leaves out: the analyzer adds it for a query that requests it, and
the optimizer prunes the struct, and all that only the struct reads, for a query that does not. Requesting the position from Spark's own
`_metadata` would compute it in every scan, so the position is a column of the files here, under the name that Spark's Parquet reader fills.

`with_row_ids` adds the ids to rewritten rows; `tahoe.spark.commands.row_changes.TableRows` writes such rows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType as SparkStruct

from tahoe.protocol.config import TableConfig
from tahoe.protocol.row_tracking import MaterializedColumns, materialized_columns
from tahoe.schema.types import PrimitiveType, StructField
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.records import items
from tahoe.spark.names.frame_columns import column_in
from tahoe.spark.scan.file_index import BASE_ROW_ID, DEFAULT_ROW_COMMIT_VERSION

METADATA = "_metadata"
ROW_INDEX = StructField("_tmp_metadata_row_index", PrimitiveType("long"))
"""A column of the files' schema that no file has: Spark's Parquet reader fills a column with this name with row positions."""
HIDDEN = (BASE_ROW_ID, DEFAULT_ROW_COMMIT_VERSION)
"""The partition columns that a scan of a table with row tracking adds."""

# The metadata key that marks a metadata column for the analyzer, with its name.
_METADATA_KEY = "__metadata_col"
# The fields are also separate metadata columns, under Tahoe's own names: a struct with two computed fields is created for each row,
# which DML avoids.
_PREFIX = "__tahoe_metadata_"


def in_files(tracked: MaterializedColumns) -> tuple[StructField, ...]:
    """Return the columns in which data files store ids and versions; files without moved rows lack them."""
    return tuple(StructField(name, PrimitiveType("long")) for name in (tracked.row_id, tracked.row_commit_version))


def position(jvm: Jvm, base: DataFrame) -> Column:
    """Return the physical position of a row in its file, for a scan with the column `ROW_INDEX`. Never null."""
    return jvm.column(jvm.catalyst("expressions.KnownNotNull")(jvm.expression(base[ROW_INDEX.name])))


def with_file_metadata(jvm: Jvm, base: DataFrame) -> tuple[DataFrame, Column]:
    """Return the scan with Spark's file metadata as an extra struct column; and that column.

    It has all fields of Spark's `_metadata` that are constant for a block of a file, so it costs nothing unless it is used.
    """
    padded = _plan(base)
    has_char = str(padded.getClass().getSimpleName()) == "Project"  # with which Spark pads the values of a char(n) column
    plan = (padded.child() if has_char else padded).withMetadataColumns()
    *columns, file_metadata = items(plan.output())
    struct = json.loads(file_metadata.dataType().json())
    struct["fields"] = [field for field in struct["fields"] if field["name"] != "row_index"]
    narrow = file_metadata.withDataType(jvm.data_type(json.dumps(struct)))
    parts = [plan.productElement(i) for i in range(plan.productArity())]
    parts[1] = jvm.seq(*columns, narrow)
    scan = plan.makeCopy(jvm.array("java.lang.Object", parts))
    if has_char:
        scan = jvm.catalyst("plans.logical.Project")(jvm.seq(*items(padded.projectList()), narrow), scan)
    spark = base.sparkSession
    return jvm.frame(spark._jsparkSession, scan, spark), jvm.column(narrow)


def with_metadata(
    jvm: Jvm, base: DataFrame, columns: Sequence[Column], file: Column, tracked: MaterializedColumns | None
) -> DataFrame:
    """Return the columns as a DataFrame with `_metadata`, including ids and versions if the table tracks rows.

    Args:
        base: a scan with `ROW_INDEX`, and with `HIDDEN` and `in_files` if rows are tracked.
        columns: of the scan.
        file: the column of `with_file_metadata`.
    """
    # Computed below the struct, so that they are available without it.
    computed_fields = _made(base, position(jvm, base), tracked)
    computed = base.select(*columns, file, *(values.alias(_PREFIX + name) for name, values in computed_fields.items()))
    attributes = [jvm.column(attribute) for attribute in _output(computed)]
    visible, (of_file, *ours) = attributes[: len(columns)], attributes[len(columns) :]
    fields = [of_file[name].alias(name) for name in _field_names(computed.select(of_file))]
    struct = sf.struct(*fields, *(values.alias(name) for name, values in zip(computed_fields, ours, strict=True)))
    taken = {name.lower() for name in computed.columns[: len(columns)]}
    name = METADATA
    while name in taken:
        # Like Spark, which renames its own column if the data has a column with that name; `metadataColumn("_metadata")` finds it.
        name = "_" + name
    alone = [_as_metadata(values, _PREFIX + name) for name, values in zip(computed_fields, ours, strict=True)]
    inner = computed.select(*visible, _as_metadata(struct, name, METADATA), *alone)
    output = _output(inner)
    project = jvm.catalyst("plans.logical.Project")
    outer = project(jvm.seq(*output[: len(columns)]), _plan(inner))
    outer.setTagValue(project.hiddenOutputTag(), jvm.seq(*output[len(columns) :]))
    spark = base.sparkSession
    return jvm.frame(spark._jsparkSession, outer, spark)


def with_row_ids(rows: DataFrame, config: TableConfig, changed: Column | None = None) -> DataFrame:
    """Return the rows of a DML command with the columns in which data files store their ids.

    Copied rows keep id and version; changed rows keep the id and get the version of the coming commit, represented by null. New rows have
    null in both; `TableRows.write` adds the columns if they are missing.

    Args:
        rows: the result of `read_snapshot`, `read_rows` or `with_positions`, filtered or with added columns, with the table's original
            rows; not joined or aliased yet, because these drop `_metadata`.
        config: of the table that was read.
        changed: the condition for changed rows, null for unchanged; None if no row is changed.

    Returns:
        The rows with two extra columns of type long at the end, named by ``delta.rowTracking.materializedRowIdColumnName`` and
            ``…RowCommitVersionColumnName``; the rows unchanged if the table does not track rows.
    """
    tracked = materialized_columns(config)
    if tracked is None:
        return rows
    row_id, version = (rows.metadataColumn(_PREFIX + name) for name in ("row_id", "row_commit_version"))
    if changed is not None:
        version = sf.when(~sf.coalesce(changed, sf.lit(False)), version)
    return rows.select("*", row_id.alias(tracked.row_id), version.alias(tracked.row_commit_version))


def _made(base: DataFrame, row_index: Column, tracked: MaterializedColumns | None) -> dict[str, Column]:
    """Return the fields of `_metadata` that Spark does not compute."""
    if tracked is None:
        return {"row_index": row_index}
    base_id, default = (base[column.name] for column in HIDDEN)
    return {
        "row_index": row_index,
        "row_id": sf.coalesce(column_in(base, tracked.row_id), base_id + row_index),
        "base_row_id": base_id,
        "default_row_commit_version": default,
        "row_commit_version": sf.coalesce(column_in(base, tracked.row_commit_version), default),
    }


def _as_metadata(values: Column, name: str, called: str | None = None) -> Column:
    """Return the values as a metadata column; `called` is its name for `metadataColumn`."""
    return values.alias(name, metadata={_METADATA_KEY: called or name})


def _field_names(struct: DataFrame) -> list[str]:
    """Return the field names of a DataFrame's only column, a struct."""
    (column,) = struct.schema.fields
    assert isinstance(column.dataType, SparkStruct)
    return column.dataType.names


def _plan(frame: DataFrame) -> JavaObject:
    return frame._jdf.queryExecution().analyzed()


def _output(frame: DataFrame) -> list[JavaObject]:
    return list(items(_plan(frame).output()))
