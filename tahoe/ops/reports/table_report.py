"""A report on a table: health, growth, file sizes, layout, commits, skipping, and recommended actions. Reads no rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tahoe.base.clock import Clock
from tahoe.base.exceptions import CorruptTable, InvalidRequest
from tahoe.base.html import html_size
from tahoe.base.progress import Progress, silent
from tahoe.base.wording import counted
from tahoe.log.checksum import read_checksum
from tahoe.log.history import history
from tahoe.ops.check.table_check import check_table
from tahoe.ops.layout.table_layout import TableLayout, layout_of
from tahoe.ops.reports.advice import advice_for
from tahoe.ops.reports.column_statistics import statistics_in_log
from tahoe.ops.reports.report_facts import ReportFacts, SizeAt
from tahoe.ops.reports.report_page import page_of, part_of
from tahoe.ops.reports.storage_use import storage_use
from tahoe.ops.tables.detail import shown_detail
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.log_store import LogStore
from tahoe.store.stream_records import streams_of

_MOST_COMMITS = 100


@dataclass(frozen=True, slots=True)
class TableReport(ReportFacts):
    """The result of `Table.report`: `to_html` returns the page, a notebook shows it, and `str` gives a summary."""

    def to_html(self) -> str:
        """Return the report as a self-contained HTML page (`tahoe.ops.reports.report_page`)."""
        return page_of(self)

    def _repr_html_(self) -> str:
        return part_of(self)

    def to_json_value(self) -> dict[str, Any]:
        """Return the report as a JSON value, for programs; times are ISO 8601 texts."""
        return {
            "table": self.table,
            "version": self.version,
            "facts": dict(self.facts),
            "storage": [asdict(kind) for kind in self.storage.kinds],
            "files": len(self.file_sizes),
            "bytes": sum(self.file_sizes),
            "rows": self.statistics.rows,
            "growth": [asdict(size) for size in self.growth],
            "layout": None if self.layout is None else self.layout.to_json_value(),
            "violations": [asdict(violation) for violation in self.violations],
            "iceberg": self.iceberg,
            "streams": [asdict(stream) for stream in self.streams],
            "advice": [asdict(advice) for advice in self.advice],
        }

    def __str__(self) -> str:
        files = f"{counted(len(self.file_sizes), 'file')} of {html_size(sum(self.file_sizes))}"
        health = "no problem found" if not self.violations else counted(len(self.violations), "problem")
        lines = [f"Version {self.version} of {self.table}: {files}, {counted(self.statistics.rows, 'row')}, {health}."]
        return "\n".join([*lines, *(f"- {advice}" for advice in self.advice)])


def report_of(
    snapshot: Snapshot,
    iceberg: Mapping[str, object] | None,
    clock: Clock,
    progress: Progress = silent,
) -> TableReport:
    """Collect the facts of a report: reads the log, the newest commits and checksums, and lists the table's folder.

    Args:
        iceberg: facts about the Iceberg side, with ``lag_versions``; None if UniForm is disabled.
    """
    store = snapshot.store
    storage, statistics = storage_use(snapshot, progress), statistics_in_log(snapshot)
    layout, violations = _layout(snapshot), tuple(check_table(store, progress=progress))
    commits = tuple(history(store, snapshot.config, snapshot.version, _MOST_COMMITS))
    lag = None if iceberg is None else iceberg.get("lag_versions")
    advice = advice_for(storage, statistics, layout, violations, lag if isinstance(lag, int) else None)
    return TableReport(
        table=store.url,
        version=snapshot.version,
        created_ms=clock.now_ms(),
        facts=shown_detail(snapshot),
        storage=storage,
        statistics=statistics,
        file_sizes=tuple(snapshot.files()["size"].to_pylist()),
        commits=commits,
        growth=tuple(_growth(store, [commit["version"] for commit in reversed(commits)])),
        streams=tuple(streams_of(store)),
        layout=layout,
        violations=violations,
        iceberg=iceberg,
        advice=tuple(advice),
    )


def _layout(snapshot: Snapshot) -> TableLayout | None:
    try:
        return layout_of(snapshot)
    except InvalidRequest as error:
        if error.code != "TAHOE_COLUMN_WITHOUT_STATISTICS":
            raise
        return None


def _growth(store: LogStore, versions: Sequence[int]) -> Iterator[SizeAt]:
    for version in versions:
        try:
            checksum = read_checksum(store, version)
        except CorruptTable:  # the check has reported it
            continue
        if checksum is not None:
            yield SizeAt(version, checksum.num_files, checksum.table_size_bytes)
