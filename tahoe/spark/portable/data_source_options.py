"""The options of a portable data source, with case-insensitive names, and the table that they name."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.spark.names.settings import is_true
from tahoe.store.hadoop_settings import storage_options
from tahoe.store.log_store import LogStore

if TYPE_CHECKING:
    from tahoe.coordinator.coordinator import Coordinator


TIME_ZONE = "timeZone"
"""The option for the time zone of the session."""
EVALUATED_RULES = "evaluatedRules"
"""The option of a stream's writer for the rules that the server evaluates (`tahoe.spark.executors.evaluated_rules`)."""
SESSION_SETTINGS = "sessionSettings"
"""The option for settings of the session, which Spark does not tell a data source."""
IS_STREAM = "isStream"
"""The option of a reader of a stream: Spark requests the columns before it tells whether a stream reads them."""
PARTITION_BY, CLUSTER_BY = "partitionBy", "clusterBy"
"""The options for the columns of a new table; Spark does not tell a stream's writer the arguments of these methods."""
_COORDINATOR = "coordinator"
_OWN = tuple(
    name.lower() for name in (PARTITION_BY, CLUSTER_BY, _COORDINATOR, TIME_ZONE, EVALUATED_RULES, SESSION_SETTINGS, IS_STREAM)
)
_NAME = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^,]*[^,\s]))\s*(?:,|$)")
_VARIABLE = "TAHOE_COORDINATOR"


def table_of(path: str, options: Mapping[str, str]) -> Table:
    """Return the table at a path, with the coordinator from the options or the process's environment (`coordinator_of`).

    Raises `InvalidRequest` (``DELTA_PATH_DOES_NOT_EXIST``) without a path.
    """
    table = Table(_named(path), storage_options=storage_settings(path, options), coordinator=coordinator_of(options))
    return _in_zone(table, options)


def stream_table_of(path: str, options: Mapping[str, str]) -> Table:
    """Return the table that a stream reads or writes. Raises the errors of `table_of`, and `Unsupported` if the options name a
    coordinator.
    """
    if option_of(options, _COORDINATOR, ""):
        raise Unsupported(
            "A stream of the portable data source reads and writes in processes that know no coordinator. Leave the option 'coordinator' "
            "out; stream a catalog-managed table in a classic session after tahoe.enable(spark, coordinator=…), or by tahoe.Table.tail.",
            code="DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION",
        )
    return _in_zone(Table(_named(path), storage_options=storage_settings(path, options)), options)


def table_over(store: LogStore, options: Mapping[str, str]) -> Table:
    """Return the table of a storage from another process, which kept its coordinator."""
    coordinator = coordinator_of(options) if store.coordination == "none" else None
    return _in_zone(Table(store.url, store=store, coordinator=coordinator), options)


def _in_zone(table: Table, options: Mapping[str, str]) -> Table:
    """Return the table, with the session's time zone: one that Python does not know is an error of the first expression that needs it."""
    table.time_zone = time_zone_of(options) or table.time_zone
    return table


def coordinator_of(options: Mapping[str, str]) -> Coordinator | None:
    """Return the coordinator that ratifies commits of catalog-managed tables, or None.

    The option ``coordinator`` names it, otherwise the environment variable ``TAHOE_COORDINATOR`` of the process, which is one of Spark's
    server.

    Raises:
        InvalidRequest: the option contains a password, which plans and logs would show, or names no database.
    """
    option = option_of(options, _COORDINATOR, "")
    if not (url := option or os.environ.get(_VARIABLE, "")):
        return None
    from tahoe.coordinator.sql_coordinator import SqlCoordinator

    coordinator = SqlCoordinator(url)
    if option and coordinator.holds_secret:
        raise InvalidRequest(
            "The option 'coordinator' contains a password, which plans and logs would show. Leave it out of the URL "
            f"({coordinator.shown_url}), "
            f"and give it to the processes of Spark's server: PGPASSWORD, ~/.pgpass, or all of the URL as {_VARIABLE} and no option.",
            code="TAHOE_COORDINATOR_URL",
        )
    return coordinator


def _named(path: str) -> str:
    if not path:
        raise InvalidRequest("Name the table's path: load(path) or save(path).", code="DELTA_PATH_DOES_NOT_EXIST")
    return path


def storage_settings(path: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return the storage settings in the options of a path."""
    return storage_options(path, options, os.environ)


def option_of(options: Mapping[str, str], name: str, default: str) -> str:
    """Return an option by its name."""
    return next((value for key, value in options.items() if key.lower() == name.lower()), default)


def without_own(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options without those that only a portable data source has; the others are those of every reader and writer."""
    return {key: value for key, value in options.items() if key.lower() not in _OWN}


def time_zone_of(options: Mapping[str, str]) -> str | None:
    """Return the session's time zone in the option ``timeZone``, which Spark does not tell a data source; None if it is not set."""
    return option_of(options, TIME_ZONE, "") or None


def columns_in(options: Mapping[str, str], name: str) -> list[str] | None:
    """Return the columns in the option with this name, separated by commas, and in back-ticks if they contain one; None for none."""
    names = _NAME.findall(option_of(options, name, ""))
    return [quoted.replace("``", "`") or plain for quoted, plain in names] or None


def settings_in(options: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of the session in the option ``sessionSettings``."""
    text = option_of(options, SESSION_SETTINGS, "")
    return dict(json.loads(text)) if text else {}


def is_on_in(options: Mapping[str, str], name: str) -> bool:
    """Return whether a setting of the session in the option ``sessionSettings`` is ``true``."""
    return is_true(name, settings_in(options).get(name, "false"))
