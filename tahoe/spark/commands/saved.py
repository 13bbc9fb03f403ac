"""``df.write.saveAsTable(name)``: writes into an existing table or a new one.

An overwrite keeps the table's schema, partitioning and properties, unless ``overwriteSchema`` is set, unlike CREATE OR REPLACE TABLE AS
SELECT. The history nevertheless records it as that operation, as delta-spark's does.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from tahoe.api.table import Table
from tahoe.ops.tables.create import create_operation
from tahoe.protocol.config import TableConfig
from tahoe.schema.evolve import store_anything
from tahoe.schema.types import StructType
from tahoe.spark.commands.create import TableDefinition
from tahoe.spark.commands.insert import DescribeOperation, insert, no_rows_to_match
from tahoe.spark.commands.named import Creation, make_table, refuse_other_location
from tahoe.spark.commands.write_options import Insert, WriterCall, call_of_insert, insert_request, refuse_dynamic, sets_schema
from tahoe.spark.jvm.bridge import JavaObject
from tahoe.spark.jvm.storage import table_at
from tahoe.spark.names.entries import location_of, path_of
from tahoe.spark.names.error_names import appending_by_name
from tahoe.spark.names.new_entries import delta_entry, is_managed
from tahoe.spark.names.options import path_option
from tahoe.spark.names.settings import settings_of
from tahoe.spark.write.arranged import arranged, arrangement
from tahoe.txn.transaction import Operation

_CREATION_MODES = {"ErrorIfExists": "create", "Ignore": "createIfNotExists", "Append": "create", "Overwrite": "createOrReplace"}
_FRAMES_ARE_CAST = "spark.databricks.delta.dml.insert.dfByName.allowImplicitCasts"
_KEPT_PARAMETERS = ("predicate", "isDynamicPartitionOverwrite", "canOverwriteSchema", "canMergeSchema")


@dataclass(frozen=True, slots=True)
class Save:
    """The arguments of the writer.

    Args:
        name: the identifiers of the table's name, or of ``delta.`/path` ``.
    """

    name: tuple[str, ...]
    data: DataFrame
    call: WriterCall


def save_as_table(spark: SparkSession, save: Save) -> None:
    """Write the rows. Raises the errors of `tahoe.spark.commands.insert.insert` and `tahoe.spark.commands.named.make_table`."""
    if save.call.mode in ("Append", "Overwrite") and save_into(spark, save, replacing=save.call.mode == "Overwrite"):
        return
    make_table(spark, creation_of(save, settings_of(spark)))


def creation_of(save: Save, settings: Mapping[str, str]) -> Creation:
    """Return the request that creates the table. Raises `NotFound` if only matching rows were to be replaced."""
    call, name = save.call, ".".join(save.name)
    cluster_by = None if call.cluster_by is None else tuple(call.cluster_by)
    comment = next((text for key, text in call.options.items() if key.lower() == "comment"), None)
    definition = TableDefinition(StructType(), tuple(call.partition_by or ()), comment=comment, cluster_by=cluster_by)
    request = save_request(save, settings, replacing=True)
    if request.matching is not None:
        raise no_rows_to_match(name, name, request.matching)
    parameters, mode = _parameters_of_new(request), _CREATION_MODES[call.mode]
    return Creation(save.name, mode, definition, path_option(call.options), call.options, lambda: save.data, parameters)


def save_into(spark: SparkSession, save: Save, *, replacing: bool = False) -> bool:
    """Write the rows into the existing table; return whether there is one.

    Args:
        replacing: whether the history records a replacement.
    """
    entry = delta_entry(spark, save.name)
    table = _table(spark, save, entry)
    if table is None:
        return False
    if replacing:
        refuse_other_location(spark, ".".join(save.name), table.url, path_option(save.call.options))
    request = save_request(save, settings_of(spark), replacing=replacing)
    describe = replacement(save, request, managed=entry is not None and is_managed(entry)) if replacing else None
    with nullcontext() if replacing else appending_by_name():
        insert(table, save.data, request, describe)
    return True


def insert_into(spark: SparkSession, save: Save, *, by_name: bool = False, is_statement: bool = False) -> bool:
    """Write the rows into the existing table; return whether there is one.

    Args:
        save: the mode of its call is ``Append`` or ``Overwrite``.
        by_name: whether columns are taken by name; otherwise by position.
        is_statement: whether a statement of SQL writes.

    Raises: the errors of `save_as_table`; `InvalidRequest` for ``replaceOn`` or ``replaceUsing`` if the session's overwrites are dynamic.
    """
    entry = delta_entry(spark, save.name)
    table = _table(spark, save, entry)
    if table is None:
        return False
    settings, config = settings_of(spark), table.snapshot().config
    request = insert_request(call_of_insert(save.call), settings, same_types=False, stores=store_anything)
    if request.matching is not None:
        request = replace(request, matching=replace(request.matching, by_position=not by_name))
        if config.partition_columns:
            refuse_dynamic(settings)
    rules = arrangement(spark, _shown_name(save, entry), request.options, by_name=by_name, is_statement=is_statement)
    insert(table, save.data, request, arrange=lambda rows: arranged(rows, config, rules))
    return True


def _shown_name(save: Save, entry: JavaObject | None) -> str:
    return ".".join(save.name) if entry is None else str(entry.identifier().unquotedString())


def _table(spark: SparkSession, save: Save, entry: JavaObject | None) -> Table | None:
    """Return the existing table, or None."""
    path = path_of(save.name) if entry is None else location_of(entry)
    if path is None:
        return None
    table = table_at(spark, path, save.call.options)
    return table if entry is not None or table.exists() else None


def replacement(save: Save, request: Insert, *, managed: bool) -> DescribeOperation | None:
    """Return the function that describes an overwrite of a whole table by its name as the replacement that delta-spark logs; None for an
    overwrite of some rows.
    """
    if request.options.replace_where is not None or request.matching is not None:
        return None

    def describe(operation: Operation, config: TableConfig) -> Operation:
        created = create_operation(
            config.metadata, "CREATE OR REPLACE TABLE AS SELECT", is_managed=managed, cluster_by=save.call.cluster_by or ()
        )
        parameters = {key: value for key, value in operation.parameters.items() if key in _KEPT_PARAMETERS}
        return Operation(created.name, {**created.parameters, **parameters, "isV1SaveAsTableOverwrite": True}, operation.metrics)

    return describe


def _parameters_of_new(request: Insert) -> Mapping[str, object]:
    """Return the operation parameters of a table that ``saveAsTable`` creates."""
    if request.mode != "overwrite":
        return {}
    options = {"canOverwriteSchema": request.options.overwrite_schema, "canMergeSchema": request.options.merge_schema}
    return {**{key: True for key, value in options.items() if value}, "isV1SaveAsTableOverwrite": True}


def save_request(save: Save, settings: Mapping[str, str], *, replacing: bool) -> Insert:
    """Return the request of a write by a table's name."""
    call = save.call
    if replacing and call.cluster_by is None:
        call = replace(call, cluster_by=())
    same_types = replacing or sets_schema(call) or settings.get(_FRAMES_ARE_CAST) == "false"
    return insert_request(call, settings, same_types=same_types, stores=store_anything, replaces_table=replacing)
