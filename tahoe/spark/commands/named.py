"""Creates a table by name: finds its location, commits, and then adds its entry to the session's catalog. A failed creation leaves no
entry.

name ─┬─ delta.`/path` ─────────────────────────────► commit
      ├─ no entry ──► managed: an empty folder ─────► commit ─► entry
      │               external: ─┬─ a table ──► matches the definition? ─► entry
      │                          └─ empty ──────────► commit ─► entry
      └─ an entry ──► create: rejected  replace: its table ─► commit
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession

from tahoe.api.table import Table
from tahoe.base.exceptions import CorruptTable, InvalidRequest
from tahoe.ops.tables.create import refuse_files
from tahoe.spark.commands.adoption import check_agrees
from tahoe.spark.commands.create import Rows, TableDefinition, WriteRows, create_table
from tahoe.spark.commands.row_command import CommandTarget
from tahoe.spark.commands.write_options import Insert, WriterCall, insert_request
from tahoe.spark.jvm.bridge import JavaObject
from tahoe.spark.jvm.storage import table_at
from tahoe.spark.names.entries import entry_at, is_delta, location_of, path_of
from tahoe.spark.names.error_names import CREATIONS_BY_NAME, with_classes
from tahoe.spark.names.new_entries import (
    full_identifier,
    is_managed,
    is_view,
    new_entry,
    raise_exists,
    raise_missing,
    refuse_odd_name,
    uri_of_new,
    uri_of_text,
)
from tahoe.spark.names.settings import settings_of
from tahoe.spark.write.fitting import columns_of
from tahoe.spark.write.idempotent import resetting_version, without_application
from tahoe.store.location import table_url


@dataclass(frozen=True, slots=True)
class Creation:
    """A request to create a table.

    Args:
        name: the identifiers of the table's name, or of ``delta.`/path` ``.
        mode: a mode of `tahoe.spark.commands.create.create_table`.
        definition: its schema is empty if no columns are given; `query` defines its own schema.
        location: of an external table; None for a managed one.
        options: writer options or OPTIONS; those that begin with ``delta.`` are also properties.
        query: returns the rows.
        parameters: additional operation parameters for the history of the rows.
        write: writes the rows; None for a classic session (`tahoe.spark.commands.create.Rows`).
    """

    name: tuple[str, ...]
    mode: str
    definition: TableDefinition
    location: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    query: Callable[[], DataFrame] | None = None
    parameters: Mapping[str, object] = field(default_factory=dict)
    write: WriteRows | None = None


def make_table(spark: SparkSession, creation: Creation) -> Table | None:
    """Create the table and its catalog entry; return the table, or None if an existing one stays.

    Raises:
        InvalidRequest: see `tahoe.spark.commands.create.create_table`; a definition that differs from the existing table
            (``DELTA_CREATE_TABLE_…``); a non-empty folder (``DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION``).
        AnalysisException: PySpark's, for an existing table, a missing table to replace, or a missing database.
    """
    with with_classes(CREATIONS_BY_NAME):
        creation = without_reserved(creation)
        path = path_of(creation.name)
        if path is not None and "/" in path:
            return make_by_path(spark, creation, path)
        return _by_name(spark, creation)


_RESERVED = {"comment", "location", "provider", "owner", "external", "is_managed_location", "path"}
"""Names of table properties that Spark's catalogs give a meaning. As in delta-spark, none is stored as a property of the table."""


def without_reserved(creation: Creation) -> Creation:
    """Return the request with the properties ``comment`` and ``location`` as what they define; a COMMENT and a LOCATION take precedence."""
    definition = creation.definition
    reserved = {key: value for key, value in definition.properties.items() if key in _RESERVED}
    if not reserved:
        return creation
    others = {key: value for key, value in definition.properties.items() if key not in reserved}
    comment = reserved.get("comment") if definition.comment is None else definition.comment
    location = reserved.get("location") if creation.location is None else creation.location
    return replace(creation, definition=replace(definition, properties=others, comment=comment), location=location)


def _by_name(spark: SparkSession, creation: Creation) -> Table | None:
    identifier = full_identifier(spark, creation.name)
    catalog = spark._jsparkSession.sessionState().catalog()
    entry = entry_at(catalog, identifier)
    if entry is not None:
        return _existing(spark, creation, identifier, entry)
    if creation.mode == "replace":
        raise_missing(spark, identifier)
    refuse_odd_name(spark, identifier)
    managed = creation.location is None
    uri = uri_of_new(spark, identifier) if creation.location is None else uri_of_text(spark, creation.location)
    comment = creation.definition.comment
    entry = new_entry(spark, identifier, uri, managed=managed, comment=comment)
    table = table_at(spark, location_of(entry), creation.options)
    commit_new(spark, creation, table, str(identifier.unquotedString()), managed)
    catalog.createTable(entry, creation.mode == "createIfNotExists", False)
    return table


def refuse_other_location(spark: SparkSession, name: str, place: str, location: str | None) -> None:
    """Raise `InvalidRequest` (``DELTA_TABLE_LOCATION_MISMATCH``) if a location is given for a table that is elsewhere.

    Args:
        place: the location of the table.
        location: the given one; None for none.
    """
    if location is not None and _path_part(spark, location) != _path_part(spark, place):
        raise InvalidRequest(
            f"The location of table {name} is '{place}', and '{location}' was given. Leave the location out, or drop the table first.",
            code="DELTA_TABLE_LOCATION_MISMATCH",
            table=name,
        )


def make_by_path(spark: SparkSession, creation: Creation, path: str) -> Table:
    """Create the table at a path; return it. Raises the errors of `make_table`."""
    if creation.location is not None and table_url(creation.location) != table_url(path):
        raise InvalidRequest(
            f"CREATE TABLE names two places: '{path}' in the table's name and '{creation.location}' as its location. Leave one out.",
            code="DELTA_AMBIGUOUS_PATHS_IN_CREATE_TABLE",
            table=path,
        )
    if creation.query is None and creation.mode in ("replace", "createOrReplace"):
        require_schema(creation, path)
    table = table_at(spark, path, creation.options)
    if creation.mode != "replace" and not table.exists():
        refuse_files(table.store, path, exists=False)
    commit_table(spark, creation, table, managed=False)
    return table


def commit_new(spark: SparkSession, creation: Creation, table: Table, name: str, managed: bool) -> None:
    """Commit a table whose name is new; one that exists at its location is adopted if it matches the definition."""
    is_there, has_query, is_replacing = table.exists(), creation.query is not None, creation.mode == "createOrReplace"
    if not has_query and is_replacing:
        require_schema(creation, name)
    if is_there and not has_query and not managed:
        check_agrees(table.snapshot(), creation.definition, _own_properties(creation))
        return
    if not (has_query and is_replacing):
        without_log = not (managed or has_query or creation.definition.schema.fields)
        refuse_files(table.store, name, exists=is_there, accepts_log=has_query, needs_log=without_log)
    commit_table(spark, creation, table, managed)


def _existing(spark: SparkSession, creation: Creation, identifier: JavaObject, entry: JavaObject) -> Table | None:
    """Handle an existing entry: reject it, leave it or replace its table."""
    name = str(identifier.unquotedString())
    if creation.mode == "create":
        raise_exists(spark, identifier)
    if creation.mode == "createIfNotExists":
        return None
    if is_view(entry):
        raise InvalidRequest(
            f"{name} is a view, and no table can take its place. Drop the view first, or choose another name.",
            code="DELTA_CANNOT_WRITE_INTO_VIEW",
            table=name,
        )
    if not is_delta(entry):
        raise InvalidRequest(
            f"{name} is a table of another format than Delta, which a Delta table does not replace. Drop it first.",
            code="DELTA_NOT_A_DELTA_TABLE",
            table=name,
        )
    place = location_of(entry)
    refuse_other_location(spark, name, place, creation.location)
    table = table_at(spark, place, creation.options)
    require_table(creation, name, table)
    commit_table(spark, creation, table, is_managed(entry))
    return table


def commit_table(spark: SparkSession, creation: Creation, table: Table, managed: bool) -> None:
    """Commit the table, with its rows."""
    writes_rows = creation.query is not None
    settings = settings_of(spark) if writes_rows else without_application(settings_of(spark))
    request = insert_request(WriterCall("Append", creation.options), settings)
    properties = {**request.options.properties, **creation.definition.properties}
    definition = replace(creation.definition, properties=properties, is_managed=managed)
    rows = None
    if writes_rows:
        rows, definition = _rows(creation, request, definition)
    with resetting_version(spark) if writes_rows else nullcontext():
        target = CommandTarget(spark, table)
        create_table(target, definition, creation.mode, rows, user_metadata=request.user_metadata)


def _rows(creation: Creation, request: Insert, definition: TableDefinition) -> tuple[Rows, TableDefinition]:
    assert creation.query is not None
    data = creation.query()
    schema = columns_of(data)
    return Rows(data, request.files, creation.parameters, request.options.app, creation.write), replace(definition, schema=schema)


def _own_properties(creation: Creation) -> Mapping[str, str]:
    """Return the properties in the request, without the session's defaults."""
    properties = {key: value for key, value in creation.options.items() if key.lower().startswith("delta.")}
    return {**properties, **creation.definition.properties}


def require_table(creation: Creation, name: str, table: Table) -> None:
    """Require the table of an entry in the catalog, and columns if a creation without a query replaces it."""
    if creation.query is None:
        require_schema(creation, name)
    if not table.exists():
        raise CorruptTable(
            f"The catalog has table {name}, but there is no Delta log at {table.url}. Drop the table (DROP TABLE {name}) and "
            "create it again.",
            code="DELTA_METADATA_ABSENT_EXISTING_CATALOG_TABLE",
            table=name,
        )


def require_schema(creation: Creation, name: str) -> None:
    """Raise `InvalidRequest` (``DELTA_SCHEMA_NOT_PROVIDED``) if the columns are missing."""
    if not creation.definition.schema.fields:
        raise InvalidRequest(
            f"REPLACE TABLE {name} needs the columns of the new table: (name type, …), or AS SELECT.",
            code="DELTA_SCHEMA_NOT_PROVIDED",
            table=name,
        )


def _path_part(spark: SparkSession, location: str) -> str:
    """Return the part of a location that delta-spark compares: without scheme and host."""
    return str(uri_of_text(spark, location).getPath())
