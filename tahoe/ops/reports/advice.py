"""Recommended actions for a table, each with its command. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from shlex import quote

from tahoe.base.html import html_size
from tahoe.base.wording import counted
from tahoe.ops.check.subjects.violation import Violation
from tahoe.ops.layout.layout_page import is_worse
from tahoe.ops.layout.table_layout import TableLayout
from tahoe.ops.reports.column_statistics import TableStatistics
from tahoe.ops.reports.storage_use import REMOVED, UNKNOWN, StorageUse

_LEAST_FILES = 4
"""OPTIMIZE is recommended if it rewrites at least this many files."""
_LEAST_SHARE_REMOVED = 0.2
"""VACUUM is recommended if removed data has at least this share of the table's storage."""


@dataclass(frozen=True, slots=True)
class Advice:
    """A recommended action: the reason in a sentence, and the command; the command is empty if there is none."""

    reason: str
    command: str

    def __str__(self) -> str:
        return f"{self.reason} {self.command}".strip()


def advice_for(
    storage: StorageUse, statistics: TableStatistics, layout: TableLayout | None, violations: Sequence[Violation], lag: int | None
) -> list[Advice]:
    """Return the recommended actions, the most urgent first.

    Args:
        layout: None if no column has statistics.
        lag: the number of versions that the Iceberg side is behind; None without an Iceberg side.
    """
    table = quote(storage.table.removeprefix("file://"))
    return [
        *_for_violations(violations, table),
        *_for_iceberg(lag, table),
        *_for_layout(layout, table),
        *_for_statistics(statistics, table),
        *_for_storage(storage, table),
    ]


def _for_violations(violations: Sequence[Violation], table: str) -> Iterator[Advice]:
    if violations:
        yield Advice(f"The check found {counted(len(violations), 'problem')}.", f"tahoe check {table}")


def _for_iceberg(lag: int | None, table: str) -> Iterator[Advice]:
    if lag:
        yield Advice(f"The Iceberg side is {counted(lag, 'version')} behind.", f"tahoe uniform sync {table}")


def _for_layout(layout: TableLayout | None, table: str) -> Iterator[Advice]:
    if layout is None:
        return
    if layout.plan.files >= _LEAST_FILES:
        yield Advice(layout.gain(), f"tahoe optimize {table}")
    worse = [column.name for column in layout.columns if is_worse(column)]
    if worse and layout.plan.files >= _LEAST_FILES:
        yield Advice(
            f"After OPTIMIZE, predicates on {', '.join(worse)} would read more bytes than now. Cluster by these columns if they matter.",
            f"tahoe layout {table} --by {quote(worse[0])}",
        )


def _for_statistics(statistics: TableStatistics, table: str) -> Iterator[Advice]:
    if statistics.files_without:
        yield Advice(
            f"{counted(statistics.files_without, 'file')} of {statistics.files:,} cannot be skipped: their statistics are missing.",
            f"tahoe analyze {table}",
        )


def _for_storage(storage: StorageUse, table: str) -> Iterator[Advice]:
    removed, unknown = ([kind for kind in storage.kinds if kind.kind == name] for name in (REMOVED, UNKNOWN))
    for kind in removed:
        if kind.size >= _LEAST_SHARE_REMOVED * storage.size:
            yield Advice(
                f"{counted(kind.files, 'removed file')} of {html_size(kind.size)} remain for older versions; VACUUM deletes those whose "
                "retention has ended.",
                f"tahoe vacuum {table} --dry-run",
            )
    for kind in unknown:
        yield Advice(
            f"{counted(kind.files, 'file')} of {html_size(kind.size)} are not in the log.", f"tahoe vacuum {table} --dry-run"
        )
