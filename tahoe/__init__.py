"""Tahoe: Delta Lake for PySpark in pure Python, every table readable as Apache Iceberg too.

``tahoe.Table`` works without Spark; ``tahoe.enable(spark)`` switches Delta on in a Spark session, in which `DeltaTable` is the class of that
name as delta-spark has it. The errors are defined in `tahoe.exceptions`; `tahoe.cache` reports and clears the caches between
queries. Names that are not exported here are private.

PYTEST_DONT_REWRITE: a start-up file may import the package before pytest, which otherwise warns that it cannot rewrite it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tahoe.base.version import __version__

if TYPE_CHECKING:
    from tahoe import cache
    from tahoe.api.several_tables import read_together, transaction
    from tahoe.api.table import Table
    from tahoe.coordinator.sql_coordinator import SqlCoordinator
    from tahoe.exceptions import (
        CommitStateUnknown,
        ConcurrentAppendException,
        ConcurrentDeleteDeleteException,
        ConcurrentDeleteReadException,
        ConcurrentTransactionException,
        ConcurrentWriteException,
        CorruptTable,
        DeltaConcurrentModificationException,
        ForeignWriter,
        InvalidRequest,
        InvariantViolation,
        MetadataChangedException,
        NotFound,
        ProtocolChangedException,
        SchemaMismatch,
        StorageFailure,
        TahoeError,
        TahoeWarning,
        Unsupported,
    )
    from tahoe.spark.session import configure_spark_with_delta_pip, enable
    from tahoe.tables import DeltaTable

__all__ = [
    "Table",
    "DeltaTable",
    "SqlCoordinator",
    "cache",
    "configure_spark_with_delta_pip",
    "enable",
    "read_together",
    "transaction",
    "TahoeError",
    "InvalidRequest",
    "SchemaMismatch",
    "InvariantViolation",
    "DeltaConcurrentModificationException",
    "ConcurrentWriteException",
    "MetadataChangedException",
    "ProtocolChangedException",
    "ConcurrentAppendException",
    "ConcurrentDeleteReadException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentTransactionException",
    "NotFound",
    "StorageFailure",
    "CommitStateUnknown",
    "CorruptTable",
    "ForeignWriter",
    "Unsupported",
    "TahoeWarning",
    "__version__",
]

# Loaded on first use: a command line that answers in half a second must not import Spark. All other names are errors.
_HOMES = {
    "Table": "tahoe.api.table",
    "DeltaTable": "tahoe.tables",
    "SqlCoordinator": "tahoe.coordinator.sql_coordinator",
    "read_together": "tahoe.api.several_tables",
    "transaction": "tahoe.api.several_tables",
    "configure_spark_with_delta_pip": "tahoe.spark.session",
    "enable": "tahoe.spark.session",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'tahoe' has no attribute '{name}'")
    from importlib import import_module

    if name == "cache":
        return import_module("tahoe.cache")
    try:
        return getattr(import_module(_HOMES.get(name, "tahoe.exceptions")), name)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in ("pyspark", "py4j"):
            raise
        from tahoe.base.missing_extra import missing_pyspark

        raise missing_pyspark(f"tahoe.{name}", package) from error


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
