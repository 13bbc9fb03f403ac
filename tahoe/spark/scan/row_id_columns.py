"""Row ids on Spark: `_metadata.row_id` and `_metadata.row_commit_version` of tables that track rows (PROTOCOL.md, "Row Tracking").

    scan: the table's columns, the two columns in which files keep ids, base ids as hidden partition values, the row's position
      └─► inner projection: the columns, and a struct `_metadata` of Spark's own fields and of ours
            └─► outer projection: the columns alone, with the struct as its hidden output

A hidden output is what Catalyst itself uses for the columns that a natural join leaves out: the analyzer brings it up for a query that
asks for it, and the optimizer prunes the struct, and all that only the struct reads, for a query that does not. Spark's own `_metadata`
could not be asked for the position of a row without its being computed in every scan, so the position is a column of the files here,
under the name by which Spark's Parquet reader makes it.

Ids are carried into rewritten rows by `with_row_ids`; `tahoe.spark.write.row_ids.write_files_with_row_ids` writes such rows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType as SparkStruct

from tahoe.expr.tree.predicate import quote_identifier
from tahoe.protocol.config import TableConfig
from tahoe.protocol.row_tracking import MaterializedColumns, materialized_columns
from tahoe.schema.types import PrimitiveType, StructField
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.records import items
from tahoe.spark.scan.file_index import BASE_ROW_ID, DEFAULT_ROW_COMMIT_VERSION

__all__ = [
    "HIDDEN",
    "METADATA",
    "ROW_INDEX",
    "in_files",
    "position",
    "with_file_metadata",
    "with_metadata",
    "with_row_ids",
]

METADATA = "_metadata"
ROW_INDEX = StructField("_tmp_metadata_row_index", PrimitiveType("long"))
"""A column of the files' schema that no file has: Spark's Parquet reader fills the one of this name with the positions of rows."""
HIDDEN = (BASE_ROW_ID, DEFAULT_ROW_COMMIT_VERSION)
"""The partition columns that a scan of a table that tracks rows has beside the table's."""

# Tells the analyzer that a column is one of metadata, and its name.
_METADATA_KEY = "__metadata_col"
# The fields are also columns of metadata of their own, under names of ours: a struct of which two computed fields are wanted is made
# for each row, which DML need not pay.
_PREFIX = "__tahoe_metadata_"


def in_files(tracked: MaterializedColumns) -> tuple[StructField, ...]:
    """The columns in which data files keep ids and versions; files in which no row was ever moved do not have them."""
    return tuple(StructField(name, PrimitiveType("long")) for name in (tracked.row_id, tracked.row_commit_version))


def position(jvm: Jvm, base: DataFrame) -> Column:
    """The physical position of a row in its file, of a scan that has the column `ROW_INDEX`. Never null."""
    return jvm.column(jvm.catalyst("expressions.KnownNotNull")(jvm.expression(base[ROW_INDEX.name])))


def with_file_metadata(jvm: Jvm, base: DataFrame) -> tuple[DataFrame, Column]:
    """The scan, with what Spark tells of a row's file as a further column, a struct; and that column.

    It has all fields of Spark's `_metadata` that are one for a block of a file, so it costs nothing where it is not used.
    """
    padded = _plan(base)
    has_char = str(padded.getClass().getSimpleName()) == "Project"  # by which Spark fills up what it reads of a char(n)
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
    """The columns as a DataFrame that has `_metadata`, with ids and versions where the table tracks rows.

    Args:
        base: a scan with `ROW_INDEX`, and `HIDDEN` and `in_files` where rows are tracked.
        columns: of the scan.
        file: of `with_file_metadata`.
    """
    # Computed below the struct, so that they can be had without it, too.
    made = _made(base, position(jvm, base), tracked)
    computed = base.select(*columns, file, *(values.alias(_PREFIX + name) for name, values in made.items()))
    attributes = [jvm.column(one) for one in _output(computed)]
    shown, (of_file, *ours) = attributes[: len(columns)], attributes[len(columns) :]
    fields = [of_file[name].alias(name) for name in _field_names(computed.select(of_file))]
    struct = sf.struct(*fields, *(values.alias(name) for name, values in zip(made, ours, strict=True)))
    taken = {name.lower() for name in computed.columns[: len(columns)]}
    name = METADATA
    while name in taken:
        # As Spark names its own where the data has a column of that name; `metadataColumn("_metadata")` finds it.
        name = "_" + name
    alone = [_as_metadata(values, _PREFIX + name) for name, values in zip(made, ours, strict=True)]
    inner = computed.select(*shown, _as_metadata(struct, name, METADATA), *alone)
    output = _output(inner)
    project = jvm.catalyst("plans.logical.Project")
    outer = project(jvm.seq(*output[: len(columns)]), _plan(inner))
    outer.setTagValue(project.hiddenOutputTag(), jvm.seq(*output[len(columns) :]))
    spark = base.sparkSession
    return jvm.frame(spark._jsparkSession, outer, spark)


def with_row_ids(rows: DataFrame, config: TableConfig, changed: Column | None = None) -> DataFrame:
    """Rows that will be written to new files, with the columns in which data files keep the ids that they have; for DML.

    Rows that are copied keep id and version, rows that are changed keep the id and get the version of the commit to come, for which null
    stands. Rows that are new have null in both; `write_files_with_row_ids` gives them that where the columns are missing.

    Args:
        rows: what `read_snapshot`, `read_rows` or `with_positions` gave, filtered or with columns more, of a table as it was read; not
            joined or aliased yet, since `_metadata` does not go through these.
        config: of the table that was read.
        changed: which rows are changed, null for not changed; None for no row.

    Returns:
        The rows and after all columns two of type long, named as ``delta.rowTracking.materializedRowIdColumnName`` and
        ``…RowCommitVersionColumnName`` say; the rows as they are where the table tracks none.
    """
    tracked = materialized_columns(config)
    if tracked is None:
        return rows
    row_id, version = (rows.metadataColumn(_PREFIX + name) for name in ("row_id", "row_commit_version"))
    if changed is not None:
        version = sf.when(~sf.coalesce(changed, sf.lit(False)), version)
    return rows.select("*", row_id.alias(tracked.row_id), version.alias(tracked.row_commit_version))


def _made(base: DataFrame, row_index: Column, tracked: MaterializedColumns | None) -> dict[str, Column]:
    """The fields of `_metadata` that Spark does not compute for us."""
    if tracked is None:
        return {"row_index": row_index}
    base_id, default = (base[column.name] for column in HIDDEN)
    return {
        "row_index": row_index,
        "row_id": sf.coalesce(base[quote_identifier(tracked.row_id)], base_id + row_index),
        "base_row_id": base_id,
        "default_row_commit_version": default,
        "row_commit_version": sf.coalesce(base[quote_identifier(tracked.row_commit_version)], default),
    }


def _as_metadata(values: Column, name: str, called: str | None = None) -> Column:
    """The values as a column of metadata; `called` is what `metadataColumn` knows it by."""
    return values.alias(name, metadata={_METADATA_KEY: called or name})


def _field_names(struct: DataFrame) -> list[str]:
    """Of the one column of a DataFrame."""
    (column,) = struct.schema.fields
    assert isinstance(column.dataType, SparkStruct)
    return column.dataType.names


def _plan(frame: DataFrame) -> JavaObject:
    return frame._jdf.queryExecution().analyzed()


def _output(frame: DataFrame) -> list[JavaObject]:
    return list(items(_plan(frame).output()))
