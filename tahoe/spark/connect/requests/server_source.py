"""The data source on the server of a Spark Connect session, and the secrets in its options.

Spark writes the options of a plan into the server's event log, its user interface and the client's texts. So an option whose name indicates
a secret gets a placeholder as its value, and the values travel in the pickled class of the data source, which nothing shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from secrets import token_hex
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from pyspark.errors import AnalysisException

from tahoe.api.table import Table
from tahoe.base.exceptions import Unsupported
from tahoe.base.secrets import is_secret_name
from tahoe.spark.executors.shipped import source_for_server
from tahoe.spark.jvm.storage import table_at
from tahoe.spark.portable.data_source import DeltaDataSource
from tahoe.spark.portable.data_source_options import table_of

_PLACEHOLDER = "tahoe-secret-"
_PLACEHOLDERS: WeakKeyDictionary[Any, dict[str, str]] = WeakKeyDictionary()
"""Session → secret → its placeholder. The sessions are those whose servers have the data source."""
_WITH_TAHOE: WeakSet[Any] = WeakSet()
"""The sessions whose servers use a data source of their own."""
_LOCK = Lock()


def serve(spark: Any) -> bool:
    """Send the data source to the session's server; return False if it has it already."""
    with _LOCK:
        if spark in _PLACEHOLDERS or spark in _WITH_TAHOE:
            return False
        try:
            _register(spark, {})
        except AnalysisException as error:
            # Spark 4.0 registers no source in place of one that is installed: the server's Python has Tahoe.
            if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
                raise
            _WITH_TAHOE.add(spark)
        return True


def without_secrets(spark: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with placeholders for secrets, whose values the session's server gets.

    Args:
        spark: a session of Spark Connect. One without Tahoe keeps its options.

    Raises `Unsupported` for a secret in a session whose server uses the source that is installed there.
    """
    with _LOCK:
        if spark in _WITH_TAHOE and (secret := next(filter(is_secret_name, options), None)) is not None:
            raise Unsupported(
                f"The option '{secret}' would be shown in the server's plans: Tahoe is installed in the server's Python, and Spark 4.0 does "
                "not let the client replace it. Uninstall it there, or set the credentials on the server.",
                code="TAHOE_OPTION_NOT_SUPPORTED",
                option=secret,
            )
        known = _PLACEHOLDERS.get(spark)
        if known is None:
            return dict(options)
        secrets = {name: str(value) for name, value in options.items() if value is not None and is_secret_name(name)}
        new = [value for value in secrets.values() if value not in known and not value.startswith(_PLACEHOLDER)]
        if new:
            _register(spark, known | {value: f"{_PLACEHOLDER}{token_hex(16)}" for value in new})
        known = _PLACEHOLDERS[spark]
        return {**options, **{name: known.get(value, value) for name, value in secrets.items()}}


def table_with_options(spark: Any, path: str, options: Mapping[str, str]) -> Table:
    """Return the table at a path.

    Args:
        options: of a reader or writer, perhaps with placeholders for secrets. Only the data source of Spark Connect has the option
            ``coordinator``.
    """
    with _LOCK:
        secrets = {placeholder: value for value, placeholder in _PLACEHOLDERS.get(spark, {}).items()}
    all_options = {name: secrets.get(value, value) for name, value in options.items()}
    is_coordinated = any(name.lower() == "coordinator" for name in options)
    return table_of(path, all_options) if is_coordinated else table_at(spark, path, all_options)


def _register(spark: Any, placeholders: dict[str, str]) -> None:
    secrets = {placeholder: value for value, placeholder in placeholders.items()}
    spark.dataSource.register(source_for_server(DeltaDataSource, secrets))
    _PLACEHOLDERS[spark] = placeholders
