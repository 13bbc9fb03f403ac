"""`DeltaTable` and its builder, with the names of delta-spark's API. Each method calls one function of the package."""

# ruff: noqa: N802, N803 - the names are delta-spark's

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import (
    DataType,
    StructField,
    StructType,
)

from tahoe.api.several_tables import HeldTable
from tahoe.api.table import Table
from tahoe.base.argument_checks import checked_arguments
from tahoe.base.exceptions import InvalidRequest
from tahoe.protocol.column_values.identity import identity_metadata
from tahoe.schema.types import GENERATION_EXPRESSION
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.commands.checked_arguments import check_kind, checked_expression, checked_expressions, wrong_argument
from tahoe.spark.commands.create import TableDefinition
from tahoe.spark.commands.delete import delete
from tahoe.spark.commands.frames import detail_frame, history_frame
from tahoe.spark.commands.merge.builder import DeltaMergeBuilder, merge_builder
from tahoe.spark.commands.named import Creation, make_table
from tahoe.spark.commands.row_command import CommandTarget
from tahoe.spark.commands.update import update
from tahoe.spark.commands.upkeep import RESTORE_ROW, DeltaOptimizeBuilder, drop_feature_of, restore_table, vacuum_table
from tahoe.spark.connect.creation import make_table as remote_make_table
from tahoe.spark.connect.merge import RemoteMergeBuilder
from tahoe.spark.connect.remote_changes import delete as remote_delete
from tahoe.spark.connect.remote_changes import update as remote_update
from tahoe.spark.copies.convert import convert_named
from tahoe.spark.copies.delta_table import Copies
from tahoe.spark.in_transaction import DeltaTableInTransaction
from tahoe.spark.jvm.bridge import JavaObject, is_classic
from tahoe.spark.jvm.local_rows import Result
from tahoe.spark.jvm.records import items
from tahoe.spark.jvm.storage import table_at
from tahoe.spark.jvm.translate import from_spark_schema
from tahoe.spark.names.entries import delta_table_named, parts_of
from tahoe.spark.names.error_names import COMMANDS, with_classes
from tahoe.spark.scan.relation import Alias, named, read_snapshot
from tahoe.spark.scan.subfolders import table_root
from tahoe.spark.versions.connect_frames import parsed_type, under_name
from tahoe.sql.table_name import table_name

__all__ = ["DeltaMergeBuilder", "DeltaOptimizeBuilder", "DeltaTable", "DeltaTableBuilder", "IdentityGenerator"]


class DeltaTable(Copies):
    """A Delta table on Spark. Created by `forPath`, `forName` or a builder."""

    def __init__(
        self,
        spark: SparkSession,
        table: Table,
        options: Mapping[str, str] | None = None,
        alias: Alias | None = None,
        name: str | None = None,
    ) -> None:
        self._spark = spark
        self._table = table
        self._options = dict(options or {})
        self._alias = alias
        self._name = name

    def __repr__(self) -> str:
        return f"DeltaTable({self._table!r})"

    def _repr_html_(self) -> str:
        """Return the table's properties, columns and size for a notebook."""
        return self._table._repr_html_()

    # -- opening and creating ----------------------------------------------------------------------------------------------

    @classmethod
    @checked_arguments
    def forPath(cls, sparkSession: SparkSession, path: str, hadoopConf: Mapping[str, str] | None = None) -> DeltaTable:
        """Return the table at a path.

        Args:
            hadoopConf: Hadoop's settings for the path's storage (``fs.…``).

        Raises:
            NotFound: there is no Delta table.
        """
        options = dict(hadoopConf or {})
        table = table_at(sparkSession, path, options)
        with with_classes(COMMANDS[""]):
            table.snapshot()
        return cls(sparkSession, table, options)

    @classmethod
    @checked_arguments
    def forName(cls, sparkSession: SparkSession, tableOrViewName: str) -> DeltaTable:
        """Return the table of that name in the session's catalog, or the table at the path of ``delta.`/path` ``.

        Raises `InvalidRequest` (`DELTA_MISSING_DELTA_TABLE`): the table does not exist, or has another format.
        """
        match = delta_table_named(sparkSession, tableOrViewName)
        with with_classes(COMMANDS[""]):
            match.table.snapshot()
        if match.is_by_path:
            return cls(sparkSession, match.table)
        return cls(sparkSession, match.table, alias=tuple(match.full_name_parts), name=match.full_name)

    @classmethod
    @checked_arguments
    def isDeltaTable(cls, sparkSession: SparkSession, identifier: str) -> bool:
        """Whether a path, which may be written as ``delta.`/path` ``, is the folder of a Delta table or one inside of it."""
        given = table_name(identifier)
        path = identifier if given is None or given.path is None else given.path
        return table_root(sparkSession, path, {}) is not None

    @classmethod
    @checked_arguments
    def create(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder:
        """Return a builder that creates a table, which must not exist."""
        return DeltaTableBuilder(_session(sparkSession), "create")

    @classmethod
    @checked_arguments
    def createIfNotExists(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder:
        """Return a builder that creates a table unless it exists."""
        return DeltaTableBuilder(_session(sparkSession), "createIfNotExists")

    @classmethod
    @checked_arguments
    def replace(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder:
        """Return a builder that replaces a table, which must exist."""
        return DeltaTableBuilder(_session(sparkSession), "replace")

    @classmethod
    @checked_arguments
    def createOrReplace(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder:
        """Return a builder that replaces a table, or creates it."""
        return DeltaTableBuilder(_session(sparkSession), "createOrReplace")

    @classmethod
    @checked_arguments
    def convertToDelta(
        cls, sparkSession: SparkSession, identifier: str, partitionSchema: str | StructType | None = None
    ) -> DeltaTable:
        """Convert existing Parquet files, in their folder, to a Delta table and return it.

        ``DeltaTable.convertToDelta(spark, "parquet.`/data/events`", "day DATE")``

        Args:
            identifier: ``parquet.`/path` ``, ``iceberg.`/path` ``, or the name of a Parquet table in the session's catalog.
            partitionSchema: the partition columns, whose values are in the folder names, with their types.

        Raises: see `tahoe.spark.copies.convert.convert_named`.
        """
        parts = parts_of(sparkSession, identifier)
        return cls(sparkSession, convert_named(sparkSession, parts, partitionSchema))

    # -- reading -----------------------------------------------------------------------------------------------------------

    def _plain_table(self) -> Table:
        return self._table

    def _in_transaction(self, change: HeldTable) -> DeltaTableInTransaction:
        return DeltaTableInTransaction(self._spark, change, self._options, self._alias)

    def _at(self, snapshot: Snapshot) -> DataFrame:
        if is_classic(self._spark):
            frame = read_snapshot(self._spark, snapshot, options=self._options)
        else:
            reader = self._spark.read.format("delta").options(**self._options)
            frame = reader.option("versionAsOf", snapshot.version).load(self._table.url)
        return self._under_alias(frame)

    def toDF(self) -> DataFrame:
        """Return the table as a DataFrame, which reads the newest version at each execution."""
        if is_classic(self._spark):
            frame = read_snapshot(self._spark, self._table.snapshot(), options=self._options, follows=self._table)
        else:
            frame = self._spark.read.format("delta").options(**self._options).load(self._table.url)
        return self._under_alias(frame)

    def _under_alias(self, frame: DataFrame) -> DataFrame:
        if self._alias is None or is_classic(self._spark):
            return named(frame, self._alias)
        return under_name(frame, (self._alias,) if isinstance(self._alias, str) else self._alias)

    @checked_arguments
    def alias(self, aliasName: str) -> DeltaTable:
        """Return the same table with an alias for conditions."""
        return DeltaTable(self._spark, self._table, self._options, aliasName, self._name)

    def history(self, limit: int | None = None) -> DataFrame:
        """Return the commits in the table's log, newest first.

        Args:
            limit: the greatest number of commits.
        """
        if limit is not None:
            check_kind(limit, "limit", int)
        return history_frame(self._spark, self._table, limit)

    def detail(self) -> DataFrame:
        """Return one row: format, id, name, location, size, properties, protocol and features of the newest version."""
        return detail_frame(self._spark, self._table, self._name)

    # -- changing rows -----------------------------------------------------------------------------------------------------

    def delete(self, condition: str | Column | None = None) -> None:
        """Delete the rows for which the condition is true; all rows without a condition.

        Args:
            condition: SQL text, or a column expression; the table's `alias` can be used in it.

        Raises: see `tahoe.spark.commands.delete.delete`.
        """
        checked_expression(condition)
        (delete if is_classic(self._spark) else remote_delete)(self._target(), condition)

    def update(self, condition: str | Column | None = None, set: Mapping[str, str | Column] | None = None) -> None:
        """Update columns in the rows for which the condition is true; in all rows without a condition.

        Args:
            condition: SQL text, or a column expression; the table's `alias` can be used in it.
            set: column, or nested field as ``a.b`` → its new value, SQL text or a column expression over the old row. Required.

        Raises: see `tahoe.spark.commands.update.update`.
        """
        values = checked_expressions(set, "set")
        checked_expression(condition)
        (update if is_classic(self._spark) else remote_update)(self._target(), values, condition)

    def merge(self, source: DataFrame, condition: str | Column) -> DeltaMergeBuilder:
        """Merge the rows of `source` into the table with the clauses that are added to the result; `execute` runs the merge.

        ``table.alias("t").merge(rows.alias("s"), "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()``

        Args:
            source: read once.
            condition: SQL text, or a column expression; a row of the source matches a row of the table if it is true.
        """
        return merge_builder(
            self._target(), source, condition, DeltaMergeBuilder if is_classic(self._spark) else RemoteMergeBuilder
        )

    def _target(self) -> CommandTarget:
        return CommandTarget(self._spark, self._table, self._alias, self._options)

    # -- maintenance -------------------------------------------------------------------------------------------------------

    def optimize(self) -> DeltaOptimizeBuilder:
        """Return a builder that rewrites small files, and files with many deleted rows, as a few large ones when it is executed.

        ``table.optimize().where("date = '2026-03-01'").executeCompaction()``
        """
        return DeltaOptimizeBuilder(self._spark, self._table)

    @checked_arguments
    def vacuum(self, retentionHours: float | None = None) -> DataFrame:
        """Delete the files that no retained version needs; return an empty DataFrame. Raises: see `Table.vacuum`.

        Args:
            retentionHours: files removed within this time are kept; None for the table's ``delta.deletedFileRetentionDuration``.
        """
        result = Result(self._spark, StructType([]))
        vacuum_table(self._target(), None if retentionHours is None else float(retentionHours))
        return result.of([])

    def restoreToVersion(self, version: int) -> DataFrame:
        """Restore rows, schema and properties of an older version; return one row of metrics. Raises: see `Table.restore`."""
        check_kind(version, "version", int)
        result = Result(self._spark, RESTORE_ROW)
        return result.of(restore_table(self._spark, self._table, version))

    def restoreToTimestamp(self, timestamp: str) -> DataFrame:
        """Restore the newest version at a time, which is parsed in the session's time zone; see `restoreToVersion`."""
        check_kind(timestamp, "timestamp", str)
        result = Result(self._spark, RESTORE_ROW)
        return result.of(restore_table(self._spark, self._table, timestamp=timestamp))

    # -- changing the protocol ---------------------------------------------------------------------------------------------

    def upgradeTableProtocol(self, readerVersion: int, writerVersion: int) -> None:
        """Raise the protocol to at least these versions; a table that has them is not changed.

        Raises: see `tahoe.ops.tables.alter.stage_set_properties`.
        """
        check_kind(readerVersion, "The readerVersion", int, "an integer")
        check_kind(writerVersion, "The writerVersion", int, "an integer")
        self._table.set_properties({"delta.minReaderVersion": str(readerVersion), "delta.minWriterVersion": str(writerVersion)})

    def addFeatureSupport(self, featureName: str) -> None:
        """Add a feature and the features that it requires; the protocol is raised to the lowest versions that can list them.

        Raises `InvalidRequest` (`DELTA_UNSUPPORTED_FEATURES_IN_CONFIG`): there is no such feature.
        """
        check_kind(featureName, "featureName", str)
        self._table.set_properties({f"delta.feature.{featureName}": "supported"})

    def dropFeatureSupport(self, featureName: str, truncateHistory: bool | None = None) -> None:
        """Drop a feature; with `truncateHistory`, after older versions with the feature have expired from the log.

        Raises: see `tahoe.ops.features.drop_feature.drop_feature`.
        """
        check_kind(featureName, "featureName", str)
        if truncateHistory is not None:
            check_kind(truncateHistory, "truncateHistory", bool)
        drop_feature_of(self._spark, self._table, featureName, truncates_history=bool(truncateHistory))


@checked_arguments
@dataclass(frozen=True, slots=True)
class IdentityGenerator:
    """The first value and the step of an identity column."""

    start: int = 1
    step: int = 1


class DeltaTableBuilder:
    """Collects the definition of a table; `execute` creates it. Each method returns the builder."""

    def __init__(self, spark: SparkSession, how: str) -> None:
        self._spark = spark
        self._how = how
        self._name: str | None = None
        self._location: str | None = None
        self._comment: str | None = None
        self._columns: list[StructField] = []
        self._partition_by: tuple[str, ...] = ()
        self._cluster_by: tuple[str, ...] | None = None
        self._properties: dict[str, str] = {}
        self._jbuilder = _ScalaBuilder(self)

    def tableName(self, identifier: str) -> DeltaTableBuilder:
        """Set the table's name in the session's catalog, or ``delta.`/path` ``."""
        _require(isinstance(identifier, str), "Identifier must be str.", identifier=identifier)
        self._name = identifier
        return self

    def location(self, location: str) -> DeltaTableBuilder:
        """Set the folder or URL of the table."""
        _require(isinstance(location, str), "Location must be str.", location=location)
        self._location = location
        return self

    def comment(self, comment: str) -> DeltaTableBuilder:
        """Set the description of the table."""
        _require(isinstance(comment, str), "Table comment must be str.", comment=comment)
        self._comment = comment
        return self

    def addColumn(
        self,
        colName: str,
        dataType: str | DataType,
        nullable: bool = True,
        generatedAlwaysAs: str | IdentityGenerator | None = None,
        generatedByDefaultAs: IdentityGenerator | None = None,
        comment: str | None = None,
    ) -> DeltaTableBuilder:
        """Add a column after the others.

        Args:
            dataType: a Spark type, or its DDL text.
            generatedAlwaysAs: SQL text over other columns, none of them generated, whose value the column has in every row; it must be
                of the column's type. Or an identity: the table assigns the values, and writers cannot.
            generatedByDefaultAs: an identity for rows without a value; writers may pass values.
        """
        _require(isinstance(colName, str), "Column name must be str.", colName=colName)
        _require(isinstance(dataType, (str, DataType)), "Column data type must be str or DataType.", dataType=dataType)
        _require(isinstance(nullable, bool), "Column nullable must be bool.", nullable=nullable)
        _require(comment is None or isinstance(comment, str), "Column comment must be str.", comment=comment)
        _check_generated(generatedAlwaysAs, generatedByDefaultAs)
        data_type = parsed_type(self._spark, dataType) if isinstance(dataType, str) else dataType
        metadata: dict[str, Any] = {"comment": comment}
        identity = generatedByDefaultAs or generatedAlwaysAs
        if isinstance(identity, IdentityGenerator):
            explicit = generatedByDefaultAs is not None
            metadata |= identity_metadata(identity.start, identity.step, allow_explicit=explicit)
        else:
            metadata[GENERATION_EXPRESSION] = generatedAlwaysAs
        present = {key: value for key, value in metadata.items() if value is not None}
        self._columns.append(StructField(colName, data_type, nullable, present))
        return self

    def addColumns(self, cols: StructType | list[StructField]) -> DeltaTableBuilder:
        """Add the columns of a Spark schema."""
        if isinstance(cols, list):
            for column in cols:
                _require(isinstance(column, StructField), "Column in existing schema must be StructField.", cols=column)
        _require(isinstance(cols, (StructType, list)), "Schema must be StructType or a list of StructField.", cols=cols)
        self._columns.extend(cols.fields if isinstance(cols, StructType) else cols)
        return self

    def partitionedBy(self, *cols: str | list[str] | tuple[str, ...]) -> DeltaTableBuilder:
        """Set the partition columns, as single arguments or as one list."""
        self._partition_by = _names(cols, "Partitioning column must be str.")
        return self

    def clusterBy(self, *cols: str | list[str] | tuple[str, ...]) -> DeltaTableBuilder:
        """Set the columns by which OPTIMIZE clusters the table, at most four, as single arguments or as one list."""
        self._cluster_by = _names(cols, "Clustering column must be str.")
        return self

    def property(self, key: str, value: str) -> DeltaTableBuilder:
        """Set a table property, such as ``delta.appendOnly``."""
        _require(isinstance(key, str), "Key and value of property must be string.", key=key)
        _require(isinstance(value, str), "Key and value of property must be string.", value=value)
        self._properties[key] = value
        return self

    def execute(self) -> DeltaTable:
        """Create the table and return it.

        Raises: see `tahoe.spark.commands.named.make_table`.
        """
        if self._name is None and self._location is None:
            raise InvalidRequest(
                "Name the table to create: tableName('db.name'), location(path), or both.",
                code="DELTA_CREATE_TABLE_MISSING_TABLE_NAME_OR_LOCATION",
            )
        definition = TableDefinition(
            from_spark_schema(StructType(self._columns)),
            self._partition_by,
            dict(self._properties),
            self._comment,
            cluster_by=self._cluster_by,
        )
        if self._name is None:
            assert self._location is not None
            name: tuple[str, ...] = ("delta", self._location)
        else:
            name = parts_of(self._spark, self._name)
        make = make_table if is_classic(self._spark) else remote_make_table
        made = make(self._spark, Creation(name, self._how, definition, self._location))
        if made is None:  # it was there
            assert self._name is not None
            return DeltaTable.forName(self._spark, self._name)
        return DeltaTable(self._spark, made)


class _ScalaBuilder:
    """The object in `_jbuilder` of delta-spark's builder; programs call its method that takes a Scala sequence."""

    def __init__(self, builder: DeltaTableBuilder) -> None:
        self._builder = builder

    def partitionedBy(self, columns: JavaObject) -> _ScalaBuilder:
        self._builder.partitionedBy([str(name) for name in items(columns)])
        return self


def _session(spark: SparkSession | None) -> SparkSession:
    session = spark if spark is not None else SparkSession.getActiveSession()
    if session is None:
        raise InvalidRequest("There is no active Spark session; give one.", code="DELTA_ACTIVE_SPARK_SESSION_NOT_FOUND")
    return session


def _names(cols: Iterable[Any], message: str) -> tuple[str, ...]:
    names = list(cols)
    if len(names) == 1 and isinstance(names[0], (list, tuple)):
        names = list(names[0])
    for column in names:
        _require(isinstance(column, str), message, cols=column)
    return tuple(names)


def _check_generated(always: object, by_default: object) -> None:
    if always is not None and by_default is not None:
        raise wrong_argument("generatedByDefaultAs and generatedAlwaysAs cannot both be set.", "generatedByDefaultAs")
    if always is not None:
        _require(
            isinstance(always, (str, IdentityGenerator)),
            "Generated always as expression must be str or IdentityGenerator.",
            generatedAlwaysAs=always,
        )
    if by_default is not None:
        _require(
            isinstance(by_default, IdentityGenerator),
            "Generated by default expression must be IdentityGenerator.",
            generatedByDefaultAs=by_default,
        )
    for identity in (always, by_default):
        if isinstance(identity, IdentityGenerator) and identity.step == 0:
            raise wrong_argument("Column identity generation requires step to be non-zero.", "step")


def _require(fulfilled: bool, message: str, **arguments: object) -> None:
    """Raise `WrongArgument` with the message for the arguments, by their parameters' names, unless they are valid."""
    if not fulfilled:
        values = "".join(f" Found {value} with type {type(value)}" for value in arguments.values())
        raise wrong_argument(message + values, ", ".join(arguments))
