"""Writes by a table's name in sessions of Spark Connect: ``saveAsTable``, ``insertInto``, ``writeTo`` and INSERT."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from tahoe.protocol.config import TableConfig
from tahoe.schema.evolve import store_anything
from tahoe.spark.commands.matched_rows import check_matching_columns
from tahoe.spark.commands.saved import Save, creation_of, replacement, save_request
from tahoe.spark.commands.write_options import Insert, call_of_insert, insert_request, refuse_dynamic
from tahoe.spark.connect.assigned import cast_or_fail, cast_to_columns
from tahoe.spark.connect.creation import make_table
from tahoe.spark.connect.insert import insert
from tahoe.spark.names.entries import NamedTable, table_named
from tahoe.spark.names.error_names import appending_by_name
from tahoe.spark.names.settings import settings_of
from tahoe.spark.versions.connect_frames import alias_of
from tahoe.spark.write.arranged import arranged, arrangement
from tahoe.spark.write.fitting import Casts, insert_casts


def existing(spark: SparkSession, name: tuple[str, ...]) -> NamedTable | None:
    """Return the Delta table with this name; None if there is none, also at a path."""
    named = table_named(spark, name)
    return None if named is None or (named.is_by_path and not named.table.exists()) else named


def save_as_table(spark: SparkSession, save: Save) -> None:
    """Write the rows into an existing table or a new one, as `tahoe.spark.commands.saved.save_as_table`."""
    if save.call.mode in ("Append", "Overwrite") and save_into(spark, save, replacing=save.call.mode == "Overwrite"):
        return
    make_table(spark, creation_of(save, settings_of(spark)))


def save_into(spark: SparkSession, save: Save, *, replacing: bool = False) -> bool:
    """Write the rows into the existing table, with columns by name; return whether there is one.

    Args:
        replacing: whether the history records a replacement.
    """
    named = existing(spark, save.name)
    if named is None:
        return False
    settings = settings_of(spark)
    request = save_request(save, settings, replacing=replacing)
    if replacing:
        managed = named.on_server is not None and named.on_server.is_managed
        insert(named.table, save.data, request, replacement(save, request, managed=managed))
    else:
        rows = _cast(save.data, named.table.snapshot().config, request, insert_casts(settings.get))
        with appending_by_name():
            insert(named.table, rows, request)
    return True


def insert_into(spark: SparkSession, named: NamedTable, save: Save, *, by_name: bool = False, is_statement: bool = False) -> None:
    """Write the rows into the table, with columns by position or by name, cast to the table's types.

    Args:
        is_statement: whether it is an INSERT, which may omit columns by name only if they have values without the query.
    """
    config, settings = named.table.snapshot().config, settings_of(spark)
    request = insert_request(call_of_insert(save.call), settings, same_types=False, stores=store_anything)
    if request.matching is not None:
        snapshot = named.table.snapshot()
        check_matching_columns(replace(request.matching, by_position=not by_name), snapshot, save.data)
        if snapshot.partition_columns:
            refuse_dynamic(settings)
    rules = arrangement(spark, named.full_name, request.options, by_name=by_name, is_statement=is_statement)
    rows = arranged(save.data, config, rules, cast_or_fail)
    written, alias = _cast(rows, config, request, insert_casts(settings.get)), alias_of(save.data)
    insert(named.table, written if alias is None else written.alias(alias), request)


def _cast(rows: DataFrame, config: TableConfig, request: Insert, casts: Casts) -> DataFrame:
    """Return the rows with the types of the table's columns; if the columns change, `insert` casts the rows to the new ones."""
    return rows if request.options.merge_schema or request.options.same_types else cast_to_columns(rows, config, casts)
