"""The facts of a report on a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tahoe.ops.check.subjects.violation import Violation
from tahoe.ops.layout.table_layout import TableLayout
from tahoe.ops.reports.advice import Advice
from tahoe.ops.reports.column_statistics import TableStatistics
from tahoe.ops.reports.storage_use import StorageUse
from tahoe.store.stream_records import StreamRecord


@dataclass(frozen=True, slots=True)
class SizeAt:
    """The live files of a version and their total size in bytes, from its checksum file."""

    version: int
    files: int
    size: int


@dataclass(frozen=True, slots=True)
class ReportFacts:
    """The facts; `tahoe.ops.reports.table_report.TableReport` is the result that users get.

    Args:
        created_ms: the time of the report in milliseconds since the epoch.
        file_sizes: the sizes of the live files in bytes.
        commits: the newest commits, newest first, as `Table.history` returns them.
        growth: the sizes of the versions in `commits` that have a checksum file, oldest first.
        streams: the streaming queries that read the table, as far as they are recorded beside its log.
        layout: None if no column has statistics.
        iceberg: facts about the Iceberg side; None if UniForm is disabled.
    """

    table: str
    version: int
    created_ms: int
    facts: Mapping[str, object]
    storage: StorageUse
    statistics: TableStatistics
    file_sizes: tuple[int, ...] = field(repr=False)
    commits: tuple[Mapping[str, Any], ...] = field(repr=False)
    growth: tuple[SizeAt, ...] = field(repr=False)
    streams: tuple[StreamRecord, ...]
    layout: TableLayout | None = field(repr=False)
    violations: tuple[Violation, ...]
    iceberg: Mapping[str, object] | None
    advice: tuple[Advice, ...]
