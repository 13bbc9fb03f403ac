"""Auto compaction on Spark: the core's (`tahoe.ops.layout.auto_compact`), with the session's settings, on its executors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from pyspark.sql import SparkSession

from tahoe.api.process import COMPACTED_NOW
from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest
from tahoe.ops.layout.auto_compact import AutoCompaction, PartitionReservations, compaction_after
from tahoe.protocol.properties import parse_size
from tahoe.spark.commands.upkeep import on_executors
from tahoe.spark.jvm.bridge import active_session
from tahoe.txn.commit import Committed

_PREFIX = "spark.databricks.delta.autoCompact."
_SWITCHES = {"true": True, "auto": True, "legacy": True, "false": False}

Value = TypeVar("Value")


def compact_after(spark: SparkSession, table: Table, committed: Committed) -> None:
    """The hook: compact files after a commit of the active session, or else of this one, if the session or the table enables it.

    Raises: the errors of OPTIMIZE; `InvalidRequest` (`DELTA_INVALID_AUTO_COMPACT_TYPE`) for an invalid setting.
    """
    session = active_session(spark)
    enabled = session.conf.get(_PREFIX + "enabled", None)
    if (enabled is None and not committed.snapshot.config.properties.auto_compacts) or table.url.startswith("memory:"):
        return
    settings, reserves = compaction_of(lambda name: session.conf.get(_PREFIX + name, None))
    run = partial(table.compact_gently, partial(on_executors, session))
    compaction_after(committed, settings, COMPACTED_NOW if reserves else PartitionReservations(), run)


def compaction_of(setting: Callable[[str], str | None]) -> tuple[AutoCompaction, bool]:
    """Return a session's ``autoCompact.…`` settings, and whether only one thread at a time compacts a partition.

    Raises `InvalidRequest` for an invalid value.
    """

    def value(name: str, parse: Callable[[str], Value], default: Value) -> Value:
        text = setting(name)
        try:
            return default if text is None else parse(str(text).strip().lower())
        except (ValueError, KeyError) as error:
            raise InvalidRequest(
                f"The setting {_PREFIX}{name} = '{text}' is no value for it; unset it.",
                code="DELTA_INVALID_AUTO_COMPACT_TYPE" if name == "enabled" else "DELTA_ILLEGAL_OPTION",
                option=_PREFIX + name,
            ) from error

    skips_early = value("earlySkipPartitionTable.enabled", _is_true, True)
    defaults = AutoCompaction()
    settings = AutoCompaction(
        enabled=value("enabled", _SWITCHES.__getitem__, None),
        target=value("maxFileSize", parse_size, defaults.target),
        least=value("minFileSize", parse_size, None),
        min_files=value("minNumFiles", int, defaults.min_files) if skips_early else 0,
        modified_only=value("modifiedPartitionsOnly.enabled", _is_true, True),
        most_partitions=value("maxNumModifiedPartitions", int, defaults.most_partitions),
        not_after_appends=value("nonBlindAppend.enabled", _is_true, False),
    )
    return settings, value("reservePartitions.enabled", _is_true, True)


def _is_true(text: str) -> bool:
    return {"true": True, "false": False}[text]
